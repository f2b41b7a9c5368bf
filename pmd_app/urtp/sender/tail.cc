// SPDX-License-Identifier: BSD-3-Clause
// Liveness of a stream's tail, and death. Data without news for PTO = srtt + 4 var + ack_delay
// makes the sender ask (as the policy says: PROBE), at doubling intervals. Any frame from a peer
// answers for it, and any frame from its node keeps it alive. A peer whose probes stay unanswered
// for `peer_dead` meanwhile is dead. Silence without a question means nothing (U-Net MPI §5.4).
#include <algorithm>

#include "urtp/sender/acknowledged.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

/// The least number of probes: a pause of our process is not the peer's silence.
constexpr std::uint8_t kUnansweredMin = 4;

}  // namespace

/// Asks for the stream's acknowledgement ahead of time, since another packet waits for it: half a
/// round trip after the last question, doubling until there is news. Not while packets of ours wait
/// to be sent: a probe goes first, so on a slow host one each round would leave no time for the
/// repair that is wanted.
void Sender::probe_now(TxStream& tx, Nanos now) noexcept {
    if (new_head_ != nullptr || !repairs_.empty() || tx.repairs > 0) return;
    const Nanos wait = std::max({tx.rtt.smoothed() / 2, tx.probe_wait, kMicrosecond});
    if (!tx.on_wire() || now - tx.probed_at < wait) return;
    tx.probe_wait = std::min(2 * wait, std::max(params().max_send_wait, kMicrosecond));
    tx.probed_at = now;
    control_.push(tx);
}

/// Returns whether this peer has been asked often and long enough, and its node is silent as well.
/// A slow host that others outrun loses most questions, and may lose all of them that are for one
/// of its ranks, while it answers the others.
bool Sender::is_dead(Session& session, Nanos now) noexcept {
    if (session.unanswered_since == kNever) session.unanswered_since = now;
    const Nanos dead = params().peer_dead;
    if (session.unanswered < UINT8_MAX) ++session.unanswered;
    if (session.unanswered <= kUnansweredMin || now - session.unanswered_since < dead) return false;
    if (config().node_silent == nullptr ||
        config().node_silent(config().node_context, session.rank, now))
        return true;
    session.in_doubt = true;  // the node says GONE only to what names the rank's own handle
    control_.push(session);
    return false;
}

Nanos Sender::deadline(const TxStream& tx, Nanos now) noexcept {
    // A packet may wait for the pacer, and the stream does not know.
    const bool is_paced = tx.pacer.gap() > 0;
    return tx.repairs > 0 || is_paced || tx.group != nullptr ? now : tx.probe_at;
}

bool Sender::on_timer(TxStream& tx, Nanos now) noexcept {
    repairs_.resume(tx);
    if (tx.probe_at > now) {
        context_.timers.arm_by(tx.timer, tx.probe_at);
        return false;
    }
    if (tx.wants_credit && tx.has_room() && tx.want == 0) tx.wants_credit = false;
    if (!tx.on_wire() && !tx.wants_credit) {
        tx.probe_at = kNever;
        tx.probe_wait = 0;  // so that the next packet counts its tail's time
        return false;
    }
    const Nanos wait = std::max(tx.probe_wait, tail_wait_.of(tx));
    tx.probe_wait = std::min(2 * wait, std::max(params().max_send_wait, kMicrosecond));
    tx.probe_at = now + tx.probe_wait;
    context_.timers.arm_by(tx.timer, tx.probe_at);
    return true;
}

void Sender::ask_for_news(TxStream& tx, Nanos now) {
    if (tx.on_wire() || tx.wants_credit) context_.policy.on_tail(*this, tx, now);
}

}  // namespace ulc::urtp
