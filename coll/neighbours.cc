// SPDX-License-Identifier: BSD-3-Clause
// An exchange of blocks with some members of a group. A member sends one message for each edge, or
// one multicast if its edges lead to different members with the same block. There is one algorithm,
// so no table names it. Used by coll/mpi.
#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/fnv.h"
#include "client/error_text.h"
#include "client/ulc_internal.h"
#include "coll/coll_for_mpi.h"
#include "coll/operation.h"

namespace ulc::coll {
namespace {

using abi::BufferId;
using client::set_last_error;

constexpr const char* kName = "neighbour exchange";
/// A subset is a word with a bit a member (Plan::multicast()).
constexpr std::uint16_t kSubsetMembersMax = 64;

[[nodiscard]] Range range_of(const ulc_edge& edge, BufferId buffer) {
    return {buffer, edge.offset, edge.length};
}

/// Bytes from the beginning of the buffer to behind the last block; false: beyond the memory.
[[nodiscard]] bool reach_of(std::span<const ulc_edge> edges, std::uint64_t& reach) {
    for (const ulc_edge& edge : edges) {
        std::uint64_t behind = 0;
        if (__builtin_add_overflow(edge.offset, edge.length, &behind)) return false;
        if (edge.length != 0) reach = std::max(reach, behind);
    }
    return true;
}

/// The members that a multicast of the one block reaches; 0: the edges are no multicast. No member
/// has two, since the order of a message and a multicast from one member is not defined.
[[nodiscard]] std::uint64_t subset_of(std::span<const ulc_edge> edges, std::uint16_t self,
                                      std::uint16_t ranks) {
    if (ranks > kSubsetMembersMax || edges.size() < 2) return 0;
    std::uint64_t subset = 0;
    for (const ulc_edge& edge : edges) {
        const std::uint64_t bit = std::uint64_t{1} << edge.peer;
        if (edge.peer == self || (subset & bit) != 0 || edge.offset != edges[0].offset ||
            edge.length != edges[0].length)
            return 0;
        subset |= bit;
    }
    return subset;
}

void make_plan(std::span<const ulc_edge> to, std::span<const ulc_edge> from, std::uint16_t self,
               std::uint16_t ranks, Plan& plan) {
    auto own = to.begin();  // the i-th own edge out meets the i-th own edge in
    for (const ulc_edge& edge : from) {
        const Range into = range_of(edge, BufferId::kOutput);
        if (edge.peer != self) {
            plan.receive(edge.peer, into);
            continue;
        }
        own = std::find_if(own, to.end(), [self](const ulc_edge& e) { return e.peer == self; });
        if (own == to.end()) return;  // a caller's mistake
        Range given = range_of(*own++, BufferId::kInput);
        given.length = into.length;
        plan.copy(into, given);
    }
    if (const std::uint64_t subset = subset_of(to, self, ranks); subset != 0) {
        plan.multicast(range_of(to[0], BufferId::kInput), subset);
        return;
    }
    for (const ulc_edge& edge : to) {
        if (edge.peer != self) plan.send(edge.peer, range_of(edge, BufferId::kInput));
    }
}

/// No other operation has these; the edges of a member are known to its neighbours alone.
[[nodiscard]] client::RunIdentity identity() {
    constexpr std::uint32_t kAlgorithm = 0x4E424F52;
    const auto op = static_cast<std::uint32_t>(Op::kAlltoallv);
    const auto code = static_cast<std::uint8_t>(client::Signature::highest(11, 0));
    return {kName,
            {client::Signature(op, 0, code, kAlgorithm, 0),
             static_cast<std::uint32_t>(fnv1a(op, kAlgorithm)), kAlgorithm}};
}

[[nodiscard]] int start_exchange(ulc_endpoint* ep, ulc_group group, const void* input,
                                 std::span<const ulc_edge> to, void* output,
                                 std::span<const ulc_edge> from, ulc_coll** out) {
    const std::uint16_t self = ulc_group_index(ep, group);
    const std::uint16_t ranks = ulc_group_size(ep, group);
    if (self == ULC_RANK_ANY || ranks == 0) {
        set_last_error("%s: this rank is no member of group 0x%08x", kName, group);
        return ULC_ERR_INVALID;
    }
    const auto outside = [ranks](const ulc_edge& edge) { return edge.peer >= ranks; };
    if (std::ranges::any_of(to, outside) || std::ranges::any_of(from, outside)) {
        set_last_error("%s: an edge leads out of the group of %u", kName, unsigned{ranks});
        return ULC_ERR_INVALID;
    }
    auto operation = std::make_unique<ulc_coll>();
    client::RunMemory& memory = operation->memory;
    if (!reach_of(to, memory.input_octets) || !reach_of(from, memory.output_octets)) {
        set_last_error("%s: a block exceeds the address space", kName);
        return ULC_ERR_LIMIT;
    }
    memory.input = input;
    memory.output = output;
    operation->ep = ep;
    operation->group = group;
    operation->identity = identity();
    make_plan(to, from, self, ranks, operation->plan);
    const int error = operation->start();
    if (error == ULC_OK) *out = operation.release();
    return error;
}

}  // namespace
}  // namespace ulc::coll

int ulc_neighbours_start(ulc_endpoint* ep, ulc_group group, const void* input, const ulc_edge* to,
                         size_t to_count, void* output, const ulc_edge* from, size_t from_count,
                         ulc_coll** out) {
    try {
        return ulc::coll::start_exchange(ep, group, input, {to, to_count}, output,
                                         {from, from_count}, out);
    } catch (const std::bad_alloc&) {
        ulc::client::set_last_error("%s: no memory for the schedule", ulc::coll::kName);
        return ULC_ERR_NO_MEMORY;
    }
}
