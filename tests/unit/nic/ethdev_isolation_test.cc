// SPDX-License-Identifier: BSD-3-Clause
// A port on a bifurcated NIC: which calls its driver gets in which order, which frames the rule
// names, which frames a port leaves out, and what the user reads if the driver refuses. A MAC
// address that changes in mid-stream, with and without an interface of the kernel. The driver is
// written here, in DPDK's own interface for drivers. No hardware is claimed by this test.
#include <ethdev_driver.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <rte_flow_driver.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "dpdk/eal.h"
#include "dpdk/ethdev_port.h"
#include "dpdk/kernel/isolation.h"

namespace ulc::dpdk {
namespace {

constexpr const char* kSlot = "0000:05:00.0";
constexpr std::uint16_t kOurs = 0x88B5;
constexpr std::uint16_t kIp = 0x0800;
constexpr rte_ether_addr kStation{{0x02, 0, 0, 0, 0, 5}};
constexpr rte_ether_addr kGroup{{0x03, 0x55, 0x4C, 0x43, 0, 9}};

/// A NIC and its driver: the calls that came, and the answers to give.
struct Nic {
    const char* driver = "mlx5_pci";
    const char* refuses_isolation = nullptr;  ///< the message of its error
    const char* refuses_rule = nullptr;
    std::vector<std::string> calls;
    bool isolated = false;
    bool has_rule = false;
    bool keeps_addresses = false;  ///< passes frames for further addresses
    unsigned interface = 0;        ///< index of the kernel's
    rte_flow_item_eth type{};
    rte_flow_item_eth mask{};
    rte_mempool* pool = nullptr;      ///< where frames come in
    std::vector<rte_mbuf*> arriving;  ///< the last one first

    /// True if the engine gets such a frame, and not the kernel.
    [[nodiscard]] bool gives_to_engine(const rte_ether_addr& to, std::uint16_t ether_type) const {
        if (!isolated) return true;
        rte_ether_hdr frame{};
        frame.dst_addr = to;
        frame.ether_type = rte_cpu_to_be_16(ether_type);
        const auto* octets = reinterpret_cast<const std::uint8_t*>(&frame);
        const auto* wanted = reinterpret_cast<const std::uint8_t*>(&type.hdr);
        const auto* compared = reinterpret_cast<const std::uint8_t*>(&mask.hdr);
        for (std::size_t i = 0; i < sizeof frame; ++i)
            if ((octets[i] & compared[i]) != (wanted[i] & compared[i])) return false;
        return has_rule;
    }
};
Nic* g_nic = nullptr;

int note(const char* call) {
    g_nic->calls.emplace_back(call);
    return 0;
}

int refuse(rte_flow_error* error, const char* message) {
    return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, message);
}

int isolate(rte_eth_dev* /*device*/, int set, rte_flow_error* error) {
    note("isolate");
    if (g_nic->refuses_isolation != nullptr) return refuse(error, g_nic->refuses_isolation);
    g_nic->isolated = set != 0;
    return 0;
}

rte_flow* create_rule(rte_eth_dev* /*device*/, const rte_flow_attr* attributes,
                      const rte_flow_item* items, const rte_flow_action* actions,
                      rte_flow_error* error) {
    note("rule");
    const char* refusal = g_nic->refuses_rule;
    if (attributes->ingress == 0 || attributes->group != 0) refusal = "attributes";
    if (items[0].type != RTE_FLOW_ITEM_TYPE_ETH || items[1].type != RTE_FLOW_ITEM_TYPE_END)
        refusal = "items";
    if (actions[0].type != RTE_FLOW_ACTION_TYPE_QUEUE ||
        static_cast<const rte_flow_action_queue*>(actions[0].conf)->index != 0 ||
        actions[1].type != RTE_FLOW_ACTION_TYPE_END)
        refusal = "actions";
    if (refusal != nullptr) {
        refuse(error, refusal);
        return nullptr;
    }
    g_nic->has_rule = true;
    g_nic->type = *static_cast<const rte_flow_item_eth*>(items[0].spec);
    g_nic->mask = *static_cast<const rte_flow_item_eth*>(items[0].mask);
    return reinterpret_cast<rte_flow*>(g_nic);
}

const rte_flow_ops& rules() {
    static const rte_flow_ops ops = [] {
        rte_flow_ops made{};
        made.isolate = isolate;
        made.create = create_rule;
        return made;
    }();
    return ops;
}

int infos(rte_eth_dev* /*device*/, rte_eth_dev_info* info) {
    info->max_rx_queues = info->max_tx_queues = 1;
    info->max_mac_addrs = 2;
    info->if_index = g_nic->interface;
    info->max_rx_pktlen = 9018;
    info->min_mtu = 68;
    info->max_mtu = 9000;
    for (rte_eth_desc_lim* limit : {&info->rx_desc_lim, &info->tx_desc_lim})
        *limit = {.nb_max = 512, .nb_min = 16, .nb_align = 1};
    return 0;
}

std::uint16_t receive(void* /*queue*/, rte_mbuf** out, std::uint16_t n) {
    std::uint16_t count = 0;
    for (; count < n && !g_nic->arriving.empty(); ++count) {
        out[count] = g_nic->arriving.back();
        g_nic->arriving.pop_back();
    }
    return count;
}

const eth_dev_ops& operations() {
    static const eth_dev_ops ops = [] {
        eth_dev_ops made{};
        made.dev_configure = [](rte_eth_dev*) { return note("configure"); };
        made.dev_start = [](rte_eth_dev*) { return note("start"); };
        made.dev_stop = [](rte_eth_dev*) { return note("stop"); };
        made.dev_close = [](rte_eth_dev* device) {
            device->data->mac_addrs = nullptr;  // DPDK would free it
            return note("close");
        };
        made.dev_infos_get = infos;
        made.rx_queue_setup = [](rte_eth_dev*, std::uint16_t, std::uint16_t, unsigned,
                                 const rte_eth_rxconf*, rte_mempool* pool) {
            g_nic->pool = pool;
            return note("rx");
        };
        made.tx_queue_setup = [](rte_eth_dev*, std::uint16_t, std::uint16_t, unsigned,
                                 const rte_eth_txconf*) { return note("tx"); };
        made.mac_addr_add = [](rte_eth_dev*, rte_ether_addr*, std::uint32_t, std::uint32_t) {
            note("address");
            return g_nic->keeps_addresses ? 0 : -ENOTSUP;
        };
        made.link_update = [](rte_eth_dev*, int) { return 0; };
        made.allmulticast_enable = [](rte_eth_dev*) { return note("all multicasts"); };
        made.allmulticast_disable = [](rte_eth_dev*) { return 0; };
        made.promiscuous_enable = [](rte_eth_dev*) { return note("promiscuous"); };
        made.set_mc_addr_list = [](rte_eth_dev*, rte_ether_addr*, std::uint32_t) {
            return note("filter");
        };
        made.flow_ops_get = [](rte_eth_dev*, const rte_flow_ops** out) {
            *out = &rules();
            return 0;
        };
        return made;
    }();
    return ops;
}

class Isolation : public testing::Test {
protected:
    void SetUp() override {
        EalOptions eal;
        eal.memory_mb = 64;
        eal.hugepages = Hugepages::kNever;
        EalReport report;
        ASSERT_EQ(start_eal(eal, report, why), Err::kOk) << why;
        g_nic = &nic;
    }
    /// Appears as a card does that DPDK's own driver has probed.
    void plug_in() {
        driver.name = nic.driver;
        device.name = kSlot;
        device.driver = &driver;
        rte_eth_dev* made = rte_eth_dev_allocate(kSlot);
        ASSERT_NE(made, nullptr);
        made->device = &device;
        made->dev_ops = &operations();
        made->rx_pkt_burst = receive;
        made->data->mac_addrs = stations.data();
        rte_eth_dev_probing_finish(made);
        ethdev = made->data->port_id;
    }
    Err open(bool promiscuous = false, bool exception = false, bool all_types = false) {
        PortOptions options;
        options.device = kSlot;
        options.segments = 64;
        options.promiscuous = promiscuous;
        options.exception = exception;
        options.all_types = all_types;
        options.ether_type = kOurs;
        return EthdevPort::open(options, port, why);
    }
    void TearDown() override {
        port.reset();
        if (rte_eth_dev_is_valid_port(ethdev) != 0) rte_eth_dev_close(ethdev);
    }
    [[nodiscard]] std::ptrdiff_t place_of(const char* call) const {
        return std::find(nic.calls.begin(), nic.calls.end(), call) - nic.calls.begin();
    }
    [[nodiscard]] bool was_asked(const char* call) const {
        return place_of(call) != static_cast<std::ptrdiff_t>(nic.calls.size());
    }

    Nic nic;
    rte_driver driver{};
    rte_device device{};
    std::array<rte_ether_addr, 2> stations{kStation};
    std::uint16_t ethdev = RTE_MAX_ETHPORTS;
    std::unique_ptr<EthdevPort> port;
    std::string why;
};

TEST_F(Isolation, the_engine_takes_its_ether_type_and_the_kernel_keeps_the_rest) {
    for (const char* name : {"mlx5_pci", "mlx5_auxiliary", "net_mlx4"}) {
        nic = Nic{.driver = name};
        plug_in();
        ASSERT_EQ(open(), Err::kOk) << name << ": " << why;
        EXPECT_TRUE(nic.isolated) << name;
        EXPECT_TRUE(nic.gives_to_engine(kStation, kOurs));
        EXPECT_TRUE(nic.gives_to_engine(kGroup, kOurs));
        EXPECT_FALSE(nic.gives_to_engine(kStation, kIp));
        EXPECT_FALSE(nic.gives_to_engine(kGroup, kIp));
        EXPECT_FALSE(nic.gives_to_engine(kStation, kOurs + 1));
        TearDown();
        EXPECT_TRUE(was_asked("close")) << "the driver drops the rule then";
    }
}

TEST_F(Isolation, the_driver_is_told_before_it_makes_rules_of_its_own) {
    plug_in();
    ASSERT_EQ(open(), Err::kOk) << why;
    EXPECT_LT(place_of("isolate"), place_of("configure"));
    EXPECT_LT(place_of("start"), place_of("rule"));
    EXPECT_EQ(std::count(nic.calls.begin(), nic.calls.end(), "rule"), 1);
    EXPECT_FALSE(was_asked("filter")) << "the kernel's multicasts are the kernel's";
    EXPECT_FALSE(was_asked("promiscuous"));
    EXPECT_EQ(port->port().info.multicast_filters, kPassesAll);
}

TEST_F(Isolation, other_drivers_and_switch_ports_take_all_frames) {
    nic.driver = "net_e1000_igb";
    plug_in();
    ASSERT_EQ(open(), Err::kOk) << why;
    EXPECT_FALSE(was_asked("isolate"));
    EXPECT_FALSE(was_asked("rule"));
    TearDown();
    nic = Nic{};
    plug_in();
    ASSERT_EQ(open(true), Err::kOk) << why;
    EXPECT_FALSE(was_asked("isolate"));
    EXPECT_FALSE(was_asked("rule"));
    EXPECT_TRUE(was_asked("promiscuous"));
}

TEST_F(Isolation, a_driver_that_cannot_leave_ip_with_the_kernel_is_not_used) {
    nic.refuses_isolation = "no isolation in this mode";
    plug_in();
    EXPECT_EQ(open(), Err::kInvalid);
    EXPECT_EQ(port, nullptr);
    EXPECT_NE(why.find("0000:05:00.0: its driver cannot leave the frames of IP with the kernel: "
                       "no isolation in this mode"),
              std::string::npos)
        << why;
    EXPECT_NE(why.find("verbs,dev=NAME"), std::string::npos) << why;
    EXPECT_FALSE(was_asked("configure"));
}

// DPDK's driver for mlx4 compares destination addresses only, and says so in these words.
TEST_F(Isolation, a_driver_that_compares_no_ether_types_is_not_used) {
    nic.driver = "net_mlx4";
    nic.refuses_rule = "mlx4 does not support matching partial Ethernet fields";
    plug_in();
    EXPECT_EQ(open(), Err::kInvalid);
    EXPECT_EQ(port, nullptr);
    EXPECT_NE(why.find("cannot choose frames by EtherType 0x88B5: mlx4 does not support"),
              std::string::npos)
        << why;
    EXPECT_TRUE(was_asked("close")) << "the NIC is the kernel's again";
}

TEST_F(Isolation, an_exception_interface_has_nothing_to_do_there) {
    plug_in();
    EXPECT_EQ(open(false, true), Err::kInvalid);
    EXPECT_NE(why.find("leave out exception"), std::string::npos) << why;
    EXPECT_FALSE(was_asked("configure"));
}

TEST_F(Isolation, a_port_whose_ip_the_kernel_keeps_cannot_pass_frames_of_all_types) {
    plug_in();
    EXPECT_EQ(open(false, false, true), Err::kInvalid);
    EXPECT_NE(why.find("use udp"), std::string::npos) << why;
    EXPECT_FALSE(was_asked("configure"));
}

/// Ports whose MAC address changes after they were opened.
class Station : public Isolation {
protected:
    static constexpr Mac kOld{{0x02, 0, 0, 0, 0, 5}};
    static constexpr Mac kNew{{0x02, 0, 0, 0, 0, 6}};

    void open_station(bool promiscuous = false) {
        plug_in();
        ASSERT_EQ(open(promiscuous), Err::kOk) << why;
        nic.calls.clear();  // DPDK gives a device that starts the addresses that it knows
    }
    [[nodiscard]] const InterfaceState& look() const {
        (void)port->port().link_up(port->port().context);
        return *port->port().interface(port->port().context);
    }
};

TEST_F(Station, an_address_that_the_driver_changed_is_noticed) {
    nic.driver = "net_bonding";
    open_station();
    EXPECT_EQ(look().mac, kOld);
    EXPECT_TRUE(look().keeps_own);
    stations[0].addr_bytes[5] = 6;
    EXPECT_EQ(look().mac, kNew);
    EXPECT_EQ(look().own, kOld);
    EXPECT_EQ(look().name, kSlot);
    EXPECT_FALSE(look().keeps_own) << "the driver passes one address";
    EXPECT_EQ(std::count(nic.calls.begin(), nic.calls.end(), "address"), 1);
    EXPECT_EQ(look().mtu, port->port().info.mtu);
    EXPECT_EQ(port->port().take_address(port->port().context), kNew);
    EXPECT_EQ(port->port().info.mac, kNew);
    EXPECT_TRUE(look().keeps_own);
}

TEST_F(Station, the_old_address_is_kept_where_the_driver_can) {
    nic.driver = "net_iavf";
    nic.keeps_addresses = true;
    open_station();
    stations[0].addr_bytes[5] = 6;
    EXPECT_EQ(look().mac, kNew);
    EXPECT_TRUE(look().keeps_own);
    EXPECT_EQ(std::memcmp(stations[1].addr_bytes, kOld.octets.data(), 6), 0);
}

TEST_F(Station, a_port_that_takes_all_frames_keeps_any_address) {
    open_station(true);
    stations[0].addr_bytes[5] = 6;
    EXPECT_EQ(look().mac, kNew);
    EXPECT_TRUE(look().keeps_own);
    EXPECT_FALSE(was_asked("address"));
}

/// Gives the loopback interface of the thread's namespace an address.
bool set_loopback(const Mac& mac) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq query{};
    std::strcpy(query.ifr_name, "lo");
    query.ifr_hwaddr.sa_family = ARPHRD_LOOPBACK;
    std::memcpy(query.ifr_hwaddr.sa_data, mac.octets.data(), sizeof mac.octets);
    const bool done = ioctl(fd, SIOCSIFHWADDR, &query) == 0;
    close(fd);
    return done;
}

// The driver of a bifurcated NIC keeps the address that it read when it was opened.
TEST_F(Station, another_address_of_the_kernels_interface_is_noticed) {
    const int before = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) != 0) {
        close(before);
        GTEST_SKIP() << "needs root, for a network namespace";
    }
    EXPECT_TRUE(set_loopback(kOld));
    nic.interface = if_nametoindex("lo");
    open_station();
    EXPECT_EQ(look().name, "lo");
    EXPECT_EQ(look().mac, kOld);
    EXPECT_TRUE(set_loopback(kNew));
    EXPECT_EQ(look().mac, kNew);
    EXPECT_EQ(look().own, kOld);
    EXPECT_TRUE(look().keeps_own) << "the kernel passes frames for it";
    EXPECT_EQ(look().mtu, port->port().info.mtu) << "that of lo is not the port's";
    EXPECT_EQ(port->port().take_address(port->port().context), kNew);
    EXPECT_FALSE(was_asked("address"));
    EXPECT_EQ(setns(before, CLONE_NEWNET), 0);
    close(before);
}

// Drivers over the kernel's sockets strip the tag of a VLAN and say so in the frame's flags.
// Without the flag the field of the tag has no meaning.
TEST_F(Isolation, frames_of_a_vlan_or_of_two_buffers_are_left_out_and_counted) {
    plug_in();
    ASSERT_EQ(open(), Err::kOk) << why;
    const auto make = [this](std::uint64_t flags, std::uint16_t tag) {
        rte_mbuf* frame = rte_pktmbuf_alloc(nic.pool);
        EXPECT_NE(frame, nullptr);
        std::memset(rte_pktmbuf_append(frame, 60), 0, 60);
        std::memcpy(rte_pktmbuf_mtod(frame, void*), &kStation, sizeof kStation);
        frame->ol_flags |= flags;
        frame->vlan_tci = tag;
        return frame;
    };
    const auto is_taken = [this](rte_mbuf* frame) {
        nic.arriving.push_back(frame);
        const Port& its = port->port();
        Segment* got = nullptr;
        const bool taken = its.rx(its.context, &got, 1) == 1;
        if (taken) its.pool.drop(got);
        return taken;
    };
    constexpr std::uint64_t kStripped = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    constexpr std::uint16_t kPriority = 0x2000;
    EXPECT_TRUE(is_taken(make(0, 0)));
    EXPECT_TRUE(is_taken(make(kStripped, kPriority))) << "VLAN 0 has a priority alone";
    EXPECT_TRUE(is_taken(make(0, 7)));
    EXPECT_FALSE(is_taken(make(kStripped, kPriority | 7)));
    rte_mbuf* whole = make(0, 0);
    ASSERT_EQ(rte_pktmbuf_chain(whole, make(0, 0)), 0);
    EXPECT_FALSE(is_taken(whole)) << "more than a buffer holds is above the MTU";
    const PortDrops drops = port->port().drops(port->port().context);
    EXPECT_EQ(drops.vlan, 1U);
    EXPECT_EQ(drops.too_long, 1U);
}

TEST_F(Isolation, a_port_of_all_types_puts_a_tag_back_that_the_driver_stripped) {
    nic.driver = "net_e1000_igb";
    plug_in();
    ASSERT_EQ(open(false, false, true), Err::kOk) << why;
    constexpr std::uint64_t kStripped = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    rte_mbuf* frame = rte_pktmbuf_alloc(nic.pool);
    ASSERT_NE(frame, nullptr);
    auto* octets = reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(frame, 60));
    for (unsigned n = 0; n < 60; ++n)
        octets[n] = static_cast<std::uint8_t>(n);
    std::memcpy(octets, &kStation, sizeof kStation);
    frame->ol_flags |= kStripped;
    frame->vlan_tci = 0x2007;
    nic.arriving.push_back(frame);
    const Port& its = port->port();
    Segment* got = nullptr;
    ASSERT_EQ(its.rx(its.context, &got, 1), 1);
    ASSERT_EQ(got->length, 64U);
    EXPECT_EQ(std::memcmp(got->frame, &kStation, sizeof kStation), 0);
    constexpr std::array<std::uint8_t, 6> kTagged{0x81, 0x00, 0x20, 0x07, 12, 13};
    EXPECT_EQ(std::memcmp(got->frame + 12, kTagged.data(), kTagged.size()), 0);
    EXPECT_EQ(got->frame[63], std::byte{59});
    its.pool.drop(got);
    EXPECT_EQ(its.drops(its.context).vlan, 0U);
}

TEST(IsBifurcated, net_tap_is_with_an_interface_of_the_kernel_behind_it) {
    DeviceSpec spec;
    EXPECT_FALSE(is_bifurcated(spec, "net_tap"));
    spec.arguments = {"remote=eth0"};
    EXPECT_TRUE(is_bifurcated(spec, "net_tap"));
    EXPECT_FALSE(is_bifurcated(spec, "net_af_packet"));
}

}  // namespace
}  // namespace ulc::dpdk
