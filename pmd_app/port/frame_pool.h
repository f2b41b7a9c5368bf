// SPDX-License-Identifier: BSD-3-Clause
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

#include "base/check.h"
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
    [[nodiscard]] Segment* get() noexcept {
        Frame* frame = free_count_ > 0 ? free_[--free_count_] : make();
        if (frame == nullptr) return nullptr;
        frame->references = 1;
        frame->segment.frame = frame->data();
        frame->segment.length = 0;
        frame->segment.tail = nullptr;
        return &frame->segment;
    }
    static void put(Segment* segment) noexcept {
        Frame* frame = Frame::of(segment);
        ULC_CHECK(frame->references > 0);
        if (--frame->references > 0) return;
        FramePool& home = *frame->home;
        home.free_[home.free_count_++] = frame;  // at most frames_ of them exist
    }

private:
    struct alignas(kCacheLine) Frame {
        Segment segment;  ///< first: a pointer to the one is a pointer to the other
        FramePool* home;
        std::uint32_t references;

        [[nodiscard]] std::byte* data() noexcept {
            return reinterpret_cast<std::byte*>(this) + sizeof(Frame) + kHeadroom;
        }
        [[nodiscard]] static Frame* of(Segment* segment) noexcept {
            return reinterpret_cast<Frame*>(segment);
        }
    };
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
