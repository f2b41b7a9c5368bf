// SPDX-License-Identifier: BSD-3-Clause
// The driver's access to its chip: registers and time. It is an argument of everything that is not
// a ring, so that the same code runs on a card, on QEMU's model and on the register model of the
// tests.
#pragma once

#include "base/units.h"
#include "drivers/tulip/registers.h"

namespace ulc::tulip {

/// Registers of one chip. Not for the path of a frame, which only rings a doorbell
/// (Chip::demand_*).
class Bus {
public:
    virtual ~Bus() = default;
    /// Returns kNoAnswer if nothing answers.
    [[nodiscard]] virtual std::uint32_t read(Csr csr) noexcept = 0;
    /// Makes earlier stores to memory visible to the chip before it sees this write.
    virtual void write(Csr csr, std::uint32_t value) noexcept = 0;
    /// Returns after at least `span` ns. The driver waits only by this.
    virtual void wait(Nanos span) noexcept = 0;
};

}  // namespace ulc::tulip
