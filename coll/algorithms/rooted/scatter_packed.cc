// SPDX-License-Identifier: BSD-3-Clause
// Scatter as in URTP §4.4: full packets go to each member by unicast. The rest of each block is
// less than a packet, and all rests are packed into one multicast. Blocks smaller than a packet are
// all packed: one message instead of ranks − 1. Every member knows all lengths here.
#include <algorithm>
#include <vector>

#include "coll/algorithm.h"

namespace ulc::coll {
namespace {

/// About the payload of a packet of Ethernet; it decides only what is packed.
constexpr std::uint64_t kPacketOctets = 1460;

class Packed {
public:
    Packed(const Call& call, Plan& plan) : call_(call), plan_(plan) {
        bool all_filled = true;
        for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
            tail_at_.push_back(packed_);
            if (rank == call.root) continue;
            packed_ += tail(rank);
            all_filled = all_filled && filled(rank) > 0;
        }
        multicasts_ = packed_ > 0 || !all_filled;
        if (multicasts_) pack_ = plan.scratch(packed_);
    }

    void deal() {
        Window sends;
        for (std::uint32_t rank = 0; rank < call_.ranks; ++rank) {
            if (rank == call_.root || filled(rank) == 0) continue;
            const Range block = call_.in.range(rank, abi::BufferId::kInput);
            const Segments segments = segments_of(call_, filled(rank));
            for (std::uint32_t i = 0; i < segments.count(); ++i) {
                plan_.after(sends.leaving());
                sends.push(plan_.send(static_cast<std::uint16_t>(rank), segments.of(block, i)));
            }
        }
        if (!multicasts_) return;
        Window copies;
        for (std::uint32_t rank = 0; rank < call_.ranks; ++rank) {
            if (rank == call_.root || tail(rank) == 0) continue;
            const Range block = call_.in.range(rank, abi::BufferId::kInput);
            plan_.after(copies.leaving());
            copies.push(plan_.copy(pack_.part(tail_at_[rank], tail(rank)),
                                   block.part(filled(rank), tail(rank))));
        }
        const std::uint32_t packed = copies.all(plan_).join();
        const Segments segments = segments_of(call_, packed_);
        for (std::uint32_t i = 0; i < segments.count(); ++i)
            plan_.after(packed).multicast(segments.of(pack_, i));
    }

    void take() {
        const Range own{abi::BufferId::kOutput, 0, call_.octets};
        Window receives;
        const auto receive = [&](const Range& whole) {
            const Segments segments = segments_of(call_, whole.length);
            for (std::uint32_t i = 0; i < segments.count(); ++i) {
                plan_.after(receives.leaving());
                receives.push(plan_.receive(call_.root, segments.of(whole, i)));
            }
        };
        if (filled(call_.rank) > 0) receive(own.part(0, filled(call_.rank)));
        if (!multicasts_) return;
        receive(pack_);
        const std::uint64_t octets = tail(call_.rank);
        receives.all(plan_).copy(own.part(filled(call_.rank), octets),
                                 pack_.part(tail_at_[call_.rank], octets));
    }

private:
    [[nodiscard]] std::uint64_t tail(std::uint32_t rank) const {
        return call_.in.length(rank) % kPacketOctets;
    }
    [[nodiscard]] std::uint64_t filled(std::uint32_t rank) const {
        return call_.in.length(rank) - tail(rank);
    }

    const Call& call_;
    Plan& plan_;
    std::vector<std::uint64_t> tail_at_;  ///< each rank's, in pack_
    std::uint64_t packed_ = 0;
    bool multicasts_ = false;
    Range pack_;
};

}  // namespace

void scatter_packed(const Call& call, Plan& plan) {
    if (call.rank == call.root && !call.in_place) {
        plan.copy({abi::BufferId::kOutput, 0, call.octets},
                  call.in.range(call.rank, abi::BufferId::kInput));
    }
    if (call.ranks < 2) return;
    Packed packed(call, plan);
    call.rank == call.root ? packed.deal() : packed.take();
}

}  // namespace ulc::coll
