// SPDX-License-Identifier: BSD-3-Clause
// The sentences that this provider prints.
#pragma once

namespace ulc::ofi {

/// Prints a line on the standard error, behind "ulc: ". The format is printf()'s.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) noexcept;

}  // namespace ulc::ofi
