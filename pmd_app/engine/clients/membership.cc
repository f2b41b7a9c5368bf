// SPDX-License-Identifier: BSD-3-Clause
#include "engine/clients/membership.h"

namespace ulc::engine {

void Membership::form(const jobs::JobView& job, bool is_local) {
    world_ = job.world;
    medium_ = job.medium;
    is_local_ = is_local;
    groups_.push_back(job.world);
}

void Membership::begin_ranks(std::size_t ranks) {
    gone_.assign(ranks, kHere);
    nodes_.assign(ranks, jobs::kNoNode);
}

bool Membership::begin_removal(GroupHandle group) {
    if (group == world_ || !has_group(group) || std::ranges::count(removing_, group) != 0)
        return false;
    removing_.push_back(group);
    return true;
}

}  // namespace ulc::engine
