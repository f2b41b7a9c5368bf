// SPDX-License-Identifier: BSD-3-Clause
// The line of progress: its text, and that nothing is written where there is no terminal.
#include "base/progress.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace ulc {
namespace {

TEST(ProgressTest, a_line_has_bar_count_percentage_and_time_left) {
    EXPECT_EQ(progress_line(0, 40, 0, ""), "  [" + std::string(20, ' ') + "] 0/40 0 %");
    EXPECT_EQ(progress_line(10, 40, 20, "barrier"),
              "  [#####               ] 10/40 25 %, 1:00 left barrier");
    EXPECT_EQ(progress_line(10, 40, 2, ""), "  [#####               ] 10/40 25 %")
        << "too early for an estimate";
    EXPECT_EQ(progress_line(50, 40, 9, ""), "  [####################] 40/40 100 %, 0:00 left");
    EXPECT_EQ(progress_line(7, 0, 3725, "engines"), "  [1:02:05] engines");
    EXPECT_EQ(progress_line(1, 2, 1, std::string(200, 'x')).size(), 79U);
}

TEST(ProgressTest, nothing_is_written_without_a_terminal) {
    std::FILE* const file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    {
        Progress progress(file, false);
        EXPECT_FALSE(progress.is_shown());
        progress.show(1, 2, "work");
    }
    EXPECT_EQ(std::ftell(file), 0);
    std::fclose(file);
}

}  // namespace
}  // namespace ulc
