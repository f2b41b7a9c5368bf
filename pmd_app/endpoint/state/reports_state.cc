// SPDX-License-Identifier: BSD-3-Clause
// State of reports.h.
#include <algorithm>

#include "base/state/containers.h"
#include "endpoint/reports.h"
#include "wire/state/ids.h"

namespace ulc::abi {

constexpr CompletionKind last_value(CompletionKind) { return CompletionKind::kUnlinked; }

}  // namespace ulc::abi

namespace ulc::endpoint {

void Report::fields(state::Archive& archive) {
    ULC_STATE(archive, Report, 1, (kind, status, rank, stream, tag), ());
}

void Reports::fields(state::Archive& archive) {
    ULC_STATE(archive, Reports, 1, (queue_, failure_), ());
}

}  // namespace ulc::endpoint
