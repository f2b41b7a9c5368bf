// SPDX-License-Identifier: BSD-3-Clause
// Opening an RDMA port: what is chosen, and the sentence for each thing that can be wrong. Devices,
// ports, GIDs, keys and limits are scripted. Also the MAC address and the group addresses of the
// wire.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "tests/unit/verbs/fabric.h"
#include "verbs/device.h"
#include "verbs/verbs_port.h"

namespace ulc::verbs {
namespace {

using test::Fabric;
using test::FakeDevice;

PortOptions options_of(const std::string& device) {
    PortOptions options;
    std::string why;
    EXPECT_EQ(parse_device(device, options.device, why), Err::kOk) << why;
    options.segments = 64;
    return options;
}

// ---- the device string

TEST(VerbsDevice, is_read_from_text) {
    EXPECT_TRUE(is_verbs("verbs,dev=mlx5_0"));
    EXPECT_TRUE(is_verbs("verbs"));
    EXPECT_FALSE(is_verbs("verbsy,dev=mlx5_0"));
    EXPECT_FALSE(is_verbs("shm,path=verbs"));
    DeviceSpec spec;
    std::string why;
    ASSERT_EQ(parse_device("verbs,dev=mlx5_0,port=2,gid=3,pkey=0x8001", spec, why), Err::kOk);
    EXPECT_EQ(spec.name, "mlx5_0");
    EXPECT_EQ(spec.port, 2);
    EXPECT_EQ(spec.gid, 3);
    EXPECT_EQ(spec.p_key, 0x8001);
    ASSERT_EQ(parse_device("verbs,dev=rxe0,join=cm", spec, why), Err::kOk);
    EXPECT_TRUE(spec.join_by_manager);
    ASSERT_EQ(parse_device("verbs,dev=rxe0", spec, why), Err::kOk);
    EXPECT_EQ(spec.port, 1);
    EXPECT_FALSE(spec.join_by_manager);
    EXPECT_FALSE(spec.gid);
    EXPECT_FALSE(spec.p_key);
}

TEST(VerbsDevice, what_is_wrong_is_said) {
    const struct {
        const char* device;
        const char* words;
    } kCases[] = {
        {"verbs", "needs dev=NAME"},
        {"verbs,dev=", "needs dev=NAME"},
        {"verbs,dev=a,port=0", "port=0 is not a port number"},
        {"verbs,dev=a,port=255", "port=255 is not a port number"},
        {"verbs,dev=a,port=1x", "port=1x is not a port number"},
        {"verbs,dev=a,gid=256", "gid=256 is not an index"},
        {"verbs,dev=a,gid=", "gid= is not an index"},
        {"verbs,dev=a,pkey=0", "pkey=0 is not a partition key"},
        {"verbs,dev=a,pkey=0x10000", "pkey=0x10000 is not a partition key"},
        {"verbs,dev=a,join=ip", "join=ip is not join=cm"},
        {"verbs,dev=a,mtu=9", "has no argument 'mtu'"},
    };
    for (const auto& [device, words] : kCases) {
        DeviceSpec spec;
        std::string why;
        EXPECT_EQ(parse_device(device, spec, why), Err::kInvalid) << device;
        EXPECT_NE(why.find(words), std::string::npos) << device << ": " << why;
    }
}

// ---- addresses

// U-3
TEST(VerbsAddress, differs_where_gid_or_queue_pair_differ) {
    const Mac mac = mac_of({test::gid_of(1), 17});
    EXPECT_NE(mac, mac_of({test::gid_of(2), 17}));
    EXPECT_NE(mac, mac_of({test::gid_of(1), 18}));
    EXPECT_EQ(mac, mac_of({test::gid_of(1), 17}));
    const Mac expected{{0x9a, 0x64, 0x6e, 0x00, 0x00, 0x11}};
    Gid known{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x14, 0xff, 0xfe, 0x30, 0, 0};
    EXPECT_EQ(mac_of({known, 17}), expected) << "the hash is part of the wire";
}

// U-5, U-6
TEST(VerbsAddress, gives_each_group_an_mgid_of_its_family) {
    EXPECT_EQ(group_of(kBroadcastMac), kBroadcastGroup);
    EXPECT_EQ(group_of(Mac{{0x03, 0x55, 0x4c, 0, 0, 0}}), 1);
    EXPECT_EQ(group_of(Mac{{0x03, 0x55, 0x4c, 9, 9, 0xff}}), 256);
    const Gid v6{0xff, 0x12, 0x55, 0x4c, 0x88, 0xb5, 0, 0, 0, 0, 0, 0, 0x55, 0x4c, 1, 0};
    EXPECT_EQ(mgid_of(256, 0x88b5, false), v6);
    const Gid v4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 0xb5, 1, 0};
    EXPECT_EQ(mgid_of(256, 0x88b5, true), v4);
}

// ---- what is chosen

class Opening : public ::testing::Test {
protected:
    Opening() : device_(fabric_.add("rxe0", 1)) {}

    Err open(const PortOptions& options) {
        port_.reset();
        return VerbsPort::open(options, &fabric_.library(), port_, why_);
    }
    Err open() { return open(options_of("verbs,dev=rxe0")); }
    /// Opening fails with that error and these words, and leaves nothing behind.
    void refused(Err error, const std::string& words) {
        refused(options_of("verbs,dev=rxe0"), error, words);
    }
    void refused(const PortOptions& options, Err error, const std::string& words) {
        EXPECT_EQ(open(options), error) << why_;
        EXPECT_NE(why_.find(words), std::string::npos) << why_;
        EXPECT_EQ(device_.opens, 0);
    }
    static ibv_gid_entry entry_of(const Gid& gid, std::uint32_t type) {
        ibv_gid_entry entry{};
        std::memcpy(entry.gid.raw, gid.data(), gid.size());
        entry.gid_type = type;
        entry.ndev_ifindex = 7;
        return entry;
    }

    Fabric fabric_;
    FakeDevice& device_;
    std::unique_ptr<VerbsPort> port_;
    std::string why_;
};

TEST_F(Opening, takes_the_link_local_gid_of_roce_v2) {
    const Gid global = test::gid_of(5, true);
    device_.gids = {entry_of(test::gid_of(1), IBV_GID_TYPE_ROCE_V1), ibv_gid_entry{},
                    entry_of(global, IBV_GID_TYPE_ROCE_V2),
                    entry_of(test::gid_of(1), IBV_GID_TYPE_ROCE_V2),
                    entry_of(test::gid_of(2), IBV_GID_TYPE_ROCE_V2)};
    ASSERT_EQ(open(), Err::kOk) << why_;
    EXPECT_EQ(port_->port().info.mac, mac_of({test::gid_of(1), 17}));
    EXPECT_EQ(device_.memberships, 1) << "v2: the kernel joins too";
    ASSERT_EQ(open(options_of("verbs,dev=rxe0,gid=2")), Err::kOk) << why_;
    EXPECT_EQ(port_->port().info.mac, mac_of({global, 17}));
    ASSERT_EQ(open(options_of("verbs,dev=rxe0,gid=0")), Err::kOk) << why_;
    EXPECT_EQ(device_.memberships, 1) << "v1: no IP";
}

TEST_F(Opening, does_without_the_newer_function) {
    Library old = fabric_.library();
    old.query_gid_ex = nullptr;
    ASSERT_EQ(VerbsPort::open(options_of("verbs,dev=rxe0"), &old, port_, why_), Err::kOk) << why_;
    EXPECT_EQ(port_->port().info.mac, mac_of({test::gid_of(1), 17}));
}

// U-2
TEST_F(Opening, takes_what_the_device_offers) {
    device_.attributes.max_qp_wr = 100;
    device_.inline_limit = 0;
    device_.port.active_mtu = IBV_MTU_4096;
    device_.port.active_speed = 99;
    PortOptions options = options_of("verbs,dev=rxe0");
    options.mtu = 1500;
    ASSERT_EQ(open(options), Err::kOk) << why_;
    EXPECT_EQ(port_->port().info.tx_ring_frames, 100);
    EXPECT_EQ(port_->port().info.mtu, 1500);
    EXPECT_EQ(port_->port().info.link_bits_per_second, 0U) << "an unknown speed";
    EXPECT_EQ(device_.receives.size(), 100U);
    options.mtu = 0;
    ASSERT_EQ(open(options), Err::kOk) << why_;
    EXPECT_EQ(port_->port().info.mtu, 4096 - 14);
}

TEST_F(Opening, finds_a_partition_key_in_either_membership) {
    device_.port.pkey_tbl_len = 2;
    device_.p_keys = {0xffff, 0x8001};
    EXPECT_EQ(open(options_of("verbs,dev=rxe0,pkey=1")), Err::kOk) << why_;
    EXPECT_EQ(open(options_of("verbs,dev=rxe0,pkey=0x8001")), Err::kOk) << why_;
    port_.reset();
    refused(options_of("verbs,dev=rxe0,pkey=2"), Err::kInvalid, "has no such partition key");
}

// ---- what is wrong

TEST_F(Opening, says_which_devices_there_are) {
    fabric_.add("rxe1", 2);
    refused(options_of("verbs,dev=mlx5_0"), Err::kInvalid,
            "no RDMA device 'mlx5_0'; there is: rxe0, rxe1");
    refused(options_of("verbs,dev=rxe0,port=2"), Err::kInvalid, "has no port 2; port= is 1 to 1");
    refused(options_of("verbs,dev=rxe0,gid=1"), Err::kInvalid, "has no GID 1");
}

TEST_F(Opening, says_how_to_get_a_device) {
    fabric_.no_devices = true;
    refused(Err::kInvalid, "no RDMA device; load the driver");
    fabric_.list_error = ENOSYS;
    refused(Err::kInvalid, "no RDMA device (Function not implemented)");
}

TEST_F(Opening, says_what_the_port_lacks) {
    const auto with = [&](const std::function<void()>& change) {
        const ibv_port_attr port = device_.port;
        const ibv_device_attr attributes = device_.attributes;
        const auto gids = device_.gids;
        change();
        return [this, port, attributes, gids](Err error, const std::string& words) {
            refused(error, words);
            device_.port = port;
            device_.attributes = attributes;
            device_.gids = gids;
        };
    };
    with([&] { device_.port.active_mtu = IBV_MTU_512; })(Err::kInvalid, "MTU of 512 octets");
    with([&] { device_.port.active_mtu = static_cast<ibv_mtu>(77); })(Err::kInvalid,
                                                                      "MTU of 0 octets");
    with([&] { device_.attributes.max_mcast_grp = 0; })(Err::kUnsupported, "has no multicast");
    with([&] { device_.port.state = IBV_PORT_DOWN; })(Err::kPortDown, "is not active");
    with([&] { device_.gids.clear(); })(Err::kPortDown, "has no GID; run:");
    with([&] { device_.port.gid_tbl_len = -1; })(Err::kPortDown, "has no GID; run:");
    with([&] { device_.attributes.max_cqe = -5; })(Err::kUnsupported, "takes no work requests");
    PortOptions large = options_of("verbs,dev=rxe0");
    large.mtu = 1011;
    refused(large, Err::kInvalid, "carries 1010 octets behind the Ethernet header");
    large.mtu = 1010;
    EXPECT_EQ(open(large), Err::kOk) << why_;
}

TEST_F(Opening, says_what_the_system_refuses) {
    const test::Refusal kCases[] = {
        {"open_device", EACCES, Err::kPermission, "sudo chmod a+rw /dev/infiniband/uverbs*"},
        {"open_device", ENOENT, Err::kSystem, "run: sudo modprobe ib_uverbs"},
        {"open_device", EBUSY, Err::kSystem, "cannot be opened: Device or resource busy"},
        {"query_device", EIO, Err::kSystem, "does not answer: Input/output error"},
        {"query_port", EIO, Err::kSystem, "port 1 does not answer"},
        {"alloc_pd", ENOMEM, Err::kSystem, "no protection domain"},
        {"create_cq", ENOMEM, Err::kNoMemory, "ulimit -l unlimited"},
        {"create_qp", ENOMEM, Err::kNoMemory, "lower --tx-descriptors"},
        {"create_qp", EPERM, Err::kSystem, "no queues: Operation not permitted"},
        {"reg_mr", ENOMEM, Err::kNoMemory, "run: ulimit -l unlimited"},
        {"reg_mr", EFAULT, Err::kSystem, "of memory: Bad address"},
        {"modify_qp", EINVAL, Err::kSystem, "its queue pair does not start"},
        {"attach_mcast", EOPNOTSUPP, Err::kUnsupported, "cannot join a multicast group"},
        {"join_group", ENODEV, Err::kUnsupported, "cannot join a multicast group"},
    };
    for (const auto& [function, number, error, words] : kCases) {
        device_.errors = {{function, number}};
        refused(error, words);
    }
}

TEST(VerbsLibrary, is_opened_at_run_time_or_named) {
    Library library;
    std::string why;
    const Err error = load(library, why);
    if (error != Err::kOk) {
        EXPECT_EQ(error, Err::kUnsupported);
        EXPECT_NE(why.find("apt-get install libibverbs1"), std::string::npos) << why;
        return;
    }
    int count = -1;
    ibv_device** list = library.get_device_list(&count);  // here there may be devices, or none
    if (list != nullptr) library.free_device_list(list);
    for (const auto* each :
         {reinterpret_cast<void*>(library.poll_cq), reinterpret_cast<void*>(library.post_send),
          reinterpret_cast<void*>(library.post_recv)})
        EXPECT_NE(each, nullptr);
}

TEST(VerbsLibrary, that_is_missing_or_too_old_is_named_with_its_package) {
    Library library;
    std::string why;
    EXPECT_EQ(load(library, why, "libulc-none.so.1"), Err::kUnsupported);
    EXPECT_TRUE(why.starts_with("verbs devices need libulc-none.so.1 (")) << why;
    EXPECT_TRUE(why.ends_with("; run: sudo apt-get install libibverbs1 ibverbs-providers")) << why;
    EXPECT_EQ(load(library, why, "libc.so.6"), Err::kUnsupported);
    EXPECT_EQ(why,
              "libc.so.6 has no ibv_get_device_list; install libibverbs1 of rdma-core 15 or later");
}

TEST(VerbsLibrary, joins_a_group_of_ip_with_a_socket) {
    const int fd = join_ip_group(mgid_of(3, 0x88b5, true), true,
                                 Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, 0);
    if (fd >= 0) {
        EXPECT_EQ(close(fd), 0);
    } else {
        EXPECT_EQ(errno, ENODEV) << "only a machine without a loopback interface refuses";
    }
    EXPECT_LT(join_ip_group(test::gid_of(1), false, {}, 1), 0) << "that is no group";
    EXPECT_NE(errno, 0);
}

}  // namespace
}  // namespace ulc::verbs
