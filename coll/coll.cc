// coll.h: every function fills in what start() (operation.h) judges and runs; the blocking forms start and wait.
#include <coll.h>

#include <type_traits>
#include <utility>

#include "client/error_text.h"
#include "coll/operation.h"

using ulc::coll::Op;

namespace {

[[nodiscard]] int barrier(ulc_endpoint* ep, ulc_group group, const char* algorithm, bool offload,
                          ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kBarrier,
                             .algorithm = algorithm,
                             .offload = offload,
                             .operation = out});
}

[[nodiscard]] int broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                            size_t length, const char* algorithm, bool offload, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kBroadcast,
                             .root = root,
                             .output = buffer,
                             .count = length,
                             .algorithm = algorithm,
                             .offload = offload,
                             .operation = out});
}

/// The operation that start(…, nullptr, &operation) began, waited for.
template <typename Start, typename... Given>
[[nodiscard]] int whole(Start start, ulc_endpoint* ep, Given... given) {
    ulc_coll* operation = nullptr;
    const int started = start(ep, given..., nullptr, &operation);
    return started != ULC_OK ? started : ulc_coll_wait(ep, operation, ULC_WAIT_FOREVER);
}

}  // namespace

int ulc_barrier_start(ulc_endpoint* ep, ulc_group group, const char* algorithm, ulc_coll** out) {
    return barrier(ep, group, algorithm, true, out);
}

int ulc_broadcast_start(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                        size_t length, const char* algorithm, ulc_coll** out) {
    return broadcast(ep, group, root, buffer, length, algorithm, true, out);
}

int ulc_gather_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                     void* output, size_t length, const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kGather,
                             .root = root,
                             .input = input,
                             .output = output,
                             .count = length,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_gatherv_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                      size_t length, void* output, const size_t* lengths, const size_t* offsets,
                      const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kGatherv,
                             .root = root,
                             .input = input,
                             .output = output,
                             .count = length,
                             .uneven = true,
                             .out = {lengths, offsets},
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_scatter_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                      void* output, size_t length, const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kScatter,
                             .root = root,
                             .input = input,
                             .output = output,
                             .count = length,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_scatterv_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                       const size_t* lengths, const size_t* offsets, void* output, size_t length,
                       const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kScatterv,
                             .root = root,
                             .input = input,
                             .output = output,
                             .count = length,
                             .uneven = true,
                             .in = {lengths, offsets},
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_allgather_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                        size_t length, const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kAllgather,
                             .input = input,
                             .output = output,
                             .count = length,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_allgatherv_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                         const size_t* lengths, const size_t* offsets, const char* algorithm,
                         ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kAllgather,
                             .input = input,
                             .output = output,
                             .uneven = true,
                             .out = {lengths, offsets},
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_alltoall_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                       size_t length, const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kAlltoall,
                             .input = input,
                             .output = output,
                             .count = length,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_alltoallv_start(ulc_endpoint* ep, ulc_group group, const void* input,
                        const size_t* input_lengths, const size_t* input_offsets, void* output,
                        const size_t* output_lengths, const size_t* output_offsets,
                        const char* algorithm, ulc_coll** out) {
    const bool in_place = input == nullptr && input_lengths == nullptr;
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kAlltoallv,
                             .input = input,
                             .output = output,
                             .uneven = true,
                             .in = {in_place ? output_lengths : input_lengths,
                                    in_place ? output_offsets : input_offsets},
                             .out = {output_lengths, output_offsets},
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_reduce_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                     void* output, size_t count, ulc_reduction reduction, const char* algorithm,
                     ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kReduce,
                             .root = root,
                             .input = input,
                             .output = output,
                             .count = count,
                             .reduction = &reduction,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_allreduce_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                        size_t count, ulc_reduction reduction, const char* algorithm,
                        ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kAllreduce,
                             .input = input,
                             .output = output,
                             .count = count,
                             .reduction = &reduction,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_reduce_scatter_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                             const size_t* counts, ulc_reduction reduction, const char* algorithm,
                             ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kReduceScatter,
                             .input = input,
                             .output = output,
                             .uneven = true,
                             .in = {counts, nullptr},
                             .reduction = &reduction,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_reduce_scatter_block_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                   void* output, size_t count, ulc_reduction reduction,
                                   const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kReduceScatter,
                             .input = input,
                             .output = output,
                             .count = count,
                             .reduction = &reduction,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_scan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
                   ulc_reduction reduction, const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kScan,
                             .input = input,
                             .output = output,
                             .count = count,
                             .reduction = &reduction,
                             .algorithm = algorithm,
                             .operation = out});
}

int ulc_exscan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                     size_t count, ulc_reduction reduction, const char* algorithm, ulc_coll** out) {
    return ulc::coll::start({.ep = ep,
                             .group = group,
                             .op = Op::kExscan,
                             .input = input,
                             .output = output,
                             .count = count,
                             .reduction = &reduction,
                             .algorithm = algorithm,
                             .operation = out});
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

// Who waits anyway is served best by itself: these two are not offloaded.
int ulc_barrier(ulc_endpoint* ep, ulc_group group) {
    ulc_coll* operation = nullptr;
    const int started = barrier(ep, group, nullptr, false, &operation);
    return started != ULC_OK ? started : ulc_coll_wait(ep, operation, ULC_WAIT_FOREVER);
}

int ulc_broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer, size_t length) {
    ulc_coll* operation = nullptr;
    const int started = broadcast(ep, group, root, buffer, length, nullptr, false, &operation);
    return started != ULC_OK ? started : ulc_coll_wait(ep, operation, ULC_WAIT_FOREVER);
}

int ulc_gather(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input, void* output,
               size_t length) {
    return whole(ulc_gather_start, ep, group, root, input, output, length);
}

int ulc_gatherv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input, size_t length,
                void* output, const size_t* lengths, const size_t* offsets) {
    return whole(ulc_gatherv_start, ep, group, root, input, length, output, lengths, offsets);
}

int ulc_scatter(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input, void* output,
                size_t length) {
    return whole(ulc_scatter_start, ep, group, root, input, output, length);
}

int ulc_scatterv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                 const size_t* lengths, const size_t* offsets, void* output, size_t length) {
    return whole(ulc_scatterv_start, ep, group, root, input, lengths, offsets, output, length);
}

int ulc_allgather(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                  size_t length) {
    return whole(ulc_allgather_start, ep, group, input, output, length);
}

int ulc_allgatherv(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                   const size_t* lengths, const size_t* offsets) {
    return whole(ulc_allgatherv_start, ep, group, input, output, lengths, offsets);
}

int ulc_alltoall(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                 size_t length) {
    return whole(ulc_alltoall_start, ep, group, input, output, length);
}

int ulc_alltoallv(ulc_endpoint* ep, ulc_group group, const void* input, const size_t* input_lengths,
                  const size_t* input_offsets, void* output, const size_t* output_lengths,
                  const size_t* output_offsets) {
    return whole(ulc_alltoallv_start, ep, group, input, input_lengths, input_offsets, output,
                 output_lengths, output_offsets);
}

int ulc_reduce(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input, void* output,
               size_t count, ulc_reduction reduction) {
    return whole(ulc_reduce_start, ep, group, root, input, output, count, reduction);
}

int ulc_allreduce(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
                  ulc_reduction reduction) {
    return whole(ulc_allreduce_start, ep, group, input, output, count, reduction);
}

int ulc_reduce_scatter(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                       const size_t* counts, ulc_reduction reduction) {
    return whole(ulc_reduce_scatter_start, ep, group, input, output, counts, reduction);
}

int ulc_reduce_scatter_block(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                             size_t count, ulc_reduction reduction) {
    return whole(ulc_reduce_scatter_block_start, ep, group, input, output, count, reduction);
}

int ulc_scan(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
             ulc_reduction reduction) {
    return whole(ulc_scan_start, ep, group, input, output, count, reduction);
}

int ulc_exscan(ulc_endpoint* ep, ulc_group group, const void* input, void* output, size_t count,
               ulc_reduction reduction) {
    return whole(ulc_exscan_start, ep, group, input, output, count, reduction);
}
