// SPDX-License-Identifier: BSD-3-Clause
// Rosters of other engines: put together from their parts, acknowledged, and formed by COMMIT.
// roster_publisher.h has the two stages. Used by jobs.h for frames and time.
//
//   on_roster() ─▶ Assembly of the record ─▶ ROSTER_ACK(partial), or all parts: ROSTER_ACK(holds)
//   on_commit() ─▶ JobRanks::form() ─▶ ROSTER_ACK(formed)
//
// A COMMIT for an endpoint that has left is answered too, or its publisher waits. Such answers have
// a rate, and their queue is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bounded.h"
#include "base/counters.h"
#include "base/units.h"
#include "jobs/forming/rejects.h"
#include "jobs/job_ranks.h"
#include "jobs/job_records.h"
#include "jobs/job_table.h"
#include "jobs/liveness.h"
#include "jobs/node_addresses.h"
#include "jobs/own_node.h"
#include "wire/job_key.h"

namespace ulc::jobs {

/// The acknowledgement of a COMMIT for which no local rank waits.
struct CommitAnswer {
    Mac to;
    std::string name;
    wire::Nonce nonce;
    bool by_hand = false;
    std::uint32_t roster = 0;
    wire::JobKey key;
    void fields(state::Archive& archive);
};

class RosterReceiver {
public:
    /// All of them outlive this.
    RosterReceiver(OwnNode& node, JobTable& table, JobRanks& ranks, Rejects& rejects,
                   const NodeAddresses& addresses, Liveness& liveness, Counters& counters);

    /// Takes a part of a roster.
    void on_roster(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// Takes a COMMIT. True: no local rank waits for it, so an answer may be due.
    [[nodiscard]] bool on_commit(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// Acknowledges what the record holds, if it is time.
    void on_timer(JobRecord& record, Nanos now);

    // --- each writes a body and returns its octets; 0: none is due
    [[nodiscard]] std::size_t put_commit_answer(std::byte* body, Mac& to);
    [[nodiscard]] std::size_t put_ack(JobRecord& record, std::byte* body, Mac& to);

    void fields(state::Archive& archive);

private:
    /// Returns false if it is not for us, or of another roster than the one held here.
    [[nodiscard]] bool take_part(JobRecord& record, const wire::JobBodyView& view,
                                 const Mac& source, Nanos now);
    /// Judges a part that no job here waits for, by the ranks of this engine that it names.
    void answer_unwanted(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// Forms the job of a roster that is held.
    void commit(JobRecord& record, Nanos now);

    OwnNode& node_;
    JobTable& table_;
    JobRanks& ranks_;
    Rejects& rejects_;
    const NodeAddresses& addresses_;
    Liveness& liveness_;
    Counters& counters_;
    FixedVector<CommitAnswer, kAnswersMax> commit_answers_;
    RateLimit commit_limit_;
};

}  // namespace ulc::jobs
