// SPDX-License-Identifier: BSD-3-Clause
// Entries of coll.h. Each function makes the Arguments that start() (operation.h) validates and
// runs. The starting forms begin the operation, the blocking forms wait for it.
#include <coll.h>

#include <memory>

#include "client/error_text.h"
#include "coll/coll_for_mpi.h"
#include "coll/operation.h"

using ulc::coll::Arguments;
using ulc::coll::GivenBlocks;
using ulc::coll::Op;

namespace {

/// An operation on blocks of one length, or on a whole.
[[nodiscard]] Arguments even(Op op, ulc_endpoint* ep, ulc_group group, const void* input,
                             void* output, size_t count, const ulc_reduction* reduction = nullptr) {
    Arguments arguments;
    arguments.ep = ep;
    arguments.group = group;
    arguments.op = op;
    arguments.input = input;
    arguments.output = output;
    arguments.count = count;
    arguments.reduction = reduction;
    return arguments;
}

/// The same on blocks of which the caller gives each length; count: of a block that is alone.
[[nodiscard]] Arguments uneven(Op op, ulc_endpoint* ep, ulc_group group, const void* input,
                               GivenBlocks in, void* output, GivenBlocks out, size_t count = 0) {
    Arguments arguments = even(op, ep, group, input, output, count);
    arguments.uneven = true;
    arguments.in = in;
    arguments.out = out;
    return arguments;
}

[[nodiscard]] Arguments rooted(uint16_t root, Arguments arguments) {
    arguments.root = root;
    return arguments;
}

[[nodiscard]] Arguments barrier(ulc_endpoint* ep, ulc_group group) {
    return even(Op::kBarrier, ep, group, nullptr, nullptr, 0);
}

[[nodiscard]] Arguments broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                                  size_t length) {
    return rooted(root, even(Op::kBroadcast, ep, group, nullptr, buffer, length));
}

[[nodiscard]] Arguments gather(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                               void* output, size_t length) {
    return rooted(root, even(Op::kGather, ep, group, input, output, length));
}

[[nodiscard]] Arguments gatherv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                                size_t length, void* output, const size_t* lengths,
                                const size_t* offsets) {
    return rooted(root,
                  uneven(Op::kGatherv, ep, group, input, {}, output, {lengths, offsets}, length));
}

[[nodiscard]] Arguments scatter(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                                void* output, size_t length) {
    return rooted(root, even(Op::kScatter, ep, group, input, output, length));
}

[[nodiscard]] Arguments scatterv(ulc_endpoint* ep, ulc_group group, uint16_t root,
                                 const void* input, const size_t* lengths, const size_t* offsets,
                                 void* output, size_t length) {
    return rooted(root,
                  uneven(Op::kScatterv, ep, group, input, {lengths, offsets}, output, {}, length));
}

[[nodiscard]] Arguments allgatherv(ulc_endpoint* ep, ulc_group group, const void* input,
                                   void* output, const size_t* lengths, const size_t* offsets) {
    return uneven(Op::kAllgather, ep, group, input, {}, output, {lengths, offsets});
}

[[nodiscard]] Arguments alltoallv(ulc_endpoint* ep, ulc_group group, const void* input,
                                  const size_t* input_lengths, const size_t* input_offsets,
                                  void* output, const size_t* output_lengths,
                                  const size_t* output_offsets) {
    const GivenBlocks out{output_lengths, output_offsets};
    const bool in_place = input == nullptr && input_lengths == nullptr;
    const GivenBlocks in = in_place ? out : GivenBlocks{input_lengths, input_offsets};
    return uneven(Op::kAlltoallv, ep, group, input, in, output, out);
}

[[nodiscard]] Arguments reduce(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                               void* output, size_t count, const ulc_reduction& reduction) {
    return rooted(root, even(Op::kReduce, ep, group, input, output, count, &reduction));
}

[[nodiscard]] Arguments reduce_scatter(ulc_endpoint* ep, ulc_group group, const void* input,
                                       void* output, const size_t* counts,
                                       const ulc_reduction& reduction) {
    Arguments arguments =
        uneven(Op::kReduceScatter, ep, group, input, {counts, nullptr}, output, {});
    arguments.reduction = &reduction;
    return arguments;
}

[[nodiscard]] int begin(Arguments arguments, const char* algorithm, ulc_coll** out) {
    arguments.algorithm = algorithm;
    arguments.offload = true;
    arguments.operation = out;
    return ulc::coll::start(arguments);
}

/// Runs an operation to its end. Nothing is offloaded, since the caller polls anyway.
[[nodiscard]] int whole(Arguments arguments) {
    ulc_coll* operation = nullptr;
    arguments.operation = &operation;
    const int started = ulc::coll::start(arguments);
    return started != ULC_OK ? started : ulc_coll_wait(arguments.ep, operation, ULC_WAIT_FOREVER);
}

}  // namespace

int ulc_barrier_start(ulc_endpoint* ep, ulc_group group, const char* algorithm, ulc_coll** out) {
    return begin(barrier(ep, group), algorithm, out);
}
int ulc_barrier(ulc_endpoint* ep, ulc_group group) { return whole(barrier(ep, group)); }

int ulc_broadcast_start(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                        size_t length, const char* algorithm, ulc_coll** out) {
    return begin(broadcast(ep, group, root, buffer, length), algorithm, out);
}
int ulc_broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer, size_t length) {
    return whole(broadcast(ep, group, root, buffer, length));
}

int ulc_gather_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                     void* output, size_t length, const char* algorithm, ulc_coll** out) {
    return begin(gather(ep, group, root, input, output, length), algorithm, out);
}
int ulc_gather(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input, void* output,
               size_t length) {
    return whole(gather(ep, group, root, input, output, length));
}

int ulc_gatherv_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                      size_t length, void* output, const size_t* lengths, const size_t* offsets,
                      const char* algorithm, ulc_coll** out) {
    return begin(gatherv(ep, group, root, input, length, output, lengths, offsets), algorithm, out);
}
int ulc_gatherv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input, size_t length,
                void* output, const size_t* lengths, const size_t* offsets) {
    return whole(gatherv(ep, group, root, input, length, output, lengths, offsets));
}

int ulc_scatter_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                      void* output, size_t length, const char* algorithm, ulc_coll** out) {
    return begin(scatter(ep, group, root, input, output, length), algorithm, out);
}
int ulc_scatter(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input, void* output,
                size_t length) {
    return whole(scatter(ep, group, root, input, output, length));
}

int ulc_scatterv_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                       const size_t* lengths, const size_t* offsets, void* output, size_t length,
                       const char* algorithm, ulc_coll** out) {
    return begin(scatterv(ep, group, root, input, lengths, offsets, output, length), algorithm,
                 out);
}
int ulc_scatterv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                 const size_t* lengths, const size_t* offsets, void* output, size_t length) {
    return whole(scatterv(ep, group, root, input, lengths, offsets, output, length));
}

int ulc_allgather_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                        size_t length, const char* algorithm, ulc_coll** out) {
    return begin(even(Op::kAllgather, ep, group, input, output, length), algorithm, out);
}
int ulc_allgather(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                  size_t length) {
    return whole(even(Op::kAllgather, ep, group, input, output, length));
}

int ulc_allgatherv_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                         const size_t* lengths, const size_t* offsets, const char* algorithm,
                         ulc_coll** out) {
    return begin(allgatherv(ep, group, input, output, lengths, offsets), algorithm, out);
}
int ulc_allgatherv(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                   const size_t* lengths, const size_t* offsets) {
    return whole(allgatherv(ep, group, input, output, lengths, offsets));
}

int ulc_alltoall_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                       size_t length, const char* algorithm, ulc_coll** out) {
    return begin(even(Op::kAlltoall, ep, group, input, output, length), algorithm, out);
}
int ulc_alltoall(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                 size_t length) {
    return whole(even(Op::kAlltoall, ep, group, input, output, length));
}

int ulc_alltoallv_start(ulc_endpoint* ep, ulc_group group, const void* input,
                        const size_t* input_lengths, const size_t* input_offsets, void* output,
                        const size_t* output_lengths, const size_t* output_offsets,
                        const char* algorithm, ulc_coll** out) {
    return begin(alltoallv(ep, group, input, input_lengths, input_offsets, output, output_lengths,
                           output_offsets),
                 algorithm, out);
}
int ulc_alltoallv(ulc_endpoint* ep, ulc_group group, const void* input, const size_t* input_lengths,
                  const size_t* input_offsets, void* output, const size_t* output_lengths,
                  const size_t* output_offsets) {
    return whole(alltoallv(ep, group, input, input_lengths, input_offsets, output, output_lengths,
                           output_offsets));
}

int ulc_reduce_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                     void* output, size_t count, ulc_reduction reduction, const char* algorithm,
                     ulc_coll** out) {
    return begin(reduce(ep, group, root, input, output, count, reduction), algorithm, out);
}
int ulc_reduce(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input, void* output,
               size_t count, ulc_reduction reduction) {
    return whole(reduce(ep, group, root, input, output, count, reduction));
}

int ulc_allreduce_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                        size_t count, ulc_reduction reduction, const char* algorithm,
                        ulc_coll** out) {
    return begin(even(Op::kAllreduce, ep, group, input, output, count, &reduction), algorithm, out);
}
int ulc_allreduce(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
                  ulc_reduction reduction) {
    return whole(even(Op::kAllreduce, ep, group, input, output, count, &reduction));
}

int ulc_reduce_scatter_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                             const size_t* counts, ulc_reduction reduction, const char* algorithm,
                             ulc_coll** out) {
    return begin(reduce_scatter(ep, group, input, output, counts, reduction), algorithm, out);
}
int ulc_reduce_scatter(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                       const size_t* counts, ulc_reduction reduction) {
    return whole(reduce_scatter(ep, group, input, output, counts, reduction));
}

int ulc_reduce_scatter_block_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                   void* output, size_t count, ulc_reduction reduction,
                                   const char* algorithm, ulc_coll** out) {
    return begin(even(Op::kReduceScatter, ep, group, input, output, count, &reduction), algorithm,
                 out);
}
int ulc_reduce_scatter_block(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                             size_t count, ulc_reduction reduction) {
    return whole(even(Op::kReduceScatter, ep, group, input, output, count, &reduction));
}

int ulc_scan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
                   ulc_reduction reduction, const char* algorithm, ulc_coll** out) {
    return begin(even(Op::kScan, ep, group, input, output, count, &reduction), algorithm, out);
}
int ulc_scan(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
             ulc_reduction reduction) {
    return whole(even(Op::kScan, ep, group, input, output, count, &reduction));
}

int ulc_exscan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                     size_t count, ulc_reduction reduction, const char* algorithm, ulc_coll** out) {
    return begin(even(Op::kExscan, ep, group, input, output, count, &reduction), algorithm, out);
}
int ulc_exscan(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
               ulc_reduction reduction) {
    return whole(even(Op::kExscan, ep, group, input, output, count, &reduction));
}

const char* ulc_coll_algorithm(ulc_endpoint* ep, ulc_group group, const char* operation,
                               size_t octets) {
    using namespace ulc::coll;
    if (ep == nullptr || operation == nullptr || ulc_group_index(ep, group) == ULC_RANK_ANY) {
        ulc::client::set_last_error(
            "ulc_coll_algorithm: the endpoint or the operation is NULL, or this rank is no member "
            "of "
            "group 0x%08x",
            group);
        return nullptr;
    }
    for (std::uint8_t i = 0; i < kOps; ++i) {
        const auto op = static_cast<Op>(i);
        if (name_of(op) != operation) continue;
        Choice choice;
        const Rule* rule = nullptr;
        const bool chosen = select(ep, group, op, octets, choice, &rule) == ULC_OK;
        return chosen ? rule->choice.c_str() : nullptr;
    }
    ulc::client::set_last_error("ulc_coll_algorithm: there is no operation \"%s\"; see coll.h",
                                operation);
    return nullptr;
}

const char* ulc_coll_medium(ulc_endpoint* ep, ulc_group group, uint16_t* per_node) {
    using namespace ulc::coll;
    if (ep == nullptr || ulc_group_index(ep, group) == ULC_RANK_ANY) {
        ulc::client::set_last_error(
            "ulc_coll_medium: the endpoint is NULL, or this rank is no member of group 0x%08x",
            group);
        return nullptr;
    }
    const Situation at = situation(ep, group, Op::kBarrier, 0);
    if (per_node != nullptr) *per_node = at.per_node;
    return ulc::name_of(medium_of_group(at)).data();  // literals, so terminated
}

int ulc_coll_test(ulc_endpoint* ep, ulc_coll* operation) {
    if (operation == nullptr || operation->ep != ep) return ULC_ERR_INVALID;
    const int state = operation->run.test();
    if (state != ULC_ERR_AGAIN && !operation->is_kept) delete operation;
    return state;
}

int ulc_coll_wait(ulc_endpoint* ep, ulc_coll* operation, int64_t timeout_ns) {
    if (operation == nullptr || operation->ep != ep) return ULC_ERR_INVALID;
    const int state = operation->run.wait(timeout_ns);
    if (state == ULC_ERR_AGAIN) return ULC_ERR_TIMEOUT;
    if (!operation->is_kept) delete operation;
    return state;
}

void ulc_coll_keep(ulc_coll* operation) { operation->is_kept = true; }

int ulc_coll_start_again(ulc_coll* operation) {
    if (operation->offload) {  // what the engine was given is prepared again
        std::destroy_at(&operation->run);
        std::construct_at(&operation->run);
    }
    return operation->start();
}

void ulc_coll_free(ulc_coll* operation) { delete operation; }
