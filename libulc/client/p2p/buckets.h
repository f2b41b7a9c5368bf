// SPDX-License-Identifier: BSD-3-Clause
// Hash chains of intrusive nodes. A chain keeps the order in which its nodes were added. Allocates
// only in reset(). Used by matching.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "base/tables/list.h"

namespace ulc::client {

template <typename T, Links<T> T::*kMember>
class Buckets {
public:
    using Chain = List<T, kMember>;

    /// Forgets all nodes and makes chains for `nodes` of them. False: out of memory; then there is
    /// no chain.
    [[nodiscard]] bool reset(std::size_t nodes) noexcept {
        const std::size_t wanted = std::bit_ceil(nodes < kLeast ? kLeast : nodes);
        try {
            chains_.assign(wanted < chains_.size() ? chains_.size() : wanted, Chain{});
        } catch (const std::bad_alloc&) {
            chains_.clear();
            return false;
        }
        shift_ = 64U - static_cast<unsigned>(std::countr_zero(chains_.size()));
        return true;
    }
    /// True if chains are so long with that number of nodes that reset() with a larger number pays.
    [[nodiscard]] bool crowded(std::size_t nodes) const noexcept {
        return nodes > 2 * chains_.size();
    }
    /// The chain of a key; reset() has succeeded.
    [[nodiscard]] Chain& chain(std::uint64_t tag, std::uint32_t source) noexcept {
        constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
        std::uint64_t hash = tag * kOdd + source;
        hash = (hash ^ hash >> 29) * kOdd;
        return chains_[hash >> shift_];
    }

private:
    static constexpr std::size_t kLeast = 64;

    std::vector<Chain> chains_;
    unsigned shift_ = 0;
};

}  // namespace ulc::client
