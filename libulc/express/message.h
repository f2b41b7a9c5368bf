// SPDX-License-Identifier: BSD-3-Clause
// Messages of libexpress on the wire: the tag of libulc names their kind and their handler. Pure.
// Used by Process.
//
//   tag:    bits 48 … 62 kind | 16 … 47 zero | 0 … 15 number of the handler
//   hello:  the id of the sender's build and handlers, 8 bytes, once to each process
//   enter:  no bytes; the sender has called express_sync()
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
inline constexpr std::uint64_t kHandlerMask = 0xffff;

[[nodiscard]] constexpr std::uint64_t tag_of(Kind kind, std::uint16_t handler = 0) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift | handler;
}

/// An arrival that has been checked, or the reason why it is dropped.
struct Checked {
    Kind kind = Kind::kUser;
    std::uint16_t handler = 0;
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
        return length == 0 ? checked : dropped(EXPRESS_DROP_LENGTH);
    }
    if (tag != tag_of(Kind::kUser, checked.handler)) return dropped(EXPRESS_DROP_KIND);
    if (!known) return dropped(EXPRESS_DROP_STRANGER);
    if (checked.handler >= handlers) return dropped(EXPRESS_DROP_HANDLER);
    if (length == 0 || length > EXPRESS_MESSAGE_MAX) return dropped(EXPRESS_DROP_LENGTH);
    return checked;
}

}  // namespace ulc::express
