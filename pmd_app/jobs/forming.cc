// SPDX-License-Identifier: BSD-3-Clause
// Claims of ranks, and the reaction when they disagree (jobs/jobs.h).
//
// A conflict in a job that is still forming fails all of it, at once and everywhere, with both
// nodes named: half a job is useless, and its ranks would only wait for their deadlines. A job that
// has formed is never disturbed: only the new claim is rejected. Both REJECTs are sent once, and
// again whenever a rejected claim is heard again, so loss only delays them. One engine never claims
// a rank twice at once (join() refuses), so another claim of the same rank from the same node means
// that the first claimant is gone: it is replaced, or its rank has died.
#include <algorithm>
#include <bitset>
#include <cstring>

#include "base/share.h"
#include "jobs/job_records.h"
#include "wire/mac_text.h"

namespace ulc::jobs {
namespace {

constexpr Nanos kPatienceMax = 3600 * kSecond;

std::string_view reason_of(Err error) noexcept {
    switch (error) {
        case Err::kJobSize:
            return "gave different job sizes";
        case Err::kTwoRosters:
            return "both claim rank 0 of this job name";
        case Err::kVersion:
            return "speak no common protocol version";
        case Err::kProfile:
            return "use different transport profiles";
        case Err::kLimit:
            return "have a job whose roster needs too many frames; raise the MTU of all nodes";
        default:
            return "both claim the rank";
    }
}

/// Returns "3, 5-7": the unset ones of 0 … size-1, cut short.
template <typename IsSet>
std::string ranks_missing(std::uint32_t size, IsSet is_set) {
    std::string text;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        if (is_set(rank)) continue;
        if (text.size() > 60) return text + ", …";
        if (!text.empty()) text += ", ";
        text += std::to_string(rank);
        std::uint32_t last = rank;
        while (last + 1 < size && !is_set(last + 1))
            ++last;
        if (last > rank) text += "-" + std::to_string(last);
        rank = last;
    }
    return text;
}

std::string rank0_ended_text(const JobRecord& record) {
    return "rank 0 at " + text_of(record.rank0) + " ended before all ranks knew each other";
}

}  // namespace

// ------------------------------------------------------------------------------ local claims

/// Finds the record to which the claim belongs, and endpoints of this engine with which it
/// conflicts.
Err Jobs::Impl::admit(const JoinRequest& request, JobRecord*& forming) {
    if (!wire::is_job_name(request.name) || request.size == 0 || request.rank >= request.size) {
        return Err::kInvalid;
    }
    if (!wire::is_profile(request.profile)) return Err::kInvalid;
    if (request.endpoint == 0 || is_group(request.endpoint)) return Err::kInvalid;
    if (request.size > config.ranks_max) return Err::kLimit;
    for (const auto& record : records) {
        if (record->local_endpoint(request.endpoint) != nullptr) return Err::kInvalid;
        const bool by_hand = request.nonce.zero();
        if (record->by_hand != by_hand || record->name != request.name) continue;
        if (!by_hand && record->secret != request.nonce) continue;
        const bool claimed = record->local(request.rank) != nullptr;
        const bool publishes = record->has_rank_0();
        if (record->phase == JobPhase::kForming && !record->locals.empty()) {
            if (record->size != request.size) return Err::kJobSize;
            if (record->profile != request.profile) return Err::kProfile;
            if (claimed) return Err::kRankTaken;
            forming = record.get();
        } else if (record->phase == JobPhase::kFormed) {
            if (publishes && request.rank == 0) return Err::kTwoRosters;
            if (publishes && record->size != request.size) return Err::kJobSize;
            if (claimed || (publishes && !record->gone[request.rank])) return Err::kRankTaken;
        }
    }
    return Err::kOk;
}

/// Returns whether the user may begin a job. Records of jobs that are over are removed if that
/// helps: of ended ones whose remaining BYEs only repeat, the oldest first; of the user's failed
/// jobs; and in a full table those of others. The claimants of a failed job then reach their
/// deadlines, and a peer that has lost each BYE learns of the end by liveness.
bool Jobs::Impl::has_record_for(std::uint32_t user) {
    const auto owned = [user](const auto& record) { return record->user == user; };
    const auto failed = [](const auto& record) { return record->phase == JobPhase::kFailed; };
    const auto over = [this](const auto& record) { return only_repeats_byes(*record); };
    const auto failed_own = [&](const auto& record) { return owned(record) && failed(record); };
    const auto over_own = [&](const auto& record) { return owned(record) && over(record); };
    const auto count = [this](const auto& which) {
        return static_cast<std::size_t>(std::ranges::count_if(records, which));
    };
    const auto admitted_without = [&](std::size_t of_all, std::size_t of_own) {
        return within_share({config.jobs_max, records.size() - of_all}, config.user_share,
                            count(owned) - of_own, 1);
    };
    const auto drop_ended = [&](const auto& which) {
        while (!admitted_without(0, 0)) {
            const auto oldest = std::ranges::find_if(records, which);
            if (oldest == records.end()) return false;
            forget(**oldest);
            index.remove(**oldest);
            records.erase(oldest);
        }
        return true;
    };
    const std::size_t own = count(over_own);
    if (admitted_without(own, own)) return drop_ended(over_own);
    const std::size_t with_failed = own + count(failed_own);
    if (admitted_without(with_failed, with_failed)) {
        remove_records(failed_own);
        return drop_ended(over_own);
    }
    if (records.size() < config.jobs_max ||
        !admitted_without(count(over) + count(failed), with_failed))
        return false;
    remove_records(failed);
    return drop_ended(over_own) || drop_ended(over);
}

Result<JobId> Jobs::Impl::join(const JoinRequest& request, Nanos now) {
    JobRecord* record = nullptr;
    if (const Err error = admit(request, record); error != Err::kOk) return error;
    if (record == nullptr) {
        if (!has_record_for(request.user)) return Err::kLimit;
        records.push_back(std::make_unique<JobRecord>());
        record = records.back().get();
        record->id = ++last_id;
        record->user = request.user;
        record->name = request.name;
        record->by_hand = request.nonce.zero();
        if (!record->by_hand) {
            record->secret = request.nonce;
            record->nonce = wire::job_id_of(request.nonce);
            record->key = wire::job_key_of(request.nonce);
        }
        record->size = request.size;
        record->profile = request.profile;
        record->begins_at = request.begins_at;
        index.add(*record);
    }
    record->patience = std::max(record->patience, std::min(request.patience, kPatienceMax));
    if (request.rank == 0) record->medium = request.medium;
    record->locals.push_back(LocalRank{request.rank, request.endpoint, request.deadline});
    index.claim(request.endpoint, *record);
    record->join_wait = std::max(config.join_wait_min, record->size * config.answer_slot);
    record->join_at = std::max(now, record->begins_at);
    const JobId id = record->id;
    if (request.rank == 0) become_publisher(*record, request.endpoint);
    if (record->publisher) {
        // A remote claim of the same rank came before.
        RemoteClaim& claim = record->publisher->claims[request.rank];
        if (claim.handle != 0) {
            fail_job(*record, Err::kRankTaken, request.rank, config.mac, claim.mac, now);
            announce_failure(*record);
        } else {
            try_complete(*record, now);
        }
    }
    return id;
}

void Jobs::Impl::become_publisher(JobRecord& record, Handle rank0) {
    record.publisher = std::make_unique<Publisher>();
    record.publisher->rank0 = rank0;
    record.publisher->claims.resize(record.size);
    record.publisher->version_min = config.version_min;
    record.publisher->version_max = config.version_max;
}

/// Rank 0 ended before the job formed. The next rank 0 hears the claims again.
void Jobs::Impl::stop_publishing(JobRecord& record) {
    if (!record.publisher) return;
    retract_roster(record);
    record.publisher.reset();
}

// ------------------------------------------------------------------------------ remote claims

void Jobs::Impl::on_join(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    liveness.hint(source, view.join->incarnation, now);
    std::bitset<wire::kJoinClaimsMax> dealt_with;
    rejects_left = kRejectsPerJoin;
    const std::span<JobRecord* const> there = records_of(view);
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
        if (record->phase == JobPhase::kForming && record->publisher) try_complete(*record, now);
    }
}

/// Claims again at once, since rank 0 has come, rather than at the end of the back-off. Once for
/// each node: it repeats itself, and thousands of claims at each repetition would fill the wire.
void Jobs::Impl::note_rank0(JobRecord& record, const Mac& source, Nanos now) {
    const bool early = !record.heard_rank0(source) && record.early_joins < 2 * kRank0Max;
    record.note_rank0(source);
    if (!early) return;
    ++record.early_joins;
    record.join_at = std::max(record.begins_at, std::min(record.join_at, now + jitter(record)));
}

void Jobs::Impl::on_introduction(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    for (JobRecord* record : records_of(view)) {
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

void Jobs::Impl::refuse_old(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    if (view.nonce.zero()) return;
    const std::span<JobRecord* const> there = index.find(false, {}, wire::job_id_of(view.nonce));
    for (JobRecord* record : there) {
        if (record->by_hand || record->name != view.name || record->secret != view.nonce) continue;
        PendingReject reject{source, record->id, {}};
        reject.old = true;
        reject.body.error = static_cast<std::uint32_t>(Err::kVersion);
        reject.body.scope = wire::RejectScope::kClaim;
        reject.body.rank = view.claims[0].rank;
        reject.body.handle = view.claims[0].handle;
        reject.body.first = config.mac;
        reject.body.second = source;
        (void)rejects.push_back(reject);  // full: the claim comes again
        if (record->phase != JobPhase::kForming) continue;
        fail_job(*record, Err::kVersion, view.claims[0].rank, config.mac, source, now);
    }
    settle(there, now);
}

bool Jobs::Impl::known_claim(JobRecord& record, const wire::JobBodyView& view,
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

bool Jobs::Impl::claim_of_formed(JobRecord& record, const wire::JobBodyView& view,
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
    Mac first = config.mac;
    if (rank == 0) {
        error = Err::kTwoRosters;
    } else if (record.size != view.join->size) {
        error = Err::kJobSize;
    } else if (record.gone[rank]) {
        return false;  // waits for the next job of that name
    } else {
        first = record.roster[rank].mac;
    }
    reject_claim(record, source, claim, error, first);
    return true;
}

bool Jobs::Impl::claim_of_failed(JobRecord& record, const wire::JoinClaim& claim, const Mac& source,
                                 Nanos now) {
    const auto same = [&](const RemoteClaim& known) {
        return known.mac == source && known.handle == claim.handle;
    };
    Publisher& publisher = *record.publisher;
    bool known = std::any_of(publisher.culprits.begin(), publisher.culprits.end(), same) ||
                 (claim.rank < publisher.claims.size() && same(publisher.claims[claim.rank]));
    // A rank that claimed before the failure has claimed again by then; a later claim is a new
    // attempt.
    const bool before = now - record.failed_at <= 2 * config.join_wait_max;
    if (!known && before) {
        known = publisher.culprits.push_back(RemoteClaim{source, claim.handle, 0, now, {}});
    }
    if (!known) return false;
    reject_claim(record, source, claim, record.error,
                 record.second == source ? record.first : record.second);
    return true;
}

void Jobs::Impl::new_claim(JobRecord& record, const wire::JobBodyView& view,
                           const wire::JoinClaim& claim, const Mac& source, Nanos now) {
    Publisher& publisher = *record.publisher;
    const Rank rank = claim.rank;
    const auto conflict = [&](Err error, const Mac& other) {
        (void)publisher.culprits.push_back(
            RemoteClaim{source, claim.handle, view.join->incarnation, now, {}});
        fail_job(record, error, rank, other, source, now);
        announce_failure(record);
    };
    if (view.join->size != record.size) return conflict(Err::kJobSize, config.mac);
    if (view.profile != record.profile) return conflict(Err::kProfile, config.mac);
    const std::uint8_t lowest = std::max(publisher.version_min, view.join->version_min);
    const std::uint8_t highest = std::min(publisher.version_max, view.join->version_max);
    if (lowest > highest) {  // fails alone: the right version may still be started in its place
        return reject_claim(record, source, claim, Err::kVersion, config.mac);
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
    if (!same && publisher.stage == PublisherStage::kRoster) retract_roster(record);
    publisher.version_min = lowest;
    publisher.version_max = highest;
    if (known.handle == 0) ++publisher.claimed;
    known = RemoteClaim{source, claim.handle, view.join->incarnation, now, {}};
    for (const std::byte octet : view.attribute_octets)
        known.attributes.push_back(static_cast<std::uint8_t>(octet));
}

// ------------------------------------------------------------------------------ failing

void Jobs::Impl::reject_claim(const JobRecord& record, const Mac& to, const wire::JoinClaim& claim,
                              Err error, const Mac& first) {
    if (rejects_left == 0) return;  // the claim comes again
    --rejects_left;
    PendingReject reject{to, record.id, {}};
    reject.body.error = static_cast<std::uint32_t>(error);
    reject.body.scope = wire::RejectScope::kClaim;
    reject.body.rank = claim.rank;
    reject.body.handle = claim.handle;
    reject.body.first = first;
    reject.body.second = to;
    (void)rejects.push_back(reject);  // full: the claim comes again
}

void Jobs::Impl::on_reject(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    const wire::RejectBody& reject = *view.reject;
    const Err error = static_cast<Err>(std::uint32_t{reject.error});
    for (JobRecord* record : records_of(view)) {
        if (!same_key(*record, view) || record->phase != JobPhase::kForming) continue;
        if (reject.scope == wire::RejectScope::kClaim) {
            const LocalRank* local = record->local_endpoint(reject.handle);
            if (local == nullptr || local->rank != reject.rank) continue;
        }
        if (!record->may_reject(source)) {
            counters.add(Counter::drop_unproven);
            continue;
        }
        fail_job(*record, error, reject.rank, reject.first, reject.second, now);
    }
}

void Jobs::Impl::fail_job(JobRecord& record, Err error, Rank rank, const Mac& first,
                          const Mac& second, Nanos now) {
    const std::string why = first == second ? twins_text(record, first)
                                            : "rank " + std::to_string(rank) + ": nodes " +
                                                  text_of(first) + " and " + text_of(second) + " " +
                                                  std::string(reason_of(error));
    fail_with(record, error, why, first, second);
    record.conflict_rank = rank;
    record.failed_at = record.publisher ? now : now - config.failed_life;
}

void Jobs::Impl::fail_with(JobRecord& record, Err error, const std::string& why, const Mac& first,
                           const Mac& second) {
    for (const LocalRank& local : record.locals)
        fail_local(record, local, error, first, second, why);
    while (!record.locals.empty())
        remove_local(record, record.locals.size() - 1);
    record.join_at = kNever;
    record.join_due = false;
    if (record.publisher && record.publisher->stage == PublisherStage::kRoster) {
        retract_roster(record);
    }
    drop_assembly(record);
    record.phase = JobPhase::kFailed;
    record.error = error;
    record.first = first;
    record.second = second;
}

void Jobs::Impl::publisher_gone(JobRecord& record, Err error) {
    record.rank0 = record.assembly->publisher;
    record.rank0_ended = true;
    if (record.by_hand) return drop_assembly(record);
    fail_with(record, error, rank0_ended_text(record), record.rank0, config.mac);
}

void Jobs::Impl::announce_failure(const JobRecord& record) {
    PendingReject reject{kBroadcastMac, record.id, {}};
    reject.body.error = static_cast<std::uint32_t>(record.error);
    reject.body.scope = wire::RejectScope::kJob;
    reject.body.rank = record.conflict_rank;
    reject.body.first = record.first;
    reject.body.second = record.second;
    if (record.first == config.mac && record.second == config.mac)
        reject.body.handle =
            config.incarnation;       // a twin may not have heard a claim of this engine
    (void)rejects.push_back(reject);  // full: each claimant is notified when it claims again
}

void Jobs::Impl::fail_local(JobRecord& record, const LocalRank& local, Err error, const Mac& first,
                            const Mac& second, const std::string& why) {
    JobEvent event;
    event.kind = JobEventKind::kFailed;
    event.job = record.id;
    event.endpoint = local.endpoint;
    event.rank = local.rank;
    event.error = error;
    event.first = first;
    event.second = second;
    event.text = why;
    events.push_back(std::move(event));
    liveness.ended(local.endpoint, wire::LeaveReason::kDied);
}

void Jobs::Impl::check_deadlines(JobRecord& record, Nanos now) {
    std::string why;
    for (std::size_t i = 0; i < record.locals.size();) {
        const LocalRank local = record.locals[i];
        if (local.deadline > now) {
            ++i;
            continue;
        }
        if (why.empty() && record.twin != 0) {
            why = twins_text(record, config.mac);
        } else if (why.empty() && record.publisher) {
            why = "still missing of " + std::to_string(record.size) +
                  " ranks: " + ranks_missing(record.size, [&](std::uint32_t rank) {
                      return record.publisher->claims[rank].handle != 0 ||
                             record.local(static_cast<Rank>(rank)) != nullptr;
                  });
        } else if (why.empty() && record.rank0_ended) {
            why = rank0_ended_text(record);
        } else if (why.empty() && record.rank0 != Mac{}) {
            why = "rank 0 at " + text_of(record.rank0) + " is still waiting for other ranks";
        } else if (why.empty()) {
            why = "rank 0 was not heard on this network";
        }
        fail_local(record, local, Err::kTimeout, config.mac, record.rank0, why);
        record.byes.push_back(Bye{local.rank, local.endpoint, wire::LeaveReason::kDied, config.byes,
                                  now, config.bye_wait});
        remove_local(record, i);
        if (local.rank == 0) stop_publishing(record);
    }
}

}  // namespace ulc::jobs
