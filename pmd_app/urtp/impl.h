// The parts of a Member, and which file holds which verb. Private to urtp/.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/bounded.h"
#include "base/prng.h"
#include "urtp/member.h"
#include "urtp/ordering.h"
#include "urtp/policy.h"
#include "urtp/session.h"
#include "wire/build.h"
#include "wire/parse.h"

namespace ulc::urtp {

inline constexpr std::size_t kGroupsMax = 1024;
inline constexpr std::uint8_t kPatienceMax = 6;       ///< the most that Params::ack_delay doubles
inline constexpr std::uint8_t kReplyPatienceMax = 2;  ///< the same of a wait for an answer
inline constexpr std::uint32_t kControlRunMax = 16;   ///< control frames before a packet's turn
inline constexpr std::uint16_t kDelayUnknown =
    0xffff;  ///< AckEntry::delay_us that gives no RTT sample
/// Transmissions of a packet up to which it is merely lost, by one of many or again; beyond, repetitions crowd each other out.
inline constexpr int kBadLuck = 4;
/// The same, up to which it says nothing about what is behind it.
inline constexpr std::uint8_t kBlameless = 3;

struct Member::Impl {
    Impl(const MemberConfig& config, std::span<const Peer> roster, const SegmentPool& pool,
         Counters& counters);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    // --- member.cc: sessions, groups, ends
    /// Makes it on first contact; nullptr: it is gone. rank < size.
    Session* session_of(Rank rank) {
        Session* session = sessions_[rank].get();
        if (session == nullptr) [[unlikely]] {
            session = make_session(rank);
            if (session == nullptr) return nullptr;
        }
        return session->gone ? nullptr : session;
    }
    Session* make_session(Rank rank);  ///< nullptr: a vacant slot
    [[nodiscard]] Seq first_ack(const RxStream& rx) const noexcept;
    Group* find_group(GroupHandle handle) noexcept;
    /// The stream of that source in the group; nullptr: none came yet. A source's groups are few.
    [[nodiscard]] static RxStream* heard(const Group& group, Session& session) noexcept {
        RxStream* rx = session.unicast.sibling;
        while (rx != nullptr && rx->group != &group)
            rx = rx->sibling;
        return rx;
    }
    RxStream* group_stream(Group& group, Session& session);  ///< makes it; nullptr: not a member
    Err add_group(GroupHandle handle, std::span<const Rank> ranks);
    Err remove_group(GroupHandle handle);
    void peer_gone(Rank rank, EventKind kind, Nanos now);
    void end_receiving(RxStream& rx) noexcept;
    void end_sending(TxStream& tx, Nanos now) noexcept;
    void on_timer(Nanos now);
    bool poll_event(Event& out) noexcept;
    [[nodiscard]] bool drained() const noexcept;
    [[nodiscard]] Nanos random_below(Nanos bound) noexcept {
        return static_cast<Nanos>(random_.below(static_cast<std::uint64_t>(bound)));
    }

    // --- links.cc: peers that come and go
    Err link(Rank slot, const Peer& peer, const LinkEnds& ends);
    Err unlink(Rank slot) noexcept;
    [[nodiscard]] bool for_links() const noexcept { return config_.rank == kNoRank; }
    [[nodiscard]] bool is_vacant(Rank rank) const noexcept {
        return for_links() && ends_[rank].self == kNoRank;
    }
    /// The name under which the peer knows this member.
    [[nodiscard]] Rank name_at(Rank peer) const noexcept {
        return for_links() ? ends_[peer].self : config_.rank;
    }
    [[nodiscard]] LinkEnds ends_of(Rank peer) const noexcept {
        return for_links() ? ends_[peer]
                           : LinkEnds{config_.rank, config_.first_seq, config_.first_seq};
    }

    // --- submit.cc: admission and composition of new packets
    TxStream* existing_tx_stream(StreamId stream) noexcept;
    TxStream* make_tx_stream(StreamId stream, Admission& why);  ///< nullptr: why not
    void begin_rationed(TxStream& tx);
    Admission may_send(StreamId stream, std::uint64_t subset, bool has_subset, Nanos now,
                       const MessageSize& size);
    PacketPlan plan(const PacketMeta& meta, Nanos now);
    [[nodiscard]] wire::Head head_of(const TxStream& tx) const noexcept;
    void commit(const PacketMeta& meta, const PacketPlan& plan, Segment* segment,
                std::uint32_t length, Nanos now);
    using Blockers = FixedVector<TxStream*, wire::kAfterEntriesMax + 1>;
    /// Streams that the next packet of this one must name; more than kAfterEntriesMax: not all.
    void find_predecessors(const TxStream& stream, std::uint64_t subset, bool has_subset,
                           Blockers& out) const noexcept;
    [[nodiscard]] bool shares_unacknowledged(const TxStream& earlier, const TxStream& stream,
                                             std::uint64_t subset, bool has_subset) const noexcept;

    // --- transmit.cc: what goes to the wire, in which order
    Segment* next_tx(Nanos now);
    /// The last control frame is still in the port (Params::control_one_by_one). Not for ever, since some devices report late.
    [[nodiscard]] bool control_waits(Nanos now) const noexcept {
        return config_.params.control_one_by_one &&
               departures_->left_at(control_ticket_) == kNever &&
               now - control_at_ < config_.params.control_wait_max;
    }
    [[nodiscard]] bool has_control() const noexcept {
        return !(control_.empty() && probes_.empty() && group_control_.empty());
    }
    [[nodiscard]] bool has_tx() const noexcept {
        return new_head_ != nullptr || has_control() || !repairing_.empty();
    }
    Segment* control_frame() noexcept;
    Segment* send_control(Nanos now);
    Segment* compose_control(Nanos now);
    static RxStream* next_to_speak(Session& session) noexcept;
    Segment* speak(RxStream& rx, Nanos now) noexcept;
    Segment* send_new(Nanos now);
    [[nodiscard]] wire::FrameHead head_from_us(wire::FrameType type) const noexcept;
    [[nodiscard]] wire::FrameHead head_to(Rank rank, wire::FrameType type) const noexcept;
    [[nodiscard]] wire::FrameHead head_to(const Group& group, wire::FrameType type) const noexcept;

    // --- repair.cc: packets to transmit again
    void queue_repair(TxStream& tx, Seq seq, std::uint16_t asker, Nanos due) noexcept;
    /// Receivers save little of what follows a loss, and no congestion control bounds the sender: what it repeats in vain it repeats
    /// ever more rarely, up to MaxSendWait, and less of it at once, or its repetitions would fill the path for ever.
    [[nodiscard]] bool backs_off(const TxStream& tx) const noexcept {
        return !config_.params.selective_repeat ||
               (tx.group != nullptr && tx.group->pcode != nullptr);
    }
    std::uint32_t may_repeat(TxStream& tx, Seq first, Nanos now) noexcept;
    /// Of a packet that is repeated for one before it: its own luck does not count yet.
    static void hold_blameless(TxSlot& slot) noexcept {
        slot.transmissions =
            std::min(slot.transmissions, static_cast<std::uint8_t>(kBlameless - 1));
    }
    void forget_repair(TxStream& tx, TxSlot& slot) noexcept;
    bool find_repair(TxStream& tx) noexcept;
    Segment* send_repair(Nanos now);
    TxStream* stream_of(const wire::FrameView& frame) noexcept;
    bool send_failed(const wire::FrameView& frame, Nanos now) noexcept;
    Segment* repeat(TxStream& tx, TxSlot& slot, Nanos now);

    // --- receive.cc: putting packets in order
    void on_frame(const wire::FrameView& frame, Segment* segment, Nanos now);
    bool on_packet(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    bool take_in_order(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    void keep_copy(RxNode& node, Session& session);
    bool hold(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    RxNode* take_node(RxStream& rx, Seq seq, bool in_order) noexcept;
    void free_node(Session& session, RxNode& node) noexcept;
    void slot_returned(Session& session, StreamId stream) noexcept;
    [[nodiscard]] Judgement judge(RxStream& rx, Seq seq, const wire::AfterEntry* after,
                                  std::uint8_t count) noexcept;
    void join(RxStream& rx, RxNode& node) noexcept;
    void advance(RxStream& rx, Nanos arrived) noexcept;
    bool drain(RxStream& rx, Nanos now) noexcept;
    void unblock(Session& session, Nanos now) noexcept;
    void moved(RxStream& rx, Nanos now) noexcept;
    bool front(Rank source, ReadyPacket& out) noexcept;
    bool pop(Rank source, Nanos now);
    [[nodiscard]] bool is_next(const wire::FrameView& frame) noexcept;
    void pull_front(Rank source) noexcept;
    Rank next_source() noexcept;

    // --- acknowledge.cc: acknowledgements and credit, both directions
    void make_ack_due(RxStream& rx) noexcept;
    void acknowledge_moved(RxStream& rx, Nanos now) noexcept;
    wire::AckEntry tell(RxStream& rx, Nanos now) noexcept;
    bool piggyback(Session& session, bool last, wire::AckEntry& out, Nanos now) noexcept;
    Segment* send_ack(Session& session, Nanos now);
    [[nodiscard]] std::uint32_t credit_of(RxStream& rx) noexcept {
        return policy_.credit(*this, rx);
    }
    void room_returned(Nanos now) noexcept;
    void on_ack_frame(const wire::FrameView& frame, Session& session, Nanos now) noexcept;
    TxStream* sending(StreamId stream, const Session& session, std::uint32_t& at) noexcept;
    TxStream* on_ack(const wire::AckEntry& entry, Session& session, std::uint32_t& at,
                     Nanos now) noexcept;
    bool nothing_sent(const wire::AckEntry& entry, const Session& session) noexcept;
    void let_go(TxStream& tx) noexcept;
    void release_acknowledged(TxStream& tx, Nanos now) noexcept;

    // --- policies/room.cc: reservations and refusals
    Segment* send_reserve(TxStream& tx) noexcept;
    Segment* send_flow(RxStream& rx) noexcept;
    void end_keeping(RxStream& rx) noexcept;

    // --- policies/detect.cc
    void lose(RxStream& rx, std::uint32_t packets) noexcept;
    bool take_after_loss(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    Segment* send_once(TxSlot& slot) noexcept;

    // --- profiles/pcode/, by verb
    [[nodiscard]] bool flow_window_open(Group& group, Nanos now) noexcept;
    std::uint32_t next_global(Group& group) noexcept;
    bool on_counted(const wire::FrameView& frame, Segment* segment, RxStream& rx, Nanos now);
    void counted_in_order(RxStream& rx, std::uint32_t global, Nanos now) noexcept;
    void group_counters_moved(Group& group, Nanos now) noexcept;
    void make_status_due(Group& group, bool wanted) noexcept;
    Segment* send_status(Group& group) noexcept;
    void status_of_ours(Group& group, std::uint32_t at, Seq next, Nanos now) noexcept;
    void on_status(const wire::FrameView& frame, Session& session, Nanos now);
    void learn_tail(Group& group, Session& session, Seq end, Nanos now);
    Segment* send_nack(RxStream& rx, Nanos now) noexcept;
    Segment* send_global_nack(Group& group) noexcept;
    Segment* send_group_control() noexcept;
    void group_timer(Group& group, Nanos now) noexcept;
    void resend(TxStream& tx, Seq seq, Nanos now) noexcept;
    void on_nack(const wire::FrameView& frame, Session& session, Nanos now) noexcept;

    // --- congestion.cc: for policies
    [[nodiscard]] CongestionLimits congestion_limits(const TxStream& tx) const noexcept;
    /// `window` packets may be under way from now on.
    void bound_stream(TxStream& tx, double window, Nanos now) noexcept;
    /// A round trip has passed since the last cut: what is heard now may be its effect.
    [[nodiscard]] bool may_cut(const TxStream& tx, Nanos now) const noexcept;

    /// How long an acknowledgement waits for company after so many that found none, or at the sender, how long it expects
    /// its receiver to wait.
    [[nodiscard]] Nanos ack_delay(std::uint8_t patience) const noexcept {
        const Params& p = config_.params;
        if (p.ack_delay == kNever) return kNever;
        return std::min(p.ack_delay << patience, std::max(p.ack_delay, p.ack_delay_max));
    }

    /// The same at the sender where acknowledgements only ride on data: as long as the application takes to answer.
    [[nodiscard]] Nanos reply_delay(std::uint8_t patience) const noexcept;  // probe.cc

    // --- request.cc: REQ on both sides
    void on_gap(RxStream& rx, bool new_gap, Nanos now) noexcept;
    void ask_later(RxStream& rx, Nanos now) noexcept;
    void make_request_due(RxStream& rx, bool all) noexcept;
    void stop_asking(RxStream& rx) noexcept;
    Segment* send_request(RxStream& rx, Nanos now);
    void repaired(RxStream& rx, Nanos arrived) noexcept;
    void on_request(const wire::FrameView& frame, Session& session, Nanos now) noexcept;
    [[nodiscard]] bool asks_too_soon(const TxStream& tx, const TxSlot& slot, bool overtaken,
                                     Nanos now) const noexcept;
    void request_one(TxStream& tx, Seq seq, std::uint32_t at, bool overtaken, Nanos now) noexcept;
    void expect(Rank source, Nanos now);
    void expect_timer(Session& session, Nanos now);
    void expect_ends(Session& session, Nanos now) noexcept;
    void receive_timer(RxStream& rx, Nanos now) noexcept;
    void arm(RxStream& rx) noexcept;
    [[nodiscard]] Nanos first_wait(const RxStream& rx) const noexcept;

    // --- probe.cc: liveness of the tail, death
    [[nodiscard]] Nanos tail_wait(const TxStream& tx) const noexcept;
    void restart_probe(TxStream& tx, Nanos now) noexcept;
    void hasten_probe(TxStream& tx, Nanos now) noexcept;
    void probe_now(TxStream& tx, Nanos now) noexcept;
    void want_segments(Nanos now) noexcept;
    /// found(segment) for each that a stream retains.
    template <typename Found>
    void each_retained(Found found) noexcept {
        const auto look = [&found](const std::unique_ptr<TxStream>& tx) {
            if (tx == nullptr) return;
            for (Seq seq = tx->freed; seq != tx->tail; ++seq)
                found(*tx->slot(seq).segment);
        };
        for (const auto& group : groups_)
            look(group->tx);
        for (const auto& session : sessions_)
            if (session != nullptr) look(session->tx);
    }
    void send_timer(TxStream& tx, Nanos now);
    bool count_unanswered(Session& session, Nanos now) noexcept;
    Segment* send_probe(TxStream& tx, Nanos now);
    Segment* send_doubt(Session& session) noexcept;
    void on_probe(const wire::FrameView& frame, Session& session, Nanos now);
    void answer(RxStream& rx) noexcept;
    void answer_in_slot(RxStream& rx, Nanos now) noexcept;

    void count(Counter id, std::uint64_t n = 1) noexcept { counters_.add(id, n); }

    MemberConfig config_;  ///< params as the profile tunes them; constant after construction
    Policy policy_;
    const Departures* departures_;
    const SegmentPool pool_;
    Counters& counters_;
    Prng random_;
    std::vector<Peer> roster_;
    std::vector<LinkEnds> ends_;                      ///< by slot; empty in a job
    const wire::Head data_head_;                      ///< of DATA, but for whom it is to
    std::vector<std::unique_ptr<Session>> sessions_;  ///< by rank; made lazily
    std::vector<GroupHandle>
        group_handles_;  ///< parallel to groups_: the lookup touches only these
    std::vector<std::unique_ptr<Group>> groups_;
    std::size_t last_group_ = 0;
    RxStore store_;
    std::uint32_t kept_ =
        0;  ///< free nodes of the store that are kept for somebody (policies/room.h)
    Timers timers_;

    List<TxStream, &TxStream::active_link> active_unicast_;
    List<TxStream, &TxStream::active_link> active_groups_;
    List<TxStream, &TxStream::probe_link> probes_;
    List<TxStream, &TxStream::repair_link> repairing_;
    std::uint32_t control_run_ = 0;     ///< control frames sent since the last packet
    std::uint32_t control_ticket_ = 0;  ///< of the last control frame (departures.h)
    Nanos control_at_ = 0;              ///< when the port was given it
    std::uint32_t expecting_ = 0;       ///< sessions that a pending receive names
    List<Session, &Session::control_link> control_;
    List<Session, &Session::news_link> news_;        ///< with something for poll_event()
    List<Session, &Session::awaited_link> awaited_;  ///< named by pending receives, in their order
    std::uint32_t sends_failed_ = 0;
    List<Group, &Group::control_link> group_control_;
    List<Session, &Session::ready_link> ready_;
    List<Session, &Session::starved_link> starved_;
    TxSlot* new_head_ = nullptr;  ///< committed, never transmitted, in commit order
    TxSlot* new_tail_ = nullptr;

    /// From may_send() by way of plan() to commit().
    struct Draft {
        TxStream* stream = nullptr;  ///< that was admitted
        Blockers predecessors;       ///< of its next packet
        std::uint8_t flags = 0;
        wire::Extensions extensions;
    } draft_;
};

}  // namespace ulc::urtp
