// The multicast filter of a device: how many addresses it compares, which ethdev does not say, and what it is to pass.
#pragma once

#include <cstdint>
#include <span>

#include "port/port.h"

namespace ulc::dpdk {

/// Addresses that a started device takes, at most 64; kPassesAll: it cannot filter. From then on it passes no multicast if it can
/// filter, and all if not. Where more than a few addresses share a hash table, some foreign multicasts pass besides.
[[nodiscard]] std::uint16_t learn_multicast_filters(std::uint16_t ethdev);

/// The device passes these and no others. False: it passes all.
bool set_multicasts(std::uint16_t ethdev, std::span<const Mac> addresses);

}  // namespace ulc::dpdk
