// SPDX-License-Identifier: BSD-3-Clause
// Groups that a subnet manager hands out: RDMA ports on InfiniBand over a scripted librdmacm. Each
// status of a join is counted and tried again. Lost groups, groups that come back elsewhere, a
// changed interface and a silent manager are followed. A start that fails says why.
#include "tests/unit/verbs/manager.h"
#include "tests/unit/verbs/ports.h"
#include "verbs/device.h"
#include "verbs/join/membership.h"

namespace ulc::verbs {
namespace {

const Mac kGroup{{0x03, 0x55, 0x4c, 0, 0, 9}};
const Gid kMgid = mgid_of(10, kEtherType, false);
const Gid kBroadcastMgid = mgid_of(kBroadcastGroup, kEtherType, false);

class Joining : public VerbsPorts {
protected:
    FakeDevice& infiniband(std::uint8_t number) {
        FakeDevice& of = device(number);
        of.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
        of.gids[0].gid_type = IBV_GID_TYPE_IB;
        of.handle_lids = true;
        return of;
    }
    /// Two ports, the second with the manager.
    void SetUp() override {
        VerbsPorts::SetUp();
        manager_.add_address(1, &infiniband(0));
        manager_.add_address(2, &infiniband(1));
    }
    void TearDown() override { ports_.clear(); }  // before the manager
    PortOptions with_manager(std::uint8_t number) {
        PortOptions with = options(number);
        with.manager = &manager_.library();
        return with;
    }
    Err open_error(const PortOptions& with, std::string& why) {
        std::unique_ptr<VerbsPort> port;
        return VerbsPort::open(with, &fabric_.library(), port, why);
    }
    void refused(const PortOptions& with, Err error, const std::string& words) {
        std::string why;
        EXPECT_EQ(open_error(with, why), error) << why;
        EXPECT_NE(why.find(words), std::string::npos) << why;
        EXPECT_EQ(why.find('\n'), std::string::npos);
        EXPECT_EQ(manager_.ids, 0);
    }
    static bool listen(const VerbsPort& port) {
        return port.port().set_multicasts(port.port().context, std::array{kGroup});
    }
    static void look(const VerbsPort& port, int times) {
        for (int n = 0; n < times; ++n)
            static_cast<void>(VerbsPorts::look(port));
    }

    test::Manager manager_;
};

// U-10
TEST_F(Joining, joins_broadcast_at_the_start_and_other_groups_when_they_are_wanted) {
    manager_.lid = 0xc005;
    manager_.service_level = 3;
    const VerbsPort& b = open(with_manager(1));
    EXPECT_TRUE(manager_.has(kBroadcastMgid));
    EXPECT_EQ(device(1).groups, std::set<Gid>{kBroadcastMgid});
    EXPECT_EQ(device(1).memberships, 0) << "no IP joins";
    EXPECT_TRUE(send(b, kBroadcastMac));
    EXPECT_EQ(device(1).last_lid, 0xc005);
    EXPECT_EQ(device(1).last_level, 3);
    EXPECT_EQ(device(1).attach_lid, 0xc005);

    manager_.lid = 0xc006;
    EXPECT_TRUE(listen(b));
    look(b, 2);
    EXPECT_TRUE(manager_.has(kMgid));
    EXPECT_TRUE(device(1).groups.contains(kMgid));
    EXPECT_EQ(device(1).attach_lid, 0xc006);
    EXPECT_TRUE(b.port().set_multicasts(b.port().context, {}));
    look(b, 2);
    EXPECT_FALSE(manager_.has(kMgid));
    EXPECT_FALSE(device(1).groups.contains(kMgid));
    EXPECT_TRUE(g_reports.empty()) << g_reports[0];
}

// U-11
TEST_F(Joining, a_node_that_only_sends_joins_and_sends_to_all_until_then) {
    const VerbsPort& a = open(with_manager(0));
    const int attached = static_cast<int>(device(0).groups.size());
    EXPECT_TRUE(send(a, kGroup));
    EXPECT_EQ(a.counts().flooded, 1U);
    EXPECT_EQ(device(0).last_to, kBroadcastMgid);
    look(a, 2);
    EXPECT_TRUE(manager_.has(kMgid));
    EXPECT_EQ(static_cast<int>(device(0).groups.size()), attached) << "it does not listen";
    EXPECT_TRUE(send(a, kGroup));
    EXPECT_EQ(a.counts().flooded, 1U);
    EXPECT_EQ(device(0).last_to, kMgid);
}

TEST_F(Joining, the_mtu_is_that_of_a_group) {
    infiniband(1).port.active_mtu = IBV_MTU_4096;
    EXPECT_EQ(open(with_manager(1)).port().info.mtu, 2048 - 14);
}

TEST_F(Joining, every_status_of_a_join_is_told_counted_and_tried_again) {
    const struct {
        int error;
        const char* words;
    } kCases[] = {
        {ETIMEDOUT, "the subnet manager does not answer"},
        {EINVAL, "the subnet manager refused"},
        {EADDRNOTAVAIL, "the port's IPoIB interface is not up"},
        {ENOMEM, "'ibstat' shows"},
    };
    const VerbsPort& b = open(with_manager(1));
    std::uint64_t failures = 0;
    for (const auto& [error, words] : kCases) {
        for (const bool at_once : {false, true}) {
            g_reports.clear();
            manager_.join_status = at_once ? 0 : -error;
            if (at_once) manager_.errors["join_multicast"] = error;
            listen(b);
            look(b, 5);
            ASSERT_EQ(g_reports.size(), 1U) << error;
            EXPECT_NE(g_reports[0].find(words), std::string::npos) << g_reports[0];
            EXPECT_EQ(b.counts().join_failures, ++failures) << "no second try yet";
            EXPECT_FALSE(device(1).groups.contains(kMgid));
            manager_.errors.clear();
            manager_.join_status = 0;
            look(b, 40);
            EXPECT_TRUE(device(1).groups.contains(kMgid));
            ASSERT_EQ(g_reports.size(), 2U);
            EXPECT_NE(g_reports[1].find("has joined all"), std::string::npos);
            b.port().set_multicasts(b.port().context, {});
            look(b, 2);
        }
    }
    // A status that is no error's number.
    manager_.join_status = INT32_MIN;
    listen(b);
    look(b, 3);
    EXPECT_NE(g_reports.back().find("Input/output error"), std::string::npos) << g_reports.back();
}

TEST_F(Joining, a_group_that_stays_refused_is_asked_for_ever_less_often) {
    const VerbsPort& b = open(with_manager(1));
    manager_.join_status = -ETIMEDOUT;
    listen(b);
    const int before = manager_.joins;
    look(b, 10'000);
    EXPECT_GE(manager_.joins - before, 9);
    EXPECT_LE(manager_.joins - before, 13) << "at 0.1, 0.3, 0.7 … seconds, then each 26";
    EXPECT_EQ(g_reports.size(), 1U) << "told once";
}

// U-12
TEST_F(Joining, a_lost_group_is_joined_again) {
    const VerbsPort& b = open(with_manager(1));
    listen(b);
    look(b, 2);
    for (int turn = 1; turn <= 3; ++turn) {
        g_reports.clear();
        manager_.lose(kMgid, -ENETRESET);
        look(b, 1);
        EXPECT_FALSE(device(1).groups.contains(kMgid)) << "detached";
        EXPECT_EQ(b.counts().groups_lost, static_cast<std::uint64_t>(turn));
        ASSERT_EQ(g_reports.size(), 1U);
        EXPECT_NE(g_reports[0].find("lost a multicast group"), std::string::npos);
        look(b, 15);
        EXPECT_TRUE(device(1).groups.contains(kMgid));
        EXPECT_EQ(g_reports.size(), 2U);
    }
    EXPECT_EQ(b.counts().join_failures, 0U);
    EXPECT_EQ(b.counts().resets, 0U) << "the same place";
}

TEST_F(Joining, a_group_that_comes_back_elsewhere_gets_new_handles) {
    const VerbsPort& b = open(with_manager(1));
    EXPECT_TRUE(send(b, kBroadcastMac));
    EXPECT_EQ(pending(b), 0U);
    manager_.lose(kBroadcastMgid, -ENETRESET);
    manager_.lid = 0xc111;
    look(b, 20);
    EXPECT_EQ(b.counts().resets, 1U);
    EXPECT_EQ(device(1).attach_lid, 0xc111);
    EXPECT_TRUE(send(b, kBroadcastMac));
    EXPECT_EQ(device(1).last_lid, 0xc111);
}

TEST_F(Joining, the_connection_manager_is_asked_again_after_the_interface_changed) {
    const VerbsPort& b = open(with_manager(1));
    for (const rdma_cm_event_type type :
         {RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_DEVICE_REMOVAL}) {
        manager_.errors["bind_addr"] = EADDRNOTAVAIL;
        const int binds = manager_.binds;
        manager_.tell(type);
        look(b, 100);
        EXPECT_TRUE(device(1).groups.empty());
        EXPECT_GE(manager_.binds - binds, 3);
        EXPECT_LE(manager_.binds - binds, 6);
        EXPECT_EQ(manager_.ids, 0);
        manager_.errors.clear();
        look(b, 100);
        EXPECT_EQ(device(1).groups, std::set<Gid>{kBroadcastMgid});
    }
    EXPECT_EQ(b.counts().groups_lost, 2U);
}

TEST_F(Joining, odd_reports_are_ignored) {
    const VerbsPort& b = open(with_manager(1));
    const int joins = manager_.joins;
    for (unsigned type = 0; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT + 5; ++type) {
        if (type == RDMA_CM_EVENT_ADDR_CHANGE || type == RDMA_CM_EVENT_DEVICE_REMOVAL) continue;
        for (const std::uintptr_t name :
             {std::uintptr_t{0}, std::uintptr_t{5}, std::uintptr_t{kGroups} + 1, UINTPTR_MAX})
            manager_.tell(type, -ETIMEDOUT, name);
    }
    look(b, 5);
    EXPECT_EQ(manager_.joins, joins);
    EXPECT_EQ(device(1).groups, std::set<Gid>{kBroadcastMgid});
    EXPECT_TRUE(g_reports.empty()) << g_reports[0];
}

// ---- opening

TEST_F(Joining, says_why_it_cannot_start) {
    const test::Refusal kCases[] = {
        {"create_event_channel", ENOENT, Err::kSystem, "sudo modprobe rdma_ucm"},
        {"create_event_channel", EACCES, Err::kPermission, "chmod a+rw /dev/infiniband/rdma_cm"},
        {"create_id", ENOMEM, Err::kPortDown, "has one (Cannot allocate memory)"},
        {"bind_addr", EINVAL, Err::kPortDown, "has one (Invalid argument)"},
        {"bind_addr", ENODEV, Err::kPortDown, "has one; run: sudo modprobe ib_ipoib"},
        {"join_multicast", EADDRNOTAVAIL, Err::kUnsupported, "IPoIB interface is not up"},
    };
    for (const auto& [function, number, error, words] : kCases) {
        manager_.errors = {{function, number}};
        refused(with_manager(1), error, words);
        EXPECT_EQ(manager_.channels, 0);
    }
    manager_.errors = {{"never_wait", EBADF}};
    refused(with_manager(1), Err::kSystem, "no connection manager: Bad file descriptor");
}

TEST_F(Joining, a_subnet_manager_that_is_silent_is_waited_for_ten_seconds) {
    manager_.silent = true;
    refused(with_manager(1), Err::kUnsupported, "the subnet manager does not answer");
    EXPECT_EQ(manager_.waits, 100);
    device(1).port.state = IBV_PORT_INIT;
    refused(with_manager(1), Err::kPortDown, "see that a subnet manager runs");
}

TEST_F(Joining, takes_the_address_of_its_own_port_and_partition) {
    manager_.own.clear();
    refused(with_manager(1), Err::kPortDown, "no interface of the port and its partition has one");
    manager_.add_address(1, nullptr);
    manager_.add_address(2, &device(0));
    manager_.add_address(3, &device(1), 2);
    manager_.add_address(4, &device(1), 1, 0x8001);
    refused(with_manager(1), Err::kPortDown, "no interface of the port and its partition has one");
    device(1).port.pkey_tbl_len = 3;
    device(1).p_keys = {0, 0xffff, 0x0001};
    PortOptions partition = with_manager(1);
    partition.device.p_key = 0x8001;
    open(partition);
    EXPECT_EQ(manager_.ids, 1) << "a limited member is of the same partition";
}

// ---- RoCE by the connection manager

TEST_F(Joining, on_roce_it_joins_by_an_ipv4_address) {
    FakeDevice& roce = device(2);
    PortOptions with = with_manager(2);
    with.device.join_by_manager = true;
    refused(with, Err::kInvalid, "join=cm needs the GID of an IPv4 address");
    ibv_gid_entry entry = roce.gids[0];
    const Gid own = test::gid_of(3, true);
    std::memcpy(entry.gid.raw, own.data(), own.size());
    roce.gids.push_back(entry);
    refused(with, Err::kInvalid, "join=cm needs the GID of an IPv4 address");
    manager_.errors = {{"bind_addr", EPERM}};
    refused(with, Err::kInvalid, "RoCE v2 (Operation not permitted)");
    manager_.errors.clear();
    manager_.add_address(3, &roce);
    const VerbsPort& c = open(with);
    EXPECT_EQ(mac(c), mac_of({own, 17})) << "the address's GID is chosen";
    EXPECT_TRUE(manager_.has(mgid_of(kBroadcastGroup, kEtherType, true)));
    EXPECT_EQ(roce.memberships, 0);
    manager_.join_status = -ETIMEDOUT;
    listen(c);
    look(c, 3);
    EXPECT_NE(g_reports.back().find("sudo ip link set INTERFACE multicast on"), std::string::npos);
}

TEST_F(Joining, an_attachment_that_fails_is_tried_again) {
    const VerbsPort& b = open(with_manager(1));
    device(1).errors["attach_mcast"] = ENOMEM;
    listen(b);
    look(b, 3);
    ASSERT_EQ(g_reports.size(), 1U);
    EXPECT_NE(g_reports[0].find("Cannot allocate memory"), std::string::npos);
    device(1).errors.clear();
    look(b, 1);
    EXPECT_TRUE(device(1).groups.contains(kMgid));
}

TEST_F(Joining, one_s_own_frames_are_dropped_where_a_device_loops_them_back) {
    const VerbsPort& b = open(with_manager(1));
    fabric_.deliver(test::gid_of(2), 17, kBroadcastMgid, kMulticastQpn, kQKey,
                    payload(kGroup, mac(b)));
    EXPECT_TRUE(take(b).empty());
    fabric_.loops_back = true;
    EXPECT_TRUE(send(b, kBroadcastMac));
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(b.counts().own_echo, 1U);
}

TEST(VerbsManager, is_opened_at_run_time_or_named) {
    CmLibrary library;
    std::string why;
    const Err error = load(library, why);
    if (error != Err::kOk) {
        EXPECT_EQ(error, Err::kUnsupported);
        EXPECT_NE(why.find("apt-get install librdmacm1"), std::string::npos) << why;
        return;
    }
    for (const sockaddr_storage& each : library.addresses())
        EXPECT_TRUE(each.ss_family == AF_INET || each.ss_family == AF_INET6);
    rdma_event_channel closed{.fd = -1};
    EXPECT_NE(library.never_wait(&closed), 0);
    library.wait(&closed, 1);
}

TEST(VerbsManager, that_is_missing_or_too_old_is_named_with_its_package) {
    CmLibrary library;
    std::string why;
    EXPECT_EQ(load(library, why, "libulc-none.so.1"), Err::kUnsupported);
    EXPECT_TRUE(why.starts_with("multicast groups of a subnet manager need libulc-none.so.1 ("))
        << why;
    EXPECT_TRUE(why.ends_with("; run: sudo apt-get install librdmacm1")) << why;
    EXPECT_EQ(load(library, why, "libc.so.6"), Err::kUnsupported);
    EXPECT_EQ(
        why,
        "libc.so.6 has no rdma_create_event_channel; install librdmacm1 of rdma-core 15 or later");
}

}  // namespace
}  // namespace ulc::verbs
