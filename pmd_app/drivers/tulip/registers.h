// SPDX-License-Identifier: BSD-3-Clause
// Command and status registers (CSRs) of the DEC/Intel 21143 and 21140A Fast Ethernet controllers.
//
// Names and bits are those of the "21143 PCI/CardBus 10/100Mb/s Ethernet LAN Controller Hardware
// Reference Manual" (Intel 278074-001, October 1998; "HRM" in this folder), chapter 3, "CSR
// operation". A register is 32 bits wide; registers are 8 bytes apart in I/O and in memory space.
// If a register is read or cleared as a whole, the unused bits are named too: a map for readers of
// a register dump.
#pragma once

#include <cstdint>

namespace ulc::tulip {

/// Number of a register. Its offset in the BAR is offset_of(csr).
enum class Csr : std::uint8_t {
    kBusMode = 0,
    kTransmitPollDemand = 1,
    kReceivePollDemand = 2,
    kReceiveListBase = 3,
    kTransmitListBase = 4,
    kStatus = 5,
    kOperationMode = 6,
    kInterruptMask = 7,
    kMissedFrames = 8,
    kRomAndMii = 9,
    kSiaStatus = 12,  ///< on the 21140A: the general-purpose port
    kSiaConnectivity = 13,
    kSiaGeneralPort = 15,
};

/// Returns the bytes from the start of the BAR.
[[nodiscard]] constexpr std::uint32_t offset_of(Csr csr) noexcept {
    return static_cast<std::uint32_t>(csr) * 8;
}
inline constexpr std::uint32_t kBarOctets = 128;

/// Value of any register when no chip answers (PCI master abort).
inline constexpr std::uint32_t kNoAnswer = 0xffff'ffff;

/// CSR0, bus mode.
namespace csr0 {
inline constexpr std::uint32_t kSWR = 1U << 0;     ///< software reset
inline constexpr std::uint32_t kCAL16 = 2U << 14;  ///< cache alignment: 16 longwords
inline constexpr std::uint32_t kRME = 1U << 21;    ///< PCI read multiple
inline constexpr std::uint32_t kRLE = 1U << 23;    ///< PCI read line
inline constexpr std::uint32_t kWIE = 1U << 24;    ///< PCI write and invalidate
}  // namespace csr0

/// CSR5, status. The low 17 bits and kLC, kGPI are cleared by writing ones.
namespace csr5 {
inline constexpr std::uint32_t kTI = 1U << 0;    ///< a frame was sent whose TDES1<IC> was set
inline constexpr std::uint32_t kTPS = 1U << 1;   ///< transmit process stopped
inline constexpr std::uint32_t kTU = 1U << 2;    ///< transmit buffer unavailable: list done
inline constexpr std::uint32_t kTJT = 1U << 3;   ///< transmit jabber timer
inline constexpr std::uint32_t kUNF = 1U << 5;   ///< transmit underflow
inline constexpr std::uint32_t kRI = 1U << 6;    ///< a frame was received
inline constexpr std::uint32_t kRU = 1U << 7;    ///< receive buffer unavailable
inline constexpr std::uint32_t kRPS = 1U << 8;   ///< receive process stopped
inline constexpr std::uint32_t kRWT = 1U << 9;   ///< receive watchdog timer
inline constexpr std::uint32_t kFBE = 1U << 13;  ///< fatal bus error; all bus access has stopped
inline constexpr std::uint32_t kAIS = 1U << 15;  ///< abnormal interrupt summary
inline constexpr std::uint32_t kNIS = 1U << 16;  ///< normal interrupt summary
inline constexpr std::uint32_t kClearable = 0x0001'ffff;
inline constexpr unsigned kRSShift = 17;  ///< receive process state, 3 bits; 0 is stopped
inline constexpr unsigned kTSShift = 20;  ///< transmit process state, 3 bits; 0 is stopped
inline constexpr unsigned kEBShift =
    23;  ///< kind of bus error, 3 bits: 0 parity, 1 master abort, 2 target abort
inline constexpr std::uint32_t kStateMask = 7;
[[nodiscard]] constexpr std::uint32_t receive_state(std::uint32_t status) noexcept {
    return (status >> kRSShift) & kStateMask;
}
[[nodiscard]] constexpr std::uint32_t transmit_state(std::uint32_t status) noexcept {
    return (status >> kTSShift) & kStateMask;
}
[[nodiscard]] constexpr std::uint32_t bus_error(std::uint32_t status) noexcept {
    return (status >> kEBShift) & kStateMask;
}
}  // namespace csr5

/// CSR6, operation mode. FD, PS, HBD, TTM, SF and TR may change only while both processes are
/// stopped.
namespace csr6 {
inline constexpr std::uint32_t kSR = 1U << 1;           ///< start receive
inline constexpr std::uint32_t kPR = 1U << 6;           ///< promiscuous
inline constexpr std::uint32_t kPM = 1U << 7;           ///< pass all multicast
inline constexpr std::uint32_t kFD = 1U << 9;           ///< full duplex
inline constexpr std::uint32_t kOMInternal = 1U << 10;  ///< internal loopback
inline constexpr std::uint32_t kST = 1U << 13;          ///< start transmit
inline constexpr unsigned kTRShift = 14;                ///< transmit threshold, 2 bits
inline constexpr std::uint32_t kTRMask = 3U << kTRShift;
inline constexpr std::uint32_t kPS = 1U << 18;   ///< port select: MII or SYM
inline constexpr std::uint32_t kHBD = 1U << 19;  ///< heartbeat (SQE) check off: required with MII
inline constexpr std::uint32_t kSF = 1U << 21;   ///< store and forward: send whole frames only
inline constexpr std::uint32_t kTTM = 1U << 22;  ///< transmit threshold mode: 10 Mb/s
inline constexpr std::uint32_t kMBO = 1U << 25;  ///< must be one
}  // namespace csr6

/// CSR8, missed frames; cleared by reading.
namespace csr8 {
inline constexpr std::uint32_t kMissedMask = 0xffff;        ///< no descriptor was free
inline constexpr std::uint32_t kMissedOverflow = 1U << 16;  ///< more than 65,535 of them
inline constexpr unsigned kFifoShift = 17;                  ///< the receive FIFO overflowed
inline constexpr std::uint32_t kFifoMask = 0x7ff;
inline constexpr std::uint32_t kFifoOverflow = 1U << 28;  ///< more than 2,047 of them
}  // namespace csr8

/// CSR9, boot ROM, serial ROM and MII management.
namespace csr9 {
inline constexpr std::uint32_t kSromCS = 1U << 0;  ///< chip select
inline constexpr std::uint32_t kSromSK = 1U << 1;  ///< clock
inline constexpr std::uint32_t kSromDI = 1U << 2;  ///< data into the ROM
inline constexpr std::uint32_t kSromDO = 1U << 3;  ///< data out of the ROM
inline constexpr std::uint32_t kSR = 1U << 11;     ///< select the serial ROM
inline constexpr std::uint32_t kRD = 1U << 14;     ///< read operation
inline constexpr std::uint32_t kMDC = 1U << 16;    ///< MII management clock
inline constexpr std::uint32_t kMDO = 1U << 17;    ///< MII management data to the PHY
inline constexpr std::uint32_t kMII = 1U << 18;  ///< MII management: read, the PHY drives the line
inline constexpr std::uint32_t kMDI = 1U << 19;  ///< MII management data from the PHY
}  // namespace csr9

/// CSR15, SIA general port: the upper half is the general-purpose port of the 21143.
namespace csr15 {
inline constexpr unsigned kPortShift = 16;
}  // namespace csr15

}  // namespace ulc::tulip
