// SPDX-License-Identifier: BSD-3-Clause
// The invariants of jobs, between two rounds.
#include <algorithm>
#include <set>

#include "base/check.h"
#include "jobs/job_records.h"

namespace ulc::jobs {
namespace {

void check_publisher(const JobRecord& record, const Publisher& publisher) {
    const auto claimed =
        std::ranges::count_if(publisher.claims, [](const RemoteClaim& c) { return c.handle != 0; });
    if (record.phase == JobPhase::kForming)
        ULC_CHECK(publisher.claims.size() == record.size &&
                  static_cast<std::size_t>(claimed) == publisher.claimed);
    if (publisher.stage == PublisherStage::kCollecting) return;
    const auto waiting = std::ranges::count(publisher.engines, false, &RosterEngine::acknowledged);
    ULC_CHECK(static_cast<std::size_t>(waiting) == publisher.waiting);
    const auto due = std::ranges::count(publisher.due, true);
    ULC_CHECK(publisher.due_count == 0 || static_cast<std::size_t>(due) == publisher.due_count);
}

void check_record(const JobRecord& record) {
    ULC_CHECK(record.id != kNoJob && record.size > 0);
    for (const LocalRank& local : record.locals) {
        ULC_CHECK(local.rank < record.size && local.endpoint != 0);
        ULC_CHECK(std::ranges::count(record.locals, local.rank, &LocalRank::rank) == 1);
        ULC_CHECK(std::ranges::count(record.locals, local.endpoint, &LocalRank::endpoint) == 1);
    }
    ULC_CHECK((record.phase == JobPhase::kFailed) == (record.error != Err::kOk));
    ULC_CHECK(record.gone_reported <= record.gone_events.size());
    if (record.publisher != nullptr) check_publisher(record, *record.publisher);
    if (record.phase != JobPhase::kFormed) return;
    ULC_CHECK(!record.locals.empty());
    ULC_CHECK(record.roster.size() == record.size && record.gone.size() == record.size);
    for (const LocalRank& local : record.locals)
        ULC_CHECK(
            record.roster[local.rank].handle == local.endpoint &&
            (!record.gone[local.rank] || record.expelled_as(local.rank) != wire::LeaveReason{}));
    const auto gone = static_cast<std::size_t>(std::ranges::count(record.gone, true));
    ULC_CHECK(gone == record.gone_events.size());
}

}  // namespace

void Jobs::check_invariants() const {
    links_.check_invariants();
    std::set<JobId> ids;
    for (const auto& record : impl_->records) {
        check_record(*record);
        ULC_CHECK(ids.insert(record->id).second);
    }
    ULC_CHECK(impl_->records.size() <= impl_->config.jobs_max);
    ULC_CHECK(next_look_ <= next_timer());
    ULC_CHECK(impl_->events.empty() || next_look_ == 0);
}

}  // namespace ulc::jobs
