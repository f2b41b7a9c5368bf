// SPDX-License-Identifier: BSD-3-Clause
// The words of --ip, --gateway and --vlan (ip/device.h): what they mean, and the sentence for each
// wrong one.
#include "ip/device.h"

#include <gtest/gtest.h>

namespace ulc::ip {
namespace {

/// Returns why the words are refused; empty: they are not.
std::string refusal(const std::string& address, const std::string& gateway = "",
                    std::uint32_t vlan = 0) {
    DeviceSpec spec;
    std::string why;
    return parse_device(address, gateway, vlan, spec, why) == Err::kOk ? "" : why;
}

TEST(IpDevice, all_words_are_read) {
    DeviceSpec spec;
    std::string why;
    ASSERT_EQ(parse_device("10.0.0.5/24,port=4001,peer=10.0.0.1:4002,key=/a/key", "10.0.0.1", 7,
                           spec, why),
              Err::kOk)
        << why;
    EXPECT_EQ(spec.address, 0x0a000005U);
    EXPECT_EQ(spec.prefix, 24);
    EXPECT_EQ(spec.gateway, 0x0a000001U);
    EXPECT_EQ(spec.vlan, 7);
    EXPECT_EQ(udp::text_of(spec.socket.own), "10.0.0.5:4001");
    ASSERT_EQ(spec.socket.peers.size(), 1U);
    EXPECT_EQ(spec.socket.key_file, "/a/key");
    ASSERT_EQ(parse_device("10.0.0.5/31", "", 0, spec, why), Err::kOk) << why;
    EXPECT_EQ(spec.socket.own.port, kPortDefault);
    EXPECT_EQ(spec.gateway, 0U);
}

TEST(IpDevice, wrong_words_are_refused_in_a_sentence) {
    for (const char* const wrong :
         {"", "10.0.0.5", "10.0.0.5/", "10.0.0.5/0", "10.0.0.5/32", "10.0.0.5/24x", "10.0.0/24",
          "fd00::5/64", "10.0.0.0/24", "10.0.0.255/24", "127.0.0.1/8", "224.0.0.1/24"})
        EXPECT_NE(refusal(wrong).find("as 10.0.0.5/24"), std::string::npos) << wrong;
    EXPECT_NE(refusal("10.0.0.5/24,host=a").find("has no argument 'host'"), std::string::npos);
    EXPECT_NE(refusal("10.0.0.5/24,addr=10.0.0.6").find("leave addr= out"), std::string::npos);
    for (const char* const wrong :
         {"x", "10.0.1.1", "10.0.0.5", "10.0.0.0", "10.0.0.255", "fd00::1"})
        EXPECT_NE(refusal("10.0.0.5/24", wrong).find("--gateway"), std::string::npos) << wrong;
    EXPECT_NE(refusal("10.0.0.5/24", "", 4095).find("--vlan 4095"), std::string::npos);
}

}  // namespace
}  // namespace ulc::ip
