// SPDX-License-Identifier: BSD-3-Clause
// Threads that borrow an endpoint whose own thread computes (ulc_borrow): each event is taken once,
// by one thread at a time, and no upcall is lost. The engine waits for the taking of each event, so
// that an upcall that is lost is not made good by the next.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "abi/slot_ring.h"
#include "base/prng.h"
#include "client/ulc_upcall.h"
#include "client/waits/upcall.h"
#include "tests/unit/client/fixture.h"

// Polling in an upcall may allocate: libulc does not poll while the thread is inside the library of
// malloc(), which the sanitizer cannot know.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "report_signal_unsafe=0"; }

namespace ulc::client {
namespace {

constexpr unsigned kMessages = 2'000;
constexpr unsigned kRevocations = 100'000;
constexpr auto kPatience = std::chrono::seconds(60);

int allow(void*, bool) { return ULC_OK; }
void step_aside(void*) { std::this_thread::yield(); }

Hooks hooks_of_this_thread() {
    Hooks hooks;
    hooks.interrupts = allow;
    hooks.yield = step_aside;
    return hooks;
}

class Borrow : public testing::Test {
protected:
    void SetUp() override {
        engine.form(0, 2);
        ASSERT_EQ(ulc_upcall(ep, on_upcall, this), ULC_OK);
    }
    void TearDown() override { ASSERT_EQ(ulc_upcall(ep, nullptr, nullptr), ULC_OK); }

    static void on_upcall(ulc_endpoint*, void* self) {
        static_cast<Borrow*>(self)->take(static_cast<Borrow*>(self)->in_handler);
    }

    /// Takes what has been polled. The plain counters make a second thread in here a data race.
    void take(unsigned& counter) {
        const void* view = nullptr;
        ulc_status status;
        while (ulc_take(ep, ULC_RANK_ANY, 0, 0, &view, &status) == ULC_OK) {
            EXPECT_EQ(status.tag, expected++);
            ulc_release(ep, view);
            ++counter;
            taken.fetch_add(1, std::memory_order_release);
        }
    }

    /// Writes a message but for its mark, which the client may read meanwhile.
    void write_message(std::uint64_t tag) {
        abi::CompletionRecord* const message = engine.completions.claim();
        ASSERT_NE(message, nullptr);
        message->kind = abi::CompletionKind::kMessage;
        message->flags =
            abi::kCompleteInline | abi::kCompleteFirst | abi::kCompleteLast | abi::kCompleteHasTag;
        message->source = 1;
        message->stream = 0;
        message->tag = tag;
        message->inline_length = 0;
        engine.completions.publish();
    }

    /// The engine: publishes a message, makes the upcall it owes, and waits until it was taken.
    void publish(pid_t client) {
        const auto begun = std::chrono::steady_clock::now();
        for (unsigned n = 0; n < kMessages; ++n) {
            write_message(n);
            const auto owed = abi::client_to_notify(engine.region.control());
            if (owed == abi::ClientState::kComputing)
                syscall(SYS_tgkill, getpid(), client, kUpcallSignal);
            while (taken.load(std::memory_order_acquire) <= n) {
                if (std::chrono::steady_clock::now() - begun > kPatience) {
                    ADD_FAILURE() << "message " << n << " was not taken";
                    taken.store(kMessages);
                    return;
                }
                usleep(1);  // a sleeper runs soon on a busy host
            }
        }
    }

    /// Another thread: borrows, polls sometimes, and takes.
    void borrow_often() {
        Prng random(2);
        while (taken.load(std::memory_order_acquire) < kMessages) {
            const int error = ulc_borrow(ep);
            if (error != ULC_OK) {
                EXPECT_EQ(error, ULC_ERR_AGAIN);
                usleep(1);
                continue;
            }
            if (random.below(2) == 0) {
                EXPECT_GE(ulc_poll(ep), 0);
            }
            // Messages that are polled and not taken interrupt the endpoint's thread.
            const bool leaves = random.below(2) == 0;
            if (!leaves) take(in_borrower);
            EXPECT_EQ(ulc_give_back(ep, leaves ? 1 : 0), ULC_OK);
            usleep(static_cast<useconds_t>(random.below(500)));
        }
    }

    /// Computes in this thread, and calls at random.
    void compute() {
        Prng random(1);
        while (taken.load(std::memory_order_acquire) < kMessages) {
            while (ulc_promise(ep, 0) == ULC_ERR_AGAIN) {
                EXPECT_GE(ulc_poll(ep), 0);
                take(in_thread);
            }
            const std::uint64_t until = taken.load(std::memory_order_acquire) + random.below(20);
            // Mostly outside the C library, where it is not interrupted.
            for (unsigned n = 1;
                 taken.load(std::memory_order_acquire) < std::min<std::uint64_t>(until, kMessages);
                 ++n)
                if (n % 200000 == 0) usleep(1);
            EXPECT_EQ(ulc_promise(ep, 1), ULC_OK);
            EXPECT_GE(ulc_poll(ep), 0);
            take(in_thread);
        }
    }

    ScriptedEngine engine{kSmall, {}, hooks_of_this_thread()};
    ulc_endpoint* ep = engine.endpoint.get();
    std::atomic<std::uint64_t> taken{0};
    std::uint64_t expected = 0;
    unsigned in_thread = 0, in_handler = 0, in_borrower = 0;
};

TEST_F(Borrow, an_endpoint_whose_thread_polls_is_not_lent) {
    EXPECT_EQ(ulc_borrow(ep), ULC_ERR_AGAIN);
    ASSERT_EQ(ulc_promise(ep, 0), ULC_OK);
    EXPECT_EQ(ulc_borrow(ep), ULC_OK);
    EXPECT_EQ(ulc_borrow(ep), ULC_ERR_AGAIN) << "it is lent already";
    EXPECT_EQ(ulc_give_back(ep, 0), ULC_OK);
    ASSERT_EQ(ulc_promise(ep, 1), ULC_OK);
    EXPECT_EQ(ulc_borrow(ep), ULC_ERR_AGAIN);
    EXPECT_EQ(ulc_borrow(nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_give_back(nullptr, 0), ULC_ERR_INVALID);
}

TEST_F(Borrow, what_comes_meanwhile_interrupts_the_thread_when_it_is_given_back) {
    ASSERT_EQ(ulc_promise(ep, 0), ULC_OK);
    ASSERT_EQ(ulc_borrow(ep), ULC_OK);
    engine.deliver_inline(1, 0, "x");
    EXPECT_EQ(abi::client_to_notify(engine.region.control()), abi::ClientState::kPolling);
    EXPECT_EQ(in_handler, 0U);
    EXPECT_EQ(ulc_give_back(ep, 0), ULC_OK);
    // The signal comes at a time at which this thread is not inside the C library.
    const auto begun = std::chrono::steady_clock::now();
    while (taken.load() == 0 && std::chrono::steady_clock::now() - begun < kPatience) {
    }
    EXPECT_EQ(in_handler, 1U);
    ASSERT_EQ(ulc_promise(ep, 1), ULC_OK);
}

TEST_F(Borrow, each_message_is_taken_once_and_no_upcall_is_lost) {
    const pid_t self = gettid();
    std::thread publisher([&] { publish(self); });
    std::thread borrower([&] { borrow_often(); });
    compute();
    publisher.join();
    borrower.join();
    ASSERT_EQ(ulc_promise(ep, 1), ULC_OK);
    EXPECT_EQ(in_thread + in_handler + in_borrower, kMessages);
    EXPECT_GT(in_borrower, 0U);
    std::printf("taken by the thread %u, its handler %u, a borrower %u\n", in_thread, in_handler,
                in_borrower);
}

/// Spends up to some 100 ns, so that the two sides meet at all points of the handshake.
void linger(Prng& random) {
    std::atomic<unsigned> passes{0};
    for (std::uint64_t left = random.below(200); left > 0; --left)
        passes.fetch_add(1, std::memory_order_relaxed);
}

// No thread borrows, and no other message comes before this one is taken, so nothing makes up for
// an upcall that is lost.
TEST_F(Borrow, no_upcall_is_lost_in_100000_random_revocations) {
    std::atomic<bool> stop{false};
    const pid_t self = gettid();
    std::thread publisher([&] {
        Prng random(3);
        for (std::uint64_t n = 0; !stop.load(std::memory_order_relaxed);) {
            if (taken.load(std::memory_order_acquire) != n) {
                std::this_thread::yield();
                continue;
            }
            linger(random);
            write_message(n++);
            if (abi::client_to_notify(engine.region.control()) == abi::ClientState::kComputing)
                syscall(SYS_tgkill, getpid(), self, kUpcallSignal);
        }
    });
    Prng random(4);
    for (unsigned revocations = 0; revocations < kRevocations && !HasFailure();) {
        const std::uint64_t before = taken.load(std::memory_order_acquire);
        linger(random);
        if (ulc_promise(ep, 0) == ULC_ERR_AGAIN) {
            EXPECT_GE(ulc_poll(ep), 0);
            take(in_thread);
            continue;
        }
        ++revocations;
        const auto begun = std::chrono::steady_clock::now();
        for (unsigned n = 1; taken.load(std::memory_order_acquire) == before; ++n) {
            if (n % 2'000 != 0) continue;
            usleep(1);  // the thread sanitizer runs signal handlers in calls that may block
            if (std::chrono::steady_clock::now() - begun < kPatience) continue;
            ADD_FAILURE() << "an upcall was lost after " << before << " messages";
            break;
        }
        EXPECT_EQ(ulc_promise(ep, 1), ULC_OK);
    }
    stop.store(true, std::memory_order_relaxed);
    publisher.join();
    EXPECT_GT(in_handler, kRevocations / 2);
    std::printf("taken by the thread %u, its handler %u\n", in_thread, in_handler);
}

}  // namespace
}  // namespace ulc::client
