// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/tulip/setup_frame.h"

#include <cstring>

#include "drivers/common/crc32.h"

namespace ulc::tulip {
namespace {

/// Position of the one perfect address of a hash frame, in longwords.
constexpr std::size_t kHashOwnLongword = 39;

using Frame = std::span<std::byte, kSetupFrameOctets>;

/// Puts two bytes in wire order into the low half of a longword; the chip ignores the high half.
void put_half(Frame frame, std::size_t longword, std::uint8_t first, std::uint8_t second) noexcept {
    frame[longword * 4] = std::byte{first};
    frame[longword * 4 + 1] = std::byte{second};
}

void put_address(Frame frame, std::size_t longword, const MacAddress& a) noexcept {
    put_half(frame, longword, a[0], a[1]);
    put_half(frame, longword + 1, a[2], a[3]);
    put_half(frame, longword + 2, a[4], a[5]);
}

void set_hash_bit(Frame frame, const MacAddress& address) noexcept {
    const std::uint32_t bit = hash_bit(address);
    const std::size_t octet = bit / 16 * 4 + bit % 16 / 8;
    frame[octet] |= std::byte{static_cast<std::uint8_t>(1U << (bit % 8))};
}

}  // namespace

std::uint32_t hash_bit(const MacAddress& address) noexcept {
    // The chip reads the register before the final complement.
    return ~nic::crc32(std::as_bytes(std::span(address))) & (kHashBits - 1);
}

FilterKind build_setup_frame(const MacAddress& own, std::span<const MacAddress> multicasts,
                             Frame frame) noexcept {
    std::memset(frame.data(), 0, frame.size());
    if (multicasts.size() > kPerfectMulticasts) {
        set_hash_bit(frame, nic::kBroadcast);
        for (const MacAddress& address : multicasts)
            set_hash_bit(frame, address);
        put_address(frame, kHashOwnLongword, own);
        return FilterKind::kHash;
    }
    // Each of the 16 places counts, so unused ones repeat the own address.
    for (std::size_t i = 0; i < kPerfectAddresses; ++i)
        put_address(frame, i * 3, own);
    put_address(frame, 3, nic::kBroadcast);
    for (std::size_t i = 0; i < multicasts.size(); ++i)
        put_address(frame, (i + 2) * 3, multicasts[i]);
    return FilterKind::kPerfect;
}

}  // namespace ulc::tulip
