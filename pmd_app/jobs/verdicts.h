// SPDX-License-Identifier: BSD-3-Clause
// Turns the answers of a node into the ends of its ranks (liveness.h has the proofs), and chooses
// the questions of pings. Used by jobs.h.
//
//   hint (GONE, EXPELLED unasked) ─doubt─▶ PING about that endpoint ─answer─▶ ranks end
//   PING from a node ──▶ EXPELLED if its endpoint is gone here, GONE if ours is unknown, else PONG
//
// So the two ends of a relation come to one view of it: an end that holds the other for gone says
// so whenever it is asked, and each end asks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/counters.h"
#include "base/units.h"
#include "jobs/job_ranks.h"
#include "jobs/job_records.h"
#include "jobs/job_table.h"
#include "jobs/links.h"
#include "jobs/liveness.h"

namespace ulc::jobs {

class Verdicts {
public:
    /// All of them outlive this.
    Verdicts(const JobTable& table, JobRanks& ranks, Liveness& liveness, Links& links,
             Counters& counters);

    /// Acts on a finding of liveness. Returns the records in which ranks may have ended.
    [[nodiscard]] std::vector<JobRecord*> on_verdict(const NodeVerdict& verdict, Nanos now);
    /// Gives a PING without a question one about a pair of endpoints of the two nodes, in turn.
    void choose_question(const Mac& mac, wire::NodeBody& ping);
    /// Returns how many records were visited, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return visited_; }

private:
    /// Returns the records in which ranks may end.
    [[nodiscard]] std::vector<JobRecord*> records_of(const NodeVerdict& verdict);
    /// A hint proves nothing. A claim whose endpoint is gone is not repeated, and lapses.
    void on_hint(const NodeVerdict& verdict, Nanos now);
    void end_ranks(JobRecord& record, const NodeVerdict& verdict);
    void answer_question(const NodeVerdict& asked, Nanos now);
    /// Sends a hint to one excluded rank at a node that asks: it may not know yet, and be still.
    void remind_excluded(const NodeVerdict& asked, Nanos now);

    const JobTable& table_;
    JobRanks& ranks_;
    Liveness& liveness_;
    Links& links_;
    Counters& counters_;
    std::uint64_t visited_ = 0;
};

}  // namespace ulc::jobs
