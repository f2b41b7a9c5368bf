// SPDX-License-Identifier: BSD-3-Clause
// The identity of a program and its handlers. Processes that agree on it name a handler by its
// number. Used by Process.
#pragma once

#include <cstdint>
#include <vector>

#include "express/express.h"

namespace ulc::express {

/// Hashes the program's code, and the places of the handlers in the objects that hold them.
[[nodiscard]] std::uint64_t identity_of(const std::vector<express_handler>& handlers);

}  // namespace ulc::express
