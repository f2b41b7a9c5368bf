// SPDX-License-Identifier: BSD-3-Clause
// A reduction up a tree (coll/algorithms/tree.h), a segment at a time. Operands are taken in the
// order of positions.
#pragma once

#include "coll/algorithm.h"
#include "coll/algorithms/fold.h"
#include "coll/algorithms/tree.h"

namespace ulc::coll {

class TreeReduction {
public:
    /// top: the rank at position 0. own: the vector that this rank gives. result: where it will be,
    /// at the top.
    TreeReduction(const Call& call, Shape shape, std::uint32_t top, Range own, Range result,
                  Plan& plan);
    [[nodiscard]] const Segments& segments() const noexcept { return segments_; }
    /// Appends this rank's steps for segment i = 0, 1, …. Returns the step after which it is done:
    /// at the top, the segment of the result is there; elsewhere, own's is not needed any more.
    std::uint32_t segment(std::uint32_t i);

private:
    const Call& call_;
    Plan& plan_;
    std::uint32_t top_;
    Place place_;
    bool is_top_;
    Range own_;
    Range result_;
    Segments segments_;
    Slots received_;
    Slots folded_;
    Window sends_;
};

}  // namespace ulc::coll
