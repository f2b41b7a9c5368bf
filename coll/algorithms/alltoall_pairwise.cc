// SPDX-License-Identifier: BSD-3-Clause
// Total exchange in a tournament of pairs (coll/algorithms/pairwise.h), k rounds at a time. In
// place, a block is received over the one that was sent to the same partner, when that send is
// done. If a block may come early, a copy is sent.
#include <vector>

#include "coll/algorithm.h"
#include "coll/algorithms/pairwise.h"

namespace ulc::coll {
namespace {

using abi::BufferId;

class Exchange {
public:
    Exchange(const Call& call, Plan& plan)
        : call_(call), plan_(plan), kept_(call.ranks), pace_(call.concurrent) {}

    void run() {
        if (call_.in_place && call_.early) keep_outgoing();
        for (std::uint32_t round = 0; round < call_.ranks; ++round) {
            const std::uint16_t partner = partner_of(call_.rank, round, call_.ranks);
            pace_.received(partner == call_.rank ? own() : meet(partner, pace_.of(round)));
        }
    }

private:
    /// A block that is sent from a copy.
    struct Kept {
        Range range;
        std::uint32_t copied = kNoStep;
    };
    void keep_outgoing() {
        for (std::uint32_t rank = 0; rank < call_.ranks; ++rank) {
            if (rank == call_.rank) continue;
            const Range block = outgoing(rank);
            const Range copy = plan_.scratch(block.length);
            kept_[rank] = {copy, plan_.copy(copy, block)};
        }
    }
    [[nodiscard]] Range outgoing(std::uint32_t rank) const {
        if (kept_[rank].copied != kNoStep) return kept_[rank].range;
        return call_.in_place ? call_.out.range(rank, BufferId::kOutput)
                              : call_.in.range(rank, BufferId::kInput);
    }
    std::uint32_t own() {
        if (call_.in_place) return kNoStep;
        return plan_.copy(call_.out.range(call_.rank, BufferId::kOutput), outgoing(call_.rank));
    }
    /// The last receive.
    std::uint32_t meet(std::uint16_t partner, std::uint32_t begin) {
        const Range from = outgoing(partner);
        const Range into = call_.out.range(partner, BufferId::kOutput);
        const std::uint32_t copied = kept_[partner].copied;
        const Segments out = segments_of(call_, from.length);
        const Segments in = segments_of(call_, into.length);
        std::uint32_t last = kNoStep;
        for (std::uint32_t i = 0; i < out.count() || i < in.count(); ++i) {
            std::uint32_t free = copied;  // the step that frees the place of the next block
            if (i < out.count()) {
                plan_.after(begin).after(sends_.leaving()).after(copied);
                const std::uint32_t sent = sends_.push(plan_.send(partner, out.of(from, i)));
                if (call_.in_place && copied == kNoStep) free = sent;
            }
            if (i >= in.count()) continue;
            plan_.after(receives_.leaving()).after(free);
            last = receives_.push(plan_.receive(partner, in.of(into, i)));
        }
        return last;
    }

    const Call& call_;
    Plan& plan_;
    std::vector<Kept> kept_;  ///< by rank
    Pace pace_;
    Window sends_;
    Window receives_;
};

}  // namespace

void alltoall_pairwise(const Call& call, Plan& plan) { Exchange(call, plan).run(); }

}  // namespace ulc::coll
