// SPDX-License-Identifier: BSD-3-Clause
// State of lifetime.h.
#include "base/state/containers.h"
#include "endpoint/lifetime.h"
#include "wire/state/ids.h"

namespace ulc::endpoint {

constexpr Lifetime::Stage last_value(Lifetime::Stage) { return Lifetime::Stage::kClosed; }

void Lifetime::fields(state::Archive& archive) {
    ULC_STATE(archive, Lifetime, 1, (stage_, has_memory_, is_detached_, reason_, closed_, until_),
              ());
    archive.require(is_valid(), "an endpoint has no memory, or too early");
}

}  // namespace ulc::endpoint
