// SPDX-License-Identifier: BSD-3-Clause
// Payloads that lie in up to kPiecesMax pieces of memory (ulc_piece). Used by the send and the
// receive path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/copy_short.h"
#include "client/ulc.h"

namespace ulc::client {

inline constexpr unsigned kPiecesMax = ULC_PIECES_MAX;

/// The place of a payload: `count` pieces, or, if count is 0, one at `base`.
struct Pieces {
    unsigned char* base = nullptr;
    const ulc_piece* list = nullptr;
    unsigned count = 0;
    std::uint64_t length = 0;

    /// One piece of memory; base may be nullptr if length is 0.
    [[nodiscard]] static Pieces one(const void* base, std::uint64_t length) noexcept {
        Pieces pieces;
        pieces.base = static_cast<unsigned char*>(const_cast<void*>(base));
        pieces.length = length;
        return pieces;
    }
    /// Copies all of a short payload (kCopyShortMax) to `to`.
    void read_short(unsigned char* to) const noexcept;
    /// The caller's list. False: too many, one without memory, or more bytes than 2^63.
    [[nodiscard]] static bool of(const ulc_piece* list, unsigned count, Pieces& out) noexcept {
        if (count > kPiecesMax || (list == nullptr && count > 0)) return false;
        out = {};
        for (unsigned n = 0; n < count; ++n) {
            if (list[n].base == nullptr && list[n].length > 0) return false;
            if (list[n].length > UINT64_MAX / 2 - out.length) return false;
            out.length += list[n].length;
        }
        if (count == 1) {
            out.base = static_cast<unsigned char*>(list[0].base);
        } else if (count > 1) {
            out.list = list;
            out.count = count;
        }
        return true;
    }
};

/// Calls copy(memory, bytes) for each part of [at, at + length) of the pieces, in order.
template <typename Copy>
void each_part(const ulc_piece* list, unsigned count, std::uint64_t at, std::uint64_t length,
               Copy copy) noexcept {
    for (unsigned n = 0; n < count && length > 0; ++n) {
        if (at >= list[n].length) {
            at -= list[n].length;
            continue;
        }
        const std::uint64_t part = std::min<std::uint64_t>(list[n].length - at, length);
        copy(static_cast<unsigned char*>(list[n].base) + at, part);
        at = 0;
        length -= part;
    }
}

/// Copies [at, at + length) of the pieces to `to`.
inline void gather(const ulc_piece* list, unsigned count, std::uint64_t at, unsigned char* to,
                   std::uint64_t length) noexcept {
    each_part(list, count, at, length, [&to](const unsigned char* from, std::uint64_t bytes) {
        std::memcpy(to, from, bytes);
        to += bytes;
    });
}

[[gnu::always_inline]] inline void Pieces::read_short(unsigned char* to) const noexcept {
    if (list == nullptr) [[likely]] {
        copy_short(to, base, length);
    } else {
        gather(list, count, 0, to, length);
    }
}

/// Copies `length` bytes to the places from `at` on; what does not fit is left out.
inline void scatter(const ulc_piece* list, unsigned count, std::uint64_t at,
                    const unsigned char* from, std::uint64_t length) noexcept {
    each_part(list, count, at, length, [&from](unsigned char* to, std::uint64_t bytes) {
        std::memcpy(to, from, bytes);
        from += bytes;
    });
}

}  // namespace ulc::client
