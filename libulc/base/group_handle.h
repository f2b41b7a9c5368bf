// SPDX-License-Identifier: BSD-3-Clause
// Handles of groups. The wire handle of a subgroup is computed by every member alone, and all get
// the same (docs/PROTOCOL.md §3). It is here and not in wire/, because libulc names groups too and
// must not include the wire.
#pragma once

#include <cstdint>
#include <span>

#include "base/fnv.h"

namespace ulc {

/// Set in the handle of a group, and in the name of its streams; clear in all others.
inline constexpr std::uint32_t kGroupBit = 1U << 31;
[[nodiscard]] constexpr bool is_group(std::uint32_t stream) noexcept {
    return (stream & kGroupBit) != 0;
}

/// `world`: the job's world group handle. `ranks`: the members in index order. `made`: how many
/// groups this ordered list of members has made before, under that key. `key`: that of its creator,
/// nullptr: none. Pure; bit 31 of the result is set.
[[nodiscard]] constexpr std::uint32_t subgroup_handle(std::uint32_t world,
                                                      std::span<const std::uint16_t> ranks,
                                                      std::uint32_t made,
                                                      const std::uint64_t* key = nullptr) noexcept {
    std::uint32_t hash = kFnvBasis32;
    const auto add = [&hash](std::uint32_t octet) { hash = fnv1a_32(hash, octet & 0xffU); };
    const auto add_u32 = [&add](std::uint32_t value) {
        for (int shift = 24; shift >= 0; shift -= 8)
            add(value >> static_cast<unsigned>(shift));
    };
    add_u32(world);
    for (const std::uint16_t rank : ranks) {
        add(rank >> 8U);
        add(rank);
    }
    if (key != nullptr) {
        add_u32(static_cast<std::uint32_t>(*key >> 32U));
        add_u32(static_cast<std::uint32_t>(*key));
    }
    add_u32(made);
    return hash | kGroupBit;
}

}  // namespace ulc
