// SPDX-License-Identifier: BSD-3-Clause
// The part of an allgather that other operations end with.
#pragma once

#include "coll/algorithm.h"

namespace ulc::coll {

/// Every rank multicasts `own`, its block, call.concurrent segments a round, and receives the other
/// blocks into the output (URTP §4.3, algorithm 2). begin: nothing starts before this step is done.
/// ranks ≥ 2.
void multicast_blocks(const Call& call, const Blocks& blocks, Range own, std::uint32_t begin,
                      Plan& plan);

}  // namespace ulc::coll
