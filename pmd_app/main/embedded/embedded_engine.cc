// SPDX-License-Identifier: BSD-3-Clause
#include "main/embedded/embedded_engine.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include "dpdk/eal.h"
#include "main/engine_loop.h"

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

/// For calls that must happen: waits for the turn. False: another thread had it until `give_up`.
template <typename Action>
[[nodiscard]] bool with_engine(EmbeddedEngine& engine, Nanos give_up, Action action) {
    engine.waiting.fetch_add(1, std::memory_order_relaxed);
    bool done = false;
    for (;;) {
        const Turn turn(engine);
        if (turn.mine()) {
            action();
            done = true;
        }
        if (done || engine.clock.now() >= give_up) break;
        std::this_thread::yield();
    }
    engine.waiting.fetch_sub(1, std::memory_order_relaxed);
    return done;
}

/// The same, within kTurnMax. Returns 0 or kTimeout.
template <typename Action>
[[nodiscard]] int call(EmbeddedEngine& engine, Action action) {
    const bool done = with_engine(engine, engine.clock.now() + kTurnMax, action);
    return static_cast<int>(done ? Err::kOk : Err::kTimeout);
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

/// Runs rounds until nothing moves, or another thread waits for the turn; while a collective is
/// offloaded, until nothing has moved for kHelperStay.
void take_rounds(EmbeddedEngine& engine) {
    Nanos moved_at = engine.clock.now();
    while (!engine.stop.load(std::memory_order_relaxed) &&
           engine.waiting.load(std::memory_order_relaxed) == 0) {
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
    engine->helper_ended.store(true, std::memory_order_release);  // with stop()
}

}  // namespace

void start(EmbeddedEngine& engine) { engine.helper = std::thread(help, &engine); }

bool stop(EmbeddedEngine& engine) {
    const Nanos give_up = engine.clock.now() + kDrainMax;
    // Peers are still notified that ranks left, and frames in flight are sent.
    bool drained = false;
    const auto drain = [&] {
        engine.core->stop_accepting();
        engine.core->poll(engine.clock.now());
        drained = engine.core->drained();
    };
    while (with_engine(engine, give_up, drain) && !drained && engine.clock.now() < give_up)
        std::this_thread::yield();
    engine.stop.store(true, std::memory_order_relaxed);
    const Nanos helper_give_up = engine.clock.now() + kTurnMax;
    while (!engine.helper_ended.load(std::memory_order_acquire)) {
        if (engine.clock.now() >= helper_give_up) return false;
        std::this_thread::yield();
    }
    engine.helper.join();  // it has ended
    for (const auto& [endpoint, mapping] : engine.regions)
        munmap(mapping.memory, mapping.octets);
    engine.regions.clear();
    return true;
}

int attach(EmbeddedEngine& engine, std::uint32_t net, void** region, abi::RegionLayout* layout,
           std::uint32_t* endpoint) {
    const auto computed = abi::compute_layout(engine.sizes);
    if (!computed) return static_cast<int>(computed.error());
    *layout = computed.value();
    void* memory = mmap(nullptr, layout->region_octets, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return static_cast<int>(Err::kNoMemory);
    Result<engine::EndpointId> id = Err::kTimeout;
    static_cast<void>(call(engine, [&] {
        id = engine.core->attach(memory, *layout, net, 0, abi::Reach::kProcess);
        if (id.ok()) engine.regions[id.value()] = {memory, layout->region_octets};
    }));
    if (!id) {
        munmap(memory, layout->region_octets);
        return static_cast<int>(id.error());
    }
    *region = memory;
    *endpoint = id.value();
    return 0;
}

int detach(EmbeddedEngine* engine, std::uint32_t endpoint) {
    // Pending data are delivered first; the engine itself bounds that time (linger_max).
    const Nanos give_up = engine->clock.now() + kDrainMax;
    bool begun = false;
    bool done = false;
    const auto look = [&] {
        const Nanos now = engine->clock.now();
        if (!std::exchange(begun, true))
            engine->core->detach(endpoint, engine::DetachReason::kClosed, now);
        engine->core->poll(now);
        done = engine->core->detached(endpoint);
        if (!done) return;
        const auto at = engine->regions.find(endpoint);
        if (at == engine->regions.end()) return;
        munmap(at->second.memory, at->second.octets);
        engine->regions.erase(at);
    };
    while (with_engine(*engine, give_up, look) && !done && engine->clock.now() < give_up)
        std::this_thread::yield();
    return static_cast<int>(done ? Err::kOk : Err::kTimeout);  // its memory stays
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
    return call(*engine, [&] { engine->core->set_interrupt(endpoint, {interrupt, context}); });
}

int lend_frames(EmbeddedEngine* engine, std::uint32_t endpoint, int lend) {
    return call(*engine, [&] { engine->core->lend_frames(endpoint, lend != 0); });
}

int forget_place(EmbeddedEngine* engine, std::uint32_t endpoint, std::uint16_t source,
                 const abi::Place* place) {
    bool arriving = false;
    const int error =
        call(*engine, [&] { arriving = engine->core->forget_place(endpoint, source, *place); });
    return error != 0 || arriving ? error : static_cast<int>(Err::kAgain);
}

int addresses(EmbeddedEngine* engine, char* text, std::uint32_t octets) {
    const std::string all = engine->node == nullptr ? "" : engine->node->addresses();
    if (all.size() >= octets) return static_cast<int>(Err::kInvalid);
    std::memcpy(text, all.c_str(), all.size() + 1);
    return 0;
}

int meet(EmbeddedEngine* engine, const char* addresses) {
    bool good = false;
    const int error =
        call(*engine, [&] { good = engine->node != nullptr && engine->node->meet(addresses); });
    return error != 0 || good ? error : static_cast<int>(Err::kInvalid);
}

int seal(EmbeddedEngine* engine, const unsigned char* nonce) {
    Err result = Err::kOk;
    const int error = call(*engine, [&] {
        if (engine->node == nullptr) return;
        const bool has_place =
            nonce == nullptr ||
            engine->node->add_secret(std::span<const std::uint8_t, 16>(nonce, 16));
        if (!has_place) result = Err::kLimit;
        if (engine->node->needs_secret()) result = Err::kInvalid;
    });
    return error != 0 ? error : static_cast<int>(result);
}

void computes(EmbeddedEngine* engine, int begins) {
    if (begins == 0) {
        engine->needs_helper.fetch_sub(kComputing, std::memory_order_relaxed);
        return;
    }
    engine->needs_helper.fetch_add(kComputing, std::memory_order_relaxed);
    wake_helper(*engine);
}

}  // namespace ulc::daemon
