// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/params.h"

#include <algorithm>

namespace ulc::urtp {
namespace {

/// Factor for the ACK delay on a wire that carries one frame at a time.
constexpr Nanos kHubAckDelays = 128;

}  // namespace

void Params::fit_wire(std::uint64_t bits_per_second, bool half_duplex) noexcept {
    constexpr std::uint64_t kShortestFrameBits = 84 * 8;  // with preamble, FCS and gap
    if (bits_per_second == 0) return;
    const auto shortest = static_cast<Nanos>(kShortestFrameBits * kSecond / bits_per_second);
    probe_slot = std::max(probe_slot, half_duplex ? 2 * shortest : shortest);
    if (!half_duplex) return;
    control_one_by_one = true;
    control_wait_max = std::max(control_wait_max, 6400 * kMicrosecond);
    // Stations that wait for a busy medium collide when it falls idle, so unnecessary frames are
    // left out. A receiver that waits for a source by name asks for a lost tail; the sender's own
    // question only backs that up.
    if (ack_delay != kNever) {
        const Nanos longest =
            std::max(ack_delay, max_send_wait / 2);  // a probe must not come first
        ack_delay = std::min(kHubAckDelays * std::min(ack_delay, longest), longest);
        ack_delay_max = std::max(ack_delay_max, ack_delay);
    }
    lone_ack_window = window / 2;
    ack_window = std::max(ack_window, std::min(2 * ack_window, window / 4));
    group_ack_window = std::max(group_ack_window, window / 2);
    req_spread = std::max(req_spread, 8 * shortest);
    repair_gather = std::max(repair_gather, req_spread);
}

}  // namespace ulc::urtp
