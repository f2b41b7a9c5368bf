// SPDX-License-Identifier: BSD-3-Clause
// Memberships of multicast groups that somebody outside of the device grants: on InfiniBand the
// subnet manager. Groups asks for them, and attaches the queue pair to the groups that it is in.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "verbs/adapter.h"
#include "verbs/address.h"
#include "verbs/library.h"

namespace ulc::verbs {

struct CmLibrary;

/// Place of a group on its subnet.
struct GroupPlace {
    std::uint16_t lid = 0;  ///< InfiniBand only
    std::uint8_t service_level = 0;
    friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};

struct MembershipCounts {
    std::uint64_t joins = 0;       ///< groups joined
    std::uint64_t failures = 0;    ///< joins that failed
    std::uint64_t losses = 0;      ///< memberships that ended unasked
    std::uint64_t odd_events = 0;  ///< reports that name no group that was asked for
};

/// Engine thread only.
class Membership {
public:
    virtual ~Membership() = default;

    /// Sets the groups to be a member of; the others are left. step() carries it out.
    virtual void want(const std::bitset<kGroups>& groups) noexcept = 0;
    /// Takes reports, and asks for what is wanted. A group that failed or was lost is asked for
    /// again after 0.1 seconds, and then at growing intervals of up to 26. To be called once in
    /// 10 ms. Cost: a system call, and one for each request.
    virtual void step() noexcept = 0;
    /// Waits, ten seconds at most, until each wanted group was joined or has failed.
    virtual void wait() noexcept = 0;

    [[nodiscard]] virtual bool is_member(std::uint16_t group) const noexcept = 0;
    /// True if each wanted group was joined.
    [[nodiscard]] virtual bool settled() const noexcept = 0;
    /// Returns the number of the error of a wanted group that failed; 0: none has.
    [[nodiscard]] virtual int error() const noexcept = 0;
    /// Returns the place of a group at its last join.
    [[nodiscard]] virtual GroupPlace place(std::uint16_t group) const noexcept = 0;
    [[nodiscard]] virtual const MembershipCounts& counts() const noexcept = 0;
};

/// Makes a membership by the kernel's connection manager, which finds the port by an IP address.
/// cm: nullptr for librdmacm itself. `library` and `adapter` outlive it. Errors: kUnsupported (no
/// librdmacm), kPermission, kPortDown (no address), kInvalid (a GID that it cannot use), kSystem.
/// `why` says what to do. Not for the hot path.
Err open_membership(const Library& library, const CmLibrary* cm, const Adapter& adapter,
                    std::uint16_t ether_type, std::unique_ptr<Membership>& out, std::string& why);

/// Returns what to do about an error of a group, to follow the error's text.
[[nodiscard]] std::string advice_for_join(int error, bool infiniband);

}  // namespace ulc::verbs
