// SPDX-License-Identifier: BSD-3-Clause
// The invariants of the send queue, of deliveries and of the receive arena, between two rounds. The
// simulator checks them after each round that moved something.
#include <algorithm>

#include "base/check.h"
#include "endpoint/outlet.h"
#include "endpoint/send_queue.h"

namespace ulc::endpoint {

void SendQueue::check_invariants() const {
    ULC_CHECK(tail_ - head_ <= mask_ + 1);
    std::uint32_t queued[kOpenMax] = {};
    for (std::uint32_t n = head_; n != tail_; ++n) {
        const Pending& pending = ring_[n & mask_];
        ULC_CHECK(pending.state != State::kDone || n != head_);
        if (pending.state != State::kQueued) continue;
        if (pending.message == kNoMessage) continue;
        ULC_CHECK(pending.message < kOpenMax && open_[pending.message].used);
        ULC_CHECK(open_[pending.message].stream == pending.record.stream);
        ++queued[pending.message];
    }
    std::uint32_t used = 0;
    for (std::size_t n = 0; n < kOpenMax; ++n) {
        const OpenMessage& message = open_[n];
        used += message.used ? 1U : 0U;
        ULC_CHECK(queued[n] == (message.used ? message.records : 0));
        if (!message.used) continue;
        ULC_CHECK(message.sent <= message.submitted && message.submitted <= message.length);
        ULC_CHECK(message.records > 0 || !message.complete);
    }
    ULC_CHECK(used == open_count_);
    for (const Awaiting& one : awaiting_)
        ULC_CHECK(one.segment != nullptr);
    ULC_CHECK(!retry_ || !empty());
}

std::uint32_t RxArena::held_blocks() const noexcept {
    std::uint32_t held = 0;
    for (std::uint32_t at = 0; at < count_; at += granules_[at].size)
        held += granules_[at].state == kHeld ? 1U : 0U;
    return held;
}

void RxArena::check_invariants() const {
    std::uint32_t free = 0;
    std::uint32_t free_blocks = 0;
    std::uint32_t lent = 0;
    bool was_free = false;
    std::uint32_t at = 0;
    while (at < count_) {
        const Granule& block = granules_[at];
        const bool is_free = block.state == kFree;
        ULC_CHECK(is_free || block.state == kHeld || block.state == kLent);
        ULC_CHECK(block.size > 0 && block.size <= count_ - at);
        ULC_CHECK(!is_free || (!was_free && !block.is_reserve));
        const Granule& tail = granules_[at + block.size - 1];
        ULC_CHECK(!is_free || block.size == 1 ||
                  (tail.state == kFreeTail && tail.size == block.size));
        free += is_free ? block.size : 0U;
        free_blocks += is_free ? 1U : 0U;
        lent += block.state == kLent ? 1U : 0U;
        was_free = is_free;
        at += block.size;
    }
    ULC_CHECK(at == count_ && free == free_ && lent == lent_);
    for (int bin = 0; bin < kBins; ++bin) {
        ULC_CHECK((bins_used_ >> bin & 1U) == (bins_[bin] != kEnd ? 1U : 0U));
        std::uint16_t before = kEnd;
        for (std::uint16_t head = bins_[bin]; head != kEnd; head = granules_[head].next) {
            const Granule& block = granules_[head];
            ULC_CHECK(free_blocks > 0 && block.state == kFree && block.prev == before);
            --free_blocks;
            ULC_CHECK(block.size >> bin == 1);
            before = head;
        }
    }
    ULC_CHECK(free_blocks == 0);
}

void Outlet::check_invariants() const {
    arena_.check_invariants();
    std::uint32_t held = 0;
    std::uint32_t places = 0;
    for (const Source& source : sources_) {
        const bool filling = source.block != RxArena::kNone;
        ULC_CHECK(fits(source));
        ULC_CHECK((source.sink ? 1 : 0) + (source.place ? 1 : 0) + (filling ? 1 : 0) <= 1);
        ULC_CHECK(!filling || source.open);
        held += filling ? 1U : 0U;
        places += source.place ? 1U : 0U;
    }
    for (const Reserve& reserve : reserves_)
        held += reserve.free ? 1U : 0U;
    ULC_CHECK(held == arena_.held_blocks());
    ULC_CHECK(places == places_);
    std::size_t sources = 0;
    for (const std::uint16_t index : index_) {
        ULC_CHECK(index <= sources_.size());
        sources += index != 0 ? 1U : 0U;
    }
    ULC_CHECK(sources == sources_.size());
}

}  // namespace ulc::endpoint
