// SPDX-License-Identifier: BSD-3-Clause
// FNV-1a (Fowler, Noll and Vo), 64 or 32 bits: tells things apart by a few instructions a byte. It
// keeps no secret: a hostile party finds collisions at will.
#pragma once

#include <cstdint>

namespace ulc {

/// Hash of no byte.
inline constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325U;
inline constexpr std::uint32_t kFnvBasis32 = 0x811c9dc5U;

/// Returns the hash that follows `hash` when `value` comes next. Values are bytes in the published
/// hash; larger ones are mixed in one step.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::uint64_t hash, std::uint64_t value) noexcept {
    return (hash ^ value) * 0x100000001b3U;
}
[[nodiscard]] constexpr std::uint32_t fnv1a_32(std::uint32_t hash, std::uint32_t octet) noexcept {
    return (hash ^ octet) * 0x01000193U;
}

}  // namespace ulc
