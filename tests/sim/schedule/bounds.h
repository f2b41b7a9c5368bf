// SPDX-License-Identifier: BSD-3-Clause
// States how many messages a member of each shipped algorithm may have to hold, as a formula. The
// checker computes the true value (buffers.h); tests/unit/coll/buffers_test.cc compares both.
//
//   n   ranks
//   s   segments of a block from one rank to another, or of the vector; by rank: the longest
//   k   of the algorithms that have one
//
// A send is done when its data may be discarded, so nothing here depends on permission of a
// receiver. Values that grow with s are limited by the transport's windows and credit alone
// (PROTOCOL.md §5); the algorithm bounds the others, for any length.
#pragma once

#include <cstdint>
#include <string_view>

#include "coll/algorithm.h"

namespace ulc::sim {

struct BufferBound {
    coll::Op op;
    std::string_view algorithm;
    std::string_view formula;
    /// `call`: that of any rank, as even() makes it. `block`: bytes of the longest block that one
    /// gives another.
    std::uint64_t (*messages)(const coll::Call& call, std::uint64_t block);
    bool exact = true;  ///< reached by every number of ranks, segments and k; else by some
    /// Bound with lengths by rank, if that is larger.
    std::uint64_t (*uneven)(const coll::Call& call, std::uint64_t block) = nullptr;
};

/// Returns the bound of an algorithm; for an operation with lengths by rank, that of the operation
/// without. nullptr: no bound is claimed.
[[nodiscard]] const BufferBound* buffer_bound(const coll::Algorithm& algorithm);

}  // namespace ulc::sim
