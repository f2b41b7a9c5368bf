// SPDX-License-Identifier: BSD-3-Clause
// The medium that joins the nodes of a job, as far as the choice of an algorithm for a collective
// depends on it (coll/table.h). Rank 0's setting, or the finding of its engine at its port, counts
// for all: the roster contains it (docs/PROTOCOL.md §7).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ulc {

enum class Medium : std::uint8_t {
    kSwitch = 0,   ///< full duplex, with sufficient buffer for a collective; also: unknown
    kHub = 1,      ///< half duplex, one frame at a time
    kShallow = 2,  ///< a switch whose ports buffer few frames
    kMachine =
        3,  ///< nodes that are processes of one machine, with a core for each engine and rank
    kCrowded = 4,  ///< the same with fewer cores, so that each frame uses time that others need
    /// All ranks of a group on one node, whatever is between nodes. Never set, always detected.
    kNode = 5,
};
inline constexpr std::uint8_t kMedia = 6;
/// Number of those that can be set.
inline constexpr std::uint8_t kMediaSaid = 5;

inline constexpr std::array<std::string_view, kMedia> kMediumNames{"switch",  "hub",     "shallow",
                                                                   "machine", "crowded", "node"};

/// Returns the medium that a roster says. One that is not known here is as good as none.
[[nodiscard]] constexpr Medium medium_said(std::uint8_t value) noexcept {
    return value < kMediaSaid ? static_cast<Medium>(value) : Medium::kSwitch;
}

[[nodiscard]] constexpr std::string_view name_of(Medium medium) noexcept {
    return kMediumNames[static_cast<std::uint8_t>(medium)];
}

/// Returns false if no medium has that name.
[[nodiscard]] constexpr bool medium_of(std::string_view name, Medium& out) noexcept {
    for (std::uint8_t i = 0; i < kMedia; ++i) {
        if (kMediumNames[i] != name) continue;
        out = static_cast<Medium>(i);
        return true;
    }
    return false;
}

}  // namespace ulc
