// SPDX-License-Identifier: BSD-3-Clause
// Frames of receivers: acknowledgements, credit and requests (docs/PROTOCOL.md §4).
#include <algorithm>

#include "urtp/sender/acknowledged.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

void Sender::on_ack_frame(const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const auto* entries = reinterpret_cast<const wire::AckEntry*>(frame.body);
    const std::size_t n = frame.length / sizeof(wire::AckEntry);
    for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t at = 0;
        (void)on_ack(entries[i], session, at, now);
    }
}

/// An honest entry of a stream in which nothing was sent yet: a receiver awaits its first packet.
bool Sender::nothing_sent(const wire::AckEntry& entry, const Session& session) const noexcept {
    if (entry.next != sessions_.ends_of(session.rank).out.value) return false;
    if (!is_group(entry.stream)) return entry.stream == session.rank && session.tx == nullptr;
    const Group* group = sessions_.find_group(entry.stream);
    return group != nullptr && group->tx == nullptr && group->index_of[session.rank] != kNoRank;
}

TxStream* Sender::sending(StreamId stream, const Session& session, std::uint32_t& at) noexcept {
    at = 0;
    if (!params().acknowledged) return nullptr;  // all is forgotten
    if (!is_group(stream)) return stream == session.rank ? session.tx.get() : nullptr;
    Group* group = sessions_.find_group(stream);
    if (group == nullptr || group->tx == nullptr) return nullptr;
    const std::uint16_t index = group->index_of[session.rank];
    if (index == kNoRank || !group->tx->is_destination(index)) return nullptr;
    at = index;
    return group->tx.get();
}

Nanos Sender::reply_delay(std::uint8_t patience) const noexcept {
    const Params& p = params();
    return p.ack_delay == kNever ? p.min_send_wait << std::min(patience, kReplyPatienceMax)
                                 : context_.ack_delay(patience);
}

/// Returns how long the tail waits for news. It is kept until what it is made of changes.
Nanos Sender::find_tail_wait(const TxStream& tx) const noexcept {
    const Params& p = params();
    // No answer may come before the packet that waits for credit.
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

Nanos Sender::renew_tail_wait(TxStream& tx) const noexcept {
    const Nanos wait = find_tail_wait(tx);
    const bool may_keep = params().ack_delay != kNever && wait <= UINT32_MAX;
    if (may_keep) tx.wait = static_cast<std::uint32_t>(wait);
    return wait;
}

/// Shortens the wait for the tail: a packet waits for credit from now on.
void Sender::hasten_probe(TxStream& tx, Nanos now) noexcept {
    tx.probe_at = std::min(tx.probe_at, now + tail_wait(tx));
    context_.timers.arm_by(tx.timer, tx.probe_at);
}

TxStream* Sender::on_ack(const wire::AckEntry& entry, Session& session, std::uint32_t& at,
                         Nanos now) noexcept {
    TxStream* tx = sending(entry.stream, session, at);
    if (tx == nullptr) {
        count(nothing_sent(entry, session) ? Counter::req_unsent : Counter::drop_ack_stream);
        return nullptr;
    }
    return take_ack(entry, session, *tx, at, now) ? tx : nullptr;
}

/// Takes an entry as take_ack() does in most cases: the only receiver has news that call for no
/// sample. tx: may_predict(). False: nothing was changed; take_ack() decides. Not inline, so that
/// the fast path keeps its registers.
bool Sender::take_news(const wire::AckEntry& entry, TxStream& tx, Nanos now) noexcept {
    const Seq next{entry.next};
    const auto packets = static_cast<std::uint32_t>(next - tx.base);
    const std::uint16_t delay_us = entry.delay_us;
    // An unknown delay is a long one.
    if (packets - 1 >= static_cast<std::uint32_t>(tx.sent - tx.base) ||
        delay_us >= least_reply_delay_us_ || tx.wants_sample(packets, now))
        return false;
    context_.count(Counter::ack_received);
    tx.acknowledge_only(next, next + std::min<std::uint32_t>(entry.credit, tx.window));
    tx.untold = static_cast<std::uint8_t>(tx.untold + packets);  // below kSampleEvery
    let_go(tx);
    settle_news(tx, now);
    return true;
}

/// The receiver waited for company, and will wait longer the next time.
void Sender::note_patience(TxStream& tx, Nanos waited) const noexcept {
    while (tx.patience < kPatienceMax && waited >= reply_delay(tx.patience)) {
        ++tx.patience;
        tx.wait = 0;
    }
}

void Sender::release_acknowledged(TxStream& tx, Nanos now) noexcept { release_news(tx, now); }

void Sender::on_request(const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const auto& body = *reinterpret_cast<const wire::ReqBody*>(frame.body);
    std::uint32_t at = 0;
    TxStream* tx = on_ack(body.ack, session, at, now);
    if (tx == nullptr) return;
    context_.count(Counter::req_received);
    const Seq next{body.ack.next};
    const std::uint32_t octets = body.bitmap_octets;
    if (octets == 0) {
        request_one(*tx, next, at, false, now);
        return;
    }
    const auto* bitmap = reinterpret_cast<const std::uint8_t*>(frame.body + sizeof(wire::ReqBody));
    for (std::uint32_t i = 0; i < octets; ++i) {
        for (std::uint32_t zeros = static_cast<std::uint8_t>(~bitmap[i]); zeros != 0;
             zeros &= zeros - 1) {
            request_one(*tx, next + (8 * i + static_cast<std::uint32_t>(std::countr_zero(zeros))),
                        at, true, now);
        }
    }
}

/// Returns whether a request for a packet comes too early: the packet is not off the wire for δ
/// yet, or its repair is on the way, be it in the port or since it left that. No repair waits.
/// overtaken: the receiver has heard of packets sent after it, so it is not on its way, however
/// short a time ago it left.
bool Sender::asks_too_soon(const TxStream& tx, const TxSlot& slot, bool overtaken,
                           Nanos now) const noexcept {
    const Params& p = params();
    const Nanos srtt = tx.rtt.smoothed();
    const Nanos gap = p.timed_by_rtt ? std::min(p.min_req_gap, srtt / 2) : p.min_req_gap;
    const Nanos left_at = context_.departures->left_at(slot.ticket);
    // Some devices report in batches, the last of which may stay unfinished.
    if (left_at == kNever) return now - slot.sent_at < p.max_send_wait;
    if (!overtaken && now - std::max(slot.sent_at, left_at) < gap) return true;
    if (!p.timed_by_rtt || slot.transmissions <= 1) return false;
    Nanos wait = srtt - srtt / 4;
    if (slot.transmissions > TxSlot::kBadLuck && tx.backs_off) {
        wait <<= std::min(slot.transmissions - TxSlot::kBadLuck, 20);
        wait = std::min(wait, std::max(srtt, p.max_send_wait / 2));
    }
    return now - std::max(slot.sent_at, left_at) < wait;
}

/// URTP's three cases (§3.2.1): sent long ago, sent just now, not sent yet.
void Sender::request_one(TxStream& tx, Seq seq, std::uint32_t at, bool overtaken,
                         Nanos now) noexcept {
    if (!seq.before(tx.sent)) {
        context_.count(Counter::req_unsent);
        return;
    }
    if (seq.before(tx.base) || seq.before(tx.next[at])) return;  // it has it: the request is old
    TxSlot& slot = tx.slot(seq);
    const auto asker = static_cast<std::uint16_t>(at);
    if (slot.asked_by != TxSlot::kNobody) {
        if (slot.asked_by != asker) slot.asked_by = TxSlot::kSeveral;
        return;
    }
    if (asks_too_soon(tx, slot, overtaken, now)) {
        context_.count(Counter::req_too_soon);
        return;
    }
    tx.patience = 0;
    tx.wait = 0;
    if (tx.group != nullptr) tx.group->holders->on_request(at);
    if (context_.policy.on_lost != nullptr) context_.policy.on_lost(*this, tx, seq, now);
    const bool gathers = tx.destinations > 1 && params().repair_gather > 0;
    queue_repair(tx, seq, asker, gathers ? now + params().repair_gather : now);
}

/// Answers a request by a repair for all members.
void Sender::request_for_all(TxStream& tx, Seq seq, Nanos now) noexcept {
    const TxSlot& slot = tx.slot(seq);
    if (slot.asked_by != TxSlot::kNobody) return;
    if (asks_too_soon(tx, slot, false, now)) {
        context_.count(Counter::req_too_soon);
        return;
    }
    queue_repair(tx, seq, TxSlot::kSeveral, now);
}

}  // namespace ulc::urtp
