// SPDX-License-Identifier: BSD-3-Clause
// The exchange that reduce_scatter is and a large allreduce begins with.
#pragma once

#include "coll/algorithm.h"

namespace ulc::coll {

struct Exchanged {
    std::uint32_t sent;    ///< the step after which the own vector is not needed any more
    std::uint32_t folded;  ///< the step after which the own block of the result is there
};

/// Sends each other rank its block of `vector`, and folds the data received for its own block into
/// `result`, which is not in `vector`.
[[nodiscard]] Exchanged exchange_and_fold(const Call& call, const Blocks& blocks,
                                          abi::BufferId vector, Range result, Plan& plan);

}  // namespace ulc::coll
