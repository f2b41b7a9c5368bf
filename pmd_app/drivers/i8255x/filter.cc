// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/i8255x/filter.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::i8255x {

/// SDM chapter 6, "Configure": byte by byte. A value without a comment is the manual's for this
/// family. Bits that only the 82558 and later have are reserved on the 82557.
Configuration configuration_of(const Filter& filter, const Line& line) noexcept {
    Configuration bytes{};
    const bool later = line.is_82558_or_later;
    const bool all = filter.reception.all_multicast || filter.multicasts.size() > kMulticastsMax;
    bytes[0] = kConfigurationOctets;
    bytes[1] = 0x08;                          // receive FIFO limit
    bytes[6] = 0x32;                          // standard transmit blocks and statistics
    bytes[7] = 0x07;                          // 3 retries after an underrun; no short frames
    bytes[8] = 0x01;                          // MII
    bytes[10] = line.loopback ? 0x6e : 0x2e;  // 7 bytes of preamble; no source insertion
    bytes[12] = 0x60;                         // 96 bit times between frames
    bytes[14] = 0xf2;
    bytes[15] = filter.reception.promiscuous ? 0x49 : 0x48;
    bytes[17] = 0x40;
    bytes[18] = later ? 0xfa : 0xf2;          // pads to 60 bytes; 82558: 1,522 with a VLAN tag
    bytes[19] = later ? 0x86 : 0x80;          // the PHY's pin says full duplex; no PAUSE
    if (line.full_duplex) bytes[19] |= 0x40;  // whatever the pin says
    bytes[20] = 0x3f;
    bytes[21] = all ? 0x0d : 0x05;
    return bytes;
}

bool post_filter(TxRing& ring, const Filter& filter, const Line& line) noexcept {
    if (ring.room() < kFilterBlocks) return false;
    bool posted = ring.post_command(cb::kConfigure, configuration_of(filter, line), false);
    posted = posted && ring.post_command(cb::kAddress, filter.own, false);
    std::array<std::uint8_t, 2 + kMulticastsMax * 6> list{};
    const bool fits = filter.multicasts.size() <= kMulticastsMax;
    const std::size_t octets = fits ? filter.multicasts.size() * 6 : 0;
    list[0] = static_cast<std::uint8_t>(octets & 0xff);
    list[1] = static_cast<std::uint8_t>(octets >> 8);
    auto* out = list.begin() + 2;
    if (fits)
        for (const MacAddress& address : filter.multicasts)
            out = std::ranges::copy(address, out).out;
    posted = posted && ring.post_command(cb::kMulticast, std::span(list).first(2 + octets), true);
    ULC_CHECK(posted);
    return true;
}

}  // namespace ulc::i8255x
