// SPDX-License-Identifier: BSD-3-Clause
// The collectives as a benchmark sees them: buffers with known bytes, one call, and whether what
// came is right.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "bench/common/driver.h"

namespace ulc::bench {

enum class Collective : std::uint32_t {
    kBarrier,
    kBroadcast,
    kGather,
    kScatter,
    kAllgather,
    kAlltoall,
    kReduce,
    kAllreduce,
    kReduceScatter,
    kScan,
    kExscan,
};
inline constexpr std::uint32_t kCollectives = 11;

[[nodiscard]] std::string_view name_of(Collective collective);

/// One collective with its buffers, which live as long as it.
struct Operation {
    std::function<void(std::uint16_t root)> once;  ///< all ranks call it with the same root
    std::function<bool()>
        right;  ///< after calls with each root in turn: every byte is as it must be
};

/// `octets`: size of a block if each rank has one, else of the vector; reductions are sums of that
/// number of bytes of doubles. algorithm: nullptr, the transport's choice; outlives the operation.
[[nodiscard]] Operation make_operation(Transport& transport, Collective collective,
                                       std::size_t octets, const char* algorithm);

/// Returns the minimum payload that a broadcast medium must carry: each byte that some other rank
/// needs, once. A reduction's operand is needed once, and a result by all ranks that did not make
/// it.
[[nodiscard]] std::uint64_t octets_at_least(Collective collective, std::uint64_t octets,
                                            std::uint64_t ranks);

}  // namespace ulc::bench
