// SPDX-License-Identifier: BSD-3-Clause
// The cost of a message while many receives and many messages of other tags wait, compared with
// that of a message alone. Against a scripted engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <thread>
#include <vector>

#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr unsigned kWaiting = 10'000;
constexpr std::uint64_t kOthers = 1'000'000;  ///< tags of what waits
constexpr std::uint16_t kRanks = 3;
constexpr unsigned kBatch = 200;
constexpr unsigned kBatches = 20;
constexpr unsigned kAttempts = 60;
constexpr auto kPause = std::chrono::milliseconds(50);  ///< between attempts: others use the caches
/// A receive alone is the head of its list, and nothing is hashed, so the ratio is higher if the
/// receive was posted first.
constexpr double kRatioPosted = 2.5;
constexpr double kRatioArrived = 2;

/// The names that the receives of the measured messages give.
struct Named {
    const char* name;
    std::uint16_t from;
    std::uint64_t mask;
};

/// One endpoint; `waiting` receives and as many messages of other tags wait at it.
struct Side {
    explicit Side(unsigned waiting) : requests(waiting) {
        engine.form(0, kRanks);
        ulc_endpoint* ep = engine.endpoint.get();
        for (unsigned n = 0; n < waiting; ++n) {
            // Every fourth receive is from any source; tags differ in their upper bits too.
            const std::uint16_t from =
                n % 4 == 0 ? ULC_RANK_ANY : static_cast<std::uint16_t>(1 + n % 2);
            EXPECT_EQ(ulc_receive(ep, from, kOthers + n, UINT64_MAX, nullptr, 0, &requests[n]),
                      ULC_OK);
        }
        for (unsigned n = 0; n < waiting; ++n) {
            engine.deliver_inline(static_cast<std::uint16_t>(1 + n % 2), 2 * kOthers + n, "other");
            EXPECT_EQ(ep->poll(), 1);
        }
    }
    /// Nanoseconds a message. first: the receive is posted first, else the message comes first.
    double measure(const Named& named, bool first) {
        ulc_endpoint* ep = engine.endpoint.get();
        char buffer[8];
        ulc_request request;
        const auto begin = std::chrono::steady_clock::now();
        for (unsigned n = 0; n < kBatch; ++n) {
            if (!first) deliver(n);
            EXPECT_EQ(ulc_receive(ep, named.from, n, named.mask, buffer, sizeof buffer, &request),
                      ULC_OK);
            if (first) deliver(n);
            EXPECT_EQ(ulc_test(ep, &request, nullptr), ULC_OK);
        }
        const std::chrono::duration<double, std::nano> took =
            std::chrono::steady_clock::now() - begin;
        return took.count() / kBatch;
    }
    void deliver(unsigned tag) {
        engine.deliver_inline(1, tag, "hello");
        EXPECT_EQ(engine.endpoint->poll(), 1);
    }

    ScriptedEngine engine{kSmall};
    std::vector<ulc_request> requests;
};

class ClientDepth : public testing::TestWithParam<Named> {};

TEST_P(ClientDepth, a_message_costs_little_more_than_alone) {
    Side alone(0);
    Side crowded(kWaiting);
    for (const bool first : {true, false}) {
        const double ratio_max = first ? kRatioPosted : kRatioArrived;
        double ratio = 1e9;
        for (unsigned attempt = 0; attempt < kAttempts && ratio > ratio_max; ++attempt) {
            if (attempt > 0) std::this_thread::sleep_for(kPause);
            double least_alone = 1e9;
            double least_crowded = 1e9;
            for (unsigned batch = 0; batch < kBatches; ++batch) {
                least_alone = std::min(least_alone, alone.measure(GetParam(), first));
                least_crowded = std::min(least_crowded, crowded.measure(GetParam(), first));
            }
            ratio = least_crowded / least_alone;
            std::cout << (first ? "posted first: " : "arrived first: ") << least_alone << " ns, "
                      << least_crowded << " ns among others\n";
        }
        EXPECT_LE(ratio, ratio_max) << (first ? "posted first" : "arrived first");
    }
}

INSTANTIATE_TEST_SUITE_P(, ClientDepth,
                         testing::Values(Named{"exact", 1, UINT64_MAX},
                                         Named{"any_source", ULC_RANK_ANY, UINT64_MAX},
                                         Named{"masked", 1, 0xffff'ffff},
                                         Named{"any_source_masked", ULC_RANK_ANY, 0xffff'ffff}),
                         [](const testing::TestParamInfo<Named>& one) { return one.param.name; });

}  // namespace
}  // namespace ulc::client
