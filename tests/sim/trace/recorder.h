// SPDX-License-Identifier: BSD-3-Clause
// Records what can be seen of a run of a cluster: each frame at each interface with its time, the
// completions that each client took, and the counters of each engine. Compares two runs of one
// seed. Keeps hashes only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/counters.h"
#include "tests/sim/cluster/sim_net.h"

namespace ulc::sim {

class Recorder : public Tap {
public:
    void on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                  Nanos at) override;
    /// Notes how many of these there were, at the end of a client or an engine.
    void note_end(const std::string& what, std::uint64_t value) { ends_.push_back({what, value}); }
    /// The same of all counters of an engine.
    void note_counters(std::uint16_t node, const Counters& counters);

    [[nodiscard]] std::size_t frames() const noexcept { return frames_.size(); }
    /// Describes the first difference; empty: there is none.
    [[nodiscard]] std::string difference(const Recorder& other) const;
    /// Returns a hash of the frames, their times, and the ends that are not 0. Payloads are left
    /// out, because operands of collectives have padding. Two builds whose digests of one seed
    /// differ do not behave alike.
    [[nodiscard]] std::uint64_t digest() const noexcept;

private:
    struct Frame {
        Nanos at = 0;
        std::uint64_t hash = 0;
        std::uint64_t shape = 0;  ///< the same without a payload
        std::uint16_t port = 0;
        bool outbound = false;
        bool operator==(const Frame&) const = default;
    };
    struct End {
        std::string what;
        std::uint64_t value = 0;
        bool operator==(const End&) const = default;
    };
    std::vector<Frame> frames_;
    std::vector<End> ends_;
};

}  // namespace ulc::sim
