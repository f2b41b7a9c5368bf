// SPDX-License-Identifier: BSD-3-Clause
// Which frames of a packet socket a node takes, and the count of each other kind.
#include "packet/received.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace ulc::packet {
namespace {

constexpr Mac kOwn{{2, 0, 0, 0, 0, 1}};
constexpr Mac kOther{{2, 0, 0, 0, 0, 2}};
constexpr Mac kGroup{{0x03, 0x55, 0x4c, 0, 0, 1}};
constexpr std::uint32_t kFrameMax = 1514;

/// One frame, and the counts after it.
PortDrops drops_of(const Mac& to, std::uint32_t length, bool for_other_host = false,
                   bool truncated = false) {
    std::array<std::byte, 2000> octets{};
    std::ranges::transform(to.octets, octets.begin(), [](auto o) { return std::byte{o}; });
    PortDrops drops;
    const bool taken =
        is_ours({octets.data(), length, truncated, for_other_host}, kOwn, true, kFrameMax, drops);
    const std::uint64_t all =
        drops.damaged + drops.other_station + drops.vlan + drops.too_long + drops.own_echo;
    EXPECT_EQ(all, taken ? 0U : 1U) << "each dropped frame is counted once";
    return drops;
}

bool is_taken(const Mac& to, std::uint32_t length) {
    const PortDrops drops = drops_of(to, length);
    return drops.damaged + drops.other_station + drops.vlan + drops.too_long == 0;
}

TEST(PacketReceived, frames_for_this_station_and_groups_are_taken_up_to_the_mtu) {
    for (const Mac& to : {kOwn, kGroup, kBroadcastMac})
        for (const std::uint32_t length : {14U, 60U, kFrameMax})
            EXPECT_TRUE(is_taken(to, length)) << length;
}

TEST(PacketReceived, a_frame_to_this_station_or_a_group_marked_for_another_host_is_of_a_vlan) {
    for (const Mac& to : {kOwn, kGroup, kBroadcastMac})
        EXPECT_EQ(drops_of(to, 100, true).vlan, 1U);
}

// The kernel compares with the address that the interface has now.
TEST(PacketReceived, a_frame_to_an_address_that_the_interface_no_longer_has_is_taken) {
    for (const Mac& to : {kOwn, kGroup}) {
        std::array<std::byte, 100> octets{};
        std::ranges::transform(to.octets, octets.begin(), [](auto o) { return std::byte{o}; });
        PortDrops drops;
        const Received got{octets.data(), octets.size(), false, true};
        EXPECT_EQ(is_ours(got, kOwn, false, kFrameMax, drops), to == kOwn);
        EXPECT_EQ(drops.vlan, to == kOwn ? 0U : 1U);
    }
}

TEST(PacketReceived, a_frame_for_another_station_is_counted_as_such) {
    EXPECT_EQ(drops_of(kOther, 100, true).other_station, 1U);
    EXPECT_EQ(drops_of(kOther, 100).other_station, 1U);
}

TEST(PacketReceived, a_frame_that_is_too_long_or_too_short_is_counted_as_such) {
    EXPECT_EQ(drops_of(kOwn, kFrameMax + 1).too_long, 1U);
    EXPECT_EQ(drops_of(kGroup, kFrameMax, false, true).too_long, 1U) << "longer than the slot";
    EXPECT_EQ(drops_of(kOwn, 13).damaged, 1U);
}

}  // namespace
}  // namespace ulc::packet
