// SPDX-License-Identifier: BSD-3-Clause
// New packets in the order of their commits. Streams of a sender begin and end.
#include <algorithm>

#include "urtp/sender/acknowledged.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

/// Returns the longest payload behind each extension that a short frame may have.
std::uint32_t longest_short(const Context& context, std::size_t mtu) noexcept {
    constexpr std::uint8_t kFlags = wire::kFlagAck | wire::kFlagTag;
    const std::size_t extra = wire::extension_octets(kFlags, 0, false);
    const std::size_t most = wire::payload_max(kFlags, extra, mtu);
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(most, context.params().reserve_above));
}

/// Returns the stream that a frame of ours belongs to; nullptr: it is no packet of ours, or its
/// stream has ended.
TxStream* stream_of(const Context& context, const Sessions& sessions,
                    const wire::FrameView& frame) noexcept {
    if (frame.source != context.config.mac) return nullptr;
    if (frame.type == wire::FrameType::kMcast || frame.type == wire::FrameType::kCounted) {
        Group* group =
            frame.rank == context.config.rank ? sessions.find_group(frame.handle) : nullptr;
        return group != nullptr ? group->tx.get() : nullptr;
    }
    if (frame.type != wire::FrameType::kData) return nullptr;
    for (std::size_t rank = 0; rank < sessions.size(); ++rank) {
        if (sessions.peer(rank).handle != frame.handle ||
            sessions.peer(rank).mac != frame.destination)
            continue;
        if (frame.rank != sessions.name_at(static_cast<Rank>(rank))) return nullptr;
        const Session* session = sessions.find(rank);
        return session != nullptr ? session->tx.get() : nullptr;
    }
    return nullptr;
}

}  // namespace

Sender::Sender(Context& context, Sessions& sessions, ControlQueue& control, Receiver& receiver)
    : context_(context),
      sessions_(sessions),
      control_(control),
      receiver_(receiver),
      takes_short_(!context.config.crc && context.params().acknowledged &&
                   !context.params().credit_request && context.params().free_lazily == 0 &&
                   !context.params().packs &&
                   context.params().reserve_above >= ShortMessage::kOctetsSure),
      short_octets_max_(longest_short(context, context.config.mtu)),
      tail_wait_(context),
      repairs_(context, sessions) {}

Sender::~Sender() {
    sessions_.each_sending([this](TxStream& tx) {
        tx.base = tx.sent = tx.tail;
        let_go(tx);
    });
}

TxStream& Sender::begin(Session& session) {
    session.tx = std::make_unique<TxStream>(
        session.rank, nullptr, std::span<const Rank>(&session.rank, 1), 1, params().window,
        sessions_.ends_of(session.rank).out, params().initial_rtt);
    begin(*session.tx);
    return *session.tx;
}

TxStream& Sender::begin(Group& group) {
    group.tx = std::make_unique<TxStream>(group.handle, &group, group.ranks, group.own,
                                          group.window, config().first_seq, params().initial_rtt);
    group.holders = std::make_unique<Holders>(group.tx->members);
    begin(*group.tx);
    for (std::uint32_t i = 0; i < group.ranks.size(); ++i) {
        const Session* session = sessions_.find(group.ranks[i]);
        if (session != nullptr && session->gone) group.tx->remove_destination(i);
    }
    group.tx->renew_clear();
    return *group.tx;
}

std::uint16_t Sender::mtu_of(const TxStream& tx) const noexcept {
    const std::uint16_t own = context_.config.mtu;
    return tx.group != nullptr ? own : std::min(own, sessions_.peer(tx.rank[0]).mtu);
}

/// Begins with the credit that each receiver keeps for a stream; long messages are granted nothing
/// yet. Receivers save little of what follows a loss without selective repeat, or by
/// PCODE's rules, and no congestion control bounds the sender: such a stream backs off.
void Sender::begin(TxStream& tx) {
    const Params& p = params();
    const Policy& policy = context_.policy;
    context_.timers.enroll();
    tx.backs_off = !p.selective_repeat || (tx.group != nullptr && tx.group->counted);
    if (p.source_packets != 0) {
        for (std::uint32_t at = 0; at < tx.members; ++at)
            tx.allow(at, tx.base + std::min(tx.window, p.source_packets));
    }
    if (p.reserve_above != UINT64_MAX || policy.on_flow != nullptr) {
        tx.granted = std::make_unique<Seq[]>(tx.members);
        for (std::uint32_t at = 0; at < tx.members; ++at)
            tx.granted[at] = tx.base;
    }
    if (policy.on_opened != nullptr) policy.on_opened(*this, tx);
    const bool plain = tx.group == nullptr || (!tx.group->counted && !p.number_vector);
    tx.takes_short =
        takes_short_ && plain && short_octets_max_ <= longest_short(context_, mtu_of(tx));
    tx.renew_clear();
}

void Sender::remove_destination(TxStream& tx, std::uint16_t index, Nanos now) {
    if (!tx.is_destination(index)) return;
    const bool base_moved = tx.remove_destination(index);
    if (tx.destinations == 0) {
        end(tx, now);
    } else if (base_moved) {
        release_acknowledged(tx, now);
    }
}

void Sender::forget(TxStream& tx) noexcept {
    let_go(tx);
    ULC_CHECK(!tx.active() && tx.repairs == 0);
    active(tx).remove(tx);
    control_.remove(tx);
    repairs_.remove(tx);
    context_.timers.remove(tx.timer);
    context_.timers.resign();
    if (draft_.stream == &tx) draft_.stream = nullptr;
}

Segment* Sender::next_new(Nanos now) {
    TxSlot* slot = new_head_;
    if (slot == nullptr) return nullptr;
    new_head_ = slot->link;
    if (new_head_ == nullptr) new_tail_ = nullptr;
    if (!params().acknowledged) {
        context_.count(Counter::data_sent);
        return send_once(*slot);
    }
    slot->sent_at = now;
    slot->transmissions = 1;
    slot->ticket = context_.departures->next;
    TxStream& tx = *slot->stream;
    if (tx.probe_wait == 0) tail_wait_.restart(tx, now);
    ++tx.sent;
    context_.pool.hold(slot->segment);
    context_.count(Counter::data_sent);
    return slot->segment;
}

/// Transmits and forgets: the port's reference is the last.
Segment* Sender::send_once(TxSlot& slot) noexcept {
    TxStream& tx = *slot.stream;
    Segment* segment = slot.segment;
    slot.segment = nullptr;
    if (context_.config.send_frames != nullptr) context_.config.send_frames->give_back();
    ++tx.sent;
    tx.base = tx.freed = tx.sent;
    tx.limit = tx.base + tx.window;
    for (std::uint32_t at = 0; at < tx.members; ++at) {
        tx.next[at] = tx.base;
        tx.edge[at] = tx.limit;
    }
    if (!tx.active()) active(tx).remove(tx);
    return segment;
}

/// No receiver is left: drops what the stream retains, sent or not.
void Sender::end(TxStream& tx, Nanos now) noexcept {
    TxSlot** at = &new_head_;
    new_tail_ = nullptr;
    while (*at != nullptr) {
        if ((*at)->stream == &tx) {
            *at = (*at)->link;
        } else {
            new_tail_ = *at;
            at = &(*at)->link;
        }
    }
    tx.base = tx.sent = tx.tail;
    tx.wants_credit = false;
    tx.want = 0;
    release_acknowledged(tx, now);
    context_.timers.remove(tx.timer);
    std::fill_n(tx.absent, tx.members, UINT32_MAX);
    tx.destinations = 0;
    tx.clear = false;
}

/// One stream of each kind a call: the engine calls again as long as it is short of them.
void Sender::want_segments(Nanos now) noexcept {
    for (auto* active : {&active_unicast_, &active_groups_}) {
        if (active->empty()) continue;
        probe_now(*active->front(), now);
        wait_for_holders(*active->front(), now);
        active->rotate();
    }
}

void Sender::pull_tails() noexcept {
    sessions_.each_sending([](TxStream& tx) {
        for (Seq seq = tx.freed; seq != tx.tail; ++seq)
            pull_tail(*tx.slot(seq).segment);
    });
}

bool Sender::send_failed(const wire::FrameView& frame, Nanos now) noexcept {
    TxStream* tx = stream_of(context_, sessions_, frame);
    if (tx == nullptr) return false;
    if (!params().acknowledged) {
        ++sends_failed_;
        return true;
    }
    if (!frame.seq.in_window(tx->base, static_cast<std::uint32_t>(tx->sent - tx->base)))
        return true;
    if (tx->slot(frame.seq).asked_by == TxSlot::kNobody)
        repairs_.queue(*tx, frame.seq, tx->group != nullptr ? TxSlot::kSeveral : 0, now);
    return true;
}

bool Sender::poll_event(Event& out) noexcept {
    if (sends_failed_ > 0) {
        out = {EventKind::kSendFailed, config().rank, std::exchange(sends_failed_, 0U)};
        return true;
    }
    if (!repairs_.has_narrow()) return false;
    out = {EventKind::kPathNarrow, repairs_.take_narrow(), Repairs::kNarrowAfter};
    return true;
}

void Sender::check_invariants() const {
    std::uint32_t unsent = 0;
    sessions_.each_sending([&](const TxStream& tx) {
        ULC_CHECK(!tx.base.before(tx.freed) && !tx.sent.before(tx.base));
        ULC_CHECK(!tx.tail.before(tx.sent));
        ULC_CHECK(static_cast<std::uint32_t>(tx.tail - tx.freed) <= tx.window);
        ULC_CHECK(tx.wait == 0 || tx.wait == tail_wait_.computed(tx));
        ULC_CHECK(tx.clear == (tx.takes_short && tx.repairs == 0 && tx.destinations > 0));
        ULC_CHECK(!tx.clear || tx.freed == tx.base);  // the next packet's slot is empty
        const auto& list = tx.group != nullptr ? active_groups_ : active_unicast_;
        ULC_CHECK(list.holds(tx) == tx.active());
        std::uint32_t destinations = 0;
        for (std::uint32_t at = 0; at < tx.members; ++at)
            destinations += tx.is_destination(at) ? 1 : 0;
        ULC_CHECK(destinations == tx.destinations);
        std::uint32_t repairs = 0;
        for (Seq seq = tx.freed; seq != tx.tail; ++seq) {
            const TxSlot& slot = tx.slot(seq);
            ULC_CHECK(slot.segment != nullptr && slot.stream == &tx);
            repairs += slot.asked_by != TxSlot::kNobody ? 1 : 0;
        }
        ULC_CHECK(repairs == tx.repairs && (repairs > 0 || !repairs_.holds(tx)));
        for (std::uint32_t at = 0; at < tx.members; ++at)
            ULC_CHECK(!tx.active() || !tx.is_destination(at) || !tx.next[at].before(tx.base));
        unsent += static_cast<std::uint32_t>(tx.tail - tx.sent);
    });
    for (const TxSlot* slot = new_head_; slot != nullptr; slot = slot->link) {
        ULC_CHECK(slot->transmissions == 0 && (slot->link != nullptr || slot == new_tail_));
        --unsent;
    }
    ULC_CHECK(unsent == 0);
}

}  // namespace ulc::urtp
