// SPDX-License-Identifier: BSD-3-Clause
// The candidates of tuning: the choices and sizes of each operation that is measured, and the
// choice for those that are not.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {

struct Candidates {
    Op op;
    bool blocks;  ///< bytes are of each rank's block
    /// Takes the first of equally fast ones: one with fewer pending messages comes before one with
    /// more.
    std::vector<std::string_view> choices;
    std::vector<std::uint64_t> octets;
};

/// Candidates by operation; gatherv, scatterv, alltoallv and exscan are not among them.
[[nodiscard]] std::span<const Candidates> candidates();

/// An operation that takes the measurement of another one. If members do not know each other's
/// lengths there is one choice for all sizes.
struct Follower {
    Op op;
    Op measured;
    bool any_size;
};
[[nodiscard]] std::span<const Follower> followers() noexcept;

}  // namespace ulc::coll
