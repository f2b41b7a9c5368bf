// SPDX-License-Identifier: BSD-3-Clause
// Proves that messages cost no system call: two engines joined by memif, or shared memory, carry a
// million messages between two endpoints, with frames lost and retransmitted on the way, while both
// threads are under a filter that kills the process on *any* system call. The filter must catch a
// planted getppid(), or the proof proves nothing.
//
//   thread 1   the application: both endpoints, through ulc.h       (filtered after a warm-up)
//   thread 2   both engines' poll rounds                            (filtered after a warm-up)
//   main       waits in the kernel, unfiltered, and ends the process, since filtered threads cannot
//              even exit
//
// Each case runs in a child process, which ends by exit code or by SIGSYS.
#include <gtest/gtest.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>

#include "client/attach/waiting.h"
#include "client/endpoint.h"
#include "dpdk/eal.h"
#include "dpdk/ethdev_port.h"
#include "engine/engine.h"
#include "shm/shm_port.h"

namespace ulc {
namespace {

constexpr std::uint64_t kMessages = 500'000;  ///< each way, so a million in all
constexpr std::uint64_t kMessagesPlanted =
    20'000;  ///< each way, the planted call between the halves
constexpr std::uint64_t kWarmUp = 20'000;
constexpr std::uint64_t kWindow = 16;  ///< pending each way
constexpr std::uint64_t kFramesPerLoss = 20'000;
constexpr int kSecondsMax = 150;
constexpr Nanos kQuestionsApart = 4 * kMillisecond;  ///< while an engine does not beat

[[noreturn]] void die(const char* what) {
    std::fprintf(stderr, "child: %s\n", what);
    _exit(1);
}

Nanos now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<Nanos>(time.tv_sec) * kSecond + time.tv_nsec;
}

/// Makes any later system call of this thread kill the process.
void forbid_system_calls() {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (filter == nullptr || seccomp_load(filter) != 0) die("the filter could not be loaded");
}

/// One node: a port whose receive side sometimes loses a frame, and an engine on it.
struct TestNode {
    std::unique_ptr<dpdk::EthdevPort> device;
    std::unique_ptr<shm::ShmPort> shared;  ///< one of the two
    Port inner;
    std::unique_ptr<engine::Engine> engine;
    std::uint64_t frames = 0;
    std::uint64_t lost = 0;

    void open(const std::string& name, std::uint64_t seed) {
        std::string why;
        if (shm::is_shm(name)) {
            shm::PortOptions options;
            if (shm::parse_device(name, options.device, why) != Err::kOk ||
                shm::ShmPort::open(options, shared, why) != Err::kOk)
                die(why.c_str());
            inner = shared->port();
        } else {
            dpdk::PortOptions options;
            options.device = name;
            if (dpdk::EthdevPort::open(options, device, why) != Err::kOk) die(why.c_str());
            inner = device->port();
        }
        Port lossy = inner;
        lossy.context = this;
        lossy.rx = [](void* context, Segment** out, std::uint16_t n) {
            return static_cast<TestNode*>(context)->receive(out, n);
        };
        lossy.tx = [](void* context, Segment* const* out, std::uint16_t n) {
            const Port& port = static_cast<TestNode*>(context)->inner;
            return port.tx(port.context, out, n);
        };
        if (inner.tx_pending != nullptr) {
            lossy.tx_pending = [](void* context) {
                const Port& port = static_cast<TestNode*>(context)->inner;
                return port.tx_pending(port.context);
            };
        }
        lossy.link_up = [](void* context) {
            const Port& port = static_cast<TestNode*>(context)->inner;
            return port.link_up(port.context);
        };
        engine::EngineConfig config;
        config.seed = seed;
        engine = std::make_unique<engine::Engine>(config, std::span<const Port>(&lossy, 1));
    }

    std::uint16_t receive(Segment** out, std::uint16_t n) {
        std::uint16_t got = inner.rx(inner.context, out, n);
        for (std::uint16_t i = 0; i < got;) {
            if (++frames % kFramesPerLoss != 0) {
                ++i;
                continue;
            }
            ++lost;
            inner.pool.drop(out[i]);
            out[i] = out[--got];
        }
        return got;
    }
};

/// `asked`: counts the questions whether the engine lives, each of which would be a system call.
std::unique_ptr<ulc_endpoint> endpoint_on(engine::Engine& engine,
                                          std::atomic<std::uint64_t>& asked) {
    const abi::RegionLayout layout = abi::compute_layout({}).value();
    void* memory = mmap(nullptr, layout.region_octets, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) die("no memory");
    const auto id = engine.attach(memory, layout, 0);
    if (!id) die("no endpoint");
    // An upcall is a system call too. The clients here promise to poll, so that none is made.
    engine.set_interrupt(id.value(), {[](void*) { syscall(SYS_getppid); }, nullptr});
    client::Hooks hooks;
    hooks.context = &asked;
    hooks.now = [](void*) { return now(); };
    hooks.engine_alive = [](void* context) {
        ++*static_cast<std::atomic<std::uint64_t>*>(context);
        return true;
    };
    hooks.yield = client::yield_core;
    return client::make_endpoint(abi::Region(memory, layout), hooks);
}

struct Run {
    TestNode a;
    TestNode b;
    std::unique_ptr<ulc_endpoint> endpoints[2];
    std::atomic<bool> filter_engines{false};
    std::atomic<bool> engines_filtered{false};
    std::atomic<bool> done{false};
    std::atomic<const char*> failed{nullptr};
    std::atomic<std::uint64_t> asked{0};
    /// Questions that clients may ask while the thread of the engines has no processor.
    std::atomic<std::uint64_t> excused{0};
    bool plant = false;

    void engines() {
        bool filtered = false;
        for (Nanos beat_at = now();;) {
            const Nanos time = now();
            if (time >= beat_at) {
                const Nanos late = time - beat_at;
                if (late > 2 * kMillisecond) excused += 2 * (1 + late / kQuestionsApart);
                beat_at = time + kMillisecond;
                a.engine->beat();
                b.engine->beat();
            }
            a.engine->poll(time);
            b.engine->poll(time);
            if (!filtered && filter_engines.load(std::memory_order_acquire)) {
                forbid_system_calls();
                filtered = true;
                engines_filtered.store(true, std::memory_order_release);
            }
        }
    }

    /// Exchanges `count` messages each way, kWindow pending, every one checked.
    void exchange(std::uint64_t from, std::uint64_t count) {
        struct Way {
            ulc_request requests[kWindow];
            unsigned char buffers[kWindow][64];
            std::uint64_t posted, received, sent;
        };
        static Way ways[2];
        for (Way& way : ways)
            way.posted = way.received = way.sent = from;
        const std::uint64_t end = from + count;
        while (ways[0].received < end || ways[1].received < end) {
            for (std::uint16_t i = 0; i < 2; ++i) {
                ulc_endpoint* ep = endpoints[i].get();
                const auto other = static_cast<std::uint16_t>(1 - i);
                Way& way = ways[i];
                if (ulc_poll(ep) < 0) return fail("an endpoint ended");
                for (; way.posted < end && way.posted - way.received < kWindow; ++way.posted) {
                    const std::uint64_t at = way.posted % kWindow;
                    if (ulc_receive(ep, other, 0, UINT64_MAX, way.buffers[at], 64,
                                    &way.requests[at]) != ULC_OK)
                        return fail("receive");
                }
                for (; way.received < way.posted; ++way.received) {
                    const std::uint64_t at = way.received % kWindow;
                    ulc_status status;
                    if (ulc_test(ep, &way.requests[at], &status) != ULC_OK) break;
                    std::uint64_t number = 0;
                    std::memcpy(&number, way.buffers[at], sizeof number);
                    // Every 8th is longer than a record holds, and goes through the arena.
                    const std::uint64_t length = number % 8 == 0 ? 64 : 8;
                    if (status.error != ULC_OK || number != way.received || status.length != length)
                        return fail("a message is wrong");
                }
                for (; way.sent < end && way.sent - ways[other].received < kWindow; ++way.sent) {
                    unsigned char payload[64] = {};
                    std::memcpy(payload, &way.sent, sizeof way.sent);
                    if (ulc_send(ep, other, 0, payload, way.sent % 8 == 0 ? 64 : 8, nullptr) !=
                        ULC_OK)
                        break;
                }
            }
        }
    }

    void fail(const char* what) {
        failed.store(what);
        done.store(true);
    }

    void application() {
        exchange(0, kWarmUp);
        filter_engines.store(true, std::memory_order_release);
        while (!engines_filtered.load(std::memory_order_acquire))
            std::this_thread::yield();
        forbid_system_calls();
        const std::uint64_t half = (plant ? kMessagesPlanted : kMessages) / 2;
        exchange(kWarmUp, half);
        if (plant) syscall(SYS_getppid);
        exchange(kWarmUp + half, half);
        done.store(true, std::memory_order_release);
        for (;;)  // to end would be a system call
            __builtin_ia32_pause();
    }
};

enum class Wire : std::uint8_t { kMemif, kShm };

void start_dpdk() {
    std::string why;
    dpdk::EalReport report;
    dpdk::EalOptions eal;
    eal.program = "seccomp";
    eal.hugepages = dpdk::Hugepages::kNever;
    if (dpdk::start_eal(eal, report, why) != Err::kOk) die(why.c_str());
}

[[noreturn]] void child(const std::string& folder, Wire wire, bool plant) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(kSecondsMax);
    static Run run;
    run.plant = plant;
    const std::string path = folder + "/wire";
    if (wire == Wire::kMemif) {
        start_dpdk();
        run.a.open("net_memif0,role=server,id=0,socket=" + path, 1);
        run.b.open("net_memif1,role=client,id=0,socket=" + path, 2);
    } else {
        run.a.open("shm,station=0,path=" + path, 1);
        run.b.open("shm,station=1,path=" + path, 2);
    }
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
        run.endpoints[rank] = endpoint_on(rank == 0 ? *run.a.engine : *run.b.engine, run.asked);
        if (ulc_join(run.endpoints[rank].get(), "seccomp", rank, 2, nullptr) != ULC_OK) die("join");
    }
    std::thread engines([wire] {
        if (wire == Wire::kMemif) static_cast<void>(dpdk::adopt_thread());
        run.engines();
    });
    for (auto& endpoint : run.endpoints) {
        while (ulc_job_state(endpoint.get()) == ULC_ERR_AGAIN)
            ulc_poll(endpoint.get());
        if (ulc_job_state(endpoint.get()) != ULC_OK) die("the job did not form");
    }
    const Nanos start = now();
    std::thread application([] { run.application(); });
    while (!run.done.load(std::memory_order_acquire))
        usleep(10'000);
    if (run.failed.load() != nullptr) die(run.failed.load());
    const std::uint64_t lost = run.a.lost + run.b.lost;
    const Counters& ca = run.a.engine->counters();
    const Counters& cb = run.b.engine->counters();
    const std::uint64_t repaired =
        ca.get(Counter::repair_unicast) + cb.get(Counter::repair_unicast);
    std::printf("%llu messages each way in %.2f s, %llu frames lost, %llu packets repaired\n",
                static_cast<unsigned long long>(kMessages),
                static_cast<double>(now() - start) / kSecond, static_cast<unsigned long long>(lost),
                static_cast<unsigned long long>(repaired));
    std::fflush(stdout);
    if (lost == 0 || repaired == 0) die("no loss was forced and repaired");
    if (run.asked > 2 + run.excused) {
        std::fprintf(stderr, "%llu questions, %llu while the engines had no processor\n",
                     static_cast<unsigned long long>(run.asked.load()),
                     static_cast<unsigned long long>(run.excused.load()));
        die("a client asked whether an engine lives that beats");
    }
    _exit(0);
}

int status_of_child(Wire wire, bool plant) {
    char folder[] = "/tmp/ulc-seccomp-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    const pid_t pid = fork();
    if (pid == 0) child(folder, wire, plant);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    unlink((std::string(folder) + "/wire").c_str());
    rmdir(folder);
    return status;
}

void expect_no_system_call(Wire wire) {
    const int status = status_of_child(wire, false);
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status)
                                   << (WTERMSIG(status) == SIGSYS ? ": a system call" : "");
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

void expect_the_planted_call_caught(Wire wire) {
    const int status = status_of_child(wire, true);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST(Seccomp, a_million_messages_and_repairs_make_no_system_call) {
    expect_no_system_call(Wire::kMemif);
}
TEST(Seccomp, nor_do_they_on_a_wire_of_shared_memory) { expect_no_system_call(Wire::kShm); }
TEST(Seccomp, a_planted_getppid_is_caught) { expect_the_planted_call_caught(Wire::kMemif); }
TEST(Seccomp, a_planted_getppid_is_caught_on_shared_memory_too) {
    expect_the_planted_call_caught(Wire::kShm);
}

}  // namespace
}  // namespace ulc
