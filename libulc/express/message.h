// SPDX-License-Identifier: BSD-3-Clause
// Messages of libexpress on the wire: the tag of libulc names their kind and their handler. Pure.
// Used by Process.
//
//   tag:    bits 48 … 62 kind | 17 … 47 zero | 16 parity | 0 … 15 number of the handler
//   user:   parity: calls of express_sync() that the sender had begun, modulo 2
//   hello:  the id of the sender's build and handlers, 8 bytes, once to each process
//   enter:  counts of messages, 8 bytes each, of a round of express_sync() (sync_rounds.h); or one
//           byte, the error of ulc.h for which the sender cannot pass
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/endian.h"
#include "express/express.h"

namespace ulc::express {

enum class Kind : std::uint8_t { kUser = 1, kHello = 2, kEnter = 3 };

struct Hello {
    Be64 id;
};
static_assert(sizeof(Hello) == 8);

inline constexpr unsigned kKindShift = 48;
inline constexpr unsigned kParityShift = 16;
inline constexpr std::uint64_t kHandlerMask = 0xffff;

[[nodiscard]] constexpr std::uint64_t tag_of(Kind kind, std::uint16_t handler = 0,
                                             bool is_odd = false) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift |
           std::uint64_t{is_odd} << kParityShift | handler;
}

/// An arrival that has been checked, or the reason why it is dropped.
struct Checked {
    Kind kind = Kind::kUser;
    std::uint16_t handler = 0;
    bool is_odd = false;  ///< parity of kUser
    bool is_dropped = false;
    express_drop reason = EXPRESS_DROP_KIND;
};

/// Checks tag and length of a message. known: its sender has shown the same build.
[[nodiscard]] constexpr Checked check(std::uint64_t tag, std::uint64_t length, unsigned handlers,
                                      bool known) noexcept {
    Checked checked;
    const auto dropped = [&](express_drop reason) {
        checked.is_dropped = true;
        checked.reason = reason;
        return checked;
    };
    checked.handler = static_cast<std::uint16_t>(tag & kHandlerMask);
    if (tag == tag_of(Kind::kHello)) {
        checked.kind = Kind::kHello;
        return length == sizeof(Hello) ? checked : dropped(EXPRESS_DROP_LENGTH);
    }
    if (tag == tag_of(Kind::kEnter)) {
        checked.kind = Kind::kEnter;
        if (!known) return dropped(EXPRESS_DROP_STRANGER);
        const bool fits = length == 1 || (length > 0 && length % sizeof(Be64) == 0);
        return fits ? checked : dropped(EXPRESS_DROP_LENGTH);
    }
    checked.is_odd = (tag >> kParityShift & 1) != 0;
    if (tag != tag_of(Kind::kUser, checked.handler, checked.is_odd))
        return dropped(EXPRESS_DROP_KIND);
    if (!known) return dropped(EXPRESS_DROP_STRANGER);
    if (checked.handler >= handlers) return dropped(EXPRESS_DROP_HANDLER);
    if (length == 0 || length > EXPRESS_MESSAGE_MAX) return dropped(EXPRESS_DROP_LENGTH);
    return checked;
}

}  // namespace ulc::express
