// SPDX-License-Identifier: BSD-3-Clause
// Replaces the access to a card's registers by one to the model.
#include "drivers/i8255x/net_i8255x.h"
#include "tests/unit/i8255x/model.h"

namespace ulc::i8255x {
namespace {

I8255xModel& model(std::uint8_t* bar) { return *reinterpret_cast<I8255xModel*>(bar); }

}  // namespace

std::uint32_t MemoryBus::read32(Reg reg) noexcept { return model(bar_).read32(reg); }
std::uint16_t MemoryBus::read16(Reg reg) noexcept { return model(bar_).read16(reg); }
void MemoryBus::write32(Reg reg, std::uint32_t value) noexcept { model(bar_).write32(reg, value); }
void MemoryBus::write16(Reg reg, std::uint16_t value) noexcept { model(bar_).write16(reg, value); }
void MemoryBus::write8(Reg reg, std::uint8_t value) noexcept { model(bar_).write8(reg, value); }
void MemoryBus::wait(Nanos span) noexcept { model(bar_).wait(span); }

}  // namespace ulc::i8255x
