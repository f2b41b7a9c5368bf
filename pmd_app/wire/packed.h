// SPDX-License-Identifier: BSD-3-Clause
// Packets of whole messages in jobs whose profile has the word `pack` (docs/protocol/MESSAGES.md
// §6.7): a list of messages, back to back.
//
//    0                   1
//    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
//   +-+-----------------------------+--------------- - - -+----------- - - -+
//   |T|           length            |  tag, 8 octets if T |     payload     |
//   +-+-----------------------------+--------------- - - -+----------- - - -+
//
// Reads bytes of the network: a list is judged as a whole before its first message is used.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "base/endian.h"

namespace ulc::wire {

inline constexpr unsigned kPackedMax = 64;  ///< messages of a packet
inline constexpr std::uint32_t kPackedOctetsMax = 0x7fff;

/// Octets in front of a message's payload.
[[nodiscard]] constexpr std::uint32_t packed_head_octets(bool has_tag) noexcept {
    return has_tag ? 10 : 2;
}

struct PackedMessage {
    const std::byte* payload = nullptr;
    std::uint32_t length = 0;
    std::uint64_t tag = 0;  ///< 0 without one
    bool has_tag = false;
};

/// Writes the head of a message of at most kPackedOctetsMax. Returns where its payload goes.
inline std::byte* put_packed_head(std::byte* at, std::uint32_t length, bool has_tag,
                                  std::uint64_t tag) noexcept {
    const Be16 word(static_cast<std::uint16_t>(length | (has_tag ? 0x8000U : 0)));
    std::memcpy(at, &word, sizeof word);
    if (has_tag) {
        const Be64 name(tag);
        std::memcpy(at + sizeof word, &name, sizeof name);
    }
    return at + packed_head_octets(has_tag);
}

/// Takes the first message of a list. Returns the octets that it has there; 0: it is not whole.
[[nodiscard]] inline std::uint32_t take_packed(std::span<const std::byte> list,
                                               PackedMessage& message) noexcept {
    Be16 word;
    if (list.size() < sizeof word) return 0;
    std::memcpy(&word, list.data(), sizeof word);
    const std::uint16_t value = word;
    message.has_tag = (value & 0x8000U) != 0;
    message.length = value & kPackedOctetsMax;
    const std::uint32_t head = packed_head_octets(message.has_tag);
    if (list.size() < head + message.length) return 0;
    message.tag = 0;
    if (message.has_tag) {
        Be64 name;
        std::memcpy(&name, list.data() + sizeof word, sizeof name);
        message.tag = name;
    }
    message.payload = list.data() + head;
    return head + message.length;
}

/// Returns the number of messages of a list; 0: it is malformed.
[[nodiscard]] inline unsigned count_packed(std::span<const std::byte> list) noexcept {
    unsigned count = 0;
    PackedMessage message;
    while (!list.empty()) {
        const std::uint32_t octets = take_packed(list, message);
        if (octets == 0 || ++count > kPackedMax) return 0;
        list = list.subspan(octets);
    }
    return count;
}

}  // namespace ulc::wire
