// SPDX-License-Identifier: BSD-3-Clause
// The tags that libulc keeps for itself, and where those of users end (client/ulc_internal.h has
// the classes). Each tag names one kind of message between libraries.
#pragma once

#include <cstdint>

namespace ulc::client {

/// User receives have it in their mask, so that they match no tag that has it.
inline constexpr std::uint64_t kUserTagBit = std::uint64_t{1} << 63;
/// Tags of users are below.
inline constexpr std::uint64_t kUserTagsEnd = kUserTagBit;
/// Tags of libulc have both of these bits.
inline constexpr std::uint64_t kLibulcTags = std::uint64_t{3} << 62;

[[nodiscard]] constexpr bool is_of_libulc(std::uint64_t tag) noexcept {
    return (tag & kLibulcTags) == kLibulcTags;
}

// --- groups (groups/)
inline constexpr std::uint64_t kTagReport = kLibulcTags | 1;
inline constexpr std::uint64_t kTagVerdict = kLibulcTags | 2;
inline constexpr std::uint64_t kTagInquiry = kLibulcTags | 3;
inline constexpr std::uint64_t kTagListening = kLibulcTags | 4;
inline constexpr std::uint64_t kTagUse = kLibulcTags | 5;
// --- announced messages (p2p/rendezvous.h)
inline constexpr std::uint64_t kTagAnnouncement = kLibulcTags | 6;
inline constexpr std::uint64_t kTagAsk = kLibulcTags | 7;
inline constexpr std::uint64_t kTagHold = kLibulcTags | 8;
inline constexpr std::uint64_t kTagRest = kLibulcTags | std::uint64_t{1} << 61;  ///< + id

}  // namespace ulc::client
