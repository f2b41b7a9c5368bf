// SPDX-License-Identifier: BSD-3-Clause
// One rank's transport state in one job, put together of four parts:
//
//   Sessions      who takes part: peers, groups, links                          sessions.h
//   Sender        admits, numbers, retains and repeats packets                  sender/sender.h
//   Receiver      puts packets in order, asks for what is missing, acknowledges receiver/receiver.h
//   ControlQueue  who speaks next on the wire, besides packets                  control_queue.h
//
// Sans-IO: takes parsed frames and the time, gives segments to transmit and packets to deliver.
// Pulled, never pushing: the engine asks next_tx() while the port takes frames and front() while
// the client takes messages, so back-pressure is the absence of a call. Engine thread only. No
// allocation after a session's first packet.
//
//   submit:   may_send → plan → (engine copies the payload) → commit → next_tx
//   receive:  on_frame → [streams put packets in order] → next_source/front → (copied out) → pop
//   time:     next_timer → on_timer
#pragma once

#include <span>

#include "base/counters.h"
#include "base/error.h"
#include "urtp/context.h"
#include "urtp/control_queue.h"
#include "urtp/receiver/receiver.h"
#include "urtp/sender/sender.h"
#include "urtp/sessions.h"
#include "urtp/types.h"
#include "wire/short_frame.h"

namespace ulc::urtp {

/// The parts that the rules of a group may use.
struct TransportParts {
    Context& context;
    Sessions& sessions;
    ControlQueue& control;
    Receiver& receiver;
    Sender& sender;
};

class Transport {
public:
    /// roster: one Peer per rank, roster[config.rank] is this one; copied. Open for links: as many
    /// peers as there may be links, without content. pool, counters: outlive the member.
    Transport(const TransportConfig& config, std::span<const Peer> roster, const SegmentPool& pool,
              Counters& counters);
    ~Transport();  ///< drops every segment it holds
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    [[nodiscard]] Rank rank() const noexcept { return context_.config.rank; }
    /// MTU of the longest packets that it sends.
    [[nodiscard]] std::uint16_t mtu() const noexcept { return context_.config.mtu; }
    [[nodiscard]] std::uint16_t size() const noexcept {
        return static_cast<std::uint16_t>(sessions_.size());
    }
    [[nodiscard]] const Peer& peer(Rank rank) const noexcept {
        ULC_CHECK(rank < sessions_.size());
        return sessions_.peer(rank);
    }

    // --- links, of a member that is open for them. A peer's slot takes the place of its rank.
    /// Joins a peer under a vacant slot. A slot without traffic costs 36 octets.
    /// Errors: kInvalid (no member for links, no such slot, no unicast address), kMismatch (taken).
    Err link(Rank slot, const Peer& peer, const LinkEnds& ends);
    /// Makes a slot vacant and frees what it held. Errors: kInvalid (vacant), kAgain (peer_gone()
    /// was not said, poll_event() has not told it, or packets of the peer are still ready).
    Err unlink(Rank slot) noexcept;

    // --- groups. The world group exists from construction; a member open for links has none.
    /// Adds a group. ranks: in any order, no repeats, contains own rank; index i is the subset bit
    /// and ACK residue of ranks[i]. Errors: kInvalid (open for links, too), kLimit (too many
    /// groups), kMismatch (handle in use).
    Err add_group(GroupHandle handle, std::span<const Rank> ranks);
    /// The group's streams must be drained, else kAgain.
    Err remove_group(GroupHandle handle);
    /// Sends frames for all members there from now on; broadcast, until it is set. Unknown groups
    /// are ignored.
    void set_group_address(GroupHandle handle, const Mac& address) noexcept;
    /// Transports in index order; empty if unknown.
    [[nodiscard]] std::span<const Rank> members(GroupHandle handle) const noexcept;

    // --- sending
    [[nodiscard]] Admission may_send(StreamId stream, std::uint64_t subset, bool has_subset,
                                     Nanos now, const MessageSize& size = {});
    /// Fixes the extensions (after entries, piggybacked ACK) of the next packet, after kYes.
    [[nodiscard]] PacketPlan plan(const PacketMeta& meta, Nanos now) {
        return sender_.plan(meta, now);
    }
    /// Writes the headers, numbers the packet and queues it for next_tx(), after plan() and with
    /// the payload in place. Takes over the caller's one reference. length: payload octets, ≤
    /// plan.payload_max.
    void commit(const PacketMeta& meta, const PacketPlan& plan, Segment* segment,
                std::uint32_t length, Nanos now) {
        sender_.commit(meta, plan, segment, length, now);
    }

    /// Returns the longest short message in bytes, at least ShortMessage::kOctetsSure. Callers pass
    /// no longer one.
    [[nodiscard]] std::uint32_t short_octets_max() const noexcept {
        return sender_.short_octets_max();
    }
    // Short messages (urtp/fast.h).
    /// Returns what is known of each short message to that peer, or to all members of the group;
    /// tx: nullptr, the stream has not begun.
    [[nodiscard]] TxPrediction predict(Session& session) const noexcept {
        return sender_.predict(session);
    }
    [[nodiscard]] TxPrediction predict(const Group& group) const noexcept {
        return sender_.predict(group);
    }
    /// Stands for may_send(), plan(), commit() and next_tx() where has_tx() is false and the frame
    /// goes to the port at once. prediction: holds, and has a stream. Returns the frame, with one
    /// reference for the port; nullptr: nothing was changed, may_send() decides.
    Segment* transmit_next(const TxPrediction& prediction, const ShortMessage& message,
                           Nanos now) noexcept;
    /// Stands for may_send(), plan() and commit() likewise. False: nothing was changed.
    bool queue_next(const TxPrediction& prediction, const ShortMessage& message,
                    Nanos now) noexcept {
        return sender_.queue_next(prediction, message, now);
    }
    /// Returns the group; nullptr: this member is in no such group.
    [[nodiscard]] const Group* find_group(GroupHandle handle) const noexcept {
        return sessions_.find_group(handle);
    }
    /// Returns the session with a peer that was heard or sent to; nullptr: there is none.
    [[nodiscard]] Session* find_session(StreamId stream) const noexcept {
        return stream < sessions_.size() ? sessions_.find(stream) : nullptr;
    }
    /// Tells whether the next short message to that rank waits for window, credit or pacer alone. A
    /// timer or an acknowledgement ends the wait.
    [[nodiscard]] bool lacks_window(StreamId stream, Nanos now);
    /// Returns the session with a rank of this engine that may pass() messages to this one;
    /// nullptr: it may not.
    [[nodiscard]] Session* takes_passed(Rank from) const noexcept;
    /// Gives a short message to its receiver, a transport of the same engine, without a frame:
    /// it is acknowledged at once, and takes along an acknowledgement that is owed. Only for a
    /// stream of which nothing is on its way. True: the message is in order, and goes to the
    /// receiver's client now. False: nothing was changed; may_send() decides.
    /// prediction: holds, and `theirs` is what the receiver takes_passed().
    bool pass(const TxPrediction& prediction, Transport& to, Nanos now) noexcept;

    /// Returns the next frame for the wire (control, then repairs, then new data), complete from
    /// the Ethernet header on, with one reference for the port; nullptr: nothing (or no segment for
    /// a control frame) now.
    [[nodiscard]] Segment* next_tx(Nanos now);
    [[nodiscard]] bool has_tx() const noexcept {
        return sender_.has_packets() || !control_.empty();
    }
    /// Tells that a control frame is due, and waits until the one before it has left the port
    /// (Params::control_one_by_one).
    [[nodiscard]] bool control_waits(Nanos now) const noexcept;

    // --- receiving
    /// Takes a parsed frame whose handle names this member or one of its groups, and one reference
    /// of the segment, always. Frames are counted and dropped by reason.
    void on_frame(const wire::FrameView& frame, Segment* segment, Nanos now);
    /// Judges a frame that has_short_head() or has_part_head(), and whose handle names this member
    /// or one of its groups: whether such frames of its stream are taken by is_next() and
    /// take_next(). frame: at least kFrameOctetsMin. False: on_frame() decides.
    [[nodiscard]] bool predict(const std::byte* frame, RxPrediction& out) const noexcept;
    /// Tells whether a frame is whole, and the next of its stream. The prediction holds, and its
    /// head matches the frame. octets: at least kFrameOctetsMin. False: on_frame() decides.
    [[nodiscard]] bool is_next(const RxPrediction& prediction, const std::byte* frame,
                               std::size_t octets, wire::ShortBody& out) const noexcept;
    /// Stands for on_frame(), front() and pop() of a frame that is_next(). The message goes to the
    /// client now. The caller counts Counter::data_received. False: has_tx() is as before.
    bool take_next(const RxPrediction& prediction, const wire::ShortBody& frame,
                   Nanos now) noexcept;
    /// Fails the process if the prediction does not hold.
    void check_prediction(const RxPrediction& prediction) const;
    void check_prediction(const TxPrediction& prediction) const;
    /// Tells whether the frame's packet would be the only one that is ready now: the next in order
    /// of its stream, for this member, while no packet of any source waits.
    [[nodiscard]] bool is_next(const wire::FrameView& frame) const noexcept;
    /// A rank whose ready queue is not empty, round robin; kNoRank: none.
    [[nodiscard]] Rank next_source() noexcept { return receiver_.next_source(); }
    /// Head of a source's ready queue; false: empty.
    [[nodiscard]] bool front(Rank source, ReadyPacket& out) const noexcept {
        return receiver_.front(source, out);
    }
    /// Copies the payload of the source's first ready packet into its frame if it lies elsewhere.
    void pull_front(Rank source) noexcept { receiver_.pull_front(source); }
    /// True: another packet of that source is ready.
    bool pop(Rank source, Nanos now) { return receiver_.pop(source, now); }
    /// Tells that the client has a receive pending that names this source alone (URTP §3: REQ on
    /// receive). Idempotent; disarmed by the next packet in order from it. Returns true if packets
    /// became ready (Params::ready_slot).
    bool expect(Rank source, Nanos now);

    // --- time and ends
    [[nodiscard]] Nanos next_timer() const noexcept {
        return context_.timers.next();
    }  ///< kNever: none
    void on_timer(Nanos now);
    /// Arms again the timers that are due although nothing is: what they were armed for has moved.
    /// Changes nothing else. Returns next_timer(); if that is due, on_timer() decides.
    Nanos put_off_timers(Nanos now) noexcept;
    /// A peer left or died: its streams end, group streams go on without it.
    void peer_gone(Rank rank, EventKind kind, Nanos now);
    /// All that the engine asks after it touched a member, in one call.
    struct Outlook {
        Nanos timer = kNever;  ///< next_timer()
        bool event = false;    ///< poll_event() has one
        bool tx = false;       ///< has_tx()
    };
    [[nodiscard]] Outlook outlook() const noexcept {
        return {context_.timers.next(), sender_.has_news() || sessions_.has_news(), has_tx()};
    }
    [[nodiscard]] bool poll_event(Event& out) noexcept;
    /// Says how long a member may hold up a group's stream of this one. Until then:
    /// Params::hold_limit, and none is excluded. Allocates.
    void set_hold(HoldRules rules) { context_.hold = std::move(rules); }
    /// Asks some stream that retains packets for acknowledgement: there is no segment for a new
    /// packet.
    void want_segments(Nanos now) noexcept;
    /// Copies into its frames what they refer to (port/segment.h): that memory may go.
    void pull_tails() noexcept;
    /// Reports that a frame of next_tx() could not be sent, and was dropped. Only the profile
    /// detect tells of it.
    void send_failed() noexcept;
    /// Reports the same of a known frame. True: it was a packet of this member. It is sent again at
    /// once, unless the profile repairs nothing: then an event reports it. That is no congestion.
    bool send_failed(const wire::FrameView& frame, Nanos now) noexcept;
    /// Tells whether a transmitted packet is forgotten, so that transmission itself makes space for
    /// more (profile detect).
    [[nodiscard]] bool forgets() const noexcept { return !context_.params().acknowledged; }
    /// A packet of whole messages holds a list of them (profile pack).
    [[nodiscard]] bool packs() const noexcept { return context_.params().packs; }
    /// Nothing unacknowledged in any stream, nothing queued for the wire.
    [[nodiscard]] bool drained() const noexcept;
    /// True if window and credit of the unicast stream to that peer admit a packet, and nothing
    /// paces or repairs it.
    [[nodiscard]] bool is_open(Rank peer) const noexcept;
    /// All packets of the unicast stream to that peer are acknowledged.
    [[nodiscard]] bool drained(Rank peer) const noexcept;
    /// The member is of no job, and open for links.
    [[nodiscard]] bool for_links() const noexcept { return sessions_.for_links(); }

    // --- figures for readers; no round pays for them
    /// Returns the repairs and requests with all peers.
    [[nodiscard]] const RepairCounts& repair_counts() const noexcept { return context_.counts; }
    /// Adds to each peer's number the packets that it has not acknowledged, or that are not sent.
    /// by_rank: size() numbers. O(streams + members of groups).
    void add_unacked(std::span<std::uint32_t> by_rank) const noexcept;
    /// Returns the payload of the packets that some destination has not acknowledged, or that are
    /// not sent; a packet to a group counts once. O(streams + packets).
    [[nodiscard]] std::uint64_t unacked_bytes() const noexcept;

    /// Exports the state, or imports it into a new transport with the same configuration and
    /// roster (docs/design/UPGRADE.md). If an import fails, only the destructor may follow. All
    /// predictions end.
    void fields(state::Archive& archive);
    /// Fails the process if an invariant of any part is broken. O(peers + packets held).
    void check_invariants() const;

private:
    // urtp/state/transport.cc
    void group_names(state::Archive& archive);
    void session_names(state::Archive& archive);
    void group_streams(state::Archive& archive, Group& group);
    void timer_fields(state::Archive& archive);
    [[nodiscard]] Timer* timer_named(TimerOwner kind, Rank rank, StreamId stream) noexcept;
    /// Returns the rank's session, made on first contact; nullptr: it is gone, or vacant.
    Session* session_of(Rank rank);
    [[gnu::noinline]] Session* open_session(Rank rank);
    TxStream* open_stream(StreamId stream, Admission& why);
    void on_short_ack(const wire::AckEntry& entry, Session& session, Nanos now) noexcept;
    void on_any_ack(const wire::AckEntry& entry, Session& session, Nanos now) noexcept;
    bool on_next_ack(const wire::AckEntry& entry, const RxPrediction& prediction, Session& session,
                     Nanos now) noexcept;
    bool take(const wire::FrameView& frame, Segment* segment, Session& session, Nanos now);
    void on_flow(const wire::FrameView& frame, Session& session, Nanos now) noexcept;
    void on_group_frame(const wire::FrameView& frame, Session& session, Nanos now);
    Segment* send_control(Nanos now);
    void tail_timer(TxStream& tx, Nanos now);
    [[nodiscard]] RxStream* group_stream(GroupHandle handle, Session& session) const noexcept;
    void name_holders(TxStream& tx, Nanos now);

    Context context_;
    Sessions sessions_;
    ControlQueue control_;
    Receiver receiver_;
    Sender sender_;
};

}  // namespace ulc::urtp
