// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a job, one bit each. A summary of one bit for every 64th word says which words are not
// zero, so a set with few ranks is emptied without reading the others.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "wire/ids.h"

namespace ulc::endpoint {

class RankSet {
public:
    /// Resizes for ranks 0 … ranks − 1; empty afterwards.
    void resize(std::size_t ranks) {
        words_.assign((ranks + 63) / 64, 0);
        summary_ = 0;
        size_ = ranks;
    }
    /// Ranks below it may be added.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    void clear() noexcept {
        for (; summary_ != 0; summary_ &= summary_ - 1)
            for (std::size_t at = std::countr_zero(summary_); at < words_.size(); at += 64)
                words_[at] = 0;
    }
    void add(std::uint32_t rank) noexcept {
        ULC_CHECK(rank < size_);
        const std::size_t at = rank / 64;
        words_[at] |= 1ULL << (rank & 63U);
        summary_ |= 1ULL << (at & 63U);
    }
    [[nodiscard]] bool empty() const noexcept { return summary_ == 0; }
    [[nodiscard]] bool contains(std::uint32_t rank) const noexcept {
        return rank < size_ && (words_[rank / 64] >> (rank & 63U) & 1U) != 0;
    }

private:
    std::vector<std::uint64_t> words_;
    std::uint64_t summary_ = 0;  ///< bit i: one of the words i, i + 64, … is not zero
    std::size_t size_ = 0;
};

}  // namespace ulc::endpoint
