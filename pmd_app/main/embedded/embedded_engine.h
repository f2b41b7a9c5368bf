// SPDX-License-Identifier: BSD-3-Clause
// An engine that the application's own threads run (U-Net MPI §4: reliability without a context
// switch). Used by embedded.cc, which is its table for libulc, and by registry.h.
//
// Each poll runs the engine: the application's own calls, under a lock that is only tried, the
// turn. One helper thread naps 1 ms (up to 4 while the application polls) and runs a round when the
// application has not polled for 1 ms. So a rank that computes still answers probes, retransmission
// requests and pings, and is neither dead nor lossy (decision D13). While a collective is
// offloaded, or a client computes that asked for upcalls, the helper is woken at once and runs
// rounds every 20 us, if there is a processor left for it; for a collective it stays in the engine.
//
// Other calls wait for the turn, which the helper gives up after the round in which it sees them.
// Each wait has a limit by the engine's clock. The waiting thread itself looks at it, so it holds
// however long a round of another thread takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "abi/engine_entry.h"
#include "abi/region.h"
#include "engine/engine.h"
#include "main/clock.h"
#include "main/node.h"

namespace ulc::abi {

struct EmbeddedEngine {
    std::string devices;
    unsigned opens = 1;                    ///< under the lock of the registry
    bool closing = false;                  ///< under that lock
    std::unique_ptr<daemon::Node> node;    ///< owns its ports; a test may do without
    std::unique_ptr<engine::Engine> core;  ///< on the ports of `node`, which outlive it
    daemon::EngineClock clock{0};          ///< the only clock of this engine
    RegionSizes sizes;
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    std::atomic<std::uint32_t> waiting{0};  ///< threads that wait for the turn
    std::atomic<Nanos> polled_at{0};
    std::atomic<bool> stop{false};
    /// Reasons why the helper must not nap long: kOffloading, and kComputing for each client that
    /// computes. The word is its futex.
    std::atomic<std::uint32_t> needs_helper{0};
    std::atomic<bool> helper_naps{false};  ///< on that word
    std::atomic<bool> helper_ended{false};
    std::thread helper;
    struct Mapping {
        void* memory;
        std::uint64_t octets;
    };
    std::unordered_map<std::uint32_t, Mapping> regions;  ///< under the turn
    std::uint32_t placing = 0;  ///< endpoint whose placer the last rounds had; under the turn
    std::size_t spared = 0;     ///< polls of others that take no round; under the turn
};

}  // namespace ulc::abi

namespace ulc::daemon {

/// Limit of a call that waits for the turn.
inline constexpr Nanos kTurnMax = 5 * kSecond;
/// Limit of the delivery of pending data, in detach() and in stop().
inline constexpr Nanos kDrainMax = 12 * kSecond;

/// Starts the helper of an engine whose other parts are set.
void start(abi::EmbeddedEngine& engine);

/// Delivers what is pending and ends the helper. False: the helper is still in a round, of a driver
/// that does not return; the engine must not be destroyed.
[[nodiscard]] bool stop(abi::EmbeddedEngine& engine);

// --- those of abi::EngineEntry. Errors, besides its own: kTimeout (another thread has the turn)
int attach(abi::EmbeddedEngine& engine, std::uint32_t net, void** region, abi::RegionLayout* layout,
           std::uint32_t* endpoint);
int detach(abi::EmbeddedEngine* engine, std::uint32_t endpoint);
int poll(abi::EmbeddedEngine* engine, std::uint32_t endpoint, const abi::Placer* placer) noexcept;
int set_interrupt(abi::EmbeddedEngine* engine, std::uint32_t endpoint,
                  void (*interrupt)(void* context), void* context);
int lend_frames(abi::EmbeddedEngine* engine, std::uint32_t endpoint, int lend);
int forget_place(abi::EmbeddedEngine* engine, std::uint32_t endpoint, std::uint16_t source,
                 const abi::Place* place);
int addresses(abi::EmbeddedEngine* engine, char* text, std::uint32_t octets);
int meet(abi::EmbeddedEngine* engine, const char* addresses);
int seal(abi::EmbeddedEngine* engine, const unsigned char* nonce);
void computes(abi::EmbeddedEngine* engine, int begins);

}  // namespace ulc::daemon
