// SPDX-License-Identifier: BSD-3-Clause
// CRC32C, reflected polynomial 0x82F63B78, initial value and final inversion all ones.
#include "wire/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ulc::wire {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        std::uint32_t crc = i;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
        table[i] = crc;
    }
    return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(const std::byte* data,
                                                             std::size_t octets) noexcept {
    std::uint64_t crc = 0xffffffffU;
    for (; octets >= 8; data += 8, octets -= 8) {
        std::uint64_t word;
        std::memcpy(&word, data, sizeof word);
        crc = _mm_crc32_u64(crc, word);
    }
    auto tail = static_cast<std::uint32_t>(crc);
    for (; octets > 0; ++data, --octets)
        tail = _mm_crc32_u8(tail, static_cast<std::uint8_t>(*data));
    return ~tail;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(const std::byte* data, std::size_t octets) noexcept {
    std::uint32_t crc = 0xffffffffU;
    for (; octets > 0; ++data, --octets) {
        crc = (crc >> 8) ^ kTable[(crc ^ static_cast<std::uint8_t>(*data)) & 0xffU];
    }
    return ~crc;
}

std::uint32_t crc32c(const std::byte* data, std::size_t octets) noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return crc32c_sse42(data, octets);
#endif
    return crc32c_portable(data, octets);
}

}  // namespace ulc::wire
