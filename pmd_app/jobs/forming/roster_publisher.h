// SPDX-License-Identifier: BSD-3-Clause
// Rosters, at the engine of rank 0: made when the last claim is in, and agreed in two stages.
// roster_receiver.h has the other engines. Used by Claims, and by jobs.h for frames and time.
//
//   publisher   claims complete ─▶ ROSTER rounds ─▶ all hold it ─▶ COMMIT rounds ─▶ all have formed
//   others                            ROSTER_ACK(holds) ┘   formed ◀─┘  ROSTER_ACK(formed) ┘
//
// No rank forms before every engine holds the same roster. So two publishers of one name cannot
// each form half a job, a claim that is an old frame is detected (no engine acknowledges for it),
// and a world handle that is in use somewhere is chosen again. A round broadcasts the parts that
// are due, one frame for all: all parts in the first round; later the parts that an incomplete
// acknowledgement lacks, or all again if an engine was silent; by unicast once a single engine is
// left. Rounds back off from roster_wait_min to roster_wait_max. They end when all have
// acknowledged; an engine whose claims are no longer repeated (kRoster) or whose ranks have died
// (kCommit) is not awaited. Receivers acknowledge at a random time within size × answer_slot, so
// that thousands do not answer at once.
//
// Invariant: each roster of this engine has a higher number than the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "jobs/forming/rejects.h"
#include "jobs/job_ranks.h"
#include "jobs/job_records.h"
#include "jobs/job_table.h"
#include "jobs/node_addresses.h"
#include "jobs/own_node.h"

namespace ulc::jobs {

class RosterPublisher {
public:
    /// All of them outlive this.
    RosterPublisher(OwnNode& node, JobTable& table, JobRanks& ranks, Rejects& rejects,
                    const NodeAddresses& addresses);

    /// The endpoint rank0 has rank 0: the job is published here.
    void begin(JobRecord& record, Handle rank0);
    /// Publishes the roster if all ranks are claimed.
    void try_complete(JobRecord& record, Nanos now);
    void on_roster_ack(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// Begins the next round if it is time.
    void on_timer(JobRecord& record, Nanos now);
    /// Writes the next ROSTER or COMMIT of the record; 0: none is due.
    [[nodiscard]] std::size_t put_part(JobRecord& record, std::byte* body, Mac& to, Nanos now);

    void fields(state::Archive& archive);

private:
    // --- before the roster
    /// True if claims of one MAC address name two incarnations: waits to see which of them live,
    /// fails the job if both do, and drops claims that are not repeated.
    [[nodiscard]] bool has_twins(JobRecord& record, Nanos now);  // twins.cc
    [[nodiscard]] GroupHandle choose_world(const JobRecord& record) const noexcept;
    /// Sets the values of the job that its nodes' attributes decide.
    void settle_attributes(JobRecord& record) const;
    /// Returns the nodes with several links.
    [[nodiscard]] std::vector<Mac> bonded_of(const JobRecord& record) const;

    // --- rounds
    void start_rounds(JobRecord& record, PublisherStage stage, std::uint16_t parts, Nanos now);
    void publish_round(JobRecord& record, Nanos now);
    /// All hold the roster: waits for proofs of links, then commits.
    void finish_roster(JobRecord& record, Nanos now);
    void commit(JobRecord& record, Nanos now);
    /// Makes a roster of shorter frames, since long ones do not reach all engines.
    void shorten(JobRecord& record, Nanos now);

    // --- parts (roster_parts.cc)
    /// Cuts the roster into parts that each node of the job can take. False: too many.
    [[nodiscard]] bool cut_parts(JobRecord& record) const;
    /// Returns the attributes of the node of that rank.
    [[nodiscard]] wire::AttributeOctets attributes_of(const JobRecord& record, Rank rank) const;
    /// pads: up to the MTU of the job.
    [[nodiscard]] std::size_t put_roster(const JobRecord& record, std::size_t part, bool pads,
                                         std::byte* body) const;

    OwnNode& node_;
    JobTable& table_;
    JobRanks& ranks_;
    Rejects& rejects_;
    const NodeAddresses& addresses_;
    std::uint32_t last_roster_;  ///< number of the last roster; later ones are higher
};

}  // namespace ulc::jobs
