// SPDX-License-Identifier: BSD-3-Clause
// This file finds the collectives in the traces of a job's engines, and the critical path of one:
// the chain of frames for which its last arrival waited.
//
//   last arrival ◀─wire─ its sending ◀─node─ the arrival before it at that node ◀─wire─ …
//
// A message of a collective has the group and the number of the operation in its tag (coll/). The
// clocks of the engines are aligned by the shortest times of frames in both directions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "tools/ulc/trace/trace_file.h"

namespace ulc::tools {

/// One step of a critical path: a frame from its first sending to its arrival, or a node from an
/// arrival to the first sending of what waited for it.
struct PathStep {
    Nanos at = 0;    ///< end of the step, from the start of the operation
    Nanos took = 0;  ///< from the end of the step before
    bool on_wire = false;
    std::size_t node = 0;     ///< where the step ends: the index of its trace
    std::uint16_t rank = 0;   ///< the sender's of the frame
    std::uint32_t bytes = 0;  ///< length of the frame
    Nanos repaired = 0;  ///< on_wire: from the first sending to the one that arrived; 0: the same
};

struct NodeStart {
    std::size_t node = 0;
    std::uint16_t rank = 0;
    Nanos at = 0;  ///< time of its first frame, from the start of the operation
};

struct Collective {
    std::uint32_t group = 0;   ///< handle
    std::int64_t number = 0;   ///< place in its group, known but for multiples of 4096
    Nanos start = 0;           ///< first frame out, by the clock of the first trace
    Nanos took = 0;            ///< until the last frame in
    std::uint64_t frames = 0;  ///< out, with repairs
    std::uint64_t repairs = 0;
};

class Collectives {
public:
    /// Adds the records of one engine. realtime_ahead: TraceFile's. To be called once for each
    /// trace, before find().
    void add(std::uint16_t ether_type, Nanos realtime_ahead,
             const std::vector<TimedRecord>& records);
    /// Finds the operations of which frames were sent and received, longest first. To be called
    /// once.
    [[nodiscard]] std::vector<Collective> find();
    /// Returns the critical path, in order of time.
    [[nodiscard]] std::vector<PathStep> path(const Collective& one) const;
    /// Returns when each node sent its first frame of the operation, earliest first.
    [[nodiscard]] std::vector<NodeStart> starts(const Collective& one) const;

private:
    /// Source, type, rank, handle.
    using Stream = std::tuple<std::uint64_t, std::uint8_t, std::uint16_t, std::uint32_t>;
    /// Group, number; group 0: of no collective.
    using Operation = std::pair<std::uint32_t, std::int64_t>;
    struct Frame {
        Nanos at = 0;
        std::size_t node = 0;
        bool out = false;
        Stream stream;
        std::uint32_t seq = 0;
        std::uint8_t flags = 0;
        std::uint64_t tag = 0;
        std::uint32_t bytes = 0;
        Operation operation;
    };
    void align_clocks();
    void name_operations();
    [[nodiscard]] const std::vector<const Frame*>* frames_of(const Collective& one) const;
    [[nodiscard]] const Frame* sending_of(const Frame& arrival, Nanos* first) const;

    std::vector<Frame> frames_;
    std::size_t nodes_ = 0;
    std::map<std::pair<Stream, std::uint32_t>, std::vector<const Frame*>> sendings_;  ///< by time
    std::map<Operation, std::vector<const Frame*>> operations_;                       ///< by time
};

/// Returns the text of `ulc trace --collective`: one operation, its nodes and its critical path.
/// names: of the traces.
[[nodiscard]] std::string text_of(const Collectives& collectives, const Collective& one,
                                  const std::vector<std::string>& names);

}  // namespace ulc::tools
