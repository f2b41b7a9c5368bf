// SPDX-License-Identifier: BSD-3-Clause
// struct fid_poll: completion queues and counters that are looked at together.
#pragma once

#include <rdma/fi_eq.h>

namespace ulc::ofi {

int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** out) noexcept;

}  // namespace ulc::ofi
