// SPDX-License-Identifier: BSD-3-Clause
// CRC32C (Castagnoli, RFC 3720 appendix B.4), for wires without a frame check sequence. Uses SSE
// 4.2 if the processor has it, else a table; both give the same value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulc::wire {

/// Returns the CRC32C of octets at data. Cost: about 8 octets in one and a half cycles with SSE
/// 4.2, one octet per ~3 cycles without.
[[nodiscard]] std::uint32_t crc32c(const std::byte* data, std::size_t octets) noexcept;

/// The table version on any processor: the reference with which tests compare the other one.
[[nodiscard]] std::uint32_t crc32c_portable(const std::byte* data, std::size_t octets) noexcept;

/// Returns that of a control frame whose body ends at `end`: from the source address on, because
/// JOIN relies on it.
[[nodiscard]] inline std::uint32_t control_crc(const std::byte* frame, std::size_t end) noexcept {
    constexpr std::size_t kSourceAt = 6;
    return crc32c(frame + kSourceAt, end - kSourceAt);
}

}  // namespace ulc::wire
