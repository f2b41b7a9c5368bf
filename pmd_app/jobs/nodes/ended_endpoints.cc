// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/nodes/ended_endpoints.h"

#include "base/check.h"

namespace ulc::jobs {

void EndedEndpoints::add(Handle handle, wire::LeaveReason reason) noexcept {
    Ended& oldest = ring_[next_];
    if (places_.find(oldest.handle) == next_) places_.erase(oldest.handle);
    places_.erase(handle);
    oldest = Ended{handle, reason};
    places_.insert(handle, static_cast<std::uint32_t>(next_));
    next_ = (next_ + 1) % ring_.size();
}

wire::LeaveReason EndedEndpoints::reason_of(Handle handle) const noexcept {
    const std::uint32_t at = places_.find(handle);
    return at == KeyedIndex::kNone ? wire::LeaveReason::kDied : ring_[at].reason;
}

void EndedEndpoints::check_invariants() const {
    ULC_CHECK(next_ < ring_.size() && places_.size() <= ring_.size());
}

}  // namespace ulc::jobs
