// SPDX-License-Identifier: BSD-3-Clause
// The sending half of a transport: admits packets, numbers them, retains them until all have
// acknowledged, and repeats what is asked for (docs/PROTOCOL.md §4). Its files:
//   fast.cc      a whole short message, in one function
//   submit.cc    admission, headers and numbers of new packets (§5: `after` entries)
//   transmit.cc  new packets in the order of their commits; streams begin and end
//   answers.cc   acknowledgements and requests of the receivers
//   tail.cc      the tail's timer, and whether a silent peer lives
// Its parts: Repairs (packets to transmit again), TailWait (how long the tail waits for news).
#pragma once

#include "urtp/context.h"
#include "urtp/control_queue.h"
#include "urtp/prediction.h"
#include "urtp/receiver/receiver.h"
#include "urtp/sender/draft.h"
#include "urtp/sender/repairs.h"
#include "urtp/sender/tail_wait.h"
#include "urtp/sessions.h"

namespace ulc::urtp {

class Sender {
public:
    Sender(Context& context, Sessions& sessions, ControlQueue& control, Receiver& receiver);
    ~Sender();  ///< drops every segment that it retains; all parts outlive it
    Sender(const Sender&) = delete;

    // --- streams
    /// Returns the stream; nullptr: not begun, or without receivers.
    [[nodiscard]] TxStream* find(StreamId stream) const noexcept;
    TxStream& begin(Session& session);  ///< once; allocates
    TxStream& begin(Group& group);      ///< once; allocates
    /// The destination left or died. The stream ends with its last one.
    void remove_destination(TxStream& tx, std::uint16_t index, Nanos now);
    void end(TxStream& tx, Nanos now) noexcept;
    void forget(TxStream& tx) noexcept;  ///< it has nothing unacknowledged; takes it off all lists

    // --- packets (as in Transport)
    Admission may_send(TxStream& tx, std::uint64_t subset, bool has_subset, Nanos now,
                       const MessageSize& size);
    PacketPlan plan(const PacketMeta& meta, Nanos now);
    /// MTU of the packets of a stream.
    [[nodiscard]] std::uint16_t mtu_of(const TxStream& tx) const noexcept;
    void commit(const PacketMeta& meta, const PacketPlan& plan, Segment* segment,
                std::uint32_t length, Nanos now);
    [[nodiscard]] std::uint32_t short_octets_max() const noexcept { return short_octets_max_; }
    bool queue_next(const TxPrediction& prediction, const ShortMessage& message,
                    Nanos now) noexcept;
    Segment* transmit_next(const TxPrediction& prediction, const ShortMessage& message,
                           Nanos now) noexcept;
    [[nodiscard]] TxPrediction predict(Session& session) const noexcept;
    [[nodiscard]] TxPrediction predict(const Group& group) const noexcept;
    [[nodiscard]] bool may_pass(const TxStream& tx, Nanos now) const noexcept;  ///< Transport::pass
    [[nodiscard]] bool has_packets() const noexcept {
        return new_head_ != nullptr || !repairs_.empty();
    }
    /// The stream's acknowledgements may be taken by take_news().
    [[nodiscard]] bool may_predict(const TxStream& tx) const noexcept {
        return takes_short_ && tx.members == 1;
    }
    Segment* next_new(Nanos now);
    Segment* next_repair(Nanos now);
    void want_segments(Nanos now) noexcept;
    bool send_failed(const wire::FrameView& frame, Nanos now) noexcept;
    void note_failed() noexcept { ++sends_failed_; }
    [[nodiscard]] bool has_news() const noexcept {
        return sends_failed_ > 0 || repairs_.has_narrow();
    }
    bool poll_event(Event& out) noexcept;
    void pull_tails() noexcept;
    [[nodiscard]] bool drained() const noexcept {
        return active_unicast_.empty() && active_groups_.empty() && !has_packets();
    }

    // --- frames of receivers
    void on_ack_frame(const wire::FrameView& frame, Session& session, Nanos now) noexcept;
    bool take_ack(const wire::AckEntry& entry, Session& session, TxStream& tx, std::uint32_t at,
                  Nanos now) noexcept;
    bool take_news(const wire::AckEntry& entry, TxStream& tx, Nanos now) noexcept;
    void on_request(const wire::FrameView& frame, Session& session, Nanos now) noexcept;
    /// Takes one entry. Returns its stream, and the destination's index in it; nullptr: none.
    TxStream* on_ack(const wire::AckEntry& entry, Session& session, std::uint32_t& at,
                     Nanos now) noexcept;

    // --- the tail
    /// The stream's timer fired. True: it is time to ask for news; each destination that
    /// TxStream::lacks() something and is_dead() goes before ask_for_news().
    bool on_timer(TxStream& tx, Nanos now) noexcept;
    /// Returns when the stream's timer is to fire. now: on_timer() says.
    [[nodiscard]] static Nanos deadline(const TxStream& tx, Nanos now) noexcept;
    /// Counts a question without answer. True: there were enough for long enough, and the peer's
    /// node is silent as well.
    bool is_dead(Session& session, Nanos now) noexcept;
    void ask_for_news(TxStream& tx, Nanos now);

    // --- for policies
    [[nodiscard]] const TransportConfig& config() const noexcept { return context_.config; }
    [[nodiscard]] const Params& params() const noexcept { return context_.params(); }
    [[nodiscard]] Repairs& repairs() noexcept { return repairs_; }
    void count(Counter id) noexcept { context_.count(id); }
    void speak_later(TxStream& tx) noexcept { control_.push(tx); }
    /// Returns the stream that a peer names, and the peer's index in it; nullptr: no receiver.
    TxStream* sending(StreamId stream, const Session& session, std::uint32_t& at) noexcept;
    void probe_now(TxStream& tx, Nanos now) noexcept;
    void request_one(TxStream& tx, Seq seq, std::uint32_t at, bool overtaken, Nanos now) noexcept;
    void release_acknowledged(TxStream& tx, Nanos now) noexcept;

    void fields(state::Archive& archive);  ///< urtp/state/, after the streams were made
    void check_invariants() const;  ///< fails the process if one is broken; O(packets retained)

private:
    void begin(TxStream& tx);
    void stream_fields(state::Archive& archive, TxStream& tx);
    void new_packets_fields(state::Archive& archive);
    void retain(TxStream& tx, Segment* segment, bool asks, Nanos now) noexcept;
    void build_short(const TxPrediction& of, const ShortMessage& message, bool asks,
                     Segment& segment, Nanos now) noexcept;
    [[nodiscard]] bool admits_short(const TxStream& tx, Nanos now) const noexcept;
    Segment* make_next(const TxPrediction& prediction, const ShortMessage& message, bool& asks,
                       Nanos now) noexcept;
    TxSlot& take_slot(TxStream& tx, Segment* segment, bool asks, Nanos now,
                      bool sent = false) noexcept;
    void keep_sent(TxStream& tx, Segment* segment, bool asks, Nanos now) noexcept;
    [[nodiscard]] bool is_alone(const TxStream& tx) const noexcept;
    void find_predecessors(const TxStream& stream, std::uint64_t subset, bool has_subset,
                           Draft::Blockers& out) const noexcept;
    Segment* send_once(TxSlot& slot) noexcept;
    [[nodiscard]] List<TxStream, &TxStream::active_link>& active(const TxStream& tx) noexcept {
        return tx.is_to_group() ? active_groups_ : active_unicast_;
    }
    void let_go(TxStream& tx) noexcept;
    void release_news(TxStream& tx, Nanos now) noexcept;
    void settle_news(TxStream& tx, Nanos now) noexcept;
    void wait_for_holders(TxStream& tx, Nanos now) noexcept;

    Context& context_;
    Sessions& sessions_;
    ControlQueue& control_;
    Receiver& receiver_;
    List<TxStream, &TxStream::active_link> active_unicast_;
    List<TxStream, &TxStream::active_link> active_groups_;
    TxSlot* new_head_ = nullptr;  ///< committed, never transmitted, in the order of the commits
    TxSlot* new_tail_ = nullptr;
    std::uint32_t sends_failed_ = 0;
    const bool takes_short_;  ///< the configuration leaves short messages the fast path
    const std::uint32_t short_octets_max_;
    TailWait tail_wait_;
    Repairs repairs_;
    Draft draft_;
};

}  // namespace ulc::urtp
