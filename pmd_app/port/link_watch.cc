// SPDX-License-Identifier: BSD-3-Clause
#include "port/link_watch.h"

#include <algorithm>

namespace ulc::port {

void LinkWatch::replied(std::size_t link, std::uint64_t token) noexcept {
    if (tokens_.is_recent(token, round_, kTokensValid)) links_[link].replied = true;
}

void LinkWatch::end_round() noexcept {
    ++round_;
    doubts_ = false;
    const bool any_replied =
        std::ranges::any_of(links_, [](const Link& link) { return link.asked && link.replied; });
    bool all_silent = true;
    for (Link& link : links_) {
        if (!link.asked || !any_replied) continue;
        const bool against = link.replied == link.silent;
        link.in_a_row = against ? static_cast<std::uint8_t>(link.in_a_row + 1) : std::uint8_t{0};
        if (link.in_a_row >= (link.silent ? kHeardAfter : kSilentAfter)) {
            link.silent = !link.silent;
            link.in_a_row = 0;
            if (link.silent) ++silences_;
        }
        doubts_ |= link.in_a_row > 0;
        all_silent &= link.silent;
    }
    for (Link& link : links_) {
        // Links that reply now and then are better than none.
        if (any_replied && all_silent && link.asked && link.replied) link = Link{};
        link.asked = link.replied = false;
    }
}

}  // namespace ulc::port
