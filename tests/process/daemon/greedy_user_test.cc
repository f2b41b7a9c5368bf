// SPDX-License-Identifier: BSD-3-Clause
// One user takes all that an engine gives: endpoints, memory, groups, jobs and joins. Another user
// attaches and forms a job meanwhile, memory stays within what is configured, and the wire carries
// few of the joins. Needs root, else skipped.
#include <gtest/gtest.h>
#include <ulc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/daemon/local_users.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kEndpoints = 64;
constexpr int kClientMemoryMb = 192;
constexpr int kJobsPerSecond = 8;  // one user may begin, and 64 at once
/// A job that forms is announced again and again; the engine gives up on it after some time.
constexpr double kFramesPerSecondMax = 100;

void pass_time(const std::vector<ulc_endpoint*>& endpoints, std::chrono::microseconds span) {
    for (const auto until = Clock::now() + span; Clock::now() < until;) {
        for (ulc_endpoint* ep : endpoints)
            (void)ulc_poll(ep);
    }
}

/// Starts jobs that never form, as fast as it can.
void join_for_ever(const std::string& socket) {
    ulc_endpoint* ep = nullptr;
    if (ulc_open(socket.c_str(), &ep) != ULC_OK) return;
    for (int number = 0;; ++number) {
        const std::string job = "greedy-" + std::to_string(number);
        (void)ulc_join_wait(ep, job.c_str(), 0, 2, 100'000);  // ns
        (void)ulc_poll(ep);
    }
}

/// Makes groups of two endpoints until the engine refuses them.
void take_all_groups(const std::string& socket) {
    std::vector<ulc_endpoint*> pair(2);
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
        if (ulc_open(socket.c_str(), &pair[rank]) != ULC_OK) return;
        if (ulc_join(pair[rank], "groups", rank, 2, nullptr) != ULC_OK) return;
    }
    pass_time(pair, 500ms);
    std::deque<ulc_request> requests;  // each stays in place while it is under way
    for (std::uint64_t key = 1;; ++key) {
        const std::uint16_t ranks[] = {0, 1};
        for (ulc_endpoint* ep : pair)
            (void)ulc_group_create_keyed(ep, ranks, 2, key, &requests.emplace_back());
        pass_time(pair, 1ms);
    }
}

struct Greedy : testing::Test {
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
        scratch.let_others_in();
        std::vector<std::string> arguments = shm_engine(scratch / "wire", socket);
        arguments.insert(arguments.end(), {"--allow-uid", std::to_string(kNobody), "--attach-burst",
                                           attach_burst, "--endpoints", std::to_string(kEndpoints),
                                           "--client-memory", std::to_string(kClientMemoryMb),
                                           "--jobs-per-second", std::to_string(kJobsPerSecond)});
        engine = start_engine(arguments, log);
        ASSERT_TRUE(eventually([&] {
            return text_of(log).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log);
        locked_at_first = locked_kib();
    }
    Process as_other_user(const std::function<void()>& body) const {
        return run_child([&] {
            if (!become(kNobody)) return 1;
            body();
            return 0;
        });
    }
    /// Locked memory of the engine.
    [[nodiscard]] long locked_kib() const {
        const std::string status = text_of("/proc/" + std::to_string(engine.pid()) + "/status");
        const std::size_t at = status.find("VmLck:");
        return at == std::string::npos ? 0 : std::stol(status.substr(at + 6));
    }
    [[nodiscard]] double counter(const std::string& name) const {
        return static_cast<double>(counter_of(socket, name));
    }
    /// Attaches twice and forms a job. Returns the time that it took.
    [[nodiscard]] std::chrono::duration<double> time_of_a_job(const std::string& name) const {
        const auto begun = Clock::now();
        std::vector<ulc_endpoint*> pair(2);
        for (std::uint16_t rank = 0; rank < 2; ++rank) {
            EXPECT_EQ(ulc_open(socket.c_str(), &pair[rank]), ULC_OK) << ulc_last_error_text();
            if (pair[rank] == nullptr) return 1h;
            EXPECT_EQ(ulc_join(pair[rank], name.c_str(), rank, 2, nullptr), ULC_OK);
        }
        const auto state = [&] {
            for (ulc_endpoint* ep : pair) {
                (void)ulc_poll(ep);
                if (const int now = ulc_job_state(ep); now != ULC_OK) return now;
            }
            return int{ULC_OK};
        };
        int last = ULC_ERR_AGAIN;
        while ((last = state()) == ULC_ERR_AGAIN && Clock::now() - begun < 5s) {
        }
        EXPECT_EQ(last, ULC_OK) << ulc_error_text(last);
        const auto took = Clock::now() - begun;
        for (ulc_endpoint* ep : pair)
            ulc_close(ep);
        return took;
    }
    std::string attach_burst = "100000";  // µs
    Scratch scratch;
    std::string socket = scratch / "engine.sock";
    std::string log = scratch / "engine.log";
    long locked_at_first = 0;
    Process engine;
};

TEST_F(Greedy, leaves_others_endpoints_memory_and_jobs) {
    // All endpoints that it gets, each in a job that never forms.
    const Process holder = as_other_user([&] {
        std::vector<ulc_endpoint*> held;
        for (int n = 0; n < 2 * kEndpoints; ++n) {
            ulc_endpoint* ep = nullptr;
            if (ulc_open(socket.c_str(), &ep) != ULC_OK) break;
            (void)ulc_join(ep, ("held-" + std::to_string(n)).c_str(), 0, 2, nullptr);
            held.push_back(ep);
        }
        for (;;)
            pass_time(held, 100ms);
    });
    ASSERT_TRUE(eventually([&] { return counter("refused_attaches") > 0; }))
        << "the holder was given all that it asked for";
    EXPECT_LT(time_of_a_job("next to a holder").count(), 1.0);
    const double mib = static_cast<double>(locked_kib() - locked_at_first) / 1024;
    std::printf("the holder: %.0f MiB of client memory locked, of %d\n", mib, kClientMemoryMb);
    EXPECT_LE(mib, kClientMemoryMb);
}

TEST_F(Greedy, starts_few_jobs_on_the_wire) {
    const Process one = as_other_user([&] { join_for_ever(socket); });
    const Process other = as_other_user([&] { join_for_ever(socket); });
    ASSERT_TRUE(eventually([&] { return counter("refused_jobs") > 0; }))
        << "the joins were too few to test anything";
    const double frames = counter("tx_frames");
    const auto begun = Clock::now();
    std::this_thread::sleep_for(3s);
    const std::chrono::duration<double> span = Clock::now() - begun;
    const double rate = (counter("tx_frames") - frames) / span.count();
    std::printf("joins: %.0f frames/s on the wire, %.0f refused\n", rate, counter("refused_jobs"));
    EXPECT_LE(rate, kFramesPerSecondMax);
    EXPECT_LT(time_of_a_job("next to joins").count(), 1.0);
}

/// Returns the number of times that the log has this text.
int count_of(const std::string& text, const std::string& log) {
    int count = 0;
    for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1))
        ++count;
    return count;
}

/// Attaches and closes. Returns the status.
int attach_once(const std::string& socket) {
    ulc_endpoint* ep = nullptr;
    if (ulc_open(socket.c_str(), &ep) != ULC_OK) return 1;
    ulc_close(ep);
    return 0;
}

/// A few attaches use up what its engine lets a user do at once.
struct Hasty : Greedy {
    Hasty() { attach_burst = "1000"; }
};

TEST_F(Hasty, waits_for_others_alone) {
    constexpr char kWaits[] = "see --attach-burst";
    const auto attach_often = [&] {
        for (int n = 0; n < 10; ++n)
            if (attach_once(socket) != 0) return;
    };
    EXPECT_EQ(as_other_user(attach_often).wait(), 0);
    EXPECT_EQ(count_of(kWaits, text_of(log)), 0) << "no other user was there";
    ulc_endpoint* other = nullptr;
    ASSERT_EQ(ulc_open(socket.c_str(), &other), ULC_OK);
    attach_often();
    EXPECT_EQ(count_of(kWaits, text_of(log)), 0) << "root waits for no one";
    EXPECT_EQ(as_other_user(attach_often).wait(), 0);
    EXPECT_GT(count_of(kWaits, text_of(log)), 0);
    ulc_close(other);
}

/// Attaches at once as often as no engine lets a user. Returns how many refusals say what to do.
int refusals_of_a_crowd(const std::string& socket) {
    constexpr int kCrowd = 128;
    const std::string who = "user " + std::to_string(kNobody) +
                            " attaches faster than the engine lets him while others are there; "
                            "try again in ";
    std::atomic<int> named{0};
    std::vector<std::thread> threads;
    for (int n = 0; n < kCrowd; ++n)
        threads.emplace_back([&] {
            ulc_endpoint* ep = nullptr;
            if (ulc_open(socket.c_str(), &ep) == ULC_OK) return ulc_close(ep);
            const std::string text = ulc_last_error_text();
            if (text.find(who) != std::string::npos && text.ends_with("or raise --attach-burst"))
                ++named;
        });
    for (std::thread& each : threads)
        each.join();
    return named;
}

TEST_F(Hasty, is_refused_with_the_option_that_helps) {
    ulc_endpoint* other = nullptr;
    ASSERT_EQ(ulc_open(socket.c_str(), &other), ULC_OK);
    EXPECT_EQ(as_other_user([&] {
                  if (refusals_of_a_crowd(socket) == 0) std::_Exit(2);
              }).wait(),
              0)
        << text_of(log);
    ulc_close(other);
}

TEST_F(Greedy, leaves_others_groups) {
    const Process one = as_other_user([&] { take_all_groups(socket); });
    ASSERT_TRUE(eventually([&] { return counter("refused_groups") > 0; }))
        << "no group was refused";
    std::vector<ulc_endpoint*> pair(2);
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
        ASSERT_EQ(ulc_open(socket.c_str(), &pair[rank]), ULC_OK) << ulc_last_error_text();
        ASSERT_EQ(ulc_join(pair[rank], "others", rank, 2, nullptr), ULC_OK);
    }
    pass_time(pair, 500ms);
    const std::uint16_t ranks[] = {0, 1};
    ulc_request requests[2];
    for (int n = 0; n < 2; ++n)
        ASSERT_EQ(ulc_group_create(pair[n], ranks, 2, &requests[n]), ULC_OK);
    pass_time(pair, 500ms);
    for (int n = 0; n < 2; ++n) {
        ulc_status status{};
        EXPECT_EQ(ulc_test(pair[n], &requests[n], &status), ULC_OK);
        EXPECT_EQ(status.error, ULC_OK) << ulc_error_text(status.error);
        ulc_close(pair[n]);
    }
}

}  // namespace
}  // namespace ulc::test
