// SPDX-License-Identifier: BSD-3-Clause
// Faults of a chip or its board, each with a sentence that says what to do.
#pragma once

#include <cstdint>
#include <string_view>

namespace ulc::nic {

enum class [[nodiscard]] Fault : std::uint8_t{
    kNone,   kGone,           kResetTimeout, kStopTimeout, kSetupTimeout, kBusError, kTransmitHung,
    kForgot, kCommandTimeout, kRomMissing,   kRomChecksum, kRomAddress,   kNoPhy,
};

/// Static storage.
[[nodiscard]] constexpr std::string_view text_of(Fault fault) noexcept {
    switch (fault) {
        case Fault::kNone:
            return "no fault";
        case Fault::kGone:
            return "the chip does not answer (all registers read ffffffff): it was removed or has "
                   "no "
                   "power; check the slot, then bind it again with dpdk-devbind.py";
        case Fault::kResetTimeout:
            return "the chip did not come out of reset; power-cycle the machine";
        case Fault::kStopTimeout:
            return "the chip did not stop; it is reset when the port starts again";
        case Fault::kSetupTimeout:
            return "the chip did not read its address filter: DMA does not reach memory; check "
                   "that bus "
                   "mastering is on (setpci -s ADDRESS COMMAND) and the IOMMU lets it through";
        case Fault::kBusError:
            return "fatal PCI bus error (CSR5<FBE>); the chip is reset";
        case Fault::kTransmitHung:
            return "the chip left a frame unsent for too long; it is reset";
        case Fault::kForgot:
            return "the chip forgot its state (it lost power, or something else reset it); it is "
                   "set "
                   "up again";
        case Fault::kCommandTimeout:
            return "the chip does not accept commands; it is reset";
        case Fault::kRomMissing:
            return "no serial ROM answers; give the address with the device argument mac=";
        case Fault::kRomChecksum:
            return "the checksum of the serial ROM is wrong; give the address with the device "
                   "argument mac=";
        case Fault::kRomAddress:
            return "the serial ROM holds no unicast address; give one with the device argument "
                   "mac=";
        case Fault::kNoPhy:
            return "no PHY answers on MII: boards without one, whose port is the chip's own or a "
                   "serial transceiver, are not supported; use a board with an MII PHY";
    }
    return "unknown fault";
}

}  // namespace ulc::nic
