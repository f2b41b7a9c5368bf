// SPDX-License-Identifier: BSD-3-Clause
// The clock of the queues. Its own file, so that a test can stand in for it.
#include "base/clock.h"

#include "ofi/queues/completions.h"

namespace ulc::ofi {

Nanos now() noexcept { return monotonic_now(); }

}  // namespace ulc::ofi
