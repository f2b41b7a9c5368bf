// SPDX-License-Identifier: BSD-3-Clause
// Deadlines of the blocking calls, and the waits until a job has formed or links are open. Used by
// api.cc, rejoin.cc and links/names.cc.
#pragma once

#include <algorithm>

#include "base/units.h"
#include "client/endpoint.h"
#include "client/ulc.h"

namespace ulc::client {

[[nodiscard]] inline Nanos left_of(Endpoint& ep, Nanos deadline) {
    if (deadline == ULC_WAIT_FOREVER) return deadline;
    return std::max<Nanos>(deadline - ep.hooks().now(ep.hooks().context), 0);
}

[[nodiscard]] inline Nanos deadline_in(Endpoint& ep, Nanos timeout) {
    const Nanos now = ep.hooks().now(ep.hooks().context);
    return timeout >= ULC_WAIT_FOREVER - now ? ULC_WAIT_FOREVER : now + timeout;
}

/// Waits until the job that was joined has formed. Sets the error's text. Errors: TIMEOUT, those of
/// ulc_job_state() and ulc_wait().
[[nodiscard]] int wait_until_formed(ulc_endpoint& ep, const char* job, Nanos deadline);

/// Waits until the endpoint is open for links. As wait_until_formed().
[[nodiscard]] int wait_until_open(ulc_endpoint& ep, Nanos deadline);

}  // namespace ulc::client
