// What will happen when, in time order; what is due at the same time happens in the order in which it was put in, so that
// a run depends on nothing else.
#pragma once

#include <algorithm>
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
        heap_.push_back({at, order_++, std::move(event)});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    /// When the first is due; kNever if there is none.
    [[nodiscard]] Nanos next() const noexcept { return heap_.empty() ? kNever : heap_.front().at; }
    [[nodiscard]] T pop() {
        ULC_CHECK(!heap_.empty());
        std::pop_heap(heap_.begin(), heap_.end(), later);
        T event = std::move(heap_.back().event);
        heap_.pop_back();
        return event;
    }

private:
    struct Entry {
        Nanos at;
        std::uint64_t order;
        T event;
    };
    static bool later(const Entry& a, const Entry& b) noexcept {
        return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
    std::vector<Entry> heap_;
    std::uint64_t order_ = 0;
};

}  // namespace ulc::sim
