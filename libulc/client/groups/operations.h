// SPDX-License-Identifier: BSD-3-Clause
// The numbers of a group's collective operations at this member: 0, 1, … in the order in which they
// start.
//
// A tag has space for the last kNumberBits of a number. Two pending operations never share one,
// since none starts that is kAheadMax or more behind the oldest pending one. (A member whose
// operations wait for no other member may be farther ahead of another one: its messages are in
// order, so receives take the older ones first.)
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "client/groups/signature.h"

namespace ulc::client {

class Operations {
public:
    static constexpr unsigned kNumberBits = 12;
    static constexpr std::size_t kAheadMax = (std::size_t{1} << kNumberBits) - 1;

    /// `mine`: the arguments of this member. Returns false if the oldest must end first. May throw
    /// std::bad_alloc.
    [[nodiscard]] bool begin(std::uint32_t& number, const Agreement& mine = {}) {
        if (open_.size() >= kAheadMax) return false;
        open_.push_back(true);
        number = next_++;
        given_[number % kRecalledMax] = mine;
        return true;
    }
    void end(std::uint32_t number) {
        const std::size_t ago = static_cast<std::uint32_t>(next_ - 1 - number);
        if (ago >= open_.size()) return;  // of a group that was freed and made again
        open_[open_.size() - 1 - ago] = false;
        while (!open_.empty() && !open_.front())
            open_.pop_front();
    }

    /// Returns true if the operation before is over here.
    [[nodiscard]] bool ended_before(std::uint32_t number) const {
        const std::size_t ago = static_cast<std::uint32_t>(next_ - number);
        return number > 0 && (ago >= open_.size() || !open_[open_.size() - 1 - ago]);
    }

    /// Returns this member's arguments of an operation that has begun; nullptr: it has not, or
    /// kRecalledMax began since.
    [[nodiscard]] const Agreement* recall(std::uint32_t number) const noexcept {
        const std::uint32_t ago = next_ - 1 - number;
        return ago < kRecalledMax && ago < next_ ? &given_[number % kRecalledMax] : nullptr;
    }

    /// The last report of another member about an operation for which it waits.
    struct Disagreement {
        const char* what = nullptr;  ///< nullptr: no member has reported anything
        std::uint32_t number = 0;
        std::uint16_t rank = 0;
    };
    Disagreement disagreement;

    /// Members gave different arguments: no operation of the group can succeed any more
    bool broken = false;

private:
    static constexpr std::uint32_t kRecalledMax = 16;

    std::array<Agreement, kRecalledMax> given_{};
    std::deque<bool> open_;  ///< from the oldest pending to the last begun
    std::uint32_t next_ = 0;
};

}  // namespace ulc::client
