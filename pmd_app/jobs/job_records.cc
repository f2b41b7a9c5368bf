// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/job_records.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::jobs {

// ------------------------------------------------------------------------------ the publisher

RosterEngine* Publisher::engine_of(const Mac& mac) noexcept {
    const auto at = std::lower_bound(engines.begin(), engines.end(), mac,
                                     [](const RosterEngine& e, const Mac& m) { return e.mac < m; });
    return at == engines.end() || at->mac != mac ? nullptr : &*at;
}

bool Publisher::acknowledge(const Mac& mac) noexcept {
    RosterEngine* engine = engine_of(mac);
    if (engine == nullptr || engine->acknowledged) return false;
    engine->acknowledged = true;
    if (--waiting > 0) return false;
    due_count = 0;
    round_at = kNever;
    return true;
}

void Publisher::check_invariants() const {
    if (stage == PublisherStage::kCollecting) return;
    const auto awaited = std::ranges::count(engines, false, &RosterEngine::acknowledged);
    ULC_CHECK(static_cast<std::size_t>(awaited) == waiting);
    const auto to_send = std::ranges::count(due, true);
    ULC_CHECK(due_count == 0 || static_cast<std::size_t>(to_send) == due_count);
}

// ------------------------------------------------------------------------------ forming

LocalRank* JobRecord::local(Rank rank) noexcept {
    const auto at = std::ranges::find(locals, rank, &LocalRank::rank);
    return at == locals.end() ? nullptr : &*at;
}

LocalRank* JobRecord::local_endpoint(Handle endpoint) noexcept {
    const auto at = std::ranges::find(locals, endpoint, &LocalRank::endpoint);
    return at == locals.end() ? nullptr : &*at;
}

bool JobRecord::heard_rank0(const Mac& mac) const noexcept {
    return std::find(rank0_heard.begin(), rank0_heard.end(), mac) != rank0_heard.end();
}

void JobRecord::note_rank0(const Mac& mac) noexcept {
    rank0 = mac;
    rank0_ended = false;
    if (heard_rank0(mac) || rank0_heard.push_back(mac)) return;
    rank0_heard[rank0_next] = mac;
    rank0_next = (rank0_next + 1) % kRank0Max;
}

bool JobRecord::may_reject(const Mac& mac) const noexcept {
    if (!publisher) return heard_rank0(mac) || (assembly && assembly->publisher == mac);
    const auto from = [&](const RemoteClaim& claim) { return claim.mac == mac; };
    return std::any_of(publisher->claims.begin(), publisher->claims.end(), from);
}

void JobRecord::retract_roster() {
    publisher->stage = PublisherStage::kCollecting;
    publisher->waiting = 0;
    publisher->due_count = 0;
    publisher->round_at = kNever;
    publisher->engines.clear();
    roster.clear();
    world = 0;
}

void JobRecord::stop_publishing() {
    if (!publisher) return;
    retract_roster();
    publisher.reset();
}

void JobRecord::drop_claims(const Mac& mac, Handle handle) {
    if (!publisher) return;
    for (RemoteClaim& claim : publisher->claims) {
        if (claim.handle == 0 || claim.mac != mac) continue;
        if (handle != 0 && claim.handle != handle) continue;
        if (publisher->stage == PublisherStage::kRoster) retract_roster();
        claim = RemoteClaim{};
        --publisher->claimed;
    }
}

bool JobRecord::awaits_answer() const noexcept {
    if (phase == JobPhase::kFailed) return false;
    if (assembly && (assembly->ack_due || assembly->ack_at != kNever)) return true;
    return publisher && publisher->waiting > 0;
}

bool same_key(const JobRecord& record, const wire::JobBodyView& view) {
    if (record.by_hand != view.by_hand || record.name != view.name) return false;
    return record.by_hand || record.nonce == view.nonce;
}

// ------------------------------------------------------------------------------ formed

void JobRecord::begin(const Mac& own) {
    phase = JobPhase::kFormed;
    join_at = kNever;
    join_due = false;
    gone.assign(size, false);
    gone_events.reserve(size);
    by_mac.clear();
    for (Rank rank = 0; rank < size; ++rank) {
        if (roster[rank].mac != own) by_mac.push_back(rank);
    }
    std::sort(by_mac.begin(), by_mac.end(), [&](Rank a, Rank b) {
        const Mac& of_a = roster[a].mac;
        const Mac& of_b = roster[b].mac;
        return of_a == of_b ? a < b : of_a < of_b;
    });
}

std::span<const Rank> JobRecord::ranks_at(const Mac& mac) const noexcept {
    const auto [from, to] =
        std::equal_range(by_mac.begin(), by_mac.end(), kNoRank, [&](Rank a, Rank b) {
            return (a == kNoRank ? mac : roster[a].mac) < (b == kNoRank ? mac : roster[b].mac);
        });
    return {from, to};
}

Rank JobRecord::living_at(const Mac& mac, Handle handle) const noexcept {
    for (const Rank rank : ranks_at(mac)) {
        if (!gone[rank] && (handle == 0 || roster[rank].handle == handle)) return rank;
    }
    return kNoRank;
}

wire::LeaveReason JobRecord::expelled_as(Rank rank) const noexcept {
    const bool held_up = std::ranges::find(excluded, rank) != excluded.end();
    return held_up ? wire::LeaveReason::kExcluded : wire::LeaveReason{};
}

bool JobRecord::is_excluded(Handle endpoint, const Mac& by) const noexcept {
    return std::ranges::find(excluded_by, Exclusion{endpoint, by}) != excluded_by.end();
}

// ------------------------------------------------------------------------------ all phases

Nanos JobRecord::next_time(Nanos failed_life) const noexcept {
    Nanos next = kNever;
    const auto consider = [&next](Nanos at) { next = std::min(next, at); };
    if (phase == JobPhase::kForming) {
        if (!locals.empty()) consider(join_at);
        for (const LocalRank& local : locals)
            consider(local.deadline);
    }
    if (phase == JobPhase::kFailed) consider(failed_at + failed_life);
    if (assembly && !assembly->ack_due) consider(assembly->ack_at);
    if (publisher && publisher->due_count == 0) consider(publisher->round_at);
    for (const Bye& bye : byes)
        consider(bye.at);
    return next;
}

void JobRecord::check_invariants() const {
    ULC_CHECK(id != kNoJob && size > 0);
    for (const LocalRank& local : locals) {
        ULC_CHECK(local.rank < size && local.endpoint != 0);
        ULC_CHECK(std::ranges::count(locals, local.rank, &LocalRank::rank) == 1);
        ULC_CHECK(std::ranges::count(locals, local.endpoint, &LocalRank::endpoint) == 1);
    }
    ULC_CHECK((phase == JobPhase::kFailed) == (error != Err::kOk));
    ULC_CHECK(gone_reported <= gone_events.size());
    if (publisher != nullptr) {
        publisher->check_invariants();
        const auto claimed = std::ranges::count_if(
            publisher->claims, [](const RemoteClaim& c) { return c.handle != 0; });
        if (phase == JobPhase::kForming)
            ULC_CHECK(publisher->claims.size() == size &&
                      static_cast<std::size_t>(claimed) == publisher->claimed);
    }
    if (phase != JobPhase::kFormed) return;
    ULC_CHECK(!locals.empty());
    ULC_CHECK(roster.size() == size && gone.size() == size);
    for (const LocalRank& local : locals)
        ULC_CHECK(roster[local.rank].handle == local.endpoint &&
                  (!gone[local.rank] || expelled_as(local.rank) != wire::LeaveReason{}));
    const auto ends = static_cast<std::size_t>(std::ranges::count(gone, true));
    ULC_CHECK(ends == gone_events.size());
}

}  // namespace ulc::jobs
