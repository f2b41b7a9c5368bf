// SPDX-License-Identifier: BSD-3-Clause
// Runs every script of urtp/, one test each, and sees that the runner itself notices what is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "script_runner.h"

namespace ulc::urtp::test {
namespace {

std::vector<std::filesystem::path> scripts() {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(ULC_SCRIPT_DIR)) {
        if (entry.path().extension() == ".txt") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

class UrtpScript : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(UrtpScript, passes) {
    std::ifstream in(GetParam());
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_EQ(run_script(text.str()), "");
}

INSTANTIATE_TEST_SUITE_P(Scripts, UrtpScript, ::testing::ValuesIn(scripts()),
                         [](const auto& script) { return script.param.stem().string(); });

TEST(ScriptRunner, notices_a_frame_that_nobody_expects) {
    EXPECT_NE(run_script("job 2\nrecv DATA from=1 seq=1 text=b\n"), "");
}
TEST(ScriptRunner, notices_a_frame_that_does_not_come) {
    EXPECT_NE(run_script("job 2\nexpect ACK within=1s\n"), "");
}
TEST(ScriptRunner, notices_a_wrong_field_and_a_late_frame) {
    const std::string start = "job 2\nrecv DATA from=1 seq=0 text=a\n";
    EXPECT_EQ(run_script(start + "expect ACK entries=0:1 within=200us\n"), "");
    EXPECT_NE(run_script(start + "expect ACK entries=0:2 within=200us\n"), "");
    EXPECT_NE(run_script(start + "expect ACK entries=0:1 within=199us\n"), "");
}
TEST(ScriptRunner, notices_wrong_deliveries_and_counts) {
    EXPECT_NE(run_script("job 2\ndeliver from=1 a\n"), "");
    EXPECT_NE(run_script("job 2\ncount req_sent 1\n"), "");
    EXPECT_NE(run_script("job 2\nsend stream=1 text=a blocked\n"), "");
}

}  // namespace
}  // namespace ulc::urtp::test
