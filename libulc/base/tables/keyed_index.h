// SPDX-License-Identifier: BSD-3-Clause
// A hash table from numbers that strangers choose to small numbers. Used by the tables of node
// addresses (jobs/, port/).
//
// The places come from multiply-shift hashing with a secret odd factor, and collisions go to the
// next free place. The table is at least half empty. So a search looks at few places, whatever
// keys strangers choose: they do not know the factor.
//
// Invariant: between the first place of a key and the place it has, no place is free.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/prng.h"

namespace ulc {

class KeyedIndex {
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    /// seed: random bits that strangers do not know.
    explicit KeyedIndex(std::uint64_t seed) noexcept : factor_(Prng(seed).next() | 1U) {}

    /// Returns the value of the key; kNone: it is not there.
    [[nodiscard]] std::uint32_t find(std::uint64_t key) const noexcept {
        if (places_.empty()) return kNone;
        const Place& place = places_[place_of(key)];
        return place.value;
    }
    /// Adds a key that is not there. value: not kNone.
    void insert(std::uint64_t key, std::uint32_t value) {
        ULC_CHECK(value != kNone);
        if (2 * (size_ + 1) > places_.size()) grow();
        Place& place = places_[place_of(key)];
        ULC_CHECK(place.value == kNone);
        place = {key, value};
        ++size_;
    }
    /// Removes the key if it is there.
    void erase(std::uint64_t key) noexcept {
        if (places_.empty()) return;
        std::size_t hole = place_of(key);
        if (places_[hole].value == kNone) return;
        --size_;
        // Those behind it that could not have the hole before take it, each in turn.
        for (std::size_t at = next(hole); places_[at].value != kNone; at = next(at)) {
            const std::size_t wanted = first_place(places_[at].key);
            if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
            places_[hole] = places_[at];
            hole = at;
        }
        places_[hole] = {};
    }
    void clear() noexcept {
        places_.clear();
        size_ = 0;
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// Returns how many places all calls have looked at, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

private:
    struct Place {
        std::uint64_t key = 0;
        std::uint32_t value = kNone;
    };
    static constexpr std::size_t kSizeMin = 8;

    [[nodiscard]] std::size_t mask() const noexcept { return places_.size() - 1; }
    [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask(); }
    [[nodiscard]] std::size_t first_place(std::uint64_t key) const noexcept {
        return static_cast<std::size_t>((key * factor_) >> shift_);
    }
    /// Returns where the key is, or the free place for it.
    [[nodiscard]] std::size_t place_of(std::uint64_t key) const noexcept {
        std::size_t at = first_place(key);
        ++steps_;
        while (places_[at].value != kNone && places_[at].key != key) {
            at = next(at);
            ++steps_;
        }
        return at;
    }
    void grow() {
        std::vector<Place> old(places_.empty() ? kSizeMin : 2 * places_.size());
        old.swap(places_);
        shift_ = 64U - static_cast<unsigned>(std::countr_zero(places_.size()));
        for (const Place& place : old)
            if (place.value != kNone) places_[place_of(place.key)] = place;
    }

    std::uint64_t factor_;
    unsigned shift_ = 64;
    std::size_t size_ = 0;
    mutable std::uint64_t steps_ = 0;
    std::vector<Place> places_;  ///< a power of two, or none
};

}  // namespace ulc
