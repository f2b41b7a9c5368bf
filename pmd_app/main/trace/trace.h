// SPDX-License-Identifier: BSD-3-Clause
// Keeps an engine's last frames and events in a file (abi/trace_ring.h). It stands between the
// engine and its ports: an engine without a trace has its ports themselves, so it costs nothing.
//
//   engine ── rx(), tx() ──▶ traced port ──▶ port
//                                └──▶ ring in a mapped file, which outlives a crash
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
    /// renamed to FILE.old. Errors: kInvalid (FILE is something else, or another engine writes
    /// it), kSystem, kNoMemory (no space); why: what to do.
    static Err open(const TraceOptions& options, std::unique_ptr<Trace>& out, std::string& why);
    ~Trace();
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    /// Returns a port that does what the given one does and records it. The trace must outlive it.
    [[nodiscard]] Port wrap(const Port& port);
    /// Records events too from here on. To be called once the engine is made, before its first
    /// round.
    void watch(const Counters& counters) noexcept;

private:
    struct TracedPort;

    Trace(void* memory, std::size_t bytes, int fd, std::uint64_t tsc_hz) noexcept;
    abi::TraceRecord& next() noexcept;
    void record_frame(abi::TraceKind kind, std::uint8_t net, const Segment& segment,
                      Nanos now) noexcept;
    void publish(std::uint64_t produced) noexcept;
    void look_at_events() noexcept;
    void record_events() noexcept;
    static void set_frame_entries(Port& port);
    static void set_other_entries(Port& port);

    abi::TraceHeader& header_;
    abi::TraceRecord* records_;
    std::uint64_t mask_;
    std::uint64_t produced_ = 0;
    EngineClock clock_;
    const Counters* counters_ = nullptr;
    std::uint64_t seen_[abi::kTraceCounters] = {};
    bool frames_passed_ = false;  ///< since the last look at the counters
    Nanos passed_at_ = 0;
    Nanos looked_at_ = 0;
    std::vector<std::unique_ptr<TracedPort>> ports_;
    std::size_t bytes_;
    int fd_;  ///< holds the lock that tells others that the file is in use
};

}  // namespace ulc::daemon
