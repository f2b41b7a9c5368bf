// SPDX-License-Identifier: BSD-3-Clause
// Tests lengths beyond 32 bits, for every algorithm. A plan for lengths, segments and elements n
// times as large is the plan of the small ones with every offset and length multiplied by n. Every
// byte of the small plans is proved (schedules_test.cc), so the large plans are right too, at sizes
// that no memory could hold. Blocks exceed 2^31 and 2^32 bytes, sums and displacements more.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "tests/sim/schedule/goals.h"

namespace ulc::sim {
namespace {

using abi::Step;
using coll::Algorithm;
using coll::Blocks;
using coll::Call;
using coll::Op;
using coll::Plan;

/// The shortest block, of one packet (which scatter/packed treats as a special case), has more than
/// 2^32 bytes with the last of these factors.
constexpr std::uint64_t kPacket = 1460;
constexpr std::uint64_t kTimes[] = {3, (std::uint64_t{1} << 21) + 1, (std::uint64_t{1} << 32) + 1};

Call times(Call call, std::uint64_t factor) {
    call.octets *= factor;
    call.segment *= factor;
    call.grain = static_cast<std::uint32_t>(call.grain * factor);
    return call;
}

/// Lengths by rank, with the blocks in the opposite order and gaps (in order and without gaps for a
/// reduce_scatter), all multiplied by `factor`.
struct Layout {
    Layout(Op op, std::uint16_t ranks, std::uint64_t factor) : lengths(ranks), offsets(ranks) {
        std::size_t at = 0;
        for (std::uint16_t n = 0; n < ranks; ++n) {
            const bool in_order = op == Op::kReduceScatter;
            const std::size_t rank = in_order ? n : ranks - 1U - n;
            lengths[rank] = rank * 7 % 4 * kPacket * factor;
            offsets[rank] = at;
            at += lengths[rank] + (in_order ? 0 : 3 * factor);
            all += lengths[rank];
        }
    }
    [[nodiscard]] Blocks blocks() const { return {0, lengths.data(), offsets.data()}; }

    std::vector<std::size_t> lengths;
    std::vector<std::size_t> offsets;
    std::size_t all = 0;
};

std::string difference(const Step& small, const Step& large, std::uint64_t factor) {
    if (small.kind != large.kind || small.peer != large.peer || small.buffer != large.buffer ||
        small.from_buffer != large.from_buffer || small.with_buffer != large.with_buffer ||
        small.depends_count != large.depends_count || small.depends_first != large.depends_first)
        return "another step";
    const bool from = abi::is_local(small.kind);
    if (large.length != small.length * factor) return "length " + std::to_string(large.length);
    if (large.offset != small.offset * factor) return "offset " + std::to_string(large.offset);
    if (large.with_offset != small.with_offset * factor)
        return "with offset " + std::to_string(large.with_offset);
    if (large.from_offset != small.from_offset * (from ? factor : 1))
        return "from offset " + std::to_string(large.from_offset);
    return "";
}

void expect_alike(const Algorithm& algorithm, const Call& small, const Call& large,
                  std::uint64_t factor) {
    Plan plan_of_small;
    Plan plan_of_large;
    algorithm.make(small, plan_of_small);
    algorithm.make(large, plan_of_large);
    const std::string which = std::string(coll::name_of(algorithm.op)) + '/' +
                              std::string(algorithm.name) + " rank " + std::to_string(small.rank) +
                              " of " + std::to_string(small.ranks) + ", times " +
                              std::to_string(factor);
    const abi::Schedule a = plan_of_small.schedule();
    const abi::Schedule b = plan_of_large.schedule();
    ASSERT_EQ(b.step_count, a.step_count) << which;
    ASSERT_EQ(b.depends_count, a.depends_count) << which;
    EXPECT_EQ(b.scratch_octets, a.scratch_octets * factor) << which;
    for (std::uint32_t i = 0; i < a.depends_count; ++i)
        ASSERT_EQ(b.depends[i], a.depends[i]) << which;
    for (std::uint32_t i = 0; i < a.step_count; ++i)
        ASSERT_EQ(difference(a.steps[i], b.steps[i], factor), "") << which << " step " << i;
}

/// Calls try_one(algorithm, call) for every algorithm, several numbers of ranks, each rank, in
/// place or not.
template <typename TryOne>
void over_calls(TryOne try_one) {
    for (const Algorithm& algorithm : coll::algorithms()) {
        for (const std::uint16_t ranks : {1, 2, 3, 5, 8}) {
            Call call{.op = algorithm.op,
                      .ranks = ranks,
                      .root = static_cast<std::uint16_t>(ranks / 2),
                      .segment = 600,
                      .concurrent = 2};
            for (call.rank = 0; call.rank < ranks; ++call.rank) {
                for (const bool in_place : {false, true}) {
                    call.in_place = in_place;
                    try_one(algorithm, call);
                    if (testing::Test::HasFatalFailure()) return;
                }
            }
        }
    }
}

TEST(CollHuge, every_plan_of_huge_blocks_is_that_of_small_ones_larger) {
    for (const std::uint64_t factor : kTimes) {
        over_calls([factor](const Algorithm& algorithm, Call call) {
            for (const std::uint64_t packets : {0U, 1U, 5U}) {
                call.octets = call.op == Op::kBarrier ? 0 : packets * kPacket;
                // pairwise_multicast cuts a block between elements, so both calls have the same
                // number of elements.
                const bool shares = algorithm.name == "pairwise_multicast";
                if (shares && factor > UINT32_MAX) continue;
                call.grain = 1;
                Call large = times(call, factor);
                if (!shares) large.grain = 1;
                expect_alike(algorithm, even(call), even(large), factor);
            }
        });
    }
}

TEST(CollHuge, every_plan_with_huge_lengths_by_rank_is_that_of_small_ones_larger) {
    for (const std::uint64_t factor : kTimes) {
        over_calls([factor](const Algorithm& algorithm, Call call) {
            if (!is_uneven(call.op) && call.op != Op::kAllgather && call.op != Op::kReduceScatter)
                return;
            const Layout small(call.op, call.ranks, 1);
            const Layout large(call.op, call.ranks, factor);
            const auto with = [&call](const Layout& layout, std::uint64_t times) {
                Call one = call;
                one.segment *= times;
                one.in = one.out = layout.blocks();
                one.octets = call.op == Op::kReduceScatter ? layout.all : layout.lengths[call.rank];
                return one;
            };
            expect_alike(algorithm, with(small, 1), with(large, factor), factor);
        });
    }
}

}  // namespace
}  // namespace ulc::sim
