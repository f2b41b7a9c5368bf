// SPDX-License-Identifier: BSD-3-Clause
// FNV-1a, 64 bits (Fowler, Noll and Vo): tells things apart by a few instructions a byte. It keeps
// no secret: a hostile party finds collisions at will.
#pragma once

#include <cstdint>

namespace ulc {

/// Hash of no byte.
inline constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325U;

/// Returns the hash that follows `hash` when `value` comes next. Values are bytes in the published
/// hash; larger ones are mixed in one step.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::uint64_t hash, std::uint64_t value) noexcept {
    return (hash ^ value) * 0x100000001b3U;
}

}  // namespace ulc
