// SPDX-License-Identifier: BSD-3-Clause
// Accesses a card's registers in memory space. A separate file, so that a test can give the rest of
// the glue another chip.
#include <rte_cycles.h>
#include <rte_io.h>

#include "drivers/tulip/net_tulip.h"

namespace ulc::tulip {

std::uint32_t MemoryBus::read(Csr csr) noexcept { return rte_read32(bar_ + offset_of(csr)); }

void MemoryBus::write(Csr csr, std::uint32_t value) noexcept {
    rte_write32(value, bar_ + offset_of(csr));  // preceded by a write barrier
}

void MemoryBus::wait(Nanos span) noexcept {
    rte_delay_us_block(static_cast<unsigned>((span + kMicrosecond - 1) / kMicrosecond));
}

}  // namespace ulc::tulip
