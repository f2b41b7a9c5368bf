// SPDX-License-Identifier: BSD-3-Clause
// Starts an engine inside this process: loads libulc-engine.so on demand, so that libulc never
// links DPDK (decision D2, docs/design/DECISIONS.md).
#pragma once

#include <memory>

#include "base/error.h"
#include "client/endpoint.h"

namespace ulc::client {

/// `devices`: the text after "embedded:", several separated by ';'. `net`: name of one, "": the
/// first. Engine options come from ULC_ENGINE_OPTIONS. The library is searched at ULC_ENGINE_LIB,
/// in the folder of libulc.so, and in the loader's paths. Endpoints of one process on the same
/// devices share one engine. Errors: kNoEngine (no library), kVersion, kInvalid (no such net), and
/// those of the engine's start; set_last_error() has the advice.
[[nodiscard]] Result<std::unique_ptr<ulc_endpoint>> attach_embedded(const char* devices,
                                                                    const char* net,
                                                                    const Limits& limits);

}  // namespace ulc::client
