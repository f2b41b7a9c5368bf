// SPDX-License-Identifier: BSD-3-Clause
// Claims of endpoints of this engine, and their JOINs. remote_claims.cc has those of others.
#include "jobs/forming/claims.h"

#include <algorithm>
#include <utility>

namespace ulc::jobs {
namespace {

constexpr Nanos kPatienceMax = 3600 * kSecond;
/// A claim of a job that forms is broadcast at most once in this time for each job that forms.
constexpr Nanos kBroadcastWait = 20 * kMillisecond;
constexpr Nanos kHurryWait = 100 * kMillisecond;
constexpr Nanos kHurryBurst = 64;

/// Returns the record of a job that the request begins.
std::unique_ptr<JobRecord> record_of(const JoinRequest& request) {
    auto record = std::make_unique<JobRecord>();
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
    return record;
}

}  // namespace

Claims::Claims(OwnNode& node, JobTable& table, JobRanks& ranks, Rejects& rejects,
               RosterPublisher& publisher, Liveness& liveness, Counters& counters)
    : node_(node),
      table_(table),
      ranks_(ranks),
      rejects_(rejects),
      publisher_(publisher),
      liveness_(liveness),
      counters_(counters) {}

Err Claims::admit(const JoinRequest& request, JobRecord*& forming) const {
    if (!wire::is_job_name(request.name) || request.size == 0 || request.rank >= request.size) {
        return Err::kInvalid;
    }
    if (!wire::is_profile(request.profile)) return Err::kInvalid;
    if (request.endpoint == 0 || is_group(request.endpoint)) return Err::kInvalid;
    if (request.size > node_.config().ranks_max) return Err::kLimit;
    for (const auto& record : table_.all()) {
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

Result<JobId> Claims::join(const JoinRequest& request, Nanos now) {
    const JobsConfig& config = node_.config();
    JobRecord* record = nullptr;
    if (const Err error = admit(request, record); error != Err::kOk) return error;
    if (record == nullptr) {
        if (!table_.has_record_for(request.user)) return Err::kLimit;
        record = &table_.add(record_of(request));
    }
    record->patience = std::max(record->patience, std::min(request.patience, kPatienceMax));
    if (request.rank == 0) record->medium = request.medium;
    table_.add_local(*record, {request.rank, request.endpoint, request.deadline});
    record->join_wait = std::max(config.join_wait_min, record->size * config.answer_slot);
    record->join_at = std::max(now, record->begins_at);
    const JobId id = record->id;
    if (request.rank == 0) publisher_.begin(*record, request.endpoint);
    if (record->publisher) {
        // A remote claim of the same rank came before.
        RemoteClaim& claim = record->publisher->claims[request.rank];
        if (claim.handle != 0) {
            ranks_.fail_job(*record, Err::kRankTaken, request.rank, config.mac, claim.mac, now);
            rejects_.announce_failure(*record);
        } else {
            publisher_.try_complete(*record, now);
        }
    }
    return id;
}

void Claims::on_timer(JobRecord& record, Nanos now) {
    if (record.phase != JobPhase::kForming) return;
    ranks_.check_deadlines(record, now);
    if (record.join_at <= now && !record.locals.empty()) make_join_due(record, now);
}

// ------------------------------------------------------------------------------ JOIN

// J-38
std::size_t Claims::put_join_old(JobRecord& record, std::byte* body, Mac& to) const {
    to = record.join_old;
    record.join_old = Mac{};
    wire::JoinClaim claim{};
    claim.rank = record.locals.front().rank;
    claim.handle = record.locals.front().endpoint;
    return node_.put_claims(record, body, std::span(&claim, 1), 0, {});
}

/// Once more now, and then after a wait that doubles each time.
void Claims::make_join_due(JobRecord& record, Nanos now) {
    const JobsConfig& config = node_.config();
    record.join_due = true;
    record.join_cursor = 0;
    // Claims of all jobs together are repeated at most 50 times a second, as long as none of them
    // is forgotten for being repeated too late. The first repeats of a job come earlier while there
    // have been few of them: a user may begin jobs without end.
    const auto forming =
        static_cast<Nanos>(std::ranges::count_if(table_.all(), [](const auto& one) {
            return one->phase == JobPhase::kForming && !one->locals.empty();
        }));
    const Nanos paced = std::min(forming * kBroadcastWait, config.claim_life * 3 / 4);
    const Nanos steady = std::max(config.join_wait_max, paced);
    if (record.join_wait < steady && !may_hurry(now)) record.join_wait = steady;
    record.join_at = now + record.join_wait + node_.jitter(record);
    record.join_wait = std::min(record.join_wait * 2, steady);
}

/// Takes one of the early repeats: there are kHurryBurst at once, then one each kHurryWait.
bool Claims::may_hurry(Nanos now) noexcept {
    const Nanos due = std::max(hurry_full_at_, now);
    if (due - now > kHurryWait * (kHurryBurst - 1)) return false;
    hurry_full_at_ = due + kHurryWait;
    return true;
}

std::size_t Claims::put_join(JobRecord& record, std::byte* body, Mac& to, Nanos now) {
    if (record.phase != JobPhase::kForming) return 0;
    if (record.join_old != Mac{} && !record.locals.empty()) return put_join_old(record, body, to);
    if (!record.join_due && record.join_at <= now && !record.locals.empty()) {
        // Claimed just now, or a round that was longer than the wait: this JOIN does not wait for
        // the next timer.
        make_join_due(record, now);
    }
    if (!record.join_due || record.join_cursor >= record.locals.size()) {
        record.join_due = false;
        return 0;
    }
    wire::JoinClaim claims[wire::kJoinClaimsMax];
    const wire::AttributeOctets own = wire::octets_of(node_.attributes_in(record));
    const std::size_t fit = wire::join_claims_max(own.size());
    const std::size_t count = std::min(record.locals.size() - record.join_cursor, fit);
    for (std::size_t i = 0; i < count; ++i) {
        const LocalRank& local = record.locals[record.join_cursor + i];
        claims[i].rank = local.rank;
        claims[i].handle = local.endpoint;
    }
    record.join_cursor += count;
    return node_.put_claims(record, body, std::span(claims, count), 0, wire::span_of(own));
}

}  // namespace ulc::jobs
