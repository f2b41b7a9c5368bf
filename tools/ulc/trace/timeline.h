// SPDX-License-Identifier: BSD-3-Clause
// This file turns records of a trace into a timeline in the JSON of Chrome's trace viewer, which
// Perfetto (ui.perfetto.dev) and chrome://tracing open, and into a summary.
//
// Tracks of the engine's process: for each net the frames in and the frames out; deliveries to
// clients; stalls. A gap that this engine asked for is a span from its first request to the arrival
// of the packet. The credit of each ACK that came is a counter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "abi/trace_ring.h"
#include "base/units.h"
#include "tools/ulc/trace/trace_file.h"
#include "wire/parse.h"

namespace ulc::tools {

struct TraceSummary {
    std::uint64_t frames_in = 0;
    std::uint64_t frames_out = 0;
    std::uint64_t sent_again = 0;  ///< data frames out whose number had been sent before
    std::uint64_t requests_in = 0;
    std::uint64_t requests_out = 0;
    std::uint64_t repaired = 0;    ///< gaps that were asked for and filled
    std::uint64_t unreadable = 0;  ///< frames that are none of ULC's
    Nanos first = 0;
    Nanos last = 0;
    Nanos longest_repair = 0;
    std::map<std::string, std::uint64_t> events;  ///< counters that rose, by name
};

class Timeline {
public:
    explicit Timeline(const TraceFile& trace);

    void add(const TimedRecord& record);
    /// Returns the whole document. Gaps that are open end with the last record.
    [[nodiscard]] std::string finish();
    [[nodiscard]] const TraceSummary& summary() const { return summary_; }

private:
    /// Node of the source, group (0: unicast), number.
    using Gap = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;
    struct Asked {
        Nanos at;
        std::uint64_t id;
        std::uint32_t times;
    };

    void add_frame(const TimedRecord& record);
    void add_counter(const TimedRecord& record);
    void follow_out(const wire::FrameView& frame, Nanos at, std::string* name);
    void follow_in(const wire::FrameView& frame, Nanos at);
    void end_gap(const Gap& gap, const Asked& asked, Nanos at, const char* how);
    void event(const std::string& fields);

    const TraceFile& trace_;
    TraceSummary summary_;
    std::string text_;
    std::unordered_set<std::string> sent_;  ///< type, rank, handle and number of data frames out
    std::map<Gap, Asked> gaps_;
    std::uint64_t gaps_made_ = 0;
    std::vector<std::byte> frame_;  ///< a frame at its full length; its end is zero
};

}  // namespace ulc::tools
