// SPDX-License-Identifier: BSD-3-Clause
// The invariants of jobs, between two rounds.
#include "base/check.h"
#include "jobs/jobs_impl.h"

namespace ulc::jobs {

void Jobs::Impl::check_invariants() const {
    node.check_invariants();
    rejects.check_invariants();
    table.check_invariants();
    ranks.check_invariants();
}

void Jobs::check_invariants() const {
    liveness_.check_invariants();
    addresses_.check_invariants();
    links_.check_invariants();
    impl_->check_invariants();
    ULC_CHECK(next_look_ <= next_timer());
    ULC_CHECK(!impl_->ranks.has_event() || next_look_ == 0);
}

}  // namespace ulc::jobs
