// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/router/circuit.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace ulc::router {
namespace {

std::size_t index(const Size& size, const Point& point) {
    return static_cast<std::size_t>(point.channel) * static_cast<std::size_t>(size.columns) +
           static_cast<std::size_t>(point.column);
}

int below(Prng& random, int bound) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
}

}  // namespace

std::vector<Wire> random_circuit(const Size& size, unsigned wires, std::uint64_t seed) {
    Prng random(seed);
    std::vector<Wire> circuit(wires);
    for (Wire& wire : circuit) {
        wire.pins = 2 + static_cast<unsigned>(random.below(kPinsMax - 1));
        // One wire of eight crosses the chip; the others have their pins near each other.
        const bool is_long = random.below(8) == 0;
        const int width = is_long ? size.columns : std::min(size.columns, 40);
        const int height = is_long ? size.channels : std::min(size.channels, 4);
        const Point corner{below(random, size.channels - height + 1),
                           below(random, size.columns - width + 1)};
        for (unsigned n = 0; n < wire.pins; ++n)
            wire.pin[n] = {corner.channel + below(random, height),
                           corner.column + below(random, width)};
        std::sort(wire.pin.begin(), wire.pin.begin() + wire.pins,
                  [](const Point& a, const Point& b) { return a.column < b.column; });
    }
    return circuit;
}

bool is_connected(const Size& size, const Wire& wire, const Route& route) {
    for (unsigned n = 0; n + 1 < wire.pins; ++n) {
        // A bend outside the grid would make the walk as long as its number.
        const Bend& bend = route[n];
        const int bound = bend.kind == Bend::kColumn ? size.columns : size.channels;
        if (bend.kind == Bend::kNone || bend.kind > Bend::kChannel || bend.at >= bound)
            return false;
        std::optional<Point> last;
        bool is_whole = true;
        walk(wire.pin[n], wire.pin[n + 1], bend, [&](const Point& point) {
            const Point& before = last.value_or(wire.pin[n]);
            const int steps =
                std::abs(point.channel - before.channel) + std::abs(point.column - before.column);
            is_whole = is_whole && steps == (last ? 1 : 0);
            last = point;
        });
        if (!is_whole || last != wire.pin[n + 1]) return false;
    }
    return true;
}

std::vector<std::int32_t> sum_of(const Size& size, const std::vector<Wire>& wires,
                                 const Route* routes) {
    std::vector<std::int32_t> costs(size.points());
    for (std::size_t n = 0; n < wires.size(); ++n)
        walk(wires[n], routes[n], [&](const Point& point) { ++costs[index(size, point)]; });
    return costs;
}

std::int64_t tracks(const Size& size, const std::vector<std::int32_t>& costs) {
    std::int64_t sum = 0;
    for (int channel = 0; channel < size.channels; ++channel) {
        const auto first = costs.begin() + static_cast<std::ptrdiff_t>(index(size, {channel, 0}));
        sum += *std::max_element(first, first + size.columns);
    }
    return sum;
}

}  // namespace ulc::router
