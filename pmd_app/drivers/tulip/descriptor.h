// SPDX-License-Identifier: BSD-3-Clause
// Descriptors of the 21143 and 21140A: four longwords in host memory, little-endian (CSR0<DBO>
// clear). HRM chapter 4, "Descriptor lists and data buffers".
//
//          31   30                    16  15                                      0
//  RDES0  |OWN| frame length (FL), CRC included | status of the frame               |
//  TDES0  |OWN| reserved                 | status of the frame                      |
//  xDES1  | control, 31..22              | size of buffer 2, 21..11 | of buffer 1, 10..0 |
//  xDES2  | bus address of buffer 1                                                 |
//  xDES3  | bus address of buffer 2                                                 |
//
// OWN is the hand-over: if set, the chip may access the descriptor and its buffers; if clear, the
// host may. The host fills the other longwords first and stores OWN with release order (give()). It
// loads the status with acquire order (status_of()) before it reads the fields that the chip wrote.
// The chip is the partner of both: it reads TDES0/RDES0 before the rest, and writes it back last
// (HRM, "Transmit process", "Receive process"). This is not enough on a machine whose DMA is not
// coherent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drivers/common/little_endian.h"
#include "drivers/common/ring_types.h"

namespace ulc::tulip {

using nic::kBufferOctetsMax;
using nic::kLongword;
using nic::kReceiveBufferOctetsMax;
using nic::little_endian;

/// Layout in memory.
struct Descriptor {
    std::uint32_t status;
    std::uint32_t control;
    std::uint32_t buffer1;
    std::uint32_t buffer2;
};
static_assert(sizeof(Descriptor) == 16 && offsetof(Descriptor, buffer2) == 12);

/// Distance from one descriptor to the next (CSR0<DSL> = 0).
inline constexpr std::size_t kDescriptorOctets = sizeof(Descriptor);
inline constexpr std::uint32_t kOwn = 1U << 31;

namespace rdes0 {
inline constexpr std::uint32_t kOF = 1U << 0;   ///< FIFO overflow: the frame is cut
inline constexpr std::uint32_t kCE = 1U << 1;   ///< CRC error
inline constexpr std::uint32_t kDB = 1U << 2;   ///< dribbling bit; harmless if the CRC is right
inline constexpr std::uint32_t kRE = 1U << 3;   ///< the PHY reported an error on MII
inline constexpr std::uint32_t kRW = 1U << 4;   ///< receive watchdog
inline constexpr std::uint32_t kCS = 1U << 6;   ///< late collision seen
inline constexpr std::uint32_t kTL = 1U << 7;   ///< above 1,518 bytes; no error by itself
inline constexpr std::uint32_t kLS = 1U << 8;   ///< last descriptor of the frame
inline constexpr std::uint32_t kFS = 1U << 9;   ///< first descriptor of the frame
inline constexpr std::uint32_t kMF = 1U << 10;  ///< multicast
inline constexpr std::uint32_t kRF = 1U << 11;  ///< runt
inline constexpr std::uint32_t kDE = 1U
                                     << 14;  ///< descriptor error: no next one when it was needed
inline constexpr std::uint32_t kES = 1U << 15;  ///< error summary
inline constexpr unsigned kFLShift = 16;
inline constexpr std::uint32_t kFLMask = 0x3fff;
}  // namespace rdes0

namespace rdes1 {
inline constexpr std::uint32_t kRER = 1U << 25;  ///< end of ring
}  // namespace rdes1

namespace tdes0 {
inline constexpr std::uint32_t kDE = 1U << 0;  ///< deferred; no error
inline constexpr std::uint32_t kUF = 1U << 1;  ///< underflow: memory was slower than the wire
inline constexpr unsigned kCCShift = 3;        ///< collision count, 4 bits
inline constexpr std::uint32_t kCCMask = 0xf;
inline constexpr std::uint32_t kEC = 1U << 8;   ///< excessive collisions: 16, dropped
inline constexpr std::uint32_t kLC = 1U << 9;   ///< late collision
inline constexpr std::uint32_t kNC = 1U << 10;  ///< no carrier
inline constexpr std::uint32_t kLO = 1U << 11;  ///< carrier lost
inline constexpr std::uint32_t kTO = 1U << 14;  ///< jabber time-out
inline constexpr std::uint32_t kES = 1U << 15;  ///< error summary
/// The value that the chip writes to a setup frame's descriptor.
inline constexpr std::uint32_t kSetupDone = 0x7fff'ffff;
}  // namespace tdes0

namespace tdes1 {
inline constexpr unsigned kTBS2Shift = 11;
inline constexpr std::uint32_t kFT0 =
    1U << 22;  ///< filter type: hash for multicast, one perfect address
inline constexpr std::uint32_t kTER = 1U << 25;  ///< end of ring
inline constexpr std::uint32_t kSET = 1U << 27;  ///< a setup frame
inline constexpr std::uint32_t kFS = 1U << 29;   ///< first descriptor of the frame
inline constexpr std::uint32_t kLS = 1U << 30;   ///< last descriptor of the frame
inline constexpr std::uint32_t kIC = 1U << 31;   ///< set CSR5<TI> when sent
}  // namespace tdes1

/// Returns status and OWN; the chip's earlier writes are visible after it.
[[nodiscard]] inline std::uint32_t status_of(Descriptor& d) noexcept {
    return little_endian(std::atomic_ref<std::uint32_t>(d.status).load(std::memory_order_acquire));
}

/// Hands `d` to the chip; all earlier stores are visible to it first.
inline void give(Descriptor& d) noexcept {
    std::atomic_ref<std::uint32_t>(d.status).store(little_endian(kOwn), std::memory_order_release);
}

/// Takes `d` from the chip, or marks it unused; only while the chip is stopped or does not own it.
inline void take_back(Descriptor& d) noexcept {
    std::atomic_ref<std::uint32_t>(d.status).store(0, std::memory_order_release);
}

}  // namespace ulc::tulip
