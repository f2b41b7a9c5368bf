// SPDX-License-Identifier: BSD-3-Clause
// Counts of frames that crossed the switch so far, asked of a running ulc-switch:
// bench/counted_switch starts it so that it can be.
#pragma once

#include <cstdint>

namespace ulc::bench {

/// Sums over the ports of the frames that stations sent: each frame once, however many receive it.
struct SwitchCounts {
    std::uint64_t payload_octets = 0;
    std::uint64_t packets = 0;  ///< with payload
    std::uint64_t control = 0;

    bool operator==(const SwitchCounts&) const = default;
};

/// True if ULC_BENCH_SWITCH names the file of a counted switch.
[[nodiscard]] bool has_switch_counts();
/// False: the switch did not answer within a second.
[[nodiscard]] bool read_switch_counts(SwitchCounts& out);

}  // namespace ulc::bench
