// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/control_queue.h"

namespace ulc::urtp {

/// Returns the session's stream that speaks next; nullptr: none has anything to say. Streams take
/// turns: were the first one always first, the others would never be asked for what they lack.
RxStream* ControlQueue::next_stream(Session& session) noexcept {
    RxStream* first = nullptr;
    bool behind = false;
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling) {
        // A repair may have closed the gap, or the word rode on data.
        if (rx->request_due && !rx->missing() && !session.expecting) rx->request_due = false;
        if (rx->room.refuse_due && !rx->missing()) rx->room.refuse_due = false;
        if (rx->request_due || rx->ack_due || rx->flow_due()) {
            if (behind) return rx;
            if (first == nullptr) first = rx;
        }
        behind |= rx->id == session.spoke;
    }
    return first;
}

Turn ControlQueue::next() noexcept {
    using enum Turn::Kind;
    while (Session* session = sessions_.front()) {
        if (session->in_doubt) return {.kind = kDoubt, .session = session};
        if (RxStream* rx = next_stream(*session); rx != nullptr)
            return {.kind = kStream, .session = session, .rx = rx};
        sessions_.remove(*session);
    }
    while (TxStream* tx = probes_.front()) {
        if (!tx->active() && !tx->wants_credit && tx->want == 0) {
            probes_.remove(*tx);
            continue;
        }
        const bool reserves = tx->want != 0 && tx->want_turn;
        // Behind the packets before it: its answer tells how far the receiver has come.
        if (reserves && tx->sent != tx->tail && tx->want_first == tx->tail) break;
        return {.kind = reserves ? kReserve : kProbe, .tx = tx};
    }
    while (Group* group = groups_.front()) {
        if (group->rules->has_word()) return {.kind = kGroup, .group = group};
        groups_.remove(*group);
    }
    return {};
}

void ControlQueue::spoke(const Turn& turn, Nanos now) noexcept {
    if (turn.session != nullptr) sessions_.rotate();
    if (turn.rx != nullptr) turn.session->spoke = turn.rx->id;
    if (turn.tx != nullptr) probes_.remove(*turn.tx);
    ticket_ = context_.departures->next;
    sent_at_ = now;
}

void ControlQueue::check_invariants() const {
    std::size_t listed = 0;
    for (const Session* s = sessions_.front(); s != nullptr; s = sessions_.next(*s)) {
        ULC_CHECK(!s->gone);
        ++listed;
    }
    ULC_CHECK(listed == sessions_.size());
    listed = 0;
    for (const TxStream* tx = probes_.front(); tx != nullptr; tx = probes_.next(*tx))
        ++listed;
    ULC_CHECK(listed == probes_.size() && run_ <= kRunMax);
}

}  // namespace ulc::urtp
