// SPDX-License-Identifier: BSD-3-Clause
// Reference-counted segments of one simulated port, behind port/segment.h. Each buffer is a
// separate heap block, so that the address sanitizer detects an overrun. It is allocated when it is
// first needed, so a node that holds few frames costs little.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "port/segment.h"

namespace ulc::sim {

class FramePool {
public:
    /// Creates a pool of at most `segments` buffers of `octets` each.
    FramePool(std::uint32_t segments, std::uint32_t octets) noexcept
        : segments_(segments), octets_(octets) {}
    [[nodiscard]] SegmentPool table() noexcept;
    /// Returns one reference; nullptr if all are in use.
    [[nodiscard]] Segment* get();
    /// Drops a reference; the last one returns the segment to its pool.
    static void drop(Segment* segment);
    /// Returns the number of buffers in use.
    [[nodiscard]] std::uint32_t out() const noexcept {
        return static_cast<std::uint32_t>(items_.size() - free_.size());
    }
    /// Returns the number of buffers allocated until this time.
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
