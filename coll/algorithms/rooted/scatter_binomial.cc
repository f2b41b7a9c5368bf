// SPDX-License-Identifier: BSD-3-Clause
// Scatter down a binomial tree of unicasts (coll/algorithms/tree.h). Each member passes on the
// blocks of its subtree as they arrive.
#include "coll/algorithms/binomial_blocks.h"

namespace ulc::coll {
namespace {

class Member : BinomialBlocks {
public:
    Member(const Call& call, Plan& plan) : BinomialBlocks(call, plan) {}

    void run() {
        const Range own{abi::BufferId::kOutput, 0, call_.octets};
        if (!at_root()) {
            for (std::uint32_t i = 0; i < segments_.count(); ++i)
                static_cast<void>(receive(parent(), segments_.of(own, i)));
        } else if (!call_.in_place) {
            plan_.copy(own, call_.in.range(call_.rank, abi::BufferId::kInput));
        }
        each_below([this](std::uint16_t child, std::uint16_t of) { pass_on(child, of); });
    }

private:
    /// The block of a rank below, to the child that leads there.
    void pass_on(std::uint16_t child, std::uint16_t of) {
        const Range block =
            at_root() ? call_.in.range(of, abi::BufferId::kInput) : plan_.scratch(call_.octets);
        for (std::uint32_t i = 0; i < segments_.count(); ++i) {
            const Range segment = segments_.of(block, i);
            send(child, segment, at_root() ? kNoStep : receive(parent(), segment));
        }
    }
};

}  // namespace

void scatter_binomial(const Call& call, Plan& plan) { Member(call, plan).run(); }

}  // namespace ulc::coll
