// SPDX-License-Identifier: BSD-3-Clause
// A transport's parts put together: frames go to the part that they are for, streams begin and end
// in several parts at once, and timers fire.
#include "urtp/transport.h"

#include <algorithm>

#include "base/fnv.h"
#include "urtp/fast.h"
#include "urtp/sender/questions.h"

namespace ulc::urtp {

namespace {

constexpr Departures kAllLeft;  ///< a port that says nothing
/// Questions in a row without answer that make a member silent rather than slow.
constexpr std::uint32_t kUnansweredSilent = 2;

std::uint64_t digest_of(std::string_view profile) noexcept {
    std::uint64_t hash = kFnvBasis;
    for (const char letter : profile)
        hash = fnv1a(hash, static_cast<unsigned char>(letter));
    return hash;
}

}  // namespace

Context::Context(const TransportConfig& of, const SegmentPool& segments, Counters& counted)
    : config(of),
      profile(digest_of(of.profile)),
      departures(of.departures != nullptr ? of.departures : &kAllLeft),
      arrivals(of.arrivals),
      pool(segments),
      counters(counted),
      prng(of.seed) {
    ULC_CHECK(resolve(of.profile, policy, config.params) == Err::kOk);
    config.profile = {};
    hold.limit = config.params.hold_limit;
    ULC_CHECK(std::has_single_bit(config.params.window));
}

Transport::Transport(const TransportConfig& config, std::span<const Peer> roster,
                     const SegmentPool& pool, Counters& counters)
    : context_(config, pool, counters),
      sessions_(context_, roster),
      control_(context_),
      receiver_(context_, sessions_, control_),
      sender_(context_, sessions_, control_, receiver_) {
    if (sessions_.for_links()) return;
    std::vector<Rank> all(roster.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<Rank>(i);
    ULC_CHECK(add_group(config.world, all) == Err::kOk);
}

/// Parts end one after another, and no timer may name an owner that is gone already.
Transport::~Transport() { context_.timers.clear(); }

/// An acknowledgement that was not predicted, out of the way of the fast path.
void Transport::on_any_ack(const wire::AckEntry& entry, Session& session, Nanos now) noexcept {
    on_short_ack(entry, session, now);
}

// --- sessions, groups and links

inline Session* Transport::session_of(Rank rank) {
    Session* session = sessions_.find(rank);
    if (session == nullptr) [[unlikely]]
        return open_session(rank);
    return session->gone ? nullptr : session;
}

Session* Transport::open_session(Rank rank) {
    if (sessions_.is_vacant(rank)) return nullptr;
    Session& session = sessions_.make(rank);
    receiver_.begin(session, sessions_.ends_of(rank));
    return &session;
}

Err Transport::link(Rank slot, const Peer& peer, const LinkEnds& ends) {
    return sessions_.link(slot, peer, ends);
}

/// The peer is gone, so its streams have ended: what is left are empty rings and places in lists.
Err Transport::unlink(Rank slot) noexcept {
    if (!sessions_.for_links() || slot >= sessions_.size() || sessions_.is_vacant(slot))
        return Err::kInvalid;
    if (!sessions_.may_unlink(slot)) return Err::kAgain;
    if (Session* session = sessions_.find(slot); session != nullptr) {
        if (session->tx != nullptr) sender_.forget(*session->tx);
        receiver_.forget(*session);
        control_.remove(*session);
    }
    sessions_.vacate(slot);
    return Err::kOk;
}

Err Transport::add_group(GroupHandle handle, std::span<const Rank> ranks) {
    Group* group = nullptr;
    if (const Err err = sessions_.add_group(handle, ranks, group); err != Err::kOk) return err;
    const auto make_rules = context_.policy.group_rules;
    group->rules = make_rules == nullptr
                       ? std::make_unique<GroupRules>()
                       : make_rules({context_, sessions_, control_, receiver_, sender_}, *group);
    return Err::kOk;
}

Err Transport::remove_group(GroupHandle handle) {
    Group* group = sessions_.find_group(handle);
    if (group == nullptr || handle == context_.config.world) return Err::kInvalid;
    if (group->tx != nullptr && group->tx->active()) return Err::kAgain;
    if (!Receiver::may_forget(*group)) return Err::kAgain;
    if (group->tx != nullptr) sender_.forget(*group->tx);
    receiver_.forget(*group);
    control_.remove(*group);
    sessions_.erase_group(*group);
    return Err::kOk;
}

void Transport::set_group_address(GroupHandle handle, const Mac& address) noexcept {
    if (Group* group = sessions_.find_group(handle); group != nullptr) group->address = address;
}
std::span<const Rank> Transport::members(GroupHandle handle) const noexcept {
    const Group* group = sessions_.find_group(handle);
    return group != nullptr ? std::span<const Rank>(group->ranks) : std::span<const Rank>();
}

namespace {

/// Counts the messages whose last packets wait for an acknowledgement.
std::uint32_t count_unacknowledged(const TxStream& tx) noexcept {
    std::uint32_t messages = 0;
    for (Seq seq = tx.base; seq != tx.tail; ++seq) {
        const std::byte* header = tx.slot(seq).segment->frame + sizeof(wire::EthernetHeader);
        const std::uint8_t flags = reinterpret_cast<const wire::Header*>(header)->flags;
        messages += (flags & wire::kFlagLast) != 0 ? 1 : 0;
    }
    return messages;
}

}  // namespace

void Transport::peer_gone(Rank rank, EventKind kind, Nanos now) {
    if (rank >= sessions_.size() || rank == context_.config.rank) return;
    Session* session = session_of(rank);
    if (session == nullptr) return;  // known already
    session->gone = true;
    session->gone_as = kind;
    session->gone_untold = true;
    sessions_.tell(*session);
    if (session->tx != nullptr) {
        if (context_.params().acknowledged) session->lost = count_unacknowledged(*session->tx);
        sender_.end(*session->tx, now);
    }
    for (const auto& group : sessions_.groups()) {
        const std::uint16_t index = group->index_of[rank];
        if (index == kNoRank) continue;
        group->rules->remove(index);
        if (group->tx != nullptr) sender_.remove_destination(*group->tx, index, now);
    }
    receiver_.end(*session, now);
    control_.remove(*session);
}

bool Transport::poll_event(Event& out) noexcept {
    return sender_.poll_event(out) || sessions_.poll_event(out);
}

// --- sending

/// The stream's first packet, or one that goes to no receiver: why is set then.
[[gnu::noinline]] TxStream* Transport::open_stream(StreamId stream, Admission& why) {
    why = Admission::kUnknown;
    if (!is_group(stream)) {
        if (stream >= sessions_.size() || stream == context_.config.rank ||
            sessions_.is_vacant(static_cast<Rank>(stream)))
            return nullptr;
        why = Admission::kPeerGone;
        Session* session = session_of(static_cast<Rank>(stream));
        if (session == nullptr) return nullptr;
        return session->tx != nullptr ? session->tx.get() : &sender_.begin(*session);
    }
    Group* group = sessions_.find_group(stream);
    if (group == nullptr) return nullptr;
    TxStream& tx = group->tx != nullptr ? *group->tx : sender_.begin(*group);
    why = Admission::kPeerGone;
    const bool alone = group->ranks.size() == 1;
    return tx.destinations > 0 || alone ? &tx : nullptr;
}

Admission Transport::may_send(StreamId stream, std::uint64_t subset, bool has_subset, Nanos now,
                              const MessageSize& size) {
    TxStream* tx = sender_.find(stream);
    if (tx == nullptr) [[unlikely]] {
        Admission why{};
        tx = open_stream(stream, why);
        if (tx == nullptr) return why;
    }
    return sender_.may_send(*tx, subset, has_subset, now, size);
}

bool Transport::lacks_window(StreamId stream, Nanos now) {
    const Session* session = find_session(stream);
    TxStream* tx = session != nullptr && !session->gone ? session->tx.get() : nullptr;
    return tx != nullptr && tx->takes_short &&
           sender_.may_send(*tx, 0, false, now, {}) == Admission::kWindow;
}

Segment* Transport::send_control(Nanos now) {
    const Turn turn = control_.next();
    Segment* segment = nullptr;
    switch (turn.kind) {
        case Turn::Kind::kNone:
            return nullptr;
        case Turn::Kind::kDoubt:
            segment = make_doubt(context_, sessions_, *turn.session);
            break;
        case Turn::Kind::kStream:
            segment = receiver_.speak(*turn.rx, now);
            break;
        case Turn::Kind::kProbe:
            segment = make_probe(context_, sessions_, *turn.tx, now);
            break;
        case Turn::Kind::kReserve:
            segment = make_reserve(context_, sessions_, *turn.tx);
            break;
        case Turn::Kind::kGroup:
            segment = turn.group->rules->speak();
            break;
    }
    if (segment != nullptr) control_.spoke(turn, now);
    return segment;
}

/// Control, then repairs, then new packets. But control frames leave packets a turn.
[[gnu::flatten]] Segment* Transport::next_tx(Nanos now) {
    const bool may_speak = !control_.waits(now);
    if (may_speak && control_.goes_first()) {
        if (Segment* segment = send_control(now)) {
            control_.extend_run();
            return segment;
        }
    }
    const bool had_their_turn = control_.end_run();
    if (Segment* segment = sender_.next_repair(now)) return segment;
    Segment* segment = sender_.next_new(now);
    return segment == nullptr && had_their_turn && may_speak ? send_control(now) : segment;
}

bool Transport::control_waits(Nanos now) const noexcept {
    return !control_.empty() && control_.waits(now);
}
void Transport::want_segments(Nanos now) noexcept { sender_.want_segments(now); }
void Transport::pull_tails() noexcept { sender_.pull_tails(); }
void Transport::send_failed() noexcept {
    if (!context_.params().acknowledged) sender_.note_failed();
}
bool Transport::send_failed(const wire::FrameView& frame, Nanos now) noexcept {
    return sender_.send_failed(frame, now);
}
bool Transport::drained() const noexcept { return sender_.drained() && control_.empty(); }

bool Transport::is_open(Rank peer) const noexcept {
    const Session* session = find_session(peer);
    const TxStream* tx = session != nullptr && !session->gone ? session->tx.get() : nullptr;
    return tx == nullptr || (tx->has_room() && tx->pacer.gap() == 0 && tx->repairs == 0);
}

bool Transport::drained(Rank peer) const noexcept {
    const Session* session = sessions_.find(peer);
    return session == nullptr || session->tx == nullptr || !session->tx->active();
}

void Transport::add_unacked(std::span<std::uint32_t> by_rank) const noexcept {
    ULC_CHECK(by_rank.size() == sessions_.size());
    sessions_.each_sending([&](const TxStream& tx) {
        for (std::uint32_t at = 0; tx.active() && at < tx.members; ++at)
            if (tx.is_destination(at))
                by_rank[tx.rank[at]] += static_cast<std::uint32_t>(tx.tail - tx.next[at]);
    });
}

std::uint64_t Transport::unacked_bytes() const noexcept {
    std::uint64_t bytes = 0;
    sessions_.each_sending([&](const TxStream& tx) {
        for (Seq seq = tx.base; seq != tx.tail; seq = seq + 1) {
            const Segment* segment = tx.slot(seq).segment;
            if (segment == nullptr) continue;
            const auto& header = *reinterpret_cast<const wire::Header*>(
                segment->frame + sizeof(wire::EthernetHeader));
            bytes += header.length - ((header.flags & wire::kFlagCrc) != 0 ? sizeof(Be32) : 0U);
        }
    });
    return bytes;
}

// --- receiving

[[gnu::flatten]] void Transport::on_frame(const wire::FrameView& frame, Segment* segment,
                                          Nanos now) {
    bool kept = false;
    Session* session = nullptr;
    if (frame.rank == context_.config.rank) {
        context_.count(Counter::drop_own_echo);
    } else if (!sessions_.is_from_peer(frame)) {
        context_.count(Counter::drop_wrong_source);
    } else if (session = session_of(frame.rank); session == nullptr) {
        context_.count(Counter::drop_unknown_handle);  // it left or died here
    } else {
        session->unanswered_since = kNever;
        session->unanswered = 0;
        kept = take(frame, segment, *session, now);
    }
    if (!kept) context_.pool.drop(segment);
}

/// Returns whether the segment was kept.
inline bool Transport::take(const wire::FrameView& frame, Segment* segment, Session& session,
                            Nanos now) {
    std::uint32_t at = 0;
    switch (frame.type) {
        case wire::FrameType::kData:
            if (frame.ack != nullptr) (void)sender_.on_ack(*frame.ack, session, at, now);
            return receiver_.on_packet(frame, segment, session.unicast, now);
        case wire::FrameType::kMcast:
        case wire::FrameType::kCounted:
            return receiver_.on_mcast(frame, segment, session, now);
        case wire::FrameType::kAck:
            sender_.on_ack_frame(frame, session, now);
            break;
        case wire::FrameType::kReq:
            sender_.on_request(frame, session, now);
            break;
        case wire::FrameType::kProbe:
            receiver_.on_probe(frame, session, now);
            break;
        case wire::FrameType::kFlow:
            on_flow(frame, session, now);
            break;
        case wire::FrameType::kStatus:
        case wire::FrameType::kNack:
            on_group_frame(frame, session, now);
            break;
        case wire::FrameType::kJob:
        case wire::FrameType::kNode:
        case wire::FrameType::kLink:
            context_.count(Counter::drop_type);  // the engine's
            break;
    }
    return false;
}

void Transport::on_flow(const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const Policy& policy = context_.policy;
    const auto& body = *reinterpret_cast<const wire::FlowBody*>(frame.body);
    if (policy.on_flow == nullptr) {
        context_.count(Counter::drop_type);
    } else if (body.kind == wire::FlowKind::kReserve) {
        policy.on_reserve(receiver_, body, session);
    } else {
        policy.on_flow(sender_, body, session, now);
    }
}

void Transport::on_group_frame(const wire::FrameView& frame, Session& session, Nanos now) {
    if (frame.type == wire::FrameType::kStatus) {
        Group* group = sessions_.find_group(frame.handle);
        if (group == nullptr || !group->rules->on_status(frame, session, now))
            context_.count(group != nullptr ? Counter::drop_type : Counter::drop_unknown_handle);
        return;
    }
    const auto& body = *reinterpret_cast<const wire::NackBody*>(frame.body);
    Group* group = sessions_.find_group(body.group);
    if (group == nullptr || !group->rules->on_nack(frame, session, now))
        context_.count(Counter::drop_ack_stream);
}

bool Transport::is_next(const wire::FrameView& frame) const noexcept {
    return receiver_.is_next(frame);
}

bool Transport::expect(Rank source, Nanos now) {
    if (source >= sessions_.size() || source == context_.config.rank ||
        !context_.params().request_on_receive)
        return false;
    Session* session = session_of(source);
    return session != nullptr && receiver_.expect(*session, now);
}

// --- time

void Transport::on_timer(Nanos now) {
    while (Timer* timer = context_.timers.pop_due(now)) {
        switch (timer->kind) {
            case TimerOwner::kReceive:
                receiver_.on_timer(*static_cast<RxStream*>(timer->owner), now);
                break;
            case TimerOwner::kSend:
                tail_timer(*static_cast<TxStream*>(timer->owner), now);
                break;
            case TimerOwner::kSession:
                receiver_.on_timer(*static_cast<Session*>(timer->owner), now);
                break;
            case TimerOwner::kGroup:
                static_cast<Group*>(timer->owner)->rules->on_timer(now);
                break;
        }
    }
}

Nanos Transport::put_off_timers(Nanos now) noexcept {
    while (Timer* timer = context_.timers.first_due(now)) {
        Nanos due = now;
        if (timer->kind == TimerOwner::kReceive)
            due = Receiver::deadline(*static_cast<RxStream*>(timer->owner));
        if (timer->kind == TimerOwner::kSend)
            due = Sender::deadline(*static_cast<TxStream*>(timer->owner), now);
        if (due <= now) break;
        context_.timers.put_off(*timer, due);
    }
    return context_.timers.next();
}

/// Tells which members have held up the stream for too long, and goes on without those that the
/// client does not want to wait for.
void Transport::name_holders(TxStream& tx, Nanos now) {
    const Nanos limit = context_.hold.limit;
    Holders& holders = *tx.group->holders;
    holders.sample(tx, now, limit);
    for (;;) {
        const std::uint32_t at = holders.next_named(tx, limit);
        if (at == Holders::kNoHolder) return;
        Session* session = session_of(tx.rank[at]);
        if (session == nullptr) continue;
        const bool silent = session->unanswered >= kUnansweredSilent;
        holders.name(at, static_cast<std::uint32_t>(std::max<Nanos>(limit / kMillisecond, 1)),
                     silent);
        session->held_untold = true;
        context_.count(silent ? Counter::held_by_silent : Counter::held_by_slow);
        sessions_.tell(*session);
        if (!may_exclude(context_.hold, tx, at)) continue;
        context_.count(Counter::members_excluded);
        peer_gone(session->rank, EventKind::kPeerExcluded, now);
    }
}

/// The tail is without news: peers that are dead end, and the others are asked.
void Transport::tail_timer(TxStream& tx, Nanos now) {
    if (tx.group != nullptr) {
        const Holders& holders = *tx.group->holders;
        if (holders.sample_at() <= now) name_holders(tx, now);
        context_.timers.arm_by(tx.timer, holders.sample_at());
    }
    if (!sender_.on_timer(tx, now)) return;
    for (std::uint32_t at = 0; at < tx.members; ++at) {
        if (!tx.lacks(at)) continue;
        Session* session = session_of(tx.rank[at]);
        if (session == nullptr || !sender_.is_dead(*session, now)) continue;
        context_.count(Counter::peers_dead);
        peer_gone(session->rank, EventKind::kPeerDied, now);
    }
    sender_.ask_for_news(tx, now);
}

void Transport::check_prediction(const RxPrediction& of) const {
    const Session& session = *of.rx->session;
    ULC_CHECK(sessions_.find(session.rank) == &session && !session.gone && !session.local);
    ULC_CHECK(receiver_.is_predictable(*of.rx) && !of.rx->counted);
    ULC_CHECK(of.tx == nullptr || (of.tx == session.tx.get() && sender_.may_predict(*of.tx)));
}

void Transport::check_prediction(const TxPrediction& of) const {
    const TxPrediction is =
        of.session != nullptr ? sender_.predict(*of.session) : sender_.predict(*of.tx->group);
    ULC_CHECK(is.tx == of.tx && std::memcmp(&is.head, &of.head, sizeof is.head) == 0);
    ULC_CHECK(!of.whole_credit || is.whole_credit);
}

void Transport::check_invariants() const {
    sessions_.check_invariants();
    control_.check_invariants();
    receiver_.check_invariants();
    sender_.check_invariants();
}

}  // namespace ulc::urtp
