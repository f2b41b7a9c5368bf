// SPDX-License-Identifier: BSD-3-Clause
// The endpoints of this engine that are members of a group: open addressing over the group handle,
// no allocation when a frame is looked up. Handles are hashes already, so their low bits serve.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/address_plan.h"
#include "base/units.h"
#include "wire/ids.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

class Endpoint;
struct User;

struct LocalGroup {
    GroupHandle handle = 0;
    User* payer = nullptr;  ///< account that it is on; nullptr: none, as for a job's world
    /// World of the job; groups of two jobs under one handle cannot both exist
    GroupHandle world = 0;
    bool any_remote = false;  ///< a member is on another node
    bool used = false;        ///< a member here sends to `address`
    bool shares = false;      ///< `address` is not its own one
    AddressId own = kBroadcastAddress;
    AddressId address = kBroadcastAddress;  ///< address to which this node listens for it
    Nanos since = 0;
    std::uint64_t frames = 0;  ///< from the wire
    std::vector<Endpoint*> members;
    std::vector<std::uint32_t>
        nodes;  ///< NodeIndex of the others, ascending; if multicasts are filtered
    void fields(state::Archive& archive);
};

class GroupTable {
public:
    /// Holds groups_max groups that clients make, and worlds_max world groups: an admitted job
    /// always finds an entry for its world.
    GroupTable(std::uint32_t groups_max, std::uint32_t worlds_max);

    [[nodiscard]] LocalGroup* find(GroupHandle handle) noexcept {
        for (std::uint32_t at = handle & mask_;; at = (at + 1) & mask_) {
            if (slots_[at].handle == handle) return slots_[at].group.get();
            if (slots_[at].handle == 0) return nullptr;
        }
    }
    /// Returns the group, made if necessary; nullptr: full, or the handle belongs to another job.
    [[nodiscard]] LocalGroup* join(GroupHandle handle, GroupHandle world, Endpoint* member);
    /// Ends the endpoint's membership; the last member removes the group.
    void leave(GroupHandle handle, Endpoint* member) noexcept;
    template <typename Visit>
    void each(Visit visit) const {
        for (const Slot& slot : slots_)
            if (slot.handle != 0) visit(*slot.group);
    }
    /// Writes or reads the places of the table. group(group): what the group has beyond fields().
    template <typename Each>
    void exchange(state::Archive& archive, Each group);
    /// True if the handle belongs to a job other than this one, so a group under it cannot be made.
    [[nodiscard]] bool foreign(GroupHandle handle, GroupHandle world) noexcept {
        const LocalGroup* group = find(handle);
        return group != nullptr && group->world != world;
    }

private:
    struct Slot {
        GroupHandle handle = 0;  ///< 0: free
        std::unique_ptr<LocalGroup> group;
    };

    void erase(std::uint32_t at) noexcept;

    std::uint32_t mask_;
    std::uint32_t used_ = 0;
    std::uint32_t limit_;
    std::vector<Slot> slots_;
};

}  // namespace ulc::engine
