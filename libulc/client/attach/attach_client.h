// SPDX-License-Identifier: BSD-3-Clause
// Attaches to the engine of a daemon on this node: the client's half of abi/attach.h.
#pragma once

#include <memory>

#include "base/error.h"
#include "client/endpoint.h"

namespace ulc::client {

/// Connects to the engine's socket, maps the endpoint's memory, and waits until the engine has
/// sealed it. Blocks, at most 5 s a step. `net`: that of the engine, at most 31 bytes; "": its
/// first. On failure set_last_error() has the advice. Errors: kNoEngine, kPermission, kVersion,
/// kNoMemory, kLimit, kInvalid (path too long, no such net), kCorrupt, kTimeout, kSystem.
[[nodiscard]] Result<std::unique_ptr<ulc_endpoint>> attach_daemon(const char* path, const char* net,
                                                                  const Limits& limits);

}  // namespace ulc::client
