// SPDX-License-Identifier: BSD-3-Clause
// The rules of PCODE's groups.
#include "urtp/profiles/pcode/rules.h"
#include "urtp/state/values.h"

namespace ulc::urtp::pcode {

void NackTimer::fields(state::Archive& archive) {
    ULC_STATE(archive, NackTimer, 1, (at_, first_, asked_), ());
}

void GlobalCounter::fields(state::Archive& archive) {
    ULC_STATE(archive, GlobalCounter, 1, (current_, top_, last_status_, least_, fresh_),
              (members_, own_, mask_, seen_, mark_, absent_));
    for (std::uint32_t i = 0; i < (mask_ + 1) / 64; ++i)
        archive.values(seen_[i]);
    for (std::uint32_t i = 0; i < members_; ++i)
        archive.values(mark_[i], absent_[i]);
    // gap() looks for a counter that was seen, up to the top.
    archive.require(top_ == current_ || (top_ - current_ <= mask_ && seen(top_)),
                    "a global counter is out of range");
}

void Rules::fields(state::Archive& archive) {
    ULC_STATE(archive, Rules, 1,
              (global_, gap_, status_at_, progress_at_, status_from_, status_due_, status_wanted_,
               nack_due_),
              (parts_, group_, version_, timer_));
    archive.require(status_from_ < group_.ranks.size(), "a member is out of range");
}

}  // namespace ulc::urtp::pcode
