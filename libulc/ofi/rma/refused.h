// SPDX-License-Identifier: BSD-3-Clause
// The accesses of peers to memory of an endpoint that were refused, by reason.
#pragma once

#include <array>
#include <cstdint>

#include "ofi/rma/rma_wire.h"

namespace ulc::ofi {

class RefusedAccesses {
public:
    /// Counts an access of `source` to memory of `rank`. Prints a line about the first one.
    void add(RmaResult why, std::uint16_t rank, std::uint16_t source) noexcept;
    /// Prints how many there were for each reason, if there were any.
    void print_total(std::uint16_t rank) const noexcept;

    [[nodiscard]] std::uint64_t count(RmaResult why) const noexcept {
        return counts_[static_cast<std::size_t>(why)];
    }
    [[nodiscard]] std::uint64_t total() const noexcept { return total_; }

private:
    std::array<std::uint64_t, kRmaResults> counts_{};
    std::uint64_t total_ = 0;
};

}  // namespace ulc::ofi
