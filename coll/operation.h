// SPDX-License-Identifier: BSD-3-Clause
// One path from the arguments of any coll.h call to a run: validate the arguments, choose the
// algorithm, make the plan, start.
#pragma once

#include <coll.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/collective/schedule_run.h"
#include "coll/algorithm.h"
#include "coll/table.h"

/// One operation of a caller; nothing of it outlives it.
struct ulc_coll {
    ulc_endpoint* ep = nullptr;
    ulc_reduction reduction = {};
    ulc::coll::Plan plan;
    ulc::client::ScheduleRun run;
    // --- of its start, for the next one
    ulc_group group = 0;
    ulc::client::RunMemory memory;
    ulc::client::RunIdentity identity;
    bool offload = false;
    bool is_kept = false;  ///< ulc_coll_free() frees it, and not its end

    [[nodiscard]] int start() noexcept {
        return run.start(ep, group, plan.schedule(), memory, identity, offload);
    }
};

namespace ulc::coll {

/// Blocks as a caller gives them.
struct GivenBlocks {
    const std::size_t* lengths = nullptr;  ///< by rank; nullptr: all alike, Arguments::octets each
    const std::size_t* offsets = nullptr;  ///< nullptr: one behind the other
};

struct Arguments {
    ulc_endpoint* ep = nullptr;
    ulc_group group = 0;
    Op op = Op::kBarrier;
    std::uint16_t root = 0;
    const void* input = nullptr;
    void* output = nullptr;
    std::size_t count = 0;  ///< size of the whole or of a block: bytes, or elements of a reduction
    bool uneven = false;    ///< the blocks have lengths of their own
    GivenBlocks in;
    GivenBlocks out;
    const ulc_reduction* reduction = nullptr;
    const char* algorithm = nullptr;
    bool offload = false;  ///< to the engine, where the endpoint and the schedule allow it
    ulc_coll** operation = nullptr;
};

/// Arguments of a member of the group.
[[nodiscard]] Situation situation(ulc_endpoint* ep, ulc_group group, Op op, std::uint64_t octets);

/// The choice of the table in force for a member of the group; bytes as Situation's. Errors:
/// INVALID (a mistake in the table; the text is set).
[[nodiscard]] int select(ulc_endpoint* ep, ulc_group group, Op op, std::uint64_t octets,
                         Choice& out, const Rule** rule = nullptr);

/// Starts as the functions of coll.h do.
[[nodiscard]] int start(const Arguments& arguments) noexcept;

}  // namespace ulc::coll
