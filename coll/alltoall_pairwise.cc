// Total exchange in a tournament of pairs (coll/pairwise.h), k rounds under way. In place, a block is received over the one that
// was sent to the same partner, when that is done with.
#include "coll/algorithm.h"
#include "coll/pairwise.h"

namespace ulc::coll {
namespace {

using abi::BufferId;

class Exchange {
public:
    Exchange(const Call& call, Plan& plan) : call_(call), plan_(plan), pace_(call.concurrent) {}

    void run() {
        for (std::uint32_t round = 0; round < call_.ranks; ++round) {
            const std::uint16_t partner = partner_of(call_.rank, round, call_.ranks);
            pace_.received(partner == call_.rank ? own() : meet(partner, pace_.of(round)));
        }
    }

private:
    [[nodiscard]] Range outgoing(std::uint32_t rank) const {
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
        const Segments out = segments_of(call_, from.length);
        const Segments in = segments_of(call_, into.length);
        std::uint32_t last = kNoStep;
        for (std::uint32_t i = 0; i < out.count() || i < in.count(); ++i) {
            std::uint32_t sent = kNoStep;
            if (i < out.count()) {
                plan_.after(begin).after(sends_.leaving());
                sent = sends_.push(plan_.send(partner, out.of(from, i)));
            }
            if (i >= in.count()) continue;
            plan_.after(receives_.leaving()).after(call_.in_place ? sent : kNoStep);
            last = receives_.push(plan_.receive(partner, in.of(into, i)));
        }
        return last;
    }

    const Call& call_;
    Plan& plan_;
    Pace pace_;
    Window sends_;
    Window receives_;
};

}  // namespace

void alltoall_pairwise(const Call& call, Plan& plan) { Exchange(call, plan).run(); }

}  // namespace ulc::coll
