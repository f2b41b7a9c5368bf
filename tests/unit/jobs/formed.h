// SPDX-License-Identifier: BSD-3-Clause
// A formed job of one rank a node on a bus.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "tests/unit/jobs/bus.h"

namespace ulc::jobs {

inline constexpr Handle kFirstEndpoint = 10;

/// n nodes, one rank each, formed.
class Formed : public testing::TestWithParam<std::uint64_t> {
protected:
    void form(JobBus& bus, unsigned n) {
        for (unsigned i = 0; i < n; ++i) {
            bus.add(i);
            ASSERT_EQ(bus.join(bus.node(i), static_cast<Rank>(i), static_cast<std::uint16_t>(n),
                               kFirstEndpoint + i),
                      Err::kOk);
        }
        ASSERT_TRUE(bus.run(5 * kSecond, [&] {
            for (unsigned i = 0; i < n; ++i) {
                if (!bus.node(i).formed(kFirstEndpoint + i)) return false;
            }
            return true;
        }));
    }
};

}  // namespace ulc::jobs
