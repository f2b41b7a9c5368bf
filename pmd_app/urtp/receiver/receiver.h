// SPDX-License-Identifier: BSD-3-Clause
// The receiving half of a transport: puts packets in order (docs/PROTOCOL.md §4, §5), asks for what
// is missing, and tells sources where their streams stand.
//
//   order.cc        a packet joins its source's ready queue, is held, or is dropped
//   told.h          a packet in order, and the acknowledgement of it; inline, for urtp/fast.h
//   acknowledge.cc  acknowledgements and credit
//   request.cc      gaps, and receives that wait for a source
//   streams.cc      streams begin and end; nodes of the store
#pragma once

#include "urtp/context.h"
#include "urtp/control_queue.h"
#include "urtp/receiver/ordering.h"
#include "urtp/receiver/rx_room.h"
#include "urtp/receiver/rx_store.h"
#include "urtp/sessions.h"

namespace ulc::urtp {

class Receiver {
public:
    Receiver(Context& context, Sessions& sessions, ControlQueue& control);  ///< these outlive it
    ~Receiver();  ///< drops every segment that it holds
    Receiver(const Receiver&) = delete;

    // --- streams
    /// The session was made: its unicast stream begins. Allocates.
    void begin(Session& session, const LinkEnds& ends);
    /// Returns the session's stream in the group, made at need; nullptr: no member.
    RxStream* group_stream(Group& group, Session& session);
    /// The peer is gone: drops what is held; packets in order stay deliverable.
    void end(Session& session, Nanos now) noexcept;
    /// No packet of the group waits for others. Before forget().
    [[nodiscard]] static bool may_forget(const Group& group) noexcept;
    void forget(Group& group) noexcept;
    void forget(Session& session) noexcept;  ///< it is gone, and nothing of it is ready

    // --- frames of a live session. Each bool: the segment was kept.
    bool on_packet(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    bool on_mcast(const wire::FrameView& frame, Segment* segment, Session& session, Nanos now);
    void on_probe(const wire::FrameView& frame, Session& session, Nanos now);
    [[nodiscard]] bool is_next(const wire::FrameView& frame) const noexcept;  ///< as in Transport
    // The conditions of take_clear(), in two parts, for a prediction (urtp/prediction.h).
    [[nodiscard]] bool is_predictable(const RxStream& rx) const noexcept;
    [[nodiscard]] bool is_next(const RxStream& rx, Seq seq) const noexcept;
    /// Takes a packet without a node: it is next in order, and nothing waits.
    void take_clear(RxStream& rx, bool ack_now, Nanos now) noexcept;
    [[nodiscard]] bool may_pass(const Session& session, Seq seq) const noexcept;
    void take_passed(RxStream& rx, Nanos now) noexcept;  ///< without a frame, nor an answer

    // --- packets in order (as in Transport)
    [[nodiscard]] Rank next_source() noexcept;
    [[nodiscard]] bool front(Rank source, ReadyPacket& out) const noexcept;
    void pull_front(Rank source) noexcept;
    bool pop(Rank source, Nanos now);
    // --- waiting
    /// A pending receive names the source. Returns true if that made packets ready.
    bool expect(Session& session, Nanos now);
    void on_timer(RxStream& rx, Nanos now) noexcept;
    /// Returns when the stream's timer is to fire; kNever: nothing waits for it.
    [[nodiscard]] static Nanos deadline(const RxStream& rx) noexcept;
    void on_timer(Session& session, Nanos now);

    // --- frames out
    /// FLOW, REQ or the acknowledgements of its session; nullptr: no segment.
    Segment* speak(RxStream& rx, Nanos now) noexcept;
    /// An acknowledgement that rides on DATA to its source; in mid-message only one nearly due.
    bool piggyback(Session& session, bool last, wire::AckEntry& out, Nanos now) noexcept;
    bool piggyback_next(Session& session, bool whole_credit, wire::AckEntry& out,
                        Nanos now) noexcept;
    [[nodiscard]] bool grants_whole_window(const Session& session) const noexcept;

    // --- for receive modes: ends of a packet that is not next in order
    bool take_in_order(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    bool hold(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    bool put_aside(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    void lose(RxStream& rx, std::uint32_t packets) noexcept;  ///< they do not come again
    static void advance(RxStream& rx, Nanos arrived) noexcept;

    // --- for policies: duties of a stream
    [[nodiscard]] const Params& params() const noexcept { return context_.params(); }
    void count(Counter id) noexcept { context_.count(id); }
    void speak_later(Session& session) noexcept { control_.push(session); }
    void make_ack_due(RxStream& rx) noexcept;
    void acknowledge_by(RxStream& rx, Nanos at) noexcept;
    void make_request_due(RxStream& rx, bool all) noexcept;
    void ask_for_gap(RxStream& rx, bool new_gap, Nanos now) noexcept;
    void ask_later(RxStream& rx, Nanos now) noexcept;  ///< dropped, the store was full
    void stop_asking(RxStream& rx) noexcept;
    /// A REQ or NACK for what is missing goes now: when it is repeated, and whether it is timed.
    void asked(RxStream& rx, Nanos now) noexcept;
    [[nodiscard]] bool holds(const RxStream& rx, Seq seq) const noexcept {
        return store_.find(&rx, seq) != nullptr;
    }
    [[nodiscard]] RxRoom& room() noexcept { return room_; }
    /// Tells the first starved source of free nodes if it is worth a frame.
    void offer_room() noexcept;
    RxStream* find_or_make(StreamId stream, Session& session);
    void fields(state::Archive& archive);  ///< urtp/state/, after the streams were made
    /// Fails the process if an invariant is broken. O(streams + packets held).
    void check_invariants() const;

private:
    void ready_fields(state::Archive& archive, Session& session);
    void held_fields(state::Archive& archive, RxStream& rx);
    void packet_fields(state::Archive& archive, RxNode& node);
    void begin(RxStream& rx, StreamId id, std::uint32_t window, Seq first);
    void end(RxStream& rx) noexcept;
    void keep_copy(RxNode& node, Session& session);
    RxNode* take_node(RxStream& rx, Seq seq, bool in_order) noexcept;
    void free_node(Session& session, RxNode& node) noexcept;
    [[nodiscard]] Judgement judge(RxStream& rx, Seq seq, const wire::AfterEntry* after,
                                  std::uint8_t count) noexcept;
    void join(RxStream& rx, RxNode& node) noexcept;
    void put_in_slot(Session& session, Nanos now) noexcept;
    void empty_slot(Session& session) noexcept;
    void arrived(RxStream& rx, Nanos at) noexcept;
    bool drain(RxStream& rx, Nanos now) noexcept;
    void unblock(Session& session, Nanos now) noexcept;
    void moved(RxStream& rx, Nanos now) noexcept;
    wire::AckEntry tell(RxStream& rx, Nanos now) noexcept;
    wire::AckEntry tell(RxStream& rx, bool plain, Nanos now) noexcept;
    bool piggyback_any(Session& session, wire::AckEntry& out, Nanos now) noexcept;
    Segment* send_ack(Session& session, Nanos now);
    Segment* send_request(RxStream& rx, Nanos now);
    Segment* send_flow(RxStream& rx) noexcept;
    void answer(RxStream& rx) noexcept;
    void answer_in_slot(RxStream& rx, Nanos now) noexcept;
    void expect_ends(Session& session, Nanos now) noexcept;
    void arm(RxStream& rx) noexcept;
    void on_late(RxStream& rx, Nanos now) noexcept;
    void count_duplicate(RxStream& rx, Seq seq) noexcept;
    Context& context_;
    Sessions& sessions_;
    ControlQueue& control_;
    RxStore store_;
    RxRoom room_;
    const bool takes_short_;          ///< the configuration leaves packets the fast path
    const bool in_turn_;              ///< Params::receives_in_turn
    const bool ready_slot_;           ///< Params::ready_slot
    const bool plain_acks_;           ///< credit and acknowledgements are the default's
    const std::uint32_t plain_step_;  ///< its next acknowledgement, from a window of credit
    const Nanos ack_delay_;           ///< Context::ack_delay(0)
    std::uint32_t expecting_ = 0;     ///< sessions that a pending receive names
    List<Session, &Session::awaited_link> awaited_;  ///< these, in the order of the receives
    List<Session, &Session::ready_link> ready_;
};

}  // namespace ulc::urtp
