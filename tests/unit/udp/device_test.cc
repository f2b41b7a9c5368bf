// SPDX-License-Identifier: BSD-3-Clause
// Device strings of UDP sockets (udp/device.h), and the text of addresses.
#include "udp/device.h"

#include <gtest/gtest.h>

#include "udp/datagram.h"

namespace ulc::udp {
namespace {

TEST(UdpDevice, has_an_address_a_port_and_peers) {
    DeviceSpec spec;
    std::string why;
    ASSERT_EQ(
        parse_device("udp,addr=10.0.0.5,port=4001,peer=10.0.0.1:4001,peer=10.0.0.2:1", spec, why),
        Err::kOk)
        << why;
    EXPECT_EQ(text_of(spec.own), "10.0.0.5:4001");
    ASSERT_EQ(spec.peers.size(), 2U);
    EXPECT_EQ(text_of(spec.peers[1]), "10.0.0.2:1");
    ASSERT_EQ(parse_device("udp,addr=fd00::5,peer=[fd00::1]:9", spec, why), Err::kOk) << why;
    EXPECT_EQ(text_of(spec.own), "[fd00::5]:0");
    EXPECT_EQ(text_of(spec.peers.at(0)), "[fd00::1]:9");
}

TEST(UdpDevice, means_all_addresses_of_the_machine_unless_it_names_one) {
    DeviceSpec spec;
    std::string why;
    for (const auto& [device, own] :
         {std::pair{"udp", "0.0.0.0:0"}, std::pair{"udp,port=7", "0.0.0.0:7"},
          std::pair{"udp,peer=10.0.0.1:9", "0.0.0.0:0"},
          std::pair{"udp,peer=[fd00::1]:9", "[::]:0"}}) {
        ASSERT_EQ(parse_device(device, spec, why), Err::kOk) << why;
        EXPECT_EQ(text_of(spec.own), own) << device;
        EXPECT_TRUE(spec.own.is_any());
    }
    ASSERT_EQ(parse_device("udp,addr=10.0.0.0", spec, why), Err::kOk) << why;
    EXPECT_FALSE(spec.own.is_any());
}

TEST(UdpDevice, has_long_packets_on_the_loopback_interface_if_the_socket_has_space) {
    const auto octets_at = [](const char* ip, std::size_t space) {
        Address own;
        EXPECT_TRUE(read_ip(ip, own));
        return packet_octets(own, space);
    };
    for (const char* ip : {"127.0.0.1", "127.77.3.2", "::1"}) {
        EXPECT_EQ(octets_at(ip, 8 << 20), kQuestionMax + kIpv4Octets) << ip;
        EXPECT_EQ(octets_at(ip, 256 * 4000), 4000) << ip;
        EXPECT_EQ(octets_at(ip, 212'992), 1500) << ip;
    }
    for (const char* ip : {"0.0.0.0", "::", "10.0.0.5", "126.0.0.1", "128.0.0.1", "fd00::1"})
        EXPECT_EQ(octets_at(ip, 8 << 20), 1500) << ip;
}

TEST(UdpDevice, of_other_nodes_are_read_as_lists) {
    std::vector<Address> read;
    ASSERT_TRUE(read_addresses("10.0.0.1:9,[fd00::1]:7", read));
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(text_of(read[0]), "10.0.0.1:9");
    EXPECT_EQ(text_of(read[1]), "[fd00::1]:7");
    for (const char* wrong : {"", ",", "10.0.0.1", "10.0.0.1:9;10.0.0.2:9", "10.0.0.1:9,x",
                              "1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1"})
        EXPECT_FALSE(read_addresses(wrong, read)) << wrong;
    EXPECT_EQ(read.size(), 2U) << "a wrong list changes nothing";
}

TEST(UdpDevice, finds_the_addresses_of_this_machine) {
    const std::vector<Address> here = addresses_here(true, 4711, 4);
    ASSERT_FALSE(here.empty());
    for (const Address& address : here) {
        EXPECT_TRUE(address.is_v4());
        EXPECT_FALSE(address.is_any());
        EXPECT_EQ(address.port, 4711);
    }
}

TEST(UdpDevice, names_peers_that_the_resolver_knows) {
    DeviceSpec spec;
    std::string why;
    ASSERT_EQ(parse_device("udp,peer=localhost:4001,peer=10.0.0.1:2", spec, why), Err::kOk) << why;
    ASSERT_EQ(spec.named_peers.size(), 1U);
    EXPECT_EQ(spec.peers.size(), 1U);
    std::vector<Address> found;
    ASSERT_EQ(resolve(spec.named_peers[0], true, found, why), Err::kOk) << why;
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(text_of(found[0]), "127.0.0.1:4001");
    EXPECT_EQ(resolve("no-such-node.invalid:4001", true, found, why), Err::kInvalid);
    EXPECT_TRUE(why.starts_with("peer=no-such-node.invalid:4001: the name is not known: ")) << why;
}

TEST(UdpDevice, says_what_is_wrong) {
    const auto why_not = [](std::string_view device) {
        DeviceSpec spec;
        std::string why;
        EXPECT_EQ(parse_device(device, spec, why), Err::kInvalid) << device;
        return why;
    };
    EXPECT_EQ(why_not("udp,addr=host"),
              "udp addr=host is no IP address of this machine, as 10.0.0.5");
    EXPECT_EQ(why_not("udp,addr=10.0.0.5,port=70000"),
              "udp port=70000 is not a number from 0 to 65535");
    EXPECT_EQ(why_not("udp,addr=10.0.0.5,port="), "udp port= is not a number from 0 to 65535");
    for (const char* peer :
         {"10.0.0.1", "10.0.0.1:0", "[10.0.0.1]:5", "fd00::1:5:x", ":5", "a b:5"})
        EXPECT_EQ(why_not(std::string("udp,addr=10.0.0.5,peer=") + peer),
                  std::string("udp peer=") + peer +
                      " is not the address and port of a node, as 10.0.0.1:4001, [fd00::1]:4001 or "
                      "node1:4001");
    EXPECT_EQ(why_not("udp,addr=10.0.0.5,peer=[fd00::1]:5"),
              "udp peer=[fd00::1]:5 is not of the same IP version as its own address");
    EXPECT_EQ(why_not("udp,addr=10.0.0.5,host=x"),
              "udp has no argument 'host'; write udp[,addr=IP][,port=NUMBER][,peer=IP:PORT]…"
              "[,key=FILE|,open]");
    EXPECT_EQ(why_not("udp,key="), "udp key= names no file");
    EXPECT_EQ(why_not("udp,open=1"), why_not("udp,host=x").replace(21, 4, "open"));
    EXPECT_EQ(why_not("udp,open,key=a"), "udp is sealed by key= or open; leave one out");
}

TEST(UdpDevice, is_known_by_its_name) {
    EXPECT_TRUE(is_udp("udp"));
    EXPECT_TRUE(is_udp("udp,addr=10.0.0.5"));
    EXPECT_FALSE(is_udp("udp0,addr=10.0.0.5"));
    EXPECT_FALSE(is_udp("net_udp"));
}

}  // namespace
}  // namespace ulc::udp
