// How much of a non-blocking broadcast hides behind computation: started, computed for as long as it takes alone, waited for. The time of
// each is that of the rank that was done last, the median over rounds; hidden = 1 − (both − computation) / alone.
//
//   ULC_OFFLOAD=1 ulc run -n 2 --nodes 2 ulc-bench-overlap          the engine carries it on
//   ulc run -n 2 --nodes 2 ulc-bench-overlap                        the library does, when it is called
// A machine with fewer processors than ranks and engines has nothing left to hide it with.
#include <coll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "bench/common/job.h"

namespace {

using namespace ulc::bench;

constexpr unsigned kRounds = 21;

class Overlap {
public:
    Overlap(Job& job, std::size_t octets) : job_(job), own_(octets, 1) {
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
        // What a step of the computation costs while all ranks compute.
        constexpr std::uint64_t kSteps = 1U << 22;
        const double step = slowest([&] { compute(kSteps); }) / static_cast<double>(kSteps);
        const double alone = slowest([&] { broadcast(0); });
        const auto steps = static_cast<std::uint64_t>(alone / step);
        const double computation = slowest([&] { compute(steps); });
        const double both = slowest([&] { broadcast(steps); });
        if (job_.rank() != 0) return;
        std::printf(
            "%8zu octets %s: alone %8.1f us, computation %8.1f us, both %8.1f us, hidden %5.1f "
            "%%\n",
            own_.size(), in_arena_ ? "of ulc_alloc" : "elsewhere   ", 1e6 * alone,
            1e6 * computation, 1e6 * both, 100 * (1 - (both - computation) / alone));
    }

private:
    void compute(std::uint64_t steps) {
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
        compute(steps);
        require(ulc_coll_wait(job_.endpoint(), operation, ULC_WAIT_FOREVER), "broadcast");
    }
    double slowest(const std::function<void()>& what) {
        std::vector<double> rounds;
        for (unsigned i = 0; i < kRounds; ++i) {
            job_.barrier();
            const auto begun = std::chrono::steady_clock::now();
            what();
            const double own =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
            std::vector<double> all(job_.size());
            job_.allgather(&own, all.data(), sizeof own);
            rounds.push_back(*std::ranges::max_element(all));
        }
        std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2);
        return rounds[kRounds / 2];
    }

    Job& job_;
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
    for (const std::size_t octets : {65536U, 262144U, 1048576U})
        Overlap(*job, octets).print();
    return 0;
}
