// SPDX-License-Identifier: BSD-3-Clause
// The part of an endpoint's memory that messages of one sender without a receive may hold.
//
// Share. A sender whose messages hold more bytes than are free is stopped: the engine takes no
// further message of it, and its own credit stops it. It goes on when it holds at most half of
// the free bytes (dynamic thresholds, Choudhury and Hahne 1998). So a sender that sends without end
// leaves half of the memory to others, and k of them at least the 2^k-th part. Messages that hold
// at most half of the memory together stop no sender, however many there are. Messages that were
// on their way when a sender is stopped come in addition: at most the completion ring and the
// receive arena, for all senders together.
//
// Order holds, because the engine stops all streams of the sender together. A multicast of a
// stopped sender waits for this member, as for each member without memory.
//
// No circle of ranks waits because of a share, unless it would wait at the limit of all as well:
//   - A note to the engine waits behind no send (abi::SourceNote). So memory of messages that the
//     application has received is free for their sender, whatever else waits.
//   - The rest of a message that has a receive, or for which ulc_take() waits, needs no memory of
//     the share. It is taken to its end (Intake::kToEnd).
//   - A sender that may be asked to hold (ulc_set_rendezvous) is asked at a quarter of its share.
//     From then on its long messages are announced, and each holds one Arrival.
//   - A sender that dies is taken to its end, so that its death is reported.
// A rank that waits for a message behind more unexpected ones of the same sender than the share
// must receive some of those first. ULC_ERR_LIMIT names the sender to the error handler.
#include "client/p2p/inbox.h"

namespace ulc::client {

namespace {

/// Stopped senders that one poll judges again, because memory of others may have become free.
constexpr unsigned kJudgedAtOnce = 8;

}  // namespace

void Inbox::count(Arrival& arrival, std::uint64_t octets) noexcept {
    arrival.counted += octets;
    senders_[arrival.source].held += octets;
    judge_sender(arrival.source);
    judge_share(arrival.source);
}

void Inbox::uncount(Arrival& arrival) noexcept {
    if (arrival.counted == 0) return;
    senders_[arrival.source].held -= arrival.counted;
    arrival.counted = 0;
    judge_sender(arrival.source);
}

void Inbox::judge_sender(std::uint16_t source) noexcept {
    if (held_max_ == UINT64_MAX) return;
    Sender& sender = senders_[source];
    const std::uint64_t held = sender.holds ? held_max_ / 2 : held_max_;
    const std::uint64_t share = sender.holds ? unused() / 8 : unused() / 4;
    const bool holds = sender.held > std::min(held, share);
    if (holds == sender.holds) return;
    sender.holds = holds;
    if (sender.listed) return;
    sender.listed = true;
    to_hold_.push_back(source);
}

// A message that nothing has matched takes memory, also if it has no bytes.
void Inbox::add_unexpected(Arrival& arrival) noexcept {
    matcher_.add_unexpected(arrival);
    judge_share(arrival.source);
}

// The copy of a message grows or ends.
void Inbox::charge(const Arrival& arrival, std::uint64_t before, std::uint64_t after) noexcept {
    if (!arrival.awaited)
        senders_[arrival.source].memory = senders_[arrival.source].memory - before + after;
}

abi::Intake Inbox::due_intake(std::uint16_t source) noexcept {
    const Sender& sender = senders_[source];
    const bool stopped = sender.intake != abi::Intake::kAll;
    if (sender.memory <= (stopped ? unused() / 2 : unused())) return abi::Intake::kAll;
    for (const Arrival* a = matcher_.open(source).front(); a != nullptr; a = OpenArrivals::next(*a))
        if (a->request != nullptr || a->awaited || a->discarded) return abi::Intake::kToEnd;
    return abi::Intake::kNone;
}

void Inbox::judge_share(std::uint16_t source) noexcept {
    Sender& sender = senders_[source];
    if (sender.intake == abi::Intake::kAll && sender.memory <= unused()) [[likely]]
        return;
    const abi::Intake due = due_intake(source);
    if (due == sender.intake) return;
    if (sender.intake == abi::Intake::kAll) {
        stopped_.push_back(source);
        report(ULC_ERR_LIMIT, source, sender.memory);
    } else if (due == abi::Intake::kAll) {
        *std::ranges::find(stopped_, source) = stopped_.back();
        stopped_.pop_back();
    }
    sender.intake = due;
    if (sender.noted) return;
    sender.noted = true;
    to_note_.push_back(source);
}

bool Inbox::next_intake(std::uint16_t& source, abi::Intake& intake) noexcept {
    for (unsigned n = 0; n < kJudgedAtOnce && !stopped_.empty(); ++n) {
        if (stopped_turn_ >= stopped_.size()) stopped_turn_ = 0;
        judge_share(stopped_[stopped_turn_++]);
    }
    while (!to_note_.empty()) {
        source = to_note_.back();
        to_note_.pop_back();
        Sender& sender = senders_[source];
        sender.noted = false;
        if (sender.noted_intake == sender.intake) continue;
        sender.noted_intake = sender.intake;
        intake = sender.intake;
        return true;
    }
    return false;
}

}  // namespace ulc::client
