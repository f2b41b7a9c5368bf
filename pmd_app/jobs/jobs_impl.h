// SPDX-License-Identifier: BSD-3-Clause
// The parts of Jobs, each with its data and its invariants, and the work of all that is due.
//
//   Claims ─▶ RosterPublisher ─┐
//        RosterReceiver ───────┼─▶ JobRanks ─▶ JobTable ─▶ Rejects, OwnNode
//              Verdicts ───────┘
//
// A part calls those to the right of it. Used by jobs.cc and dispatch.cc.
#pragma once

#include <span>

#include "jobs/forming/claims.h"
#include "jobs/forming/rejects.h"
#include "jobs/forming/roster_publisher.h"
#include "jobs/forming/roster_receiver.h"
#include "jobs/job_ranks.h"
#include "jobs/job_table.h"
#include "jobs/jobs.h"
#include "jobs/own_node.h"
#include "jobs/verdicts.h"

namespace ulc::jobs {

struct Jobs::Impl {
    Impl(const JobsConfig& config, Counters& counters_in, Liveness& liveness_in,
         const NodeAddresses& addresses, Links& links_in);

    Counters& counters;
    Liveness& liveness;
    Links& links;
    OwnNode node;
    Rejects rejects;            ///< REJECTs to be sent
    JobTable table;             ///< records, their index, keys of ended jobs
    JobRanks ranks;             ///< beginnings and ends of ranks, with their events
    RosterPublisher publisher;  ///< rosters, at rank 0
    RosterReceiver receiver;    ///< rosters, elsewhere
    Claims claims;              ///< claims of ranks, conflicts, twins
    Verdicts verdicts;          ///< answers of nodes, as ends of ranks
    Nanos timer = kNever;       ///< earliest time of all records; may be early
    bool tx_hint = false;       ///< a record may have a frame to send
    bool gone_hint = false;     ///< a record has an end to report

    void on_verdict(const NodeVerdict& verdict, Nanos now) {
        settle(verdicts.on_verdict(verdict, now), now);
    }
    void on_job_frame(const wire::JobBodyView& view, const Mac& source, Nanos now);
    void on_timer(Nanos now);
    /// Looks, after a frame about these records, which of their work is due or over. The timer may
    /// be early then, for what is not due any more.
    void settle(std::span<JobRecord* const> touched, Nanos now);
    /// Looks at all records, after any other entry: something may be due.
    void changed() noexcept;
    void recompute_timer() noexcept;

    /// Writes the next JOB, NODE or LINK frame, in order of urgency: rejections, acknowledgements,
    /// answers and pings, claims, roster parts and COMMITs, BYEs. 0: none is due.
    [[nodiscard]] std::size_t next_tx(std::byte* frame, Nanos now);

    void check_invariants() const;
    void fields(state::Archive& archive);
};

}  // namespace ulc::jobs
