// SPDX-License-Identifier: BSD-3-Clause
// Arguments that all members of one operation must give alike, as the tags of its messages and
// its inquiries carry them (client/groups/signature.h, PROTOCOL.md §6.3).
#pragma once

#include <cstdint>

#include <coll.h>

#include "client/collective/schedule_run.h"
#include "coll/algorithm.h"

namespace ulc::coll {

/// A byte for type and operator, which no two combinations share that may meet; of ULC_BYTES(n),
/// those whose n differs by a multiple of 32.
///
/// 16 · type + operator has 9 bits. From type 16 on there are only the operators 1, 2 and 11 … 13;
/// 3 more and without the ninth bit they are 4, 5 and 14 … 16 behind 16 · (type − 16), where a
/// smaller type has nothing. Nor has any at 11 and 12, where ULC_BYTES(n) is.
[[nodiscard]] constexpr std::uint8_t reduction_code(std::uint32_t type, std::uint32_t op) noexcept {
    if ((type & ULC_BYTES(0U)) != 0)
        return static_cast<std::uint8_t>(16 * (type % 16) + 11 + type / 16 % 2);
    return static_cast<std::uint8_t>(16 * type + op + (type < 16 ? 0 : 3));
}

/// `blocks`: those whose lengths all know; nullptr: all equal, or known to their own members only.
[[nodiscard]] client::Agreement agreement_of(const Call& call, const Algorithm& algorithm,
                                             const ulc_reduction* reduction,
                                             const Blocks* blocks) noexcept;

}  // namespace ulc::coll
