// SPDX-License-Identifier: BSD-3-Clause
// Intrusive doubly linked lists: constant-time insertion and removal, no allocation. A node is in a
// list through a pair of members, so one object may be in several lists.
#pragma once

#include "base/check.h"

namespace ulc::client {

template <typename T>
struct Links {
    T* next = nullptr;
    T* prev = nullptr;
};

template <typename T, Links<T> T::*kMember>
class List {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] T* front() const noexcept { return head_; }
    [[nodiscard]] static T* next(const T& node) noexcept { return (node.*kMember).next; }

    void push_back(T& node) noexcept {
        Links<T>& links = node.*kMember;
        links.next = nullptr;
        links.prev = tail_;
        if (tail_ != nullptr) {
            (tail_->*kMember).next = &node;
        } else {
            head_ = &node;
        }
        tail_ = &node;
    }

    /// `node` must be in this list.
    void remove(T& node) noexcept {
        Links<T>& links = node.*kMember;
        if (links.prev != nullptr) {
            (links.prev->*kMember).next = links.next;
        } else {
            ULC_CHECK(head_ == &node);
            head_ = links.next;
        }
        if (links.next != nullptr) {
            (links.next->*kMember).prev = links.prev;
        } else {
            ULC_CHECK(tail_ == &node);
            tail_ = links.prev;
        }
        links = {};
    }

    T* pop_front() noexcept {
        T* node = head_;
        if (node == nullptr) return nullptr;
        Links<T>& links = node->*kMember;
        head_ = links.next;
        if (head_ != nullptr) {
            (head_->*kMember).prev = nullptr;
        } else {
            tail_ = nullptr;
        }
        links = {};
        return node;
    }

private:
    T* head_ = nullptr;
    T* tail_ = nullptr;
};

}  // namespace ulc::client
