// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/frame_pool.h"

#include <algorithm>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

namespace ulc::dpdk {
namespace {

constexpr unsigned kCacheSegmentsMax = 256;

void make_segment(rte_mempool* /*pool*/, void* /*context*/, void* object, unsigned /*index*/) {
    auto* mbuf = static_cast<rte_mbuf*>(object);
    Segment* segment = segment_of(mbuf);
    segment->frame = static_cast<std::byte*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
    segment->length = 0;
    segment->capacity = mbuf->buf_len - RTE_PKTMBUF_HEADROOM;
    segment->owner = mbuf;
}

}  // namespace

FramePool::~FramePool() {
    if (pool_ != nullptr && all_returned()) rte_mempool_free(pool_);
}

Err FramePool::create(const std::string& name, std::uint32_t segments, std::uint32_t frame_octets,
                      std::string& why) {
    const std::uint32_t room = RTE_PKTMBUF_HEADROOM + (frame_octets + 63) / 64 * 64;
    if (room > UINT16_MAX) {
        why = "frames of " + std::to_string(frame_octets) +
              " octets are more than a buffer holds; lower mtu";
        return Err::kInvalid;
    }
    // Half of DPDK's limit, so that two threads' caches never hold most of a small pool.
    const unsigned cache = std::min(kCacheSegmentsMax, segments / 4);
    pool_ = rte_pktmbuf_pool_create(name.c_str(), segments, cache, kSegmentOctets,
                                    static_cast<std::uint16_t>(room), SOCKET_ID_ANY);
    if (pool_ == nullptr) {
        const std::uint64_t octets =
            std::uint64_t{segments} * (room + sizeof(rte_mbuf) + 2 * kSegmentOctets);
        why = "no memory for " + std::to_string(segments) + " frames (" +
              std::to_string(octets >> 20) + " MB): " + rte_strerror(rte_errno) +
              "; raise memory_mb or lower segments";
        return Err::kNoMemory;
    }
    rte_mempool_obj_iter(pool_, make_segment, nullptr);
    return Err::kOk;
}

SegmentPool FramePool::table() noexcept {
    return {.context = this,
            .allocate = allocate,
            .retain = retain,
            .release = release,
            .references = references,
            .available = available};
}

bool FramePool::all_returned() const noexcept { return rte_mempool_full(pool_) != 0; }

Segment* FramePool::allocate(void* context) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(static_cast<FramePool*>(context)->pool_);
    if (mbuf == nullptr) return nullptr;
    Segment* segment = segment_of(mbuf);
    segment->frame = rte_pktmbuf_mtod(mbuf, std::byte*);
    segment->length = 0;
    return segment;
}

void FramePool::retain(void* /*context*/, Segment* segment) {
    rte_mbuf* mbuf = mbuf_of(segment);
    rte_mbuf_refcnt_set(mbuf, rte_mbuf_refcnt_read(mbuf) + 1);
}

void FramePool::release_segment(Segment* segment) noexcept {
    rte_mbuf* mbuf = mbuf_of(segment);
    const std::uint16_t held = rte_mbuf_refcnt_read(mbuf);
    if (held > 1) {
        rte_mbuf_refcnt_set(mbuf, held - 1);
    } else {
        rte_pktmbuf_free_seg(mbuf);
    }
}

void FramePool::release(void* /*context*/, Segment* segment) { release_segment(segment); }

std::uint32_t FramePool::references(void* /*context*/, const Segment* segment) {
    return rte_mbuf_refcnt_read(mbuf_of(segment));
}

std::uint32_t FramePool::available(void* context) {
    // Not rte_mempool_avail_count(): that walks every thread's cache.
    rte_mempool* pool = static_cast<FramePool*>(context)->pool_;
    const rte_mempool_cache* cache = rte_mempool_default_cache(pool, rte_lcore_id());
    return rte_mempool_get_ops(pool->ops_index)->get_count(pool) +
           (cache != nullptr ? cache->len : 0);
}

}  // namespace ulc::dpdk
