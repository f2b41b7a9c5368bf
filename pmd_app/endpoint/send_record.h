// SPDX-License-Identifier: BSD-3-Clause
// Reads the fields of a send's record (abi/records.h) in the engine's private copy.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "abi/placement.h"
#include "abi/records.h"
#include "abi/region.h"

namespace ulc::endpoint {

inline constexpr std::uint8_t kWhole = abi::kSubmitFirst | abi::kSubmitLast;
inline constexpr std::uint8_t kSendFlags = abi::kSubmitInline | abi::kSubmitHasTag |
                                           abi::kSubmitHasSubset | kWhole | abi::kSubmitNotify |
                                           abi::kSubmitNotifyAcked | abi::kSubmitDirect;

[[nodiscard]] inline bool is_inline(const abi::SubmissionRecord& r) noexcept {
    return (r.flags & abi::kSubmitInline) != 0;
}
[[nodiscard]] inline bool is_whole(const abi::SubmissionRecord& r) noexcept {
    return is_inline(r) || (r.flags & kWhole) == kWhole;
}
[[nodiscard]] inline std::uint32_t octets_of(const abi::SubmissionRecord& r) noexcept {
    return is_inline(r) ? r.inline_length : r.body.block.length;
}
[[nodiscard]] inline bool wants_answer(const abi::SubmissionRecord& r) noexcept {
    return !is_inline(r) || (r.flags & (abi::kSubmitNotify | abi::kSubmitNotifyAcked)) != 0;
}
[[nodiscard]] inline bool is_direct(const abi::SubmissionRecord& r) noexcept {
    return (r.flags & abi::kSubmitDirect) != 0;
}
/// Returns the place of a direct payload.
[[nodiscard]] inline abi::Place place_of(const abi::SubmissionRecord& r) noexcept {
    const std::uintptr_t address{r.body.block.address};
    const std::uint32_t count = r.body.block.offset;
    if (count == 0) return {.base = std::bit_cast<std::byte*>(address)};
    return {.pieces = std::bit_cast<const abi::Piece*>(address), .count = count};
}
/// Returns true if the pieces of a direct payload are at least as long as it.
[[nodiscard]] inline bool pieces_fit(const abi::SubmissionRecord& r) noexcept {
    const abi::Place place = place_of(r);
    if (place.count > abi::kPiecesMax) return false;
    std::uint64_t left = r.body.block.length;
    for (std::uint32_t n = 0; n < place.count; ++n) {
        left -= std::min<std::uint64_t>(left, place.pieces[n].length);
    }
    return place.count == 0 || left == 0;
}
/// Returns bytes [at, at + length) of the payload; nullptr if they are in more than one piece.
[[nodiscard]] inline const std::byte* payload_of(const abi::SubmissionRecord& r,
                                                 const abi::Region& region, std::uint32_t at,
                                                 std::uint32_t length) noexcept {
    if (is_inline(r)) return reinterpret_cast<const std::byte*>(r.body.inline_octets) + at;
    if (is_direct(r)) return place_of(r).contiguous(at, length);
    return region.tx(r.body.block.offset, r.body.block.length) + at;
}

/// Returns true if the payload ends the message.
[[nodiscard]] inline bool ends_message(const abi::SubmissionRecord& r) noexcept {
    return is_whole(r) || (r.flags & abi::kSubmitLast) != 0;
}
/// Returns the client's memory to send from.
[[nodiscard]] inline std::span<const std::byte> arena_of(const abi::Region& region) noexcept {
    const std::uint32_t octets = region.layout().tx_arena_octets;
    return {region.tx(0, octets), octets};
}
/// Returns true if a payload that is not inside its record lies in one piece in that memory.
[[nodiscard]] inline bool lies_in_arena(const abi::SubmissionRecord& r,
                                        const abi::Region& region) noexcept {
    if (!is_direct(r)) return true;  // shape_valid() saw to it
    const std::span<const std::byte> arena = arena_of(region);
    const std::byte* payload = payload_of(r, region, 0, r.body.block.length);
    const std::less_equal<> not_after;
    return payload != nullptr && not_after(arena.data(), payload) &&
           not_after(payload + r.body.block.length, arena.data() + arena.size());
}

}  // namespace ulc::endpoint
