// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's part in its job: its ranks, which of them are gone, and its groups. Slots of links
// take the place of ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/medium.h"
#include "base/units.h"
#include "jobs/jobs.h"
#include "wire/ids.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

enum GoneState : std::uint8_t { kHere = 0, kGoneLeft = 1, kGoneDied = 2 };

class Membership {
public:
    // --- the job
    [[nodiscard]] bool has_job() const noexcept { return job_ != jobs::kNoJob; }
    [[nodiscard]] jobs::JobId job() const noexcept { return job_; }
    [[nodiscard]] GroupHandle world() const noexcept { return world_; }
    [[nodiscard]] Medium medium() const noexcept { return medium_; }
    /// True if every rank of the job is on this node: the ring of the NIC does not matter.
    [[nodiscard]] bool is_local() const noexcept { return is_local_; }
    /// Returns the maximum of ranks of the job on one node.
    [[nodiscard]] std::uint16_t per_node() const noexcept { return per_node_; }
    /// Returns the wait of its transport: by the links of nodes when it began.
    [[nodiscard]] Nanos reorder_wait() const noexcept { return reorder_wait_; }
    void set_reorder_wait(Nanos wait) noexcept { reorder_wait_ = wait; }
    /// Enters a job that may not have formed yet.
    void enter(jobs::JobId job) noexcept { job_ = job; }
    /// Its job has formed.
    void form(const jobs::JobView& job, bool is_local);
    void set_per_node(std::uint16_t ranks) noexcept { per_node_ = ranks; }
    /// Its peers may be on any node.
    void begin_links() noexcept { is_local_ = false; }
    void leave() noexcept { job_ = jobs::kNoJob; }

    // --- its ranks
    void begin_ranks(std::size_t ranks);
    [[nodiscard]] std::size_t ranks() const noexcept { return gone_.size(); }
    [[nodiscard]] bool is_here(Rank rank) const noexcept {
        return rank < gone_.size() && gone_[rank] == kHere;
    }
    [[nodiscard]] bool has_died(Rank rank) const noexcept { return gone_[rank] == kGoneDied; }
    [[nodiscard]] bool has_left(Rank rank) const noexcept { return gone_[rank] == kGoneLeft; }
    void set_gone(Rank rank, GoneState how) noexcept { gone_[rank] = how; }
    /// Returns the node of a rank, for liveness.
    [[nodiscard]] jobs::NodeIndex node_of(Rank rank) const noexcept { return nodes_[rank]; }
    void set_node(Rank rank, jobs::NodeIndex node) noexcept { nodes_[rank] = node; }

    // --- its groups
    [[nodiscard]] const std::vector<GroupHandle>& groups() const noexcept { return groups_; }
    [[nodiscard]] bool has_group(GroupHandle group) const noexcept {
        return std::ranges::count(groups_, group) == 1;
    }
    void add_group(GroupHandle group) { groups_.push_back(group); }
    /// True if kRemoveGroup waits for the streams of some groups.
    [[nodiscard]] bool removes_groups() const noexcept { return !removing_.empty(); }
    /// Removes a group when remove() lets it. Returns false if it has no such group but the world.
    [[nodiscard]] bool begin_removal(GroupHandle group);
    /// Calls remove() for groups to be removed, until it returns true. Returns whether some did.
    template <typename Remove>
    bool remove_groups(Remove remove) {
        return std::erase_if(removing_, [&](GroupHandle group) {
                   if (!remove(group)) return false;
                   std::erase(groups_, group);
                   return true;
               }) > 0;
    }
    void clear_groups() noexcept {
        groups_.clear();
        removing_.clear();
    }

    void fields(state::Archive& archive);

private:
    jobs::JobId job_ = jobs::kNoJob;
    Nanos reorder_wait_ = 0;
    GroupHandle world_ = 0;
    std::uint16_t per_node_ = 1;
    Medium medium_ = Medium::kSwitch;
    bool is_local_ = true;
    std::vector<jobs::NodeIndex> nodes_;  ///< by rank
    std::vector<std::uint8_t> gone_;      ///< by rank: GoneState
    std::vector<GroupHandle> groups_;
    std::vector<GroupHandle> removing_;
};

}  // namespace ulc::engine
