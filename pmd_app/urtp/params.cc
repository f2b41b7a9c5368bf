#include "urtp/params.h"

#include <algorithm>

namespace ulc::urtp {
namespace {

/// On a medium that carries one frame at a time an acknowledgement waits so much longer for company: 25.6 ms.
constexpr Nanos kHubAckDelays = 128;

}  // namespace

void Params::fit_wire(std::uint64_t bits_per_second, bool half_duplex) noexcept {
    constexpr std::uint64_t kShortestFrameBits = 84 * 8;  // with preamble, FCS and gap
    if (bits_per_second == 0) return;
    const auto shortest = static_cast<Nanos>(kShortestFrameBits * kSecond / bits_per_second);
    probe_slot = std::max(probe_slot, half_duplex ? 2 * shortest : shortest);
    if (!half_duplex) return;
    control_one_by_one = true;
    // Stations that wait for a busy medium collide when it falls idle, so what need not be said is left out. A tail that is lost is asked
    // for by who awaits it; the sender's own question only backs that up, and may be late.
    if (ack_delay != kNever)
        ack_delay_max = ack_delay = std::max(ack_delay_max, kHubAckDelays * ack_delay);
    ack_window = std::max(ack_window, window / 2);
    group_ack_window = std::max(group_ack_window, window / 2);
    req_spread = std::max(req_spread, 8 * shortest);
    repair_gather = std::max(repair_gather, req_spread);
}

}  // namespace ulc::urtp
