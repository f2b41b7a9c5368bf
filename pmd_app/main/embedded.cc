// SPDX-License-Identifier: BSD-3-Clause
// libulc-engine.so: the engine inside the application (U-Net MPI §4: reliability without a context
// switch).
//
// Each poll runs the engine: the application's own calls, under a lock that is only tried. One
// helper thread naps 1 ms (up to 4 while the application polls) and runs a round when the
// application has not polled for 1 ms. So a rank that computes still answers probes, retransmission
// requests and pings, and is neither dead nor lossy (decision 13). While a collective is offloaded,
// or a client computes that asked for upcalls, the helper is woken at once and runs rounds every 20
// us, if there is a processor left for it; for a collective it stays in the engine.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "abi/engine_entry.h"
#include "abi/put_text.h"
#include "abi/region.h"
#include "base/check.h"
#include "engine/engine.h"
#include "main/clock.h"
#include "main/engine_loop.h"
#include "main/node.h"
#include "main/options.h"

namespace ulc::abi {

struct EmbeddedEngine {
    std::string devices;
    unsigned opens = 1;  ///< under the mutex of the registry
    std::unique_ptr<daemon::Node> node;
    std::unique_ptr<engine::Engine> core;  ///< on the ports of `node`, which outlive it
    daemon::EngineClock clock{0};          ///< the only clock of this engine
    RegionSizes sizes;
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    std::atomic<Nanos> polled_at{0};
    std::atomic<bool> stop{false};
    /// Reasons why the helper must not nap long: kOffloading, and kComputing for each client that
    /// computes. The word is its futex.
    std::atomic<std::uint32_t> needs_helper{0};
    std::atomic<bool> helper_naps{false};  ///< on that word
    std::thread helper;
    struct Mapping {
        void* memory;
        std::uint64_t octets;
    };
    std::unordered_map<std::uint32_t, Mapping> regions;  ///< under `busy`
    std::uint32_t placing = 0;  ///< endpoint whose placer the last rounds had; under `busy`
    std::size_t spared = 0;     ///< polls of others that take no round; under `busy`
};

}  // namespace ulc::abi

namespace ulc::daemon {
namespace {

using abi::EmbeddedEngine;

constexpr Nanos kHelperNap = kMillisecond;
constexpr Nanos kHelperNapMax = 4 * kMillisecond;  ///< while the application polls at each look
constexpr Nanos kHelperNapShort = 20 * kMicrosecond;
constexpr Nanos kHelperLinger = 2 * kMillisecond;  ///< with short naps, after a client computed
constexpr std::uint32_t kOffloading = 1;  ///< set and cleared by the thread that has the engine
constexpr std::uint32_t kComputing = 2;   ///< counted
constexpr Nanos kHelperStay = 50 * kMicrosecond;
constexpr Nanos kDrainMax = 12 * kSecond;

/// Holds the engine while it lives, if it got it.
class Turn {
public:
    explicit Turn(EmbeddedEngine& engine) : engine_(engine) {
        mine_ = !engine_.busy.test_and_set(std::memory_order_acquire);  // with the release below
    }
    ~Turn() {
        if (mine_) engine_.busy.clear(std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    [[nodiscard]] bool mine() const noexcept { return mine_; }

private:
    EmbeddedEngine& engine_;
    bool mine_;
};

/// For calls that must happen: waits for the turn. The helper's rounds are short.
template <typename Action>
auto with_engine(EmbeddedEngine& engine, Action action) {
    for (;;) {
        const Turn turn(engine);
        if (turn.mine()) return action();
        std::this_thread::yield();
    }
}

/// Notifies the helper that it is needed, after the word was changed.
void wake_helper(EmbeddedEngine& engine) {
    // Pairs with the store of helper_naps before FUTEX_WAIT reads the word: one sees the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (engine.helper_naps.load(std::memory_order_relaxed))
        wake_futex(nullptr, 0, &engine.needs_helper);
}

/// Records that a collective was submitted, which wakes the helper, or that the last one ended.
[[gnu::noinline]] void set_offloading(EmbeddedEngine& engine, bool offloading) {
    engine.needs_helper.fetch_xor(kOffloading, std::memory_order_relaxed);
    if (offloading) wake_helper(engine);
}

/// Takes one round. The caller holds the engine.
[[gnu::always_inline]] inline bool round(EmbeddedEngine& engine, Nanos now) {
    engine::Engine& core = *engine.core;
    const bool moved = core.poll(now);
    const bool before = (engine.needs_helper.load(std::memory_order_relaxed) & kOffloading) != 0;
    if (const bool offloading = core.offloading(); offloading != before) [[unlikely]]
        set_offloading(engine, offloading);
    return moved;
}

/// Naps; a short time while a collective is offloaded or a client computes, or did recently.
/// Returns the time for which the application may be silent until a round is due.
Nanos nap(EmbeddedEngine& engine, Nanos usual, Nanos needed_at) {
    const bool lately = engine.clock.now() - needed_at < kHelperLinger;
    if (lately || engine.needs_helper.load(std::memory_order_relaxed) != 0) {
        const timespec length{0, static_cast<long>(kHelperNapShort)};
        nanosleep(&length, nullptr);
    } else {
        // Returns at once if it is not 0 any more.
        const timespec length{0, static_cast<long>(usual)};
        engine.helper_naps.store(true, std::memory_order_seq_cst);
        syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&engine.needs_helper), FUTEX_WAIT, 0,
                &length, nullptr, 0);
        engine.helper_naps.store(false, std::memory_order_relaxed);
    }
    return engine.needs_helper.load(std::memory_order_relaxed) != 0 ? kHelperNapShort : kHelperNap;
}

/// Runs rounds until nothing moves; while a collective is offloaded, until nothing has moved for
/// kHelperStay.
void take_rounds(EmbeddedEngine& engine) {
    Nanos moved_at = engine.clock.now();
    while (!engine.stop.load(std::memory_order_relaxed)) {
        const Nanos now = engine.clock.now();
        if (round(engine, now)) {
            moved_at = now;
            continue;
        }
        const bool offloading =
            (engine.needs_helper.load(std::memory_order_relaxed) & kOffloading) != 0;
        if (!offloading || now - moved_at > kHelperStay) return;
        std::this_thread::yield();
    }
}

void help(EmbeddedEngine* engine) {
    // Timer slack of this thread: the default is 50 us
    static_cast<void>(prctl(PR_SET_TIMERSLACK, 1000));
    const bool cached = dpdk::adopt_thread();
    Nanos usual = kHelperNap;
    Nanos needed_at = -kHelperLinger;
    while (!engine->stop.load(std::memory_order_relaxed)) {
        const Nanos silence = nap(*engine, usual, needed_at);
        const Nanos now = engine->clock.now();
        if (engine->needs_helper.load(std::memory_order_relaxed) >= kComputing) needed_at = now;
        if (now - engine->polled_at.load(std::memory_order_relaxed) < silence) {
            // Each look interrupts the polling thread, which costs more than this thread sees.
            usual = std::min(2 * usual, kHelperNapMax);
            continue;
        }
        usual = kHelperNap;
        const Turn turn(*engine);
        if (!turn.mine()) continue;
        take_rounds(*engine);
    }
    if (cached) dpdk::release_thread();
}

int fail(Err error, const std::string& why, char* text, std::uint32_t octets) {
    put_text({text, octets}, why);
    return static_cast<int>(error);
}

/// The engines of this process, so that endpoints on the same devices share one: a port cannot be
/// opened twice.
struct Registry {
    std::mutex mutex;
    std::vector<EmbeddedEngine*> engines;
};

Registry& registry() {
    static auto* const kept = new Registry;  // engines may outlive the destructors of statics
    return *kept;
}

/// In a child of fork(), the engines belong to the parent. Without this the child would hold the
/// parent's stations on shared memory beyond its end, and open() would return an engine that no
/// thread runs.
void forget_in_child() {
    Registry& all = registry();
    for (EmbeddedEngine* engine : all.engines)
        engine->node->abandon();
    all.engines.clear();
    all.mutex.unlock();
}

void watch_forks() {
    static const int watched = pthread_atfork([] { registry().mutex.lock(); },
                                              [] { registry().mutex.unlock(); }, forget_in_child);
    static_cast<void>(watched);
}

int open(const char* devices, const char* options, EmbeddedEngine** out, char* text,
         std::uint32_t octets) {
    watch_forks();
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto known = std::ranges::find(all.engines, devices, &EmbeddedEngine::devices);
    if (known != all.engines.end()) {
        ++(*known)->opens;
        *out = *known;
        return 0;
    }
    Options parsed;
    std::string why;
    if (const Err error = parse_embedded_options(devices, options, parsed, why); error != Err::kOk)
        return fail(error, why, text, octets);
    auto engine = std::make_unique<EmbeddedEngine>();
    engine->devices = devices;
    engine->sizes = region_sizes_of(parsed);
    std::vector<std::string> notes;
    NodeOptions node = node_options_of(parsed);
    // ulc_poll() runs one round, which must see the caller's submissions.
    node.engine.looks_per_round = node.engine.endpoints_max;
    if (const Err error = Node::open(node, nullptr, engine->node, notes, why); error != Err::kOk)
        return fail(error, why, text, octets);
    engine->core =
        std::make_unique<engine::Engine>(engine->node->engine_config(), engine->node->ports());
    engine->node->watch(engine->core->counters());
    engine->clock = EngineClock(engine->node->tsc_hz());
    engine->helper = std::thread(help, engine.get());
    all.engines.push_back(engine.get());
    *out = engine.release();
    return 0;
}

int attach(EmbeddedEngine* engine, const char* net, void** region, abi::RegionLayout* layout,
           std::uint32_t* endpoint) {
    const auto index = engine->node->net(net);
    if (!index) return static_cast<int>(index.error());
    const auto computed = abi::compute_layout(engine->sizes);
    if (!computed) return static_cast<int>(computed.error());
    *layout = computed.value();
    void* memory = mmap(nullptr, layout->region_octets, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return static_cast<int>(Err::kNoMemory);
    return with_engine(*engine, [&] {
        const auto id =
            engine->core->attach(memory, *layout, index.value(), 0, abi::Reach::kProcess);
        if (!id) {
            munmap(memory, layout->region_octets);
            return static_cast<int>(id.error());
        }
        engine->regions[id.value()] = {memory, layout->region_octets};
        *region = memory;
        *endpoint = id.value();
        return 0;
    });
}

int detach(EmbeddedEngine* engine, std::uint32_t endpoint) {
    with_engine(*engine, [&] {
        engine->core->detach(endpoint, engine::DetachReason::kClosed, engine->clock.now());
    });
    // Pending data are delivered first; the engine itself bounds that time (linger_max).
    const Nanos give_up = engine->clock.now() + kDrainMax;
    for (;;) {
        const bool done = with_engine(*engine, [&] {
            engine->core->poll(engine->clock.now());
            return engine->core->detached(endpoint);
        });
        if (done) break;
        if (engine->clock.now() > give_up)
            return static_cast<int>(Err::kTimeout);  // its memory stays
        std::this_thread::yield();
    }
    with_engine(*engine, [&] {
        const auto at = engine->regions.find(endpoint);
        if (at == engine->regions.end()) return;
        munmap(at->second.memory, at->second.octets);
        engine->regions.erase(at);
    });
    return 0;
}

// The placer is asked in this round only: in others the client's thread may be anywhere. So a round
// for another endpoint would copy what could go to its receive, and the others leave the rounds to
// the endpoint with a placer while it takes them.
int poll(EmbeddedEngine* engine, std::uint32_t endpoint, const abi::Placer* placer) noexcept {
    const Turn turn(*engine);
    if (!turn.mine()) return abi::kRoundElsewhere;
    if (placer == nullptr && engine->spared > 0 && endpoint != engine->placing) {
        --engine->spared;
        return abi::kRoundElsewhere;
    }
    const Nanos now = engine->clock.now();
    engine->polled_at.store(now, std::memory_order_relaxed);
    if (placer != nullptr) [[unlikely]] {
        engine->core->set_placer(endpoint, placer);
        engine->placing = endpoint;
        engine->spared = engine->regions.size() - 1;
    }
    const bool moved = round(*engine, now);
    if (placer != nullptr) [[unlikely]]
        engine->core->set_placer(endpoint, nullptr);
    return (moved ? abi::kRoundMoved : abi::kRoundIdle) |
           (engine->core->owes(endpoint) ? abi::kRoundOwes : 0);
}

int set_interrupt(EmbeddedEngine* engine, std::uint32_t endpoint, void (*interrupt)(void* context),
                  void* context) {
    with_engine(*engine, [&] { engine->core->set_interrupt(endpoint, {interrupt, context}); });
    return 0;
}

void lend_frames(EmbeddedEngine* engine, std::uint32_t endpoint, int lend) {
    with_engine(*engine, [&] { engine->core->lend_frames(endpoint, lend != 0); });
}

void computes(EmbeddedEngine* engine, int begins) {
    if (begins == 0) {
        engine->needs_helper.fetch_sub(kComputing, std::memory_order_relaxed);
        return;
    }
    engine->needs_helper.fetch_add(kComputing, std::memory_order_relaxed);
    wake_helper(*engine);
}

void close(EmbeddedEngine* engine) {
    if (engine == nullptr) return;
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (--engine->opens > 0) return;
    std::erase(all.engines, engine);
    const Nanos give_up = engine->clock.now() + kDrainMax;
    with_engine(*engine, [&] { engine->core->stop_accepting(); });
    // Peers are still notified that ranks left, and frames in flight are sent.
    while (!with_engine(*engine, [&] {
        engine->core->poll(engine->clock.now());
        return engine->core->drained();
    }) && engine->clock.now() < give_up)
        std::this_thread::yield();
    engine->stop.store(true, std::memory_order_relaxed);
    engine->helper.join();
    for (const auto& [endpoint, mapping] : engine->regions)
        munmap(mapping.memory, mapping.octets);
    delete engine;
}

constexpr abi::EngineEntry kEntry{
    abi::kAbiVersion,
    sizeof(abi::EngineEntry),
    open,
    attach,
    detach,
    poll,
    set_interrupt,
    lend_frames,
    computes,
    close,
};

}  // namespace
}  // namespace ulc::daemon

extern "C" __attribute__((visibility("default"))) const ulc::abi::EngineEntry* ulc_engine_entry_v1(
    std::uint32_t abi_version) {
    return abi_version == ulc::abi::kAbiVersion ? &ulc::daemon::kEntry : nullptr;
}
