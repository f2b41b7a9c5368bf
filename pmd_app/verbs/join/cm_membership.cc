// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/join/cm_membership.h"

#include <infiniband/ib.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ulc::verbs {
namespace {

constexpr std::uint32_t kWaitMin = 10;     ///< steps before a second try: 0.1 s
constexpr std::uint32_t kWaitMax = 2560;   ///< between two later ones: 26 s
constexpr std::uint32_t kEventsMax = 300;  ///< read in a step: each group has one
constexpr int kErrorMax = 4096;            ///< numbers of the kernel's errors are below
constexpr int kStartWaits = 100;           ///< each of kStartWaitMs: ten seconds
constexpr int kStartWaitMs = 100;
constexpr std::uint16_t kPartition = 0x7fff;  ///< bits of a P_Key that name its partition

// NOLINTNEXTLINE(concurrency-mt-unsafe): start-up
std::string reason(int error) { return std::strerror(error); }

std::uint32_t longer(std::uint32_t wait) noexcept {
    return std::clamp(2 * wait, kWaitMin, kWaitMax);
}

/// A group as librdmacm's user data, of which nullptr means none.
void* name_of(std::uint16_t group) noexcept {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(group) + 1);
}

}  // namespace

Err open_membership(const Library& library, const CmLibrary* cm, const Adapter& adapter,
                    std::uint16_t ether_type, std::unique_ptr<Membership>& out, std::string& why) {
    CmLibrary loaded;
    if (cm == nullptr) {
        if (const Err e = load(loaded, why); e != Err::kOk) {
            why = adapter.port_text() + ": " + why;
            return e;
        }
        cm = &loaded;
    }
    auto made = std::make_unique<CmMembership>(library, *cm, adapter, ether_type);
    if (const Err e = made->open(why); e != Err::kOk) return e;
    out = std::move(made);
    return Err::kOk;
}

CmMembership::~CmMembership() {
    unbind();
    if (channel_ != nullptr) cm_.destroy_event_channel(channel_);
}

Err CmMembership::open(std::string& why) {
    channel_ = cm_.create_event_channel();
    int error = channel_ == nullptr ? errno : cm_.never_wait(channel_);
    if (error == 0) return find_address(why);
    why = adapter_.port_text() + ": no connection manager: " + reason(error);
    if (error == EACCES || error == EPERM) {
        why += "; run as root, or: sudo chmod a+rw /dev/infiniband/rdma_cm";
        return Err::kPermission;
    }
    why += "; run: sudo modprobe rdma_ucm";
    return Err::kSystem;
}

// ---- the id -------------------------------------------------------------------------------------

/// The connection manager knows a port by the IP addresses of its network interface.
Err CmMembership::find_address(std::string& why) {
    if (!adapter_.is_infiniband()) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        std::memcpy(&address.sin_addr, adapter_.own().gid.data() + 12, sizeof address.sin_addr);
        std::memcpy(&own_, &address, sizeof address);
        const int error = adapter_.v4() ? bind(own_) : 0;
        if (id_ != nullptr) return Err::kOk;
        why = adapter_.port_text() + ": join=cm needs the GID of an IPv4 address of RoCE v2" +
              (error != 0 ? " (" + reason(error) + ")" : "") +
              "; run: sudo ip addr add ADDRESS dev INTERFACE   ('rdma link' shows which), or leave "
              "join=cm out";
        return Err::kInvalid;
    }
    int error = 0;
    for (sockaddr_storage& each : cm_.addresses()) {
        if (const int result = bind(each); result != 0 && error == 0) error = result;
        if (id_ == nullptr) continue;
        own_ = each;
        return Err::kOk;
    }
    why = adapter_.port_text() +
          " is InfiniBand, whose multicast groups are joined by way of an IP address, and no "
          "interface of the port and its partition has one" +
          (error != 0 ? " (" + reason(error) + ")" : "") +
          "; run: sudo modprobe ib_ipoib && sudo ip addr add ADDRESS dev INTERFACE && sudo ip link "
          "set INTERFACE up   ('ip link' shows which)";
    return Err::kPortDown;
}

/// Makes the id, bound to this address. 0, or the number of the error; id_ stays nullptr if the
/// address belongs to another port.
int CmMembership::bind(sockaddr_storage& address) noexcept {
    if (cm_.create_id(channel_, &id_, nullptr, RDMA_PS_UDP) != 0) {
        id_ = nullptr;
        return errno;
    }
    errno = 0;
    const bool bound = cm_.bind_addr(id_, reinterpret_cast<sockaddr*>(&address)) == 0;
    const int error = bound ? 0 : errno;
    if (bound && is_own_port()) return 0;
    cm_.destroy_id(id_);
    id_ = nullptr;
    return error == ENODEV || error == EADDRNOTAVAIL ? 0 : error;  // no RDMA device has it
}

bool CmMembership::is_own_port() const noexcept {
    if (id_->verbs == nullptr || id_->port_num != adapter_.port()) return false;
    if (adapter_.name() != verbs_.get_device_name(id_->verbs->device)) return false;
    const std::uint16_t p_key = be16toh(id_->route.addr.addr.ibaddr.pkey);
    return !adapter_.is_infiniband() || ((p_key ^ adapter_.p_key()) & kPartition) == 0;
}

/// Ends all memberships. No report may be in hand.
void CmMembership::unbind() noexcept {
    if (id_ == nullptr) return;
    cm_.destroy_id(id_);
    id_ = nullptr;
}

/// Makes the id again after the port's interface has changed.
void CmMembership::rebind() noexcept {
    if (static_cast<std::int32_t>(steps_ - bind_at_) < 0) return;
    bind_wait_ = longer(bind_wait_);
    bind_at_ = steps_ + bind_wait_;
    static_cast<void>(bind(own_));
    if (id_ == nullptr) return;
    bind_wait_ = 0;
    bind_at_ = steps_ + kWaitMin;
}

// ---- groups -------------------------------------------------------------------------------------

void CmMembership::fill(sockaddr_storage& out, std::uint16_t group) const noexcept {
    const Gid mgid = mgid_of(group, ether_type_, adapter_.v4());
    out = {};
    if (adapter_.is_infiniband()) {  // the MGID as it is; the subnet manager makes the group
        sockaddr_ib address{};
        address.sib_family = AF_IB;
        std::memcpy(&address.sib_addr, mgid.data(), mgid.size());
        std::memcpy(&out, &address, sizeof address);
        return;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    std::memcpy(&address.sin_addr, mgid.data() + 12, sizeof address.sin_addr);
    std::memcpy(&out, &address, sizeof address);
}

void CmMembership::step() noexcept {
    ++steps_;
    if (id_ != nullptr) take_events();
    if (id_ == nullptr) rebind();
    if (id_ == nullptr) return;
    for (std::uint16_t n = 0; n < kGroups; ++n) {
        Group& group = groups_[n];
        const bool known = group.state == State::kAsked || group.state == State::kIn;
        if (known && !wanted_[n]) {
            leave(n);
        } else if (wanted_[n] && !known) {
            if (group.state == State::kOut ||
                static_cast<std::int32_t>(steps_ - group.retry_at) >= 0)
                ask(n);
        }
    }
}

void CmMembership::wait() noexcept {
    const auto is_asked = [&](const Group& group) { return group.state == State::kAsked; };
    step();
    for (int n = 0; n < kStartWaits && std::ranges::any_of(groups_, is_asked); ++n) {
        cm_.wait(channel_, kStartWaitMs);
        step();
    }
    for (std::uint16_t n = 0; n < kGroups; ++n) {
        if (!is_asked(groups_[n])) continue;
        leave(n);
        fail(groups_[n], ETIMEDOUT);
    }
}

void CmMembership::ask(std::uint16_t group) noexcept {
    sockaddr_storage address;
    fill(address, group);
    errno = 0;
    if (cm_.join_multicast(id_, reinterpret_cast<sockaddr*>(&address), name_of(group)) == 0)
        groups_[group].state = State::kAsked;
    else
        fail(groups_[group], errno);
}

void CmMembership::leave(std::uint16_t group) noexcept {
    sockaddr_storage address;
    fill(address, group);
    static_cast<void>(cm_.leave_multicast(id_, reinterpret_cast<sockaddr*>(&address)));
    groups_[group].state = State::kOut;
}

void CmMembership::fail(Group& group, int error) noexcept {
    if (group.state == State::kIn)
        ++counts_.losses;
    else
        ++counts_.failures;
    group.state = State::kFailed;
    group.error = error == 0 ? EIO : error;
    group.wait = longer(group.wait);
    group.retry_at = steps_ + group.wait;
}

void CmMembership::take_events() noexcept {
    for (std::uint32_t n = 0; n < kEventsMax; ++n) {
        rdma_cm_event* told = nullptr;
        if (cm_.get_cm_event(channel_, &told) != 0) return;
        // A group can be left only after each of its reports was given back.
        const rdma_cm_event event = *told;
        static_cast<void>(cm_.ack_cm_event(told));
        switch (number_of(event.event)) {
            case RDMA_CM_EVENT_MULTICAST_JOIN:
            case RDMA_CM_EVENT_MULTICAST_ERROR:
                on_multicast(event);
                break;
            case RDMA_CM_EVENT_DEVICE_REMOVAL:
            case RDMA_CM_EVENT_ADDR_CHANGE:
                unbind();
                for (Group& group : groups_) {
                    if (group.state == State::kIn) ++counts_.losses;
                    group.state = State::kOut;
                }
                return;
            default:
                ++counts_.odd_events;
                break;
        }
    }
}

void CmMembership::on_multicast(const rdma_cm_event& event) noexcept {
    const auto name = reinterpret_cast<std::uintptr_t>(event.param.ud.private_data);
    const bool is_known = name >= 1 && name <= kGroups;
    Group* group = is_known ? &groups_[name - 1] : nullptr;
    if (group == nullptr || (group->state != State::kAsked && group->state != State::kIn)) {
        ++counts_.odd_events;
        return;
    }
    if (number_of(event.event) == RDMA_CM_EVENT_MULTICAST_JOIN && event.status == 0) {
        if (group->state == State::kAsked) ++counts_.joins;
        group->state = State::kIn;
        group->place = {event.param.ud.ah_attr.dlid, event.param.ud.ah_attr.sl};
        group->error = 0;
        group->wait = 0;
        return;
    }
    const State before = group->state;
    leave(static_cast<std::uint16_t>(name - 1));
    group->state = before;
    fail(*group, event.status < 0 && event.status > -kErrorMax ? -event.status : EIO);
}

bool CmMembership::settled() const noexcept {
    for (std::uint16_t n = 0; n < kGroups; ++n)
        if (wanted_[n] != is_member(n)) return false;
    return true;
}

int CmMembership::error() const noexcept {
    if (id_ == nullptr) return ENODEV;
    for (std::uint16_t n = 0; n < kGroups; ++n)
        if (wanted_[n] && groups_[n].state == State::kFailed) return groups_[n].error;
    return 0;
}

}  // namespace ulc::verbs
