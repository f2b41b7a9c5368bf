// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/schedule/goals.h"

#include <algorithm>
#include <utility>

namespace ulc::sim {
namespace {

using coll::Blocks;
using coll::Call;
using coll::Op;

constexpr std::uint64_t kGap = 3;

/// Puts bytes at the place of a block; the memory grows to hold it.
void put(Symbols& memory, const coll::Range& where, const Symbols& octets) {
    if (memory.size() < where.offset + where.length) memory.resize(where.offset + where.length, 0);
    std::copy(octets.begin(), octets.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(where.offset));
}

/// Returns `octets` symbols from byte `from` on, of `count` contributors from rank 0.
Symbols fold(std::uint64_t count, std::uint64_t from, std::uint64_t octets) {
    Symbols symbols(octets);
    for (std::uint64_t i = 0; i < octets; ++i)
        symbols[i] = symbol_of(0, count, from + i);
    return symbols;
}

/// Returns all blocks of a layout, each filled by fill(rank, octets).
template <typename Fill>
Symbols filled(const Blocks& blocks, std::uint16_t ranks, Fill fill) {
    Symbols memory;
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        const coll::Range where = blocks.range(rank, abi::BufferId::kOutput);
        put(memory, where, fill(rank, where.length));
    }
    return memory;
}

/// Returns the data that s gives to d in a total exchange.
Symbols exchanged(std::uint16_t s, std::uint16_t d, std::uint64_t octets) {
    Symbols symbols(octets);
    for (std::uint64_t i = 0; i < octets; ++i)
        symbols[i] = symbol_of(s, d + 1U, i);
    return symbols;
}

void expect_gather(const Call& call, RankGoal& goal) {
    const bool takes = call.op == Op::kAllgather || call.rank == call.root;
    if (takes) {
        goal.expected = filled(call.out, call.ranks, contribution);
        goal.output.assign(goal.expected.size(), 0);
        const coll::Range own = call.out.range(call.rank, abi::BufferId::kOutput);
        if (call.in_place) put(goal.output, own, contribution(call.rank, own.length));
    }
    if (!call.in_place) goal.input = contribution(call.rank, call.octets);
}

void expect_scatter(const Call& call, RankGoal& goal) {
    if (call.rank == call.root) goal.input = filled(call.in, call.ranks, contribution);
    if (call.in_place) return;
    goal.output.assign(call.octets, 0);
    goal.expected = contribution(call.rank, call.octets);
}

void expect_exchange(const Call& call, RankGoal& goal) {
    const Symbols given = filled(call.in, call.ranks, [&](std::uint16_t to, std::uint64_t octets) {
        return exchanged(call.rank, to, octets);
    });
    goal.expected = filled(call.out, call.ranks, [&](std::uint16_t from, std::uint64_t octets) {
        return exchanged(from, call.rank, octets);
    });
    goal.output.assign(goal.expected.size(), 0);
    (call.in_place ? goal.output : goal.input) = given;
}

void expect_reduction(const Call& call, RankGoal& goal) {
    const bool takes = call.op != Op::kReduce || call.rank == call.root;
    if (takes) goal.output.assign(call.octets, 0);
    (call.in_place ? goal.output : goal.input) = contribution(call.rank, call.octets);
    if (call.op == Op::kReduceScatter) {
        const coll::Range own = call.in.range(call.rank, abi::BufferId::kInput);
        if (!call.in_place) goal.output.assign(own.length, 0);
        goal.expected = fold(call.ranks, own.offset, own.length);
    } else if (call.op == Op::kScan || call.op == Op::kExscan) {
        const std::uint64_t count = call.rank + (call.op == Op::kScan ? 1U : 0U);
        if (count > 0) goal.expected = fold(count, 0, call.octets);
    } else if (takes) {
        goal.expected = fold(call.ranks, 0, call.octets);
    }
}

}  // namespace

Symbols contribution(std::uint16_t rank, std::uint64_t octets) {
    Symbols symbols(octets);
    for (std::uint64_t i = 0; i < octets; ++i)
        symbols[i] = symbol_of(rank, 1, i);
    return symbols;
}

RankGoal goal_of(const Call& call) {
    RankGoal goal;
    switch (call.op) {
        case Op::kBarrier:
            break;
        case Op::kBroadcast:
            goal.expected = contribution(call.root, call.octets);
            goal.output = call.rank == call.root ? goal.expected : Symbols(call.octets, 0);
            break;
        case Op::kGather:
        case Op::kGatherv:
        case Op::kAllgather:
            expect_gather(call, goal);
            break;
        case Op::kScatter:
        case Op::kScatterv:
            expect_scatter(call, goal);
            break;
        case Op::kAlltoall:
        case Op::kAlltoallv:
            expect_exchange(call, goal);
            break;
        case Op::kReduce:
        case Op::kAllreduce:
        case Op::kReduceScatter:
        case Op::kScan:
        case Op::kExscan:
            expect_reduction(call, goal);
            break;
    }
    return goal;
}

bool is_reduction(Op op) {
    return op == Op::kReduce || op == Op::kAllreduce || op == Op::kReduceScatter ||
           op == Op::kScan || op == Op::kExscan;
}

bool is_uneven(Op op) { return op == Op::kGatherv || op == Op::kScatterv || op == Op::kAlltoallv; }

Call even(Call call) {
    call.in.each = call.out.each = call.octets;
    if (call.op == Op::kReduceScatter) call.octets *= call.ranks;
    return call;
}

void CollectiveCase::add(const coll::Algorithm& algorithm, const Call& call) {
    demands = {.barrier = call.op == Op::kBarrier,
               .alike = call.op == Op::kAllreduce,
               .commutative = call.commutative && is_reduction(call.op)};
    plans.emplace_back();
    algorithm.make(call, plans.back());
    goals.push_back(goal_of(call));
}

/// Returns the call of one rank. In a rooted operation, only the root may be in place.
static Call at_rank(Call call, std::uint16_t rank) {
    const bool rooted = call.op == Op::kGather || call.op == Op::kGatherv ||
                        call.op == Op::kScatter || call.op == Op::kScatterv ||
                        call.op == Op::kReduce;
    call.rank = rank;
    if (rooted && rank != call.root) call.in_place = false;
    return call;
}

CollectiveCase::CollectiveCase(const coll::Algorithm& algorithm, const Call& call) {
    for (std::uint16_t rank = 0; rank < call.ranks; ++rank)
        add(algorithm, even(at_rank(call, rank)));
}

namespace {

/// Lengths by rank and the places of the blocks.
struct Layout {
    Layout(const Call& call, std::vector<std::size_t> by_rank)
        : lengths(std::move(by_rank)), offsets(lengths.size()) {
        const bool reversed = call.op != Op::kReduceScatter;
        for (std::size_t r = 0; r < lengths.size(); ++r) {
            const std::size_t i = reversed ? lengths.size() - 1 - r : r;
            offsets[i] = end;
            end += lengths[i] + (reversed ? kGap : 0);
        }
    }
    [[nodiscard]] Blocks blocks() const { return {0, lengths.data(), offsets.data()}; }

    std::vector<std::size_t> lengths;
    std::vector<std::size_t> offsets;
    std::size_t end = 0;
};

/// Returns the lengths that call.rank gives each of the others in a total exchange, or gets from
/// them.
std::vector<std::size_t> exchanged_lengths(const Call& call, const std::vector<std::size_t>& of,
                                           bool given) {
    std::vector<std::size_t> lengths;
    for (std::size_t other = 0; other < of.size(); ++other) {
        const std::size_t from = given ? call.rank : other;
        const std::size_t to = given ? other : call.rank;
        lengths.push_back(of[(from + (call.in_place ? to : 2 * to)) % of.size()]);
    }
    return lengths;
}

}  // namespace

CollectiveCase::CollectiveCase(const coll::Algorithm& algorithm, const Call& call,
                               const std::vector<std::size_t>& lengths) {
    for (std::uint16_t rank = 0; rank < call.ranks; ++rank) {
        Call one = at_rank(call, rank);
        const bool exchange = one.op == Op::kAlltoall || one.op == Op::kAlltoallv;
        const Layout in(one, exchange ? exchanged_lengths(one, lengths, true) : lengths);
        const Layout out(one, exchange ? exchanged_lengths(one, lengths, false) : lengths);
        one.octets = one.op == Op::kReduceScatter ? out.end : out.lengths[rank];
        const bool known = one.op != Op::kGatherv && one.op != Op::kScatterv;
        if (known || rank == one.root) {
            one.in = in.blocks();
            one.out = out.blocks();
        }
        add(algorithm, one);
    }
}

std::vector<abi::Schedule> CollectiveCase::schedules() const {
    std::vector<abi::Schedule> all;
    for (const coll::Plan& plan : plans)
        all.push_back(plan.schedule());
    return all;
}

Verdict CollectiveCase::check(std::uint32_t buffers_max) const {
    Demands all = demands;
    all.buffers_max = buffers_max;
    return check_schedules(schedules(), goals, all);
}

}  // namespace ulc::sim
