// SPDX-License-Identifier: BSD-3-Clause
// The memory that one client and the engine share: one sealed memfd an endpoint.
// pmd_app/main/attach/README.md has the handshake. The client's side is hostile to the engine: it
// copies the contents once and validates the copy. The engine's own cursors and layout are in its
// private memory and are only *published* here.
//
//   0        EndpointControl (one page; engine-written lines and client-written lines never share a
//            cache line)
//   sq       submission slots, client → engine
//   rq       release entries, client → engine
//   cq       completion slots, engine → client
//   dq       entries of sends that are done, engine → client
//   tx arena payloads of sends: allocated by the client
//   rx arena payloads of receives: allocated by the engine, given back through rq
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace ulc::abi {

inline constexpr std::uint64_t kRegionMagic = 0x31764c43'552d4c55U;
inline constexpr std::uint32_t kAbiVersion = 15;
inline constexpr std::size_t kPageOctets = 4096;
inline constexpr std::size_t kArenaAlignment = 64;
/// Size of a field that carries a sentence from the engine to a client (abi/put_text.h). The
/// longest one names all nets of an engine (tests/unit/engine/texts_test.cc).
inline constexpr std::size_t kTextOctetsMax = 768;

/// Placement of every part of the region, in bytes from its start. Neither side computes it
/// otherwise: the engine keeps a private copy, the client validates it once against the size of the
/// memfd.
struct RegionLayout {
    std::uint64_t region_octets;
    std::uint32_t sq_offset;
    std::uint32_t sq_slots;  ///< power of two
    std::uint32_t cq_offset;
    std::uint32_t cq_slots;  ///< power of two
    std::uint32_t rq_offset;
    std::uint32_t
        rq_entries;  ///< power of two, at least the blocks that the rx arena can be cut into
    std::uint32_t dq_offset;
    std::uint32_t dq_entries;  ///< power of two; sends that may be out at a time
    std::uint32_t tx_arena_offset;
    std::uint32_t tx_arena_octets;
    std::uint32_t rx_arena_offset;
    std::uint32_t rx_arena_octets;
};
static_assert(sizeof(RegionLayout) == 56);

/// EndpointControl::client_state: what the engine must do for the client after publishing
/// (slot_ring.h).
enum class ClientState : std::uint32_t {
    kPolling = 0,    ///< promises to poll its ring: nothing
    kAsleep = 1,     ///< sleeps on wake_sequence: one futex wake
    kComputing = 2,  ///< has revoked its promise and armed the upcall: one upcall
};

/// The messages of a source that a client takes.
enum class Intake : std::uint8_t {
    kAll = 0,
    kToEnd = 1,  ///< the rest of the one that has begun, for which it has a receive
    kNone = 2,
};

/// A client's word about a source whose messages without a receive use up its memory. It waits
/// behind no send: sends may wait for this very source. The client writes the next note
/// when the engine has obeyed the last one. It publishes a kExpect of the source behind a note, so
/// that the engine looks here.
///
///   31        18 17  16 15       0
///   +-----------+------+---------+
///   |   number  |intake| source  |     number counts the notes, so that neighbours differ
///   +-----------+------+---------+
struct SourceNote {
    std::uint16_t source;
    Intake intake;
    std::uint32_t number;  ///< 1 … kNumberMax, then 1

    static constexpr std::uint32_t kNumberMax = (1U << 14) - 1;
    [[nodiscard]] constexpr std::uint32_t packed() const noexcept {
        return number << 18 | std::uint32_t{static_cast<std::uint8_t>(intake)} << 16 | source;
    }
    /// False: no client writes this.
    [[nodiscard]] static constexpr bool read(std::uint32_t word, SourceNote& out) noexcept {
        const std::uint32_t intake = word >> 16 & 3U;
        out = {static_cast<std::uint16_t>(word), static_cast<Intake>(intake), word >> 18};
        return intake <= static_cast<std::uint32_t>(Intake::kNone);
    }
};

struct EndpointControl {
    // --- written by the engine before the client maps, constant after
    std::uint64_t magic;
    std::uint32_t abi_version;
    std::uint32_t control_octets;  ///< sizeof(EndpointControl): a cheap check of equal builds
    RegionLayout layout;
    std::uint32_t endpoint_handle;
    std::uint32_t engine_pid;

    // --- written by the engine
    alignas(kCacheLine) std::atomic<std::uint32_t> sq_consumed;  ///< records taken, free running
    std::atomic<std::uint32_t>
        engine_asleep;                 ///< 1: ring the doorbell after submitting (see slot_ring.h)
    std::atomic<std::int32_t> closed;  ///< 0: open; else the Err that closed the endpoint
    /// Changes about once a millisecond while the engine's thread runs. A client that sees no
    /// change asks the kernel whether the engine's process lives.
    std::atomic<std::uint32_t> engine_beats;
    std::atomic<std::uint32_t> note_taken;  ///< the SourceNote that the engine obeyed last
    alignas(
        kCacheLine) std::atomic<std::uint32_t> wake_sequence;  ///< futex word of a sleeping client

    /// Terminated; the reason and the advice of a kJobFailed, written before its record. Neither
    /// side reads it at another time.
    alignas(kCacheLine) char failure[kTextOctetsMax];

    // --- written by the client
    alignas(
        kCacheLine) std::atomic<std::uint32_t> cq_consumed;  ///< completions taken, free running
    std::atomic<std::uint32_t> client_state;  ///< a ClientState; also set to kPolling by the engine
    std::atomic<std::uint32_t> source_note;   ///< a SourceNote; 0: none was written
};
static_assert(sizeof(EndpointControl) <= kPageOctets);
static_assert(offsetof(EndpointControl, sq_consumed) % kCacheLine == 0);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Memory that a record may name: blocks of the region, or any memory, if client and engine are one
/// process and trust each other (embedded). In the second case payloads are read from the
/// application's memory.
enum class Reach : std::uint8_t { kRegion, kProcess };

}  // namespace ulc::abi
