// SPDX-License-Identifier: BSD-3-Clause
// The nets that --device names: each device is a net, or one of several links of a net.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "main/options.h"
#include "port/mesh_port.h"

namespace ulc::daemon {

/// Returns the names of the nets, each once, in the order of their first devices.
[[nodiscard]] std::vector<std::string> names_of(const std::vector<NetOption>& nets);
/// Returns why these nets cannot be, in one sentence; empty: they can.
[[nodiscard]] std::string check_nets(const std::vector<NetOption>& nets);
/// Parses "2,3": row 2, column 3. Returns false if it is no place of a mesh.
[[nodiscard]] bool parse_place(std::string_view text, port::MeshPlace& out);

}  // namespace ulc::daemon
