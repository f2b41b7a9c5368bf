// SPDX-License-Identifier: BSD-3-Clause
// Numbers of communicators: each has one that no other has, and a freed one is used again.
#include "coll/mpi/pmpi/numbers.h"

#include <gtest/gtest.h>

namespace ulc::pmpi {
namespace {

TEST(Numbers, no_two_communicators_have_the_same) {
    Numbers numbers;
    EXPECT_EQ(numbers.take(), 0U);
    EXPECT_EQ(numbers.take(), 1U);
    EXPECT_EQ(numbers.take(), 2U);
}

TEST(Numbers, those_of_freed_communicators_are_used_again) {
    Numbers numbers;
    for (std::uint32_t number = 0; number < 3; ++number)
        EXPECT_EQ(numbers.take(), number);
    numbers.give_back(1);
    EXPECT_EQ(numbers.take(), 1U);
    EXPECT_EQ(numbers.take(), 3U);
    for (unsigned n = 0; n < 1000; ++n) {
        numbers.give_back(2);
        ASSERT_EQ(numbers.take(), 2U) << "after " << n << " communicators";
    }
}

}  // namespace
}  // namespace ulc::pmpi
