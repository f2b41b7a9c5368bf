// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/trace/recorder.h"

#include <algorithm>

#include "base/fnv.h"

namespace ulc::sim {
namespace {

std::string counter_name(std::uint16_t node, std::size_t id) {
    return std::string(kCounterInfo[id].id) + " of node " + std::to_string(node);
}

}  // namespace

void Recorder::on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                        Nanos at) {
    std::uint64_t hash = kFnvBasis;
    for (const std::byte octet : frame)
        hash = fnv1a(hash, std::to_integer<std::uint64_t>(octet));
    frames_.push_back({at, hash, port, outbound});
}

void Recorder::note_counters(std::uint16_t node, const Counters& counters) {
    for (std::size_t id = 0; id < kCounterCount; ++id)
        note_end(counter_name(node, id), counters.get(static_cast<Counter>(id)));
}

std::string Recorder::difference(const Recorder& other) const {
    const auto [frame, its] = std::ranges::mismatch(frames_, other.frames_);
    if (frame != frames_.end() || its != other.frames_.end()) {
        const auto at = [](const Frame& f) {
            return std::to_string(f.at) + " ns, " + (f.outbound ? "from" : "to") + " node " +
                   std::to_string(f.port);
        };
        return "frame " + std::to_string(frame - frames_.begin()) + " of " +
               std::to_string(frames_.size()) + " and " + std::to_string(other.frames_.size()) +
               ": " + (frame == frames_.end() ? "none" : at(*frame)) + "; " +
               (its == other.frames_.end() ? "none" : at(*its));
    }
    const auto [end, its_end] = std::ranges::mismatch(ends_, other.ends_);
    if (end == ends_.end() && its_end == other.ends_.end()) return {};
    if (end == ends_.end() || its_end == other.ends_.end()) return "another number of ends";
    return end->what + " is " + std::to_string(end->value) + ", and " +
           std::to_string(its_end->value) + " in the other run";
}

}  // namespace ulc::sim
