// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/verbs/fabric.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace ulc::verbs::test {
namespace {

Fabric* g_fabric = nullptr;

FakeDevice& of(ibv_context* context) {
    for (auto& each : g_fabric->devices)
        if (&each->context == context) return *each;
    ADD_FAILURE() << "no such context";
    std::abort();
}
FakeDevice& of(ibv_pd* pd) { return of(pd->context); }
FakeDevice& of(ibv_qp* qp) { return of(qp->context); }

/// 0, or the error that the test wants of this function.
int scripted(FakeDevice& device, const char* function) {
    const auto at = device.errors.find(function);
    return at == device.errors.end() ? 0 : at->second;
}

bool is_registered(const FakeDevice& device, const ibv_sge& piece) {
    return std::ranges::any_of(device.regions, [&](const auto& region) {
        return region->mr.lkey == piece.lkey && piece.addr >= region->first &&
               piece.addr + piece.length <= region->last;
    });
}

std::byte* memory(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// ---- devices

ibv_device** get_device_list(int* count) {
    if (g_fabric->list_error != 0) {
        errno = g_fabric->list_error;
        return nullptr;
    }
    *count = g_fabric->no_devices ? 0 : static_cast<int>(g_fabric->devices.size());
    auto** list = new ibv_device*[g_fabric->devices.size() + 1]();
    for (int n = 0; n < *count; ++n)
        list[n] = &g_fabric->devices[static_cast<std::size_t>(n)]->device;
    return list;
}
void free_device_list(ibv_device** list) { delete[] list; }
const char* get_device_name(ibv_device* device) { return device->name; }

ibv_context* open_device(ibv_device* device) {
    for (auto& each : g_fabric->devices) {
        if (&each->device != device) continue;
        if (const int error = scripted(*each, "open_device"); error != 0) {
            errno = error;
            return nullptr;
        }
        each->context.device = device;
        each->context.async_fd = -1;
        ++each->opens;
        return &each->context;
    }
    return nullptr;
}
int close_device(ibv_context* context) {
    --of(context).opens;
    return 0;
}
int query_device(ibv_context* context, ibv_device_attr* out) {
    *out = of(context).attributes;
    return scripted(of(context), "query_device");
}
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out) {
    EXPECT_EQ(port, 1);
    *out = of(context).port;
    return scripted(of(context), "query_port");
}
int query_gid_ex(ibv_context* context, std::uint32_t /*port*/, std::uint32_t index,
                 ibv_gid_entry* out, std::uint32_t /*flags*/, std::size_t octets) {
    EXPECT_EQ(octets, sizeof *out);
    const FakeDevice& device = of(context);
    if (index >= device.gids.size()) return ENODATA;
    *out = device.gids[index];
    return 0;
}
int query_gid(ibv_context* context, std::uint8_t /*port*/, int index, ibv_gid* out) {
    const FakeDevice& device = of(context);
    if (static_cast<std::size_t>(index) >= device.gids.size()) return -1;
    *out = device.gids[static_cast<std::size_t>(index)].gid;
    return 0;
}
int query_pkey(ibv_context* context, std::uint8_t /*port*/, int index, __be16* out) {
    *out = htobe16(of(context).p_keys[static_cast<std::size_t>(index)]);
    return 0;
}

// ---- objects

ibv_pd* alloc_pd(ibv_context* context) {
    FakeDevice& device = of(context);
    errno = scripted(device, "alloc_pd");
    if (errno != 0) return nullptr;
    device.pd.context = context;
    ++device.opens;
    return &device.pd;
}
int dealloc_pd(ibv_pd* pd) {
    --of(pd).opens;
    return 0;
}
ibv_mr* reg_mr(ibv_pd* pd, void* start, std::size_t octets, int access) {
    FakeDevice& device = of(pd);
    EXPECT_TRUE(access == IBV_ACCESS_LOCAL_WRITE || access == 0) << access;
    ++(access == 0 ? device.read_only : device.writable);
    errno = scripted(device, access == 0 ? "reg_mr_to_read" : "reg_mr");
    if (errno != 0) return nullptr;
    auto region = std::make_unique<FakeRegion>();
    region->mr.pd = pd;
    region->mr.lkey = device.next_key++;
    region->first = reinterpret_cast<std::uintptr_t>(start);
    region->last = region->first + octets;
    device.regions.push_back(std::move(region));
    ++device.opens;
    return &device.regions.back()->mr;
}
int dereg_mr(ibv_mr* mr) {
    FakeDevice& device = of(mr->pd);
    --device.opens;
    const auto is_it = [&](const auto& region) { return &region->mr == mr; };
    EXPECT_EQ(std::erase_if(device.regions, is_it), 1U) << "given back twice";
    return 0;
}
ibv_cq* create_cq(ibv_context* context, int entries, void* /*user*/, ibv_comp_channel* /*channel*/,
                  int /*vector*/) {
    FakeDevice& device = of(context);
    EXPECT_GT(entries, 0);
    EXPECT_LE(entries, device.attributes.max_cqe);
    errno = scripted(device, "create_cq");
    if (errno != 0) return nullptr;
    ibv_cq& cq = device.send_cq.context == nullptr ? device.send_cq : device.receive_cq;
    cq.context = context;
    cq.cqe = entries;
    ++device.opens;
    return &cq;
}
int destroy_cq(ibv_cq* cq) {
    --of(cq->context).opens;
    cq->context = nullptr;
    return 0;
}
ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
    FakeDevice& device = of(pd);
    EXPECT_EQ(attributes->qp_type, IBV_QPT_UD);
    errno = scripted(device, "create_qp");
    if (errno != 0) return nullptr;
    if (attributes->cap.max_inline_data > device.inline_limit) {
        errno = EINVAL;
        return nullptr;
    }
    EXPECT_LE(attributes->cap.max_send_wr, static_cast<std::uint32_t>(device.attributes.max_qp_wr));
    device.qp.context = pd->context;
    device.qp.qp_num = device.qp_number;
    ++device.opens;
    return &device.qp;
}
int destroy_qp(ibv_qp* qp) {
    FakeDevice& device = of(qp);
    EXPECT_TRUE(device.groups.empty()) << "a queue pair in groups cannot be destroyed";
    --device.opens;
    device.receives.clear();
    device.pieces_held.clear();
    device.state = IBV_QPS_RESET;
    return 0;
}
int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    FakeDevice& device = of(qp);
    if (const int error = scripted(device, "modify_qp"); error != 0) return error;
    const ibv_qp_state to = attributes->qp_state;
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    const bool right = to == IBV_QPS_RESET  ? mask == IBV_QP_STATE
                       : to == IBV_QPS_INIT ? device.state == IBV_QPS_RESET && mask == init
                       : to == IBV_QPS_RTR  ? device.state == IBV_QPS_INIT && mask == IBV_QP_STATE
                       : to == IBV_QPS_RTS
                           ? device.state == IBV_QPS_RTR && mask == (IBV_QP_STATE | IBV_QP_SQ_PSN)
                           : false;
    EXPECT_TRUE(right) << "from " << device.state << " to " << to << " with " << mask;
    if (to == IBV_QPS_RESET) {
        device.receives.clear();
        device.held.clear();
        device.pieces_held.clear();
    }
    if (to == IBV_QPS_INIT) device.q_key = attributes->qkey;
    device.state = to;
    device.states.push_back(to);
    return 0;
}
ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
    FakeDevice& device = of(pd);
    EXPECT_EQ(attributes->is_global, 1);
    EXPECT_LT(attributes->grh.sgid_index, device.gids.size());
    auto handle = std::make_unique<FakeHandle>();
    std::memcpy(handle->to.data(), attributes->grh.dgid.raw, handle->to.size());
    const bool group = handle->to[0] == 0xff || (is_v4(handle->to) && handle->to[12] == 239);
    const int error = group ? scripted(device, "create_ah") : device.handle_error;
    ++device.handles_made;
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    handle->device = &device;
    handle->gid_index = attributes->grh.sgid_index;
    handle->lid = attributes->dlid;
    handle->service_level = attributes->sl;
    if (group) {
        EXPECT_EQ(handle->lid != 0, device.handle_lids);
    }
    handle->ah.pd = pd;
    ++device.handles;
    return &handle.release()->ah;
}
int destroy_ah(ibv_ah* ah) {
    auto* handle = reinterpret_cast<FakeHandle*>(ah);
    --handle->device->handles;
    delete handle;
    return 0;
}
int attach_mcast(ibv_qp* qp, const ibv_gid* group, std::uint16_t lid) {
    FakeDevice& device = of(qp);
    device.attach_lid = lid;
    if (const int error = scripted(device, "attach_mcast"); error != 0) return error;
    Gid gid;
    std::memcpy(gid.data(), group->raw, gid.size());
    EXPECT_TRUE(device.groups.insert(gid).second) << "joined twice";
    return 0;
}
int detach_mcast(ibv_qp* qp, const ibv_gid* group, std::uint16_t /*lid*/) {
    Gid gid;
    std::memcpy(gid.data(), group->raw, gid.size());
    EXPECT_EQ(of(qp).groups.erase(gid), 1U) << "left without having joined";
    return 0;
}
int join_group(const Gid& /*group*/, bool /*v4*/, const Gid& own, std::uint32_t interface) {
    for (auto& each : g_fabric->devices) {
        if (each->gids.empty() || std::memcmp(each->gids[0].gid.raw, own.data(), 16) != 0) continue;
        EXPECT_EQ(interface, 7U);
        if (errno = scripted(*each, "join_group"); errno != 0) return -1;
        ++each->memberships;
    }
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}
int get_async_event(ibv_context* context, ibv_async_event* out) {
    FakeDevice& device = of(context);
    errno = scripted(device, "get_async_event");
    if (errno == 0 && device.events.empty()) errno = EAGAIN;
    if (errno != 0) return -1;
    *out = device.events.front();
    device.events.pop_front();
    return 0;
}
void ack_async_event(ibv_async_event* /*event*/) {}

// ---- the hot path

void complete(FakeDevice& device, const ibv_send_wr& wr) {
    if ((wr.send_flags & IBV_SEND_SIGNALED) == 0) return;
    ++device.signalled;
    ibv_wc wc{};
    wc.wr_id = wr.wr_id;
    wc.opcode = IBV_WC_SEND;
    (device.holds_sends ? device.held : device.sent).push_back(wc);
}

int post_send(ibv_qp* qp, ibv_send_wr* chain, ibv_send_wr** bad) {
    FakeDevice& device = of(qp);
    ++device.doorbells;
    int length = 0;
    for (ibv_send_wr* wr = chain; wr != nullptr; wr = wr->next) {
        if (device.send_error != 0 && length == device.send_error_at) {
            *bad = device.bad_is_wild ? nullptr : wr;
            return std::exchange(device.send_error, 0);
        }
        EXPECT_EQ(device.state, IBV_QPS_RTS);
        ++length;
        std::vector<std::byte> payload;
        const bool is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
        for (int n = 0; n < wr->num_sge; ++n) {
            const ibv_sge& piece = wr->sg_list[n];
            EXPECT_TRUE(is_inline || is_registered(device, piece));
            if (!is_inline && device.holds_sends) device.pieces_held.push_back(piece);
            payload.insert(payload.end(), memory(piece.addr), memory(piece.addr) + piece.length);
        }
        device.inlined += is_inline ? 1 : 0;
        device.two_pieces += wr->num_sge == 2 ? 1 : 0;
        if (is_inline) {
            EXPECT_LE(payload.size(), device.inline_limit);
        }
        const auto& handle = *reinterpret_cast<FakeHandle*>(wr->wr.ud.ah);
        Gid from;
        std::memcpy(from.data(), device.gids[handle.gid_index].gid.raw, from.size());
        device.last_lid = handle.lid;
        device.last_level = handle.service_level;
        device.last_to = handle.to;
        complete(device, *wr);
        g_fabric->deliver(from, device.qp_number, handle.to, wr->wr.ud.remote_qpn,
                          wr->wr.ud.remote_qkey, payload);
    }
    device.chain_longest = std::max(device.chain_longest, length);
    return 0;
}
int post_recv(ibv_qp* qp, ibv_recv_wr* chain, ibv_recv_wr** bad) {
    FakeDevice& device = of(qp);
    int length = 0;
    for (ibv_recv_wr* wr = chain; wr != nullptr; wr = wr->next) {
        if (length++ == device.receive_error_at) {
            *bad = device.bad_is_wild ? chain - 1 : wr;
            device.receive_error_at = -1;
            return ENOMEM;
        }
        EXPECT_NE(device.state, IBV_QPS_RESET);
        EXPECT_EQ(wr->num_sge, 1);
        EXPECT_TRUE(is_registered(device, wr->sg_list[0]));
        device.receives.push_back({wr->wr_id, wr->sg_list[0]});
    }
    EXPECT_LE(device.receives.size(), static_cast<std::size_t>(device.receive_cq.cqe));
    return 0;
}
int poll_cq(ibv_cq* cq, int entries, ibv_wc* out) {
    FakeDevice& device = of(cq->context);
    if (const int error = scripted(device, "poll_cq"); error != 0) return error;
    auto& queue = cq == &device.send_cq ? device.sent : device.received;
    int n = 0;
    for (; n < entries && !queue.empty(); ++n) {
        out[n] = queue.front();
        queue.pop_front();
    }
    return n;
}

}  // namespace

Gid gid_of(std::uint8_t number, bool v4) {
    Gid gid{};
    if (v4) {
        gid[10] = gid[11] = 0xff;
        gid[12] = 10;
    } else {
        gid[0] = 0xfe;
        gid[1] = 0x80;
    }
    gid[15] = number;
    return gid;
}

Fabric::Fabric() {
    EXPECT_EQ(g_fabric, nullptr);
    g_fabric = this;
    library_ = {
        get_device_list, free_device_list, get_device_name, open_device,     close_device,
        query_device,    query_port,       query_gid,       query_gid_ex,    query_pkey,
        alloc_pd,        dealloc_pd,       reg_mr,          dereg_mr,        create_cq,
        destroy_cq,      create_qp,        modify_qp,       destroy_qp,      create_ah,
        destroy_ah,      attach_mcast,     detach_mcast,    get_async_event, ack_async_event,
        join_group,      post_send,        post_recv,       poll_cq};
}

Fabric::~Fabric() {
    for (const auto& device : devices) {
        EXPECT_EQ(device->handles, 0) << "address handles were not given back";
        EXPECT_EQ(device->opens, 0) << "objects were not given back";
    }
    g_fabric = nullptr;
}

FakeDevice& Fabric::add(const std::string& name, std::uint8_t number) {
    auto device = std::make_unique<FakeDevice>();
    name.copy(device->device.name, sizeof device->device.name - 1);
    device->attributes.phys_port_cnt = 1;
    device->attributes.max_qp_wr = 4096;
    device->attributes.max_cqe = 4096;
    device->attributes.max_mcast_grp = 512;
    device->attributes.max_mcast_qp_attach = 512;
    device->port.state = IBV_PORT_ACTIVE;
    device->port.link_layer = IBV_LINK_LAYER_ETHERNET;
    device->port.active_mtu = IBV_MTU_1024;
    device->port.gid_tbl_len = 16;
    device->port.pkey_tbl_len = 1;
    device->port.active_speed = 32;
    device->port.active_width = 2;
    ibv_gid_entry entry{};
    const Gid gid = gid_of(number);
    std::memcpy(entry.gid.raw, gid.data(), gid.size());
    entry.gid_type = IBV_GID_TYPE_ROCE_V2;
    entry.ndev_ifindex = 7;
    device->gids.push_back(entry);
    devices.push_back(std::move(device));
    return *devices.back();
}

void Fabric::release_sends(FakeDevice& device) {
    for (; !device.held.empty(); device.held.pop_front())
        device.sent.push_back(device.held.front());
    for (const ibv_sge& piece : device.pieces_held)
        EXPECT_TRUE(is_registered(device, piece)) << "given back while the device reads it";
    device.pieces_held.clear();
}

void Fabric::raise(FakeDevice& device, ibv_event_type type, int port) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = port;
    device.events.push_back(event);
}

void Fabric::deliver(const Gid& from, std::uint32_t qpn, const Gid& to, std::uint32_t to_qpn,
                     std::uint32_t q_key, const std::vector<std::byte>& payload) {
    for (auto& each : devices) {
        FakeDevice& device = *each;
        const bool is_group = to_qpn == kMulticastQpn;
        const bool own = std::ranges::any_of(device.gids, [&](const ibv_gid_entry& entry) {
            return std::memcmp(entry.gid.raw, to.data(), to.size()) == 0;
        });
        const bool sender = qpn == device.qp_number && from == gid_of(from[15], is_v4(from)) &&
                            !device.gids.empty() && device.gids[0].gid.raw[15] == from[15];
        if (is_group ? (sender && !loops_back) || !device.groups.contains(to)
                     : !own || to_qpn != device.qp_number)
            continue;
        if (device.state != IBV_QPS_RTS || device.q_key != q_key || device.receives.empty())
            continue;
        const PostedReceive receive = device.receives.front();
        device.receives.pop_front();
        std::byte* grh = memory(receive.piece.addr);
        ibv_wc wc{};
        wc.wr_id = receive.id;
        wc.opcode = IBV_WC_RECV;
        wc.src_qp = qpn;
        wc.wc_flags = IBV_WC_GRH;
        wc.byte_len = static_cast<std::uint32_t>(kGrhOctets + payload.size());
        if (wc.byte_len > receive.piece.length) {
            wc.status = IBV_WC_LOC_LEN_ERR;
        } else {
            std::memset(grh, 0xee, kGrhOctets);
            if (is_v4(from)) {
                grh[20] = std::byte{0x45};
                std::memcpy(grh + 32, from.data() + 12, 4);
            } else {
                std::memcpy(grh + 8, from.data(), from.size());
            }
            std::memcpy(grh + kGrhOctets, payload.data(), payload.size());
        }
        if (device.spoil) device.spoil(wc, grh);
        device.received.push_back(wc);
    }
}

}  // namespace ulc::verbs::test
