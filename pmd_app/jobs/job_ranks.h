// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of jobs begin and end, with the events of both. Used by the parts of jobs/jobs.h
// that judge claims, rosters and verdicts.
//
//   form() ─▶ leave() of a rank here, peer_gone() of one elsewhere
//   fail_job(), publisher_gone(): all claims here end before their job forms
//   check_deadlines(): claims end alone
//
// Invariants: each rank of a job ends once. An endpoint gets at most one event kFormed or kFailed.
#pragma once

#include <deque>
#include <string>

#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "jobs/job_records.h"
#include "jobs/job_table.h"
#include "jobs/liveness.h"
#include "jobs/own_node.h"

namespace ulc::jobs {

class JobRanks {
public:
    /// All of them outlive this.
    JobRanks(const OwnNode& node, JobTable& table, Liveness& liveness, Counters& counters);

    // --- beginning
    /// The roster stands in `record`: local ranks are formed.
    void form(JobRecord& record, Nanos now);

    // --- ends of ranks of a job
    /// An endpoint here leaves or dies, before its job forms or later. Others learn it by BYE.
    void leave(JobRecord& record, Handle endpoint, wire::LeaveReason reason, Nanos now);
    /// Takes a BYE that is_authentic().
    void on_bye(const wire::JobBodyView& view, const Mac& source);
    /// Writes a BYE of a local rank that has left, and returns its octets; 0: none is due.
    [[nodiscard]] std::size_t put_bye(JobRecord& record, std::byte* body, Nanos now) const;
    /// Ends a rank of a job that has formed, once. One of this engine has no node to unwatch.
    void peer_gone(JobRecord& record, Rank rank, JobEventKind kind);
    /// Ends all ranks of the job at that node. counted: the transport counted this one.
    void node_died(JobRecord& record, const Mac& mac, Rank counted);
    /// Ends that rank alone, since it held up a group. Notifies it by a hint at once, by others
    /// when it sends, and by answers to its node.
    void exclude(JobRecord& record, Rank rank, Nanos now);
    /// The endpoint here, alone, ends its relation with the ranks of that node.
    void excluded(JobRecord& record, Handle endpoint, const Mac& by);

    // --- ends of claims
    /// Every local claim of the record fails; a publisher keeps the record as a tombstone.
    /// first, second: the claimants; one twice: two engines use that address.
    void fail_job(JobRecord& record, Err error, Rank rank, const Mac& first, const Mac& second,
                  Nanos now);
    /// The publisher of a roster that is held here sends no COMMIT any more: fails a launcher's
    /// job, which has no other rank 0. One by hand awaits another.
    void publisher_gone(JobRecord& record, Err error);
    /// Fails the claims of a job that forms whose deadline has come.
    void check_deadlines(JobRecord& record, Nanos now);

    // --- events
    /// The job sends shorter frames, since long ones do not pass to or from that node.
    void shortened(const JobRecord& record, const Mac& node);
    [[nodiscard]] bool has_event() const noexcept { return !events_.empty(); }
    /// Takes the next event. Requires has_event().
    [[nodiscard]] JobEvent take_event();

    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    void fail_local(JobRecord& record, const LocalRank& local, Err error, const Mac& first,
                    const Mac& second, const std::string& why);
    void fail_with(JobRecord& record, Err error, const std::string& why, const Mac& first,
                   const Mac& second);
    /// Returns what the record knows of two engines that have one MAC address.
    [[nodiscard]] std::string twins_text(const JobRecord& record, const Mac& mac) const;

    const OwnNode& node_;
    JobTable& table_;
    Liveness& liveness_;
    Counters& counters_;
    std::deque<JobEvent> events_;  ///< kFormed and kFailed: at most one each a local endpoint
};

}  // namespace ulc::jobs
