// SPDX-License-Identifier: BSD-3-Clause
// The names of objects on the wire: MAC addresses, ranks, handles, streams, sequence numbers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>

#include "base/group_handle.h"

namespace ulc {

struct Mac {
    std::array<std::uint8_t, 6> octets{};
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads a defaulted <=>.
    friend constexpr auto operator<=>(const Mac&, const Mac&) = default;
    /// Compared for each frame: two words, for which the compiler would call memcmp.
    friend bool operator==(const Mac& a, const Mac& b) noexcept {
        std::uint32_t a4, b4;
        std::uint16_t a2, b2;
        std::memcpy(&a4, a.octets.data(), 4);
        std::memcpy(&b4, b.octets.data(), 4);
        std::memcpy(&a2, a.octets.data() + 4, 2);
        std::memcpy(&b2, b.octets.data() + 4, 2);
        return ((a4 ^ b4) | static_cast<std::uint32_t>(a2 ^ b2)) == 0;
    }
};
static_assert(sizeof(Mac) == 6 && alignof(Mac) == 1);

inline constexpr Mac kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

/// Position of an endpoint in its job, 0 … size-1.
using Rank = std::uint16_t;
inline constexpr Rank kNoRank = 0xffff;

/// Names one endpoint of one incarnation of an engine. Chosen by the receiver: bit 31 clear, 19
/// bits of generation (random at engine start, one more at each reuse), 12 bits of table index.
using Handle = std::uint32_t;
inline constexpr std::uint32_t kHandleIndexBits = 12;
inline constexpr std::uint32_t kHandleIndexMask = (1U << kHandleIndexBits) - 1;

/// Names one group of one job on the wire: kGroupBit is set. The roster has the world group's.
using GroupHandle = std::uint32_t;

/// Names a stream of a given source: a group handle, or the rank of the single receiver.
using StreamId = std::uint32_t;
[[nodiscard]] constexpr StreamId unicast_to(Rank receiver) noexcept { return receiver; }

/// Packet number within a stream; 32 bits, compared as serial numbers (RFC 1982).
struct Seq {
    std::uint32_t value = 0;

    friend constexpr bool operator==(Seq, Seq) = default;
    /// Returns the signed distance from b to a; meaningful while the two are less than 2^31 apart.
    friend constexpr std::int32_t operator-(Seq a, Seq b) noexcept {
        return static_cast<std::int32_t>(a.value - b.value);
    }
    friend constexpr Seq operator+(Seq a, std::uint32_t n) noexcept { return Seq{a.value + n}; }
    constexpr Seq& operator++() noexcept {
        ++value;
        return *this;
    }
    [[nodiscard]] constexpr bool before(Seq other) const noexcept { return *this - other < 0; }
    /// True if base <= *this < base + length, as serial numbers.
    [[nodiscard]] constexpr bool in_window(Seq base, std::uint32_t length) const noexcept {
        return value - base.value < length;
    }
};

}  // namespace ulc
