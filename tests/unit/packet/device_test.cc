// SPDX-License-Identifier: BSD-3-Clause
// Device strings of a NIC shared with the kernel: each argument of DPDK's driver is taken or
// refused in words.
#include "packet/device.h"

#include <gtest/gtest.h>

namespace ulc::packet {
namespace {

std::string why_not(const std::string& device) {
    DeviceSpec spec;
    std::string why;
    EXPECT_EQ(parse_device(device, spec, why), Err::kInvalid) << device;
    return why;
}

DeviceSpec parsed(const std::string& device) {
    DeviceSpec spec;
    std::string why;
    EXPECT_EQ(parse_device(device, spec, why), Err::kOk) << device << ": " << why;
    return spec;
}

TEST(PacketDevice, takes_the_names_of_dpdks_driver_with_and_without_a_number) {
    EXPECT_TRUE(is_packet("net_af_packet,iface=eth0"));
    EXPECT_TRUE(is_packet("net_af_packet12,iface=eth0"));
    EXPECT_TRUE(is_packet("net_af_packet"));
    EXPECT_FALSE(is_packet("net_af_packets,iface=eth0"));
    EXPECT_FALSE(is_packet("eth_af_packet0,iface=eth0"));
    EXPECT_FALSE(is_packet("net_af_xdp,iface=eth0"));
}

TEST(PacketDevice, takes_every_argument_that_means_something) {
    const DeviceSpec spec =
        parsed("net_af_packet0,iface=eth0.7,framecnt=256,qdisc_bypass=1,qpairs=1");
    EXPECT_EQ(spec.interface, "eth0.7");
    EXPECT_EQ(spec.receive_frames, 256U);
    EXPECT_TRUE(spec.qdisc_bypass);
    EXPECT_FALSE(parsed("net_af_packet,iface=eth0").qdisc_bypass);
}

TEST(PacketDevice, refuses_with_what_to_write_instead) {
    EXPECT_NE(why_not("net_af_packet").find("iface=NAME"), std::string::npos);
    EXPECT_NE(why_not("net_af_packet,iface=").find("iface=NAME"), std::string::npos);
    EXPECT_NE(why_not("net_af_packet,iface=a-name-of-17-octet").find("15"), std::string::npos);
    EXPECT_NE(why_not("net_af_packet,iface=eth0,framesz=2048").find("leave it out"),
              std::string::npos);
    EXPECT_NE(why_not("net_af_packet,iface=eth0,qpairs=2").find("qpairs=2"), std::string::npos);
    EXPECT_NE(why_not("net_af_packet,iface=eth0,framecnt=63").find("64"), std::string::npos);
    EXPECT_NE(why_not("net_af_packet,iface=eth0,framecnt=9999999999").find("65536"),
              std::string::npos);
    EXPECT_NE(why_not("net_af_packet,iface=eth0,qdisc_bypass=2").find("0 nor 1"),
              std::string::npos);
    EXPECT_NE(why_not("net_af_packet,iface=eth0,colour=red").find("'colour'"), std::string::npos);
}

}  // namespace
}  // namespace ulc::packet
