// SPDX-License-Identifier: BSD-3-Clause
// Tests the global-program checker as users run it: all shipped schedules are correct at 1-17
// ranks, a schedule given as text is validated by the same rules, and an error is shown with its
// line.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/sim/schedule/check_schedule_command.h"
#include "tests/sim/schedule/goals.h"
#include "tests/sim/schedule/text.h"

namespace ulc::sim {
namespace {

struct Answer {
    int status;
    std::string out;
    std::string errors;
};

Answer run(const CheckScheduleOptions& options) {
    Answer answer;
    answer.status = check_schedule(options, answer.out, answer.errors);
    return answer;
}

std::string file_of(const std::string& text) {
    std::string name = testing::TempDir() + "schedule_" +
                       testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt";
    std::ofstream(name, std::ios::binary) << text;
    return name;
}

constexpr const char* kBroadcast =
    "op broadcast  # by a multicast\n"
    "ranks 3\n"
    "octets 8\n"
    "rank 0\n"
    "  mcast output 0 4\n"
    "  mcast output 4 4 after 0\n"
    "rank 1\n"
    "  recv 0 output 0 4\n"
    "  recv 0 output 4 4\n"
    "rank 2\n"
    "  recv 0 output 0 4\n"
    "  recv 0 output 4 4\n";

std::string with(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

TEST(check_schedule, everything_that_ships_is_correct_at_one_to_seventeen_ranks) {
    const Answer answer = run({});
    EXPECT_EQ(answer.status, 0) << answer.errors;
    EXPECT_EQ(answer.errors, "");
    for (const coll::Algorithm& algorithm : coll::algorithms())
        EXPECT_NE(answer.out.find(std::string("/") + std::string(algorithm.name)),
                  std::string::npos)
            << answer.out;
}

TEST(check_schedule, what_it_prints_it_reads_and_judges_alike) {
    for (const coll::Algorithm& algorithm : coll::algorithms()) {
        for (const std::uint16_t ranks : {1, 2, 5, 9}) {
            if (is_uneven(algorithm.op)) continue;
            CheckScheduleOptions options;
            options.algorithm =
                std::string(coll::name_of(algorithm.op)) + '/' + std::string(algorithm.name);
            options.ranks = ranks;
            options.octets = 1300;
            options.root = 1;
            options.print = true;
            const Answer printed = run(options);
            ASSERT_EQ(printed.status, 0) << printed.errors;
            ScheduleText text;
            ASSERT_EQ(parse_schedule(printed.out, text), "") << printed.out;
            const coll::Call call{.op = algorithm.op,
                                  .ranks = ranks,
                                  .root = static_cast<std::uint16_t>(1 % ranks),
                                  .octets = algorithm.op == coll::Op::kBarrier ? 0U : 1300U,
                                  .segment = 600,
                                  .concurrent = 3};
            const Verdict wanted = CollectiveCase(algorithm, call).check();
            const Verdict got = text.check();
            EXPECT_TRUE(got.ok) << options.algorithm << ": " << got.what;
            EXPECT_EQ(got.buffers, wanted.buffers) << options.algorithm;
            EXPECT_EQ(got.buffer_octets, wanted.buffer_octets) << options.algorithm;
            EXPECT_EQ(got.wire_octets, wanted.wire_octets) << options.algorithm;
        }
    }
}

TEST(check_schedule, shows_the_first_bad_step_with_its_line) {
    const Answer right = run({.file = file_of(kBroadcast)});
    EXPECT_EQ(right.status, 0) << right.errors;
    EXPECT_NE(right.out.find("k = 2 buffers (8 octets), 2 messages, 8 octets"), std::string::npos)
        << right.out;
    const std::string short_receive = with(kBroadcast, "recv 0 output 4 4", "recv 0 output 4 3");
    const Answer wrong = run({.file = file_of(short_receive)});
    EXPECT_EQ(wrong.status, 1);
    EXPECT_NE(wrong.errors.find("rank 1 step 1 (line 9): recv 0 output 4 3: length differs"),
              std::string::npos)
        << wrong.errors;
}

TEST(check_schedule, shows_the_message_that_exceeds_the_buffers) {
    const std::string file = file_of(kBroadcast);
    EXPECT_EQ(run({.file = file, .buffers = 2}).status, 0);
    const Answer wrong = run({.file = file, .buffers = 1});
    EXPECT_EQ(wrong.status, 1);
    EXPECT_NE(wrong.errors.find("rank 0 step 1 (line 6): mcast output 4 4 after 0: needs more "
                                "than 1 buffers at rank"),
              std::string::npos)
        << wrong.errors;
    const Answer shipped = run({.algorithm = "allgather/concurrent", .buffers = 3});
    EXPECT_EQ(shipped.status, 1);
    EXPECT_NE(shipped.errors.find("allgather/concurrent of 2 ranks"), std::string::npos)
        << shipped.errors;
}

TEST(check_schedule, subsets_and_programs_without_an_operation_are_judged_for_fit) {
    ScheduleText text;
    const char* const subset =
        "op none\nranks 3\noutput 8\n"
        "rank 0\nmcast output 0 8 to 1 2\nmcast output 0 4 to 2\n"
        "rank 1\nrecv 0 output 0 8\n"
        "rank 2 scratch 4\nrecv 0 output 0 8\nrecv 0 scratch 0 4\n";
    ASSERT_EQ(parse_schedule(subset, text), "");
    EXPECT_TRUE(text.check().ok) << text.check().what;
    EXPECT_EQ(describe_step(text.schedules()[0], 0), "mcast output 0 8 to 1 2");
    ASSERT_EQ(parse_schedule(with(subset, "to 2\n", "to 1\n"), text), "");
    const Verdict verdict = text.check();
    EXPECT_FALSE(verdict.ok);
    EXPECT_EQ(verdict.rank, 2U);
    EXPECT_EQ(verdict.step, 1U);
}

TEST(check_schedule, text_that_is_not_understood_names_its_line) {
    const std::pair<std::string, std::string> cases[] = {
        {"", "line 0: no rank"},
        {"op fold\n", "line 1: op is"},
        {"op barrier\nranks 0\nrank 0\n", "line 3: before the first rank"},
        {"op barrier\nranks 1025\n", "line 2: ranks is a number up to 1024"},
        {"op broadcast\nranks 2\noctets 99999999\n", "line 3: octets"},
        {"op allgather\nranks 1024\noctets 1048576\nrank 0\n", "line 4: the memory"},
        {"op broadcast\nranks 2\nroot 2\nrank 0\n", "line 4: before the first rank"},
        {"op barrier\nranks 2\nsend 1 output 0 0\n", "line 3: \"send\" before"},
        {"op barrier\nranks 2\nrank 2\n", "line 3: rank is a number up to 1"},
        {"op barrier\nranks 2\nrank 0\nrank 0\n", "line 4: rank 0 began in line 3"},
        {"op barrier\nranks 2\nrank 0\nsend 2 output 0 0\n", "line 4: peer"},
        {"op barrier\nranks 2\nrank 0\nsend 1 outptu 0 0\n", "line 4: a buffer is"},
        {"op barrier\nranks 2\nrank 0\nsend 1 output -1 0\n", "line 4: offset"},
        {"op barrier\nranks 2\nrank 0\nsend 1 output 0\n", "line 4: length"},
        {"op barrier\nranks 2\nrank 0\nsend 1 output 0 0 then\n", "line 4: \"then\""},
        {"op barrier\nranks 2\nrank 0\nsend 1 output 0 0 after 0\n", "line 4: the first step"},
        {"op barrier\nranks 2\nrank 0\nsend 1 output 0 0\nsend 1 output 0 0 after 1\n",
         "line 5: an earlier step"},
        {"op barrier\nranks 2\nrank 0\nfold output 0 0 input 0\n", "line 4: \"fold\""},
        {"op barrier\nranks 65\nrank 0\nmcast output 0 0 to 1\n", "line 4: \"to\" needs"},
        {"op barrier\nranks 2\nrank 0\nmcast output 0 0 to\n", "line 4: peer"},
    };
    for (const auto& [text, wanted] : cases) {
        ScheduleText out;
        const std::string got = parse_schedule(text, out);
        EXPECT_EQ(got.substr(0, wanted.size()), wanted) << text << got;
    }
    const Answer missing = run({.file = testing::TempDir() + "no_such_schedule"});
    EXPECT_EQ(missing.status, 2);
    EXPECT_NE(missing.errors.find("cannot be read"), std::string::npos);
    EXPECT_EQ(run({.algorithm = "allgather/none"}).status, 2);
    EXPECT_EQ(run({.file = file_of("op barrier\nrank 0\n")}).status, 2);
}

}  // namespace
}  // namespace ulc::sim
