// Error detection without recovery (GAMMA §4.5.5): the network is trusted, so nothing is acknowledged, retained, repeated or held
// back, and what goes wrong is told to the application's error handler. A packet that is not the next of its stream shows that others
// were lost; a packet without room is lost; both end in EventKind::kLost. A send while the link is down ends in kSendFailed. (A
// message longer than its receive is cut and reported by libulc, whatever the profile.)
//
// A lost tail shows only when the next packet of the stream comes. FIFO across streams is the network's: no `after` entries.
#include "urtp/impl.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

void tune(Params& params) noexcept {
    params.detect_only = true;
    params.request_on_receive = false;
    params.ack_delay = kNever;
}

Seq next_ack(const RxStream& rx, std::uint32_t, const Params&) noexcept {
    return rx.next + INT32_MAX;
}

/// The packet at next found no room.
void on_no_room(Core& core, RxStream& rx, Nanos now) noexcept {
    core.lose(rx, 1);
    core.advance(rx, now);
}

void on_room(Core& core, Nanos) noexcept {
    Session& session = *core.starved_.front();
    session.starved = false;
    core.starved_.remove(session);
}

void on_tail(Core&, TxStream&, Nanos) {}

}  // namespace

const Policy kDetect = {
    .word = "detect",
    .help = "repairs nothing; losses reach the error handler (GAMMA)",
    .recovers = false,
    .tune = tune,
    .next_ack = next_ack,
    .on_no_room = on_no_room,
    .on_room = on_room,
    .on_tail = on_tail,
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

void Member::Impl::lose(RxStream& rx, std::uint32_t packets) noexcept {
    Session& session = *rx.session;
    session.lost = packets > UINT32_MAX - session.lost ? UINT32_MAX : session.lost + packets;
    news_.push_back(session);
    rx.after_loss = true;
    count(Counter::packets_lost, packets);
}

/// A packet that is not next: late, or others before it are lost. Returns whether the segment was kept.
bool Member::Impl::take_after_loss(const wire::FrameView& frame, Segment* segment, RxStream& rx,
                                   Nanos now) {
    if (frame.seq.before(rx.next)) {
        count(Counter::drop_duplicate);
        return false;
    }
    lose(rx, static_cast<std::uint32_t>(frame.seq - rx.next));
    rx.next = rx.high = frame.seq;
    return take_in_order(frame, segment, rx, now);
}

/// Transmits and forgets: the port's reference is the last.
Segment* Member::Impl::send_once(TxSlot& slot) noexcept {
    TxStream& tx = *slot.stream;
    Segment* segment = slot.segment;
    slot.segment = nullptr;
    if (config_.send_frames != nullptr) config_.send_frames->give_back();
    ++tx.sent;
    tx.base = tx.freed = tx.sent;
    tx.limit = tx.base + tx.window;
    for (std::uint32_t at = 0; at < tx.members; ++at) {
        tx.next[at] = tx.base;
        tx.edge[at] = tx.limit;
    }
    if (!tx.active()) (tx.group != nullptr ? active_groups_ : active_unicast_).remove(tx);
    return segment;
}

}  // namespace ulc::urtp
