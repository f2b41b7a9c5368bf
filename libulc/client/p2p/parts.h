// SPDX-License-Identifier: BSD-3-Clause
// The beginning of a message, the match that decides which request takes it, and its end.
#pragma once

#include <cstdint>

#include "client/arrivals/arrival.h"
#include "client/p2p/matching.h"

namespace ulc::client {

/// A message that looks for its receive, of which `octets` bytes are at `head`.
struct Beginning {
    std::uint16_t source;
    std::uint32_t stream;
    std::uint64_t tag;
    std::uint64_t length;
    const unsigned char* head;
    std::uint64_t octets;
};

/// Returns the part for a message of a receive of many messages. last: it takes no more.
[[nodiscard]] Request& next_part(Request& many, const Beginning& message, bool& last) noexcept;

/// Returns the request that takes the message, out of its list; nullptr: none is posted.
[[nodiscard]] Request* match(Matcher& matcher, const Beginning& message) noexcept;

/// Ends a receive whose message has that length, and reports one that was cut.
void finish(Request& request, std::uint64_t length, const ErrorHandler& handler) noexcept;

}  // namespace ulc::client
