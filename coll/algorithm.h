// SPDX-License-Identifier: BSD-3-Clause
// The algorithms: pure functions from (rank, ranks, root, sizes) to the steps of that rank. No
// algorithm knows endpoints, time or memory; all ranks of one call use the same algorithm and
// parameter, so their schedules match (tests/sim/schedule/checker.h proves it for every algorithm
// listed here).
//
// Ranks are indices in the group. Buffers: coll.h's input and output; broadcast works in kOutput at
// every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "coll/plan.h"

namespace ulc::coll {

/// The operations of coll.h. Those with a "v" are separate if a rank does not know the others'
/// lengths, so that nothing may depend on them.
enum class Op : std::uint8_t {
    kBarrier,
    kBroadcast,
    kGather,
    kGatherv,
    kScatter,
    kScatterv,
    kAllgather,  ///< and allgatherv: all know all lengths
    kAlltoall,
    kAlltoallv,
    kReduce,
    kAllreduce,
    kReduceScatter,
    kScan,
    kExscan,
};
inline constexpr std::uint8_t kOps = 14;

/// "broadcast", "reduce_scatter", …
[[nodiscard]] std::string_view name_of(Op op) noexcept;

/// Returns the place of each rank's block in a buffer that has one for each.
struct Blocks {
    std::uint64_t each = 0;                ///< bytes of every block, one behind the other …
    const std::size_t* lengths = nullptr;  ///< … unless given by rank: bytes
    const std::size_t* offsets = nullptr;  ///< with lengths

    [[nodiscard]] std::uint64_t length(std::uint32_t rank) const noexcept {
        return lengths == nullptr ? each : lengths[rank];
    }
    [[nodiscard]] Range range(std::uint32_t rank, abi::BufferId buffer) const noexcept {
        return {buffer, lengths == nullptr ? rank * each : offsets[rank], length(rank)};
    }
};

struct Call {
    Op op = Op::kBarrier;
    std::uint16_t rank = 0;
    std::uint16_t ranks = 1;
    std::uint16_t root = 0;
    std::uint64_t octets =
        0;                  ///< the whole; where there are blocks: the own one (alltoall: any one)
    Blocks in = {};         ///< scatter (at the root), alltoall, reduce_scatter
    Blocks out = {};        ///< gather (at the root), allgather, alltoall
    bool in_place = false;  ///< as coll.h says of the operation
    bool early = false;  ///< a message may be put in its place before its step may start (offload)
    bool commutative =
        true;  ///< reductions: operands may be taken in another order than that of ranks
    std::uint32_t grain = 1;       ///< reductions: bytes of an element
    std::uint64_t segment = 0;     ///< bytes of a segment, > 0; grows to keep kSegmentsMax
    std::uint32_t concurrent = 1;  ///< ":k" of the algorithms that have one, ≥ 1
};

/// Segments of one operation at one rank, over all sources: bounds steps and requests for any
/// length.
inline constexpr std::uint64_t kSegmentsMax = 32768;

/// Returns the segments of a block from one of `ranks` to another: a function of the length alone,
/// so both ends cut alike.
[[nodiscard]] inline Segments segments_of(const Call& call, std::uint64_t octets) noexcept {
    return {octets, call.segment, kSegmentsMax / call.ranks + 1, call.grain};
}

using MakeFn = void (*)(const Call& call, Plan& plan);

struct Algorithm {
    Op op;
    std::string_view name;
    MakeFn make;
    std::string_view help;
    bool has_k = false;  ///< takes ":k"
};

#define ULC_ALGORITHM(op, name, function, takes_k, help) \
    void function(const Call& call, Plan& plan);
#include "coll/algorithms.def"
#undef ULC_ALGORITHM

/// Every algorithm that ships.
[[nodiscard]] std::span<const Algorithm> algorithms() noexcept;
/// nullptr: there is none of that name for the operation.
[[nodiscard]] const Algorithm* find_algorithm(Op op, std::string_view name) noexcept;

/// The own block of an allgather from input to output, unless it is in place.
inline void copy_own_block(const Call& call, Plan& plan) {
    if (call.in_place || call.octets == 0) return;
    plan.copy(call.out.range(call.rank, abi::BufferId::kOutput),
              {abi::BufferId::kInput, 0, call.octets});
}

/// Returns the data that this rank gives, if they are one range: in place they are in the output,
/// else they are the input.
[[nodiscard]] inline Range given(const Call& call, std::uint64_t offset_in_place = 0) noexcept {
    if (!call.in_place) return {abi::BufferId::kInput, 0, call.octets};
    return {abi::BufferId::kOutput, offset_in_place, call.octets};
}

/// given(), or in place a copy of it, so that a result may be written over it; it is there when
/// step `ready` is done.
[[nodiscard]] Range keep_given(const Call& call, Plan& plan, std::uint32_t& ready);

/// Returns the place from which the own block of an allgather is sent.
[[nodiscard]] inline Range own_block(const Call& call) noexcept {
    return given(call, call.out.range(call.rank, abi::BufferId::kOutput).offset);
}

}  // namespace ulc::coll
