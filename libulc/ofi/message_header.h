// SPDX-License-Identifier: BSD-3-Clause
// The header that this provider puts in front of each message, and the layout of tags.
//
//   byte 0      version, 1
//   byte 1      flags: bit 0, the message has completion data
//               bit 1, it announces a message that the receiver may read (pull_wire.h)
//               bit 2, likewise, and the sender has the receiver's token
//   bytes 2-3   zero
//   bytes 4-11  completion data, big-endian; zero if there are none; of an announcement, the
//               address of its descriptor in the sender
//
// It has one size, because a receive is posted before it is known what will match. With it a
// payload of up to 28 bytes stays in one record. ULC's tag:
//
//   bit 63      0: the tags of coll.h have it
//   bit 62      1: a tagged message, 0: an untagged one
//   bits 61-0   the user's tag; zero in an untagged message. An untagged one with bit 61 set is
//               the provider's (pull_wire.h, rma/rma_wire.h)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/endian.h"
#include "ofi/pull/pull_wire.h"

namespace ulc::ofi {

inline constexpr std::uint64_t kTaggedBit = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kUserTagMask = kTaggedBit - 1;

/// The reason why a message is dropped.
enum class HeaderFault : std::uint8_t {
    kNone,
    kShort,
    kVersion,
    kFlags,
    kReserved,
    kData,
    kAnnouncement,
    kDescriptor,
    kAnswer,
    kRequest,
    kResponse,
};
inline constexpr std::size_t kHeaderFaults = 11;

struct MessageHeader {
    static constexpr std::uint8_t kVersion = 1;
    static constexpr std::uint8_t kHasData = 1;
    static constexpr std::uint8_t kAnnounces = 2;
    static constexpr std::uint8_t kProven = 4;

    std::uint8_t version;
    std::uint8_t flags;
    Be16 zero;
    Be64 data;

    [[nodiscard]] static MessageHeader plain() noexcept { return {kVersion, 0, 0, 0}; }
    [[nodiscard]] static MessageHeader with_data(std::uint64_t data) noexcept {
        return {kVersion, kHasData, 0, data};
    }
    [[nodiscard]] static MessageHeader announcing(std::uint64_t descriptor, bool has_data,
                                                  bool proven) noexcept {
        return {kVersion,
                static_cast<std::uint8_t>(kAnnounces | (has_data ? kHasData : 0) |
                                          (proven ? kProven : 0)),
                0, descriptor};
    }
    [[nodiscard]] bool announces() const noexcept { return (flags & kAnnounces) != 0; }
    [[nodiscard]] bool is_proven() const noexcept { return (flags & kProven) != 0; }
    [[nodiscard]] bool has_data() const noexcept { return (flags & kHasData) != 0; }
    /// Returns why this is no header of a message of `length` bytes, header included. The peer that
    /// sent it is not trusted.
    [[nodiscard]] HeaderFault fault(std::size_t length) const noexcept {
        if (length < sizeof(MessageHeader)) return HeaderFault::kShort;
        if (version != kVersion) return HeaderFault::kVersion;
        if ((flags & ~(kHasData | kAnnounces | kProven)) != 0) return HeaderFault::kFlags;
        if (zero != 0) return HeaderFault::kReserved;
        if (announces()) {
            const bool sound = length == sizeof(MessageHeader) + sizeof(Announcement) &&
                               data != 0 && data % kDescriptorAlignment == 0;
            return sound ? HeaderFault::kNone : HeaderFault::kAnnouncement;
        }
        if (is_proven()) return HeaderFault::kAnnouncement;
        if (!has_data() && data != 0) return HeaderFault::kData;
        return HeaderFault::kNone;
    }
};
static_assert(sizeof(MessageHeader) == 12 && alignof(MessageHeader) == 1);

}  // namespace ulc::ofi
