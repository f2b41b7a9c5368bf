// SPDX-License-Identifier: BSD-3-Clause
// Turns the answers of a node into the ends of its ranks (jobs/liveness.h has the proofs).
//
//   hint (GONE, EXPELLED unasked) ─doubt─▶ PING about that endpoint ─answer─▶ ranks end
//   PING from a node ──▶ EXPELLED if its endpoint is gone here, GONE if ours is unknown, else PONG
//
// So the two ends of a relation come to one view of it: an end that holds the other for gone says
// so whenever it is asked, and each end asks.
#include <algorithm>

#include "jobs/job_records.h"

namespace ulc::jobs {

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

void Jobs::Impl::on_verdict(const NodeVerdict& verdict, Nanos now) {
    switch (verdict.kind) {
        case NodeVerdict::Kind::kDead:
        case NodeVerdict::Kind::kRestarted:
        case NodeVerdict::Kind::kGone:
        case NodeVerdict::Kind::kExpelled: {
            links.on_verdict(verdict, now);
            const std::vector<JobRecord*> touched = records_of(verdict);
            for (JobRecord* record : touched)
                end_ranks(*record, verdict, now);
            return settle(touched, now);
        }
        case NodeVerdict::Kind::kSaysGone:
        case NodeVerdict::Kind::kSaysExpelled:
            return on_hint(verdict, now);
        case NodeVerdict::Kind::kAsks:
            return answer_question(verdict, now);
    }
}

/// Returns the records in which ranks may end.
std::vector<JobRecord*> Jobs::Impl::records_of(const NodeVerdict& verdict) {
    std::span<JobRecord* const> found;
    JobRecord* const own = index.of_endpoint(verdict.ours);
    if (verdict.kind == NodeVerdict::Kind::kExpelled) {
        if (own != nullptr) found = std::span(&own, 1);
    } else if (verdict.kind == NodeVerdict::Kind::kGone) {
        found = index.with_peer(verdict.mac, verdict.theirs);
    } else {
        found = index.at_node(verdict.mac);
    }
    visited += found.size();
    return {found.begin(), found.end()};
}

/// A hint proves nothing. A claim whose endpoint is gone is not repeated, and lapses.
void Jobs::Impl::on_hint(const NodeVerdict& verdict, Nanos now) {
    if (verdict.theirs != 0 && links.has_peer(verdict.mac, verdict.theirs))
        liveness.doubt(verdict.mac, 0, verdict.theirs, now);
    if (!liveness.may_doubt(verdict.mac, now)) return;
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
        liveness.doubt(verdict.mac, verdict.ours, verdict.theirs, now);
    }
}

/// Ends all ranks of the job at that node. `counted`: the transport counted this one.
void Jobs::Impl::node_died(JobRecord& record, const Mac& mac, Rank counted, Nanos now) {
    for (const Rank rank : record.ranks_at(mac)) {
        if (record.gone[rank]) continue;
        if (rank != counted) counters.add(Counter::peers_dead);
        peer_gone(record, rank, JobEventKind::kPeerDied, now);
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

void Jobs::Impl::end_ranks(JobRecord& record, const NodeVerdict& verdict, Nanos now) {
    if (record.phase == JobPhase::kForming && ends_publisher(record, verdict))
        return publisher_gone(record, Err::kPeerDied);
    if (record.phase != JobPhase::kFormed && record.phase != JobPhase::kEnding) return;
    if (verdict.kind == NodeVerdict::Kind::kDead) {
        if (!waits_longer(record, verdict)) node_died(record, verdict.mac, kNoRank, now);
        return;
    }
    if (verdict.kind == NodeVerdict::Kind::kExpelled &&
        verdict.reason == wire::LeaveReason::kExcluded) {
        const Rank there = record.living_at(verdict.mac, 0);
        if (there != kNoRank && record.roster[there].incarnation == verdict.incarnation)
            excluded(record, verdict.ours, verdict.mac);
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
            counters.add(Counter::expelled);
        } else {
            if (peer.handle != verdict.theirs) continue;
            const bool left = same_life && verdict.reason == wire::LeaveReason::kLeft;
            if (left) kind = JobEventKind::kPeerLeft;
        }
        if (kind == JobEventKind::kPeerDied) counters.add(Counter::peers_dead);
        peer_gone(record, rank, kind, now);
    }
}

void Jobs::Impl::excluded(JobRecord& record, Handle endpoint, const Mac& by) {
    if (record.is_excluded(endpoint, by)) return;
    record.excluded_by.push_back({endpoint, by});
    counters.add(Counter::expelled);
    JobEvent event;
    event.kind = JobEventKind::kExcluded;
    event.job = record.id;
    event.endpoint = endpoint;
    event.first = by;
    events.push_back(event);
}

/// Notifies the rank by a hint at once, by others when it sends, and by answers to its node.
void Jobs::Impl::exclude(JobRecord& record, Rank rank, Nanos now) {
    if (record.gone[rank]) return;
    const urtp::Peer peer = record.roster[rank];
    record.excluded.push_back(rank);
    index.exclude(record, rank);
    peer_gone(record, rank, JobEventKind::kPeerExcluded, now);
    if (peer.mac == config.mac) return excluded(record, peer.handle, peer.mac);
    liveness.held_for_dead(peer.mac, peer.handle, wire::LeaveReason::kExcluded, now);
}

/// Sends a hint to one excluded rank at a node that asks: it may not know yet, and be still.
void Jobs::Impl::remind_excluded(const NodeVerdict& asked, Nanos now) {
    const std::span<const ExcludedRank> excluded = index.excluded_at(asked.mac);
    if (excluded.empty()) return;
    const auto& [record, rank] = excluded[asked.token % excluded.size()];
    const urtp::Peer& peer = record->roster[rank];
    if (peer.incarnation != asked.incarnation) return;
    liveness.held_for_dead(peer.mac, peer.handle, wire::LeaveReason::kExcluded, now);
}

void Jobs::Impl::answer_question(const NodeVerdict& asked, Nanos now) {
    bool expelled = false;
    auto reason = wire::LeaveReason{};
    const bool here =
        asked.ours == 0 || links.has(asked.ours) || index.of_endpoint(asked.ours) != nullptr;
    for (const JobRecord* record : index.with_peer(asked.mac, asked.theirs)) {
        if (record->phase != JobPhase::kFormed || record->locals.empty()) continue;
        for (const Rank rank : record->ranks_at(asked.mac)) {
            const urtp::Peer& peer = record->roster[rank];
            if (peer.handle != asked.theirs || peer.incarnation != asked.incarnation) continue;
            expelled = expelled || record->gone[rank];
            if (record->gone[rank]) reason = record->expelled_as(rank);
        }
    }
    if (expelled) return liveness.answer_expelled(asked, reason);
    if (!here) return liveness.answer_gone(asked);
    liveness.answer_pong(asked);
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

void Jobs::Impl::choose_question(const Mac& mac, wire::NodeBody& ping) {
    if (ping.ours != 0 || ping.theirs != 0) return;
    std::uint64_t turn = liveness.pings_to(mac);
    const std::span<JobRecord* const> sharing = index.at_node(mac);
    // Jobs and links have the questions to a node in turn.
    if ((sharing.empty() || turn % 2 == 0) && links.question(mac, ping)) return;
    if (links.has_links(mac)) turn /= 2;
    for (std::size_t n = 0; n < std::min(sharing.size(), kQuestionTries); ++n) {
        ++visited;
        const std::uint64_t at = turn + n;
        if (put_question(*sharing[at % sharing.size()], mac, at / sharing.size(), ping)) return;
    }
}

}  // namespace ulc::jobs
