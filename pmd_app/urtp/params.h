// SPDX-License-Identifier: BSD-3-Clause
// Every constant of the transport, as a named parameter. URTP's names in capitals and in the
// comments; docs/PROTOCOL.md §9 says where the meaning differs from the paper's. A profile
// (urtp/policy.h) may set any of them for a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/units.h"

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp {

/// The profile that is used where nothing is configured (urtp/policy.h).
inline constexpr std::string_view kDefaultProfile = "urtp";
/// Longest profile, in octets.
inline constexpr std::size_t kProfileOctetsMax = 32;

/// A wait that is taken from the measured round trip.
inline constexpr Nanos kFromRtt = -1;

struct Params {
    /// WINDOW: packets a stream may have unacknowledged; power of two. RANGE is 2^32, the width of
    /// a number on the wire.
    std::uint32_t window = 256;
    /// AckWindow: unicast packets for each acknowledgement.
    std::uint32_t ack_window = 16;
    /// The default's receivers acknowledge by frames of their own no more often than this: where
    /// such a frame collides with data.
    std::uint32_t lone_ack_window = 0;
    /// Group packets for each acknowledgement by one member, or as many as the group has members
    /// (A).
    std::uint32_t group_ack_window = 16;
    /// An acknowledgement waits at most this long for company; kNever: until a frame leaves anyway.
    Nanos ack_delay = 200 * kMicrosecond;
    /// Limit of ack_delay, which doubles each time that no frame left; the sender's wait for the
    /// acknowledgement doubles alike.
    Nanos ack_delay_max = 800 * kMicrosecond;
    /// REQDelay: of the packets that come beyond a gap, every so many-th asks for it. 1: the first
    /// asks, and time repeats.
    std::uint32_t req_delay = 1;
    /// A gap waits this long before the first REQ, where frames may overtake each other: on a net
    /// of several links. Each gap has this time, also one that shows while others wait.
    Nanos reorder_wait = 0;
    /// The first REQ for a group packet waits at random below this.
    Nanos req_spread = 10 * kMicrosecond;
    /// A group repair waits this long for further requests.
    Nanos repair_gather = 10 * kMicrosecond;
    /// MinReqGap, δ: a REQ for a packet sent less than this ago is ignored; at most srtt/2.
    Nanos min_req_gap = 50 * kMicrosecond;
    /// A pending receive that names its source asks for the first time after this.
    Nanos first_recv_wait = kFromRtt;
    /// MinRecvWait: first repetition of a REQ, at least srtt.
    Nanos min_recv_wait = 100 * kMicrosecond;
    /// MaxRecvWait: longest wait between REQs.
    Nanos max_recv_wait = 100 * kMillisecond;
    Nanos initial_rtt = 500 * kMicrosecond;
    /// MinSendWait: shortest wait of a sender for news of its tail, before it asks.
    Nanos min_send_wait = 100 * kMicrosecond;
    /// MaxSendWait: longest such wait.
    Nanos max_send_wait = 100 * kMillisecond;
    /// A group's probe is answered within members × this, at random.
    Nanos probe_slot = 2 * kMicrosecond;
    /// Unanswered questions for this long: the peer is dead.
    Nanos peer_dead = 2 * kSecond;
    /// A member that holds up a group's stream for this long is named (HoldRules::limit).
    Nanos hold_limit = kNever;
    /// Held packets of all sources of one endpoint, beyond one reserved each.
    std::uint32_t rx_pool_packets = 1024;
    /// Packets of the pool that each stream of a source has for itself; 0: the pool is shared.
    std::uint32_t source_packets = 0;
    /// The packet that leaves half of the credit, or none, asks for more (GAMMA's credit request).
    bool credit_request = false;
    /// Longer messages wait until their receivers have reserved buffers for them; octets.
    std::uint64_t reserve_above = UINT64_MAX;
    /// Acknowledged packets are let go only when this many are retained, or all are acknowledged;
    /// 0: at once.
    std::uint32_t free_lazily = 0;
    /// A packet is retained until it is acknowledged; false: it is transmitted once and forgotten,
    /// and nothing waits for a window (GAMMA §4.5.5).
    bool acknowledged = true;
    /// A packet of whole messages holds a list of them (wire/packed.h).
    bool packs = false;
    /// PCODE: a group's window is at least this, in packets.
    std::uint32_t group_window_min = 0;
    /// PCODE: messages of one source that came too early and are saved.
    std::uint32_t early_messages = 64;
    /// PCODE's P0: a receiver keeps one message of a source until a receive names the source, and
    /// drops those that come meanwhile; false: messages are delivered as they come.
    bool ready_slot = false;
    /// PCODE's FLOW_WINDOW: how many global counts a member may be behind before the others stop
    /// sending.
    std::uint32_t flow_window = 256;
    /// PCODE's STATUS_WINDOW: a member tells where it stands when the global counter has grown by
    /// this.
    std::uint32_t status_window = 64;
    /// Arm a REQ for a pending receive that names one source.
    bool request_on_receive = true;
    /// Asks only the first of several sources that pending receives name, about one stream at a
    /// time, and first about the stream on which it last sent, as in URTP, whose receive names one
    /// source and whose pairs have one number; false: all, about all streams.
    bool receives_in_turn = false;
    /// A packet that came before is acknowledged again at once; false: dropped.
    bool ack_duplicates = true;
    /// A receiver holds what comes out of order and asks for what is missing; false: it drops it
    /// (go-back-n).
    bool selective_repeat = true;
    /// Waits and gaps follow the measured round trip within the bounds above; false: the bounds
    /// alone, as in URTP.
    bool timed_by_rtt = true;
    /// A REQ asks for `next` alone, as in URTP; false: for everything missing.
    bool single_request = false;
    /// Group packets are as long as with URTP's number for each member: `after` entries of their
    /// own stream fill the place, one for two members, up to kAfterEntriesMax (8 members).
    bool number_vector = false;
    /// The port is given a control frame when the one before it has left. Where the wire is shared,
    /// frames wait in the port for as long as others talk: a request that was not formed yet is not
    /// needed when its packet has come, and an acknowledgement says more later.
    bool control_one_by_one = false;
    /// Limit of that wait: some devices report late.
    Nanos control_wait_max = 800 * kMicrosecond;

    void fields(state::Archive& archive);  ///< urtp/state/
    /// Packets that a unicast receiver may leave unacknowledged if it is not asked.
    [[nodiscard]] std::uint32_t unasked_ack_window() const noexcept {
        return ack_window > lone_ack_window ? ack_window : lone_ack_window;
    }
    /// Waits that spread what many say at once are long enough for the wire to carry it; and where
    /// it carries one frame at a time, acknowledgements of their own, which meet data there, are
    /// fewer. bits_per_second: 0, unknown, changes nothing.
    void fit_wire(std::uint64_t bits_per_second, bool half_duplex) noexcept;
};

}  // namespace ulc::urtp
