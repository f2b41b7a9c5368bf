// SPDX-License-Identifier: BSD-3-Clause
// Frames of one pool that the endpoints of a net share. Each endpoint has a guaranteed number of
// frames; beyond it, frames come from the common rest by dynamic thresholds (Choudhury and Hahne
// 1998), summed by user.
//
//   | guaranteed: a number for each endpoint | common: held by users … free |
//
// The guarantees of all endpoints in use are at most half of the pool, so the number for each falls
// when others come, and rises when they leave. Frames that an endpoint holds stay its own; they
// change between guaranteed and common ones.
//
// An endpoint may take one more common frame while
//     common frames it holds + common frames its user holds < alpha × free.
// So a user alone reaches two thirds of the common frames with alpha 2, and every other user still
// finds a share: one user never holds all of them, with any number of endpoints.
//
// Invariant: free = total - the sum of max(guaranteed, held) of all endpoints. Engine thread only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/tables/list.h"

namespace ulc::urtp {

/// The common frames of one pool that all endpoints of one user hold.
struct UserFrames {
    std::uint32_t held = 0;
};

/// The frames of one pool that one endpoint holds.
struct FrameAccount {
    explicit FrameAccount(UserFrames& its_user) noexcept : user(its_user) {}

    /// Returns how many of them are common ones.
    [[nodiscard]] std::uint32_t above() const noexcept {
        return held > guaranteed ? held - guaranteed : 0;
    }

    std::uint32_t held = 0;
    std::uint32_t guaranteed = 0;
    UserFrames& user;
    Links<FrameAccount> in_use;
};

/// The frames of one pool.
class FrameBudget {
public:
    /// total: frames of the pool. kept: guaranteed to each endpoint, as far as half of them allow.
    FrameBudget(std::uint32_t total, std::uint32_t kept, std::uint32_t alpha) noexcept
        : total_(total), free_(total), kept_(kept), guaranteed_(kept), alpha_(alpha) {}
    FrameBudget(const FrameBudget&) = delete;
    FrameBudget& operator=(const FrameBudget&) = delete;

    /// Replaces the total, while no endpoint has a share.
    void set_total(std::uint32_t total) noexcept {
        ULC_CHECK(accounts_.empty());
        total_ = total;
        free_ = total;
    }
    /// Returns how many frames each endpoint in use is sure of; at least one.
    [[nodiscard]] std::uint32_t guaranteed() const noexcept { return guaranteed_; }
    /// Common frames that no endpoint holds. Negative if an endpoint came when few were free.
    [[nodiscard]] std::int64_t free() const noexcept { return free_; }

private:
    friend class FrameShare;
    void add(FrameAccount& account) noexcept {
        accounts_.add(account);
        divide();
        free_ -= guaranteed_;
        account.guaranteed = guaranteed_;
    }
    void remove(FrameAccount& account) noexcept {
        ULC_CHECK(account.held == 0);
        accounts_.remove(account);
        free_ += account.guaranteed;
        divide();
    }
    /// Divides half of the frames among the endpoints. Its cost is that of all accounts where the
    /// guarantee changes.
    void divide() noexcept {
        const auto accounts =
            static_cast<std::uint32_t>(std::max<std::size_t>(1, accounts_.size()));
        const std::uint32_t each = std::clamp(total_ / (2 * accounts), 1U, kept_);
        if (each == guaranteed_) return;
        guaranteed_ = each;
        for (FrameAccount* at = accounts_.front(); at != nullptr; at = Accounts::next(*at)) {
            if (at->guaranteed == 0) continue;  // it is being added
            const std::uint32_t above = at->above();
            free_ += at->guaranteed + above;
            at->guaranteed = each;
            at->user.held += at->above() - above;
            free_ -= at->guaranteed + at->above();
        }
    }

    using Accounts = List<FrameAccount, &FrameAccount::in_use>;
    std::uint32_t total_;
    std::int64_t free_;
    std::uint32_t kept_;
    std::uint32_t guaranteed_;
    std::uint32_t alpha_;
    Accounts accounts_;  ///< those of the endpoints in use
};

/// Takes frames for one endpoint and gives them back.
class FrameShare {
public:
    /// budget and user: outlive this.
    FrameShare(FrameBudget& budget, UserFrames& user) noexcept : budget_(budget), account_(user) {
        budget_.add(account_);
    }
    ~FrameShare() { budget_.remove(account_); }
    FrameShare(const FrameShare&) = delete;
    FrameShare& operator=(const FrameShare&) = delete;

    [[nodiscard]] bool may_take() const noexcept { return spare() > 0 || common() > 0; }
    /// Returns how many frames may be taken one after the other.
    [[nodiscard]] std::uint32_t room() const noexcept {
        const std::int64_t beyond = common();
        // Each frame taken adds one to both sums and takes one from what is free.
        const std::int64_t step = std::int64_t{budget_.alpha_} + 2;
        return spare() + (beyond > 0 ? static_cast<std::uint32_t>((beyond + step - 1) / step) : 0U);
    }
    /// Tells whether n frames may be taken one after the other. Needs no division.
    [[nodiscard]] bool has_room(std::uint32_t n) const noexcept {
        const std::uint32_t own = spare();
        const std::int64_t step = std::int64_t{budget_.alpha_} + 2;
        return n <= own || common() > (std::int64_t{n} - own - 1) * step;
    }
    /// Counts one more frame, which may_take() has admitted.
    void take() noexcept {
        if (account_.held++ < account_.guaranteed) return;
        ++account_.user.held;
        --budget_.free_;
    }
    void give_back() noexcept {
        ULC_CHECK(account_.held > 0);
        if (--account_.held < account_.guaranteed) return;
        --account_.user.held;
        ++budget_.free_;
    }
    [[nodiscard]] std::uint32_t held() const noexcept { return account_.held; }

private:
    /// Returns how many guaranteed frames it does not hold yet.
    [[nodiscard]] std::uint32_t spare() const noexcept {
        return account_.held < account_.guaranteed ? account_.guaranteed - account_.held : 0;
    }
    /// Returns alpha × free, less what counts against it.
    [[nodiscard]] std::int64_t common() const noexcept {
        return budget_.alpha_ * budget_.free_ - account_.above() - account_.user.held;
    }

    FrameBudget& budget_;
    FrameAccount account_;
};

}  // namespace ulc::urtp
