// SPDX-License-Identifier: BSD-3-Clause
// Frames of one pool that the endpoints of a net share. Each endpoint has a guaranteed number of
// frames; beyond it, frames come from the common rest by dynamic thresholds (Choudhury and Hahne
// 1998), summed by user.
//
//   | guaranteed: a number for each endpoint | common: held by users … free |
//
// An endpoint may take one more common frame while
//     common frames it holds + common frames its user holds < alpha × free.
// So a user alone reaches two thirds of the common frames with alpha 2, and every other user still
// finds a share: one user never holds all of them, with any number of endpoints. Engine thread
// only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace ulc::urtp {

/// The frames of one pool.
class FrameBudget {
public:
    /// total: frames of the pool. guaranteed: for each endpoint.
    FrameBudget(std::uint32_t total, std::uint32_t guaranteed, std::uint32_t alpha) noexcept
        : free_(total), guaranteed_(guaranteed), alpha_(alpha) {}

    [[nodiscard]] std::uint32_t guaranteed() const noexcept { return guaranteed_; }
    /// Common frames that no endpoint holds. Negative if an endpoint came when few were free.
    [[nodiscard]] std::int64_t free() const noexcept { return free_; }

private:
    friend class FrameShare;
    std::int64_t free_;
    std::uint32_t guaranteed_;
    std::uint32_t alpha_;
};

/// The common frames of one pool that all endpoints of one user hold.
struct UserFrames {
    std::uint32_t held = 0;
};

/// The frames of one pool that one endpoint holds.
class FrameShare {
public:
    /// budget and user: outlive this.
    FrameShare(FrameBudget& budget, UserFrames& user) noexcept
        : guaranteed_(budget.guaranteed_), budget_(budget), user_(user) {
        budget_.free_ -= guaranteed_;
    }
    ~FrameShare() {
        ULC_CHECK(held_ == 0);
        budget_.free_ += guaranteed_;
    }
    FrameShare(const FrameShare&) = delete;
    FrameShare& operator=(const FrameShare&) = delete;

    [[nodiscard]] bool may_take() const noexcept { return held_ < guaranteed_ || common() > 0; }
    /// Returns how many frames may be taken one after the other.
    [[nodiscard]] std::uint32_t room() const noexcept {
        const std::uint32_t own = held_ < guaranteed_ ? guaranteed_ - held_ : 0;
        const std::int64_t beyond = common();
        // Each frame taken adds one to both sums and takes one from what is free.
        const std::int64_t step = std::int64_t{budget_.alpha_} + 2;
        return own + (beyond > 0 ? static_cast<std::uint32_t>((beyond + step - 1) / step) : 0U);
    }
    /// Tells whether n frames may be taken one after the other. Needs no division.
    [[nodiscard]] bool has_room(std::uint32_t n) const noexcept {
        const std::uint32_t own = held_ < guaranteed_ ? guaranteed_ - held_ : 0;
        const std::int64_t step = std::int64_t{budget_.alpha_} + 2;
        return n <= own || common() > (std::int64_t{n} - own - 1) * step;
    }
    /// Counts one more frame, which may_take() has admitted.
    void take() noexcept {
        if (held_++ < guaranteed_) return;
        ++user_.held;
        --budget_.free_;
    }
    void give_back() noexcept {
        ULC_CHECK(held_ > 0);
        if (--held_ < guaranteed_) return;
        --user_.held;
        ++budget_.free_;
    }
    [[nodiscard]] std::uint32_t held() const noexcept { return held_; }

private:
    /// Returns alpha × free, less what counts against it.
    [[nodiscard]] std::int64_t common() const noexcept {
        const std::uint32_t above = held_ > guaranteed_ ? held_ - guaranteed_ : 0;
        return budget_.alpha_ * budget_.free_ - above - user_.held;
    }

    std::uint32_t held_ = 0;
    std::uint32_t guaranteed_;
    FrameBudget& budget_;
    UserFrames& user_;
};

}  // namespace ulc::urtp
