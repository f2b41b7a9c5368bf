// SPDX-License-Identifier: BSD-3-Clause
// A frame buffer and its references. A segment belongs to a port's pool; its bytes are one Ethernet
// frame. References are counted: a sender keeps one until all have acknowledged the packet, the NIC
// keeps one from tx until transmission is complete, a receiver keeps one while the packet waits.
// The segment returns to its pool with the last reference. All calls: engine thread only.
//
// A frame to send may consist of two pieces: its headers here and the end of its payload in the
// application's memory, if the port gathers (port/port.h). That memory should not change while a
// reference to the segment is held. If a client of a daemon changes it all the same, receivers get
// other payload of that client, and nothing else: headers lie here.
//
// A received frame may too: its payload is at the place that the engine named before it was copied
// (Port::rx_landing).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ulc {

struct Segment {
    std::byte* frame = nullptr;  ///< first byte of the Ethernet header
    std::uint32_t length = 0;    ///< bytes of the frame, without FCS
    std::uint32_t capacity = 0;  ///< bytes that fit
    void* owner = nullptr;       ///< the pool's own
    const std::byte* tail =
        nullptr;  ///< the last tail_octets of the frame; nullptr: behind the rest
    std::uint32_t tail_octets = 0;
    std::uint32_t tail_key = 0;  ///< by Port::add_memory(); 0: the tail is read within tx()
};

/// Writes the whole frame to `to`, which has space for segment.length bytes and is not inside the
/// segment.
inline void copy_frame(std::byte* to, const Segment& segment) noexcept {
    if (segment.tail == nullptr) {
        std::memcpy(to, segment.frame, segment.length);
        return;
    }
    const std::uint32_t head = segment.length - segment.tail_octets;
    std::memcpy(to, segment.frame, head);
    std::memcpy(to + head, segment.tail, segment.tail_octets);
}

/// Moves the whole frame into the segment.
inline void pull_tail(Segment& segment) noexcept {
    if (segment.tail == nullptr) return;
    std::memcpy(segment.frame + segment.length - segment.tail_octets, segment.tail,
                segment.tail_octets);
    segment.tail = nullptr;
}

/// A pool of segments: constant function table plus context, so that a DPDK pool and a simulated
/// one have the same interface and no core file sees DPDK. Cost of each call: one indirect call, no
/// system call.
struct SegmentPool {
    void* context = nullptr;
    /// Returns one segment with one reference, length 0; nullptr if exhausted.
    Segment* (*allocate)(void* context) = nullptr;
    /// Adds one reference.
    void (*retain)(void* context, Segment* segment) = nullptr;
    /// Removes one reference; the last one frees.
    void (*release)(void* context, Segment* segment) = nullptr;
    /// Returns the references held, including the NIC's. If the only holder sees 1, it may rewrite
    /// the frame.
    std::uint32_t (*references)(void* context, const Segment* segment) = nullptr;
    /// Returns the segments that allocate() could still give (approximate is allowed).
    std::uint32_t (*available)(void* context) = nullptr;

    [[nodiscard]] Segment* get() const noexcept { return allocate(context); }
    void hold(Segment* segment) const noexcept { retain(context, segment); }
    void drop(Segment* segment) const noexcept { release(context, segment); }
    /// True if there is a segment for data. They leave some to control frames: a node whose pool is
    /// full of unacknowledged data must still acknowledge. A pool has at least 64.
    [[nodiscard]] bool has_for_data() const noexcept {
        return available(context) > kKeptForControl;
    }
    static constexpr std::uint32_t kKeptForControl = 32;
    [[nodiscard]] std::uint32_t holders(const Segment* segment) const noexcept {
        return references(context, segment);
    }
};

}  // namespace ulc
