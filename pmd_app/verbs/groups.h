// SPDX-License-Identifier: BSD-3-Clause
// Multicast groups of a queue pair: those it listens to, and the address handles to send to any.
// With RoCE v2 it also joins by IGMP or MLD: switches that snoop then pass the group on, and so
// does the kernel, whose IP receives for Soft-RoCE.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "verbs/adapter.h"
#include "verbs/address.h"

namespace ulc::verbs {

class Groups {
public:
    Groups(const Library& library, Adapter& adapter) : verbs_(library), adapter_(adapter) {}
    ~Groups();
    Groups(const Groups&) = delete;
    Groups& operator=(const Groups&) = delete;

    void set_ether_type(std::uint16_t ether_type) noexcept { ether_type_ = ether_type; }
    /// Sets the groups that are wanted besides broadcast. settle() carries it out.
    void want(const std::bitset<kGroups>& groups) noexcept;
    /// Joins what is wanted and leaves the rest. 0, or the number of the first error; then it is to
    /// be called again later.
    [[nodiscard]] int settle() noexcept;
    [[nodiscard]] bool settled() const noexcept { return wanted_ == joined_; }
    /// Returns the handle to send to a group; nullptr: it cannot be made now.
    [[nodiscard]] ibv_ah* handle(std::uint16_t group) noexcept {
        return handles_[group] != nullptr ? handles_[group] : make_handle(group);
    }
    /// Forgets the handles; no frame that uses one is with the device.
    void drop_handles() noexcept;

private:
    [[nodiscard]] int join(std::uint16_t group) noexcept;
    void leave(std::uint16_t group) noexcept;
    [[nodiscard]] ibv_ah* make_handle(std::uint16_t group) noexcept;
    [[nodiscard]] Gid mgid(std::uint16_t group) const noexcept {
        return mgid_of(group, ether_type_, adapter_.v4());
    }

    const Library& verbs_;
    Adapter& adapter_;
    std::uint16_t ether_type_ = 0;
    std::bitset<kGroups> wanted_{1U << kBroadcastGroup};
    std::bitset<kGroups> joined_;
    std::array<int, kGroups> sockets_{};  ///< one more than the descriptor of a membership; 0: none
    std::array<ibv_ah*, kGroups> handles_{};
};

}  // namespace ulc::verbs
