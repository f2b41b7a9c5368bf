// SPDX-License-Identifier: BSD-3-Clause
// The default: selective repeat by request (URTP §3.1), acknowledgements that do not implode,
// credit from a shared pool, and a probe for the tail (docs/PROTOCOL.md §4). Decisions D6 to
// D8.
//
// Acknowledgements: a unicast receiver every `ack_window` numbers (`lone_ack_window` if that is
// more); member m of a group when next passes a number ≡ m (mod A), so that the source gets one a
// packet whatever the group's size.
//
// Credit: the free part of the pool less the part that the source holds already, so that sources
// which do not drain share the pool (dynamic thresholds, Choudhury and Hahne 1998, with alpha 1),
// and never less than the source's reserved packet.
#include <algorithm>

#include "urtp/policies/tables.h"
#include "urtp/receiver/receiver.h"
#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

Seq next_ack(const RxStream& rx, std::uint32_t credit, const Params& params) noexcept {
    // A source with little credit must get the ACK sooner.
    const std::uint32_t soon = std::max(1U, credit / 2);
    if (rx.group == nullptr) return rx.next + std::min(params.unasked_ack_window(), soon);
    const std::uint32_t modulus = rx.group->ack_modulus;
    if (credit < 2 * modulus) return rx.next + std::min(modulus, soon);
    const std::uint32_t to_own = (rx.group->own + modulus - rx.next.value % modulus) % modulus;
    return rx.next + (to_own + 1);
}

std::uint32_t credit(Receiver& receiver, RxStream& rx) noexcept {
    if (receiver.room().has(*rx.session, rx.window + rx.session->held)) [[likely]]
        return rx.window;
    const std::uint32_t free = receiver.room().of(*rx.session);
    const std::uint32_t held = rx.session->held;
    const std::uint32_t reserved = rx.session->reserved_used ? 0 : 1;
    return std::min(rx.window, std::max(free > held ? free - held : 0, reserved));
}

void on_gap(Receiver& receiver, RxStream& rx, bool new_gap, Nanos now) noexcept {
    receiver.ask_for_gap(rx, new_gap, now);
}

void on_no_room(Receiver& receiver, RxStream& rx, Nanos now) noexcept {
    receiver.ask_later(rx, now);
}

void on_room(Receiver& receiver, Nanos) noexcept { receiver.offer_room(); }

void on_tail(Sender& sender, TxStream& tx, Nanos) { sender.speak_later(tx); }

void on_refused(Sender&, TxStream&, Nanos) noexcept {}

}  // namespace

const Policy kUrtp = {
    .word = kDefaultProfile,
    .help = "the default: selective repeat, requests for what is missing, spread acknowledgements",
    .next_ack = next_ack,
    .credit = credit,
    .on_gap = on_gap,
    .on_no_room = on_no_room,
    .on_room = on_room,
    .receive_mode = &kRepairMode,
    .on_tail = on_tail,
    .on_refused = on_refused,
};

}  // namespace ulc::urtp
