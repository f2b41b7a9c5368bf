// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/verbs/manager.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

namespace ulc::verbs::test {
namespace {

Manager* g_manager = nullptr;

/// True if the test wants this function to fail; errno is set.
bool fails(const char* function) {
    const auto at = g_manager->errors.find(function);
    if (at == g_manager->errors.end()) return false;
    errno = at->second;
    return true;
}

rdma_event_channel* create_event_channel() {
    if (fails("create_event_channel")) return nullptr;
    ++g_manager->channels;
    return &g_manager->channel;
}
void destroy_event_channel(rdma_event_channel* channel) {
    EXPECT_EQ(channel, &g_manager->channel);
    EXPECT_EQ(g_manager->ids, 0) << "ids end before their channel";
    --g_manager->channels;
}
int create_id(rdma_event_channel* channel, rdma_cm_id** out, void* /*user*/,
              rdma_port_space space) {
    EXPECT_EQ(channel, &g_manager->channel);
    EXPECT_EQ(space, RDMA_PS_UDP) << "of datagrams";
    if (fails("create_id")) return -1;
    ++g_manager->ids;
    g_manager->id = {};
    g_manager->id.channel = channel;
    *out = &g_manager->id;
    return 0;
}
int destroy_id(rdma_cm_id* id) {
    EXPECT_EQ(id, &g_manager->id);
    EXPECT_EQ(g_manager->in_hand, 0) << "it would never return";
    --g_manager->ids;
    g_manager->groups.clear();
    g_manager->events.clear();
    return 0;
}
int bind_addr(rdma_cm_id* id, sockaddr* address) {
    ++g_manager->binds;
    if (fails("bind_addr")) return -1;
    for (const Manager::Own& each : g_manager->own) {
        if (std::memcmp(address, &each.address, sizeof each.address) != 0) continue;
        if (each.device == nullptr) break;
        id->verbs = &each.device->context;
        id->verbs->device = &each.device->device;
        id->port_num = each.port;
        id->route.addr.addr.ibaddr.pkey = htobe16(each.p_key);
        return 0;
    }
    errno = ENODEV;
    return -1;
}
int join_multicast(rdma_cm_id* id, sockaddr* group, void* user) {
    EXPECT_NE(id->verbs, nullptr) << "not bound";
    ++g_manager->joins;
    if (fails("join_multicast")) return -1;
    EXPECT_TRUE(g_manager->groups.emplace(mgid_in(group), user).second) << "joined twice";
    if (g_manager->silent) return 0;
    const bool joined = g_manager->join_status == 0;
    g_manager->tell(joined ? RDMA_CM_EVENT_MULTICAST_JOIN : RDMA_CM_EVENT_MULTICAST_ERROR,
                    g_manager->join_status, reinterpret_cast<std::uintptr_t>(user));
    return 0;
}
int leave_multicast(rdma_cm_id* id, sockaddr* group) {
    EXPECT_EQ(id, &g_manager->id);
    EXPECT_EQ(g_manager->in_hand, 0) << "it would never return";
    EXPECT_EQ(g_manager->groups.erase(mgid_in(group)), 1U) << "left without having joined";
    return 0;
}
int get_cm_event(rdma_event_channel* /*channel*/, rdma_cm_event** out) {
    errno = EAGAIN;
    if (fails("get_cm_event") || g_manager->events.empty()) return -1;
    *out = new rdma_cm_event(g_manager->events.front());
    g_manager->events.pop_front();
    ++g_manager->in_hand;
    return 0;
}
int ack_cm_event(rdma_cm_event* event) {
    --g_manager->in_hand;
    delete event;
    return 0;
}
int never_wait(rdma_event_channel* /*channel*/) { return fails("never_wait") ? errno : 0; }
void wait_for_event(rdma_event_channel* /*channel*/, int milliseconds) {
    EXPECT_GT(milliseconds, 0);
    ++g_manager->waits;
}
std::vector<sockaddr_storage> addresses() {
    std::vector<sockaddr_storage> out;
    for (const Manager::Own& each : g_manager->own)
        out.push_back(each.address);
    return out;
}

}  // namespace

Gid mgid_in(const sockaddr* address) {
    Gid gid{};
    if (address->sa_family == AF_IB) {
        const auto* ib = reinterpret_cast<const sockaddr_ib*>(address);
        std::memcpy(gid.data(), &ib->sib_addr, gid.size());
    } else {
        EXPECT_EQ(address->sa_family, AF_INET);
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
        gid[10] = gid[11] = 0xff;
        std::memcpy(gid.data() + 12, &v4->sin_addr, 4);
    }
    return gid;
}

Manager::Manager() {
    EXPECT_EQ(g_manager, nullptr);
    g_manager = this;
    library_ = {create_event_channel,
                destroy_event_channel,
                create_id,
                destroy_id,
                bind_addr,
                join_multicast,
                leave_multicast,
                get_cm_event,
                ack_cm_event,
                never_wait,
                wait_for_event,
                addresses};
}

Manager::~Manager() {
    EXPECT_EQ(ids, 0);
    EXPECT_EQ(channels, 0);
    EXPECT_EQ(in_hand, 0);
    g_manager = nullptr;
}

void Manager::add_address(std::uint8_t last, FakeDevice* device, std::uint8_t port,
                          std::uint16_t p_key) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x0a00'0000U | last);
    Own each{.device = device, .port = port, .p_key = p_key};
    std::memcpy(&each.address, &address, sizeof address);
    own.push_back(each);
}

void Manager::tell(unsigned type, int status, std::uintptr_t name) {
    rdma_cm_event event{};
    event.id = &id;
    std::memcpy(&event.event, &type, sizeof event.event);  // it may be none of the type's values
    event.status = status;
    event.param.ud.private_data = reinterpret_cast<void*>(name);
    event.param.ud.ah_attr.dlid = lid;
    event.param.ud.ah_attr.sl = service_level;
    event.param.ud.qkey = RDMA_UDP_QKEY;
    events.push_back(event);
}

void Manager::lose(const Gid& group, int status) {
    tell(RDMA_CM_EVENT_MULTICAST_ERROR, status, reinterpret_cast<std::uintptr_t>(groups.at(group)));
}

}  // namespace ulc::verbs::test
