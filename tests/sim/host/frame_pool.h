// Reference-counted segments of one simulated port, behind port/segment.h. Each buffer is a
// separate heap block, so that the address sanitizer sees an overrun. It is made when it is first
// needed: a node that holds few frames costs little.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "port/segment.h"

namespace ulc::sim {

class FramePool {
public:
    /// At most `segments` buffers of `octets` each.
    FramePool(std::uint32_t segments, std::uint32_t octets) noexcept
        : segments_(segments), octets_(octets) {}
    [[nodiscard]] SegmentPool table() noexcept;
    /// One reference; nullptr: all are out.
    [[nodiscard]] Segment* get();
    /// Back to the pool from which it came, with its last reference.
    static void drop(Segment* segment);
    /// Buffers that somebody holds.
    [[nodiscard]] std::uint32_t out() const noexcept {
        return static_cast<std::uint32_t>(items_.size() - free_.size());
    }
    /// Buffers that were made so far.
    [[nodiscard]] std::uint32_t made() const noexcept {
        return static_cast<std::uint32_t>(items_.size());
    }

private:
    struct Item {
        Segment segment;
        std::unique_ptr<std::byte[]> octets;
        FramePool* pool = nullptr;
        std::uint32_t references = 0;
    };
    static Item& item_of(const Segment* segment) { return *static_cast<Item*>(segment->owner); }

    std::uint32_t segments_;
    std::uint32_t octets_;
    std::vector<std::unique_ptr<Item>> items_;
    std::vector<Item*> free_;
};

}  // namespace ulc::sim
