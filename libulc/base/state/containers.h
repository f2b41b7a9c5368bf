// SPDX-License-Identifier: BSD-3-Clause
// State of the containers of base/ and of the standard library, for the lists of ULC_STATE.
// Counts are bounded by the octets that are left; an owner that knows a smaller bound judges it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bounded.h"
#include "base/growing_ring.h"
#include "base/state/archive.h"

namespace ulc::state {

/// Structs of octets alone, which are the same on every machine.
template <class T>
concept Octets =
    std::is_class_v<T> && alignof(T) == 1 && std::has_unique_object_representations_v<T> &&
    !requires(T & value, Archive& archive) {
    value.fields(archive);
};

template <Octets T>
void fields(Archive& archive, T& value) {
    archive.octets(std::as_writable_bytes(std::span(&value, 1)));
}

inline void fields(Archive& archive, std::string& text) { archive.text(text, UINT32_MAX); }

template <class T>
void fields(Archive& archive, std::vector<T>& list) {
    archive.sequence(list, UINT32_MAX, "a list is too long");
}

inline void fields(Archive& archive, std::vector<bool>& bits) {
    const std::size_t size = archive.count(bits.size(), UINT32_MAX, "a list is too long");
    if (archive.importing()) bits.assign(size, false);
    for (std::size_t n = 0; n < size; ++n) {
        bool bit = bits[n];
        archive.values(bit);
        bits[n] = bit;
    }
}

template <class T>
void fields(Archive& archive, std::deque<T>& list) {
    const std::size_t size = archive.count(list.size(), UINT32_MAX, "a list is too long");
    if (archive.importing()) list.assign(size, T{});
    for (T& each : list)
        archive.values(each);
}

template <class A, class B>
void fields(Archive& archive, std::pair<A, B>& both) {
    archive.values(both.first, both.second);
}

template <class T>
void fields(Archive& archive, std::unique_ptr<T>& owned) {
    bool there = owned != nullptr;
    archive.values(there);
    if (archive.importing()) owned = there ? std::make_unique<T>() : nullptr;
    if (owned != nullptr) archive.values(*owned);
}

template <class T, std::size_t N>
void fields(Archive& archive, FixedVector<T, N>& list) {
    const std::size_t size = archive.count(list.size(), N, "a list is too long");
    if (archive.importing()) {
        list.clear();
        for (std::size_t n = 0; n < size; ++n)
            (void)list.push_back(T{});
    }
    for (T& each : list)
        archive.values(each);
}

/// An export takes each value out and puts it back, so the ring is as before, one turn later.
template <class T>
void fields(Archive& archive, GrowingRing<T>& ring) {
    if (archive.importing()) ring = {};
    for (std::size_t left = archive.count(ring.size(), UINT32_MAX, "a queue is too long"); left > 0;
         --left) {
        T each{};
        if (archive.exporting()) {
            each = ring.front();
            ring.pop_front();
        }
        archive.values(each);
        ring.push_back(each);
    }
}

}  // namespace ulc::state
