// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/host/frame_pool.h"

#include "base/check.h"

namespace ulc::sim {

Segment* FramePool::get() {
    if (free_.empty()) {
        if (items_.size() == segments_) return nullptr;
        auto item = std::make_unique<Item>();
        item->octets = std::make_unique<std::byte[]>(octets_);
        item->segment.frame = item->octets.get();
        item->segment.capacity = octets_;
        item->segment.owner = item.get();
        item->pool = this;
        free_.push_back(item.get());
        items_.push_back(std::move(item));
    }
    Item* item = free_.back();
    free_.pop_back();
    item->references = 1;
    item->segment.length = 0;
    item->segment.tail = nullptr;
    return &item->segment;
}

void FramePool::drop(Segment* segment) {
    Item& item = item_of(segment);
    ULC_CHECK(item.references > 0);
    if (--item.references == 0) item.pool->free_.push_back(&item);
}

SegmentPool FramePool::table() noexcept {
    SegmentPool pool;
    pool.context = this;
    pool.allocate = [](void* context) { return static_cast<FramePool*>(context)->get(); };
    pool.retain = [](void*, Segment* segment) {
        ULC_CHECK(item_of(segment).references > 0);
        ++item_of(segment).references;
    };
    pool.release = [](void*, Segment* segment) { drop(segment); };
    pool.references = [](void*, const Segment* segment) { return item_of(segment).references; };
    pool.available = [](void* context) {
        const auto* self = static_cast<FramePool*>(context);
        return self->segments_ - self->out();
    };
    return pool;
}

}  // namespace ulc::sim
