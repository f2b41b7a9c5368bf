// Frames in private memory, for ports without DPDK (shm/, packet/, verbs/). The pool is a stack: it
// gives out the frame that came back last, because the cache still holds it. Memory is touched when
// a frame is first needed. Engine thread only.
//
//   | Frame, a cache line | headroom 64 | frame data … |      each at a multiple of a cache line
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "port/port.h"

namespace ulc::port {

class FramePool {
public:
    /// Octets in front of each frame, which a device may fill with what it says of the frame.
    static constexpr std::size_t kHeadroom = kCacheLine;

    FramePool() = default;
    ~FramePool();
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;

    /// frame_octets: capacity of each frame. Errors: kNoMemory.
    Err create(std::uint32_t frames, std::uint32_t frame_octets, std::string& why);

    /// All frames, for a device that has to know the memory.
    [[nodiscard]] std::span<std::byte> memory() const noexcept { return {memory_, octets_}; }
    /// allocate() and available() serve this pool; the rest serves any frame of any pool.
    [[nodiscard]] SegmentPool table() noexcept;
    [[nodiscard]] Segment* get() noexcept;
    static void put(Segment* segment) noexcept;

private:
    struct Frame;
    [[nodiscard]] Frame* make() noexcept;

    std::byte* memory_ = nullptr;
    std::size_t octets_ = 0;
    std::size_t stride_ = 0;  ///< octets from frame to frame
    std::size_t frames_ = 0;
    std::size_t made_ = 0;  ///< frames that have been given out at least once; they are the first
    std::size_t free_count_ = 0;
    std::unique_ptr<Frame*[]> free_;  ///< place for all frames
};

}  // namespace ulc::port
