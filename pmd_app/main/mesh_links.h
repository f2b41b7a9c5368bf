// SPDX-License-Identifier: BSD-3-Clause
// Judges the links of a node of a mesh (port/mesh_port.h) before the engine starts.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "port/mesh_port.h"
#include "port/port.h"
#include "seal/tokens.h"

namespace ulc::daemon {

/// Errors: kInvalid (MTUs or addresses do not suit, both links are on one segment, a node of
/// another row or column is heard, or one in this place). why: one sentence. seed: of its tokens.
/// Sends a few announcements, and listens for 0.2 s. A node whose announcement speaks against the
/// place is asked, for 0.8 s more, and counts only if it confirms that. Links that are down, and
/// nodes that do not run, are not tried.
[[nodiscard]] Err check_mesh(const Port& row, const Port& column, const port::MeshPlace& place,
                             const std::string& net, std::uint16_t ether_type,
                             const seal::Seed& seed, std::string& why);

}  // namespace ulc::daemon
