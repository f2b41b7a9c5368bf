// SPDX-License-Identifier: BSD-3-Clause
#include "client/arrivals/shares.h"

#include <new>

#include "base/check.h"
#include "client/arrivals/arrivals.h"

namespace ulc::client {
namespace {

/// Stopped senders that one poll judges again, because memory of others may have become free.
constexpr unsigned kJudgedAtOnce = 8;

}  // namespace

bool Shares::begin_job(std::uint16_t ranks) noexcept {
    try {
        senders_.assign(ranks, Sender{});
        to_hold_.reserve(ranks);
        to_note_.reserve(ranks);
        stopped_.clear();
        stopped_.reserve(ranks);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

void Shares::count(Arrival& arrival, std::uint64_t octets) noexcept {
    arrival.counted += octets;
    senders_[arrival.source].held += octets;
    judge_hold(arrival.source);
    judge(arrival.source);
}

void Shares::uncount(Arrival& arrival) noexcept {
    if (arrival.counted == 0) return;
    senders_[arrival.source].held -= arrival.counted;
    arrival.counted = 0;
    judge_hold(arrival.source);
}

void Shares::judge_hold(std::uint16_t source) noexcept {
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

abi::Intake Shares::due_intake(std::uint16_t source) const noexcept {
    const Sender& sender = senders_[source];
    const bool stopped = sender.intake != abi::Intake::kAll;
    if (sender.memory <= (stopped ? unused() / 2 : unused())) return abi::Intake::kAll;
    return arrivals_.has_wanted(source) ? abi::Intake::kToEnd : abi::Intake::kNone;
}

void Shares::judge(std::uint16_t source) noexcept {
    Sender& sender = senders_[source];
    if (sender.intake == abi::Intake::kAll && sender.memory <= unused()) [[likely]]
        return;
    const abi::Intake due = due_intake(source);
    if (due == sender.intake) return;
    if (sender.intake == abi::Intake::kAll) {
        stopped_.push_back(source);
        handler_.report(ULC_ERR_LIMIT, source, sender.memory);
    } else if (due == abi::Intake::kAll) {
        *std::ranges::find(stopped_, source) = stopped_.back();
        stopped_.pop_back();
    }
    sender.intake = due;
    if (sender.noted) return;
    sender.noted = true;
    to_note_.push_back(source);
}

bool Shares::next_intake(std::uint16_t& source, abi::Intake& intake) noexcept {
    for (unsigned n = 0; n < kJudgedAtOnce && !stopped_.empty(); ++n) {
        if (stopped_turn_ >= stopped_.size()) stopped_turn_ = 0;
        judge(stopped_[stopped_turn_++]);
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

void Shares::check_invariants(const std::vector<std::uint64_t>& memory) const {
    ULC_CHECK(memory.size() == senders_.size());
    std::size_t listed = 0;
    std::size_t noted = 0;
    std::size_t stopped = 0;
    for (std::size_t source = 0; source < senders_.size(); ++source) {
        const Sender& sender = senders_[source];
        ULC_CHECK(sender.memory == memory[source]);
        ULC_CHECK(sender.listed || sender.holds || !sender.told);
        ULC_CHECK(sender.intake == sender.noted_intake || sender.noted);
        listed += sender.listed ? 1 : 0;
        noted += sender.noted ? 1 : 0;
        stopped += sender.intake != abi::Intake::kAll ? 1 : 0;
    }
    ULC_CHECK(listed == to_hold_.size() && noted == to_note_.size());
    ULC_CHECK(stopped == stopped_.size());
}

}  // namespace ulc::client
