// SPDX-License-Identifier: BSD-3-Clause
// The words p0, p0-slot, p1 and pcode: group streams by the rules of PCODE §3, §4 and §5. Unicast
// streams keep the default profile's, which is the separate mechanism for point-to-point messages
// that §5.6 requires.
//
//            buffer of sent messages        early messages   NACK            STATUS
//   p0       1024 (the paper: unbounded)    ignored          on request,     when asked
//                                                            to all
//   p1       a window                       ignored          on request      when asked: the buffer
//                                                                            is full
//   pcode    a window                       64 saved         on request      also by the global
//                                                            after a delay,  counter, which bounds
//                                                            on both kinds   the senders by a flow
//                                                            of gap          window
//
// p0-slot is P0 with its ready slot: a receiver keeps one message of a source for the receive that
// names it, and drops the next (fig. 2, 3). p0 delivers as other profiles do, since a message that
// no receive names waits in the slot for MaxRecvWait. The paper's programs have no such messages.
//
// Beyond the paper: a source whose tail is without news asks for STATUS, so a message is
// retransmitted although no request names its source; a NACK's repetitions double up to
// MaxRecvWait; gaps that a dead member left are skipped.
#include <algorithm>

#include "urtp/policies/tables.h"
#include "urtp/profiles/pcode/rules.h"

namespace ulc::urtp {

namespace {

constexpr std::uint32_t kUnboundedBuffer = 1024;  ///< P0's limit here
/// Probe slots (one is a short frame's time on the wire) for which a tail without news waits before
/// STATUS is requested, within these bounds.
constexpr Nanos kTailWaitSlots = 1000;
constexpr Nanos kTailWaitLeast = 2 * kMillisecond;
constexpr Nanos kTailWaitMost = 100 * kMillisecond;

void tune_all(Params& params) noexcept {
    params.receives_in_turn = true;  // one request is pending (fig. 2)
    // STATUS is requested and answered by all to all: rarely, where the paper's own means work.
    const Nanos wait =
        std::clamp(kTailWaitSlots * params.probe_slot, kTailWaitLeast, kTailWaitMost);
    params.min_send_wait = std::max(params.min_send_wait, wait);
    params.max_send_wait = std::max({params.min_send_wait, params.max_send_wait, kTailWaitMost});
}

void tune_p0(Params& params) noexcept {
    tune_all(params);
    params.group_window_min = kUnboundedBuffer;
    params.early_messages = 0;
    params.first_recv_wait = 0;  // IssueNack at once (fig. 2)
    params.min_req_gap = 0;      // a source answers every NACK
    params.flow_window = UINT32_MAX;
    params.status_window = UINT32_MAX;
}

void tune_p1(Params& params) noexcept {
    tune_p0(params);
    params.group_window_min = 0;
}

void tune_pcode(Params& params) noexcept {
    tune_all(params);
    params.min_req_gap = 0;
}

Seq next_ack(const RxStream& rx, std::uint32_t credit, const Params& params) noexcept {
    if (rx.group == nullptr) return kUrtp.next_ack(rx, credit, params);
    return rx.next + INT32_MAX;
}

std::uint32_t credit(Receiver& receiver, RxStream& rx) noexcept {
    return rx.group == nullptr ? kUrtp.credit(receiver, rx) : rx.window;
}

/// Called for the next hole: a NACK asks up to the first message saved; messages missing behind it
/// are another gap, with separate timers (§5.7).
void on_next_hole(Receiver& receiver, RxStream& rx, Nanos now) noexcept {
    if (rx.group == nullptr) return;
    receiver.stop_asking(rx);
    receiver.ask_for_gap(rx, true, now);
}

/// Requests STATUS when the buffer of sent messages is full (§4).
void on_refused(Sender& sender, TxStream& tx, Nanos now) noexcept {
    if (tx.group != nullptr) sender.probe_now(tx, now);
}

template <pcode::Rules::Version kVersion>
std::unique_ptr<GroupRules> make_rules(const TransportParts& parts, Group& group) {
    return std::make_unique<pcode::Rules>(parts, group, kVersion);
}

template <pcode::Rules::Version kVersion>
constexpr Policy table(std::string_view word, std::string_view help,
                       void (*tune)(Params&) noexcept) noexcept {
    Policy policy;
    policy.word = word;
    policy.help = help;
    policy.tune = tune;
    policy.next_ack = next_ack;
    policy.credit = credit;
    policy.on_next_hole = on_next_hole;
    policy.group_rules = make_rules<kVersion>;
    policy.on_refused = on_refused;
    policy.on_opened = Uncontrolled::on_opened;  // its flow window bounds a group
    policy.on_acked = Uncontrolled::on_acked;
    policy.on_lost = Uncontrolled::on_lost;
    return policy;
}

void tune_p0_slot(Params& params) noexcept {
    tune_p0(params);
    params.ready_slot = true;
}

}  // namespace

const Policy kP0 = table<pcode::Rules::Version::kZero>(
    "p0", "groups by PCODE's first protocol: NACKs on request, to all", tune_p0);
const Policy kP0Slot = table<pcode::Rules::Version::kZero>(
    "p0-slot", "the same with one ready slot for each source, which a receive empties",
    tune_p0_slot);
const Policy kP1 = table<pcode::Rules::Version::kFirst>(
    "p1", "the same with bounded memory, freed by STATUS", tune_p1);
const Policy kPcode = table<pcode::Rules::Version::kFull>(
    "pcode", "groups by PCODE: global counters, flow window, early detection", tune_pcode);

}  // namespace ulc::urtp
