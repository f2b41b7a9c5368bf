// An engine inside this process: loads libulc-engine.so on demand (DESIGN decision 2), so that libulc never links DPDK.
#pragma once

#include <memory>

#include "base/error.h"
#include "client/endpoint.h"

namespace ulc::client {

/// devices: what follows "embedded:", several separated by ';'. net: name of one, "": the first. Engine options come from ULC_ENGINE_OPTIONS. The library is looked for at
/// ULC_ENGINE_LIB, beside libulc.so, and where the loader looks. Endpoints of one process on the same devices share one engine.
/// Errors: kNoEngine (no library), kVersion, kInvalid (no such net), and those of the engine's start; set_last_error() says what to do.
[[nodiscard]] Result<std::unique_ptr<ulc_endpoint>> attach_embedded(const char* devices,
                                                                    const char* net,
                                                                    const Limits& limits);

}  // namespace ulc::client
