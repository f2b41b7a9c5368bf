// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a device string, the same for all drivers here.
#pragma once

#include <rte_devargs.h>

#include <cstdint>
#include <optional>

#include "drivers/common/mac_address.h"
#include "drivers/common/phy.h"
#include "drivers/common/ring_types.h"

namespace ulc::nic {

struct PortArguments {
    std::optional<MacAddress> mac;
    Media media = Media::kNegotiate;
    TransmitThreshold threshold = TransmitThreshold::k128;
    std::uint8_t collision_retries = 3;
};

/// For RTE_PMD_REGISTER_PARAM_STRING.
#define NIC_ARGUMENTS                                         \
    "mac=<address> media=auto|10half|10full|100half|100full " \
    "tx_threshold=128|256|512|1024|whole collision_retries=<0-100>"

/// Parses `given`, which may be nullptr. Returns 0, or -EINVAL after a line in the log that names
/// the values allowed.
int parse_arguments(const rte_devargs* given, PortArguments& arguments);

}  // namespace ulc::nic
