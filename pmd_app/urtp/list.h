// SPDX-License-Identifier: BSD-3-Clause
// Intrusive lists: no allocation, O(1) insertion and removal. A link is a member of the object,
// named by a member pointer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulc::urtp {

template <typename T>
struct Link {
    T* previous = nowhere();
    T* next = nullptr;

    [[nodiscard]] bool listed() const noexcept { return previous != nowhere(); }

private:
    /// In no list: no object has this address. A flag would cost each link eight bytes.
    [[nodiscard]] static T* nowhere() noexcept { return reinterpret_cast<T*>(std::uintptr_t{1}); }
};

/// A doubly linked list; an object is in it once or not at all.
template <typename T, Link<T> T::*kLink>
class List {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] T* front() const noexcept { return head_; }
    [[nodiscard]] static T* after(const T& item) noexcept { return (item.*kLink).next; }
    [[nodiscard]] static bool holds(const T& item) noexcept { return (item.*kLink).listed(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// No effect if it is in the list.
    void push_back(T& item) noexcept {
        Link<T>& link = item.*kLink;
        if (link.listed()) return;
        link = {tail_, nullptr};
        (tail_ != nullptr ? (tail_->*kLink).next : head_) = &item;
        tail_ = &item;
        ++size_;
    }
    /// No effect if it is not in the list.
    void remove(T& item) noexcept {
        Link<T>& link = item.*kLink;
        if (!link.listed()) return;
        (link.previous != nullptr ? (link.previous->*kLink).next : head_) = link.next;
        (link.next != nullptr ? (link.next->*kLink).previous : tail_) = link.previous;
        link = {};
        --size_;
    }
    void rotate() noexcept {
        if (head_ == tail_) return;
        T& item = *head_;
        remove(item);
        push_back(item);
    }

private:
    T* head_ = nullptr;
    T* tail_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace ulc::urtp
