// SPDX-License-Identifier: BSD-3-Clause
// Memberships by the kernel's connection manager, through librdmacm. On InfiniBand it joins each
// group at the subnet manager, which says by which LID to send to it. With RoCE v2 over IPv4
// (join=cm) it joins by IGMP.
//
//   kOut ──▶ kAsked ──joined──▶ kIn ──lost──▶ kFailed ──time──▶ kAsked
//               └─────────refused, error─────────▲
//
// Invariant: librdmacm knows the groups that are kAsked or kIn, and no others.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>

#include "verbs/join/cm_library.h"
#include "verbs/join/membership.h"

namespace ulc::verbs {

class CmMembership final : public Membership {
public:
    CmMembership(const Library& library, const CmLibrary& cm, const Adapter& adapter,
                 std::uint16_t ether_type)
        : verbs_(library), cm_(cm), adapter_(adapter), ether_type_(ether_type) {}
    ~CmMembership() override;
    CmMembership(const CmMembership&) = delete;
    CmMembership& operator=(const CmMembership&) = delete;

    /// Errors: those of open_membership().
    Err open(std::string& why);

    void want(const std::bitset<kGroups>& groups) noexcept override { wanted_ = groups; }
    void step() noexcept override;
    void wait() noexcept override;
    [[nodiscard]] bool is_member(std::uint16_t group) const noexcept override {
        return groups_[group].state == State::kIn;
    }
    [[nodiscard]] bool settled() const noexcept override;
    [[nodiscard]] int error() const noexcept override;
    [[nodiscard]] GroupPlace place(std::uint16_t group) const noexcept override {
        return groups_[group].place;
    }
    [[nodiscard]] const MembershipCounts& counts() const noexcept override { return counts_; }

private:
    enum class State : std::uint8_t { kOut, kAsked, kIn, kFailed };
    struct Group {
        State state = State::kOut;
        GroupPlace place;
        int error = 0;
        std::uint32_t retry_at = 0;  ///< the step at which a group that failed is asked for again
        std::uint32_t wait = 0;      ///< steps before that; 0: it has not failed since it was in
    };

    Err find_address(std::string& why);
    [[nodiscard]] int bind(sockaddr_storage& address) noexcept;
    [[nodiscard]] bool is_own_port() const noexcept;
    void unbind() noexcept;
    void rebind() noexcept;
    void fill(sockaddr_storage& out, std::uint16_t group) const noexcept;
    void take_events() noexcept;
    void on_multicast(const rdma_cm_event& event) noexcept;
    void ask(std::uint16_t group) noexcept;
    void leave(std::uint16_t group) noexcept;
    void fail(Group& group, int error) noexcept;

    const Library& verbs_;
    CmLibrary cm_;
    const Adapter& adapter_;
    std::uint16_t ether_type_;
    sockaddr_storage own_{};  ///< the IP address of the port, which the id is bound to
    rdma_event_channel* channel_ = nullptr;
    rdma_cm_id* id_ = nullptr;   ///< nullptr: to be made again
    std::uint32_t bind_at_ = 0;  ///< the step at which that is tried
    std::uint32_t bind_wait_ = 0;
    std::uint32_t steps_ = 0;
    std::bitset<kGroups> wanted_;
    std::array<Group, kGroups> groups_{};
    MembershipCounts counts_;
};

}  // namespace ulc::verbs
