// The arithmetic of reductions: one loop for each (type, operator) that MPI allows. Operands may lie at any address.
#pragma once

#include <cstdint>

#include <coll.h>

namespace ulc::coll {

/// into[i] = into[i] ∘ from[i], or in front from[i] ∘ into[i]; octets is a multiple of the element. The ranges do not overlap.
using ApplyFn = void (*)(void* context, unsigned char* into, const unsigned char* from,
                         std::uint64_t octets, bool in_front) noexcept;

inline constexpr std::uint32_t kElementOctetsMax = 65536;

/// Octets of one element of ulc_type or ULC_OCTETS(n); 0: there is no such type.
[[nodiscard]] std::uint32_t element_octets(std::uint32_t type) noexcept;

/// The loop for a predefined operator, context unused. nullptr: the operator is not defined for the type.
[[nodiscard]] ApplyFn apply_of(std::uint32_t type, std::uint32_t op) noexcept;

/// Applies the ulc_reduction that context points to, whose op is ULC_USER.
void apply_user(void* context, unsigned char* into, const unsigned char* from, std::uint64_t octets,
                bool in_front) noexcept;

}  // namespace ulc::coll
