// SPDX-License-Identifier: BSD-3-Clause
// The circuits and routes of bench/apps/router: what joins pins, and what a route costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/apps/router/circuit.h"

namespace ulc::router {
namespace {

constexpr Size kSize{.channels = 6, .columns = 50};

Wire wire_between(const Point& from, const Point& to) { return {2, {from, to}}; }

TEST(Circuit, each_bend_of_each_segment_joins_its_pins) {
    unsigned bends = 0;
    for (const Wire& wire : random_circuit(kSize, 300, 1)) {
        ASSERT_GE(wire.pins, 2U);
        ASSERT_LE(wire.pins, kPinsMax);
        for (unsigned n = 0; n + 1 < wire.pins; ++n) {
            const Wire segment = wire_between(wire.pin[n], wire.pin[n + 1]);
            each_bend(kSize, wire.pin[n], wire.pin[n + 1], [&](const Bend& bend) {
                EXPECT_TRUE(is_connected(kSize, segment, {bend}));
                ++bends;
            });
        }
    }
    EXPECT_GT(bends, 3'000U);
}

TEST(Circuit, a_bend_that_is_none_or_outside_the_grid_joins_nothing) {
    const Wire wire = wire_between({1, 3}, {4, 20});
    EXPECT_TRUE(is_connected(kSize, wire, {Bend{Bend::kChannel, 5}}));
    EXPECT_FALSE(is_connected(kSize, wire, {Bend{}}));
    EXPECT_FALSE(is_connected(kSize, wire, {Bend{Bend::kChannel, 6}}));
    EXPECT_FALSE(is_connected(kSize, wire, {Bend{Bend::kColumn, 50}}));
    EXPECT_FALSE(is_connected(kSize, wire, {Bend{static_cast<Bend::Kind>(7), 1}}));
    Wire three = wire;
    three.pins = 3;
    three.pin[2] = {2, 30};
    EXPECT_FALSE(is_connected(kSize, three, {Bend{Bend::kChannel, 5}}));  // the second has none
}

TEST(Circuit, the_best_route_leaves_a_full_channel) {
    const Wire wire = wire_between({2, 5}, {2, 40});
    const auto free = best_route(kSize, wire, [](const Point&) { return 0; });
    std::int64_t points = 0;
    walk(wire, free, [&](const Point& point) {
        EXPECT_EQ(point.channel, 2);
        ++points;
    });
    EXPECT_EQ(points, 36);
    const auto around =
        best_route(kSize, wire, [](const Point& point) { return point.channel == 2 ? 9 : 0; });
    EXPECT_EQ(around[0].kind, Bend::kChannel);
    EXPECT_TRUE(around[0].at == 1 || around[0].at == 3);
}

TEST(Circuit, costs_count_the_wires_at_each_point_and_tracks_the_fullest) {
    const std::vector<Wire> wires = {wire_between({0, 0}, {0, 9}), wire_between({0, 5}, {0, 20}),
                                     wire_between({3, 0}, {3, 1})};
    std::vector<Route> routes;
    routes.reserve(wires.size());
    for (const Wire& wire : wires)
        routes.push_back({Bend{Bend::kChannel, static_cast<std::uint16_t>(wire.pin[0].channel)}});
    const auto costs = sum_of(kSize, wires, routes.data());
    EXPECT_EQ(costs[4], 1);
    EXPECT_EQ(costs[5], 2);
    EXPECT_EQ(costs[9], 2);
    EXPECT_EQ(costs[10], 1);
    EXPECT_EQ(costs[3 * 50], 1);
    EXPECT_EQ(std::count(costs.begin(), costs.end(), 0), 6 * 50 - 21 - 2);
    EXPECT_EQ(tracks(kSize, costs), 3);
}

TEST(Circuit, the_seed_makes_the_circuit) {
    const auto one = random_circuit(kSize, 100, 1);
    const auto again = random_circuit(kSize, 100, 1);
    const auto other = random_circuit(kSize, 100, 2);
    const auto equal = [](const Wire& a, const Wire& b) {
        return a.pins == b.pins && std::equal(a.pin.begin(), a.pin.begin() + a.pins, b.pin.begin());
    };
    EXPECT_TRUE(std::equal(one.begin(), one.end(), again.begin(), equal));
    EXPECT_FALSE(std::equal(one.begin(), one.end(), other.begin(), equal));
}

}  // namespace
}  // namespace ulc::router
