// SPDX-License-Identifier: BSD-3-Clause
// A short frame: a whole message in one DATA or MCAST packet, with at most an acknowledgement
// (DATA) and a tag, without a CRC. Most messages are such a frame. has_short_head() and read_body()
// are its parser: they judge its shape. The transport judges whose it is, and whether it is next.
//
//   | Ethernet 14 | header 14 | AckEntry 12, if flagged | tag 8, if flagged | payload | padding |
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire/header.h"

namespace ulc::wire {

/// The parts of a short frame that differ from frame to frame of a stream, but its number.
struct ShortBody {
    const AckEntry* ack = nullptr;  ///< nullptr: none
    const std::byte* payload = nullptr;
    std::uint64_t tag = 0;
    std::uint32_t length = 0;  ///< octets of the payload
    std::uint8_t flags = 0;    ///< Flag

    [[nodiscard]] bool has_tag() const noexcept { return (flags & kFlagTag) != 0; }
    [[nodiscard]] bool asks() const noexcept { return (flags & kFlagAckNow) != 0; }
};

/// The four octets that short frames have in common, and the flags that they may differ in.
struct ShortWord {
    Be16 ether_type;
    std::uint8_t version_type = kVersion << 4U | static_cast<unsigned>(FrameType::kData);
    std::uint8_t flags = kFlagFirst | kFlagLast;

    static constexpr std::size_t kOffset = offsetof(EthernetHeader, type);
    static constexpr std::uint8_t kFlagsFree = kFlagAck | kFlagTag | kFlagAckNow;
    static constexpr std::uint8_t kPartFlagsFree = kFlagAck | kFlagAckNow;

    [[nodiscard]] static std::uint32_t bits_of(const void* at) noexcept {
        std::uint32_t bits;
        std::memcpy(&bits, at, sizeof bits);
        return bits;
    }
    /// Returns the bits in which a MCAST frame differs.
    [[nodiscard]] static std::uint32_t mcast_bits() noexcept {
        constexpr auto kTypes =
            static_cast<unsigned>(FrameType::kData) ^ static_cast<unsigned>(FrameType::kMcast);
        const ShortWord types{Be16(0), static_cast<std::uint8_t>(kTypes), 0};
        return bits_of(&types);
    }
};
static_assert(sizeof(ShortWord) == 4);

/// Reads the body of a frame whose head is that of a short frame. octets: at least
/// kFrameOctetsMin, which hold the headers. Returns false if the frame is not whole; reads no octet
/// outside of it.
[[nodiscard]] [[gnu::always_inline]] inline bool read_body(const std::byte* frame,
                                                           std::size_t octets,
                                                           ShortBody& out) noexcept {
    const auto& header = *reinterpret_cast<const Header*>(frame + sizeof(EthernetHeader));
    out.flags = header.flags;
    out.length = header.length;
    std::size_t at = kHeadOctets;
    out.ack = nullptr;
    if ((out.flags & kFlagAck) != 0) {
        out.ack = reinterpret_cast<const AckEntry*>(frame + at);
        at += sizeof(AckEntry);
    }
    out.tag = 0;
    if ((out.flags & kFlagTag) != 0) {
        out.tag = *reinterpret_cast<const Be64*>(frame + at);
        at += sizeof(Be64);
    }
    out.payload = frame + at;
    return at + out.length <= octets;
}
static_assert(kHeadOctets + sizeof(AckEntry) + sizeof(Be64) <= kFrameOctetsMin);

/// Returns whether the head is that of DATA to an endpoint, or of MCAST to a group, with these
/// flags and any of those that are free. frame: at least kFrameOctetsMin.
[[nodiscard]] inline bool has_data_head(const std::byte* frame, std::uint16_t ether_type,
                                        std::uint8_t flags, std::uint8_t free) noexcept {
    const ShortWord expected{.ether_type = ether_type, .flags = flags};
    const ShortWord mask{Be16(0xffff), 0xff, static_cast<std::uint8_t>(~free)};
    const std::uint32_t differs =
        ShortWord::bits_of(frame + ShortWord::kOffset) ^ ShortWord::bits_of(&expected);
    const auto& header = *reinterpret_cast<const Header*>(frame + sizeof(EthernetHeader));
    const std::uint32_t wrong = differs & ShortWord::bits_of(&mask);
    return wrong == (is_group(header.handle) ? ShortWord::mcast_bits() : 0);
}

/// Returns whether the head is that of a short frame.
[[nodiscard]] inline bool has_short_head(const std::byte* frame,
                                         std::uint16_t ether_type) noexcept {
    return has_data_head(frame, ether_type, kFlagFirst | kFlagLast, ShortWord::kFlagsFree);
}
/// Returns whether the head is that of a packet from the middle of a message.
[[nodiscard]] inline bool has_part_head(const std::byte* frame, std::uint16_t ether_type) noexcept {
    return has_data_head(frame, ether_type, 0, ShortWord::kPartFlagsFree);
}

}  // namespace ulc::wire
