// SPDX-License-Identifier: BSD-3-Clause
// Tests the executor: it refuses malformed schedules, keeps order, ends with every order of
// completions, and bounds its work.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "base/prng.h"
#include "exec/executor.h"

namespace ulc::exec {
namespace {

using abi::BufferId;
using abi::Schedule;
using abi::Step;
using abi::StepKind;

struct Program {
    std::vector<Step> steps;
    std::vector<std::uint32_t> depends;
    std::vector<unsigned char> input = std::vector<unsigned char>(64, 1);
    std::vector<unsigned char> output = std::vector<unsigned char>(64, 2);
    std::uint16_t members = 4;
    ReduceOp reduce = {};

    std::uint32_t add(StepKind kind, std::uint16_t peer,
                      const std::vector<std::uint32_t>& after = {}, std::uint64_t offset = 0,
                      std::uint64_t length = 8) {
        Step step{};
        step.kind = kind;
        step.peer = peer;
        step.buffer = BufferId::kOutput;
        step.depends_first = static_cast<std::uint32_t>(depends.size());
        step.depends_count = static_cast<std::uint16_t>(after.size());
        step.offset = offset;
        step.length = length;
        depends.insert(depends.end(), after.begin(), after.end());
        steps.push_back(step);
        return static_cast<std::uint32_t>(steps.size()) - 1;
    }
    [[nodiscard]] Schedule schedule() const {
        return {steps.data(), depends.data(), static_cast<std::uint32_t>(steps.size()),
                static_cast<std::uint32_t>(depends.size()), 0};
    }
    Result<Executor> make(Fault* fault = nullptr) {
        return Executor::make(schedule(),
                              {.members = members,
                               .self = 0,
                               .input = input.data(),
                               .output = output.data(),
                               .octets = {input.size(), output.size(), 0},
                               .reduce = reduce},
                              fault);
    }
    void expect_refused(std::uint32_t step, const char* reason) {
        Fault fault;
        EXPECT_EQ(make(&fault).error(), Err::kInvalid) << reason;
        EXPECT_EQ(fault.step, step) << fault.reason;
        EXPECT_STREQ(fault.reason, reason);
    }
};

// ---- refusing -----------------------------------------------------------------------------------

TEST(executor, refuses_peers_outside_the_group_and_itself) {
    Program program;
    program.add(StepKind::kSend, 1);
    program.add(StepKind::kSend, 4);
    program.expect_refused(1, "peer is not in the group");
    program.steps[1].peer = 0;
    program.expect_refused(1, "peer is the member itself");
}

TEST(executor, refuses_ranges_outside_buffers_also_when_the_sum_wraps) {
    Program program;
    program.add(StepKind::kRecv, 1, {}, 57, 8);
    program.expect_refused(0, "range is outside its buffer");
    program.steps[0].offset = UINT64_MAX - 3;
    program.expect_refused(0, "range is outside its buffer");
    program.steps[0].offset = 8;
    program.steps[0].length = UINT64_MAX - 7;
    program.expect_refused(0, "range is outside its buffer");
    program.steps[0].length = 56;
    EXPECT_TRUE(program.make().ok());
    program.steps[0].buffer = static_cast<BufferId>(3);
    program.expect_refused(0, "range is outside its buffer");
    program.steps[0].buffer = BufferId::kScratch;
    program.expect_refused(0, "range is outside its buffer");
}

TEST(executor, refuses_dependencies_that_are_not_earlier_or_not_there) {
    Program program;
    program.add(StepKind::kSend, 1);
    program.add(StepKind::kSend, 2, {1});
    program.expect_refused(1, "dependency is not an earlier step");
    program.depends[0] = 77;
    program.expect_refused(1, "dependency is not an earlier step");
    program.depends[0] = 0;
    EXPECT_TRUE(program.make().ok());
    program.steps[1].depends_count = 2;
    program.expect_refused(1, "dependencies are outside the table");
    program.steps[1].depends_count = 1;
    program.steps[1].depends_first = UINT32_MAX;
    program.expect_refused(1, "dependencies are outside the table");
}

TEST(executor, refuses_unknown_kinds_reserved_bits_and_writes_to_input) {
    Program program;
    program.add(StepKind::kRecv, 1);
    program.steps[0].kind = static_cast<StepKind>(0);
    program.expect_refused(0, "unknown kind");
    program.steps[0].kind = static_cast<StepKind>(7);
    program.expect_refused(0, "unknown kind");
    program.steps[0].kind = StepKind::kRecv;
    program.steps[0].reserved = 1;
    program.expect_refused(0, "reserved field is not zero");
    program.steps[0].reserved = 0;
    program.steps[0].buffer = BufferId::kInput;
    program.expect_refused(0, "input is read only");
}

TEST(executor, refuses_overlapping_copies_and_reductions_without_an_operator) {
    Program program;
    program.add(StepKind::kCopy, 0, {}, 4, 8);
    program.steps[0].from_buffer = BufferId::kOutput;
    program.steps[0].from_offset = 0;
    program.expect_refused(0, "source and destination overlap");
    program.steps[0].from_offset = 12;
    EXPECT_TRUE(program.make().ok());
    program.steps[0].from_offset = 60;
    program.expect_refused(0, "source range is outside its buffer");
    program.steps[0].kind = StepKind::kReduce;
    program.steps[0].from_offset = 12;
    program.expect_refused(0, "reduction is not allowed here");
}

TEST(executor, a_reduction_ends_where_an_operand_is_or_apart_from_both) {
    Program program;
    program.reduce.apply = [](void*, unsigned char*, const unsigned char*, const unsigned char*,
                              std::uint64_t) noexcept {};
    program.add(StepKind::kReduce, 0, {}, 16, 8);
    Step& step = program.steps[0];
    step.from_buffer = step.with_buffer = BufferId::kOutput;
    for (std::uint64_t* operand : {&step.from_offset, &step.with_offset}) {
        step.from_offset = step.with_offset = 32;
        for (const std::uint64_t good : {8U, 16U, 24U, 56U}) {
            *operand = good;
            EXPECT_TRUE(program.make().ok()) << good;
        }
        for (const std::uint64_t partly : {9U, 15U, 17U, 23U}) {
            *operand = partly;
            program.expect_refused(0, "source and destination overlap");
        }
        for (const std::uint64_t outside : {57U, 64U}) {
            *operand = outside;
            program.expect_refused(0, "source range is outside its buffer");
        }
    }
}

TEST(executor, refuses_wrong_subsets) {
    Program program;
    program.add(StepKind::kMcast, 0);
    program.steps[0].from_offset = 0b0110;
    EXPECT_TRUE(program.make().ok());
    program.steps[0].from_offset = 0b0111;
    program.expect_refused(0, "subset names the member itself");
    program.steps[0].from_offset = 0b10010;
    program.expect_refused(0, "subset names an index outside the group");
    program.members = 65;
    program.expect_refused(0, "subset in a group of more than 64 members");
    program.members = 1;
    program.expect_refused(0, "multicast without another member");
}

TEST(executor, refuses_memory_that_is_missing) {
    Program program;
    program.add(StepKind::kRecv, 1);
    const exec::Setup setup{.members = 4, .output = nullptr, .octets = {0, 64, 0}};
    EXPECT_EQ(Executor::make(program.schedule(), setup).error(), Err::kInvalid);
}

// ---- running ------------------------------------------------------------------------------------

/// Takes every step that can start.
std::vector<std::uint32_t> take(Executor& executor) {
    std::vector<std::uint32_t> taken;
    std::uint32_t step = 0;
    do {
        while (executor.next(step)) {
            taken.push_back(step);
            executor.started();
        }
    } while (executor.local_work_left());
    return taken;
}

using Steps = std::vector<std::uint32_t>;

TEST(executor, is_done_at_once_without_steps) {
    Program program;
    Executor executor = std::move(program.make().value());
    EXPECT_TRUE(executor.done());
    EXPECT_EQ(take(executor), Steps{});
}

TEST(executor, gives_the_same_step_until_it_is_started) {
    Program program;
    program.add(StepKind::kSend, 1);
    Executor executor = std::move(program.make().value());
    std::uint32_t step = 9;
    EXPECT_TRUE(executor.next(step));
    EXPECT_TRUE(executor.next(step));
    EXPECT_EQ(step, 0U);
    executor.started();
    EXPECT_FALSE(executor.next(step));
    EXPECT_FALSE(executor.done());
    EXPECT_EQ(executor.complete(0), Err::kOk);
    EXPECT_TRUE(executor.done());
}

TEST(executor, waits_for_dependencies_and_copies_in_between) {
    Program program;
    const auto received = program.add(StepKind::kRecv, 1, {}, 0, 8);
    const auto copied = program.add(StepKind::kCopy, 0, {received}, 16, 8);
    program.steps[copied].from_buffer = BufferId::kOutput;
    const auto sent = program.add(StepKind::kSend, 2, {copied}, 16, 8);
    Executor executor = std::move(program.make().value());
    EXPECT_EQ(take(executor), Steps{received});
    std::memset(executor.destination(executor.step(received)), 7, 8);
    EXPECT_EQ(executor.complete(received), Err::kOk);
    EXPECT_EQ(take(executor), Steps{sent});
    EXPECT_EQ(executor.source(executor.step(sent))[7], 7);
    EXPECT_EQ(program.output[15], 2);
    EXPECT_EQ(program.output[24], 2);
    EXPECT_EQ(executor.complete(sent), Err::kOk);
    EXPECT_TRUE(executor.done());
}

TEST(executor, runs_again_after_a_rewind) {
    Program program;
    const auto received = program.add(StepKind::kRecv, 1, {}, 0, 8);
    const auto next = program.add(StepKind::kRecv, 1, {}, 8, 8);
    const auto copied = program.add(StepKind::kCopy, 0, {received, next}, 16, 8);
    program.steps[copied].from_buffer = BufferId::kOutput;
    const auto sent = program.add(StepKind::kSend, 2, {copied}, 16, 8);
    Executor executor = std::move(program.make().value());
    for (int round = 0; round < 3; ++round) {
        EXPECT_FALSE(executor.done());
        EXPECT_EQ(take(executor), (Steps{received, next}));
        std::memset(executor.destination(executor.step(received)), 7 + round, 8);
        EXPECT_EQ(executor.complete(next), Err::kOk);
        if (round == 1) {  // a run that failed has steps under way
            executor.rewind();
            EXPECT_EQ(executor.in_flight(), 0U);
            continue;
        }
        EXPECT_EQ(executor.complete(received), Err::kOk);
        EXPECT_EQ(take(executor), Steps{sent});
        EXPECT_EQ(executor.source(executor.step(sent))[0], 7 + round);
        EXPECT_EQ(executor.complete(sent), Err::kOk);
        EXPECT_TRUE(executor.done());
        executor.rewind();
    }
}

TEST(executor, refuses_completions_of_steps_that_are_not_under_way) {
    Program program;
    program.add(StepKind::kSend, 1);
    program.add(StepKind::kSend, 2, {0});
    Executor executor = std::move(program.make().value());
    EXPECT_EQ(executor.complete(0), Err::kInvalid);
    EXPECT_EQ(take(executor), Steps{0});
    EXPECT_EQ(executor.complete(1), Err::kInvalid);
    EXPECT_EQ(executor.complete(2), Err::kInvalid);
    EXPECT_EQ(executor.complete(UINT32_MAX), Err::kInvalid);
    EXPECT_EQ(executor.complete(0), Err::kOk);
    EXPECT_EQ(executor.complete(0), Err::kInvalid);
}

TEST(executor, starts_steps_of_one_peer_in_index_order) {
    Program program;
    const auto gate = program.add(StepKind::kRecv, 1);
    const auto held = program.add(StepKind::kSend, 2, {gate});
    const auto behind = program.add(StepKind::kSend, 2);
    const auto free = program.add(StepKind::kSend, 3);
    const auto incoming = program.add(StepKind::kRecv, 2);
    Executor executor = std::move(program.make().value());
    EXPECT_EQ(take(executor), (Steps{gate, free, incoming}));
    EXPECT_EQ(executor.complete(gate), Err::kOk);
    EXPECT_EQ(take(executor), (Steps{held, behind}));
}

TEST(executor, orders_multicasts_with_sends_to_every_peer) {
    Program program;
    const auto gate = program.add(StepKind::kRecv, 1);
    const auto held = program.add(StepKind::kSend, 2, {gate});
    const auto mcast = program.add(StepKind::kMcast, 0);
    const auto behind = program.add(StepKind::kSend, 3);
    const auto second = program.add(StepKind::kMcast, 0);
    Executor executor = std::move(program.make().value());
    EXPECT_EQ(take(executor), Steps{gate});
    EXPECT_EQ(executor.complete(gate), Err::kOk);
    EXPECT_EQ(take(executor), (Steps{held, mcast, behind, second}));
}

TEST(executor, carries_a_large_copy_on_over_several_calls) {
    Program program;
    program.input.assign(3 * kLocalOctetsPerCall + 5, 9);
    program.output.assign(program.input.size(), 0);
    program.add(StepKind::kCopy, 0, {}, 0, program.input.size());
    program.add(StepKind::kSend, 1, {0}, 0, 8);
    Executor executor = std::move(program.make().value());
    std::uint32_t step = 0;
    int calls = 0;
    while (!executor.next(step)) {
        ASSERT_TRUE(executor.local_work_left());
        ASSERT_LT(++calls, 10);
    }
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(program.output, program.input);
}

TEST(executor, bounds_the_edges_of_one_call) {
    Program program;
    program.members = 60000;
    program.add(StepKind::kRecv, 1);
    for (std::uint16_t peer = 1; peer <= 3 * kEdgesPerCall; ++peer) {
        program.add(StepKind::kSend, peer, {0});
    }
    Executor executor = std::move(program.make().value());
    EXPECT_EQ(take(executor), Steps{0});
    EXPECT_EQ(executor.complete(0), Err::kOk);
    std::uint32_t step = 0;
    EXPECT_TRUE(executor.next(step));
    EXPECT_TRUE(executor.local_work_left());
    EXPECT_EQ(take(executor).size(), 3 * kEdgesPerCall);
}

TEST(executor, reduces_through_the_given_operator_in_whole_elements) {
    Program program;
    const std::uint64_t octets = kLocalOctetsPerCall + 24;
    program.input.assign(octets, 1);
    program.output.assign(octets, 2);
    static std::uint64_t calls = 0;
    calls = 0;
    program.reduce.grain = 24;
    program.reduce.apply = [](void*, unsigned char* into, const unsigned char* from,
                              const unsigned char* with, std::uint64_t n) noexcept {
        ++calls;
        for (std::uint64_t i = 0; i < n; ++i)
            into[i] = static_cast<unsigned char>(from[i] + with[i]);
    };
    program.add(StepKind::kReduce, 0, {}, 0, octets / 24 * 24);
    program.steps[0].with_buffer = BufferId::kOutput;
    Executor executor = std::move(program.make().value());
    EXPECT_EQ(take(executor), Steps{});
    EXPECT_TRUE(executor.done());
    EXPECT_GE(calls, 2U);
    EXPECT_EQ(program.output[octets / 24 * 24 - 1], 3);
}

TEST(executor, keeps_the_order_of_operands_wherever_the_result_goes) {
    Program program;
    program.output.assign(16, 10);
    program.input.assign(16, 4);
    program.input[5] = 3;
    program.reduce.apply = [](void*, unsigned char* into, const unsigned char* from,
                              const unsigned char* with, std::uint64_t n) noexcept {
        for (std::uint64_t i = 0; i < n; ++i)
            into[i] = static_cast<unsigned char>(from[i] - with[i]);
    };
    const auto add = [&program](std::uint64_t into, BufferId from, std::uint64_t from_offset,
                                BufferId with, std::uint64_t with_offset) {
        program.add(StepKind::kReduce, 0, {}, into, 4);
        program.steps.back().from_buffer = from;
        program.steps.back().from_offset = from_offset;
        program.steps.back().with_buffer = with;
        program.steps.back().with_offset = with_offset;
    };
    add(0, BufferId::kOutput, 0, BufferId::kInput, 2);
    add(4, BufferId::kInput, 2, BufferId::kOutput, 4);
    add(8, BufferId::kInput, 0, BufferId::kOutput, 12);
    Executor executor = std::move(program.make().value());
    EXPECT_EQ(take(executor), Steps{});
    EXPECT_TRUE(executor.done());
    EXPECT_EQ(program.output, (std::vector<unsigned char>{6, 6, 6, 7, 250, 250, 250, 249,  //
                                                          250, 250, 250, 250, 10, 10, 10, 10}));
    program.reduce = {};
    EXPECT_FALSE(program.make().ok());
}

// ---- every order --------------------------------------------------------------------------------

/// Tries a diamond with a multicast in all orders in which completions can come, by depth-first
/// search over replays.
void every_order(Program& program, const Steps& prefix, std::size_t* leaves) {
    Executor executor = std::move(program.make().value());
    Steps under_way = take(executor);
    for (const std::uint32_t step : prefix) {
        ASSERT_EQ(executor.complete(step), Err::kOk);
        under_way.erase(std::find(under_way.begin(), under_way.end(), step));
        const Steps more = take(executor);
        under_way.insert(under_way.end(), more.begin(), more.end());
    }
    if (under_way.empty()) {
        ASSERT_TRUE(executor.done());
        ++*leaves;
        return;
    }
    for (const std::uint32_t step : under_way) {
        Steps longer = prefix;
        longer.push_back(step);
        every_order(program, longer, leaves);
    }
}

TEST(executor, finishes_in_every_order_of_completion) {
    Program program;
    const auto a = program.add(StepKind::kRecv, 1);
    const auto b = program.add(StepKind::kRecv, 2, {}, 8);
    const auto c = program.add(StepKind::kRecv, 3, {}, 16);
    const auto mcast = program.add(StepKind::kMcast, 0, {a, b, c});
    program.add(StepKind::kRecv, 1, {a}, 24);
    program.add(StepKind::kSend, 2, {mcast});
    program.add(StepKind::kSend, 3, {a});
    std::size_t leaves = 0;
    every_order(program, {}, &leaves);
    EXPECT_GT(leaves, 50U);
}

Program random_program(Prng& prng) {
    Program program;
    program.members = static_cast<std::uint16_t>(2 + prng.below(6));
    const std::uint64_t count = prng.below(60);
    for (std::uint32_t i = 0; i < count; ++i) {
        Steps after;
        for (std::uint64_t d = prng.below(4); d > 0 && i > 0; --d) {
            after.push_back(static_cast<std::uint32_t>(prng.below(i)));
        }
        const auto kind = static_cast<StepKind>(1 + prng.below(4));
        const auto peer = static_cast<std::uint16_t>(1 + prng.below(program.members - 1U));
        program.add(kind, peer, after, 8 * prng.below(4), prng.below(9));
        if (kind == StepKind::kCopy) program.steps[i].from_offset = 32;
        if (kind == StepKind::kCopy) program.steps[i].from_buffer = BufferId::kInput;
    }
    return program;
}

/// Random schedules with random completions: dependencies and order hold at every start, and every
/// step completes.
TEST(executor, runs_random_schedules_to_the_end_and_in_order) {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        Prng prng(seed);
        Program program = random_program(prng);
        Executor executor = std::move(program.make().value());
        std::set<std::uint32_t> started, done;
        Steps under_way;
        const auto may_start = [&](std::uint32_t i) {
            const Step& step = program.steps[i];
            for (std::uint32_t d = 0; d < step.depends_count; ++d) {
                const std::uint32_t dependency = program.depends[step.depends_first + d];
                const bool local = program.steps[dependency].kind == StepKind::kCopy;
                if (!local && !done.contains(dependency)) return false;
            }
            for (std::uint32_t j = 0; j < i; ++j) {
                const Step& before = program.steps[j];
                const bool out = step.kind != StepKind::kRecv;
                if (before.kind == StepKind::kCopy || out != (before.kind != StepKind::kRecv))
                    continue;
                const bool same = before.peer == step.peer || before.kind == StepKind::kMcast ||
                                  step.kind == StepKind::kMcast;
                if (same && !started.contains(j)) return false;
            }
            return true;
        };
        for (;;) {
            for (const std::uint32_t step : take(executor)) {
                ASSERT_TRUE(may_start(step)) << "seed " << seed << " step " << step;
                ASSERT_TRUE(started.insert(step).second);
                under_way.push_back(step);
            }
            ASSERT_EQ(executor.in_flight(), under_way.size());
            if (under_way.empty()) break;
            const auto at = static_cast<std::ptrdiff_t>(prng.below(under_way.size()));
            ASSERT_EQ(executor.complete(under_way[static_cast<std::size_t>(at)]), Err::kOk);
            done.insert(under_way[static_cast<std::size_t>(at)]);
            under_way.erase(under_way.begin() + at);
        }
        ASSERT_TRUE(executor.done()) << "seed " << seed;
    }
}

/// Random bytes as a schedule are refused or run, never out of bounds (the sanitizers check it).
TEST(executor, survives_schedules_of_random_octets) {
    for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
        Prng prng(seed);
        Program program = random_program(prng);
        for (std::uint64_t n = 1 + prng.below(4); n > 0 && !program.steps.empty(); --n) {
            auto* octets = reinterpret_cast<unsigned char*>(program.steps.data());
            octets[prng.below(program.steps.size() * sizeof(Step))] =
                static_cast<unsigned char>(prng.next());
        }
        Result<Executor> made = program.make();
        if (!made.ok()) continue;
        Executor& executor = made.value();
        for (Steps steps = take(executor); !steps.empty(); steps = take(executor)) {
            for (const std::uint32_t step : steps)
                ASSERT_EQ(executor.complete(step), Err::kOk);
        }
        ASSERT_TRUE(executor.done()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace ulc::exec
