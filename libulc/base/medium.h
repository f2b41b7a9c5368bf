// What joins the nodes of a job, as far as the choice of an algorithm for a collective goes (coll/table.h). Rank 0's word, or what its
// engine sees at its port, counts for all: the roster bears it (docs/PROTOCOL.md §7).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ulc {

enum class Medium : std::uint8_t {
    kSwitch = 0,   ///< full duplex, with as much buffer as a collective takes; also: unknown
    kHub = 1,      ///< half duplex, one frame at a time
    kShallow = 2,  ///< a switch whose ports buffer few frames
    kMachine =
        3,  ///< nodes that are processes of one machine, with a core for each engine and rank
    kCrowded = 4,  ///< the same with fewer cores, so that each frame costs what others need
    /// All ranks of a group on one node, whatever lies between nodes. Never said, always seen.
    kNode = 5,
};
inline constexpr std::uint8_t kMedia = 6;
/// Those that can be said.
inline constexpr std::uint8_t kMediaSaid = 5;

inline constexpr std::array<std::string_view, kMedia> kMediumNames{"switch",  "hub",     "shallow",
                                                                   "machine", "crowded", "node"};

[[nodiscard]] constexpr std::string_view name_of(Medium medium) noexcept {
    return kMediumNames[static_cast<std::uint8_t>(medium)];
}

/// False: no medium has that name.
[[nodiscard]] constexpr bool medium_of(std::string_view name, Medium& out) noexcept {
    for (std::uint8_t i = 0; i < kMedia; ++i) {
        if (kMediumNames[i] != name) continue;
        out = static_cast<Medium>(i);
        return true;
    }
    return false;
}

}  // namespace ulc
