// SPDX-License-Identifier: BSD-3-Clause
// Intrusive doubly linked lists: no allocation, constant-time insertion and removal. An item is in
// a list through a member of the item, so one item may be in several lists. Used by the transport
// and by the client.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulc {

template <typename T>
struct Links {
    T* previous = nullptr;  ///< nullptr: in no list; first(): the first item of one
    T* next = nullptr;

    [[nodiscard]] bool listed() const noexcept { return previous != nullptr; }
    /// Returns what no item has for an address. A flag would cost each item eight bytes.
    [[nodiscard]] static T* first() noexcept { return reinterpret_cast<T*>(std::uintptr_t{1}); }
};

template <typename T, Links<T> T::*kMember>
class List {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] T* front() const noexcept { return head_; }
    [[nodiscard]] static T* next(const T& item) noexcept { return (item.*kMember).next; }
    [[nodiscard]] static bool holds(const T& item) noexcept { return (item.*kMember).listed(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// Adds an item that is in no list by this member, or was in one that was forgotten as a whole.
    void push_back(T& item) noexcept {
        item.*kMember = {tail_ != nullptr ? tail_ : Links<T>::first(), nullptr};
        (tail_ != nullptr ? (tail_->*kMember).next : head_) = &item;
        tail_ = &item;
        ++size_;
    }
    /// Adds an item; no effect if it is in the list.
    void add(T& item) noexcept {
        if (!holds(item)) push_back(item);
    }
    /// Removes an item of this list; no effect if it is in none.
    void remove(T& item) noexcept {
        Links<T>& links = item.*kMember;
        if (!links.listed()) return;
        const bool is_first = links.previous == Links<T>::first();
        (is_first ? head_ : (links.previous->*kMember).next) = links.next;
        if (links.next != nullptr) {
            (links.next->*kMember).previous = links.previous;
        } else {
            tail_ = is_first ? nullptr : links.previous;
        }
        links = {};
        --size_;
    }
    /// Returns the first item, which is no longer in the list; nullptr: the list is empty.
    T* pop_front() noexcept {
        T* item = head_;
        if (item != nullptr) remove(*item);
        return item;
    }
    /// Moves the first item to the end.
    void rotate() noexcept {
        if (head_ != tail_) push_back(*pop_front());
    }

private:
    T* head_ = nullptr;
    T* tail_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace ulc
