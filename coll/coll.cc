// coll.h: arguments → Call → the algorithm's steps → a run of the client. Operations are objects of the caller;
// numbers of operations are kept with the group in the endpoint, so nothing here outlives an operation.
#include <coll.h>

#include <new>
#include <string_view>

#include "base/error.h"
#include "client/error_text.h"
#include "client/schedule_run.h"
#include "coll/algorithm.h"
#include "coll/selection.h"

struct ulc_coll {
    ulc_endpoint* ep = nullptr;
    ulc::coll::Plan plan;
    ulc::client::ScheduleRun run;
};

namespace ulc::coll {
namespace {

using client::RunMemory;
using client::set_last_error;

/// Fills in rank and ranks. Errors: INVALID.
[[nodiscard]] int begin_call(const ulc_endpoint* ep, ulc_group group, Call& call) noexcept {
    if (ep == nullptr) {
        set_last_error("collective: the endpoint is NULL");
        return ULC_ERR_INVALID;
    }
    call.rank = ulc_group_index(ep, group);
    call.ranks = ulc_group_size(ep, group);
    if (call.rank != ULC_RANK_ANY && call.ranks > 0) return ULC_OK;
    if (const int state = ulc_job_state(ep); state != ULC_OK) {
        return state == ULC_ERR_AGAIN ? ULC_ERR_NOT_FORMED : state;
    }
    set_last_error("collective: this rank is no member of group 0x%08x", group);
    return ULC_ERR_INVALID;
}

/// The algorithm asked for, or the table's; fills in segment and concurrency.
[[nodiscard]] int choose(const char* wanted, Call& call, const Algorithm** out) noexcept {
    Choice choice;
    if (wanted == nullptr) {
        choice = select(call.op, call.ranks, call.octets);
    } else if (parse_choice(call.op, wanted, choice) != Err::kOk) {
        set_last_error("collective: there is no algorithm \"%s\" for this operation; see coll.h",
                       wanted);
        return ULC_ERR_INVALID;
    }
    call.segment = choice.segment;
    call.concurrent = choice.concurrent;
    *out = choice.algorithm;
    return ULC_OK;
}

[[nodiscard]] int start(ulc_endpoint* ep, ulc_group group, Call call, const char* wanted,
                        const RunMemory& memory, ulc_coll** out) noexcept {
    const Algorithm* algorithm = nullptr;
    if (const int error = choose(wanted, call, &algorithm); error != ULC_OK) return error;
    auto* operation = new (std::nothrow) ulc_coll;
    if (operation == nullptr) return ULC_ERR_NO_MEMORY;
    operation->ep = ep;
    int error = ULC_ERR_NO_MEMORY;
    try {
        algorithm->make(call, operation->plan);
        error = operation->run.start(ep, group, operation->plan.schedule(), memory);
    } catch (const std::bad_alloc&) {
        error = ULC_ERR_NO_MEMORY;
    }
    if (error != ULC_OK) {
        delete operation;
        return error;
    }
    *out = operation;
    return ULC_OK;
}

/// `given` is what went wrong if not ULC_OK, else the operation is waited for.
[[nodiscard]] int finish(ulc_endpoint* ep, ulc_coll* operation, int given) noexcept {
    return given != ULC_OK ? given : ulc_coll_wait(ep, operation, ULC_WAIT_FOREVER);
}

}  // namespace
}  // namespace ulc::coll

using ulc::client::set_last_error;
using ulc::coll::Call;
using ulc::coll::Op;

int ulc_barrier_start(ulc_endpoint* ep, ulc_group group, const char* algorithm, ulc_coll** out) {
    Call call{.op = Op::kBarrier};
    if (const int error = ulc::coll::begin_call(ep, group, call); error != ULC_OK) return error;
    if (out == nullptr) return ULC_ERR_INVALID;
    return ulc::coll::start(ep, group, call, algorithm, {}, out);
}

int ulc_broadcast_start(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                        size_t length, const char* algorithm, ulc_coll** out) {
    Call call{.op = Op::kBroadcast, .root = root, .octets = length};
    if (const int error = ulc::coll::begin_call(ep, group, call); error != ULC_OK) return error;
    if (out == nullptr) return ULC_ERR_INVALID;
    if (root >= call.ranks) {
        set_last_error("broadcast: root %u is not in the group of %u", unsigned{root},
                       unsigned{call.ranks});
        return ULC_ERR_INVALID;
    }
    if (buffer == nullptr && length > 0) {
        set_last_error("broadcast: the buffer is NULL but the length is %zu", length);
        return ULC_ERR_INVALID;
    }
    return ulc::coll::start(ep, group, call, algorithm, {.output = buffer, .output_octets = length},
                            out);
}

int ulc_allgather_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                        size_t length, const char* algorithm, ulc_coll** out) {
    Call call{.op = Op::kAllgather, .octets = length, .in_place = input == nullptr};
    if (const int error = ulc::coll::begin_call(ep, group, call); error != ULC_OK) return error;
    if (out == nullptr) return ULC_ERR_INVALID;
    if (output == nullptr && length > 0) {
        set_last_error("allgather: the output is NULL but the length is %zu", length);
        return ULC_ERR_INVALID;
    }
    std::uint64_t whole = 0;
    if (__builtin_mul_overflow(std::uint64_t{length}, std::uint64_t{call.ranks}, &whole)) {
        set_last_error("allgather: %u blocks of %zu octets exceed the address space",
                       unsigned{call.ranks}, length);
        return ULC_ERR_LIMIT;
    }
    return ulc::coll::start(ep, group, call, algorithm,
                            {.input = input,
                             .input_octets = input == nullptr ? 0 : length,
                             .output = output,
                             .output_octets = whole},
                            out);
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

int ulc_barrier(ulc_endpoint* ep, ulc_group group) {
    ulc_coll* operation = nullptr;
    const int started = ulc_barrier_start(ep, group, nullptr, &operation);
    return ulc::coll::finish(ep, operation, started);
}

int ulc_broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer, size_t length) {
    ulc_coll* operation = nullptr;
    const int started = ulc_broadcast_start(ep, group, root, buffer, length, nullptr, &operation);
    return ulc::coll::finish(ep, operation, started);
}

int ulc_allgather(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                  size_t length) {
    ulc_coll* operation = nullptr;
    const int started = ulc_allgather_start(ep, group, input, output, length, nullptr, &operation);
    return ulc::coll::finish(ep, operation, started);
}
