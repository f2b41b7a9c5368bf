// SPDX-License-Identifier: BSD-3-Clause
// A queue that grows when it is full and never shrinks. An empty one has no memory of the heap.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace ulc {

template <class T>
class GrowingRing {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
    [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_; }
    [[nodiscard]] T& front() noexcept { return slots_[head_ & (slots_.size() - 1)]; }
    void pop_front() noexcept { ++head_; }
    /// Removes the values for which `test` is true; the others keep their order.
    template <class Test>
    void remove_if(Test test) {
        for (std::size_t left = size(); left > 0; --left) {
            const T value = front();
            pop_front();
            if (!test(value)) push_back(value);
        }
    }
    /// Appends a value. May throw std::bad_alloc.
    void push_back(const T& value) {
        if (size() == slots_.size()) grow();
        slots_[tail_++ & (slots_.size() - 1)] = value;
    }

private:
    void grow() {
        std::vector<T> larger(slots_.empty() ? 64 : slots_.size() * 2);
        std::size_t count = 0;
        for (; !empty(); pop_front())
            larger[count++] = front();
        slots_ = std::move(larger);
        head_ = 0;
        tail_ = count;
    }

    std::vector<T> slots_;  ///< a power of two
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
};

}  // namespace ulc
