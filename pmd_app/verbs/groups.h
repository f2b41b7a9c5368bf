// SPDX-License-Identifier: BSD-3-Clause
// Multicast groups of a queue pair: those it listens to, and the address handles to send to any.
// With RoCE v2 it also joins by IGMP or MLD: switches that snoop then pass the group on, and so
// does the kernel, whose IP receives for Soft-RoCE. On InfiniBand a subnet manager joins (join/),
// also a group that the node only sends to; until then its frames go to the broadcast group.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <utility>

#include "verbs/adapter.h"
#include "verbs/address.h"
#include "verbs/join/membership.h"

namespace ulc::verbs {

class Groups {
public:
    Groups(const Library& library, Adapter& adapter) : verbs_(library), adapter_(adapter) {}
    ~Groups();
    Groups(const Groups&) = delete;
    Groups& operator=(const Groups&) = delete;

    void set_ether_type(std::uint16_t ether_type) noexcept { ether_type_ = ether_type; }
    /// Leaves joining to it. Called before anything else.
    void set_membership(std::unique_ptr<Membership> membership) noexcept {
        membership_ = std::move(membership);
    }
    /// Joins the broadcast group. 0, or the number of the error.
    [[nodiscard]] int start() noexcept;
    /// Sets the groups that are wanted besides broadcast. settle() carries it out.
    void want(const std::bitset<kGroups>& groups) noexcept;
    /// Joins what is wanted and leaves the rest. 0, or the number of the first error; then it is to
    /// be called again later.
    [[nodiscard]] int settle() noexcept;
    [[nodiscard]] bool settled() const noexcept {
        return wanted_ == joined_ && (membership_ == nullptr || membership_->settled());
    }
    /// nullptr: the port joins on its own.
    [[nodiscard]] Membership* membership() noexcept { return membership_.get(); }
    /// True once after a group came to another place, so that frames under way and handles name the
    /// old one.
    [[nodiscard]] bool take_moved() noexcept { return std::exchange(moved_, false); }
    /// Returns the handle to send to a group; nullptr: it cannot be made now, or the group has to
    /// be joined first.
    [[nodiscard]] ibv_ah* handle(std::uint16_t group) noexcept {
        return handles_[group] != nullptr ? handles_[group] : make_handle(group);
    }
    /// Forgets the handles; no frame that uses one is with the device.
    void drop_handles() noexcept;

private:
    [[nodiscard]] int join(std::uint16_t group) noexcept;
    [[nodiscard]] int attach(std::uint16_t group) noexcept;
    void leave(std::uint16_t group) noexcept;
    [[nodiscard]] int settle_members() noexcept;
    [[nodiscard]] ibv_ah* make_handle(std::uint16_t group) noexcept;
    [[nodiscard]] Gid mgid(std::uint16_t group) const noexcept {
        return mgid_of(group, ether_type_, adapter_.v4());
    }

    const Library& verbs_;
    Adapter& adapter_;
    std::uint16_t ether_type_ = 0;
    std::bitset<kGroups> wanted_{1U << kBroadcastGroup};
    std::bitset<kGroups> joined_;
    std::unique_ptr<Membership> membership_;
    std::bitset<kGroups> sent_to_;              ///< groups to be a member of in order to send
    std::array<GroupPlace, kGroups> places_{};  ///< those of the handles and attachments
    bool moved_ = false;
    std::array<int, kGroups> sockets_{};  ///< one more than the descriptor of a membership; 0: none
    std::array<ibv_ah*, kGroups> handles_{};
};

}  // namespace ulc::verbs
