// SPDX-License-Identifier: BSD-3-Clause
// Segments from the heap, one block each, so that the address sanitizer sees each access outside a
// frame. A pool counts its segments and must have all back at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"
#include "port/segment.h"

namespace ulc::fuzz {

class HeapPool {
public:
    /// limit: segments that may be out at once for allocate() to give one more.
    HeapPool(std::uint32_t frame_octets, std::uint32_t limit)
        : frame_octets_(frame_octets), limit_(limit) {}
    ~HeapPool() { ULC_CHECK(live_ == 0); }
    HeapPool(const HeapPool&) = delete;
    HeapPool& operator=(const HeapPool&) = delete;

    [[nodiscard]] SegmentPool table() {
        SegmentPool pool;
        pool.context = this;
        pool.allocate = [](void* self) { return static_cast<HeapPool*>(self)->allocate(); };
        pool.retain = [](void*, Segment* segment) { ++item(segment).references; };
        pool.release = [](void*, Segment* segment) { release(segment); };
        pool.references = [](void*, const Segment* segment) { return item(segment).references; };
        pool.available = [](void* self) {
            const auto& home = *static_cast<HeapPool*>(self);
            return home.limit_ > home.live_ ? home.limit_ - home.live_ : 0;
        };
        return pool;
    }
    /// Returns a segment that holds just these octets, whatever the limit.
    [[nodiscard]] Segment* received(std::span<const std::byte> frame) {
        Segment* segment = make(static_cast<std::uint32_t>(frame.size()));
        std::memcpy(segment->frame, frame.data(), frame.size());
        segment->length = static_cast<std::uint32_t>(frame.size());
        return segment;
    }
    /// Drops one reference of a segment of any pool.
    static void release(Segment* segment) {
        Item& released = item(segment);
        ULC_CHECK(released.references > 0);
        if (--released.references > 0) return;
        --released.home->live_;
        delete &released;
    }

private:
    struct Item {
        Segment segment;
        HeapPool* home = nullptr;
        std::uint32_t references = 1;
        std::unique_ptr<std::byte[]> octets;
    };
    static Item& item(const Segment* segment) { return *static_cast<Item*>(segment->owner); }

    Segment* allocate() { return live_ < limit_ ? make(frame_octets_) : nullptr; }
    Segment* make(std::uint32_t octets) {
        auto* made = new Item;
        made->octets = std::make_unique<std::byte[]>(octets);
        made->home = this;
        made->segment.owner = made;
        made->segment.frame = made->octets.get();
        made->segment.capacity = octets;
        ++live_;
        return &made->segment;
    }

    const std::uint32_t frame_octets_;
    const std::uint32_t limit_;
    std::uint32_t live_ = 0;
};

}  // namespace ulc::fuzz
