// SPDX-License-Identifier: BSD-3-Clause
// The other members of a collective operation that does not move: whether one died, means another
// operation, or can say why it waits. Used by ScheduleRun (schedule_run.h), which judges what it
// receives by itself.
#pragma once

#include <cstdint>
#include <span>

#include "abi/schedule.h"
#include "base/units.h"
#include "client/groups/operations.h"
#include "client/groups/signature.h"
#include "client/ulc.h"

namespace ulc::client {

/// The name of an operation in errors, and what its members must agree on.
struct RunIdentity {
    const char* name = "collective";  ///< stays
    Agreement agreement;
};

/// One operation of a group, as all members count it.
struct RunPlace {
    ulc_endpoint* ep = nullptr;
    ulc_group group = 0;
    std::uint64_t tag = 0;  ///< with the signature; a message's may have abi::kTagLast as well
    std::uint32_t number = 0;
    std::uint16_t members = 0;
    RunIdentity identity;

    /// True if messages carry the signature of this member's arguments.
    [[nodiscard]] bool checks() const noexcept { return identity.agreement.signature.bits() != 0; }
    /// Returns ULC_RANK_ANY if the group was freed meanwhile.
    [[nodiscard]] std::uint16_t rank_of(std::uint16_t index) const noexcept {
        return ulc_group_rank(ep, group, index);
    }
};

/// Returns the tag of an operation: bit 63 (coll/), 31 bits of the handle (its top bit is the same
/// in all), 12 of the number, 19 of the signature.
[[nodiscard]] std::uint64_t operation_tag(ulc_group group, std::uint32_t number) noexcept;

class MemberWatch {
public:
    /// A reason why the operation cannot end well.
    struct Finding {
        int error = ULC_OK;          ///< MISMATCH, PEER_DIED or INVALID (the group was freed)
        std::uint16_t rank = 0;      ///< the member of a mismatch
        const char* what = nullptr;  ///< how its arguments differ
    };

    /// Forgets how long nothing moved.
    void moved() noexcept { quiet_ = 0; }
    /// Looks at some members for signs that the operation cannot end; bounded work.
    [[nodiscard]] Finding look(const RunPlace& place) noexcept;
    /// Asks the sources of `awaited` steps what they do, when nothing has moved for long.
    void ask(const RunPlace& place, const abi::Schedule& schedule,
             std::span<const std::uint32_t> awaited, bool all) noexcept;
    [[nodiscard]] static bool somebody_died(const RunPlace& place) noexcept;

    /// The members know of the mismatch without this one.
    void told() noexcept { told_ = true; }
    /// Tells all members of a mismatch. False: there was no space; call again.
    [[nodiscard]] bool tell_all(const RunPlace& place) noexcept;

private:
    [[nodiscard]] bool ask_sources(const RunPlace& place, const abi::Schedule& schedule,
                                   std::span<const std::uint32_t> awaited, bool all) noexcept;

    std::uint16_t looked_at_ = 0;
    std::uint32_t asked_ = 0;  ///< sources looked at in this inquiry
    unsigned quiet_ = 0;       ///< tests in which nothing moved, since something did
    Nanos ask_at_ = kNever;
    Nanos ask_again_after_ = 0;
    bool told_ = false;  ///< after a mismatch: the others have been sent word
};

}  // namespace ulc::client
