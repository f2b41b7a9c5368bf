// SPDX-License-Identifier: BSD-3-Clause
// Claims of other engines, and REJECTs (claims.h).
#include <algorithm>
#include <bitset>

#include "jobs/forming/claims.h"

namespace ulc::jobs {

void Claims::on_join(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    if (view.introduces) return introduce(view, source, now);
    liveness_.hint(source, view.join->incarnation, now);
    std::bitset<wire::kJoinClaimsMax> dealt_with;
    rejects_.begin_join();
    const std::span<JobRecord* const> there = table_.records_of(view);
    const bool next_attempt = std::ranges::any_of(there, [&](const JobRecord* record) {
        return same_key(*record, view) && record->phase == JobPhase::kForming && record->publisher;
    });
    for (JobRecord* record : there) {
        if (!same_key(*record, view) || record->phase == JobPhase::kForming) continue;
        if (next_attempt && record->phase == JobPhase::kFailed) continue;
        for (std::size_t i = 0; i < view.claims.size(); ++i) {
            if (known_claim(*record, view, view.claims[i], source, now)) dealt_with.set(i);
        }
    }
    for (JobRecord* record : there) {
        if (!same_key(*record, view) || record->phase != JobPhase::kForming) continue;
        for (std::size_t i = 0; i < view.claims.size(); ++i) {
            if (view.claims[i].rank == 0 && !record->publisher) {
                note_rank0(*record, source, now);
                if (view.join->version_max < wire::kVersionOfAttributes) record->join_old = source;
            }
            if (dealt_with.test(i) || !record->publisher) continue;
            new_claim(*record, view, view.claims[i], source, now);
            if (record->phase != JobPhase::kForming) break;
        }
        if (record->phase == JobPhase::kForming && record->publisher)
            publisher_.try_complete(*record, now);
    }
}

/// Claims again at once, since rank 0 has come, rather than at the end of the back-off. Once for
/// each node: it repeats itself, and thousands of claims at each repetition would fill the wire.
void Claims::note_rank0(JobRecord& record, const Mac& source, Nanos now) {
    const bool early = !record.heard_rank0(source) && record.early_joins < 2 * kRank0Max;
    record.note_rank0(source);
    if (!early) return;
    ++record.early_joins;
    record.join_at =
        std::max(record.begins_at, std::min(record.join_at, now + node_.jitter(record)));
}

void Claims::introduce(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    for (JobRecord* record : table_.records_of(view)) {
        if (!same_key(*record, view) || record->phase != JobPhase::kForming) continue;
        for (const wire::JoinClaim& claim : view.claims) {
            if (claim.rank != 0) continue;
            if (record->publisher) {
                new_claim(*record, view, claim, source, now);
            } else {
                record->note_rank0(source);
            }
            break;
        }
    }
}

std::span<JobRecord* const> Claims::refuse_old(const wire::JobBodyView& view, const Mac& source,
                                               Nanos now) {
    if (view.nonce.zero()) return {};
    const std::span<JobRecord* const> there =
        table_.index().find(false, {}, wire::job_id_of(view.nonce));
    for (JobRecord* record : there) {
        if (record->by_hand || record->name != view.name || record->secret != view.nonce) continue;
        rejects_.reject_old(*record, source, view.claims[0]);
        if (record->phase != JobPhase::kForming) continue;
        ranks_.fail_job(*record, Err::kVersion, view.claims[0].rank, node_.config().mac, source,
                        now);
    }
    return there;
}

bool Claims::known_claim(JobRecord& record, const wire::JobBodyView& view,
                         const wire::JoinClaim& claim, const Mac& source, Nanos now) {
    switch (record.phase) {
        case JobPhase::kForming:
            return false;
        case JobPhase::kFailed:
            return claim_of_failed(record, claim, source, now);
        case JobPhase::kFormed:
        case JobPhase::kEnding:
            return record.publisher && claim_of_formed(record, view, claim, source);
    }
    return false;
}

bool Claims::claim_of_formed(JobRecord& record, const wire::JobBodyView& view,
                             const wire::JoinClaim& claim, const Mac& source) {
    const Rank rank = claim.rank;
    if (rank < record.size && record.size == view.join->size) {
        const urtp::Peer& peer = record.roster[rank];
        // COMMIT is in flight. Another endpoint of that node waits for the next job of this name,
        // or is an old frame: only BYE or GONE reports that a rank is gone.
        if (peer.mac == source) return !record.gone[rank] && peer.handle == claim.handle;
    }
    if (!record.has_rank_0()) return false;  // ending: the name is free again
    Err error = Err::kRankTaken;
    Mac first = node_.config().mac;
    if (rank == 0) {
        error = Err::kTwoRosters;
    } else if (record.size != view.join->size) {
        error = Err::kJobSize;
    } else if (record.gone[rank]) {
        return false;  // waits for the next job of that name
    } else {
        first = record.roster[rank].mac;
    }
    rejects_.reject_claim(record, source, claim, error, first);
    return true;
}

bool Claims::claim_of_failed(JobRecord& record, const wire::JoinClaim& claim, const Mac& source,
                             Nanos now) {
    const auto same = [&](const RemoteClaim& known) {
        return known.mac == source && known.handle == claim.handle;
    };
    Publisher& publisher = *record.publisher;
    bool known = std::any_of(publisher.culprits.begin(), publisher.culprits.end(), same) ||
                 (claim.rank < publisher.claims.size() && same(publisher.claims[claim.rank]));
    // A rank that claimed before the failure has claimed again by then; a later claim is a new
    // attempt.
    const bool before = now - record.failed_at <= 2 * node_.config().join_wait_max;
    if (!known && before) {
        known = publisher.culprits.push_back(RemoteClaim{source, claim.handle, 0, now, {}});
    }
    if (!known) return false;
    rejects_.reject_claim(record, source, claim, record.error,
                          record.second == source ? record.first : record.second);
    return true;
}

void Claims::new_claim(JobRecord& record, const wire::JobBodyView& view,
                       const wire::JoinClaim& claim, const Mac& source, Nanos now) {
    const JobsConfig& config = node_.config();
    Publisher& publisher = *record.publisher;
    const Rank rank = claim.rank;
    const auto conflict = [&](Err error, const Mac& other) {
        (void)publisher.culprits.push_back(
            RemoteClaim{source, claim.handle, view.join->incarnation, now, {}});
        ranks_.fail_job(record, error, rank, other, source, now);
        rejects_.announce_failure(record);
    };
    if (view.join->size != record.size) return conflict(Err::kJobSize, config.mac);
    if (view.profile != record.profile) return conflict(Err::kProfile, config.mac);
    const std::uint8_t lowest = std::max(publisher.version_min, view.join->version_min);
    const std::uint8_t highest = std::min(publisher.version_max, view.join->version_max);
    if (lowest > highest) {  // fails alone: the right version may still be started in its place
        return rejects_.reject_claim(record, source, claim, Err::kVersion, config.mac);
    }
    if (record.local(rank) != nullptr) {
        return conflict(rank == 0 ? Err::kTwoRosters : Err::kRankTaken, config.mac);
    }
    RemoteClaim& known = publisher.claims[rank];
    const bool fresh = now - known.heard <= config.claim_life;
    if (known.handle != 0 && known.mac != source && fresh) {
        return conflict(Err::kRankTaken, known.mac);
    }
    const bool same = known.mac == source && known.handle == claim.handle &&
                      known.incarnation == view.join->incarnation;
    if (!same && publisher.stage == PublisherStage::kRoster) record.retract_roster();
    publisher.version_min = lowest;
    publisher.version_max = highest;
    if (known.handle == 0) ++publisher.claimed;
    known = RemoteClaim{source, claim.handle, view.join->incarnation, now, {}};
    for (const std::byte octet : view.attribute_octets)
        known.attributes.push_back(static_cast<std::uint8_t>(octet));
}

void Claims::on_reject(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    const wire::RejectBody& reject = *view.reject;
    const Err error = static_cast<Err>(std::uint32_t{reject.error});
    for (JobRecord* record : table_.records_of(view)) {
        if (!same_key(*record, view) || record->phase != JobPhase::kForming) continue;
        if (reject.scope == wire::RejectScope::kClaim) {
            const LocalRank* local = record->local_endpoint(reject.handle);
            if (local == nullptr || local->rank != reject.rank) continue;
        }
        if (!record->may_reject(source)) {
            counters_.add(Counter::drop_unproven);
            continue;
        }
        ranks_.fail_job(*record, error, reject.rank, reject.first, reject.second, now);
    }
}

}  // namespace ulc::jobs
