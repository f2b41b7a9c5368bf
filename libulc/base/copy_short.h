// SPDX-License-Identifier: BSD-3-Clause
// A copy of few octets, for payloads that lie in a record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ulc {

inline constexpr std::size_t kCopyShortMax = 112;

/// Copies at most kCopyShortMax octets without a call. No octet before or behind is read or
/// written.
[[gnu::always_inline]] inline void copy_short(void* to, const void* from,
                                              std::size_t octets) noexcept {
    auto* out = static_cast<std::byte*>(to);
    const auto* in = static_cast<const std::byte*>(from);
    const auto ends = [&](auto piece) {  // the first and the last octets, which may overlap
        auto last = piece;
        std::memcpy(&piece, in, sizeof piece);
        std::memcpy(&last, in + octets - sizeof last, sizeof last);
        std::memcpy(out, &piece, sizeof piece);
        std::memcpy(out + octets - sizeof last, &last, sizeof last);
    };
    struct Half {
        std::uint64_t words[2];
    };
    if (octets >= sizeof(Half)) {
        for (std::size_t at = sizeof(Half); at + sizeof(Half) < octets; at += sizeof(Half))
            std::memcpy(out + at, in + at, sizeof(Half));
        ends(Half{});
    } else if (octets >= 8) {
        ends(std::uint64_t{});
    } else if (octets >= 4) {
        ends(std::uint32_t{});
    } else if (octets > 0) {
        out[0] = in[0];
        out[octets / 2] = in[octets / 2];
        out[octets - 1] = in[octets - 1];
    }
}

}  // namespace ulc
