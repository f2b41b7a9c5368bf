// SPDX-License-Identifier: BSD-3-Clause
// Optimistic flow control (Express §3.1, §4.2): short and medium messages are sent without
// knowledge of space, since there usually is some. A receiver without space refuses (REFUSE, the
// paper's negative acknowledgement), and the sender sends the message again in the conservative
// way: RESERVE, GRANT, then the message. Longer messages are sent in the conservative way at once.
//
// The paper's numbers are those of a stream: out = tail, in = the receiver's next, which is
// piggybacked on every answer, and safe = base. Optimism is bounded: a sender may be at most
// `kOptimism` numbers beyond safe, so a receiver never has to remember more announced messages of a
// stream. That memory, the paper's FIFO queue, is the interval [next, high): a number in it was
// announced, and is in delivery order whether its message was accepted (held) or refused.
//
// Nothing is acknowledged by itself; a GRANT reports how far its receiver has come, as every
// message of the paper does. So with one-way traffic, the message for which no optimism is left is
// sent in the conservative way, and opens the window again. A sender whose tail is without news
// asks (the paper's inquiry: PROBE). Acknowledged packets are released lazily: when many are
// retained, or all are done. The paper's network loses nothing; here a lost message is requested as
// in the default profile.
#include <algorithm>

#include "urtp/policies/room.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

/// Messages announced and not known to be accepted. The paper gives no number; 88 % sent
/// optimistically, and two protocol messages for each of the others (§5.1), are 7 of 8.
constexpr std::uint32_t kOptimism = 8;
constexpr std::uint32_t kRetained = 128;  ///< accepted messages that are kept until then
constexpr std::uint64_t kMediumOctetsMax = 4096 + 64;  ///< a page (§3.1) behind a head

void tune(Params& params) noexcept {
    params.reserve_above = kMediumOctetsMax;
    params.min_send_wait = std::max(params.min_send_wait, kept_room::kTailWaitMin);
    params.source_packets = std::min(kOptimism, params.window / 2);
    params.free_lazily = std::min(kRetained, params.window);
    params.ack_delay = kNever;
}

Seq next_ack(const RxStream& rx, std::uint32_t, const Params&) noexcept {
    return rx.next + INT32_MAX;
}

/// Returns the bound on optimism, whatever space there is.
std::uint32_t credit(Receiver& receiver, RxStream& rx) noexcept {
    (void)kept_room::kept_for(receiver, rx);
    return std::max<std::uint32_t>(
        receiver.params().source_packets,
        static_cast<std::uint32_t>(std::max(0, rx.room.granted_to - rx.next)));
}

void on_stream(Receiver&, RxStream& rx) noexcept {
    rx.room.rationed = true;
    rx.room.granted_to = rx.next;
}

/// Returns true for anything that is not reserved for a grant.
bool may_hold(Receiver& receiver, RxStream& rx, Seq seq, bool&) noexcept {
    return kept_room::by_grant(receiver, rx, seq) || receiver.room().unkept() > 0;
}

/// Refuses announced packets that are not here; asks again itself in case the refusal is lost.
void on_no_room(Receiver& receiver, RxStream& rx, Nanos now) noexcept {
    rx.room.refuse_due = true;
    receiver.speak_later(*rx.session);
    receiver.ask_later(rx, now);
}

/// Gives space to the sources that asked for it; the others were refused and will ask.
void on_room(Receiver& receiver, Nanos) noexcept {
    Session& session = receiver.room().first_starved();
    if (kept_room::grant_waiting(receiver, session)) {
        receiver.room().starve_on();
        return;
    }
    receiver.room().end_starving(session);
}

/// Ends optimism: the next message goes the conservative way.
void on_refused(Sender& sender, TxStream& tx, Nanos) noexcept {
    if (tx.want == 0) kept_room::ask(sender, tx, tx.tail, 1, TxSlot::kSeveral);
}

/// A grant reported the accepted messages, so there may be optimism again.
void on_flow(Sender& sender, const wire::FlowBody& body, Session& session, Nanos now) noexcept {
    kept_room::on_flow(sender, body, session, now);
    if (body.kind != wire::FlowKind::kGrant) return;
    std::uint32_t at = 0;
    TxStream* tx = sender.sending(body.stream, session, at);
    if (tx == nullptr || tx->granted == nullptr) return;
    const Seq bound = tx->next[at] + sender.params().source_packets;
    if (tx->edge[at].before(bound)) tx->allow(at, bound);
}

}  // namespace

const Policy kOptimistic = {
    .word = "optimistic",
    .help = "sends without knowledge of space, and again when refused (Express)",
    .tune = tune,
    .next_ack = next_ack,
    .credit = credit,
    .on_no_room = on_no_room,
    .on_stream = on_stream,
    .may_hold = may_hold,
    .on_room = on_room,
    .on_reserve = kept_room::on_reserve,
    .on_tail = kept_room::on_tail,
    .on_refused = on_refused,
    .may_start = kept_room::may_start,
    .on_flow = on_flow,
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

}  // namespace ulc::urtp
