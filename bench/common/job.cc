// SPDX-License-Identifier: BSD-3-Clause
#include "bench/common/job.h"

#include <coll.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ulc::bench {
namespace {

constexpr std::int64_t kJoinTimeoutNs = 30'000'000'000;
constexpr std::int64_t kLeaveTimeoutNs = 10'000'000'000;

}  // namespace

void require(int error, const char* what) {
    if (error == ULC_OK) return;
    std::fprintf(stderr, "%s: %s", what, ulc_error_text(error));
    const char* more = ulc_last_error_text();
    std::fprintf(stderr, *more != '\0' ? " (%s)\n" : "%s\n", more);
    std::exit(1);
}

std::unique_ptr<Job> Job::join(std::string& why) {
    const char* size = std::getenv("ULC_SIZE");
    if (size == nullptr) return std::unique_ptr<Job>(new Job(nullptr));
    ulc_endpoint* ep = nullptr;
    int error = ulc_open(nullptr, &ep);
    if (error == ULC_OK) error = ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kJoinTimeoutNs);
    if (error == ULC_OK) return std::unique_ptr<Job>(new Job(ep));
    why = std::string(ulc_error_text(error)) + "; " + ulc_last_error_text();
    ulc_close(ep);
    return nullptr;
}

Job::~Job() {
    if (alone()) return;
    static_cast<void>(ulc_leave_wait(ep_, kLeaveTimeoutNs));
    ulc_close(ep_);
}

void Job::barrier() {
    if (!alone()) require(ulc_barrier(ep_, world()), "barrier");
}

namespace {

/// Waits for the operation of a start call; `operation` by reference, since the call fills it while
/// arguments are evaluated.
void finish(ulc_endpoint* ep, int started, ulc_coll* const& operation, const char* what) {
    require(started, what);
    require(ulc_coll_wait(ep, operation, ULC_WAIT_FOREVER), what);
}

void copy(void* to, const void* from, std::size_t octets) {
    if (octets > 0) std::memcpy(to, from, octets);
}

}  // namespace

void Job::broadcast(void* buffer, std::size_t octets, std::uint16_t root) {
    if (alone()) return;
    ulc_coll* operation = nullptr;
    const char* algorithm = emulated_ ? "binomial" : nullptr;
    finish(ep_, ulc_broadcast_start(ep_, world(), root, buffer, octets, algorithm, &operation),
           operation, "broadcast");
}

void Job::allgather(const void* input, void* output, std::size_t octets) {
    if (alone()) return input == nullptr ? void() : copy(output, input, octets);
    ulc_coll* operation = nullptr;
    const char* algorithm = emulated_ ? "ring" : nullptr;
    finish(ep_, ulc_allgather_start(ep_, world(), input, output, octets, algorithm, &operation),
           operation, "allgather");
}

void Job::allgather_in_place(void* blocks, const std::size_t* lengths) {
    if (alone()) return;
    ulc_coll* operation = nullptr;
    const char* algorithm = emulated_ ? "ring" : nullptr;
    finish(ep_,
           ulc_allgatherv_start(ep_, world(), nullptr, blocks, lengths, nullptr, algorithm,
                                &operation),
           operation, "allgather");
}

void Job::scatter(const void* all, const std::size_t* lengths, void* own) {
    if (alone()) return copy(own, all, lengths[0]);
    ulc_coll* operation = nullptr;
    finish(ep_,
           ulc_scatterv_start(ep_, world(), 0, all, lengths, nullptr, own, lengths[rank()], nullptr,
                              &operation),
           operation, "scatter");
}

void Job::gather(const void* own, void* all, const std::size_t* lengths) {
    if (alone()) return copy(all, own, lengths[0]);
    ulc_coll* operation = nullptr;
    // The token of GAMMA §6.3: one rank at a time sends, so that a shared medium has no contention.
    finish(ep_,
           ulc_gatherv_start(ep_, world(), 0, own, lengths[rank()], all, lengths, nullptr, "token",
                             &operation),
           operation, "gather");
}

void Job::send(std::uint16_t to, const void* buffer, std::size_t octets) {
    ulc_request request;
    require(ulc_send(ep_, to, 0, buffer, octets, &request), "send");
    require(ulc_wait_for(ep_, &request, nullptr, ULC_WAIT_FOREVER), "send");
}

void Job::receive(std::uint16_t from, void* buffer, std::size_t octets) {
    ulc_request request;
    ulc_status status;
    require(ulc_receive(ep_, from, 0, UINT64_MAX, buffer, octets, &request), "receive");
    require(ulc_wait_for(ep_, &request, &status, ULC_WAIT_FOREVER), "receive");
    require(status.length == octets ? status.error : ULC_ERR_MISMATCH, "receive");
}

}  // namespace ulc::bench
