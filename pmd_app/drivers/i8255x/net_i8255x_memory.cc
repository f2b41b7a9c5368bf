// SPDX-License-Identifier: BSD-3-Clause
// Accesses a card's registers in memory space. A separate file, so that a test can give the rest of
// the glue another chip.
#include <rte_cycles.h>
#include <rte_io.h>

#include "drivers/i8255x/net_i8255x.h"

namespace ulc::i8255x {
namespace {

constexpr std::size_t offset_of(Reg reg) noexcept { return static_cast<std::size_t>(reg); }

}  // namespace

std::uint32_t MemoryBus::read32(Reg reg) noexcept { return rte_read32(bar_ + offset_of(reg)); }

std::uint16_t MemoryBus::read16(Reg reg) noexcept { return rte_read16(bar_ + offset_of(reg)); }

// Each write is preceded by a write barrier.
void MemoryBus::write32(Reg reg, std::uint32_t value) noexcept {
    rte_write32(value, bar_ + offset_of(reg));
}

void MemoryBus::write16(Reg reg, std::uint16_t value) noexcept {
    rte_write16(value, bar_ + offset_of(reg));
}

void MemoryBus::write8(Reg reg, std::uint8_t value) noexcept {
    rte_write8(value, bar_ + offset_of(reg));
}

void MemoryBus::wait(Nanos span) noexcept {
    rte_delay_us_block(static_cast<unsigned>((span + kMicrosecond - 1) / kMicrosecond));
}

}  // namespace ulc::i8255x
