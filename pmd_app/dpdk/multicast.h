// SPDX-License-Identifier: BSD-3-Clause
// The multicast filter of a device: how many addresses it compares, which ethdev does not report,
// and which it must pass.
#pragma once

#include <cstdint>
#include <span>

#include "port/port.h"

namespace ulc::dpdk {

/// Returns the number of addresses that a started device takes, at most 64; kPassesAll: it cannot
/// filter. After the call it passes no multicast if it can filter, and all if not. If more than a
/// few addresses share a hash table, some foreign multicasts pass too.
[[nodiscard]] std::uint16_t learn_multicast_filters(std::uint16_t ethdev);

/// Makes the device pass these and no others. Returns false if it passes all.
bool set_multicasts(std::uint16_t ethdev, std::span<const Mac> addresses);

}  // namespace ulc::dpdk
