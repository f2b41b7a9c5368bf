// SPDX-License-Identifier: BSD-3-Clause
// Which of the last numbers of a sender have come, so that a datagram counts once (RFC 6479).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ulc::seal {

/// Constant cost for each number. One thread.
class Window {
public:
    /// Numbers below the highest one that may still come; older ones are refused.
    static constexpr std::uint64_t kNumbers = 4096;

    /// Numbers below `first` are old.
    explicit Window(std::uint64_t first) noexcept : first_(first), end_(first) {}

    /// Returns whether the number has not come yet and is not too old.
    [[nodiscard]] bool is_fresh(std::uint64_t number) const noexcept {
        if (number >= end_) return true;
        if (number < first_ || end_ - number > kNumbers) return false;
        return (words_[number / 64 % kWords] >> (number % 64) & 1U) == 0;
    }
    /// Notes a fresh number, whose datagram was authentic.
    void take(std::uint64_t number) noexcept {
        if (number >= end_) pass(number + 1);
        words_[number / 64 % kWords] |= std::uint64_t{1} << (number % 64);
    }
    /// Makes `end` the first number above the window, if it is above it now.
    void pass(std::uint64_t end) noexcept {
        if (end <= end_) return;
        // The words behind that of the highest number so far hold older numbers.
        const std::uint64_t highest = (end - 1) / 64;
        const std::uint64_t last = end_ == 0 ? 0 : (end_ - 1) / 64;
        const std::uint64_t words = std::min<std::uint64_t>(highest - last, kWords);
        for (std::uint64_t n = 0; n < words; ++n)
            words_[(highest - n) % kWords] = 0;
        end_ = end;
    }
    [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

private:
    static constexpr std::size_t kWords = 2 * kNumbers / 64;  ///< a power of two

    std::uint64_t first_;
    std::uint64_t end_;  ///< behind the highest number
    std::array<std::uint64_t, kWords> words_{};
};

}  // namespace ulc::seal
