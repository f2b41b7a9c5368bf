// SPDX-License-Identifier: BSD-3-Clause
// The engine and a transport exchange these: peers, packets, admissions, events, the configuration.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "port/segment.h"
#include "urtp/params.h"
#include "wire/header.h"
#include "wire/ids.h"
#include "wire/short_frame.h"

namespace ulc::urtp {

class FrameShare;   // urtp/frame_share.h
class Arrivals;     // urtp/arrivals.h
struct Departures;  // urtp/departures.h

/// A rank as the roster has it. At most 32 bytes, which with one pointer is the cost of a silent
/// peer.
struct Peer {
    Peer() = default;
    Peer(const Mac& mac_in, Handle handle_in, std::uint32_t incarnation_in,
         std::uint16_t mtu_in = UINT16_MAX)
        : mac(mac_in), mtu(mtu_in), handle(handle_in), incarnation(incarnation_in) {}
    void fields(state::Archive& archive);  ///< urtp/state/
    Mac mac;
    /// MTU of the node, if it is the peer of a link. A job has one MTU in TransportConfig.
    std::uint16_t mtu = UINT16_MAX;
    Handle handle = 0;
    std::uint32_t incarnation = 0;
};
static_assert(sizeof(Peer) == 16, "a silent peer costs little");

/// Names that the two ends of a link have for each other, and where their numbers begin.
struct LinkEnds {
    void fields(state::Archive& archive);  ///< urtp/state/
    Rank self = kNoRank;                   ///< the slot that the peer has for this member
    Seq in;                                ///< first number of what the peer sends; chosen here
    Seq out;  ///< first number of what is sent to the peer; chosen there
};

/// Repairs between this member and a peer, or all peers. Each counts from 0 and wraps.
struct RepairCounts {
    void fields(state::Archive& archive);  ///< urtp/state/
    std::uint32_t repairs_sent = 0;        ///< packets repeated; for several peers: of no peer
    std::uint32_t requests_received = 0;   ///< for repairs
    std::uint32_t requests_sent = 0;
};

/// Tells whether a packet may be committed now to a stream.
enum class Admission : std::uint8_t {
    kYes,
    kWindow,    ///< window or credit is used up; asks again after an acknowledgement
    kAfter,     ///< would need more than four `after` entries; acknowledgements were asked for
    kPeerGone,  ///< the only destination (or every member) left or died
    kUnknown,   ///< no such stream
};

/// One packet's place and flags, chosen by the fragmenter.
struct PacketMeta {
    StreamId stream = 0;
    bool first = true;
    bool last = true;
    bool ack_now = false;
    bool has_tag = false;
    bool has_subset = false;
    std::uint64_t tag = 0;
    std::uint64_t subset = 0;          ///< bit i: index i of the group
    std::uint64_t message_length = 0;  ///< on the wire when first && !last
};

/// The message whose next packet asks for admission. Long ones may wait for a reservation.
struct MessageSize {
    std::uint64_t octets = 0;  ///< the whole
    std::uint64_t left = 0;    ///< not yet committed
};

/// A whole message that one packet carries. Its fields are judged; its payload is read once.
struct ShortMessage {
    /// Transport::short_octets_max() is at least this.
    static constexpr std::uint32_t kOctetsSure = 104;

    StreamId stream = 0;
    std::uint32_t octets = 0;
    const void* payload = nullptr;
    std::uint64_t tag = 0;
    bool has_tag = false;
};

/// The place for the payload of a packet about to be committed. Valid until the next call.
struct PacketPlan {
    std::uint16_t payload_offset = 0;  ///< octets from Segment::frame
    std::uint16_t payload_max = 0;     ///< octets that fit in the MTU
};

/// A packet at the head of a source's ready queue.
struct ReadyPacket {
    Segment* segment = nullptr;  ///< still the member's; pop() drops it
    const std::byte* payload = nullptr;
    std::uint64_t tag = 0;
    std::uint64_t message_length = 0;  ///< valid with first(); == length when also last()
    StreamId stream = 0;               ///< own rank (unicast) or group handle
    std::uint16_t length = 0;
    std::uint8_t flags = 0;   ///< wire::Flag
    bool after_loss = false;  ///< packets of this stream before it were lost

    [[nodiscard]] bool first() const noexcept { return (flags & wire::kFlagFirst) != 0; }
    [[nodiscard]] bool last() const noexcept { return (flags & wire::kFlagLast) != 0; }
    [[nodiscard]] bool has_tag() const noexcept { return (flags & wire::kFlagTag) != 0; }
};

enum class EventKind : std::uint8_t {
    kPeerLeft,      ///< once for each peer, also if told by peer_gone(); `count` messages to it
    kPeerDied,      ///< were not acknowledged
    kPeerExcluded,  ///< held up a group for too long (HoldRules); also once for each peer
    kHeldSlow,      ///< `rank` held up our stream in `stream` for `count` ms: it gives no credit
    kHeldSilent,    ///< the same: it does not answer
    kLost,        ///< `count` packets from `rank` were lost and do not come again (profile detect)
    kSendFailed,  ///< `count` packets of ours did not reach the wire (profile detect)
    kPathNarrow,  ///< a packet above mtu_sure, sent `count` times, does not reach `rank`
};

struct Event {
    EventKind kind{};
    Rank rank = kNoRank;
    std::uint32_t count = 0;  ///< packets, messages or ms since the last such event
    StreamId stream = 0;      ///< set by kHeldSlow and kHeldSilent
};

/// The rules for a member that holds up the stream of a group.
struct HoldRules {
    Nanos limit = kNever;     ///< time until the event; kNever: none
    bool excludes = false;    ///< the relation with it then ends
    std::vector<bool> keeps;  ///< by rank: never excluded
};

struct TransportConfig {
    void fields(state::Archive& archive);  ///< urtp/state/
    Rank rank = 0;                         ///< kNoRank: of no job, open for links
    Mac mac;
    std::uint16_t mtu = 1500;        ///< MTU of the packets that are sent
    std::uint16_t mtu_taken = 1500;  ///< no packet that comes is longer
    std::uint16_t mtu_sure = 1500;   ///< losses of longer packets show that a path narrowed
    std::uint16_t ether_type = wire::kEtherTypeDefault;
    Seq first_seq;
    GroupHandle world = 0;
    bool crc = false;
    std::uint64_t seed = 0;
    /// Frames of the port's pool to send from: unacknowledged ones, and undelivered ones from ranks
    /// of this node. Outlives the member, which counts there. nullptr: any number.
    FrameShare* send_frames = nullptr;
    /// The same of the frames that the port received.
    FrameShare* receive_frames = nullptr;
    /// Returns whether the rank's node has been silent, on whatever behalf, for as long as a death
    /// takes. A node that lives says that a rank of it has ended, so while it is heard its ranks
    /// live. nullptr: only the rank itself speaks for it.
    bool (*node_silent)(const void* context, Rank rank, Nanos now) = nullptr;
    const void* node_context = nullptr;
    Params params;
    /// Departures of its port; outlives it. nullptr: frames leave at once.
    const Departures* departures = nullptr;
    /// Arrivals at its port; outlives it. nullptr: frames are taken when they come.
    const Arrivals* arrivals = nullptr;
    std::string_view profile =
        kDefaultProfile;  ///< one that resolve() takes; read by the constructor only
};

}  // namespace ulc::urtp
