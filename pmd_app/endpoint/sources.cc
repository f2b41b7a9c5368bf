// SPDX-License-Identifier: BSD-3-Clause
// Sources that begin, end, or are stopped by the client.
#include "base/check.h"
#include "endpoint/offload.h"
#include "endpoint/outlet.h"

namespace ulc::endpoint {

void Outlet::begin_source(Rank source) noexcept {
    if (source >= index_.size() || index_[source] == 0) return;
    forget(source);
    sources_[index_[source] - 1U].open = true;
}

void Outlet::forget(Rank source) noexcept {
    if (source >= index_.size() || index_[source] == 0) return;
    Source& state = sources_[index_[source] - 1U];
    state.unpacked = 0;
    if (state.sink && offloads_ != nullptr) offloads_->arrived(state.sink, true);
    state.sink = {};
    leave_place(state);
    give_back(state);
    state.open = false;
    state.intake = abi::Intake::kAll;
}

void Outlet::set_intake(Rank source, abi::Intake intake) {
    ULC_CHECK(source < index_.size());
    if (intake != abi::Intake::kAll || index_[source] != 0) source_of(source).intake = intake;
}

}  // namespace ulc::endpoint
