// SPDX-License-Identifier: BSD-3-Clause
// URTP as in its paper (appendix A), for comparison. Differences from the default:
//
//   Recv            a pending receive asks at once, then after MinRecvWait, doubling to MaxRecvWait
//                   (figs. 17, 20); of several, the first: a multireceive is one receive after the
//                   other
//   HandleSND       every REQDelay-th packet beyond a hole asks for the packet at the hole
//                   (fig. 25); a duplicate is dropped
//   HandleExpected  a filled hole with another one right behind it asks for that (fig. 24); an
//                   acknowledgement when more than AckWindow packets are unacknowledged, by each
//                   receiver; none by time
//   HandleREQ       a request names one packet, acknowledges those before it, and is ignored within
//                   δ of its last transmission (fig. 23)
//
// The paper states δ = 1 ms (§3.2.1); the other constants below are ours. Its sender only waits for
// space (MinSendWait … MaxSendWait), which suffices if a receive that names its source waits for
// every packet. Ours also asks then, so that any-source receives stay live; its waits are long
// enough not to show where the paper's own means work. The paper's header has a number for each
// member; ours has its length (Params::number_vector), and `after` keeps the order that it keeps.
#include <algorithm>

#include "urtp/policies/tables.h"
#include "urtp/receiver/receiver.h"

namespace ulc::urtp {

namespace {

void tune(Params& params) noexcept {
    params.window = 32;
    params.ack_window = 8;
    params.group_ack_window = 16;
    params.ack_delay = kNever;
    params.req_delay = 2;
    params.reorder_wait = 0;
    params.req_spread = 1;
    params.repair_gather = 0;
    params.min_req_gap = std::max(params.min_req_gap, kMillisecond);
    params.first_recv_wait = 0;
    params.min_recv_wait = 10 * kMillisecond;
    params.max_recv_wait = 80 * kMillisecond;
    params.min_send_wait = 100 * kMillisecond;
    params.max_send_wait = 200 * kMillisecond;
    params.request_on_receive = true;
    params.timed_by_rtt = false;
    params.single_request = true;
    params.receives_in_turn = true;
    params.ack_duplicates = false;
    params.number_vector = true;
}

Seq next_ack(const RxStream& rx, std::uint32_t credit, const Params& params) noexcept {
    return rx.next + std::min(params.ack_window + 1, std::max(1U, credit / 2));
}

void on_gap(Receiver& receiver, RxStream& rx, bool, Nanos) noexcept {
    if (rx.asked_to != rx.next) {
        rx.asked_to = rx.next;
        rx.too_early = 0;
    }
    if (++rx.too_early < receiver.params().req_delay) return;
    rx.too_early = 0;
    receiver.make_request_due(rx, false);
}

void on_next_hole(Receiver& receiver, RxStream& rx, Nanos) noexcept {
    if (receiver.holds(rx, rx.next + 1)) receiver.make_request_due(rx, false);
}

}  // namespace

const Policy kUrtp1997 = {
    .word = "urtp-1997",
    .help = "URTP with its paper's rules and constants",
    .tune = tune,
    .next_ack = next_ack,
    .on_gap = on_gap,
    .on_next_hole = on_next_hole,
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

}  // namespace ulc::urtp
