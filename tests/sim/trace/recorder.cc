// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/trace/recorder.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/fnv.h"
#include "wire/build.h"

namespace ulc::sim {
namespace {

std::string counter_name(std::uint16_t node, std::size_t id) {
    return std::string(kCounterInfo[id].id) + " of node " + std::to_string(node);
}

/// True if the frame has data of a client.
bool has_payload(std::span<const std::byte> frame) {
    if (frame.size() < wire::kHeadOctets) return false;
    const auto type = std::to_integer<std::uint8_t>(frame[sizeof(wire::EthernetHeader)]) & 0xfU;
    return type == static_cast<std::uint8_t>(wire::FrameType::kData) ||
           type == static_cast<std::uint8_t>(wire::FrameType::kMcast) ||
           type == static_cast<std::uint8_t>(wire::FrameType::kCounted);
}

std::uint64_t hash_of(std::span<const std::byte> frame, std::size_t octets) {
    std::uint64_t hash = kFnvBasis;
    for (const std::byte octet : frame.first(octets))
        hash = fnv1a(hash, std::to_integer<std::uint64_t>(octet));
    return hash;
}

}  // namespace

void Recorder::on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                        Nanos at) {
    const std::size_t head = has_payload(frame) ? wire::kHeadOctets : frame.size();
    frames_.push_back({at, hash_of(frame, frame.size()), fnv1a(hash_of(frame, head), frame.size()),
                       port, outbound});
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

std::uint64_t Recorder::digest() const noexcept {
    std::uint64_t hash = kFnvBasis;
    for (const Frame& frame : frames_) {
        hash = fnv1a(hash, static_cast<std::uint64_t>(frame.at));
        hash = fnv1a(hash, frame.shape);
        hash = fnv1a(hash, std::uint64_t{frame.port} << 1 | (frame.outbound ? 1U : 0U));
    }
    for (const End& end : ends_) {
        if (end.value == 0) continue;
        for (const char letter : end.what)
            hash = fnv1a(hash, static_cast<std::uint8_t>(letter));
        hash = fnv1a(hash, end.value);
    }
    return hash;
}

}  // namespace ulc::sim
