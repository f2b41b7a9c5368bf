// SPDX-License-Identifier: BSD-3-Clause
// A hash table from 64-bit keys to short lists of values, and a hash that makes such keys of names
// that strangers choose. Used by the index of jobs (jobs/).
//
// Keys are hashes, so a list may have values of another name: the caller compares. A list has its
// values in the order in which they were added. The work of a search does not grow with the number
// of keys.
//
// Invariant: each key in the index has a list that is not empty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "base/tables/keyed_index.h"

namespace ulc {

/// A hash with a secret: strangers do not know which names have equal hashes.
class KeyedHash {
public:
    /// seed: random bits that strangers do not know.
    explicit KeyedHash(std::uint64_t seed) noexcept {
        Prng prng(seed);
        start_ = prng.next();
        factor_ = prng.next() | 1U;
    }
    [[nodiscard]] std::uint64_t of(const void* name, std::size_t octets) const noexcept {
        const auto* at = static_cast<const std::byte*>(name);
        std::uint64_t hash = mixed(start_, octets);
        while (octets > 0) {
            std::uint64_t word = 0;
            const std::size_t length = std::min(octets, sizeof word);
            std::memcpy(&word, at, length);
            hash = mixed(hash, word);
            at += length;
            octets -= length;
        }
        return hash;
    }

private:
    [[nodiscard]] std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) const noexcept {
        hash = (hash ^ word) * factor_;
        return hash ^ (hash >> 29U);
    }

    std::uint64_t start_ = 0;
    std::uint64_t factor_ = 1;
};

template <typename Value>
class KeyedLists {
public:
    /// seed: random bits that strangers do not know.
    explicit KeyedLists(std::uint64_t seed) noexcept : index_(seed) {}

    /// Returns the values of the key. Valid until the next change.
    [[nodiscard]] std::span<const Value> find(std::uint64_t key) const noexcept {
        const std::span<const Value> values = all(key);
        steps_ += values.size();
        return values;
    }
    /// Returns the same for a caller that visits few of them. No step is counted for them.
    [[nodiscard]] std::span<const Value> all(std::uint64_t key) const noexcept {
        const std::uint32_t at = index_.find(key);
        return at == KeyedIndex::kNone ? std::span<const Value>{} : lists_[at];
    }
    void add(std::uint64_t key, const Value& value) {
        std::uint32_t at = index_.find(key);
        if (at == KeyedIndex::kNone) {
            at = vacant_list();
            index_.insert(key, at);
        }
        lists_[at].push_back(value);
    }
    /// Removes a value that the key has.
    void remove(std::uint64_t key, const Value& value) {
        const std::uint32_t at = index_.find(key);
        ULC_CHECK(at != KeyedIndex::kNone);
        std::vector<Value>& list = lists_[at];
        const auto found = std::find(list.begin(), list.end(), value);
        ULC_CHECK(found != list.end());
        list.erase(found);
        if (!list.empty()) return;
        index_.erase(key);
        vacant_.push_back(at);
    }
    void clear() noexcept {
        index_.clear();
        lists_.clear();
        vacant_.clear();
    }
    /// Returns the number of keys.
    [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }
    /// Returns how many places and values all calls have visited, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return index_.steps() + steps_; }

private:
    [[nodiscard]] std::uint32_t vacant_list() {
        if (vacant_.empty()) {
            lists_.emplace_back();
            return static_cast<std::uint32_t>(lists_.size() - 1);
        }
        const std::uint32_t at = vacant_.back();
        vacant_.pop_back();
        return at;
    }

    KeyedIndex index_;
    std::vector<std::vector<Value>> lists_;
    std::vector<std::uint32_t> vacant_;  ///< places of empty lists
    mutable std::uint64_t steps_ = 0;
};

}  // namespace ulc
