// SPDX-License-Identifier: BSD-3-Clause
// Go-back-n (U-Net MPI §5): the receiver takes the next packet and drops others, with an immediate
// acknowledgement of its position ("duplicate ACK"). The window of one is on top of the larger
// queues of port and endpoint, so a burst is not lost. The sender keeps one timer a stream, for its
// oldest packet: doubled at each retransmission, at most 0.1 s, reset by progress. A duplicate ACK
// or the timer retransmits everything from that packet on. ACKs are piggybacked on data only;
// "gbn+eager" or "gbn+block" suit one-way traffic, and "gbn+backoff" shared ports: the paper's only
// bound is the window.
//
// Beyond the paper: groups (retransmissions go to the members that lack the packet, by multicast if
// several ask); the first wait of the timer follows the measured round trip; a retransmission in
// flight is not repeated; and retries are bounded by `peer_dead`, counted only while nothing at all
// is heard of the peer, since one that computes is not dead (§5.4).
#include <algorithm>

#include "urtp/policies/tables.h"
#include "urtp/receiver/receiver.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

void tune(Params& params) noexcept {
    params.selective_repeat = false;
    params.request_on_receive = false;  // wild cards know no source (§5.3)
    params.ack_delay = kNever;
    params.min_send_wait = std::max(params.min_send_wait, kMillisecond);
    params.max_send_wait = std::max(params.min_send_wait, 100 * kMillisecond);
}

Seq next_ack(const RxStream& rx, std::uint32_t, const Params&) noexcept {
    return rx.next + INT32_MAX;
}

/// Retransmits as far as the receiver has space, and the oldest in any case.
void repeat_from_oldest(Sender& sender, TxStream& tx, std::uint32_t at, Nanos now) noexcept {
    const Seq oldest = tx.next[at];
    if (!oldest.before(tx.sent)) return;
    const Seq room = oldest.before(tx.edge[at]) ? tx.edge[at] : oldest + 1;
    const Seq most = oldest + sender.repairs().may_repeat(tx, oldest, now);
    const Seq edge = room.before(most) ? room : most;
    for (Seq seq = oldest; seq.before(tx.sent) && seq.before(edge); ++seq) {
        // A packet retransmitted behind the oldest was dropped behind it, so it is not spurious.
        if (seq != oldest) tx.slot(seq).hold_blameless();
        sender.request_one(tx, seq, at, false, now);
    }
}

/// A receiver without space for even the next packet will take it at the timer's pace.
void on_repeated_ack(Sender& sender, TxStream& tx, std::uint32_t at, Nanos now) noexcept {
    if (tx.next[at].before(tx.edge[at])) repeat_from_oldest(sender, tx, at, now);
}

/// Sends a duplicate ACK. While the head waits for packets of other streams a retransmission does
/// not help, so the sender, which must learn that we live, gets the ACK at its timer's pace.
void on_gap(Receiver& receiver, RxStream& rx, bool, Nanos now) noexcept {
    if (!rx.blocked) {
        receiver.make_ack_due(rx);
    } else if (rx.ack_by == kNever) {
        receiver.acknowledge_by(rx, now + receiver.params().min_send_wait);
    }
}

/// Reports it, and that this member lives; the sender's timer brings the packet again.
void on_no_room(Receiver& receiver, RxStream& rx, Nanos) noexcept { receiver.make_ack_due(rx); }

void on_tail(Sender& sender, TxStream& tx, Nanos now) {
    if (!tx.on_wire()) {  // waits for credit: nothing to retransmit, so it asks
        sender.speak_later(tx);
        return;
    }
    for (std::uint32_t at = 0; at < tx.members; ++at) {
        if (tx.is_destination(at)) repeat_from_oldest(sender, tx, at, now);
    }
}

}  // namespace

const Policy kGoBackN = {
    .word = "gbn",
    .help = "go-back-n with one timer and lazy acknowledgements (U-Net MPI)",
    .tune = tune,
    .next_ack = next_ack,
    .on_gap = on_gap,
    .on_no_room = on_no_room,
    .on_tail = on_tail,
    .repeats_tail = true,
    .on_repeated_ack = on_repeated_ack,
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

}  // namespace ulc::urtp
