// SPDX-License-Identifier: BSD-3-Clause
// Error detection without recovery (GAMMA §4.5.5): the network is trusted, so nothing is
// acknowledged, retained, retransmitted or held back, and faults are reported to the application's
// error handler. A packet that is not the next of its stream shows that others were lost; a packet
// without space is lost; both end in EventKind::kLost. A send while the link is down ends in
// kSendFailed. (libulc cuts and reports a message longer than its receive, in any profile.)
//
// A lost tail shows only when the next packet of the stream comes. The network provides FIFO across
// streams: no `after` entries.
#include "urtp/policies/tables.h"
#include "urtp/receiver/receiver.h"
#include "urtp/receiver/told.h"

namespace ulc::urtp {

namespace {

void tune(Params& params) noexcept {
    params.acknowledged = false;
    params.request_on_receive = false;
    params.ack_delay = kNever;
}

Seq next_ack(const RxStream& rx, std::uint32_t, const Params&) noexcept {
    return rx.next + INT32_MAX;
}

/// Called when the packet at next found no space.
void on_no_room(Receiver& receiver, RxStream& rx, Nanos now) noexcept {
    receiver.lose(rx, 1);
    Receiver::advance(rx, now);
}

void on_room(Receiver& receiver, Nanos) noexcept {
    receiver.room().end_starving(receiver.room().first_starved());
}

/// Handles a packet that is not next: late, or others before it are lost.
bool take_after_loss(Receiver& receiver, const wire::FrameView& frame, Segment* segment,
                     RxStream& rx, Nanos now) {
    if (frame.seq.before(rx.next)) {
        receiver.count(Counter::drop_duplicate);
        return false;
    }
    receiver.lose(rx, static_cast<std::uint32_t>(frame.seq - rx.next));
    // Nothing is acknowledged here, and numbers are compared within half of their range.
    rx.acked = rx.next = rx.high = frame.seq;
    return receiver.take_in_order(frame, segment, rx, now);
}

/// Senders with this profile name no predecessors.
bool drop_unmet(Receiver& receiver, const wire::FrameView&, Segment*, RxStream&, Nanos) {
    receiver.count(Counter::drop_after_unmeetable);
    return false;
}

constexpr ReceiveMode kDetectMode = {.not_next = take_after_loss, .unmet = drop_unmet};

void on_tail(Sender&, TxStream&, Nanos) {}

}  // namespace

const Policy kDetect = {
    .word = "detect",
    .help = "repairs nothing; losses reach the error handler (GAMMA)",
    .recovers = false,
    .tune = tune,
    .next_ack = next_ack,
    .on_no_room = on_no_room,
    .on_room = on_room,
    .receive_mode = &kDetectMode,
    .on_tail = on_tail,
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

}  // namespace ulc::urtp
