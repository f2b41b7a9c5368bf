// SPDX-License-Identifier: BSD-3-Clause
// Runs members over a wire that loses, duplicates and reorders by seed: play.h. A failure names its
// seed; ULC_SEED runs only that one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/urtp/play.h"

namespace ulc::urtp::test {
namespace {

Scenario scenario_of(std::uint64_t seed) {
    Prng random(seed * 31 + 7);
    Scenario s;
    s.size = static_cast<std::uint16_t>(2 + random.below(6));
    s.packets = 100 + static_cast<int>(random.below(250));
    constexpr double kRates[] = {0, 0.001, 0.01, 0.05, 0.2};
    s.faults.loss = kRates[random.below(5)];
    s.faults.duplicate = kRates[random.below(4)];
    s.faults.reorder = kRates[random.below(5)];
    s.faults.gap = static_cast<Nanos>(random.below(2000));
    s.faults.latency = 1000 + static_cast<Nanos>(random.below(200'000));
    s.params.window = 32U << random.below(4);
    s.params.rx_pool_packets =
        random.chance(0.3) ? 4 + static_cast<std::uint32_t>(random.below(40)) : 1024;
    s.params.reorder_wait = random.chance(0.5) ? 0 : 20 * kMicrosecond;
    s.params.peer_dead = 100 * kSecond;
    s.params.request_on_receive = random.chance(0.5);
    s.first_seq = random.chance(0.5) ? 0xffffffffU - static_cast<std::uint32_t>(random.below(200))
                                     : static_cast<std::uint32_t>(random.next());
    s.slow_reader = random.chance(0.3) ? 0.9 : random.chance(0.5) ? 0.3 : 0;
    return s;
}

// S-4, S-8
TEST(RandomTraffic, arrives_exactly_once_in_order_and_drains) {
    const char* only = std::getenv("ULC_SEED");  // NOLINT(concurrency-mt-unsafe): one thread
    const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
    const std::uint64_t last = only != nullptr ? first : 200;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        Play play(scenario_of(seed), seed);
        play.run();
        if (HasFailure()) FAIL() << "seed " << seed;
    }
}

}  // namespace
}  // namespace ulc::urtp::test
