// SPDX-License-Identifier: BSD-3-Clause
// Layouts of datagrams (docs/protocol/IP.md). Four octets stand in the place of a frame's Ethernet
// header: who its sender is says the source address. Multi-octet fields are big-endian.
//
//   | kind | low 3 octets of a group's address, or 0 | ULC frame from its header on |     a frame
//   | kind | 0 | from or count | name | … |                                     between two nodes
//   | kind | number | datagram | octets of a frame as above |                        a part
//   | kind | key | number | a frame as above, encrypted | tag |           sealed: seal/keys.h
//   | kind | 0 | from or count | name | … | proof |                   between two sealed nodes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/endian.h"
#include "seal/keys.h"
#include "udp/address.h"
#include "wire/ids.h"

namespace ulc::udp {

inline constexpr std::size_t kHeadOctets = 4;
inline constexpr std::size_t kEthernetOctets = 14;  ///< those that they replace

/// The first octets of the addresses of groups (engine/groups/multicast_filter.h).
inline constexpr std::array<std::uint8_t, 3> kGroupPrefix{0x03, 0x55, 0x4c};

/// The high half is the version.
enum class Kind : std::uint8_t {
    kFrame = 0x10,    ///< for the receiver
    kToAll = 0x11,    ///< a broadcast
    kToGroup = 0x12,  ///< for a group
    kPart = 0x13,     ///< a piece of one of these, for a path that does not take it whole
    kHello = 0x18,
    kWelcome = 0x19,
    kSealed = seal::kSealedForOne,  ///< holds one of those above
    kSealedForAll = seal::kSealedForAll,
    kSealedHello = 0x28,
    kSealedWelcome = 0x29,
};

using Head = std::array<std::byte, kHeadOctets>;

[[nodiscard]] inline bool is_group(const Mac& mac) noexcept { return (mac.octets[0] & 1U) != 0; }

/// Returns the octets in the place of the Ethernet header of a frame for that address.
[[nodiscard]] inline Head head_of(const Mac& to) noexcept {
    Head head{};
    head[0] = static_cast<std::byte>(!is_group(to)         ? Kind::kFrame
                                     : to == kBroadcastMac ? Kind::kToAll
                                                           : Kind::kToGroup);
    if (head[0] == static_cast<std::byte>(Kind::kToGroup))
        std::memcpy(&head[1], &to.octets[kGroupPrefix.size()], head.size() - 1);
    return head;
}

/// Sets `to` to the address that a head means; kFrame leaves it. False: it is no head of a frame.
[[nodiscard]] inline bool read_head(const Head& head, Mac& to) noexcept {
    switch (static_cast<Kind>(head[0])) {
        case Kind::kFrame:
            return true;
        case Kind::kToAll:
            to = kBroadcastMac;
            return true;
        case Kind::kToGroup:
            std::memcpy(to.octets.data(), kGroupPrefix.data(), kGroupPrefix.size());
            std::memcpy(&to.octets[kGroupPrefix.size()], &head[1], head.size() - 1);
            return true;
        default:
            return false;
    }
}

/// Asks the node at an address for its name, and to give the token back. It is longer than it has
/// to be, so that an answer is no amplification (RFC 9000 §8.1).
struct Hello {
    Kind kind = Kind::kHello;
    std::uint8_t zero = 0;
    Be16 from{};  ///< number of the first peer that the answer shall name
    Mac name;     ///< the sender's
    Be16 reserved{};
    Be64 token{};
    std::array<std::byte, 44> padding{};
};
static_assert(sizeof(Hello) == 64);

/// The answer. Behind it come addresses of other nodes.
struct Welcome {
    Kind kind = Kind::kWelcome;
    std::uint8_t zero = 0;
    Be16 count{};  ///< peers that the sender knows
    Mac name;      ///< the sender's
    Be16 entries{};
    Be64 token{};  ///< the question's
};
static_assert(sizeof(Welcome) == 20);

struct Entry {
    std::array<std::uint8_t, 16> ip{};
    Be16 port{};
    Be16 reserved{};
};
static_assert(sizeof(Entry) == 20);

/// In the place of a head. Parts of a datagram follow each other.
struct PartHead {
    Kind kind = Kind::kPart;
    std::uint8_t number = 0;  ///< from 0; with kLastPart if no other follows
    Be16 datagram{};          ///< rises by one for each that is cut
};
static_assert(sizeof(PartHead) == kHeadOctets);
inline constexpr std::uint8_t kLastPart = 0x80;
inline constexpr std::size_t kPartsMax = 16;

inline constexpr std::size_t kEntriesMax = 56;  ///< a Welcome fits into the least MTU of IPv6
inline constexpr std::size_t kControlMax =
    sizeof(Welcome) + kEntriesMax * sizeof(Entry) + sizeof(seal::Proof);
inline constexpr std::size_t kQuestionMax = 9216;  ///< one that tries the path

}  // namespace ulc::udp
