// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of an idle engine, and its response time after idle time: < 2 % of a core; at
// most its nap + 50 us for a frame from the wire; microseconds for a message from a client, whose
// doorbell ends the nap. All figures are compared with the budget. On a slow or busy machine, they
// are compared with threads that only nap and answer, measured at the same time as the engine or in
// turn with it: times with a margin of three; of the use of a core, the number of wake-ups with a
// margin of two.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <ulc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr double kNapMicroseconds = 1000;   // --nap's default
constexpr double kWireMicroseconds = 50;    // beyond the nap
constexpr double kClientMicroseconds = 50;  // no nap: at most two hand-overs by the kernel
constexpr double kNoise = 3;
constexpr double kWakesMost = 2;        // of those of a thread that naps alone
constexpr double kCostOfWakeMost = 10;  // with cold caches, of that thread's
constexpr int kAttempts = 3;
constexpr double kCpuShare = 0.02;
constexpr auto kIdleFor = 60ms;  // several times --nap-after: every engine naps at full length
constexpr auto kLimit = 20s;

/// Use of cores.
struct Use {
    double nanoseconds = 0;
    double wakes = 0;  ///< how often it began to run

    Use operator-(const Use& before) const {
        return {nanoseconds - before.nanoseconds, wakes - before.wakes};
    }
};

Use use_of_task(const std::filesystem::path& task) {
    Use use;
    double waited = 0;
    std::ifstream(task / "schedstat") >> use.nanoseconds >> waited >> use.wakes;
    return use;
}

/// Returns the use of all threads of the process.
Use use_of(pid_t pid) {
    Use total;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
        const Use use = use_of_task(task.path());
        total.nanoseconds += use.nanoseconds;
        total.wakes += use.wakes;
    }
    return total;
}

/// The reference: a thread that naps as an idle engine does, and passes on what it finds.
class Napper {
public:
    explicit Napper(Napper* next) : next_(next), doorbell_(eventfd(0, EFD_NONBLOCK)) {
        thread_ = std::thread([this] { run(); });
    }
    ~Napper() {
        stop_ = true;
        thread_.join();
        close(doorbell_);
    }
    Napper(const Napper&) = delete;
    Napper& operator=(const Napper&) = delete;
    void put() noexcept { full_.store(true, std::memory_order_release); }
    void ring() const noexcept {
        const std::uint64_t one = 1;
        (void)!write(doorbell_, &one, sizeof one);
    }
    [[nodiscard]] Use use() const {
        while (thread_id_ == 0)
            std::this_thread::yield();
        return use_of_task("/proc/self/task/" + std::to_string(thread_id_));
    }
    /// Only for the last of a chain.
    [[nodiscard]] bool take_answer() noexcept {
        return answered_.exchange(false, std::memory_order_acquire);
    }

private:
    void run() {
        thread_id_ = gettid();
        prctl(PR_SET_TIMERSLACK, 1000);
        const int epoll_fd = epoll_create1(0);
        epoll_event event{};
        event.events = EPOLLIN | EPOLLET;
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, doorbell_, &event);
        const timespec nap{0, static_cast<long>(kNapMicroseconds * 1000)};
        while (!stop_) {
            epoll_pwait2(epoll_fd, &event, 1, &nap, nullptr);
            if (!full_.exchange(false, std::memory_order_acquire)) continue;
            if (next_ != nullptr) {
                next_->put();  // like a frame on a wire: wakes no thread
            } else {
                answered_.store(true, std::memory_order_release);
            }
        }
        close(epoll_fd);
    }
    Napper* next_;
    int doorbell_;
    std::atomic<bool> full_{false};
    std::atomic<bool> answered_{false};
    std::atomic<bool> stop_{false};
    std::atomic<pid_t> thread_id_{0};
    std::thread thread_;
};

/// Uses over three seconds.
struct Uses {
    std::vector<Use> processes;
    Use napper;  ///< a thread that naps as long as an idle engine, and does nothing else
    double nanoseconds = 0;
};

Uses uses_of(const std::vector<pid_t>& pids) {
    const Napper napper(nullptr);
    std::this_thread::sleep_for(1s);  // start-up and earlier work
    std::vector<Use> before;
    before.reserve(pids.size());
    for (const pid_t pid : pids)
        before.push_back(use_of(pid));
    const Use napper_before = napper.use();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(3s);
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    Uses uses;
    for (std::size_t i = 0; i < pids.size(); ++i)
        uses.processes.push_back(use_of(pids[i]) - before[i]);
    uses.napper = napper.use() - napper_before;
    uses.nanoseconds = took.count();
    return uses;
}

/// The cost of a wake-up depends on the machine and on its load. So an engine may use its budget,
/// or wake up little more often than a thread that only naps. In one of a few attempts: others may
/// disturb one.
void expect_idle(const char* what, const std::vector<pid_t>& pids, double budget = kCpuShare) {
    Uses uses;
    const auto is_idle = [&](const Use& use) {
        return use.nanoseconds < budget * uses.nanoseconds ||
               (use.wakes < kWakesMost * uses.napper.wakes &&
                use.nanoseconds < kCostOfWakeMost * uses.napper.nanoseconds);
    };
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        uses = uses_of(pids);
        if (std::ranges::all_of(uses.processes, is_idle)) break;
    }
    const auto percent = [&](const Use& use) { return use.nanoseconds / uses.nanoseconds * 100; };
    for (const Use& use : uses.processes) {
        std::printf(
            "%-44s %6.2f %% of a core, %.0f wakes (budget %.0f %%; naps alone %.2f %%, %.0f)\n",
            what, percent(use), use.wakes, budget * 100, percent(uses.napper), uses.napper.wakes);
        EXPECT_TRUE(is_idle(use)) << what;
        EXPECT_GT(use.nanoseconds, 0) << "nothing was measured";
    }
}

struct Times {
    std::vector<double> sorted;  ///< microseconds
    [[nodiscard]] double quantile(double q) const {
        return sorted[static_cast<std::size_t>(
            std::lround(q * static_cast<double>(sorted.size() - 1)))];
    }
    void print(const char* what) const {
        std::printf("%-44s min %7.1f  q1 %7.1f  median %7.1f  p90 %7.1f  max %7.1f us\n", what,
                    quantile(0), quantile(0.25), quantile(0.5), quantile(0.9), quantile(1));
    }
};

/// Sends one message through the chain; returns microseconds.
double through(Napper& first, Napper& last) {
    const auto begin = Clock::now();
    first.put();
    first.ring();
    while (!last.take_answer()) {
    }
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Compares the lower quartile: other processes delay some messages, a nap that is too long delays
/// most.
bool within(const Times& times, const Times& reference, double budget) {
    return times.quantile(0.25) <= kNoise * std::max(budget, reference.quantile(0.25));
}

/// Two endpoints in one job, both used by this thread.
class TwoEnds {
public:
    TwoEnds(const std::string& engine_0, const std::string& engine_1) {
        const std::string engines[] = {engine_0, engine_1};
        for (std::uint16_t rank = 0; rank < 2; ++rank) {
            EXPECT_EQ(ulc_open(engines[rank].c_str(), &ends_[rank]), ULC_OK)
                << ulc_last_error_text();
            EXPECT_EQ(ulc_join(ends_[rank], "idle", rank, 2, nullptr), ULC_OK);
        }
        formed_ = until(
            [&] { return ulc_job_state(ends_[0]) == ULC_OK && ulc_job_state(ends_[1]) == ULC_OK; });
        EXPECT_TRUE(formed_) << "the job did not form";
    }
    ~TwoEnds() {
        for (ulc_endpoint* end : ends_)
            ulc_close(end);
    }
    TwoEnds(const TwoEnds&) = delete;
    TwoEnds& operator=(const TwoEnds&) = delete;
    [[nodiscard]] bool formed() const noexcept { return formed_; }

    /// Returns the one-way time of a message in microseconds; below 0: it did not arrive.
    double send_one() {
        ulc_request receive;
        char got[8];
        EXPECT_EQ(ulc_receive(ends_[1], 0, 0, 0, got, sizeof got, &receive), ULC_OK);
        const auto begin = Clock::now();
        EXPECT_EQ(ulc_send(ends_[0], 1, 0, "12345678", 8, nullptr), ULC_OK);
        const bool came = until([&] { return ulc_test(ends_[1], &receive, nullptr) == ULC_OK; });
        const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
        return came ? took.count() : -1;
    }

private:
    template <typename Condition>
    bool until(Condition condition) {
        for (const auto end = Clock::now() + kLimit; Clock::now() < end;) {
            ulc_poll(ends_[1]);
            if (condition()) return true;
            ulc_poll(ends_[0]);
        }
        return false;
    }
    ulc_endpoint* ends_[2] = {};
    bool formed_ = false;
};

TEST(IdleEngine, uses_less_than_a_fiftieth_of_a_core) {
    EnginePair engines;
    const std::vector<pid_t> pids{engines.engine('a').pid(), engines.engine('b').pid()};
    expect_idle("idle engine, no client", pids);
    const TwoEnds ends(engines.socket('a'), engines.socket('b'));
    ASSERT_TRUE(ends.formed());
    expect_idle("idle engine, a formed job", pids);
}

TEST(IdleEngine, uses_little_more_while_its_peer_is_missing) {
    EnginePair engines;
    engines.engine('a').kill_now();  // b, the memif client, tries to connect again
    expect_idle("idle engine, its memif server is gone", {engines.engine('b').pid()},
                2 * kCpuShare);
}

/// Sends messages that each follow idle time, and the same through the reference, in turn.
void measure(TwoEnds& ends, Napper& first, Napper& last, Times& times, Times& reference) {
    for (int i = 0; i < 60; ++i) {
        std::this_thread::sleep_for(kIdleFor + std::chrono::microseconds(i * 137 % 1000));
        times.sorted.push_back(ends.send_one());
        ASSERT_GE(times.sorted.back(), 0) << "message " << i << " did not arrive";
        std::this_thread::sleep_for(10ms);
        reference.sorted.push_back(through(first, last));
    }
    std::sort(times.sorted.begin(), times.sorted.end());
    std::sort(reference.sorted.begin(), reference.sorted.end());
}

/// Measures until it is within the budget, three times at most.
bool one_of_three(TwoEnds& ends, Napper& first, Napper& last, double budget) {
    for (int attempt = 0; attempt < 3; ++attempt) {
        Times times;
        Times reference;
        measure(ends, first, last, times, reference);
        if (testing::Test::HasFatalFailure()) return false;
        times.print("first message after idle time");
        reference.print("  the same through threads that only nap");
        std::printf("  budget of the lower quartile %.0f us, margin %.0f\n", budget, kNoise);
        if (within(times, reference, budget)) return true;
    }
    return false;
}

TEST(IdleEngine, answers_a_client_without_finishing_its_nap) {
    EnginePair engines;
    TwoEnds ends(engines.socket('a'), engines.socket('a'));
    ASSERT_TRUE(ends.formed());
    Napper napper(nullptr);
    EXPECT_TRUE(one_of_three(ends, napper, napper, kClientMicroseconds));
}

TEST(IdleEngine, answers_the_wire_within_its_nap) {
    EnginePair engines;
    TwoEnds ends(engines.socket('a'), engines.socket('b'));
    ASSERT_TRUE(ends.formed());
    Napper last(nullptr);
    Napper first(&last);
    // A message comes at any time of the nap, so a quarter of them within its last quarter.
    const double budget = kNapMicroseconds / 4 + kWireMicroseconds + kClientMicroseconds;
    EXPECT_TRUE(one_of_three(ends, first, last, budget));
}

}  // namespace
}  // namespace ulc::test
