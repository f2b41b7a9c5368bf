// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/job_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/share.h"

namespace ulc::jobs {

JobTable::JobTable(const OwnNode& node, const Rejects& rejects, Liveness& liveness,
                   Counters& counters)
    : node_(node),
      rejects_(rejects),
      liveness_(liveness),
      counters_(counters),
      index_(node.config().seed.number(kJobsSeed)) {
    records_.reserve(node.config().jobs_max);
}

// ------------------------------------------------------------------------------ finding

JobRecord* JobTable::find(JobId id) const noexcept {
    const auto at =
        std::find_if(records_.begin(), records_.end(), [id](const auto& r) { return r->id == id; });
    return at == records_.end() ? nullptr : at->get();
}

const wire::JobKey* JobTable::key_of(const wire::Nonce& id) const noexcept {
    for (const JobRecord* record : index_.find(false, {}, id)) {
        if (!record->by_hand && record->nonce == id) return &record->key;
    }
    return index_.key_of_ended(id, ended_jobs_);
}

bool JobTable::is_authentic(const wire::JobBodyView& view, const Mac& source) const {
    if (view.by_hand) return true;
    const wire::JobKey* key = key_of(view.nonce);
    if (key == nullptr) return false;  // of a job of others
    if (wire::same_tag(wire::job_tag(*key, source, view.tagged), *view.tag)) return true;
    counters_.add(Counter::drop_tag);
    return false;
}

bool JobTable::world_in_use(GroupHandle world) const noexcept {
    const JobsConfig& config = node_.config();
    if (config.group_in_use != nullptr && config.group_in_use(config.group_context, world))
        return true;
    return std::ranges::any_of(records_,
                               [world](const auto& record) { return record->world == world; });
}

JobRecord* JobTable::with_unreported() const noexcept {
    for (const auto& record : records_)
        if (record->has_unreported()) return record.get();
    return nullptr;
}

Nanos JobTable::next_time() noexcept {
    Nanos next = kNever;
    for (const auto& record : records_)
        next = std::min(next, record->next_time(node_.config().failed_life));
    visited_ += records_.size();
    return next;
}

bool JobTable::is_drained() const noexcept {
    return std::ranges::none_of(records_, [](const auto& record) {
        return !record->byes.empty() || record->phase == JobPhase::kEnding;
    });
}

// ------------------------------------------------------------------------------ beginning

JobRecord& JobTable::add(std::unique_ptr<JobRecord> record) {
    JobRecord& added = *record;
    records_.push_back(std::move(record));
    added.id = ++last_id_;
    index_.add(added);
    return added;
}

bool JobTable::has_record_for(std::uint32_t user) {
    const JobsConfig& config = node_.config();
    const auto owned = [user](const auto& record) { return record->user == user; };
    const auto failed = [](const auto& record) { return record->phase == JobPhase::kFailed; };
    const auto over = [this](const auto& record) { return only_repeats_byes(*record); };
    const auto failed_own = [&](const auto& record) { return owned(record) && failed(record); };
    const auto over_own = [&](const auto& record) { return owned(record) && over(record); };
    const auto count = [this](const auto& which) {
        return static_cast<std::size_t>(std::ranges::count_if(records_, which));
    };
    const auto admitted_without = [&](std::size_t of_all, std::size_t of_own) {
        return within_share({config.jobs_max, records_.size() - of_all}, config.user_share,
                            count(owned) - of_own, 1);
    };
    const auto drop_ended = [&](const auto& which) {
        while (!admitted_without(0, 0)) {
            const auto oldest = std::ranges::find_if(records_, which);
            if (oldest == records_.end()) return false;
            forget(**oldest);
            index_.remove(**oldest);
            records_.erase(oldest);
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
    if (records_.size() < config.jobs_max ||
        !admitted_without(count(over) + count(failed), with_failed))
        return false;
    remove_records(failed);
    return drop_ended(over_own) || drop_ended(over);
}

void JobTable::add_local(JobRecord& record, const LocalRank& local) {
    record.locals.push_back(local);
    index_.claim(local.endpoint, record);
}

// ------------------------------------------------------------------------------ ending

bool JobTable::answers(const JobRecord& record) const {
    return rejects_.has(record.id) || record.awaits_answer();
}

bool JobTable::only_repeats_byes(const JobRecord& record) const {
    const JobsConfig& config = node_.config();
    return record.phase == JobPhase::kEnding && !answers(record) &&
           std::ranges::all_of(record.byes,
                               [&config](const Bye& bye) { return bye.left < config.byes; });
}

bool JobTable::is_finished(const JobRecord& record, Nanos now) const {
    if (!record.byes.empty() || !record.locals.empty() || answers(record)) return false;
    return record.phase != JobPhase::kFailed ||
           now >= record.failed_at + node_.config().failed_life;
}

void JobTable::remember_key(const JobRecord& record) {
    if (record.by_hand) return;
    const auto place = static_cast<std::uint32_t>(ended_next_);
    if (ended_jobs_.size() < kEndedJobsMax) {
        ended_jobs_.emplace_back();
    } else {
        index_.remove_ended(ended_jobs_[ended_next_].id, place);
    }
    ended_jobs_[ended_next_] = EndedJob{record.nonce, record.key};
    index_.add_ended(record.nonce, place);
    ended_next_ = (ended_next_ + 1) % kEndedJobsMax;
}

void JobTable::forget(const JobRecord& record) {
    remember_key(record);
    if (record.assembly && record.assembly->watched) liveness_.unwatch(record.assembly->publisher);
    for (std::size_t rank = 0; rank < record.roster.size(); ++rank) {
        const Mac& mac = record.roster[rank].mac;
        if (!record.gone[rank] && mac != node_.config().mac) liveness_.unwatch(mac);
    }
}

void JobTable::forget_finished(Nanos now) {
    const auto over = [&](const auto& record) { return is_finished(*record, now); };
    for (const auto& record : records_)
        if (over(record)) forget(*record);
    visited_ += records_.size();
    remove_records(over);
}

void JobTable::remove_local(JobRecord& record, std::size_t at) {
    index_.release(record.locals[at].endpoint, record);
    record.locals.erase(record.locals.begin() + static_cast<std::ptrdiff_t>(at));
}

// ------------------------------------------------------------------------------ peers

void JobTable::exclude(JobRecord& record, Rank rank) {
    record.excluded.push_back(rank);
    index_.exclude(record, rank);
}

void JobTable::watch_publisher(JobRecord& record, Nanos now) {
    Assembly& assembly = *record.assembly;
    assembly.watched = liveness_.watch(assembly.publisher, assembly.peers[0].incarnation, now);
    index_.list_peers(record);
}

void JobTable::drop_assembly(JobRecord& record) noexcept {
    if (record.assembly && record.assembly->watched) liveness_.unwatch(record.assembly->publisher);
    index_.unlist_peers(record);
    record.assembly.reset();
}

void JobTable::check_invariants() const {
    std::set<JobId> ids;
    for (const auto& record : records_) {
        record->check_invariants();
        ULC_CHECK(ids.insert(record->id).second);
    }
    ULC_CHECK(records_.size() <= node_.config().jobs_max);
}

}  // namespace ulc::jobs
