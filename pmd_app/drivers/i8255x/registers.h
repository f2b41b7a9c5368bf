// SPDX-License-Identifier: BSD-3-Clause
// Control and status registers of the Intel 82557, 82558, 82559, 82550 and 82551 Fast Ethernet
// controllers.
//
// Names and bits are those of the "8255x 10/100 Mbps Ethernet Controller Family Open Source
// Software Developer Manual" (Intel, revision 1.3, January 2006; "SDM" in this folder), chapter 6,
// "Host software interface". The registers lie in 32 bytes of memory space.
#pragma once

#include <cstdint>

namespace ulc::i8255x {

/// Offset of a register from the start of the BAR, in bytes.
enum class Reg : std::uint8_t {
    kScb = 0x00,             ///< 32 bits: status word and command word together
    kStatusAck = 0x01,       ///< 8 bits: causes of interrupts; a one written clears its bit
    kCommand = 0x02,         ///< 8 bits: zero once the chip has accepted a command
    kInterruptMask = 0x03,   ///< 8 bits
    kGeneralPointer = 0x04,  ///< 32 bits: argument of a command
    kPort = 0x08,            ///< 32 bits: resets
    kEeprom = 0x0e,          ///< 16 bits: wires of the EEPROM
    kMdi = 0x10,             ///< 32 bits: management interface of MII
};

inline constexpr std::uint32_t kBarOctets = 32;

/// Value of any register when no chip answers (PCI master abort).
inline constexpr std::uint32_t kNoAnswer = 0xffff'ffff;

/// SCB status word: states of the command unit (CU) and the receive unit (RU).
namespace scb {
inline constexpr unsigned kCusShift = 6;
inline constexpr std::uint32_t kCusMask = 3;
inline constexpr unsigned kRusShift = 2;
inline constexpr std::uint32_t kRusMask = 0xf;
inline constexpr unsigned kCommandShift = 16;
inline constexpr std::uint32_t kCommandMask = 0xff;

enum class Cu : std::uint8_t { kIdle = 0, kSuspended = 1, kActive = 2, kActiveHigh = 3 };
enum class Ru : std::uint8_t { kIdle = 0, kSuspended = 1, kNoResources = 2, kReady = 4 };

[[nodiscard]] constexpr Cu cu_state(std::uint32_t value) noexcept {
    return static_cast<Cu>((value >> kCusShift) & kCusMask);
}
[[nodiscard]] constexpr Ru ru_state(std::uint32_t value) noexcept {
    return static_cast<Ru>((value >> kRusShift) & kRusMask);
}
/// Returns true if the chip has accepted the last command.
[[nodiscard]] constexpr bool is_accepted(std::uint32_t value) noexcept {
    return ((value >> kCommandShift) & kCommandMask) == 0;
}
/// M in the interrupt mask: no interrupt at all.
inline constexpr std::uint8_t kMaskAll = 1;
inline constexpr unsigned kMaskShift = 24;
/// Returns true if interrupts are masked, as they are from reset() on: something answers, and has
/// kept its state. The addresses of a card that was removed may read ones or zeros.
[[nodiscard]] constexpr bool is_masked(std::uint32_t value) noexcept {
    return ((value >> kMaskShift) & kMaskAll) != 0;
}
inline constexpr std::uint8_t kAckAll = 0xff;
}  // namespace scb

/// SCB command byte: the upper half is for the CU, the lower for the RU.
enum class Command : std::uint8_t {
    kRuStart = 0x01,
    kRuAbort = 0x04,
    kRuLoadBase = 0x06,
    kCuStart = 0x10,
    kCuResume = 0x20,
    kLoadDumpAddress = 0x40,
    kCuLoadBase = 0x60,
    kDumpAndReset = 0x70,
};

/// PORT: the low four bits select a function.
namespace port {
inline constexpr std::uint32_t kSoftwareReset = 0;
inline constexpr std::uint32_t kSelectiveReset = 2;
}  // namespace port

/// Wires of the EEPROM.
namespace eeprom {
inline constexpr std::uint16_t kSK = 1U << 0;  ///< clock
inline constexpr std::uint16_t kCS = 1U << 1;  ///< chip select
inline constexpr std::uint16_t kDI = 1U << 2;  ///< data into the EEPROM
inline constexpr std::uint16_t kDO = 1U << 3;  ///< data out of the EEPROM
}  // namespace eeprom

/// MDI control: one access to a register of the PHY.
namespace mdi {
inline constexpr std::uint32_t kDataMask = 0xffff;
inline constexpr unsigned kRegisterShift = 16;
inline constexpr unsigned kPhyShift = 21;
inline constexpr std::uint32_t kWrite = 1U << 26;
inline constexpr std::uint32_t kRead = 2U << 26;
inline constexpr std::uint32_t kReady = 1U << 28;
}  // namespace mdi

}  // namespace ulc::i8255x
