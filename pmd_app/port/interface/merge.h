// SPDX-License-Identifier: BSD-3-Clause
// The network interfaces under the links of one port, as one. Used by ports of several links.
#pragma once

#include <algorithm>

#include "port/port.h"

namespace ulc::port {

[[nodiscard]] inline const InterfaceState* interface_of(const Port& link) noexcept {
    return link.interface == nullptr ? nullptr : link.interface(link.context);
}

[[nodiscard]] inline bool has_lost_address(const Port& link) noexcept {
    const InterfaceState* state = interface_of(link);
    return state != nullptr && !state->keeps_own;
}

/// Adds a link's interface. The least MTU counts, and the first interface with another address is
/// named; the node is reached while one link keeps its address.
inline void merge_interface(const Port& link, bool is_first, InterfaceState& all) {
    const InterfaceState* state = interface_of(link);
    if (state == nullptr) return;
    if (is_first || all.name.empty()) {
        all = *state;
        return;
    }
    const std::uint16_t mtu = std::min(all.mtu, state->mtu);
    const bool keeps = all.keeps_own || state->keeps_own;
    const bool names_it = all.mac == all.own && (state->mac != state->own || state->mtu < all.mtu);
    if (names_it) all = *state;
    all.mtu = mtu;
    all.keeps_own = keeps;
}

}  // namespace ulc::port
