// SPDX-License-Identifier: BSD-3-Clause
#include "engine/groups/group_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace ulc::engine {

GroupTable::GroupTable(std::uint32_t groups_max, std::uint32_t worlds_max)
    : mask_(std::bit_ceil(std::max(groups_max + worlds_max, 4U) * 2) - 1),
      limit_(groups_max + worlds_max),
      slots_(mask_ + 1) {}

LocalGroup* GroupTable::join(GroupHandle handle, GroupHandle world, Endpoint* member) {
    ULC_CHECK(handle != 0);
    LocalGroup* group = find(handle);
    if (group == nullptr) {
        if (used_ == limit_) return nullptr;
        std::uint32_t at = handle & mask_;
        while (slots_[at].handle != 0)
            at = (at + 1) & mask_;
        slots_[at] = {handle,
                      std::make_unique<LocalGroup>(LocalGroup{.handle = handle, .world = world})};
        group = slots_[at].group.get();
        ++used_;
    }
    if (group->world != world) return nullptr;
    group->members.push_back(member);
    return group;
}

void GroupTable::leave(GroupHandle handle, Endpoint* member) noexcept {
    LocalGroup* group = find(handle);
    if (group == nullptr) return;
    std::erase(group->members, member);
    if (!group->members.empty()) return;
    std::uint32_t at = handle & mask_;
    while (slots_[at].handle != handle)
        at = (at + 1) & mask_;
    erase(at);
}

// Closes the gap: each later group of the run that may stand here moves here.
void GroupTable::erase(std::uint32_t at) noexcept {
    std::uint32_t hole = at;
    for (std::uint32_t next = (hole + 1) & mask_; slots_[next].handle != 0;
         next = (next + 1) & mask_) {
        const std::uint32_t home = slots_[next].handle & mask_;
        if (((next - home) & mask_) >= ((next - hole) & mask_)) {
            std::swap(slots_[hole], slots_[next]);
            hole = next;
        }
    }
    slots_[hole] = {};
    --used_;
}

}  // namespace ulc::engine
