// SPDX-License-Identifier: BSD-3-Clause
// Announced messages (docs/PROTOCOL.md §6.6): a long unicast goes out as an announcement with its
// first part, and the rest of it when a receive has matched. So the rest goes straight into the
// buffer, and a message without a receive takes little memory and blocks none behind it.
//
//   sender                                            receiver
//   Announcement + first part ──────────────────────▶ matched in its order, like any message
//          ◀─────────────────────────────── Ask{id, up_to}   its receive is known
//   Rest(id): bytes [first, up_to) ─────────────────▶ into the buffer
//
// An Ask also completes a send for which a match is enough (ULC_SEND_MATCHED). A sender that leaves
// sends the rest of all messages unasked. A receiver that holds too many bytes of one sender's
// unexpected messages says Hold; then that sender announces every message above kHeldOctetsMin,
// without a first part (but for short first pieces, kHeadOctetsMax), until it hears Go.
//
//   announcements.h, outbox_announced.cc   the sender's part
//   arrivals.h, inbox_announced.cc         the receiver's part
//   ../messages/control_messages.h         Ask, Hold, messages of a rank to itself
//
// All words come from a peer and are validated: a malformed one is counted and dropped.
#pragma once

#include <cstdint>

#include "base/endian.h"
#include "client/p2p/tags.h"

namespace ulc::client {

/// Precedes the first part.
struct Announcement {
    Be64 tag;
    Be64 length;  ///< bytes of the whole message
    Be32 id;      ///< among the sender's announcements
    Be32 first;   ///< bytes that follow
};
static_assert(sizeof(Announcement) == 24);

struct Ask {
    Be32 id;
    Be32 zero;
    Be64 up_to;  ///< bytes of the message that the receiver wants
};
static_assert(sizeof(Ask) == 16);

struct Hold {
    Be32 hold;  ///< 1: hold; 0: go
};

/// Bytes of the first part, at most.
inline constexpr std::uint32_t kFirstOctetsMax = 16384 - sizeof(Announcement);
/// A held sender sends shorter messages as ever: an announcement would take no less memory.
inline constexpr std::uint64_t kHeldOctetsMin = 257;

/// A held sender sends first pieces of up to this many bytes with the announcement.
inline constexpr std::uint64_t kHeadOctetsMax = 64;

/// True for the rest of a message.
[[nodiscard]] constexpr bool is_rest(std::uint64_t tag) noexcept {
    return (tag & ~std::uint64_t{UINT32_MAX}) == kTagRest;
}

}  // namespace ulc::client
