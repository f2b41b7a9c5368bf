// SPDX-License-Identifier: BSD-3-Clause
// Future events in time order. Events that are due at the same time happen in the order in which
// they were added, so that a run depends on nothing else.
//
//   heap_ (by time, then by age)         buckets_
//   ┌ at 5, 1st ┐ ┌ at 7, 2nd ┐ …        each a row of events due at one time, in their order
//         └───────────┴──────────────────▶ ■■■■■■   ■■
//
// A frame to all of a large cluster is thousands of events at one time: they share a place in the
// heap. Events go to the youngest bucket of their time, which is remembered for the times added
// last; another bucket of the same time is younger, and comes later.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/units.h"

namespace ulc::sim {

template <typename T>
class EventQueue {
public:
    void push(Nanos at, T event) {
        Recent& recent = recent_of(at);
        if (recent.bucket == kNone || recent.at != at) recent = {at, open(at)};
        buckets_[recent.bucket].events.push_back(std::move(event));
    }
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    /// Returns when the first event is due; kNever if there is none.
    [[nodiscard]] Nanos next() const noexcept { return heap_.empty() ? kNever : heap_.front().at; }
    [[nodiscard]] T pop() {
        ULC_CHECK(!heap_.empty());
        Bucket& bucket = buckets_[heap_.front().bucket];
        T event = std::move(bucket.events[bucket.taken++]);
        if (bucket.taken == bucket.events.size()) close();
        return event;
    }

private:
    static constexpr std::uint32_t kNone = UINT32_MAX;
    /// Number of events for which an idle bucket keeps memory
    static constexpr std::size_t kKept = 4;
    struct Entry {
        Nanos at;
        std::uint64_t order;
        std::uint32_t bucket;
    };
    struct Bucket {
        std::vector<T> events;
        std::size_t taken = 0;
    };
    struct Recent {
        Nanos at = 0;
        std::uint32_t bucket = kNone;
    };
    static bool later(const Entry& a, const Entry& b) noexcept {
        return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
    [[nodiscard]] Recent& recent_of(Nanos at) noexcept {
        return recent_[static_cast<std::size_t>(at) % recent_.size()];
    }
    std::uint32_t open(Nanos at) {
        if (idle_.empty()) {
            idle_.push_back(static_cast<std::uint32_t>(buckets_.size()));
            buckets_.emplace_back();
        }
        const std::uint32_t bucket = idle_.back();
        idle_.pop_back();
        heap_.push_back({at, order_++, bucket});
        std::push_heap(heap_.begin(), heap_.end(), later);
        return bucket;
    }
    /// Call when the first bucket is empty.
    void close() {
        const Entry entry = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end(), later);
        heap_.pop_back();
        Recent& recent = recent_of(entry.at);
        if (recent.bucket == entry.bucket) recent.bucket = kNone;
        Bucket& bucket = buckets_[entry.bucket];
        bucket.events.clear();
        if (bucket.events.capacity() > kKept) bucket.events.shrink_to_fit();
        bucket.taken = 0;
        idle_.push_back(entry.bucket);
    }

    std::vector<Entry> heap_;
    std::vector<Bucket> buckets_;
    std::vector<std::uint32_t> idle_;  ///< buckets without events
    std::array<Recent, 16> recent_;
    std::uint64_t order_ = 0;
};

}  // namespace ulc::sim
