// SPDX-License-Identifier: BSD-3-Clause
// Judges ports that are to be the links of one net (port/bond_port.h), before the engine starts.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "port/port.h"
#include "seal/tokens.h"

namespace ulc::daemon {

/// Errors: kInvalid (MTUs differ, two ports have one address, or two ports are on different
/// segments). why: one sentence. seed: random bits, by which its frames are known. Sends a few, and
/// waits for them a second at most. Ports whose link is down are not tried.
[[nodiscard]] Err check_links(std::span<const Port> links, const std::string& net,
                              std::uint16_t ether_type, const seal::Seed& seed, std::string& why);

}  // namespace ulc::daemon
