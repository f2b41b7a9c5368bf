// SPDX-License-Identifier: BSD-3-Clause
// Types that the rings of all drivers share: parts of a frame, results, verdicts.
#pragma once

#include <cstdint>

namespace ulc::nic {

/// A part of a frame in memory that the chip reaches. Any alignment.
struct TxSegment {
    std::uint32_t bus_address;
    std::uint32_t octets;  ///< 1 to kBufferOctetsMax
};

/// The largest size of one buffer: the 21143 has 11 bits for it, the 8255x more.
inline constexpr std::uint32_t kBufferOctetsMax = 2047;
/// The same for received frames, whose buffer sizes are multiples of four.
inline constexpr std::uint32_t kReceiveBufferOctetsMax = 2044;
/// Alignment of receive buffers.
inline constexpr std::size_t kLongword = 4;
/// A frame has at least two addresses and a type.
inline constexpr std::uint32_t kHeaderOctets = 14;

/// The chip's report on a frame that it has finished.
enum class TxResult : std::uint8_t {
    kSent,
    kSentLate,    ///< sent, after an underflow: the transmit threshold is too low
    kCollisions,  ///< 16 collisions, or a late one: not sent, may be retried
    kUnderflow,   ///< not sent; the transmit threshold is too low for this machine's bus
    kNoCarrier,   ///< half duplex, no carrier or lost: not sent
    kJabber,      ///< longer than the chip permits
    kSetup,       ///< the filter is in force; no frame
    kCommand,     ///< a command before that of the filter; no frame
};

struct TxDone {
    void* frame;  ///< as given to post(); nullptr for a setup frame or a command
    TxResult result;
    std::uint8_t collisions;  ///< before it was sent, 0 to 15
    std::uint8_t tries;       ///< as given to post()
};

enum class RxVerdict : std::uint8_t {
    kEmpty,      ///< the chip still has the descriptor
    kFrame,      ///< a good frame
    kUnsettled,  ///< a frame whose length and content may not be in memory yet (8255x)
    kCrc,        ///< checksum, dribble or PHY error
    kRunt,       ///< below 64 bytes, or cut by a collision
    kTooLong,    ///< more than a buffer; reported once, with its first descriptor
    kRest,       ///< a later descriptor of such a frame
    kOverflow,   ///< the chip's FIFO was full
    kMalformed,  ///< an impossible length, or an error without a name
};

struct RxFrame {
    void* owner;           ///< owner of the buffer, as given
    std::uint32_t octets;  ///< without the CRC
};

/// Frames that are received besides those of the filter's addresses.
struct Reception {
    bool promiscuous = false;
    bool all_multicast = false;
    bool operator==(const Reception&) const = default;
};

/// The fill level at which the chip begins to send a frame that it is still fetching from memory. A
/// lower level sends it sooner (GAMMA §4.5.7), and makes an underflow likelier.
enum class TransmitThreshold : std::uint8_t {
    k128,  ///< bytes at 100 Mb/s; on the 21143 at 10 Mb/s the four are 72, 96, 128, 160
    k256,
    k512,
    k1024,
    kWhole,  ///< store and forward
};

}  // namespace ulc::nic
