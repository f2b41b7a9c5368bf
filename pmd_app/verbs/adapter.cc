// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/adapter.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace ulc::verbs {
namespace {

constexpr std::uint32_t kKeyMark = 0x554c'0000;  ///< upper half of Q_Keys
constexpr std::uint32_t kInlineTries[] = {512, 256, 128, 64, 0};
/// Octets of a datagram to a group that a subnet manager makes, unless configured otherwise
/// (OpenSM's partitions.conf).
constexpr std::uint32_t kGroupMtu = 2048;
constexpr std::uint16_t kFullMember = 0x8000;  ///< bit of a P_Key

// NOLINTNEXTLINE(concurrency-mt-unsafe): start-up
std::string reason(int error) { return std::strerror(error); }

std::uint64_t rate_of(const ibv_port_attr& port) noexcept {
    constexpr struct {
        std::uint8_t code;
        std::uint32_t megabits;
    } kLanes[] = {{1, 2'500},   {2, 5'000},   {4, 10'000},  {8, 10'000},
                  {16, 14'000}, {32, 25'000}, {64, 50'000}, {128, 100'000}};
    constexpr struct {
        std::uint8_t code;
        std::uint32_t lanes;
    } kWidths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    std::uint64_t megabits = 0;
    for (const auto& [code, value] : kLanes)
        if (code == port.active_speed) megabits = value;
    for (const auto& [code, lanes] : kWidths)
        if (code == port.active_width) return megabits * lanes * 1'000'000;
    return 0;
}

/// 0: none that is known.
std::uint32_t mtu_of(const ibv_port_attr& port) noexcept {
    const std::uint32_t code = number_of(port.active_mtu);
    return code >= IBV_MTU_256 && code <= IBV_MTU_4096 ? 128U << code : 0;
}

bool is_active_port(const ibv_port_attr& port) noexcept {
    return number_of(port.state) == IBV_PORT_ACTIVE;
}

/// Returns the advice for an error of open_device() and its like.
std::string advice(int error) {
    if (error == EACCES || error == EPERM)
        return "; this user may not open /dev/infiniband/uverbs*: run as root, or: sudo chmod a+rw "
               "/dev/infiniband/uverbs*";
    if (error == ENOENT || error == ENOSYS || error == ENODEV)
        return "; run: sudo modprobe ib_uverbs";
    return "";
}

}  // namespace

Adapter::~Adapter() {
    if (qp_ != nullptr) verbs_.destroy_qp(qp_);
    if (send_cq_ != nullptr) verbs_.destroy_cq(send_cq_);
    if (receive_cq_ != nullptr) verbs_.destroy_cq(receive_cq_);
    memories_.drop_all();
    for (std::uint32_t n = 0; n < regions_made_; ++n)
        verbs_.dereg_mr(regions_[n]);
    if (pd_ != nullptr) verbs_.dealloc_pd(pd_);
    if (context_ != nullptr) verbs_.close_device(context_);
}

std::string Adapter::port_text() const {
    return "verbs device " + device_.name + ", port " + std::to_string(device_.port);
}

Err Adapter::open(const AdapterOptions& options, std::string& why) {
    ULC_CHECK(context_ == nullptr);
    device_ = options.device;
    q_key_ = kKeyMark | options.ether_type;
    if (const Err e = open_device(device_.name, why); e != Err::kOk) return e;
    if (const Err e = open_port(why); e != Err::kOk) return e;
    if (const Err e = choose_gid(why); e != Err::kOk) return e;
    if (const Err e = choose_p_key(why); e != Err::kOk) return e;
    pd_ = verbs_.alloc_pd(context_);
    if (pd_ == nullptr) {
        const int error = errno;
        why = port_text() + ": no protection domain: " + reason(error) + advice(error);
        return Err::kSystem;
    }
    return make_queues(options, why);
}

Err Adapter::open_device(const std::string& name, std::string& why) {
    int count = 0;
    ibv_device** list = verbs_.get_device_list(&count);
    if (list == nullptr || count <= 0) {
        const int error = list == nullptr ? errno : 0;
        if (list != nullptr) verbs_.free_device_list(list);
        why = "no RDMA device" + (error != 0 ? " (" + reason(error) + ")" : std::string()) +
              "; load the driver of the card, or for Soft-RoCE run: sudo modprobe rdma_rxe && sudo "
              "rdma link add rxe0 type rxe netdev eth0";
        return Err::kInvalid;
    }
    ibv_device* found = nullptr;
    std::string names;
    for (int n = 0; n < count; ++n) {
        const std::string each = verbs_.get_device_name(list[n]);
        names += (names.empty() ? "" : ", ") + each;
        if (each == name) found = list[n];
    }
    if (found != nullptr) {
        errno = 0;
        context_ = verbs_.open_device(found);
    }
    const int error = errno;
    verbs_.free_device_list(list);
    if (found == nullptr) {
        why = "no RDMA device '" + name + "'; there is: " + names;
        return Err::kInvalid;
    }
    if (context_ == nullptr) {
        why = "RDMA device " + name + " cannot be opened: " + reason(error) + advice(error);
        return error == EACCES || error == EPERM ? Err::kPermission : Err::kSystem;
    }
    // Events are looked at between rounds, never waited for.
    static_cast<void>(
        fcntl(context_->async_fd, F_SETFL, fcntl(context_->async_fd, F_GETFL) | O_NONBLOCK));
    return Err::kOk;
}

Err Adapter::open_port(std::string& why) {
    ibv_device_attr device{};
    ibv_port_attr port{};
    if (const int error = verbs_.query_device(context_, &device); error != 0) {
        why = "RDMA device " + device_.name + " does not answer: " + reason(error);
        return Err::kSystem;
    }
    if (device_.port > device.phys_port_cnt) {
        why = "RDMA device " + device_.name + " has no port " + std::to_string(device_.port) +
              "; port= is 1 to " + std::to_string(device.phys_port_cnt);
        return Err::kInvalid;
    }
    if (const int error = verbs_.query_port(context_, device_.port, &port); error != 0) {
        why = port_text() + " does not answer: " + reason(error);
        return Err::kSystem;
    }
    if (device.max_mcast_grp <= 0 || device.max_mcast_qp_attach <= 0) {
        why = "RDMA device " + device_.name +
              " has no multicast, which jobs need; use another wire, as net_af_packet on its "
              "network interface";
        return Err::kUnsupported;
    }
    infiniband_ = port.link_layer != IBV_LINK_LAYER_ETHERNET;
    if (!is_active_port(port)) {
        why = port_text() + " is not active; plug in the cable, and " +
              (infiniband_
                   ? "see that a subnet manager runs, on a switch or by: sudo systemctl start "
                     "opensm   ('ibstat' shows the port)"
                   : "run: sudo ip link set INTERFACE up   ('rdma link' shows which)");
        return Err::kPortDown;
    }
    mtu_ = mtu_of(port);
    if (infiniband_) mtu_ = std::min(mtu_, kGroupMtu);
    if (mtu_ < kPortMtuMin) {
        why = port_text() + " has an MTU of " + std::to_string(mtu_) + " octets; at least " +
              std::to_string(kPortMtuMin) +
              " are needed: run: sudo ip link set INTERFACE mtu 1500   ('rdma link' shows which), "
              "on every node";
        return Err::kInvalid;
    }
    bits_per_second_ = rate_of(port);
    gids_ = static_cast<std::uint32_t>(std::clamp(port.gid_tbl_len, 0, 256));
    p_keys_ = port.pkey_tbl_len;
    const auto queue_max = static_cast<std::uint32_t>(std::max(device.max_qp_wr, 0));
    const auto cq_max = static_cast<std::uint32_t>(std::max(device.max_cqe, 0));
    send_frames_ = receive_frames_ = std::min(queue_max, cq_max);
    return Err::kOk;
}

bool Adapter::read_gid(std::uint32_t index, GidEntry& out) noexcept {
    ibv_gid_entry entry{};
    if (verbs_.query_gid_ex != nullptr) {
        if (verbs_.query_gid_ex(context_, device_.port, index, &entry, 0, sizeof entry) != 0)
            return false;
    } else if (verbs_.query_gid(context_, device_.port, static_cast<int>(index), &entry.gid) != 0) {
        return false;
    }
    std::memcpy(out.gid.data(), entry.gid.raw, out.gid.size());
    out.routable = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    out.interface = entry.ndev_ifindex;
    return !is_zero(out.gid);
}

void Adapter::take_gid(std::uint32_t index, const GidEntry& entry) noexcept {
    gid_index_ = static_cast<std::uint16_t>(index);
    own_.gid = entry.gid;
    routable_ = entry.routable;
    interface_ = entry.interface;
}

/// The link-local GID of RoCE v2 is the choice that every node of a segment makes alike: each port
/// has one, with or without IP addresses. Then that of RoCE v1. With the connection manager, which
/// joins groups of RoCE over IPv4 alone, that of an IPv4 address.
Err Adapter::choose_gid(std::string& why) {
    GidEntry entry;
    if (device_.gid) {
        if (*device_.gid < gids_ && read_gid(*device_.gid, entry)) {
            take_gid(*device_.gid, entry);
            return Err::kOk;
        }
        why = port_text() + " has no GID " + std::to_string(*device_.gid) +
              "; leave gid= out, or choose an index of /sys/class/infiniband/" + device_.name +
              "/ports/" + std::to_string(device_.port) + "/gids";
        return Err::kInvalid;
    }
    int best = 0;
    for (std::uint32_t n = 0; n < gids_; ++n) {
        if (!read_gid(n, entry)) continue;
        const bool by_ip = device_.join_by_manager && entry.routable && is_v4(entry.gid);
        const int worth =
            (by_ip ? 4 : 0) + (is_link_local(entry.gid) ? 2 : 0) + (entry.routable ? 1 : 0) + 1;
        if (worth <= best) continue;
        best = worth;
        take_gid(n, entry);
    }
    if (best > 0) return Err::kOk;
    why =
        port_text() + " has no GID; run: sudo ip link set INTERFACE up   ('rdma link' shows which)";
    return Err::kPortDown;
}

Err Adapter::choose_p_key(std::string& why) {
    for (std::uint32_t n = 0; n < p_keys_; ++n) {
        __be16 key = 0;
        if (verbs_.query_pkey(context_, device_.port, static_cast<int>(n), &key) != 0) continue;
        if (key == 0) continue;  // an empty entry
        if (device_.p_key && (be16toh(key) | kFullMember) != (*device_.p_key | kFullMember))
            continue;
        p_key_index_ = static_cast<std::uint16_t>(n);
        p_key_ = be16toh(key);
        return Err::kOk;
    }
    if (!device_.p_key) return Err::kOk;
    why = port_text() +
          " has no such partition key; leave pkey= out, or choose one of "
          "/sys/class/infiniband/" +
          device_.name + "/ports/" + std::to_string(device_.port) + "/pkeys";
    return Err::kInvalid;
}

Err Adapter::make_queues(const AdapterOptions& options, std::string& why) {
    send_frames_ = std::min(send_frames_, options.send_frames);
    receive_frames_ = std::min(receive_frames_, options.receive_frames);
    if (send_frames_ == 0 || receive_frames_ == 0) {
        why = port_text() + " takes no work requests; use another device";
        return Err::kUnsupported;
    }
    send_cq_ = verbs_.create_cq(context_, static_cast<int>(send_frames_), nullptr, nullptr, 0);
    if (send_cq_ != nullptr)
        receive_cq_ =
            verbs_.create_cq(context_, static_cast<int>(receive_frames_), nullptr, nullptr, 0);
    int error = errno;
    if (receive_cq_ != nullptr) {
        for (const std::uint32_t octets : kInlineTries) {
            ibv_qp_init_attr attributes{};
            attributes.send_cq = send_cq_;
            attributes.recv_cq = receive_cq_;
            attributes.qp_type = IBV_QPT_UD;
            attributes.cap.max_send_wr = send_frames_;
            attributes.cap.max_recv_wr = receive_frames_;
            attributes.cap.max_send_sge = 2;
            attributes.cap.max_recv_sge = 1;
            attributes.cap.max_inline_data = octets;
            qp_ = verbs_.create_qp(pd_, &attributes);
            error = errno;
            if (qp_ == nullptr) continue;
            inline_max_ = attributes.cap.max_inline_data;
            break;
        }
    }
    if (qp_ == nullptr) {
        why = port_text() + ": no queues: " + reason(error) +
              (error == ENOMEM
                   ? "; lower --tx-descriptors and --rx-descriptors, or lift the limit of locked "
                     "memory: ulimit -l unlimited"
                   : advice(error));
        return error == ENOMEM ? Err::kNoMemory : Err::kSystem;
    }
    own_.qpn = qp_->qp_num & 0xffffff;
    return Err::kOk;
}

Err Adapter::register_memory(std::span<std::byte> memory, std::uint32_t& key, std::string& why) {
    ULC_CHECK(regions_made_ < std::size(regions_));
    ibv_mr* region = verbs_.reg_mr(pd_, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
    if (region == nullptr) {
        const int error = errno;
        const std::string size = std::to_string((memory.size() + 1023) >> 10) + " KiB";
        why =
            port_text() + " cannot lock " + size + " of memory: " + reason(error) +
            (error == ENOMEM || error == EAGAIN || error == EPERM
                 ? "; run: ulimit -l unlimited   (or LimitMEMLOCK=infinity in the unit), or lower "
                   "--segments"
                 : "");
        return error == ENOMEM || error == EAGAIN || error == EPERM ? Err::kNoMemory : Err::kSystem;
    }
    regions_[regions_made_++] = region;
    key = region->lkey;
    return Err::kOk;
}

// ---- states -------------------------------------------------------------------------------------

int Adapter::modify(ibv_qp_state state, int mask) noexcept {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    attributes.pkey_index = p_key_index_;
    attributes.port_num = device_.port;
    attributes.qkey = q_key_;
    return verbs_.modify_qp(qp_, &attributes, mask | IBV_QP_STATE);
}

int Adapter::bring_up() noexcept {
    if (const int error = modify(IBV_QPS_RESET, 0); error != 0) return error;
    constexpr int kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    if (const int error = modify(IBV_QPS_INIT, kInit); error != 0) return error;
    if (const int error = modify(IBV_QPS_RTR, 0); error != 0) return error;
    return modify(IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

Event Adapter::next_event() noexcept {
    ibv_async_event event{};
    errno = 0;
    if (verbs_.get_async_event(context_, &event) != 0)  // EIO: the kernel took the device away
        return errno == EIO || errno == ENODEV ? Event::kGone : Event::kNone;
    verbs_.ack_async_event(&event);
    switch (number_of(event.event_type)) {
        case IBV_EVENT_DEVICE_FATAL:
        case IBV_EVENT_CQ_ERR:  // a completion queue that overran does not come back
            return Event::kGone;
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_WQ_FATAL:
            return Event::kQueueFailed;
        case IBV_EVENT_PORT_ACTIVE:
        case IBV_EVENT_PORT_ERR:
            return event.element.port_num == device_.port ? Event::kPortChanged : Event::kOther;
        case IBV_EVENT_GID_CHANGE:
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE:
        case IBV_EVENT_SM_CHANGE:
        case IBV_EVENT_CLIENT_REREGISTER:
            return event.element.port_num == device_.port ? Event::kGidChanged : Event::kOther;
        default:  // of no concern, or newer than this
            break;
    }
    return Event::kOther;
}

bool Adapter::is_active() noexcept {
    ibv_port_attr port{};
    return verbs_.query_port(context_, device_.port, &port) == 0 && is_active_port(port) &&
           mtu_of(port) >= mtu_;
}

bool Adapter::find_own_gid() noexcept {
    GidEntry entry;
    const auto is_own = [&](std::uint32_t n) {
        return read_gid(n, entry) && entry.gid == own_.gid && entry.routable == routable_;
    };
    if (is_own(gid_index_)) return true;
    for (std::uint32_t n = 0; n < gids_; ++n) {
        if (!is_own(n)) continue;
        take_gid(n, entry);
        return true;
    }
    return false;
}

bool Adapter::is_like_own(const GidEntry& entry) const noexcept {
    return entry.routable == routable_ && is_v4(entry.gid) == is_v4(own_.gid) &&
           is_link_local(entry.gid) == is_link_local(own_.gid) && entry.interface == interface_;
}

bool Adapter::find_successor() noexcept {
    if (infiniband_ || device_.join_by_manager) return false;
    const std::uint32_t first = device_.gid ? gid_index_ : 0;
    const std::uint32_t end = device_.gid ? std::min<std::uint32_t>(first + 1, gids_) : gids_;
    for (next_index_ = first; next_index_ < end; ++next_index_)
        if (read_gid(next_index_, next_) && is_like_own(next_)) return true;
    return false;
}

ibv_ah* Adapter::make_handle(const Gid& to, std::uint16_t lid,
                             std::uint8_t service_level) noexcept {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = device_.port;
    attributes.dlid = lid;
    attributes.sl = service_level;
    attributes.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
    attributes.grh.hop_limit = 64;
    std::memcpy(attributes.grh.dgid.raw, to.data(), to.size());
    return verbs_.create_ah(pd_, &attributes);
}

}  // namespace ulc::verbs
