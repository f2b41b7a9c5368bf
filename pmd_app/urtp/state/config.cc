// SPDX-License-Identifier: BSD-3-Clause
// The configuration of a transport, which an importing one must share, and values that all parts
// use.
#include "base/fnv.h"
#include "urtp/context.h"
#include "urtp/state/values.h"

namespace ulc::urtp {

void Params::fields(state::Archive& archive) {
    ULC_STATE(
        archive, Params, 3,
        (window, ack_window, lone_ack_window, group_ack_window, ack_delay, ack_delay_max, req_delay,
         reorder_wait, req_spread, repair_gather, min_req_gap, first_recv_wait, min_recv_wait,
         max_recv_wait, initial_rtt, min_send_wait, max_send_wait, probe_slot, peer_dead,
         hold_limit, rx_pool_packets, source_packets, credit_request, reserve_above, free_lazily,
         acknowledged, group_window_min, early_messages, ready_slot, flow_window, status_window,
         request_on_receive, receives_in_turn, ack_duplicates, selective_repeat, timed_by_rtt,
         single_request, number_vector, packs, control_one_by_one, control_wait_max),
        ());
}

void TransportConfig::fields(state::Archive& archive) {
    // Others are objects of the engine; the profile is digested in the context.
    ULC_STATE(archive, TransportConfig, 3,
              (rank, mac, mtu, mtu_taken, mtu_sure, ether_type, first_seq, world, crc, params),
              (seed, send_frames, receive_frames, node_silent, node_context, departures, arrivals,
               profile));
}

void Context::fields(state::Archive& archive) {
    ULC_STATE(archive, Context, 2, (prng, counts),
              (config, profile, policy, departures, arrivals, pool, counters, timers, hold));
    archive.same(profile, "the profile");
    state::Exporter digested;
    digested.values(config);
    std::uint64_t digest = kFnvBasis;
    for (const std::byte octet : digested.finish().octets)
        digest = fnv1a(digest, std::to_integer<std::uint64_t>(octet));
    archive.same(digest, "the configuration of a transport");
}

void RepairCounts::fields(state::Archive& archive) {
    ULC_STATE(archive, RepairCounts, 1, (repairs_sent, requests_received, requests_sent), ());
}

void Peer::fields(state::Archive& archive) {
    ULC_STATE(archive, Peer, 2, (mac, mtu, handle, incarnation), ());
    archive.require(mtu >= wire::kMtuMin, "the MTU of a peer is too small");
}

void LinkEnds::fields(state::Archive& archive) {
    ULC_STATE(archive, LinkEnds, 1, (self, in, out), ());
}

}  // namespace ulc::urtp
