// SPDX-License-Identifier: BSD-3-Clause
// Big-endian integers of alignment 1, for structs that lie over wire bytes.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace ulc {

[[nodiscard]] constexpr std::uint16_t byte_swap(std::uint16_t v) noexcept {
    return __builtin_bswap16(v);
}
[[nodiscard]] constexpr std::uint32_t byte_swap(std::uint32_t v) noexcept {
    return __builtin_bswap32(v);
}
[[nodiscard]] constexpr std::uint64_t byte_swap(std::uint64_t v) noexcept {
    return __builtin_bswap64(v);
}

template <std::unsigned_integral T>
class BigEndian {
public:
    BigEndian() = default;
    BigEndian(T value) noexcept { *this = value; }
    BigEndian& operator=(T value) noexcept {
        if constexpr (std::endian::native == std::endian::little) value = byte_swap(value);
        std::memcpy(bytes_, &value, sizeof value);
        return *this;
    }
    operator T() const noexcept {
        T value;
        std::memcpy(&value, bytes_, sizeof value);
        if constexpr (std::endian::native == std::endian::little) value = byte_swap(value);
        return value;
    }

private:
    unsigned char bytes_[sizeof(T)];
};

using Be16 = BigEndian<std::uint16_t>;
using Be32 = BigEndian<std::uint32_t>;
using Be64 = BigEndian<std::uint64_t>;
static_assert(sizeof(Be32) == 4 && alignof(Be32) == 1);

}  // namespace ulc
