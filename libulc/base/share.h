// SPDX-License-Identifier: BSD-3-Clause
// The rule by which users share what one net or engine has a fixed number of (accounts.h).
#pragma once

#include <cstdint>

namespace ulc {

/// A number of equal things for all users.
struct Quota {
    std::uint64_t all = 0;
    std::uint64_t used = 0;
};

/// Returns whether a user who holds `held` of them may take `more`. `share` in percent, 1 to 100.
[[nodiscard]] inline bool within_share(const Quota& quota, std::uint32_t share, std::uint64_t held,
                                       std::uint64_t more) noexcept {
    if (quota.used > quota.all || more > quota.all - quota.used) return false;
    if (share == 100 || (held == 0 && more == 1)) return true;
    // In floating point: the sums may be anything.
    const auto weighed = [](std::uint64_t value, std::uint32_t by) {
        return static_cast<double>(value) * static_cast<double>(by);
    };
    return weighed(held + more, 100 - share) <= weighed(quota.all - quota.used - more, share);
}

}  // namespace ulc
