// SPDX-License-Identifier: BSD-3-Clause
// This file reads the trace of an engine (abi/trace_ring.h), of one that runs or has ended. Every
// byte of the file is unproven: a writer may have crashed, or the file may be no trace. It is read,
// not mapped: its owner may shorten it at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "abi/trace_ring.h"

namespace ulc::tools {

/// A record and its time.
struct TimedRecord : abi::TraceRecord {
    Nanos at = 0;  ///< from the record's ticks; see TraceFile::realtime_ahead()
};

class TraceFile {
public:
    TraceFile() = default;
    ~TraceFile();
    TraceFile(const TraceFile&) = delete;
    TraceFile& operator=(const TraceFile&) = delete;

    /// Opens the file, once an object. False: `error` says why and what to do.
    [[nodiscard]] bool open(const std::string& path, std::string* error);

    /// Appends the records that came since the last call, oldest first. The first call gives all
    /// that the ring still has. Counts those that were overwritten in skipped(), those that hold
    /// impossible values in bad().
    void read(std::vector<TimedRecord>& out);

    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }
    [[nodiscard]] std::uint64_t bad() const { return bad_; }
    /// Returns CLOCK_REALTIME - TimedRecord::at.
    [[nodiscard]] Nanos realtime_ahead() const { return realtime_ahead_; }
    [[nodiscard]] std::uint32_t engine_pid() const { return engine_pid_; }
    [[nodiscard]] std::uint16_t ether_type() const { return ether_type_; }
    [[nodiscard]] const std::vector<std::string>& nets() const { return nets_; }
    [[nodiscard]] const std::vector<std::string>& counters() const { return counters_; }
    /// Returns true while an engine writes the file.
    [[nodiscard]] bool is_written() const;

private:
    [[nodiscard]] bool check(const abi::TraceHeader& header, std::size_t bytes, std::string* error);
    [[nodiscard]] bool read_at(std::size_t at, void* out, std::size_t bytes) const;
    [[nodiscard]] std::uint64_t produced() const;
    [[nodiscard]] bool is_possible(const TimedRecord& record) const;

    int fd_ = -1;
    std::uint32_t records_ = 0;
    std::uint64_t next_ = 0;
    std::uint64_t skipped_ = 0;
    std::uint64_t bad_ = 0;
    Nanos realtime_ahead_ = 0;
    std::uint64_t nanos_per_tick_ = 0;
    std::uint32_t engine_pid_ = 0;
    std::uint16_t ether_type_ = 0;
    std::vector<std::string> nets_;
    std::vector<std::string> counters_;
};

}  // namespace ulc::tools
