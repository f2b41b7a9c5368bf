// SPDX-License-Identifier: BSD-3-Clause
// A short message through a transport: out, in, or over to another transport of the same engine,
// each in one function. Everything is decided before the first store. A message that any rule of
// the general path has a say in goes there, with nothing changed. Inline, so that the engine has
// one function from the port to the completion, and one back (engine/fast/).
#pragma once

#include "urtp/receiver/told.h"
#include "urtp/sender/fast.h"
#include "urtp/transport.h"

namespace ulc::urtp {

inline bool Transport::predict(const std::byte* frame, RxPrediction& out) const noexcept {
    const auto& ethernet = *reinterpret_cast<const wire::EthernetHeader*>(frame);
    const auto& header =
        *reinterpret_cast<const wire::Header*>(frame + sizeof(wire::EthernetHeader));
    const Rank rank = header.rank;
    if (rank >= sessions_.size()) return false;
    Session* session = sessions_.find(rank);
    // A frame from the wire with an address of this node is an echo.
    if (session == nullptr || session->gone || session->local) return false;
    RxStream* rx =
        is_group(header.handle) ? group_stream(header.handle, *session) : &session->unicast;
    if (rx == nullptr || !receiver_.is_predictable(*rx) ||
        sessions_.peer(rank).mac != ethernet.source)
        return false;
    TxStream* tx = rx->group == nullptr ? session->tx.get() : nullptr;
    if (tx != nullptr && !sender_.may_predict(*tx)) tx = nullptr;
    out = {wire::ShortHead(frame), rx, tx};
    return true;
}

/// The source's stream in a group; nullptr: there is none yet, or it follows other rules.
inline RxStream* Transport::group_stream(GroupHandle handle, Session& session) const noexcept {
    const Group* group = sessions_.find_group(handle);
    RxStream* rx = group != nullptr ? Sessions::heard(*group, session) : nullptr;
    return rx != nullptr && !rx->counted ? rx : nullptr;
}

/// An acknowledgement that came along, mostly of the stream to the same peer.
[[gnu::always_inline]] inline void Transport::on_short_ack(const wire::AckEntry& entry,
                                                           Session& session, Nanos now) noexcept {
    std::uint32_t at = 0;
    if (session.tx != nullptr && entry.stream == session.rank && context_.params().acknowledged)
        [[likely]] {
        (void)sender_.take_ack(entry, session, *session.tx, at, now);
    } else {
        (void)sender_.on_ack(entry, session, at, now);
    }
}

/// The same by a prediction. True: the transport may have something to transmit.
[[gnu::always_inline]] inline bool Transport::on_next_ack(const wire::AckEntry& entry,
                                                          const RxPrediction& prediction,
                                                          Session& session, Nanos now) noexcept {
    if (prediction.tx != nullptr && entry.stream == session.rank &&
        sender_.take_news(entry, *prediction.tx, now)) [[likely]]
        return false;
    on_any_ack(entry, session, now);
    return true;
}

[[gnu::always_inline]] inline bool Transport::is_next(const RxPrediction& prediction,
                                                      const std::byte* frame, std::size_t octets,
                                                      wire::ShortBody& out) const noexcept {
    const auto& header =
        *reinterpret_cast<const wire::Header*>(frame + sizeof(wire::EthernetHeader));
    if (!receiver_.is_next(*prediction.rx, Seq{header.seq}) || !wire::read_body(frame, octets, out))
        return false;
    return out.ack == nullptr || prediction.rx->group == nullptr;  // in DATA only
}

[[gnu::always_inline]] inline bool Transport::take_next(const RxPrediction& prediction,
                                                        const wire::ShortBody& frame,
                                                        Nanos now) noexcept {
    RxStream& rx = *prediction.rx;
    Session& session = *rx.session;
    if (session.unanswered != 0) [[unlikely]] {
        session.unanswered_since = kNever;
        session.unanswered = 0;
    }
    const bool more = frame.ack != nullptr && on_next_ack(*frame.ack, prediction, session, now);
    receiver_.take_clear(rx, frame.asks(), now);
    return more || rx.ack_due;
}

[[gnu::always_inline]] inline Segment* Transport::transmit_next(const TxPrediction& prediction,
                                                                const ShortMessage& message,
                                                                Nanos now) noexcept {
    return sender_.transmit_next(prediction, message, now);
}

inline Session* Transport::takes_passed(Rank from) const noexcept {
    Session* theirs = from < sessions_.size() ? sessions_.find(from) : nullptr;
    const bool takes =
        theirs != nullptr && !theirs->gone && receiver_.is_predictable(theirs->unicast);
    return takes ? theirs : nullptr;
}

[[gnu::always_inline]] inline bool Transport::pass(const TxPrediction& prediction, Transport& to,
                                                   Nanos now) noexcept {
    TxStream& tx = *prediction.tx;
    Session* theirs = prediction.theirs;
    if (!sender_.may_pass(tx, now) || !to.receiver_.may_pass(*theirs, tx.tail)) return false;
    theirs->unanswered_since = kNever;
    theirs->unanswered = 0;
    if (wire::AckEntry ack; receiver_.piggyback(*prediction.session, true, ack, now))
        to.on_short_ack(ack, *theirs, now);
    to.receiver_.take_passed(theirs->unicast, now);
    to.context_.count(Counter::data_received);
    tx.pass();
    context_.count(Counter::data_sent);
    return true;
}

}  // namespace ulc::urtp
