// SPDX-License-Identifier: BSD-3-Clause
// Blocks in host memory that the chip reads and writes, little-endian. SDM chapter 6, "Shared
// memory structures".
//
//                31                16  15                 0
//  command      | command word       | status word         |   every command block begins so
//  block        | bus address of the next block            |
//  transmit     | bus address of the buffer descriptors    |   here: those behind the block
//               | number | threshold | byte count: 0       |
//               | address, size of each buffer             |
//
//  receive      | command word       | status word         |   the frame follows it at once
//  frame        | bus address of the next one              |   ("simplified mode")
//  descriptor   | reserved                                 |
//               | size of the buffer | EOF, F, bytes in it |
//
// The status word is the hand-over: the chip sets C when it is done with a block. A block belongs
// to the chip from the moment at which the S bit (suspend) of the block before it is cleared, or
// the EL bit (end of list) of the descriptor before it. Both are cleared last, with release order.
// C is loaded with acquire order before the fields that the chip wrote. This is not enough on a
// machine whose DMA is not coherent.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "drivers/common/little_endian.h"
#include "drivers/common/ring_types.h"

namespace ulc::i8255x {

using nic::little_endian;

/// Maximum of parts in a frame to send.
inline constexpr std::size_t kSegmentsMax = 16;
/// Addresses that a multicast command in a block of the ring holds. A larger set is received by
/// "multicast all".
inline constexpr std::size_t kMulticastsMax = 22;

struct TransmitBuffer {
    std::uint32_t address;
    std::uint32_t size;
};

/// A command block. `body` depends on the command.
struct CommandBlock {
    std::uint16_t status;
    std::uint16_t command;
    std::uint32_t link;
    union {
        struct {
            std::uint32_t buffers;  ///< bus address of `buffer`
            std::uint16_t byte_count;
            std::uint8_t threshold;  ///< in units of 8 bytes
            std::uint8_t number;
            std::array<TransmitBuffer, kSegmentsMax> buffer;
        } transmit;
        std::array<std::uint8_t, 136> bytes;  ///< configure, address and multicast commands
    } body;
};
static_assert(sizeof(CommandBlock) == 8 + 136);
static_assert(offsetof(CommandBlock, body) == 8);
/// Distance from the start of a transmit block to its buffer descriptors.
inline constexpr std::uint32_t kBuffersOffset = 16;
static_assert(offsetof(CommandBlock, body.transmit.buffer) == kBuffersOffset);
static_assert(2 + kMulticastsMax * 6 <= sizeof(CommandBlock::body.bytes));

namespace cb {
inline constexpr std::uint16_t kComplete = 1U << 15;  ///< C, status
inline constexpr std::uint16_t kOk = 1U << 13;        ///< OK, status
inline constexpr std::uint16_t kUnderrun = 1U << 12;  ///< U, status of a transmit block
inline constexpr std::uint16_t kEndOfList = 1U << 15;
inline constexpr std::uint16_t kSuspend = 1U << 14;
inline constexpr std::uint16_t kFlexible = 1U << 3;  ///< SF: the frame is in buffers
inline constexpr std::uint16_t kCommandMask = 7;
inline constexpr std::uint16_t kNop = 0;
inline constexpr std::uint16_t kAddress = 1;
inline constexpr std::uint16_t kConfigure = 2;
inline constexpr std::uint16_t kMulticast = 3;
inline constexpr std::uint16_t kTransmit = 4;
}  // namespace cb

/// Receive frame descriptor (RFD).
struct ReceiveDescriptor {
    std::uint16_t status;
    std::uint16_t command;
    std::uint32_t link;
    std::uint32_t reserved;
    std::uint16_t count;  ///< EOF, F, bytes
    std::uint16_t size;
};
static_assert(sizeof(ReceiveDescriptor) == 16);

namespace rfd {
inline constexpr std::uint16_t kComplete = 1U << 15;
inline constexpr std::uint16_t kOk = 1U << 13;
inline constexpr std::uint16_t kCrc = 1U << 11;
inline constexpr std::uint16_t kAlignment = 1U << 10;
inline constexpr std::uint16_t kNoSpace = 1U << 9;  ///< the frame is longer than the buffer
inline constexpr std::uint16_t kOverrun = 1U << 8;
inline constexpr std::uint16_t kShort = 1U << 7;
inline constexpr std::uint16_t kPhyError = 1U << 4;
inline constexpr std::uint16_t kCollision = 1U << 0;
inline constexpr std::uint16_t kEndOfList = 1U << 15;  ///< command
inline constexpr std::uint16_t kEof = 1U << 15;        ///< count: the content is complete
inline constexpr std::uint16_t kFilled = 1U << 14;     ///< F, count: the count is valid
inline constexpr std::uint16_t kCountMask = 0x3fff;
}  // namespace rfd

/// Memory that the chip fills at "dump and reset statistical counters", in the 82557's layout.
struct Statistics {
    std::uint32_t tx_good, tx_max_collisions, tx_late_collisions, tx_underruns, tx_lost_carrier;
    std::uint32_t tx_deferred, tx_single_collisions, tx_multiple_collisions, tx_total_collisions;
    std::uint32_t rx_good, rx_crc, rx_alignment, rx_no_resources, rx_overruns, rx_collisions;
    std::uint32_t rx_short;
    std::uint32_t complete;  ///< kDumped once the rest is written
};
static_assert(sizeof(Statistics) == 68);
inline constexpr std::uint32_t kDumped = 0xa007;

/// Loads a word that the chip writes, or the words before it, in memory.
[[nodiscard]] inline std::uint16_t load(std::uint16_t& word) noexcept {
    return little_endian(std::atomic_ref<std::uint16_t>(word).load(std::memory_order_acquire));
}
/// Stores a word on which the chip may act at once: all earlier stores are visible to it first.
inline void store(std::uint16_t& word, std::uint16_t value) noexcept {
    std::atomic_ref<std::uint16_t>(word).store(little_endian(value), std::memory_order_release);
}

}  // namespace ulc::i8255x
