// SPDX-License-Identifier: BSD-3-Clause
// The file in which an engine keeps its last frames and events (ulc-engine --trace). Written by the
// engine's thread alone; read by `ulc trace` and `ulc dump` while the engine runs or after its end.
//
//   | TraceHeader, one page | TraceRecord × records (a power of two) |
//                             record n lies at n mod records; `produced` counts all
//
// A reader copies a record and then reads `produced` again: the record is whole if fewer than
// `records` - kTraceMargin others followed. Every field of a file is unproven to its reader.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace ulc::abi {

inline constexpr std::uint32_t kTraceMagic = 0x54434c55;  ///< "ULCT"
inline constexpr std::uint32_t kTraceVersion = 2;
inline constexpr std::size_t kTraceHeaderBytes = 4096;
inline constexpr std::size_t kTraceRecordBytes = 128;
inline constexpr std::size_t kTraceFrameBytes = 112;  ///< kept of each frame, from its first byte
inline constexpr std::uint32_t kTraceRecordsMin = 1024;
inline constexpr std::uint32_t kTraceRecordsMax = 1U << 24;
inline constexpr std::uint32_t kTraceMargin = 256;  ///< records that may be under way, at most
inline constexpr std::size_t kTraceNets = 16;
inline constexpr std::size_t kTraceCounters = 32;
inline constexpr std::size_t kTraceNameBytes = 32;

enum class TraceKind : std::uint8_t {
    kFrameIn = 1,   ///< the port gave it
    kFrameOut = 2,  ///< the port took it
    kGivenUp = 3,   ///< the port took it and gave it up
    kCounter = 4,   ///< a counter rose; source: its index in TraceHeader::counters
};

struct TraceRecord {
    std::uint64_t ticks;  ///< trace_time() makes nanoseconds of it
    TraceKind kind;
    std::uint8_t source;   ///< the net, or the counter
    std::uint16_t kept;    ///< bytes of the frame that are in `bytes`
    std::uint32_t amount;  ///< bytes of the frame, or by how much the counter rose
    std::byte bytes[kTraceFrameBytes];
};
static_assert(sizeof(TraceRecord) == kTraceRecordBytes);

struct TraceHeader {
    std::uint32_t magic;
    std::uint32_t version;
    std::uint32_t records;
    std::uint32_t engine_pid;
    std::uint16_t ether_type;
    std::uint16_t nets;
    std::uint32_t counters;
    Nanos realtime_ahead;          ///< CLOCK_REALTIME - trace_time()
    std::uint64_t nanos_per_tick;  ///< times 2^32
    char net_names[kTraceNets][kTraceNameBytes];
    char counter_names[kTraceCounters][kTraceNameBytes];
    alignas(64) std::atomic<std::uint64_t> produced;
};
static_assert(sizeof(TraceHeader) <= kTraceHeaderBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Returns the time of TraceRecord::ticks, about that of CLOCK_MONOTONIC; kNever if it is beyond
/// 146 years, which no engine reaches.
[[nodiscard]] constexpr Nanos trace_time(std::uint64_t ticks,
                                         std::uint64_t nanos_per_tick) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide time = (Wide{ticks} * nanos_per_tick) >> 32U;
    return time < (Wide{1} << 62U) ? static_cast<Nanos>(time) : kNever;
}

}  // namespace ulc::abi
