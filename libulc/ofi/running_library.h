// SPDX-License-Identifier: BSD-3-Clause
// The libfabric that loaded the provider. It is asked by name at run time: the provider has no
// undefined symbol of libfabric, so one binary fits all versions from 1.17 on.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace ulc::ofi {

/// Returns the version of the running library; that of the headers if it cannot be found.
[[nodiscard]] std::uint32_t running_version() noexcept;

/// Returns an empty fi_info that the running library's fi_freeinfo() frees; nullptr: no memory.
[[nodiscard]] fi_info* allocate_info() noexcept;

/// Frees an info of allocate_info() that was not handed out.
void free_info(fi_info* info) noexcept;

}  // namespace ulc::ofi
