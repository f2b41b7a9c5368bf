// SPDX-License-Identifier: BSD-3-Clause
// Accounts of users for the things that all users share: endpoints, locked memory, groups, frames,
// and the rate of jobs. Sans-IO; one object an engine. Jobs themselves are counted in their table
// (job_table.cc), by the same rule.
//
// One rule for all that is held: with share s (percent), a user may take n more while
//     (held by the user + n) · (100 − s) ≤ s · (free − n)
// which are dynamic thresholds (Choudhury and Hahne 1998) with alpha = s / (100 − s). A user alone
// gets s percent of the whole, the next one s percent of the rest, so every user that comes finds
// something. A first endpoint or group is admitted while there is any. The rule of frames also
// counts endpoints (urtp/frame_share.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/share.h"
#include "base/units.h"
#include "urtp/frame_share.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

class Endpoint;

/// A user of the machine, as the kernel says it.
using UserId = std::uint32_t;

struct AccountLimits {
    std::uint32_t user_share = 100;     ///< percent that one user may hold
    std::uint64_t octets = UINT64_MAX;  ///< all endpoints' shared memory
    std::uint32_t jobs_per_second = 0;  ///< begun by one user here; 0: any number
    std::uint32_t jobs_burst = 64;      ///< jobs begun at once after a pause
    /// The engine's own user, who as root begins any number of jobs; none: no user does.
    std::optional<UserId> owner{};
    std::uint32_t errors_per_second = 0;  ///< one endpoint's; more close it; 0: any
    std::uint32_t frames_kept = 16;       ///< guaranteed to each endpoint, of each pool
    std::uint32_t frames_alpha = 2;       ///< urtp/frame_share.h
};

/// A request for an endpoint: its user, the size of its region, and its process, as
/// abi::ProcessRow.
struct Claimant {
    UserId uid = 0;
    std::uint64_t octets = 0;
    std::uint32_t pid = 0;
    std::uint64_t start_ticks = 0;
};

/// Errors of one client, each of which costs the engine more than the client. Engine thread.
class ErrorCount {
public:
    void note() noexcept { ++noted_; }
    [[nodiscard]] bool has_noted() const noexcept { return noted_ > 0; }
    /// Judges those that were noted. True: there were more than `most` in a second; 0: any number.
    [[nodiscard]] bool is_over(std::uint32_t most, Nanos now) noexcept {
        if (now >= until_) {
            until_ = now + kSecond;
            lately_ = 0;
        }
        lately_ += noted_;
        noted_ = 0;
        return most != 0 && lately_ > most;
    }
    void fields(state::Archive& archive);

private:
    std::uint32_t noted_ = 0;   ///< not judged yet
    std::uint32_t lately_ = 0;  ///< in the second that ends at until_
    Nanos until_ = 0;
};

/// One user's account. Lives while the user has an endpoint.
struct User {
    struct OnNet {
        urtp::UserFrames send;
        urtp::UserFrames receive;
        std::uint32_t groups = 0;
    };

    User(UserId id, std::size_t nets) : uid(id), on_nets(nets) {}
    [[nodiscard]] OnNet& on_net(std::uint32_t net) noexcept { return on_nets[net]; }

    const UserId uid;
    std::uint32_t endpoints = 0;
    std::uint64_t octets = 0;
    std::uint32_t turn = 0;         ///< into `active`: whose frames are next
    std::vector<Endpoint*> active;  ///< admitted endpoints
    std::vector<OnNet> on_nets;
    void fields(state::Archive& archive);
};

class Accounts {
public:
    Accounts(const AccountLimits& limits, std::uint32_t endpoints, std::uint32_t groups_of_net,
             std::uint32_t nets);

    /// Charges the user for an endpoint. nullptr: refused; why: the limit, its value, what to do.
    [[nodiscard]] User* enter(const Claimant& claimant, std::string& why);
    /// The endpoint is gone. The user may be, too.
    void leave(User& user, std::uint64_t octets) noexcept;
    /// Charges a group of this net. False: over the user's share, or the net has none left.
    [[nodiscard]] bool take_group(User& user, std::uint32_t net) noexcept;
    void give_group(User& user, std::uint32_t net) noexcept;
    /// The group is on the account of `to` from now on, whatever that holds.
    void move_group(User& from, User& to, std::uint32_t net) noexcept;
    /// Returns the time from which the user may begin a job, which is not after `latest`; kNever:
    /// it has begun, or wants to begin, too many before.
    [[nodiscard]] Nanos take_job(const User& user, Nanos now, Nanos latest) noexcept;
    /// Gives back the turn of a job that needed none.
    void give_job(UserId uid) noexcept;

    /// Writes or reads the users, without what is charged to them, and the rates of their jobs.
    void fields(state::Archive& archive);
    /// Charges what the state of an engine names. False: there is not as much.
    [[nodiscard]] bool charge(User& user, std::uint64_t octets) noexcept;
    [[nodiscard]] bool charge_group(User& user, std::uint32_t net) noexcept;

    /// All that have endpoints, in no order.
    [[nodiscard]] const std::vector<std::unique_ptr<User>>& users() const noexcept {
        return users_;
    }

private:
    /// Time when the user's bucket of jobs is full; outlives its endpoints, or they would reset it.
    struct Pace {
        UserId uid = 0;
        Nanos due = 0;
        void fields(state::Archive& archive);
    };
    [[nodiscard]] bool admits(const Quota& quota, std::uint64_t held,
                              std::uint64_t more) const noexcept;
    [[nodiscard]] User* find(UserId uid) noexcept;

    AccountLimits limits_;
    Quota endpoints_;
    Quota octets_;
    std::vector<Quota> groups_;  ///< by net
    std::vector<std::unique_ptr<User>> users_;
    std::vector<Pace> paces_;
};

}  // namespace ulc::engine
