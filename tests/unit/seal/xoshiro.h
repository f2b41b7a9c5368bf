// SPDX-License-Identifier: BSD-3-Clause
// Predicts the numbers of base/prng.h from four of them, as a node would that is asked four times.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace ulc::test {

/// Returns the number that follows four numbers of a Prng, or any number if they are of another
/// source.
inline std::uint64_t predicted_after(std::span<const std::uint64_t, 4> seen) {
    // A number is rotl(5 s1, 7) × 9, which can be inverted: 5 and 9 are odd.
    constexpr std::uint64_t kFifth = 0xcccccccccccccccdU;
    constexpr std::uint64_t kNinth = 0x8e38e38e38e38e39U;
    static_assert(5 * kFifth == 1 && 9 * kNinth == 1);
    std::uint64_t s1[4];
    for (std::size_t n = 0; n < 4; ++n)
        s1[n] = std::rotr(seen[n] * kNinth, 7) * kFifth;
    // The steps are linear: s0' = s0^s3^s1, s1' = s1^s2^s0, s2' = s2^s0^(s1 << 17).
    const std::uint64_t s2_second = s1[0] ^ s1[1] ^ (s1[0] << 17U);
    const std::uint64_t s0_second = s1[2] ^ s1[1] ^ s2_second;
    const std::uint64_t s2_third = s2_second ^ s0_second ^ (s1[1] << 17U);
    const std::uint64_t s0_third = s1[3] ^ s1[2] ^ s2_third;
    const std::uint64_t s3_second = s0_third ^ s0_second ^ s1[1];
    const std::uint64_t s3_third = std::rotl(s3_second ^ s1[1], 45);
    const std::uint64_t s2_fourth = s2_third ^ s0_third ^ (s1[2] << 17U);
    const std::uint64_t s0_fourth = s0_third ^ s3_third ^ s1[2];
    const std::uint64_t next = s1[3] ^ s2_fourth ^ s0_fourth;
    return std::rotl(next * 5, 7) * 9;
}

}  // namespace ulc::test
