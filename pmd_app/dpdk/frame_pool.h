// SPDX-License-Identifier: BSD-3-Clause
// Segments over mbufs. Each mbuf's private area holds its Segment, so neither direction of the
// translation reads memory:
//
//   | mempool header | rte_mbuf 128 | Segment, padded to 64 | headroom 128 | frame data … |
//                                                                          ^ cache-line aligned
//
// A port has two pools: one that allocate() serves and one that the device receives into, so that a
// sender that holds every segment cannot block the reception of ACKs.
//
// References are the mbuf's count. Only the engine thread counts, and the device frees on that
// thread, inside its burst functions; so counts above one are changed without atomics here.
#pragma once

#include <cstdint>
#include <string>

#include <rte_mbuf.h>

#include "base/error.h"
#include "base/units.h"
#include "port/port.h"

namespace ulc::dpdk {

inline constexpr std::size_t kSegmentOctets = kCacheLine;
static_assert(sizeof(Segment) <= kSegmentOctets);

[[nodiscard]] inline Segment* segment_of(rte_mbuf* mbuf) noexcept {
    return static_cast<Segment*>(rte_mbuf_to_priv(mbuf));
}
[[nodiscard]] inline rte_mbuf* mbuf_of(const Segment* segment) noexcept {
    return reinterpret_cast<rte_mbuf*>(reinterpret_cast<std::uintptr_t>(segment) -
                                       sizeof(rte_mbuf));
}

class FramePool {
public:
    FramePool() = default;
    ~FramePool();  ///< frees the memory only when every segment is back
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;

    /// Creates the pool. `name`: unique in the process, at most 24 characters. `frame_octets`:
    /// space of each frame. Errors: kNoMemory; `why` names the option to change.
    Err create(const std::string& name, std::uint32_t segments, std::uint32_t frame_octets,
               std::string& why);

    [[nodiscard]] rte_mempool* mempool() const noexcept { return pool_; }
    /// Returns a table: allocate() and available() serve this pool; the other functions serve any
    /// segment of any FramePool.
    [[nodiscard]] SegmentPool table() noexcept;
    /// True if all segments are in the pool or in a thread's cache.
    [[nodiscard]] bool all_returned() const noexcept;

    static void release_segment(Segment* segment) noexcept;

private:
    static Segment* allocate(void* context);
    static void retain(void* context, Segment* segment);
    static void release(void* context, Segment* segment);
    static std::uint32_t references(void* context, const Segment* segment);
    static std::uint32_t available(void* context);

    rte_mempool* pool_ = nullptr;
};

}  // namespace ulc::dpdk
