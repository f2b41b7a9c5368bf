// SPDX-License-Identifier: BSD-3-Clause
// The share of a non-blocking broadcast that hides behind computation: hidden = 1 − (both −
// computation) / alone, where alone is start and wait, both is start, compute for as long as alone
// takes, wait. Medians over rounds, of one rank that computes: the root in the first half of the
// lines, a receiver in the second. The others start their part and sleep until it is done.
//
// To be hidden, the engine's work needs a processor that the computation does not need. On a
// machine of two, this program keeps the rank that computes to the last one and all others to the
// first one, and the engines run where they are put:
//
//   ULC_OFFLOAD=1 taskset -c 0 ulc run -n 2 --nodes 2 ulc-bench-overlap    the engine runs it
//   taskset -c 0 ulc run -n 2 --nodes 2 ulc-bench-overlap                  the library does, when
//                                                                          it is called
//   ULC_OFFLOAD=1 ulc run -n 2 --embedded ulc-bench-overlap                the helper thread of the
//                                                                          embedded engine
#include <coll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/common/job.h"
#include "bench/common/median.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

constexpr unsigned kRounds = 21;
constexpr std::chrono::microseconds kNap{200};

bool offloads() {
    const char* given = std::getenv("ULC_OFFLOAD");
    return given != nullptr && std::string_view(given) == "1";
}

/// Keeps this process on one processor. Where that is not allowed it stays where it is: the figures
/// show it.
void stay_on(long cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(cpu), &one);
    static_cast<void>(sched_setaffinity(0, sizeof one, &one));
}

class Overlap {
public:
    Overlap(Job& job, std::size_t octets, std::uint16_t computing)
        : job_(job), computes_(job.rank() == computing), own_(octets, 1) {
        auto* arena = static_cast<unsigned char*>(ulc_alloc(job.endpoint(), octets));
        buffer_ = arena == nullptr ? own_.data() : arena;
        in_arena_ = arena != nullptr;
    }
    ~Overlap() {
        if (in_arena_) ulc_free(job_.endpoint(), buffer_);
    }
    Overlap(const Overlap&) = delete;
    Overlap& operator=(const Overlap&) = delete;

    void print() {
        constexpr std::uint64_t kSteps = 1U << 22;
        const double step = seconds([&] { compute(kSteps); }) / static_cast<double>(kSteps);
        std::vector<double> first;
        for (unsigned i = 0; i < kRounds; ++i)
            first.push_back(seconds([&] { broadcast(0); }));
        const auto steps = static_cast<std::uint64_t>(median(first) / step);
        // The three of a round follow each other, so that a disturbance affects all.
        std::vector<double> alone, computation, both, hidden;
        for (unsigned i = 0; i < kRounds; ++i) {
            alone.push_back(seconds([&] { broadcast(0); }));
            computation.push_back(seconds([&] { compute(steps); }));
            both.push_back(seconds([&] { broadcast(steps); }));
            hidden.push_back(1 - (both.back() - computation.back()) / alone.back());
        }
        if (!computes_) return;
        std::printf(
            "%s computes, %8zu octets %s: alone %8.1f us, computation %8.1f us, both %8.1f us, "
            "hidden %5.1f %%\n",
            job_.rank() == 0 ? "root" : "receiver", own_.size(),
            in_arena_ ? "of ulc_alloc" : "elsewhere   ", 1e6 * median(alone),
            1e6 * median(computation), 1e6 * median(both), 100 * median(hidden));
        std::fflush(stdout);
    }

private:
    void compute(std::uint64_t steps) {
        if (!computes_) return;
        for (std::uint64_t i = 0; i < steps; ++i) {
            state_ ^= state_ << 13;
            state_ ^= state_ >> 7;
            state_ ^= state_ << 17;
        }
        if (state_ == 0) std::abort();  // so that it is not optimised away
    }
    void broadcast(std::uint64_t steps) {
        ulc_coll* operation = nullptr;
        require(ulc_broadcast_start(job_.endpoint(), job_.world(), 0, buffer_, own_.size(), nullptr,
                                    &operation),
                "broadcast");
        if (computes_) {
            compute(steps);
        } else if (offloads()) {
            int state = ULC_ERR_AGAIN;
            while (state == ULC_ERR_AGAIN) {
                std::this_thread::sleep_for(kNap);
                ulc_poll(job_.endpoint());
                state = ulc_coll_test(job_.endpoint(), operation);
            }
            return require(state, "broadcast");
        }
        require(ulc_coll_wait(job_.endpoint(), operation, ULC_WAIT_FOREVER), "broadcast");
    }
    /// Time of the rank that computes; the others take part. The same value at all ranks.
    double seconds(const std::function<void()>& what) {
        job_.barrier();
        const auto begun = Clock::now();
        what();
        const double own =
            computes_ ? std::chrono::duration<double>(Clock::now() - begun).count() : 0;
        std::vector<double> all(job_.size());
        job_.allgather(&own, all.data(), sizeof own);
        return *std::ranges::max_element(all);
    }

    Job& job_;
    bool computes_;
    std::vector<unsigned char> own_;
    unsigned char* buffer_ = nullptr;
    bool in_arena_ = false;
    std::uint64_t state_ = 88172645463325252U;
};

}  // namespace

int main() {
    std::string why;
    const std::unique_ptr<Job> job = Job::join(why);
    if (job == nullptr || job->alone()) {
        std::fprintf(
            stderr, "ulc-bench-overlap: %s\n",
            job == nullptr ? why.c_str() : "give it ranks: ulc run -n 2 ulc-bench-overlap");
        return 1;
    }
    for (const std::uint16_t computing : {std::uint16_t{0}, std::uint16_t{1}}) {
        stay_on(job->rank() == computing ? sysconf(_SC_NPROCESSORS_ONLN) - 1 : 0);
        for (const std::size_t octets : {65536U, 262144U, 1048576U})
            Overlap(*job, octets, computing).print();
    }
    return 0;
}
