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

void Job::broadcast(void* buffer, std::size_t octets) {
    if (!alone()) require(ulc_broadcast(ep_, world(), 0, buffer, octets), "broadcast");
}

void Job::allgather(const void* input, void* output, std::size_t octets) {
    if (!alone()) {
        require(ulc_allgather(ep_, world(), input, output, octets), "allgather");
    } else if (input != nullptr && octets > 0) {
        std::memcpy(output, input, octets);
    }
}

}  // namespace ulc::bench
