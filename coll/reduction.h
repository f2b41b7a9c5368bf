// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of reductions: one loop for each (type, operator) that MPI allows. Operands may
// lie at any address.
#pragma once

#include <cstdint>

#include <coll.h>

namespace ulc::coll {

/// into[i] = from[i] ∘ with[i]; octets is a multiple of the element. `into` may be `from` or
/// `with`, and overlaps neither in part.
using ApplyFn = void (*)(void* context, unsigned char* into, const unsigned char* from,
                         const unsigned char* with, std::uint64_t octets) noexcept;

inline constexpr std::uint32_t kElementOctetsMax = 65536;

/// Octets of one element of ulc_type or ULC_BYTES(n); 0: there is no such type.
[[nodiscard]] std::uint32_t element_octets(std::uint32_t type) noexcept;

/// The loop for a predefined operator, context unused. nullptr: the operator is not defined for the
/// type.
[[nodiscard]] ApplyFn apply_of(std::uint32_t type, std::uint32_t op) noexcept;

inline constexpr std::uint64_t kUserAlignment = 16;

/// Applies the ulc_reduction that context points to, whose op is ULC_USER. The function gets
/// operands aligned to kUserAlignment.
void apply_user(void* context, unsigned char* into, const unsigned char* from,
                const unsigned char* with, std::uint64_t octets) noexcept;

}  // namespace ulc::coll
