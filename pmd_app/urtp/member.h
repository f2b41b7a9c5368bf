// One rank's transport state in one job: its session with every other rank and its group streams.
//
// Sans-IO: takes parsed frames and the time, gives segments to transmit and packets to deliver. Pulled, never
// pushing: the engine asks next_tx() while the port has room and front() while the client has room, so
// back-pressure is the absence of a call. Engine thread only. No allocation after a session's first packet.
//
//   submit:   may_send → plan → (engine copies the payload) → commit → next_tx
//   receive:  on_frame → [streams put packets in order] → next_source/front → (engine copies out) → pop
//   time:     next_timer → on_timer
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "urtp/departures.h"
#include "urtp/params.h"
#include "wire/header.h"
#include "wire/ids.h"
#include "wire/segment.h"

namespace ulc::wire {
struct FrameView;  // wire/parse.h
}

namespace ulc::urtp {

class FrameShare;  // urtp/frame_share.h

/// What the roster says of a rank. At most 32 bytes: all that a silent peer costs, with one pointer.
struct Peer {
    Mac mac;
    Handle handle = 0;
    std::uint32_t incarnation = 0;
};

/// Names that the two ends of a link have for each other, and where their numbers begin.
struct LinkEnds {
    Rank self = kNoRank;  ///< the slot that the peer has for this member
    Seq in;               ///< first number of what the peer sends; chosen here
    Seq out;              ///< first number of what is sent to the peer; chosen there
};

/// Whether a packet may be committed now to a stream.
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

/// Of the message whose next packet asks for admission. Long ones may have to wait for a reservation.
struct MessageSize {
    std::uint64_t octets = 0;  ///< the whole
    std::uint64_t left = 0;    ///< not yet committed
};

/// Where the payload of a packet about to be committed goes. Valid until the next call on this member.
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
    kPeerLeft,  ///< once for each peer, whether found here or told by peer_gone()
    kPeerDied,
    kLost,        ///< `count` packets from `rank` were lost and do not come again (profile detect)
    kSendFailed,  ///< `count` packets of ours did not reach the wire (profile detect)
};

struct Event {
    EventKind kind{};
    Rank rank = kNoRank;
    std::uint32_t count = 0;  ///< packets since the last such event of this rank
};

struct MemberConfig {
    Rank rank = 0;  ///< kNoRank: of no job, open for links
    Mac mac;
    std::uint16_t mtu = 1500;
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
    /// When the rank's node was last heard of, on whatever behalf. A node that lives says of a rank that has ended that it is gone,
    /// so while it is heard its ranks live. nullptr: only the rank itself speaks for it.
    Nanos (*node_heard)(const void* context, Rank rank) = nullptr;
    const void* node_context = nullptr;
    Params params;
    const Departures* departures =
        nullptr;  ///< of its port; outlives it; nullptr: all leave at once
    std::string_view profile =
        kDefaultProfile;  ///< one that resolve() takes; read by the constructor only
};

class Member {
public:
    /// roster: one Peer per rank, roster[config.rank] is this one; copied. Open for links: as many
    /// peers as there may be links, without content. pool, counters: outlive the member.
    Member(const MemberConfig& config, std::span<const Peer> roster, const SegmentPool& pool,
           Counters& counters);
    ~Member();  ///< drops every segment it holds
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    [[nodiscard]] Rank rank() const noexcept;
    [[nodiscard]] std::uint16_t size() const noexcept;
    [[nodiscard]] const Peer& peer(Rank rank) const noexcept;

    // --- links, of a member that is open for them. A peer's slot takes the place of its rank.
    /// Joins a peer under a vacant slot. A slot without traffic costs 36 octets.
    /// Errors: kInvalid (no member for links, no such slot, no unicast address), kMismatch (taken).
    Err link(Rank slot, const Peer& peer, const LinkEnds& ends);
    /// Makes a slot vacant and frees what it held. Errors: kInvalid (vacant), kAgain (peer_gone()
    /// was not said, poll_event() has not told it, or packets of the peer are still ready).
    Err unlink(Rank slot) noexcept;

    // --- groups. The world group exists from construction; a member open for links has none.
    /// ranks: strictly ascending or any order, no repeats, contains own rank; index i is the subset bit and ACK
    /// residue of ranks[i]. Errors: kInvalid (open for links, too), kLimit (too many groups),
    /// kMismatch (handle in use).
    Err add_group(GroupHandle handle, std::span<const Rank> ranks);
    /// The group's streams must be drained, else kAgain.
    Err remove_group(GroupHandle handle);
    /// What goes to all members goes there from now on; broadcast, until it is set. Unknown groups are ignored.
    void set_group_address(GroupHandle handle, const Mac& address) noexcept;
    /// Members in index order; empty if unknown.
    [[nodiscard]] std::span<const Rank> members(GroupHandle handle) const noexcept;

    // --- sending
    [[nodiscard]] Admission may_send(StreamId stream, std::uint64_t subset, bool has_subset,
                                     Nanos now, const MessageSize& size = {});
    /// After kYes. Fixes the extensions (after entries, piggybacked ACK) of the next packet.
    [[nodiscard]] PacketPlan plan(const PacketMeta& meta, Nanos now);
    /// After plan() with the payload in place: writes the headers, numbers the packet, queues it for next_tx().
    /// Takes over the caller's one reference. length: payload octets, ≤ plan.payload_max.
    void commit(const PacketMeta& meta, const PacketPlan& plan, Segment* segment,
                std::uint32_t length, Nanos now);

    /// The next frame for the wire (control, then repairs, then new data), complete from the Ethernet header on,
    /// with one reference for the port; nullptr: nothing (or no segment for a control frame) now.
    [[nodiscard]] Segment* next_tx(Nanos now);
    [[nodiscard]] bool has_tx() const noexcept;
    /// A control frame is due, and waits until the one before it has left the port (Params::control_one_by_one).
    [[nodiscard]] bool control_waits(Nanos now) const noexcept;

    // --- receiving
    /// A parsed frame of type DATA, MCAST, ACK, REQ or PROBE whose handle names this member or one of its groups.
    /// Takes over one reference of the segment, always. Frames are counted and dropped by reason.
    void on_frame(const wire::FrameView& frame, Segment* segment, Nanos now);
    /// The frame's packet would be the only one that is ready now: the next in order of its stream, for this member, and nothing
    /// of any source waits.
    [[nodiscard]] bool is_next(const wire::FrameView& frame) const noexcept;
    /// A rank whose ready queue is not empty, round robin; kNoRank: none.
    [[nodiscard]] Rank next_source() noexcept;
    /// Head of a source's ready queue; false: empty.
    [[nodiscard]] bool front(Rank source, ReadyPacket& out) noexcept;
    /// If the payload of the source's first ready packet lies elsewhere than in its frame, it goes there.
    void pull_front(Rank source) noexcept;
    /// True: another packet of that source is ready.
    bool pop(Rank source, Nanos now);
    /// The client has a receive pending that names this source alone (URTP §3: REQ on receive). Idempotent;
    /// disarmed by the next packet in order from it.
    void expect(Rank source, Nanos now);

    // --- time and ends
    [[nodiscard]] Nanos next_timer() const noexcept;  ///< kNever: none
    void on_timer(Nanos now);
    /// A peer left or died: its streams end, group streams go on without it.
    void peer_gone(Rank rank, EventKind kind, Nanos now);
    /// All that the engine asks after it touched a member, in one call.
    struct Outlook {
        Nanos timer = kNever;  ///< next_timer()
        bool event = false;    ///< poll_event() has one
        bool tx = false;       ///< has_tx()
    };
    [[nodiscard]] Outlook outlook() const noexcept;
    [[nodiscard]] bool poll_event(Event& out) noexcept;
    /// There is no segment for a new packet: asks some stream that retains packets for acknowledgement.
    void want_segments(Nanos now) noexcept;
    /// From now on its frames refer to no memory but their own (wire/segment.h): what they referred to may go.
    void pull_tails() noexcept;
    /// A frame that next_tx() gave could not be sent, and was dropped. Only the profile detect tells of it.
    void send_failed() noexcept;
    /// The same of a frame that is known: true if it was a packet of this member. It is sent again at once, unless the profile
    /// repairs nothing: then it is told of. That is no congestion.
    bool send_failed(const wire::FrameView& frame, Nanos now) noexcept;
    /// What is transmitted is forgotten, so that transmission itself makes room for more (profile detect).
    [[nodiscard]] bool forgets() const noexcept;
    /// Nothing unacknowledged in any stream, nothing queued for the wire.
    [[nodiscard]] bool drained() const noexcept;

    struct Impl;  ///< urtp/impl.h, for policies

private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace ulc::urtp
