// SPDX-License-Identifier: BSD-3-Clause
// Upcalls (ulc_upcall): a thread that computes and never enters libulc is interrupted, one that
// polls never is, and a client that does not read its socket holds up no other. Two daemons over
// memif, or engines inside the processes. A loop is interrupted in a sleep of the C library, and
// not inside malloc. The death of the engine interrupts it too. The delays that it prints are no
// claim, since they are the machine's: sim `upcall_time` tests the engine's part in virtual time,
// and here the upcalls are counted.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <ulc_upcall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "abi/endpoint_region.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

constexpr std::int64_t kLimit = 60'000'000'000;
constexpr std::int64_t kSleepsMax = 10'000'000'000;  ///< kRounds sleeps to their end are 100 s
constexpr unsigned kRounds = 200;
/// Upcalls of one exchange: for its message, and one that was on its way when the thread polled. A
/// message that comes while the handler runs takes none.
constexpr unsigned kUpcallsMax = 2;

#define CLIENT_CHECK(condition)                                                               \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            std::fprintf(stderr, "client: %s is false (line %d): %s\n", #condition, __LINE__, \
                         ulc_last_error_text());                                              \
            return 1;                                                                         \
        }                                                                                     \
    } while (false)

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

ulc_endpoint* join(const std::string& engine, std::uint16_t rank, std::uint16_t size,
                   const char* job = "upcalls") {
    ulc_endpoint* ep = nullptr;
    if (ulc_open(engine.c_str(), &ep) != ULC_OK ||
        ulc_join_wait(ep, job, rank, size, kLimit) != ULC_OK) {
        std::fprintf(stderr, "client: %s\n", ulc_last_error_text());
        _exit(1);
    }
    return ep;
}

int leave(ulc_endpoint* ep) {
    CLIENT_CHECK(ulc_leave_wait(ep, kLimit) == ULC_OK);
    ulc_close(ep);
    return 0;
}

/// Record of what the handler of the computing rank has seen.
struct Seen {
    std::atomic<unsigned> messages{0};
    std::vector<std::int64_t> delays;
    int error = ULC_OK;
    bool allocates = false;
    std::unique_ptr<char[]> kept;
    int pipe_to_end = -1;  ///< gets a byte when all messages came
};

void take_and_answer(ulc_endpoint* ep, void* context) {
    Seen& seen = *static_cast<Seen*>(context);
    const void* view = nullptr;
    ulc_status status;
    while (ulc_take(ep, 0, 0, 0, &view, &status) == ULC_OK) {
        std::int64_t sent = 0;
        std::memcpy(&sent, view, sizeof sent);
        ulc_release(ep, view);
        if (seen.allocates) seen.kept = std::make_unique<char[]>(1 + seen.delays.size() % 5000);
        seen.delays.push_back(now() - sent);
        const int error = ulc_send(ep, 0, 0, nullptr, 0, nullptr);
        if (error != ULC_OK) seen.error = error;
        if (seen.messages.fetch_add(1, std::memory_order_relaxed) + 1 == kRounds &&
            seen.pipe_to_end >= 0 && write(seen.pipe_to_end, "", 1) != 1)
            seen.error = ULC_ERR_SYSTEM;
    }
}

enum class Work : std::uint8_t { kComputes, kAllocates, kSleeps, kReads };

/// Signals of upcalls at this process: the library calls its handler after its own.
std::atomic<unsigned> signals{0};

void count_signals() {
    struct sigaction counting {};
    counting.sa_handler = [](int) { signals.fetch_add(1); };
    sigaction(SIGURG, &counting, nullptr);
}

/// Works a little, without a call of libulc. kReads: reads a byte, which comes at the end.
std::uint64_t work_a_little(Work kind, std::uint64_t work, int pipe) {
    switch (kind) {
        case Work::kReads: {
            char byte = 0;
            return work + (read(pipe, &byte, 1) == 1 ? 2U : 1U);  // 1: the read was ended
        }
        case Work::kComputes:
            for (int n = 0; n < 1000; ++n)
                work += work * 31 + static_cast<std::uint64_t>(n);
            return work;
        case Work::kAllocates: {
            const auto memory = std::make_unique<char[]>(1 + ++work % 3000);
            static_cast<volatile char*>(memory.get())[0] = 1;
            return work;
        }
        case Work::kSleeps:
            if (++work % 2 == 0) {
                usleep(500'000);
            } else {
                poll(nullptr, 0, 500);
            }
            return work;
    }
    return work;
}

/// Rank 1: works, and never enters libulc, until it was interrupted for each message.
int compute(ulc_endpoint* ep, const char* how, Work kind = Work::kComputes) {
    Seen seen;
    seen.allocates = kind == Work::kAllocates;
    seen.delays.reserve(kRounds);
    std::array<int, 2> pipe{-1, -1};
    CLIENT_CHECK(pipe2(pipe.data(), O_CLOEXEC) == 0);
    if (kind == Work::kReads) seen.pipe_to_end = pipe[1];
    count_signals();
    CLIENT_CHECK(ulc_promise(ep, 0) == ULC_ERR_INVALID);  // no handler yet
    CLIENT_CHECK(ulc_upcall(ep, take_and_answer, &seen) == ULC_OK);
    take_and_answer(ep, &seen);  // what came while the job formed
    int error = ULC_ERR_AGAIN;
    while ((error = ulc_promise(ep, 0)) == ULC_ERR_AGAIN) {
        CLIENT_CHECK(ulc_poll(ep) >= 0);
        take_and_answer(ep, &seen);
    }
    CLIENT_CHECK(error == ULC_OK);
    const std::int64_t give_up = now() + (kind == Work::kSleeps ? kSleepsMax : kLimit);
    std::uint64_t work = 0;
    while (seen.messages.load(std::memory_order_relaxed) < kRounds && now() < give_up)
        work = work_a_little(kind, work, pipe[0]);
    CLIENT_CHECK(ulc_promise(ep, 1) == ULC_OK);
    CLIENT_CHECK(seen.messages.load() == kRounds && seen.error == ULC_OK && work != 1);
    // Upcalls are made for messages, and by no clock. A thread in malloc is interrupted again until
    // it is elsewhere.
    CLIENT_CHECK(signals.load() > 0);
    CLIENT_CHECK(kind == Work::kAllocates || signals.load() <= kUpcallsMax * kRounds);
    std::nth_element(seen.delays.begin(), seen.delays.begin() + kRounds / 2, seen.delays.end());
    std::printf("%s: median of %u from the send to the handler: %.1f us\n", how, kRounds,
                static_cast<double>(seen.delays[kRounds / 2]) / 1000);
    return leave(ep);
}

/// Rank 0: one message after the other, each when the last was answered, with pauses.
int ask(ulc_endpoint* ep) {
    for (unsigned n = 0; n < kRounds; ++n) {
        ulc_request answer;
        CLIENT_CHECK(ulc_receive(ep, 1, 0, 0, nullptr, 0, &answer) == ULC_OK);
        usleep(n % 3 * 200);
        const std::int64_t sent = now();
        CLIENT_CHECK(ulc_send(ep, 1, 0, &sent, sizeof sent, nullptr) == ULC_OK);
        CLIENT_CHECK(ulc_wait_for(ep, &answer, nullptr, kLimit) == ULC_OK);
    }
    return leave(ep);
}

TEST(Upcalls, a_loop_that_never_enters_libulc_gets_its_handler_run) {
    EnginePair engines;
    std::uint64_t upcalls = 0;
    for (const char asker : {'b', 'a'}) {  // of the same node, which leaves a core to the loop
        const char* how = asker == 'b' ? "one daemon" : "two daemons";
        Process computes = run_child([&] { return compute(join(engines.socket('b'), 1, 2), how); });
        Process asks = run_child([&] { return ask(join(engines.socket(asker), 0, 2)); });
        EXPECT_EQ(asks.wait(), 0);
        EXPECT_EQ(computes.wait(), 0);
        const std::uint64_t all = counter_of(engines.socket('b'), "client_upcalls");
        EXPECT_GT(all, upcalls) << how;
        EXPECT_LE(all - upcalls, kUpcallsMax * kRounds) << how;
        upcalls = all;
    }
}

TEST(Upcalls, a_loop_that_allocates_is_not_interrupted_inside_malloc) {
    EnginePair engines;
    Process computes = run_child(
        [&] { return compute(join(engines.socket('b'), 1, 2), "allocating", Work::kAllocates); });
    Process asks = run_child([&] { return ask(join(engines.socket('a'), 0, 2)); });
    EXPECT_EQ(asks.wait(), 0);
    EXPECT_EQ(computes.wait(), 0);
}

TEST(Upcalls, a_loop_that_sleeps_is_interrupted_in_its_sleep) {
    EnginePair engines;
    Process sleeps = run_child(
        [&] { return compute(join(engines.socket('b'), 1, 2), "sleeping", Work::kSleeps); });
    Process asks = run_child([&] { return ask(join(engines.socket('a'), 0, 2)); });
    EXPECT_EQ(asks.wait(), 0);
    EXPECT_EQ(sleeps.wait(), 0);
}

TEST(Upcalls, a_read_that_blocks_is_interrupted_and_goes_on) {
    EnginePair engines;
    Process reads = run_child(
        [&] { return compute(join(engines.socket('b'), 1, 2), "reading", Work::kReads); });
    Process asks = run_child([&] { return ask(join(engines.socket('a'), 0, 2)); });
    const bool asked = asks.wait() == 0;
    EXPECT_TRUE(asked);
    if (!asked) reads.kill_now();
    EXPECT_EQ(reads.wait(), 0);
}

TEST(Upcalls, an_embedded_engine_polls_and_interrupts_for_a_loop_too) {
    const Scratch scratch;
    const auto device = [&](int station) {
        return "embedded:shm,path=" + (scratch / "wire") +
               ",stations=2,station=" + std::to_string(station);
    };
    Process computes = run_child([&] { return compute(join(device(1), 1, 2), "embedded"); });
    Process asks = run_child([&] { return ask(join(device(0), 0, 2)); });
    EXPECT_EQ(asks.wait(), 0);
    EXPECT_EQ(computes.wait(), 0);
}

/// Rank 1 receives `count` messages while it keeps its promise.
int receive_all(ulc_endpoint* ep, unsigned count) {
    count_signals();
    bool called = false;
    CLIENT_CHECK(ulc_upcall(
                     ep, [](ulc_endpoint*, void* context) { *static_cast<bool*>(context) = true; },
                     &called) == ULC_OK);
    CLIENT_CHECK(ulc_promise(ep, 1) == ULC_OK);
    for (unsigned taken = 0; taken < count;) {
        const void* view = nullptr;
        if (ulc_take(ep, 0, 0, 0, &view, nullptr) == ULC_OK) {
            ulc_release(ep, view);
            ++taken;
        } else {
            CLIENT_CHECK(ulc_wait(ep, kLimit) == ULC_OK);
        }
    }
    CLIENT_CHECK(signals.load() == 0 && !called);
    raise(SIGURG);
    CLIENT_CHECK(signals.load() == 1 && !called);
    return leave(ep);
}

int send_all(ulc_endpoint* ep, unsigned count) {
    for (unsigned n = 0; n < count; ++n) {
        int error = ULC_OK;
        while ((error = ulc_send(ep, 1, 0, &n, sizeof n, nullptr)) == ULC_ERR_AGAIN)
            CLIENT_CHECK(ulc_poll(ep) >= 0);
        CLIENT_CHECK(error == ULC_OK);
    }
    return leave(ep);
}

TEST(Upcalls, a_client_that_polls_gets_no_signal) {
    constexpr unsigned kMessages = 100'000;  // a million in seccomp_pingpong
    EnginePair engines;
    Process receives =
        run_child([&] { return receive_all(join(engines.socket('b'), 1, 2), kMessages); });
    Process sends = run_child([&] { return send_all(join(engines.socket('a'), 0, 2), kMessages); });
    EXPECT_EQ(sends.wait(), 0);
    EXPECT_EQ(receives.wait(), 0);
}

/// Finds the control page of this process' only endpoint, as a client could that means harm.
abi::EndpointControl* control_page() {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    while (std::getline(maps, line)) {
        if (line.find("memfd:ulc") == std::string::npos) continue;
        void* at = reinterpret_cast<void*>(std::stoull(line, nullptr, 16));
        auto* control = static_cast<abi::EndpointControl*>(at);
        if (control->magic == abi::kRegionMagic) return control;
    }
    return nullptr;
}

/// Rank 1 claims to compute all the time, and never reads its socket.
int demand_upcalls(ulc_endpoint* ep, unsigned count) {
    abi::EndpointControl* control = control_page();
    CLIENT_CHECK(control != nullptr);
    std::atomic<bool> stop{false};
    std::thread demands([&] {
        while (!stop.load(std::memory_order_relaxed))
            control->client_state.store(static_cast<std::uint32_t>(abi::ClientState::kComputing),
                                        std::memory_order_relaxed);
    });
    int result = 0;
    for (unsigned taken = 0; taken < count && result == 0;) {
        const void* view = nullptr;
        if (ulc_take(ep, 0, 0, 0, &view, nullptr) == ULC_OK) {
            ulc_release(ep, view);
            ++taken;
        } else if (ulc_poll(ep) < 0) {
            result = 1;
        }
    }
    stop.store(true, std::memory_order_relaxed);
    demands.join();
    CLIENT_CHECK(result == 0);
    return leave(ep);
}

TEST(Upcalls, a_client_that_never_reads_its_socket_holds_up_no_other) {
    constexpr unsigned kMessages = 20'000;
    EnginePair engines;
    std::vector<Process> clients;
    clients.push_back(
        run_child([&] { return demand_upcalls(join(engines.socket('b'), 1, 2), kMessages); }));
    clients.push_back(
        run_child([&] { return send_all(join(engines.socket('a'), 0, 2), kMessages); }));
    clients.push_back(run_child([&] {
        return compute(join(engines.socket('b'), 1, 2, "others"), "next to a bad client");
    }));
    clients.push_back(run_child([&] { return ask(join(engines.socket('a'), 0, 2, "others")); }));
    for (Process& client : clients)
        EXPECT_EQ(client.wait(), 0);
}

TEST(Upcalls, the_death_of_the_engine_interrupts_a_loop) {
    EnginePair engines;
    Process asks = run_child([&] {
        ulc_endpoint* ep = join(engines.socket('a'), 0, 2);
        while (ulc_wait(ep, kLimit) == ULC_OK) {
        }
        return 0;
    });
    Process computes = run_child([&] {
        ulc_endpoint* ep = join(engines.socket('b'), 1, 2);
        std::atomic<int> state{ULC_OK};
        CLIENT_CHECK(ulc_upcall(
                         ep,
                         [](ulc_endpoint* own, void* context) {
                             static_cast<std::atomic<int>*>(context)->store(ulc_job_state(own));
                         },
                         &state) == ULC_OK);
        while (ulc_promise(ep, 0) == ULC_ERR_AGAIN)
            CLIENT_CHECK(ulc_poll(ep) >= 0);
        std::ofstream(engines.scratch / "computes").put('1');
        const std::int64_t give_up = now() + kLimit;
        while (state.load(std::memory_order_relaxed) == ULC_OK && now() < give_up) {
        }
        CLIENT_CHECK(state.load() == ULC_ERR_CLOSED || state.load() == ULC_ERR_NO_ENGINE);
        ulc_close(ep);
        return 0;
    });
    ASSERT_TRUE(eventually([&] { return !text_of(engines.scratch / "computes").empty(); }));
    engines.engine('b').kill_now();
    EXPECT_EQ(computes.wait(), 0);
    asks.kill_now();
}

}  // namespace
}  // namespace ulc::test
