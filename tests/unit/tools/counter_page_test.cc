// SPDX-License-Identifier: BSD-3-Clause
// The counter page of an engine, as its readers take it from a descriptor. A page that may shrink,
// or shrank before it was sealed, is refused.
#include "tools/ulc/watch/counter_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "abi/attach.h"

namespace ulc::tools {
namespace {

constexpr std::uint32_t kOctets =
    sizeof(abi::CounterPageHeader) + abi::kRowsMax * sizeof(abi::EndpointRow);

/// Memory with a page of no counters.
class CounterPageTest : public testing::Test {
public:
    CounterPageTest() : memory_(::memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
        abi::CounterPageHeader header{};
        header.magic = abi::kCounterPageMagic;
        header.version = abi::kCounterPageVersion;
        header.names_offset = header.values_offset = header.rows_offset = sizeof header;
        header.engine_pid = 42;
        EXPECT_EQ(::ftruncate(memory_, kOctets), 0);
        EXPECT_EQ(::pwrite(memory_, &header, sizeof header, 0), ssize_t{sizeof header});
    }
    ~CounterPageTest() override { ::close(memory_); }

    void seal(int seals) { EXPECT_EQ(::fcntl(memory_, F_ADD_SEALS, seals), 0); }

    int memory_;
    CounterPage page_;
    std::string error_;
};

TEST_F(CounterPageTest, a_page_that_cannot_shrink_is_read) {
    seal(F_SEAL_SHRINK);
    ASSERT_TRUE(page_.map(memory_, &error_)) << error_;
    EXPECT_EQ(page_.engine_pid(), 42U);
    EXPECT_TRUE(page_.rows().empty());
}

TEST_F(CounterPageTest, a_page_that_may_shrink_is_refused) {
    EXPECT_FALSE(page_.map(memory_, &error_));
    seal(F_SEAL_GROW);
    EXPECT_FALSE(page_.map(memory_, &error_));
    EXPECT_NE(error_, "");
}

TEST_F(CounterPageTest, a_page_that_shrank_before_it_was_sealed_is_refused) {
    EXPECT_EQ(::ftruncate(memory_, kOctets - 1), 0);
    seal(F_SEAL_SHRINK);
    EXPECT_FALSE(page_.map(memory_, &error_));
}

}  // namespace
}  // namespace ulc::tools
