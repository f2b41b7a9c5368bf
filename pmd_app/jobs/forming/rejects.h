// SPDX-License-Identifier: BSD-3-Clause
// REJECTs that are to be sent: to one claimant, to another publisher, or to all claimants of a job
// that has failed. Used by the parts of jobs/jobs.h that judge claims and rosters.
//
// The queue is bounded. One that finds no space is not sent: the claim or roster comes again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bounded.h"
#include "base/error.h"
#include "jobs/job_records.h"
#include "jobs/own_node.h"

namespace ulc::jobs {

class JobTable;

struct PendingReject {
    Mac to;
    JobId job = kNoJob;  ///< the frame carries its name and nonce
    wire::RejectBody body;
    bool introduced = false;  ///< its receiver knows its sender
    bool old = false;         ///< to an engine of protocol version 1
    void fields(state::Archive& archive);
};

class Rejects {
public:
    /// Greatest number of REJECTs that answer one JOIN, so that little comes back for little.
    static constexpr std::size_t kPerJoin = 2;

    /// node outlives this.
    explicit Rejects(const OwnNode& node) : node_(node) {}

    /// A JOIN is about to be judged.
    void begin_join() noexcept { left_ = kPerJoin; }
    /// Rejects a claim of that JOIN. first: the node with the rank.
    void reject_claim(const JobRecord& record, const Mac& to, const wire::JoinClaim& claim,
                      Err error, const Mac& first);
    /// Rejects a claim of protocol version 1, in its layout.
    void reject_old(const JobRecord& record, const Mac& to, const wire::JoinClaim& claim);
    /// Rejects a roster that names a rank of ours which another publisher has already.
    void reject_publisher(const JobRecord& record, const Mac& publisher, const Mac& other);
    /// Tells every claimant of a failed job, once; one that misses it receives it when it claims
    /// again.
    void announce_failure(const JobRecord& record);

    [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
    /// Returns whether one of that job is to be sent.
    [[nodiscard]] bool has(JobId job) const noexcept;
    /// Writes the next body and returns its octets; 0: none is due. Only an engine that was heard
    /// to have rank 0 is believed, so one that claims no more introduces itself first.
    [[nodiscard]] std::size_t put(std::byte* body, Mac& to, const JobTable& table);

    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    const OwnNode& node_;
    FixedVector<PendingReject, kAnswersMax> queue_;
    std::size_t left_ = 0;  ///< to answer the JOIN that is being judged
};

}  // namespace ulc::jobs
