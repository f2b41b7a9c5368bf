// SPDX-License-Identifier: BSD-3-Clause
// Waits of an embedded engine end by its clock, whatever its rounds do, and none holds a lock that
// a fork needs (main/embedded/). The wire is scripted, and time is what the tests say.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "main/embedded/registry.h"

namespace {

std::atomic<std::int64_t> time_ns{1'000'000'000};
std::atomic<std::int64_t> ns_a_reading{0};  ///< by which each reading moves the time

/// Yields of the test's thread after which a wait has no end.
constexpr unsigned kYieldsMax = 10'000'000;
thread_local bool is_test = false;
thread_local unsigned yields = 0;

}  // namespace

// Stands in for the C library's: the clock of an engine without a time stamp counter, and that of
// the registry.
extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t id, timespec* out) {
    if (id != CLOCK_MONOTONIC) return static_cast<int>(syscall(SYS_clock_gettime, id, out));
    const std::int64_t now = time_ns += ns_a_reading;
    *out = {.tv_sec = now / 1'000'000'000, .tv_nsec = now % 1'000'000'000};
    return 0;
}

// Stands in for the C library's. Each wait of the engine yields, so a fault ends the test.
extern "C" __attribute__((visibility("default"))) int sched_yield() {
    if (is_test && ++yields > kYieldsMax) {
        std::fputs("a wait has no end\n", stderr);
        _exit(1);
    }
    return static_cast<int>(syscall(SYS_sched_yield));
}

namespace ulc::daemon {
namespace {

using abi::EmbeddedEngine;

/// A wire that brings a frame in each round, which no client wants, and takes none.
struct BusyWire {
    std::atomic<unsigned> rounds{0};
    std::atomic<bool> held{false};     ///< a round of the helper does not return
    std::atomic<bool> is_held{false};  ///< such a round is under way
    void (*in_round)() = nullptr;      ///< called by the test's thread
    std::vector<std::byte> octets = std::vector<std::byte>(2048);
    Segment segment;

    Port port() {
        segment.frame = octets.data();
        segment.capacity = 2048;
        segment.length = 60;  // zeros: no frame of ours
        Port port;
        port.context = this;
        port.info.mac = Mac{{2, 0, 0, 0, 0, 1}};
        port.info.tx_ring_frames = 64;
        port.pool.context = this;
        port.pool.allocate = [](void*) -> Segment* { return nullptr; };
        port.pool.retain = [](void*, Segment*) {};
        port.pool.release = [](void*, Segment*) {};
        port.pool.references = [](void*, const Segment*) { return 1U; };
        port.pool.available = [](void*) { return 0U; };
        port.rx = [](void* context, Segment** out, std::uint16_t) {
            return static_cast<BusyWire*>(context)->receive(out);
        };
        port.tx = [](void*, Segment* const*, std::uint16_t) -> std::uint16_t { return 0; };
        port.tx_pending = [](void*) { return 0U; };
        port.link_up = [](void*) { return true; };
        return port;
    }

    std::uint16_t receive(Segment** out) {
        ++rounds;
        for (; held && !is_test; std::this_thread::yield())
            is_held = true;
        if (is_test && in_round != nullptr) in_round();
        *out = &segment;
        return 1;
    }
};

void let_time_pass() { time_ns += kMillisecond; }

class Embedded : public ::testing::Test {
protected:
    void SetUp() override {
        is_test = true;
        time_ns = kSecond;
        ns_a_reading = 0;
        std::string why;
        const auto make = [this](std::unique_ptr<EmbeddedEngine>& out, std::string&) {
            out = std::make_unique<EmbeddedEngine>();
            out->sizes = {16, 16, 1U << 16, 1U << 16};
            const Port port = wire_.port();
            out->core = std::make_unique<engine::Engine>(engine::EngineConfig{},
                                                         std::span<const Port>(&port, 1));
            start(*out);
            return Err::kOk;
        };
        ASSERT_EQ(all_.open("wire", make, &engine_, why), Err::kOk) << why;
    }
    void attach_one() {
        void* region = nullptr;
        abi::RegionLayout layout{};
        ASSERT_EQ(attach(*engine_, 0, &region, &layout, &endpoint_), 0);
    }
    /// Waits, as long as it takes, for another thread.
    template <typename Condition>
    static void wait_until(Condition holds) {
        is_test = false;
        while (!holds())
            std::this_thread::yield();
        is_test = true;
        yields = 0;
    }
    /// Waits until the helper takes rounds.
    void let_helper_in() {
        const unsigned before = wire_.rounds;
        wait_until([&] { return wire_.rounds > before + 100; });
    }

    BusyWire wire_;
    EngineRegistry& all_ = EngineRegistry::instance();
    EmbeddedEngine* engine_ = nullptr;
    std::uint32_t endpoint_ = 0;
};

TEST_F(Embedded, closes_while_rounds_move) {
    attach_one();
    let_helper_in();
    EXPECT_EQ(detach(engine_, endpoint_), 0);
    all_.close(engine_);
}

TEST_F(Embedded, waits_for_its_data_as_long_as_its_clock_says) {
    attach_one();  // and stays: the engine is never drained
    let_helper_in();
    const Nanos begun = time_ns;
    wire_.in_round = let_time_pass;
    all_.close(engine_);
    EXPECT_GE(time_ns - begun, kDrainMax);
    EXPECT_LE(time_ns - begun, kDrainMax + kSecond);
}

TEST_F(Embedded, forks_while_it_waits_for_its_data) {
    constexpr unsigned kRoundsMax = 1'000'000;  // then the fork waits for the wire
    static std::atomic<bool> forked;
    static std::thread other;
    static unsigned rounds;
    forked = false;
    rounds = 0;
    attach_one();
    let_helper_in();
    // The wait lasts until the fork.
    wire_.in_round = [] {
        if (rounds++ == 0)
            other = std::thread([] {
                const pid_t child = fork();
                if (child == 0) _exit(0);
                forked = child > 0 && waitpid(child, nullptr, 0) == child;
            });
        if (forked || rounds > kRoundsMax) let_time_pass();
        std::this_thread::yield();
    };
    all_.close(engine_);
    EXPECT_LE(rounds, kRoundsMax) << "a fork waited for the wire";
    other.join();
    EXPECT_TRUE(forked);
}

TEST_F(Embedded, gives_up_on_a_round_that_does_not_return) {
    attach_one();
    wire_.held = true;
    wait_until([&] { return wire_.is_held.load(); });
    ns_a_reading = kMillisecond;
    void* region = nullptr;
    abi::RegionLayout layout{};
    std::uint32_t second = 0;
    const auto timeout = static_cast<int>(Err::kTimeout);
    EXPECT_EQ(attach(*engine_, 0, &region, &layout, &second), timeout);
    EXPECT_EQ(set_interrupt(engine_, endpoint_, nullptr, nullptr), timeout);
    EXPECT_EQ(lend_frames(engine_, endpoint_, 1), timeout);
    const abi::Place place{};
    EXPECT_EQ(forget_place(engine_, endpoint_, 1, &place), timeout);
    EXPECT_EQ(poll(engine_, endpoint_, nullptr), abi::kRoundElsewhere);
    EXPECT_EQ(detach(engine_, endpoint_), timeout);
    all_.close(engine_);  // which cannot destroy it
    std::string why;
    EmbeddedEngine* again = nullptr;
    const auto make = [](std::unique_ptr<EmbeddedEngine>&, std::string&) { return Err::kSystem; };
    ns_a_reading = kSecond;
    const Nanos begun = time_ns;
    EXPECT_EQ(all_.open("wire", make, &again, why), Err::kTimeout);
    EXPECT_LT(time_ns - begun, EngineRegistry::kOpenMax + 5 * kSecond);
    EXPECT_NE(why.find("does not end"), std::string::npos) << why;
    EXPECT_EQ(all_.open("other", make, &again, why), Err::kSystem);
    wire_.held = false;
    wait_until([&] { return engine_->helper_ended.load(); });
    engine_->opens = 1;
    ns_a_reading = 0;
    wire_.in_round = let_time_pass;
    all_.close(engine_);  // now it can
}

}  // namespace
}  // namespace ulc::daemon
