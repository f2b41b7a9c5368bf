// SPDX-License-Identifier: BSD-3-Clause
// The engine of this process's node, as the environment names it.
#pragma once

#include <cstdint>
#include <string>

namespace ulc::ofi {

/// Returns the engine of a node of a cluster on one machine: ULC_ENGINE or the default socket,
/// without a net.
[[nodiscard]] std::string engine_name(std::uint64_t node);

/// Returns a number that is equal for the processes on one engine, and for no others; 0: the engine
/// is inside of this process, or not there.
[[nodiscard]] std::uint64_t node_of_process();

}  // namespace ulc::ofi
