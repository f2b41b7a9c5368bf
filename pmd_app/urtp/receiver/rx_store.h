// SPDX-License-Identifier: BSD-3-Clause
// Received packets wait here: in nodes lent from one pool (the endpoint's bound on receiver memory,
// URTP §3.1), with a hash by (stream, number) of those that are not in order yet. So a stream costs
// no ring, and a packet in order touches no table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "base/check.h"
#include "base/units.h"
#include "port/segment.h"
#include "urtp/frame_share.h"
#include "urtp/types.h"
#include "wire/header.h"

namespace ulc::urtp {

struct RxStream;

/// One held packet. It is in the pool's free list, in a hash chain, or in its source's ready queue:
/// one link is enough.
struct RxNode {
    void fields(state::Archive& archive);  ///< urtp/state/
    RxNode* link = nullptr;
    /// segment nullptr: a subset packet for others, held for its number only.
    ReadyPacket packet;
    const wire::AfterEntry* after = nullptr;  ///< inside the segment
    RxStream* stream = nullptr;  ///< while out of order; a stream may end before it is popped
    Nanos arrived = 0;
    Seq seq;
    std::uint32_t global = 0;  ///< PCODE's counter
    std::uint8_t after_count = 0;
    bool reserved = false;  ///< the source's own reserved node, not the pool's
    bool slot = false;      ///< taken from the stream's own share (KeptRoom)
    bool local = false;     ///< its frame is of the pool to send from: the source is on this node
};

class RxStore {
public:
    /// local, remote: shares of the frames from this node and from others; they outlive this.
    /// nullptr: any number.
    explicit RxStore(std::uint32_t nodes = 0, FrameShare* local = nullptr,
                     FrameShare* remote = nullptr) noexcept
        : capacity_(nodes), shares_{remote, local} {}

    /// Allocates, at the first session of a member: an endpoint without traffic costs nothing.
    void open() {
        if (nodes_ != nullptr) return;
        nodes_ = std::make_unique<RxNode[]>(capacity_);
        const std::uint32_t buckets = std::bit_ceil(capacity_ < 16 ? 16U : capacity_);
        buckets_ = std::make_unique<RxNode*[]>(buckets);
        mask_ = buckets - 1;
        for (std::uint32_t i = capacity_; i > 0; --i)
            put(nodes_[i - 1]);
    }

    [[nodiscard]] bool is_open() const noexcept { return nodes_ != nullptr; }
    [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::uint32_t free_count() const noexcept { return free_count_; }
    /// Returns how many of them have frames now, for sources of this node (local) or of others.
    [[nodiscard]] std::uint32_t room(bool local) const noexcept {
        const FrameShare* share = shares_[local];
        return share == nullptr ? free_count_ : std::min(free_count_, share->room());
    }

    /// Tells whether n of them have frames now, for sources of this node (local) or of others.
    [[nodiscard]] bool has_room(bool local, std::uint32_t n) const noexcept {
        const FrameShare* share = shares_[local];
        return free_count_ >= n && (share == nullptr || share->has_room(n));
    }

    /// nullptr: the pool, or the endpoint's share of frames, is used up.
    [[nodiscard]] RxNode* take(bool local) noexcept {
        RxNode* node = free_;
        if (node == nullptr) return nullptr;
        if (FrameShare* share = shares_[local]; share != nullptr) {
            if (!share->may_take()) return nullptr;
            share->take();
        }
        free_ = node->link;
        --free_count_;
        node->local = local;
        return node;
    }
    /// Takes a node for a packet that was held before: its frame is counted, and not refused.
    /// nullptr: the pool is used up.
    [[nodiscard]] RxNode* adopt(bool local) noexcept {
        RxNode* node = free_;
        if (node == nullptr) return nullptr;
        if (FrameShare* share = shares_[local]; share != nullptr) share->take();
        free_ = node->link;
        --free_count_;
        *node = RxNode{.local = local};
        return node;
    }
    void give_back(RxNode& node) noexcept {
        if (FrameShare* share = shares_[node.local]; share != nullptr) share->give_back();
        put(node);
    }

    void insert(RxNode& node) noexcept {
        RxNode*& bucket = bucket_of(node.stream, node.seq);
        node.link = bucket;
        bucket = &node;
    }
    [[nodiscard]] RxNode* find(const RxStream* stream, Seq seq) const noexcept {
        RxNode* node = bucket_of(stream, seq);
        while (node != nullptr && (node->seq != seq || node->stream != stream))
            node = node->link;
        return node;
    }
    /// The node must be in the table.
    void erase(RxNode& node) noexcept {
        RxNode** at = &bucket_of(node.stream, node.seq);
        while (*at != &node) {
            ULC_CHECK(*at != nullptr);
            at = &(*at)->link;
        }
        *at = node.link;
    }

private:
    void put(RxNode& node) noexcept {
        node.link = free_;
        free_ = &node;
        ++free_count_;
    }
    [[nodiscard]] RxNode*& bucket_of(const RxStream* stream, Seq seq) const noexcept {
        const auto salt = static_cast<std::uint32_t>(std::bit_cast<std::uintptr_t>(stream) >> 6U);
        return buckets_[(salt * 0x9e3779b1U + seq.value) & mask_];
    }

    std::uint32_t capacity_;
    FrameShare* shares_[2];
    std::uint32_t free_count_ = 0;
    std::uint32_t mask_ = 0;
    RxNode* free_ = nullptr;
    std::unique_ptr<RxNode[]> nodes_;
    std::unique_ptr<RxNode*[]> buckets_;
};

}  // namespace ulc::urtp
