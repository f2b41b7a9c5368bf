// How many messages a member of each shipped algorithm may have to hold, as a formula: what is claimed of it. The checker says what is
// so (buffers.h); tests/unit/coll/buffers_test.cc holds the two against each other.
//
//   n   ranks
//   s   segments of what one rank gives another, or of the vector; with lengths by rank: of the longest
//   k   of the algorithms that have one
//
// A send is done when it may be forgotten, so nothing here counts on a receiver's leave: what grows with s is held back by
// the transport's windows and credit alone (PROTOCOL.md §5), what does not is bounded by the algorithm, for any length.
#pragma once

#include <cstdint>
#include <string_view>

#include "coll/algorithm.h"

namespace ulc::sim {

struct BufferBound {
    coll::Op op;
    std::string_view algorithm;
    std::string_view formula;
    /// call: of any rank, as even() makes it. block: octets of the longest that one gives another.
    std::uint64_t (*messages)(const coll::Call& call, std::uint64_t block);
    bool exact = true;  ///< reached by every number of ranks, segments and k; else by some
    /// With lengths by rank, where that needs more.
    std::uint64_t (*uneven)(const coll::Call& call, std::uint64_t block) = nullptr;
};

/// Of an operation with lengths by rank, that of the one without. nullptr: nothing is claimed.
[[nodiscard]] const BufferBound* buffer_bound(const coll::Algorithm& algorithm);

}  // namespace ulc::sim
