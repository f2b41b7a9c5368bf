// SPDX-License-Identifier: BSD-3-Clause
// Claims of ranks by endpoints here and elsewhere, and the reaction when they disagree (jobs.h).
//
//   join() ─▶ JOIN, repeated ─▶ on_join() at the publisher ─▶ RosterPublisher::try_complete()
//                                  └─ conflict ─▶ REJECT ─▶ on_reject(): the job fails here too
//
// A conflict in a job that is still forming fails all of it, at once and everywhere, with both
// nodes named: half a job is useless, and its ranks would only wait for their deadlines. A job that
// has formed is never disturbed: only the new claim is rejected. Both REJECTs are sent once, and
// again whenever a rejected claim is heard again, so loss only delays them. One engine never claims
// a rank twice at once (join() refuses), so another claim of the same rank from the same node means
// that the first claimant is gone: it is replaced, or its rank has died.
//
// Two engines with one MAC address (twins.cc): a job in which one of them has a rank fails at once,
// and names both by their incarnations. Each hears the claims of the other, and the publisher those
// of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "jobs/forming/rejects.h"
#include "jobs/forming/roster_publisher.h"
#include "jobs/job_ranks.h"
#include "jobs/job_records.h"
#include "jobs/job_table.h"
#include "jobs/liveness.h"
#include "jobs/own_node.h"

namespace ulc::jobs {

class Claims {
public:
    /// All of them outlive this.
    Claims(OwnNode& node, JobTable& table, JobRanks& ranks, Rejects& rejects,
           RosterPublisher& publisher, Liveness& liveness, Counters& counters);

    // --- claims of this engine
    /// Claims a rank. Errors: those of Jobs::join().
    [[nodiscard]] Result<JobId> join(const JoinRequest& request, Nanos now);
    /// Finds the record to which the claim belongs, and endpoints of this engine with which it
    /// conflicts. nullptr: it begins a job.
    [[nodiscard]] Err admit(const JoinRequest& request, JobRecord*& forming) const;
    /// Ends claims whose deadline has come, and repeats the others if it is time.
    void on_timer(JobRecord& record, Nanos now);
    /// Writes the next JOIN of the record; 0: none is due.
    [[nodiscard]] std::size_t put_join(JobRecord& record, std::byte* body, Mac& to, Nanos now);

    // --- frames of others that are_authentic()
    /// Takes a JOIN: claims, or the introduction of a node with rank 0.
    void on_join(const wire::JobBodyView& view, const Mac& source, Nanos now);
    void on_reject(const wire::JobBodyView& view, const Mac& source, Nanos now);

    // --- other frames; each returns the records that it may have changed
    /// Refuses a JOIN of protocol version 1 with the nonce of a job of ours, and fails the job.
    [[nodiscard]] std::span<JobRecord* const> refuse_old(const wire::JobBodyView& view,
                                                         const Mac& source, Nanos now);
    /// Takes a frame that has our MAC address and is of another engine: a job that forms fails.
    [[nodiscard]] std::span<JobRecord* const> on_twin(const wire::JobBodyView& view, Nanos now);

    void fields(state::Archive& archive);

private:
    void introduce(const wire::JobBodyView& view, const Mac& source, Nanos now);
    void note_rank0(JobRecord& record, const Mac& source, Nanos now);
    /// Judges a claim that an older job of that key explains (its roster was lost, or it was
    /// rejected). True: dealt with.
    [[nodiscard]] bool known_claim(JobRecord& record, const wire::JobBodyView& view,
                                   const wire::JoinClaim& claim, const Mac& source, Nanos now);
    [[nodiscard]] bool claim_of_formed(JobRecord& record, const wire::JobBodyView& view,
                                       const wire::JoinClaim& claim, const Mac& source);
    [[nodiscard]] bool claim_of_failed(JobRecord& record, const wire::JoinClaim& claim,
                                       const Mac& source, Nanos now);
    /// Judges a claim of a job that forms, at its publisher.
    void new_claim(JobRecord& record, const wire::JobBodyView& view, const wire::JoinClaim& claim,
                   const Mac& source, Nanos now);
    void make_join_due(JobRecord& record, Nanos now);
    [[nodiscard]] bool may_hurry(Nanos now) noexcept;
    [[nodiscard]] std::size_t put_join_old(JobRecord& record, std::byte* body, Mac& to) const;

    OwnNode& node_;
    JobTable& table_;
    JobRanks& ranks_;
    Rejects& rejects_;
    RosterPublisher& publisher_;
    Liveness& liveness_;
    Counters& counters_;
    Nanos hurry_full_at_ = 0;  ///< when all early repeats of JOINs are there again
};

}  // namespace ulc::jobs
