// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/verdicts.h"

#include <algorithm>

namespace ulc::jobs {

Verdicts::Verdicts(const JobTable& table, JobRanks& ranks, Liveness& liveness, Links& links,
                   Counters& counters)
    : table_(table), ranks_(ranks), liveness_(liveness), links_(links), counters_(counters) {}

std::vector<JobRecord*> Verdicts::on_verdict(const NodeVerdict& verdict, Nanos now) {
    switch (verdict.kind) {
        case NodeVerdict::Kind::kDead:
        case NodeVerdict::Kind::kRestarted:
        case NodeVerdict::Kind::kGone:
        case NodeVerdict::Kind::kExpelled: {
            links_.on_verdict(verdict, now);
            std::vector<JobRecord*> touched = records_of(verdict);
            for (JobRecord* record : touched)
                end_ranks(*record, verdict);
            return touched;
        }
        case NodeVerdict::Kind::kSaysGone:
        case NodeVerdict::Kind::kSaysExpelled:
            on_hint(verdict, now);
            return {};
        case NodeVerdict::Kind::kAsks:
            answer_question(verdict, now);
            return {};
    }
    return {};
}

std::vector<JobRecord*> Verdicts::records_of(const NodeVerdict& verdict) {
    const JobIndex& index = table_.index();
    std::span<JobRecord* const> found;
    JobRecord* const own = index.of_endpoint(verdict.ours);
    if (verdict.kind == NodeVerdict::Kind::kExpelled) {
        if (own != nullptr) found = std::span(&own, 1);
    } else if (verdict.kind == NodeVerdict::Kind::kGone) {
        found = index.with_peer(verdict.mac, verdict.theirs);
    } else {
        found = index.at_node(verdict.mac);
    }
    visited_ += found.size();
    return {found.begin(), found.end()};
}

void Verdicts::on_hint(const NodeVerdict& verdict, Nanos now) {
    const JobIndex& index = table_.index();
    if (verdict.theirs != 0 && links_.has_peer(verdict.mac, verdict.theirs))
        liveness_.doubt(verdict.mac, 0, verdict.theirs, now);
    if (!liveness_.may_doubt(verdict.mac, now)) return;
    JobRecord* const own = index.of_endpoint(verdict.ours);
    const auto about = verdict.ours == 0 ? index.with_peer(verdict.mac, verdict.theirs)
                       : own != nullptr  ? std::span(&own, 1)
                                         : std::span<JobRecord* const>{};
    for (const JobRecord* record : about) {
        if (record->phase == JobPhase::kForming) continue;
        if (record->living_at(verdict.mac, verdict.theirs) == kNoRank) continue;
        if (verdict.reason == wire::LeaveReason::kExcluded &&
            record->is_excluded(verdict.ours, verdict.mac))
            continue;
        liveness_.doubt(verdict.mac, verdict.ours, verdict.theirs, now);
    }
}

namespace {

/// Returns whether the verdict is that of a silence which is too short for the job's patience.
bool waits_longer(const JobRecord& record, const NodeVerdict& verdict) noexcept {
    return verdict.kind == NodeVerdict::Kind::kDead && verdict.silence < record.patience;
}

/// Returns whether the verdict ends the publisher of the roster that the forming job holds.
bool ends_publisher(const JobRecord& record, const NodeVerdict& verdict) noexcept {
    using Kind = NodeVerdict::Kind;
    const Assembly* held = record.assembly.get();
    if (held == nullptr || !held->watched || held->publisher != verdict.mac) return false;
    if (waits_longer(record, verdict)) return false;
    const bool same_life = held->peers[0].incarnation == verdict.incarnation;
    return verdict.kind == Kind::kDead || (verdict.kind == Kind::kRestarted && !same_life) ||
           (verdict.kind == Kind::kGone && held->peers[0].handle == verdict.theirs);
}

}  // namespace

void Verdicts::end_ranks(JobRecord& record, const NodeVerdict& verdict) {
    if (record.phase == JobPhase::kForming && ends_publisher(record, verdict))
        return ranks_.publisher_gone(record, Err::kPeerDied);
    if (record.phase != JobPhase::kFormed && record.phase != JobPhase::kEnding) return;
    if (verdict.kind == NodeVerdict::Kind::kDead) {
        if (!waits_longer(record, verdict)) ranks_.node_died(record, verdict.mac, kNoRank);
        return;
    }
    if (verdict.kind == NodeVerdict::Kind::kExpelled &&
        verdict.reason == wire::LeaveReason::kExcluded) {
        const Rank there = record.living_at(verdict.mac, 0);
        if (there != kNoRank && record.roster[there].incarnation == verdict.incarnation)
            ranks_.excluded(record, verdict.ours, verdict.mac);
        return;
    }
    for (const Rank rank : record.ranks_at(verdict.mac)) {
        const urtp::Peer& peer = record.roster[rank];
        const bool same_life = peer.incarnation == verdict.incarnation;
        auto kind = JobEventKind::kPeerDied;
        if (record.gone[rank]) continue;
        if (verdict.kind == NodeVerdict::Kind::kRestarted) {
            if (same_life) continue;
        } else if (verdict.kind == NodeVerdict::Kind::kExpelled) {
            if (!same_life) continue;
            counters_.add(Counter::expelled);
        } else {
            if (peer.handle != verdict.theirs) continue;
            const bool left = same_life && verdict.reason == wire::LeaveReason::kLeft;
            if (left) kind = JobEventKind::kPeerLeft;
        }
        if (kind == JobEventKind::kPeerDied) counters_.add(Counter::peers_dead);
        ranks_.peer_gone(record, rank, kind);
    }
}

void Verdicts::remind_excluded(const NodeVerdict& asked, Nanos now) {
    const std::span<const ExcludedRank> excluded = table_.index().excluded_at(asked.mac);
    if (excluded.empty()) return;
    const auto& [record, rank] = excluded[asked.token % excluded.size()];
    const urtp::Peer& peer = record->roster[rank];
    if (peer.incarnation != asked.incarnation) return;
    liveness_.held_for_dead(peer.mac, peer.handle, wire::LeaveReason::kExcluded, now);
}

void Verdicts::answer_question(const NodeVerdict& asked, Nanos now) {
    const JobIndex& index = table_.index();
    bool expelled = false;
    auto reason = wire::LeaveReason{};
    const bool here =
        asked.ours == 0 || links_.has(asked.ours) || index.of_endpoint(asked.ours) != nullptr;
    for (const JobRecord* record : index.with_peer(asked.mac, asked.theirs)) {
        if (record->phase != JobPhase::kFormed || record->locals.empty()) continue;
        for (const Rank rank : record->ranks_at(asked.mac)) {
            const urtp::Peer& peer = record->roster[rank];
            if (peer.handle != asked.theirs || peer.incarnation != asked.incarnation) continue;
            expelled = expelled || record->gone[rank];
            if (record->gone[rank]) reason = record->expelled_as(rank);
        }
    }
    if (expelled) return liveness_.answer_expelled(asked, reason);
    if (!here) return liveness_.answer_gone(asked);
    liveness_.answer_pong(asked);
    remind_excluded(asked, now);
}

namespace {

/// Records that are looked at for a question; later pings begin with others.
constexpr std::size_t kQuestionTries = 8;

/// Asks about a rank here and one there, in turn. False: none of the node lives.
bool put_question(const JobRecord& record, const Mac& mac, std::uint64_t turn,
                  wire::NodeBody& ping) {
    if (record.locals.empty()) return false;
    Handle theirs = 0;
    if (record.phase == JobPhase::kForming) {
        theirs = record.assembly->peers[0].handle;  // of the publisher, which it watches
    } else if (record.phase == JobPhase::kFormed && record.living_at(mac, 0) != kNoRank) {
        const std::span<const Rank> there = record.ranks_at(mac);
        std::size_t at = turn % there.size();
        while (record.gone[there[at]])
            at = (at + 1) % there.size();
        theirs = record.roster[there[at]].handle;
    } else {
        return false;
    }
    ping.ours = record.locals[turn % record.locals.size()].endpoint;
    ping.theirs = theirs;
    return true;
}

}  // namespace

void Verdicts::choose_question(const Mac& mac, wire::NodeBody& ping) {
    if (ping.ours != 0 || ping.theirs != 0) return;
    std::uint64_t turn = liveness_.pings_to(mac);
    const std::span<JobRecord* const> sharing = table_.index().at_node(mac);
    // Jobs and links have the questions to a node in turn.
    if ((sharing.empty() || turn % 2 == 0) && links_.question(mac, ping)) return;
    if (links_.has_links(mac)) turn /= 2;
    for (std::size_t n = 0; n < std::min(sharing.size(), kQuestionTries); ++n) {
        ++visited_;
        const std::uint64_t at = turn + n;
        if (put_question(*sharing[at % sharing.size()], mac, at / sharing.size(), ping)) return;
    }
}

}  // namespace ulc::jobs
