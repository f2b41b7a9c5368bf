// SPDX-License-Identifier: BSD-3-Clause
// Frames of receivers: acknowledgements, credit and requests (docs/PROTOCOL.md §4).
#include <algorithm>

#include "urtp/sender/acknowledged.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

/// An honest entry of a stream in which nothing was sent yet: a receiver awaits its first packet.
bool nothing_sent(const Sessions& sessions, const wire::AckEntry& entry,
                  const Session& session) noexcept {
    if (entry.next != sessions.ends_of(session.rank).out.value) return false;
    if (!is_group(entry.stream)) return entry.stream == session.rank && session.tx == nullptr;
    const Group* group = sessions.find_group(entry.stream);
    return group != nullptr && group->tx == nullptr && group->index_of[session.rank] != kNoRank;
}

/// Packets of the stream may overtake each other: one that is asked for counts as lost when it is
/// repeated, since it may come until then.
bool may_be_late(const TxStream& tx, const Params& params) noexcept {
    return params.reorder_wait > 0 && tx.group == nullptr;
}

}  // namespace

void Sender::on_ack_frame(const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const auto* entries = reinterpret_cast<const wire::AckEntry*>(frame.body);
    const std::size_t n = frame.length / sizeof(wire::AckEntry);
    for (std::size_t i = 0; i < n; ++i) {
        std::uint32_t at = 0;
        (void)on_ack(entries[i], session, at, now);
    }
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

TxStream* Sender::on_ack(const wire::AckEntry& entry, Session& session, std::uint32_t& at,
                         Nanos now) noexcept {
    TxStream* tx = sending(entry.stream, session, at);
    if (tx == nullptr) {
        count(nothing_sent(sessions_, entry, session) ? Counter::req_unsent
                                                      : Counter::drop_ack_stream);
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
    if (packets - 1 >= static_cast<std::uint32_t>(tx.sent - tx.base) ||
        tail_wait_.is_long(entry.delay_us) || tx.wants_sample(packets, now))
        return false;
    context_.count(Counter::ack_received);
    tx.acknowledge_only(next, next + std::min<std::uint32_t>(entry.credit, tx.window));
    tx.untold = static_cast<std::uint8_t>(tx.untold + packets);  // below kSampleEvery
    let_go(tx);
    settle_news(tx, now);
    return true;
}

void Sender::release_acknowledged(TxStream& tx, Nanos now) noexcept { release_news(tx, now); }

void Sender::on_request(const wire::FrameView& frame, Session& session, Nanos now) noexcept {
    const auto& body = *reinterpret_cast<const wire::ReqBody*>(frame.body);
    std::uint32_t at = 0;
    TxStream* tx = on_ack(body.ack, session, at, now);
    if (tx == nullptr) return;
    context_.count(Counter::req_received);
    context_.count_repair(&session.counts, &RepairCounts::requests_received);
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

/// Returns a packet to repeat, as Repairs::next().
Segment* Sender::next_repair(Nanos now) {
    Repairs::Repeated repeated;
    Segment* segment = repairs_.next(now, &repeated);
    if (segment != nullptr && context_.policy.on_lost != nullptr &&
        may_be_late(*repeated.stream, params()))
        context_.policy.on_lost(*this, *repeated.stream, repeated.seq, now);
    return segment;
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
    if (repairs_.asks_too_soon(tx, slot, overtaken, now)) {
        context_.count(Counter::req_too_soon);
        return;
    }
    tx.patience = 0;
    tx.wait = 0;
    if (tx.group != nullptr) tx.group->holders->on_request(at);
    if (context_.policy.on_lost != nullptr && !may_be_late(tx, params()))
        context_.policy.on_lost(*this, tx, seq, now);
    const bool gathers = tx.destinations > 1 && params().repair_gather > 0;
    repairs_.queue(tx, seq, asker, gathers ? now + params().repair_gather : now);
}

}  // namespace ulc::urtp
