// SPDX-License-Identifier: BSD-3-Clause
// The reads of other processes' memory that a test sees, by a function in place of the C library's.
#pragma once

#include <sys/types.h>

#include <vector>

namespace ulc::ofi {

/// The processes that were read, in order.
inline std::vector<pid_t> reads_of;

}  // namespace ulc::ofi
