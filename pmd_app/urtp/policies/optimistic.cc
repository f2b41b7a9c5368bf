// Optimistic flow control (Express §3.1, §4.2): short and medium messages go without knowing of room, since there mostly is
// some. A receiver that has none refuses (REFUSE, the paper's negative acknowledgement), and the sender brings the message again by
// the conservative way: RESERVE, GRANT, then the message. Longer messages go the conservative way at once.
//
// The paper's numbers are those of a stream: out = tail, in = the receiver's next, which rides on whatever goes back, and
// safe = base. Optimism is bounded: a sender may be at most `kOptimism` numbers beyond safe, so a receiver never has to
// remember more announced messages of a stream. That memory, the paper's FIFO queue, is the interval [next, high): a number in it
// was announced, and stands in delivery order whether its message was accepted (held) or refused.
//
// Nothing is acknowledged by itself. Where traffic runs one way, a sender that may not go on asks (the paper's inquiry: PROBE), and
// so does one whose tail is without news. What is acknowledged is let go lazily: when many are retained, or all are done.
// The paper's network loses nothing; here a lost message is asked for as in the default profile.
#include <algorithm>

#include "urtp/policies/room.h"
#include "urtp/policies/tables.h"

namespace ulc::urtp {

namespace {

constexpr std::uint32_t kOptimism = 64;  ///< messages announced and not known to be accepted
constexpr std::uint64_t kMediumOctetsMax = 4096;  ///< a page (§3.1)

void tune(Params& params) noexcept {
    params.reserve_above = kMediumOctetsMax;
    params.source_packets = std::min(kOptimism, params.window / 2);
    params.free_lazily = std::min(2 * kOptimism, params.window);
    params.ack_delay = kNever;
}

Seq next_ack(const RxStream& rx, std::uint32_t, const Params&) noexcept {
    return rx.next + INT32_MAX;
}

/// The bound on optimism, whatever room there is.
std::uint32_t credit(Core& core, RxStream& rx) noexcept {
    (void)room::kept_for(core, rx);
    return std::max<std::uint32_t>(
        core.config_.params.source_packets,
        static_cast<std::uint32_t>(std::max(0, rx.room.granted_to - rx.next)));
}

void on_stream(Core&, RxStream& rx) noexcept {
    rx.room.rationed = true;
    rx.room.granted_to = rx.next;
}

/// Anything that is not kept for a grant.
bool may_hold(Core& core, RxStream& rx, Seq seq, bool&) noexcept {
    return room::by_grant(core, rx, seq) || core.store_.free_count() > core.kept_;
}

/// Refuses what is announced and not here; asks again itself should the refusal be lost.
void on_no_room(Core& core, RxStream& rx, Nanos now) noexcept {
    rx.room.refuse_due = true;
    core.control_.push_back(*rx.session);
    core.ask_later(rx, now);
}

/// Room goes to those that asked for it; the others were refused and will ask.
void on_room(Core& core, Nanos) noexcept {
    Session& session = *core.starved_.front();
    if (room::grant_waiting(core, session)) {
        core.starved_.rotate();
        return;
    }
    session.starved = false;
    core.starved_.remove(session);
}

/// Inquiry.
void on_refused(Core& core, TxStream& tx, Nanos now) noexcept { core.probe_now(tx, now); }

}  // namespace

const Policy kOptimistic = {
    .word = "optimistic",
    .help = "sends without knowing of room, and again when refused (Express)",
    .tune = tune,
    .next_ack = next_ack,
    .credit = credit,
    .on_no_room = on_no_room,
    .on_stream = on_stream,
    .may_hold = may_hold,
    .on_room = on_room,
    .on_tail = room::on_tail,
    .on_refused = on_refused,
    .may_start = room::may_start,
    .on_flow = room::on_flow,
    .on_opened = Uncontrolled::on_opened,
    .on_acked = Uncontrolled::on_acked,
    .on_lost = Uncontrolled::on_lost,
};

}  // namespace ulc::urtp
