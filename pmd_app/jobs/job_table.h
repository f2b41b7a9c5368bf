// SPDX-License-Identifier: BSD-3-Clause
// The records of the jobs of this engine, and the keys of jobs that have ended. Used by all parts
// of jobs/jobs.h: it finds the records that a frame names, admits new ones, and forgets those that
// are over.
//
// Invariants: each record has another id; the index knows each record, its local ranks and its
// peers (job_index.h); at most JobsConfig::jobs_max records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/counters.h"
#include "jobs/forming/rejects.h"
#include "jobs/job_index.h"
#include "jobs/job_records.h"
#include "jobs/liveness.h"
#include "jobs/own_node.h"

namespace ulc::jobs {

/// Number of ended jobs whose keys are kept, so that a late COMMIT can be answered.
inline constexpr std::size_t kEndedJobsMax = 64;

class JobTable {
public:
    /// All of them outlive this. rejects: a record is kept while one of it is to be sent.
    JobTable(const OwnNode& node, const Rejects& rejects, Liveness& liveness, Counters& counters);

    // --- finding
    /// Returns the records, the oldest first.
    [[nodiscard]] std::span<const std::unique_ptr<JobRecord>> all() const noexcept {
        return records_;
    }
    [[nodiscard]] JobRecord* find(JobId id) const noexcept;
    /// Returns the records that may be of the frame's job: compare by same_key().
    [[nodiscard]] std::span<JobRecord* const> records_of(
        const wire::JobBodyView& view) const noexcept {
        return index_.find(view.by_hand, view.name, view.nonce);
    }
    [[nodiscard]] const JobIndex& index() const noexcept { return index_; }
    /// Returns the key of the launcher's job of that id, which may have ended; nullptr: none here.
    [[nodiscard]] const wire::JobKey* key_of(const wire::Nonce& id) const noexcept;
    /// True: the frame is of a job that is known here and, if that has a key, was made with it.
    [[nodiscard]] bool is_authentic(const wire::JobBodyView& view, const Mac& source) const;
    /// Returns whether a group of this engine has that handle.
    [[nodiscard]] bool world_in_use(GroupHandle world) const noexcept;
    /// Returns a record with a gone rank that its local members have not heard of; nullptr: none.
    [[nodiscard]] JobRecord* with_unreported() const noexcept;
    /// Returns the earliest time at which a record has work; kNever: none.
    [[nodiscard]] Nanos next_time() noexcept;
    /// True if no peer is to be told of an end.
    [[nodiscard]] bool is_drained() const noexcept;

    // --- beginning and ending
    /// Returns whether the user may begin a job. Records of jobs that are over are removed if that
    /// helps: of ended ones whose remaining BYEs only repeat, the oldest first; of the user's
    /// failed jobs; and in a full table those of others. The claimants of a failed job then reach
    /// their deadlines, and a peer that has lost each BYE learns of the end by liveness.
    [[nodiscard]] bool has_record_for(std::uint32_t user);
    /// Takes a record, and gives it an id.
    JobRecord& add(std::unique_ptr<JobRecord> record);
    /// Returns whether nothing waits for the record any more.
    [[nodiscard]] bool is_finished(const JobRecord& record, Nanos now) const;
    /// Removes the records that are finished.
    void forget_finished(Nanos now);

    // --- changes that the index follows
    void add_local(JobRecord& record, const LocalRank& local);
    /// Removes the local rank at that place of the record.
    void remove_local(JobRecord& record, std::size_t at);
    /// The record knows ranks of other nodes from now on.
    void list_peers(JobRecord& record) { index_.list_peers(record); }
    /// The record is about to change or forget them.
    void unlist_peers(JobRecord& record) { index_.unlist_peers(record); }
    /// Excludes a rank of a formed job.
    void exclude(JobRecord& record, Rank rank);
    /// Begins to watch the node from which COMMIT is to come.
    void watch_publisher(JobRecord& record, Nanos now);
    /// Forgets the roster that is put together, and its publisher.
    void drop_assembly(JobRecord& record) noexcept;

    /// Returns how many places of its tables and records all calls have visited, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return index_.steps() + visited_; }
    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    friend struct Breaker;  // tests/unit/engine/invariants_test.cc

    /// Returns whether an answer for the job is to be sent, or awaited.
    [[nodiscard]] bool answers(const JobRecord& record) const;
    /// Returns whether the job has ended, and its record only repeats BYEs that were sent.
    [[nodiscard]] bool only_repeats_byes(const JobRecord& record) const;
    /// Stops watching the nodes of the job; the caller removes its record.
    void forget(const JobRecord& record);
    void remember_key(const JobRecord& record);
    /// Removes the records for which `which` is true.
    template <typename Which>
    void remove_records(const Which& which) {
        for (const auto& record : records_)
            if (which(record)) index_.remove(*record);
        std::erase_if(records_, which);
    }

    const OwnNode& node_;
    const Rejects& rejects_;
    Liveness& liveness_;
    Counters& counters_;
    std::vector<std::unique_ptr<JobRecord>> records_;
    std::vector<EndedJob> ended_jobs_;  ///< a ring
    std::size_t ended_next_ = 0;
    JobIndex index_;  ///< finds `records_` and `ended_jobs_`
    JobId last_id_ = kNoJob;
    std::uint64_t visited_ = 0;  ///< records that were visited for no frame about them
};

}  // namespace ulc::jobs
