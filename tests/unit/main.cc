// SPDX-License-Identifier: BSD-3-Clause
// The main function of unit tests. A program has the tests of several files; with
// --files=FOLDER/A_test.cc,FOLDER/B_test.cc it runs those of these files alone, of which
// --gtest_filter and GTEST_FILTER may leave out more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// True if one of the names, with commas in between, is the end of the path.
bool is_named(std::string_view names, std::string_view path) {
    while (!names.empty()) {
        const std::string_view name = names.substr(0, names.find(','));
        names.remove_prefix(std::min(name.size() + 1, names.size()));
        if (path.ends_with(name)) return true;
    }
    return false;
}

/// Adds all tests of other files to those that the filter excludes. Returns how many are left.
int keep_files(std::string_view names) {
    std::string filter = testing::GTEST_FLAG(filter);
    int kept = 0;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *all.GetTestSuite(i);
        for (int j = 0; j < suite.total_test_count(); ++j) {
            const testing::TestInfo& test = *suite.GetTestInfo(j);
            if (is_named(names, test.file())) {
                ++kept;
                continue;
            }
            filter += filter.find('-') == std::string::npos ? '-' : ':';
            filter += std::string(suite.name()) + '.' + test.name();
        }
    }
    testing::GTEST_FLAG(filter) = filter;
    return kept;
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    constexpr std::string_view kFiles = "--files=";
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (!word.starts_with(kFiles) || keep_files(word.substr(kFiles.size())) == 0) {
            std::fprintf(stderr, "%s: no test of this program is in such files\n", argv[i]);
            return 2;
        }
    }
    return RUN_ALL_TESTS();
}
