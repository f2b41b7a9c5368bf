// SPDX-License-Identifier: BSD-3-Clause
#include "port/frame_pool.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "base/check.h"

namespace ulc::port {
namespace {

std::size_t lines(std::size_t octets) {
    return (octets + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace

FramePool::~FramePool() {
    if (memory_ != nullptr) munmap(memory_, octets_);
}

Err FramePool::create(std::uint32_t frames, std::uint32_t frame_octets, std::string& why) {
    ULC_CHECK(memory_ == nullptr);
    const std::size_t stride = sizeof(Frame) + kHeadroom + lines(frame_octets);
    octets_ = stride * frames;
    void* memory =
        mmap(nullptr, octets_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        why = "no memory for " + std::to_string(frames) + " frames (" +
              std::to_string(octets_ >> 20) + " MB): " + std::strerror(errno) + "; lower segments";
        return Err::kNoMemory;
    }
    memory_ = static_cast<std::byte*>(memory);
    static_cast<void>(madvise(memory, octets_, MADV_HUGEPAGE));  // refused: it works without
    stride_ = stride;
    frames_ = frames;
    free_ = std::make_unique<Frame*[]>(frames);
    return Err::kOk;
}

/// Makes a frame that was never given out, so that memory is touched only if it is needed.
FramePool::Frame* FramePool::make() noexcept {
    if (made_ == frames_) return nullptr;
    auto* frame = new (memory_ + made_ * stride_) Frame{};
    ++made_;
    frame->home = this;
    frame->segment.capacity = static_cast<std::uint32_t>(stride_ - sizeof(Frame) - kHeadroom);
    frame->segment.owner = frame;
    return frame;
}

SegmentPool FramePool::table() noexcept {
    return {
        .context = this,
        .allocate = [](void* context) { return static_cast<FramePool*>(context)->get(); },
        .retain = [](void*, Segment* segment) { ++Frame::of(segment)->references; },
        .release = [](void*, Segment* segment) { put(segment); },
        .references =
            [](void*, const Segment* segment) {
                return reinterpret_cast<const Frame*>(segment)->references;
            },
        .available =
            [](void* context) {
                const auto& pool = *static_cast<FramePool*>(context);
                return static_cast<std::uint32_t>(pool.frames_ - pool.made_ + pool.free_count_);
            },
    };
}

}  // namespace ulc::port
