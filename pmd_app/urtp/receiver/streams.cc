// SPDX-License-Identifier: BSD-3-Clause
// Streams of a receiver begin and end; nodes of the store that their packets wait in.
#include <algorithm>
#include <cstring>

#include "urtp/policies/tables.h"
#include "urtp/receiver/receiver.h"
#include "urtp/receiver/told.h"

namespace ulc::urtp {

Receiver::Receiver(Context& context, Sessions& sessions, ControlQueue& control)
    : context_(context),
      sessions_(sessions),
      control_(control),
      store_(context.params().rx_pool_packets, context.config.send_frames,
             context.config.receive_frames),
      room_(store_),
      takes_short_(context.params().acknowledged && !context.params().packs),
      in_turn_(context.params().receives_in_turn),
      ready_slot_(context.params().ready_slot),
      plain_acks_(context.policy.credit == kUrtp.credit &&
                  context.policy.next_ack == kUrtp.next_ack),
      plain_step_(std::min(params().unasked_ack_window(), std::max(1U, params().window / 2))),
      ack_delay_(context.ack_delay(0)) {}

Receiver::~Receiver() {
    sessions_.each([this](Session& session) {
        for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling)
            end(*rx);
        while (RxNode* node = session.ready_head) {
            session.ready_head = node->link;
            free_node(session, *node);
        }
    });
}

void Receiver::begin(Session& session, const LinkEnds& ends) {
    store_.open();
    session.unicast.session = &session;
    context_.timers.enroll();  // of the session itself
    begin(session.unicast, ends.self, params().window, ends.in);
}

/// rx.session and rx.group are set.
void Receiver::begin(RxStream& rx, StreamId id, std::uint32_t window, Seq first) {
    rx.id = id;
    rx.counted = rx.group != nullptr && rx.group->counted;
    rx.window = window;
    rx.next = rx.high = rx.acked = rx.asked_to = rx.late_to = rx.lost_to = first;
    rx.limit_told = first + window;
    rx.timer.kind = TimerOwner::kReceive;
    rx.timer.owner = &rx;
    context_.timers.enroll();
    const Policy& policy = context_.policy;
    if (policy.on_stream != nullptr) policy.on_stream(*this, rx);
    // Its source may send what the policy keeps for it.
    rx.ack_at = policy.next_ack(rx, static_cast<std::uint32_t>(rx.limit_told - rx.next), params());
}

RxStream* Receiver::group_stream(Group& group, Session& session) {
    if (RxStream* rx = Sessions::heard(group, session)) return rx;
    if (group.index_of[session.rank] == kNoRank) return nullptr;
    group.rx.push_back(std::make_unique<RxStream>());
    RxStream* rx = group.rx.back().get();
    rx->session = &session;
    rx->group = &group;
    begin(*rx, group.handle, group.window, context_.config.first_seq);
    rx->sibling = session.unicast.sibling;
    session.unicast.sibling = rx;
    return rx;
}

/// Returns the stream that a peer names as one that it sends; nullptr: it sends none such here.
RxStream* Receiver::find_or_make(StreamId stream, Session& session) {
    if (!is_group(stream)) return stream == session.unicast.id ? &session.unicast : nullptr;
    Group* group = sessions_.find_group(stream);
    return group != nullptr ? group_stream(*group, session) : nullptr;
}

void Receiver::end(Session& session, Nanos now) noexcept {
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling)
        end(*rx);
    session.blocked = 0;
    if (session.expecting) expect_ends(session, now);
    if (session.in_slot) empty_slot(session);
    context_.timers.remove(session.expect_timer);
    room_.remove(session);
}

bool Receiver::may_forget(const Group& group) noexcept {
    for (const auto& rx : group.rx)
        if (rx->held > 0) return false;
    return true;
}

void Receiver::forget(Group& group) noexcept {
    for (const auto& rx : group.rx) {
        context_.timers.remove(rx->timer);
        context_.timers.resign();
        room_.end_keeping(*rx);
        RxStream* before = &rx->session->unicast;
        while (before->sibling != rx.get())
            before = before->sibling;
        before->sibling = rx->sibling;
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
        if (rx->session->unacked_group == rx.get()) rx->session->unacked_group = nullptr;
#endif
        if (rx->session->ask_by == rx.get()) rx->session->ask_by = nullptr;
    }
}

void Receiver::forget(Session& session) noexcept {
    ULC_CHECK(session.held == 0 && session.unicast.sibling == nullptr);
    context_.timers.remove(session.unicast.timer);
    context_.timers.resign();
    context_.timers.remove(session.expect_timer);
    context_.timers.resign();
    ready_.remove(session);
    room_.remove(session);
    awaited_.remove(session);
}

/// Lets go of what is held out of order; packets in order stay deliverable.
void Receiver::end(RxStream& rx) noexcept {
    for (Seq seq = rx.next; rx.held > 0 && seq != rx.high; ++seq) {
        RxNode* node = store_.find(&rx, seq);
        if (node == nullptr) continue;
        store_.erase(*node);
        free_node(*rx.session, *node);
        --rx.held;
    }
    rx.blocked = false;
    stop_asking(rx);
    rx.ack_due = false;
    room_.end_keeping(rx);
    context_.timers.remove(rx.timer);
}

/// Moves the source's own packet out of its frame, since all endpoints share the frames.
[[gnu::noinline]] void Receiver::keep_copy(RxNode& node, Session& session) {
    if (session.reserved_octets == nullptr)
        session.reserved_octets = std::make_unique<std::byte[]>(context_.config.mtu_taken);
    ULC_CHECK(node.packet.length <= context_.config.mtu_taken);
    if (node.packet.length > 0)
        std::memcpy(session.reserved_octets.get(), node.packet.payload, node.packet.length);
    node.packet.payload = session.reserved_octets.get();
    node.packet.segment = nullptr;
}

void RxRoom::slot_returned(Session& session, StreamId stream) noexcept {
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        if (rx->id != stream || rx->room.slots_used == 0) continue;
        --rx->room.slots_used;
        ++kept_;
        return;
    }
}

void Receiver::lose(RxStream& rx, std::uint32_t packets) noexcept {
    Session& session = *rx.session;
    session.lost = packets > UINT32_MAX - session.lost ? UINT32_MAX : session.lost + packets;
    sessions_.tell(session);
    rx.after_loss = true;
    context_.count(Counter::packets_lost, packets);
}

void Receiver::check_invariants() const {
    std::uint32_t kept = 0;
    std::uint32_t expecting = 0;
    std::uint32_t taken = 0;
    sessions_.each([&](Session& session) {
        std::uint32_t nodes = 0;
        std::uint32_t blocked = 0;
        for (const RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
            ULC_CHECK(!rx->high.before(rx->next) && !rx->next.before(rx->acked));
            std::uint32_t held = 0;
            for (Seq seq = rx->next; seq != rx->high; ++seq)
                held += holds(*rx, seq) ? 1 : 0;
            ULC_CHECK(held == rx->held && (held == 0 || !session.gone));
            ULC_CHECK(!rx->blocked || holds(*rx, rx->next));
            nodes += held;
            blocked += rx->blocked ? 1 : 0;
            kept += rx->room.granted + (rx->room.slots - rx->room.slots_used);
        }
        for (const RxNode* node = session.ready_head; node != nullptr; node = node->link) {
            nodes += node->reserved ? 0 : 1;
            ULC_CHECK(node->link != nullptr || node == session.ready_tail);
        }
        ULC_CHECK(nodes == session.held && blocked == session.blocked);
        ULC_CHECK(ready_.holds(session) == (session.ready_head != nullptr && !session.in_slot));
        ULC_CHECK(!session.in_slot || (session.ready_head != nullptr && !session.expecting));
        ULC_CHECK(!room_.is_awaited_by(session) || (session.starved && !session.gone));
        expecting += session.expecting ? 1 : 0;
        taken += nodes;
    });
    ULC_CHECK(expecting == expecting_ && kept == room_.kept());
    ULC_CHECK(!store_.is_open() || store_.free_count() + taken == store_.capacity());
    ULC_CHECK(!store_.is_open() || room_.kept() <= store_.free_count());
}

}  // namespace ulc::urtp
