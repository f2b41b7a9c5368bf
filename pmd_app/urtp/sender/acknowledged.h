// SPDX-License-Identifier: BSD-3-Clause
// One acknowledgement of one destination: what the general path and the fast path both do with it.
// Inline, for answers.cc and fast.cc. Round trips are measured for each acknowledgement while
// congestion control bounds the stream, and now and then otherwise: then there is no queue to see.
#pragma once

#include <algorithm>
#include <utility>

#include "urtp/sender/sender.h"

namespace ulc::urtp {

[[gnu::always_inline]] inline void Sender::let_go(TxStream& tx) noexcept {
    for (; tx.freed != tx.base; ++tx.freed) {
        TxSlot& slot = tx.slot(tx.freed);
        context_.pool.drop(slot.segment);
        slot.segment = nullptr;
        if (context_.config.send_frames != nullptr) context_.config.send_frames->give_back();
        if (slot.asked_by != TxSlot::kNobody) [[unlikely]]
            repairs_.forget(tx, slot);
    }
}

/// Gives the packet its number and its slot. sent: it goes to the port now.
[[gnu::always_inline]] inline TxSlot& Sender::take_slot(TxStream& tx, Segment* segment, bool asks,
                                                        Nanos now, bool sent) noexcept {
    if (context_.config.send_frames != nullptr) context_.config.send_frames->take();
    TxSlot& slot = tx.slot(tx.tail);
    if (slot.segment != nullptr) [[unlikely]]
        let_go(tx);  // retained lazily
    const std::uint32_t ticket = sent ? context_.departures->next : 0;
    const std::uint8_t transmissions = sent ? 1 : 0;
    slot = {segment, &tx, nullptr, now, {ticket}, TxSlot::kNobody, transmissions};
    ++tx.tail;
    if (asks) tx.asked = tx.tail;
    tx.pacer.on_packet(now);
    tx.wants_credit = false;
    active(tx).add(tx);
    return slot;
}

/// Lets go of the packets before base, which moved on, and counts the tail's time from now.
[[gnu::always_inline]] inline void Sender::release_news(TxStream& tx, Nanos now) noexcept {
    if (params().free_lazily != 0 && tx.active() &&
        static_cast<std::uint32_t>(tx.tail - tx.freed) < params().free_lazily) [[unlikely]] {
        tail_wait_.restart(tx, now);
        return;
    }
    let_go(tx);
    settle_news(tx, now);
}

/// The tail's time counts from now; packets before base were let go.
[[gnu::always_inline]] inline void Sender::settle_news(TxStream& tx, Nanos now) noexcept {
    if (tx.probe_wait != 0 && !tx.on_wire()) [[unlikely]] {  // our question had no effect
        if (tx.patience < kPatienceMax) ++tx.patience;
        tx.wait = 0;
    }
    if (!tx.active()) {
        active(tx).remove(tx);
        if (tx.want == 0) control_.remove(tx);
    }
    if (tx.on_wire()) {
        tail_wait_.restart(tx, now);
    } else {
        tx.probe_at = kNever;
        tx.probe_wait = 0;
    }
}

/// Takes an entry about a stream of ours. False: it names a number that was not sent.
[[gnu::always_inline]] inline bool Sender::take_ack(const wire::AckEntry& entry, Session& session,
                                                    TxStream& tx, std::uint32_t at,
                                                    Nanos now) noexcept {
    const Seq next{entry.next};
    if (tx.sent.before(next)) [[unlikely]] {
        context_.count(Counter::drop_ack_range);
        return false;
    }
    context_.count(Counter::ack_received);
    const std::uint32_t credit = std::min<std::uint32_t>(entry.credit, tx.window);
    if (next.before(tx.next[at])) return true;  // old news
    const bool news = tx.edge[at] != next + credit;
    if (news) tx.allow(at, next + credit);
    if (next == tx.next[at]) {
        const bool more = !news && next != tx.sent;
        if (more && context_.policy.on_repeated_ack != nullptr)
            context_.policy.on_repeated_ack(*this, tx, at, now);
        return true;
    }
    auto packets = static_cast<std::uint32_t>(next - tx.next[at]);
    const std::uint16_t delay_us = entry.delay_us;
    const Nanos delay = delay_us * kMicrosecond;
    const bool sampled = tx.wants_sample(packets, now);
    Nanos measured = AckNews{}.rtt;
    if (sampled) [[unlikely]] {
        const TxSlot& newest = tx.slot(Seq{next.value - 1});
        if (tx.base != tx.sent && newest.transmissions == 1 && delay_us != kDelayUnknown) {
            const Nanos rtt = now - newest.sent_at - delay;
            tx.rtt.sample(rtt);
            session.rtt.sample(rtt);
            measured = std::max<Nanos>(rtt, 0);
            tx.sampled_at = TxStream::ticks(now);
            if (tx.samples < TxStream::kSampleEvery) ++tx.samples;
            tx.wait = 0;
        }
    }
    if (delay_us != kDelayUnknown) tail_wait_.note_delay(tx, delay);
    if (tx.acknowledge(at, next)) release_news(tx, now);
    packets += tx.untold;
    tx.untold = sampled ? 0 : static_cast<std::uint8_t>(packets);  // below kSampleEvery
    if (sampled && context_.policy.on_acked != nullptr) [[unlikely]]
        context_.policy.on_acked(*this, tx, {packets, measured}, now);
    return true;
}

}  // namespace ulc::urtp
