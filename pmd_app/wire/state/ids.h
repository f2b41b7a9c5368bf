// SPDX-License-Identifier: BSD-3-Clause
// State of the values that frames carry (base/state/containers.h).
#pragma once

#include "base/error.h"
#include "base/medium.h"
#include "base/state/containers.h"
#include "wire/ids.h"
#include "wire/job.h"
#include "wire/node_address.h"

namespace ulc {

/// The greatest error of errors.def.
constexpr Err last_value(Err) {
    Err last = Err::kOk;
#define ULC_ERROR(name, c_name, value, text) \
    if (Err::name > last) last = Err::name;
#include "base/errors.def"
#undef ULC_ERROR
    return last;
}
constexpr Medium last_value(Medium) { return static_cast<Medium>(kMedia - 1); }

inline void fields(state::Archive& archive, NodeAddress& address) {
    archive.values(address.mac, address.megabits, address.segment);
}

inline void fields(state::Archive& archive, Seq& seq) { archive.values(seq.value); }

namespace wire {

constexpr LeaveReason last_value(LeaveReason) { return LeaveReason::kExcluded; }

}  // namespace wire
}  // namespace ulc
