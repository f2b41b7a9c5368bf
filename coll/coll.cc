// coll.h: every function says what start() (operation.h) is to judge and run; the starting forms begin it, the blocking forms wait.
#include <coll.h>

#include "client/error_text.h"
#include "coll/operation.h"

using ulc::coll::Arguments;
using ulc::coll::Op;

namespace {

[[nodiscard]] Arguments barrier(ulc_endpoint* ep, ulc_group group) {
    return {.ep = ep, .group = group, .op = Op::kBarrier};
}

[[nodiscard]] Arguments broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                                  size_t length) {
    return {.ep = ep,
            .group = group,
            .op = Op::kBroadcast,
            .root = root,
            .output = buffer,
            .count = length};
}

[[nodiscard]] Arguments gather(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                               void* output, size_t length) {
    return {.ep = ep,
            .group = group,
            .op = Op::kGather,
            .root = root,
            .input = input,
            .output = output,
            .count = length};
}

[[nodiscard]] Arguments gatherv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                                size_t length, void* output, const size_t* lengths,
                                const size_t* offsets) {
    return {.ep = ep,
            .group = group,
            .op = Op::kGatherv,
            .root = root,
            .input = input,
            .output = output,
            .count = length,
            .uneven = true,
            .out = {lengths, offsets}};
}

[[nodiscard]] Arguments scatter(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                                void* output, size_t length) {
    return {.ep = ep,
            .group = group,
            .op = Op::kScatter,
            .root = root,
            .input = input,
            .output = output,
            .count = length};
}

[[nodiscard]] Arguments scatterv(ulc_endpoint* ep, ulc_group group, uint16_t root,
                                 const void* input, const size_t* lengths, const size_t* offsets,
                                 void* output, size_t length) {
    return {.ep = ep,
            .group = group,
            .op = Op::kScatterv,
            .root = root,
            .input = input,
            .output = output,
            .count = length,
            .uneven = true,
            .in = {lengths, offsets}};
}

[[nodiscard]] Arguments allgather(ulc_endpoint* ep, ulc_group group, const void* input,
                                  void* output, size_t length) {
    return {.ep = ep,
            .group = group,
            .op = Op::kAllgather,
            .input = input,
            .output = output,
            .count = length};
}

[[nodiscard]] Arguments allgatherv(ulc_endpoint* ep, ulc_group group, const void* input,
                                   void* output, const size_t* lengths, const size_t* offsets) {
    return {.ep = ep,
            .group = group,
            .op = Op::kAllgather,
            .input = input,
            .output = output,
            .uneven = true,
            .out = {lengths, offsets}};
}

[[nodiscard]] Arguments alltoall(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                                 size_t length) {
    return {.ep = ep,
            .group = group,
            .op = Op::kAlltoall,
            .input = input,
            .output = output,
            .count = length};
}

[[nodiscard]] Arguments alltoallv(ulc_endpoint* ep, ulc_group group, const void* input,
                                  const size_t* input_lengths, const size_t* input_offsets,
                                  void* output, const size_t* output_lengths,
                                  const size_t* output_offsets) {
    const bool in_place = input == nullptr && input_lengths == nullptr;
    return {.ep = ep,
            .group = group,
            .op = Op::kAlltoallv,
            .input = input,
            .output = output,
            .uneven = true,
            .in = {in_place ? output_lengths : input_lengths,
                   in_place ? output_offsets : input_offsets},
            .out = {output_lengths, output_offsets}};
}

[[nodiscard]] Arguments reduce(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                               void* output, size_t count, const ulc_reduction& reduction) {
    return {.ep = ep,
            .group = group,
            .op = Op::kReduce,
            .root = root,
            .input = input,
            .output = output,
            .count = count,
            .reduction = &reduction};
}

[[nodiscard]] Arguments allreduce(ulc_endpoint* ep, ulc_group group, const void* input,
                                  void* output, size_t count, const ulc_reduction& reduction) {
    return {.ep = ep,
            .group = group,
            .op = Op::kAllreduce,
            .input = input,
            .output = output,
            .count = count,
            .reduction = &reduction};
}

[[nodiscard]] Arguments reduce_scatter(ulc_endpoint* ep, ulc_group group, const void* input,
                                       void* output, const size_t* counts,
                                       const ulc_reduction& reduction) {
    return {.ep = ep,
            .group = group,
            .op = Op::kReduceScatter,
            .input = input,
            .output = output,
            .uneven = true,
            .in = {counts, nullptr},
            .reduction = &reduction};
}

[[nodiscard]] Arguments reduce_scatter_block(ulc_endpoint* ep, ulc_group group, const void* input,
                                             void* output, size_t count,
                                             const ulc_reduction& reduction) {
    return {.ep = ep,
            .group = group,
            .op = Op::kReduceScatter,
            .input = input,
            .output = output,
            .count = count,
            .reduction = &reduction};
}

[[nodiscard]] Arguments scan(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                             size_t count, const ulc_reduction& reduction) {
    return {.ep = ep,
            .group = group,
            .op = Op::kScan,
            .input = input,
            .output = output,
            .count = count,
            .reduction = &reduction};
}

[[nodiscard]] Arguments exscan(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                               size_t count, const ulc_reduction& reduction) {
    return {.ep = ep,
            .group = group,
            .op = Op::kExscan,
            .input = input,
            .output = output,
            .count = count,
            .reduction = &reduction};
}

[[nodiscard]] int begin(Arguments arguments, const char* algorithm, ulc_coll** out) {
    arguments.algorithm = algorithm;
    arguments.offload = true;
    arguments.operation = out;
    return ulc::coll::start(arguments);
}

/// Who waits anyway is served best by itself: nothing is offloaded.
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
    return begin(allgather(ep, group, input, output, length), algorithm, out);
}
int ulc_allgather(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                  size_t length) {
    return whole(allgather(ep, group, input, output, length));
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
    return begin(alltoall(ep, group, input, output, length), algorithm, out);
}
int ulc_alltoall(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                 size_t length) {
    return whole(alltoall(ep, group, input, output, length));
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
    return begin(allreduce(ep, group, input, output, count, reduction), algorithm, out);
}
int ulc_allreduce(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
                  ulc_reduction reduction) {
    return whole(allreduce(ep, group, input, output, count, reduction));
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
    return begin(reduce_scatter_block(ep, group, input, output, count, reduction), algorithm, out);
}
int ulc_reduce_scatter_block(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                             size_t count, ulc_reduction reduction) {
    return whole(reduce_scatter_block(ep, group, input, output, count, reduction));
}

int ulc_scan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
                   ulc_reduction reduction, const char* algorithm, ulc_coll** out) {
    return begin(scan(ep, group, input, output, count, reduction), algorithm, out);
}
int ulc_scan(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
             ulc_reduction reduction) {
    return whole(scan(ep, group, input, output, count, reduction));
}

int ulc_exscan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                     size_t count, ulc_reduction reduction, const char* algorithm, ulc_coll** out) {
    return begin(exscan(ep, group, input, output, count, reduction), algorithm, out);
}
int ulc_exscan(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
               ulc_reduction reduction) {
    return whole(exscan(ep, group, input, output, count, reduction));
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
    if (state != ULC_ERR_AGAIN) delete operation;
    return state;
}

int ulc_coll_wait(ulc_endpoint* ep, ulc_coll* operation, int64_t timeout_ns) {
    if (operation == nullptr || operation->ep != ep) return ULC_ERR_INVALID;
    const int state = operation->run.wait(timeout_ns);
    if (state == ULC_ERR_AGAIN) return ULC_ERR_TIMEOUT;
    delete operation;
    return state;
}
