// SPDX-License-Identifier: BSD-3-Clause
// The ordering rule (docs/PROTOCOL.md §5) as pure predicates: the sender's, which decides whether a
// packet names a predecessor stream, and the receiver's, which judges an entry. Both the transport
// and the exhaustive model (tests/unit/urtp/after_rule_model_test.cc) call exactly these.
#pragma once

#include <cstdint>

#include "wire/ids.h"

namespace ulc::urtp {

/// Sender: a destination that the new packet shares with another stream must find that stream named
/// unless it acknowledged all of it. acknowledged: the destination's `next` of that stream as last
/// acknowledged.
[[nodiscard]] constexpr bool need_entry(Seq acknowledged, Seq tail) noexcept {
    return acknowledged != tail;
}

/// Sender: the number that an entry carries, the last one given out in the stream.
[[nodiscard]] constexpr Seq entry_number(Seq tail) noexcept { return Seq{tail.value - 1}; }

enum class Judgement : std::uint8_t {
    kMet,
    kUnmet,
    kUnmeetable,  ///< no honest source can have sent it
};

/// Receiver, of an entry (T, number) with T a stream that reaches it. next: of (source, T).
[[nodiscard]] constexpr Judgement judge_entry(Seq next, Seq number, std::uint32_t window) noexcept {
    if (number.before(next)) return Judgement::kMet;
    return number.in_window(next, window) ? Judgement::kUnmet : Judgement::kUnmeetable;
}

/// Receiver, of an entry that names the packet's own stream: numbering alone decides it.
[[nodiscard]] constexpr Judgement judge_own_entry(Seq packet, Seq number) noexcept {
    return number.before(packet) ? Judgement::kMet : Judgement::kUnmeetable;
}

}  // namespace ulc::urtp
