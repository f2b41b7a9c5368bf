// SPDX-License-Identifier: BSD-3-Clause
// Gather up a binomial tree of unicasts (coll/algorithms/tree.h). Each member passes on the blocks
// of its subtree, in order, as they arrive. Every block crosses the wire once for each level above
// it.
#include "coll/algorithms/binomial_blocks.h"

namespace ulc::coll {
namespace {

class Member : BinomialBlocks {
public:
    Member(const Call& call, Plan& plan) : BinomialBlocks(call, plan) {}

    void run() {
        if (at_root()) {
            copy_own_block(call_, plan_);
        } else {
            for (std::uint32_t i = 0; i < segments_.count(); ++i)
                send(parent(), segments_.of(given(call_), i), kNoStep);
        }
        each_below([this](std::uint16_t child, std::uint16_t of) { take(child, of); });
    }

private:
    /// The block of a rank below, from the child that it comes through.
    void take(std::uint16_t child, std::uint16_t of) {
        const Range block =
            at_root() ? call_.out.range(of, abi::BufferId::kOutput) : plan_.scratch(call_.octets);
        for (std::uint32_t i = 0; i < segments_.count(); ++i) {
            const Range segment = segments_.of(block, i);
            const std::uint32_t received = receive(child, segment);
            if (!at_root()) send(parent(), segment, received);
        }
    }
};

}  // namespace

void gather_binomial(const Call& call, Plan& plan) { Member(call, plan).run(); }

}  // namespace ulc::coll
