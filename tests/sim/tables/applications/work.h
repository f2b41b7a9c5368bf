// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic that the tables of applications share: operations as times, and texts of figures.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "base/units.h"
#include "tests/sim/tables/table.h"

namespace ulc::sim {

/// Returns the time of that many operations at `speed` operations a second.
[[nodiscard]] inline Nanos time_of(double operations, double speed) {
    return static_cast<Nanos>(operations / speed * static_cast<double>(kSecond));
}

[[nodiscard]] constexpr double cube(double x) { return x * x * x; }

[[nodiscard]] inline std::string text(const char* format, double a, double b = 0) {
    std::array<char, 100> out{};
    std::snprintf(out.data(), out.size(), format, a, b);
    return out.data();
}

/// True if no point is lower than the one before.
[[nodiscard]] inline bool rises(const Curve& curve) {
    return std::ranges::is_sorted(curve.points, {}, [](const auto& p) { return p.second; });
}

/// Adds URTP's applications to the table (urtp_applications.cc).
void add_urtp_applications(Table& table, const TableOptions& options);

}  // namespace ulc::sim
