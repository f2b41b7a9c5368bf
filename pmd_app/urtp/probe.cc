// Liveness of a stream's tail, and death. Data without news for PTO = srtt + 4 var + ack_delay makes the sender ask
// (as the policy says: PROBE), at doubling intervals. Any frame from a peer answers for it, and any frame from its node keeps it
// alive; a peer whose probes stay unanswered for `peer_dead` meanwhile is dead. Silence that nobody asked about means nothing (U-Net MPI §5.4).
#include <algorithm>

#include "urtp/impl.h"

namespace ulc::urtp {

namespace {

/// At least as many probes: a pause of our own process is not the peer's silence.
constexpr std::uint32_t kUnansweredMin = 4;

}  // namespace

Nanos Member::Impl::reply_delay(std::uint8_t patience) const noexcept {
    const Params& p = config_.params;
    return p.ack_delay == kNever ? p.min_send_wait << std::min(patience, kReplyPatienceMax)
                                 : ack_delay(patience);
}

Nanos Member::Impl::tail_wait(const TxStream& tx) const noexcept {
    const Params& p = config_.params;
    // No answer may come before the packet that waits for room.
    const bool rides = p.ack_delay == kNever;
    const Nanos delay = reply_delay(rides && tx.wants_credit ? 0 : tx.patience);
    Nanos wait = tx.rtt.bound() + delay;
    if (tx.ask_every != TxStream::kNeverAsk) {
        // Its packets ask for acknowledgement, so it hears as soon as a round trip is over.
        wait = std::min(tx.rtt.bound(), 2 * tx.rtt.smoothed());
    } else if (rides) {
        wait = std::max(tx.rtt.bound(), delay);
    }
    return std::clamp(wait, std::max(p.min_send_wait, kMicrosecond),
                      std::max(p.max_send_wait, kMicrosecond));
}

/// News, or a first transmission: the tail's time counts from now.
void Member::Impl::restart_probe(TxStream& tx, Nanos now) noexcept {
    tx.probe_wait = 0;
    tx.probe_at = now + tail_wait(tx);
    timers_.arm_by(tx.timer, tx.probe_at);
}

/// A packet waits for room from now on: the tail may be waited for less long.
void Member::Impl::hasten_probe(TxStream& tx, Nanos now) noexcept {
    tx.probe_at = std::min(tx.probe_at, now + tail_wait(tx));
    timers_.arm_by(tx.timer, tx.probe_at);
}

/// Somebody waits for this stream's acknowledgement: asks ahead of time, half a round trip after it last asked, doubling until
/// there is news. Not while anything of ours waits to be sent: a probe goes first, so on a slow host one each round would leave no
/// room for the repair that is wanted.
void Member::Impl::probe_now(TxStream& tx, Nanos now) noexcept {
    if (new_head_ != nullptr || !repairing_.empty() || tx.repairs > 0) return;
    const Nanos wait = std::max({tx.rtt.smoothed() / 2, tx.probe_wait, kMicrosecond});
    if (!tx.on_wire() || now - tx.probed_at < wait) return;
    tx.probe_wait = std::min(2 * wait, std::max(config_.params.max_send_wait, kMicrosecond));
    tx.probed_at = now;
    probes_.push_back(tx);
}

/// One stream of each kind a call: the engine calls again as long as it is short of them.
void Member::Impl::want_segments(Nanos now) noexcept {
    for (auto* active : {&active_unicast_, &active_groups_}) {
        if (active->empty()) continue;
        probe_now(*active->front(), now);
        active->rotate();
    }
}

/// True: this peer has been asked often and long enough, and its node is silent as well. A slow host that others outrun loses most
/// of what it is asked, and may lose all of it that is for one of its ranks, while it answers the others.
bool Member::Impl::count_unanswered(Session& session, Nanos now) noexcept {
    if (session.unanswered_since == kNever) session.unanswered_since = now;
    const Nanos dead = config_.params.peer_dead;
    if (++session.unanswered <= kUnansweredMin || now - session.unanswered_since < dead)
        return false;
    if (config_.node_heard == nullptr ||
        now - config_.node_heard(config_.node_context, session.rank) >= dead)
        return true;
    session.in_doubt = true;  // the node says GONE only to what names the rank's own handle
    control_.push_back(session);
    return false;
}

void Member::Impl::send_timer(TxStream& tx, Nanos now) {
    if (tx.repairs > 0) repairing_.push_back(tx);
    if (tx.probe_at > now) {
        timers_.arm_by(tx.timer, tx.probe_at);
        return;
    }
    if (tx.wants_credit && tx.has_room() && tx.want == 0) tx.wants_credit = false;
    if (!tx.on_wire() && !tx.wants_credit) {
        tx.probe_at = kNever;
        tx.probe_wait = 0;  // so that the next packet counts its tail's time
        return;
    }
    const Nanos wait = std::max(tx.probe_wait, tail_wait(tx));
    tx.probe_wait = std::min(2 * wait, std::max(config_.params.max_send_wait, kMicrosecond));
    tx.probe_at = now + tx.probe_wait;
    timers_.arm_by(tx.timer, tx.probe_at);
    for (std::uint32_t i = 0; i < tx.members; ++i) {
        const bool lacks = tx.next[i] != tx.sent || !tx.on_wire();
        if (!tx.is_destination(i) || !lacks) continue;
        Session* session = session_of(tx.rank[i]);
        if (session == nullptr || !count_unanswered(*session, now)) continue;
        count(Counter::peers_dead);
        peer_gone(session->rank, EventKind::kPeerDied, now);
    }
    if (tx.on_wire() || tx.wants_credit) policy_.on_tail(*this, tx, now);
}

/// To the one destination that lacks something, or to the group.
Segment* Member::Impl::send_probe(TxStream& tx, Nanos now) {
    if (tx.group != nullptr && tx.group->pcode != nullptr) {
        tx.probed_at = now;
        make_status_due(*tx.group, true);
        return send_status(*tx.group);
    }
    Segment* segment = control_frame();
    if (segment == nullptr) return nullptr;
    std::uint32_t lacking = 0;
    Rank to = tx.rank[0];
    for (std::uint32_t i = 0; i < tx.members; ++i) {
        if (!tx.is_destination(i) || (tx.next[i] == tx.sent && tx.on_wire())) continue;
        ++lacking;
        to = tx.rank[i];
    }
    wire::FrameHead head = lacking > 1 ? head_to(*tx.group, wire::FrameType::kProbe)
                                       : head_to(to, wire::FrameType::kProbe);
    head.seq = tx.sent;
    const StreamId stream = tx.id;
    tx.probed_at = now;
    segment->length = static_cast<std::uint32_t>(wire::build_probe(segment->frame, head, stream));
    count(Counter::probe_sent);
    return segment;
}

/// To one rank, under its own handle: it answers, or its node says that it is gone.
Segment* Member::Impl::send_doubt(Session& session) noexcept {
    Segment* segment = control_frame();
    if (segment == nullptr) return nullptr;
    session.in_doubt = false;
    wire::FrameHead head = head_to(session.rank, wire::FrameType::kProbe);
    head.seq = session.tx != nullptr ? session.tx->sent : ends_of(session.rank).out;
    segment->length =
        static_cast<std::uint32_t>(wire::build_probe(segment->frame, head, session.rank));
    count(Counter::probe_sent);
    return segment;
}

void Member::Impl::answer(RxStream& rx) noexcept {
    if (rx.missing() && credit_of(rx) > 0) {
        make_request_due(rx, true);
    } else {
        make_ack_due(rx);
    }
}

void Member::Impl::on_probe(const wire::FrameView& frame, Session& session, Nanos now) {
    const StreamId stream = reinterpret_cast<const wire::ProbeBody*>(frame.body)->stream;
    RxStream* rx = nullptr;
    if (!is_group(stream)) {
        if (stream == session.unicast.id && !is_group(frame.handle)) rx = &session.unicast;
    } else if (Group* group = find_group(stream);
               group != nullptr && (!is_group(frame.handle) || frame.handle == stream)) {
        rx = group_stream(*group, session);
    }
    if (rx == nullptr) {
        count(Counter::drop_ack_stream);
        return;
    }
    if (frame.seq - rx->next > static_cast<std::int32_t>(rx->window)) {
        count(Counter::drop_ack_range);
        return;
    }
    count(Counter::probe_received);
    if (config_.params.selective_repeat && rx->high.before(frame.seq)) rx->high = frame.seq;
    if (is_group(frame.handle) && rx->group->ranks.size() > 2) {
        answer_in_slot(*rx, now);
    } else {
        answer(*rx);
    }
}

/// All members of the group were asked at once.
void Member::Impl::answer_in_slot(RxStream& rx, Nanos now) noexcept {
    const auto members = static_cast<Nanos>(rx.group->ranks.size());
    rx.answer_at =
        std::min(rx.answer_at, now + 1 + random_below(members * config_.params.probe_slot));
    arm(rx);
}

}  // namespace ulc::urtp
