// SPDX-License-Identifier: BSD-3-Clause
// A standard-cell circuit to route, and the routes of its wires (LocusRoute of SPLASH; Express
// §5.2). Points are (channel, column) of a grid. A wire joins pins; each segment between two pins,
// by column, takes one of the routes with at most two bends.
//
//   column bend:  ──┐        channel bend:  │   │
//                   └──                     └───┘
//
// Pure. Used by ulc-route and its unit test.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/prng.h"

namespace ulc::router {

inline constexpr unsigned kPinsMax = 4;
inline constexpr unsigned kSegmentsMax = kPinsMax - 1;

struct Size {
    int channels = 18;
    int columns = 480;

    [[nodiscard]] std::size_t points() const {
        return static_cast<std::size_t>(channels) * static_cast<std::size_t>(columns);
    }
};

struct Point {
    int channel, column;

    bool operator==(const Point&) const = default;
};

/// Pins by ascending column.
struct Wire {
    unsigned pins;
    std::array<Point, kPinsMax> pin;
};

/// The column or channel in which a segment runs between its bends. Zeros: not routed.
struct Bend {
    enum Kind : std::uint16_t { kNone, kColumn, kChannel };

    Kind kind = kNone;
    std::uint16_t at = 0;
};

/// A bend for each segment. Plain data, in shared memory.
using Route = std::array<Bend, kSegmentsMax>;

/// Makes wires of 2 to 4 pins, most of them short. The same seed gives the same circuit.
[[nodiscard]] std::vector<Wire> random_circuit(const Size& size, unsigned wires,
                                               std::uint64_t seed);

/// Calls visit(point) along the segment, from pin to pin.
template <typename Visit>
void walk(const Point& from, const Point& to, const Bend& bend, Visit&& visit) {
    Point at = from;
    const auto go = [&](int Point::*axis, int end) {
        for (const int step = end > at.*axis ? 1 : -1; at.*axis != end; at.*axis += step)
            visit(at);
    };
    const bool column_first = bend.kind == Bend::kColumn;
    go(column_first ? &Point::column : &Point::channel, bend.at);
    if (column_first) {
        go(&Point::channel, to.channel);
    } else {
        go(&Point::column, to.column);
    }
    go(column_first ? &Point::column : &Point::channel, column_first ? to.column : to.channel);
    visit(at);
}

/// Calls try_out(bend) for each bend that a segment may have: at each column between its pins, and
/// at each channel between them and one beyond.
template <typename TryOut>
void each_bend(const Size& size, const Point& from, const Point& to, TryOut&& try_out) {
    for (int column = from.column; column <= to.column; ++column)
        try_out(Bend{Bend::kColumn, static_cast<std::uint16_t>(column)});
    const auto [low, high] = std::minmax(from.channel, to.channel);
    for (int channel = std::max(0, low - 1); channel <= std::min(size.channels - 1, high + 1);
         ++channel)
        try_out(Bend{Bend::kChannel, static_cast<std::uint16_t>(channel)});
}

/// Calls visit(point) for each point that a route of the wire may pass.
template <typename Visit>
void each_point_around(const Size& size, const Wire& wire, Visit&& visit) {
    int low = wire.pin[0].channel;
    int high = low;
    for (unsigned n = 1; n < wire.pins; ++n) {
        low = std::min(low, wire.pin[n].channel);
        high = std::max(high, wire.pin[n].channel);
    }
    const int last = std::min(high + 1, size.channels - 1);
    for (int channel = std::max(low - 1, 0); channel <= last; ++channel)
        for (int column = wire.pin[0].column; column <= wire.pin[wire.pins - 1].column; ++column)
            visit(Point{channel, column});
}

/// The bends with the least sum of costs; `cost(point)` is how many wires are there.
template <typename Cost>
[[nodiscard]] Route best_route(const Size& size, const Wire& wire, Cost&& cost) {
    Route route{};
    for (unsigned n = 0; n + 1 < wire.pins; ++n) {
        auto least = INT64_MAX;
        each_bend(size, wire.pin[n], wire.pin[n + 1], [&](const Bend& bend) {
            std::int64_t sum = 0;
            walk(wire.pin[n], wire.pin[n + 1], bend,
                 [&](const Point& point) { sum += cost(point) + 1; });
            if (sum >= least) return;
            least = sum;
            route[n] = bend;
        });
    }
    return route;
}

/// Calls visit(point) for each point of a routed wire, as often as its segments pass it.
template <typename Visit>
void walk(const Wire& wire, const Route& route, Visit&& visit) {
    for (unsigned n = 0; n + 1 < wire.pins; ++n)
        walk(wire.pin[n], wire.pin[n + 1], route[n], visit);
}

/// True if the route joins all pins of the wire by steps of one point inside the grid.
[[nodiscard]] bool is_connected(const Size& size, const Wire& wire, const Route& route);

/// The cost array that these routes add up to.
[[nodiscard]] std::vector<std::int32_t> sum_of(const Size& size, const std::vector<Wire>& wires,
                                               const Route* routes);
/// Tracks that the channels need: for each the wires at its fullest column.
[[nodiscard]] std::int64_t tracks(const Size& size, const std::vector<std::int32_t>& costs);

}  // namespace ulc::router
