// SPDX-License-Identifier: BSD-3-Clause
#include "engine/accounts.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::engine {
namespace {

constexpr std::size_t kPacesMax = 1024;

std::string mebibytes(std::uint64_t octets) {
    return std::to_string((octets + (1U << 20) - 1) >> 20) + " MiB";
}

}  // namespace

Accounts::Accounts(const AccountLimits& limits, std::uint32_t endpoints,
                   std::uint32_t groups_of_net, std::uint32_t nets)
    : limits_(limits),
      endpoints_{endpoints, 0},
      octets_{limits.octets, 0},
      groups_(nets, Quota{groups_of_net, 0}) {
    ULC_CHECK(limits.user_share > 0 && limits.user_share <= 100 && limits.frames_alpha > 0);
}

bool Accounts::admits(const Quota& quota, std::uint64_t held, std::uint64_t more) const noexcept {
    return within_share(quota, limits_.user_share, held, more);
}

User* Accounts::find(UserId uid) noexcept {
    const auto at = std::ranges::find_if(users_, [&](const auto& u) { return u->uid == uid; });
    return at == users_.end() ? nullptr : at->get();
}

User* Accounts::enter(const Claimant& claimant, std::string& why) {
    User* user = find(claimant.uid);
    const std::uint32_t endpoints = user != nullptr ? user->endpoints : 0;
    const std::uint64_t octets = user != nullptr ? user->octets : 0;
    const std::string who = "user " + std::to_string(claimant.uid);
    const std::string rest = ", and the rest is kept for other users; close some, or raise ";
    if (endpoints_.used == endpoints_.all) {
        why = "all " + std::to_string(endpoints_.all) +
              " endpoints of the engine are taken; close some, or raise --endpoints";
        return nullptr;
    }
    if (!admits(endpoints_, endpoints, 1)) {
        why = who + " holds " + std::to_string(endpoints) + " of " +
              std::to_string(endpoints_.all) + " endpoints" + rest + "--endpoints or --user-share";
        return nullptr;
    }
    if (!admits(octets_, octets, claimant.octets)) {
        why = who + " holds " + mebibytes(octets) + " and asks for " + mebibytes(claimant.octets) +
              " of the " + mebibytes(octets_.all) + " for all clients, of which " +
              mebibytes(octets_.used) +
              " are taken; close some, ask for smaller arenas, or raise --client-memory";
        return nullptr;
    }
    if (user == nullptr) {
        users_.push_back(std::make_unique<User>(claimant.uid, groups_.size()));
        user = users_.back().get();
    }
    ++endpoints_.used;
    ++user->endpoints;
    octets_.used += claimant.octets;
    user->octets += claimant.octets;
    return user;
}

void Accounts::leave(User& user, std::uint64_t octets) noexcept {
    ULC_CHECK(user.endpoints > 0 && user.octets >= octets);
    --endpoints_.used;
    --user.endpoints;
    octets_.used -= octets;
    user.octets -= octets;
    if (user.endpoints > 0) return;
    for (const User::OnNet& net : user.on_nets)
        ULC_CHECK(net.groups == 0 && net.send.held == 0 && net.receive.held == 0);
    std::erase_if(users_, [&](const auto& one) { return one.get() == &user; });
}

bool Accounts::take_group(User& user, std::uint32_t net) noexcept {
    std::uint32_t& held = user.on_net(net).groups;
    if (!admits(groups_[net], held, 1)) return false;
    ++held;
    ++groups_[net].used;
    return true;
}

void Accounts::give_group(User& user, std::uint32_t net) noexcept {
    std::uint32_t& held = user.on_net(net).groups;
    ULC_CHECK(held > 0);
    --held;
    --groups_[net].used;
}

void Accounts::move_group(User& from, User& to, std::uint32_t net) noexcept {
    ULC_CHECK(from.on_net(net).groups > 0);
    --from.on_net(net).groups;
    ++to.on_net(net).groups;
}

// A bucket of jobs_burst that fills by jobs_per_second, kept as the time when it is full again.
// Jobs that wait for it have taken from it already.
Nanos Accounts::take_job(const User& user, Nanos now, Nanos latest) noexcept {
    const bool is_trusted = limits_.owner && (user.uid == 0 || user.uid == *limits_.owner);
    if (limits_.jobs_per_second == 0 || is_trusted) return now;
    const Nanos each = kSecond / limits_.jobs_per_second;
    auto at = std::ranges::find_if(paces_, [&](const Pace& p) { return p.uid == user.uid; });
    if (at == paces_.end()) {
        std::erase_if(paces_, [&](const Pace& pace) { return pace.due <= now; });
        if (paces_.size() == kPacesMax) return kNever;
        at = paces_.insert(paces_.end(), {user.uid, now});
    }
    const Nanos due = std::max(at->due, now);
    const Nanos begins = std::max(now, due - each * (limits_.jobs_burst - 1));
    if (begins > latest) return kNever;
    at->due = due + each;
    return begins;
}

void Accounts::give_job(UserId uid) noexcept {
    if (limits_.jobs_per_second == 0) return;  // paces may be those of an engine with a rate
    const auto at = std::ranges::find(paces_, uid, &Pace::uid);
    if (at != paces_.end()) at->due -= kSecond / limits_.jobs_per_second;
}

}  // namespace ulc::engine
