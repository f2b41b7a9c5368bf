// SPDX-License-Identifier: BSD-3-Clause
// Makes groups of a simulated job one after another, as MPI programs make communicators, and then
// uses them: each member multicasts to each of its groups. For tests and tables of multicast
// addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"

namespace ulc::sim {

class GroupTraffic {
public:
    using Ranks = std::vector<std::uint16_t>;

    GroupTraffic(LibCluster& lib, std::vector<Ranks> groups);

    /// Makes all groups, and waits until their addresses are agreed. Returns false if one was not
    /// made.
    bool create();
    /// Lets each member multicast `rounds` messages to each of its groups. Returns false if not all
    /// came.
    bool exchange(unsigned rounds);
    /// Frees the group at all members.
    void free(std::size_t group);

    [[nodiscard]] const std::vector<Ranks>& groups() const noexcept { return groups_; }
    [[nodiscard]] ulc_group handle(std::size_t group) const { return handles_[group]; }
    /// Returns the number of messages that all ranks received in exchange().
    [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
    /// Returns the number of group frames that came to nodes without a member.
    [[nodiscard]] std::uint64_t unwanted() const;

private:
    bool create(std::size_t group);
    void settle();

    LibCluster& lib_;
    std::vector<Ranks> groups_;
    std::vector<ulc_group> handles_;
    std::uint64_t received_ = 0;
};

}  // namespace ulc::sim
