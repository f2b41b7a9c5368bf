// SPDX-License-Identifier: BSD-3-Clause
// The messages of peers that an endpoint has dropped because their headers are malformed, by
// reason.
#pragma once

#include <array>
#include <cstdint>

#include "ofi/message_header.h"

namespace ulc::ofi {

class DroppedMessages {
public:
    /// Counts a message from `source` to `rank`. Prints a line about the first one.
    void add(HeaderFault why, std::uint16_t rank, std::uint16_t source) noexcept;
    /// Prints how many there were for each reason, if there were any.
    void print_total(std::uint16_t rank) const noexcept;

    [[nodiscard]] std::uint64_t count(HeaderFault why) const noexcept {
        return counts_[static_cast<std::size_t>(why)];
    }
    [[nodiscard]] std::uint64_t total() const noexcept { return total_; }

private:
    std::array<std::uint64_t, kHeaderFaults> counts_{};
    std::uint64_t total_ = 0;
};

}  // namespace ulc::ofi
