// SPDX-License-Identifier: BSD-3-Clause
// Containers with a stated capacity and no allocation after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/check.h"

namespace ulc {

/// Up to N values in place; push_back on a full one returns false.
template <typename T, std::size_t N>
class FixedVector {
public:
    [[nodiscard]] bool push_back(const T& value) noexcept {
        if (size_ == N) return false;
        items_[size_++] = value;
        return true;
    }
    void clear() noexcept { size_ = 0; }
    void pop_back() noexcept {
        ULC_CHECK(size_ > 0);
        --size_;
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] bool full() const noexcept { return size_ == N; }
    [[nodiscard]] static constexpr std::size_t capacity() noexcept { return N; }
    T& operator[](std::size_t i) noexcept {
        ULC_CHECK(i < size_);
        return items_[i];
    }
    const T& operator[](std::size_t i) const noexcept {
        ULC_CHECK(i < size_);
        return items_[i];
    }
    T* begin() noexcept { return items_.data(); }
    T* end() noexcept { return items_.data() + size_; }
    const T* begin() const noexcept { return items_.data(); }
    const T* end() const noexcept { return items_.data() + size_; }

private:
    std::array<T, N> items_{};
    std::size_t size_ = 0;
};

/// FIFO of a power-of-two capacity chosen at construction, which allocates.
template <typename T>
class BoundedQueue {
public:
    explicit BoundedQueue(std::size_t capacity)
        : mask_(capacity - 1), items_(std::make_unique<T[]>(capacity)) {
        ULC_CHECK(capacity > 0 && (capacity & (capacity - 1)) == 0);
    }
    [[nodiscard]] bool push(const T& value) noexcept {
        if (full()) return false;
        items_[tail_++ & mask_] = value;
        return true;
    }
    [[nodiscard]] T& front() noexcept {
        ULC_CHECK(!empty());
        return items_[head_ & mask_];
    }
    /// The i-th from the front.
    [[nodiscard]] T& at(std::size_t i) noexcept {
        ULC_CHECK(i < size());
        return items_[(head_ + i) & mask_];
    }
    void pop() noexcept {
        ULC_CHECK(!empty());
        ++head_;
    }
    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(tail_ - head_);
    }
    [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }
    [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
    [[nodiscard]] bool full() const noexcept { return size() == capacity(); }

private:
    std::size_t mask_;
    std::unique_ptr<T[]> items_;
    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;
};

}  // namespace ulc
