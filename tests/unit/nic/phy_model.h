// SPDX-License-Identifier: BSD-3-Clause
// The registers of the PHY in the register models.
#pragma once

#include <cstdint>

namespace ulc::nic {

/// Returns what the PHY answers for register `reg`. The link of a model comes up at the
/// `link_up_after_reads`-th read of its status; bit 2 of that is the link.
template <typename Model>
[[nodiscard]] std::uint16_t read_phy(Model& model, std::uint32_t reg) {
    if (reg == 1 && model.link_up_after_reads > 0 && --model.link_up_after_reads == 0)
        model.faults.link_down = false;
    if (reg == 1 && model.faults.link_down) return model.phy[1] & ~4U;
    return model.phy[reg];
}

}  // namespace ulc::nic
