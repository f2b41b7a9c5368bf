// SPDX-License-Identifier: BSD-3-Clause
// The common part of gather and scatter over a binomial tree (coll/algorithms/tree.h): a member's
// place, and the blocks that pass through it.
#pragma once

#include "coll/algorithm.h"
#include "coll/algorithms/tree.h"

namespace ulc::coll {

class BinomialBlocks {
protected:
    BinomialBlocks(const Call& call, Plan& plan)
        : call_(call),
          plan_(plan),
          position_(position_of(call.rank, call.root, call.ranks)),
          place_(place_in(Shape::kBinomial, position_, call.ranks)),
          segments_(segments_of(call, call.octets)) {}

    /// Calls visit(child, of) for each rank below: the rank of the child through which its block
    /// passes, and its own.
    template <typename Visit>
    void each_below(Visit visit) {
        for (std::size_t child = 0; child < place_.children.size(); ++child) {
            for (std::uint32_t position = place_.children[child];
                 position < place_.child_end(child); ++position)
                visit(rank_at(place_.children[child], call_.root, call_.ranks),
                      rank_at(position, call_.root, call_.ranks));
        }
    }
    [[nodiscard]] bool at_root() const noexcept { return position_ == 0; }
    [[nodiscard]] std::uint16_t parent() const noexcept {
        return rank_at(place_.parent, call_.root, call_.ranks);
    }
    /// Limits pending receives, and sends, to a window.
    std::uint32_t receive(std::uint16_t from, Range segment) {
        plan_.after(receives_.leaving());
        return receives_.push(plan_.receive(from, segment));
    }
    void send(std::uint16_t to, Range segment, std::uint32_t ready) {
        plan_.after(ready).after(sends_.leaving());
        sends_.push(plan_.send(to, segment));
    }

    const Call& call_;
    Plan& plan_;
    std::uint32_t position_;
    Place place_;
    Segments segments_;
    Window receives_;
    Window sends_;
};

}  // namespace ulc::coll
