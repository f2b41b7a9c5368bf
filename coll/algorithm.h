// The algorithms: pure functions from (rank, ranks, root, size) to the steps of that rank. No algorithm knows
// endpoints, time or memory; all ranks of one call use the same algorithm and parameter, so their schedules
// match (tests/sim/schedule_checker.h proves it for every algorithm listed here).
//
// Ranks are indices in the group. Buffers: broadcast works in kOutput at every rank; allgather reads kInput
// (its own block of kOutput when in place) and fills kOutput.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "coll/plan.h"

namespace ulc::coll {

enum class Op : std::uint8_t { kBarrier, kBroadcast, kAllgather };

struct Call {
    Op op = Op::kBarrier;
    std::uint16_t rank = 0;
    std::uint16_t ranks = 1;
    std::uint16_t root = 0;        ///< broadcast
    std::uint64_t octets = 0;      ///< broadcast: the whole; allgather: one rank's block
    bool in_place = false;         ///< allgather: the own block is in the output already
    std::uint64_t segment = 0;     ///< octets of a segment, > 0; grows to keep kSegmentsMax
    std::uint32_t concurrent = 1;  ///< k of allgather_concurrent and of barrier_chain, ≥ 1
};

/// Segments of one operation at one rank, over all sources: bounds steps and requests for any length.
inline constexpr std::uint64_t kSegmentsMax = 32768;
/// Segments of one source that may be under way at a member.
inline constexpr std::uint32_t kSegmentWindow = 8;

using MakeFn = void (*)(const Call& call, Plan& plan);

struct Algorithm {
    Op op;
    std::string_view name;
    MakeFn make;
    std::string_view help;
};

void barrier_gather_broadcast(const Call& call, Plan& plan);
void barrier_chain(const Call& call, Plan& plan);
void barrier_dissemination(const Call& call, Plan& plan);
void broadcast_multicast(const Call& call, Plan& plan);
void broadcast_binomial(const Call& call, Plan& plan);
void allgather_round_robin(const Call& call, Plan& plan);
void allgather_concurrent(const Call& call, Plan& plan);
void allgather_ring(const Call& call, Plan& plan);

/// Every algorithm that ships.
[[nodiscard]] std::span<const Algorithm> algorithms() noexcept;
/// nullptr: there is none of that name for the operation.
[[nodiscard]] const Algorithm* find_algorithm(Op op, std::string_view name) noexcept;

/// The own block from input to output, unless it is in place.
inline void copy_own_block(const Call& call, Plan& plan) {
    if (call.in_place || call.octets == 0) return;
    plan.copy({abi::BufferId::kOutput, call.rank * call.octets, call.octets}, abi::BufferId::kInput,
              0);
}

/// Where the own block of an allgather is sent from.
[[nodiscard]] inline Range own_block(const Call& call) noexcept {
    if (!call.in_place) return {abi::BufferId::kInput, 0, call.octets};
    return {abi::BufferId::kOutput, call.rank * call.octets, call.octets};
}

}  // namespace ulc::coll
