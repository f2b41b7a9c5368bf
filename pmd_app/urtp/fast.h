// The fast path through a transport: a short message out, in, or over to another transport of the
// same engine, each in one function. Everything is decided before the first store. A message that
// any rule of the general path has a say in goes there, with nothing changed. Inline, so that the
// engine has one function from the port to the completion, and one back (engine/fast.cc).
#pragma once

#include "urtp/receiver/told.h"
#include "urtp/sender/fast.h"
#include "urtp/transport.h"

namespace ulc::urtp {

[[gnu::always_inline]] inline Segment* Transport::transmit_short(const ShortMessage& message,
                                                                 Session& session,
                                                                 Nanos now) noexcept {
    return sender_.transmit_short(message, session, now);
}

inline Segment* Transport::transmit_short(const ShortMessage& message, const Group& group,
                                          Nanos now) noexcept {
    return sender_.transmit_short(message, group, now);
}

[[gnu::always_inline]] inline RxStream* Transport::predict(
    const wire::ShortFrame& frame) const noexcept {
    if (frame.rank >= sessions_.size()) return nullptr;
    Session* session = sessions_.find(frame.rank);
    // A frame from the wire with an address of this node is an echo.
    if (session == nullptr || session->gone || session->local) return nullptr;
    RxStream* rx = frame.to_group() ? group_stream(frame.handle, *session) : &session->unicast;
    if (rx == nullptr || !receiver_.is_clear(*rx, frame.seq) ||
        sessions_.peer(frame.rank).mac != *frame.source)
        return nullptr;
    return rx;
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

[[gnu::always_inline]] inline StreamId Transport::take_short(const wire::ShortFrame& frame,
                                                             RxStream& rx, Nanos now) noexcept {
    Session& session = *rx.session;
    session.unanswered_since = kNever;
    session.unanswered = 0;
    if (frame.ack != nullptr) on_short_ack(*frame.ack, session, now);
    receiver_.take_clear(rx, (frame.flags & wire::kFlagAckNow) != 0, now);
    return rx.id;
}

[[gnu::always_inline]] inline bool Transport::pass(const ShortMessage& message, Session& ours,
                                                   Transport& to, Nanos now) noexcept {
    if (message.stream != to.rank() || rank() >= to.sessions_.size()) return false;
    Session* theirs = to.sessions_.find(rank());
    if (theirs == nullptr || ours.gone || theirs->gone || ours.tx == nullptr) return false;
    TxStream& tx = *ours.tx;
    if (!sender_.may_pass(tx, now) || !to.receiver_.may_pass(*theirs, tx.tail)) return false;
    theirs->unanswered_since = kNever;
    theirs->unanswered = 0;
    if (wire::AckEntry ack; receiver_.piggyback(ours, true, ack, now))
        to.on_short_ack(ack, *theirs, now);
    to.receiver_.take_passed(theirs->unicast, now);
    tx.pass();
    context_.count(Counter::data_sent);
    return true;
}

}  // namespace ulc::urtp
