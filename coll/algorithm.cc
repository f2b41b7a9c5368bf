// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithm.h"

namespace ulc::coll {
namespace {

constexpr std::string_view kNames[kOps] = {
    "barrier",  "broadcast", "gather", "gatherv",   "scatter",        "scatterv", "allgather",
    "alltoall", "alltoallv", "reduce", "allreduce", "reduce_scatter", "scan",     "exscan"};

constexpr Algorithm kAlgorithms[] = {
#define ULC_ALGORITHM(op, name, function, takes_k, help) {Op::op, name, function, help, takes_k},
#include "coll/algorithms.def"
#undef ULC_ALGORITHM
};

}  // namespace

std::string_view name_of(Op op) noexcept { return kNames[static_cast<std::uint8_t>(op)]; }

std::span<const Algorithm> algorithms() noexcept { return kAlgorithms; }

Range keep_given(const Call& call, Plan& plan, std::uint32_t& ready) {
    ready = kNoStep;
    if (!call.in_place) return given(call);
    const Range kept = plan.scratch(call.octets);
    ready = plan.copy(kept, given(call));
    return kept;
}

const Algorithm* find_algorithm(Op op, std::string_view name) noexcept {
    for (const Algorithm& algorithm : kAlgorithms) {
        if (algorithm.op == op && algorithm.name == name) return &algorithm;
    }
    return nullptr;
}

}  // namespace ulc::coll
