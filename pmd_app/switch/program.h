// SPDX-License-Identifier: BSD-3-Clause
// Options of ulc-switch, and its statistics as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "switch/switch.h"

namespace ulc::ether_switch {

struct SwitchOptions {
    unsigned ports = 0;  ///< memif server ports 0 … ports-1 on `socket`
    std::string socket;
    std::vector<std::string> devices;  ///< any further ports
    std::uint16_t mtu = 0;
    std::uint32_t memory_mb = 0;  ///< 0: from the number of ports
    std::string stats_file;
    std::vector<std::string> eal_args;
    SwitchConfig config;

    /// The device string of every port, in port order.
    [[nodiscard]] std::vector<std::string> all_devices() const;
};

/// False: the program should end with `status` (help was asked for, or an error was printed).
bool parse_switch_options(int argc, const char* const* argv, SwitchOptions& out, int& status);

/// {"seed": …, "ports": [{"device": …, counters …}], "total": {…}}
[[nodiscard]] std::string statistics_json(const Switch& ether_switch, const SwitchOptions& options);

}  // namespace ulc::ether_switch
