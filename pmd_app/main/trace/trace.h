// SPDX-License-Identifier: BSD-3-Clause
// Keeps an engine's last frames and events in a file (abi/trace_ring.h). The engine tells it of
// each burst that holds frames (PortTap); polls that find none never reach it.
//
//   engine ── rx(), tx() ──▶ port
//     └── PortTap ──▶ ring in a mapped file, which outlives a crash
//
// Invariant: one writer, the engine's thread; no allocation, system call or lock after open().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi/trace_ring.h"
#include "base/counters.h"
#include "base/error.h"
#include "main/clock.h"
#include "port/port.h"
#include "wire/header.h"

namespace ulc::daemon {

struct TraceOptions {
    std::string file;  ///< empty: no trace; "%p" stands for the process's number
    std::uint32_t records = 65536;
    std::uint16_t ether_type = 0;
    std::vector<std::string> nets;  ///< their names
    std::uint64_t tsc_hz = 0;
};

class Trace {
public:
    /// Makes the file, which only its owner can read. A trace of an engine that has ended is
    /// renamed to FILE.old, which may be such a trace. Errors: kInvalid (one of the two is
    /// something else, or another engine writes it), kSystem, kNoMemory (no space); why: what to
    /// do.
    static Err open(const TraceOptions& options, std::unique_ptr<Trace>& out, std::string& why);
    ~Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    /// Records the frames of the port of the next net from here on. The trace must outlive the
    /// engine that has the port. To be called once for each net, in their order.
    void watch_port(Port& port);
    /// Records events too from here on. To be called once the engine is made, before its first
    /// round.
    void watch(const Counters& counters) noexcept;

private:
    static constexpr std::uint16_t kShortest = wire::kFrameOctetsMin;
    /// The fields of a record between its time and its bytes, as those of a shortest frame are.
    struct Source {
        abi::TraceKind kind;
        std::uint8_t net;
        std::uint16_t kept = kShortest;
        std::uint32_t amount = kShortest;
    };
    /// The context of a tap.
    struct Tapped {
        Trace& trace;
        Source in;
        Source out;
        Source failed;
        PortTap tap;
    };

    Trace(void* memory, std::size_t bytes, int fd, std::uint64_t tsc_hz) noexcept;
    [[nodiscard]] abi::TraceRecord& record_at(std::uint64_t n) const noexcept;
    static void write_shortest(abi::TraceRecord& record, Source of,
                               const std::byte* frame) noexcept;
    void write_frame(std::uint64_t n, Source of, const Segment& segment,
                     std::uint64_t ticks) noexcept;
    template <bool publishes>
    bool write_one(Source of, Segment* const* frames) noexcept;
    void write_burst(Source of, Segment* const* frames, std::uint16_t n) noexcept;
    void receive_burst(Source of, Segment* const* frames, std::uint16_t n) noexcept;
    [[nodiscard]] std::uint64_t next() const noexcept;
    void publish(std::uint64_t records) noexcept;
    void record_events(std::uint64_t ticks) noexcept;

    abi::TraceHeader& header_;
    abi::TraceRecord* records_;
    std::uint64_t mask_;
    EngineClock clock_;
    const Counters* counters_ = nullptr;
    std::uint64_t seen_[abi::kTraceCounters] = {};
    std::uint64_t looked_at_ = 0;  ///< at the counters, in ticks
    std::uint64_t ticks_apart_;    ///< between two looks
    std::uint64_t look_at_ = 0;    ///< time of the next look; 0: each burst compares itself
    std::vector<std::unique_ptr<Tapped>> ports_;
    std::size_t bytes_;
    int fd_;  ///< holds the lock that tells others that the file is in use
};

}  // namespace ulc::daemon
