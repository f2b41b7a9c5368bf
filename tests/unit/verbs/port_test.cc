// SPDX-License-Identifier: BSD-3-Clause
// Tests port.h over RDMA ports of a fabric in memory (fabric.h): frames of every length, groups,
// nodes that were not heard of, nets of two EtherTypes. A burst takes one doorbell and few
// completions, and the steady state allocates no memory. port_faults_test.cc has devices and
// neighbours that lie.
#include "tests/unit/verbs/ports.h"

namespace ulc::verbs {
namespace {

// ---- what arrives

// U-3
TEST_F(VerbsPorts, a_port_has_the_mac_of_its_gid_and_queue_pair) {
    device(0).qp_number = 0x123456;
    const VerbsPort& port = open(0);
    EXPECT_EQ(port.name(), "verbs rxe0");
    EXPECT_EQ(mac(port), mac_of({test::gid_of(1), 0x123456}));
    EXPECT_EQ(mac(port).octets[0] & 3, 2) << "unicast, locally administered";
    EXPECT_EQ(mac(port).octets[3], 0x12);
    EXPECT_EQ(port.port().info.mtu, kFrameMax - 14);
    EXPECT_EQ(port.port().info.link_bits_per_second, 100'000'000'000U);
    EXPECT_TRUE(port.port().info.gathers);
    EXPECT_TRUE(look(port));
}

// U-7, U-9
TEST_F(VerbsPorts, a_node_not_heard_of_is_reached_by_all_and_then_alone) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    const VerbsPort& c = open(2);
    EXPECT_TRUE(send(a, mac(b), 77));
    EXPECT_EQ(a.counts().flooded, 1U);
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{77});
    EXPECT_TRUE(take(c).empty());
    EXPECT_EQ(c.counts().other_station, 1U);
    EXPECT_TRUE(send(b, mac(a), 78)) << "b has heard a";
    EXPECT_EQ(b.counts().flooded, 0U);
    EXPECT_EQ(take(a), std::vector<std::uint32_t>{78});
    EXPECT_TRUE(send(a, mac(b), 79));
    EXPECT_EQ(a.counts().flooded, 1U);
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{79});
    EXPECT_TRUE(take(c).empty());
    EXPECT_EQ(c.counts().other_station, 1U);
    EXPECT_EQ(device(0).handles_made, 2) << "one for all, one for b";
}

// U-1, U-2
TEST_F(VerbsPorts, a_frame_arrives_as_it_was_in_every_length) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    for (std::uint32_t length = 14; length <= kFrameMax; length += length < 200 ? 1 : 103) {
        Segment* sent = frame(a, mac(b), length);
        for (std::uint32_t n = 14; n < length; ++n)
            sent->frame[n] = static_cast<std::byte>(n * 7);
        ASSERT_EQ(a.port().tx(a.port().context, &sent, 1), 1);
        EXPECT_EQ(pending(a), 0U);
        Segment* got = nullptr;
        ASSERT_EQ(b.port().rx(b.port().context, &got, 1), 1) << length;
        ASSERT_EQ(got->length, length);
        for (std::uint32_t n = 14; n < length; ++n)
            ASSERT_EQ(got->frame[n], static_cast<std::byte>(n * 7));
        b.port().pool.drop(got);
    }
}

// U-5, U-6
TEST_F(VerbsPorts, a_multicast_reaches_those_who_joined_and_no_other) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    const VerbsPort& c = open(2);
    const Mac group{{0x03, 0x55, 0x4c, 1, 2, 3}};
    const Mac other{{0x03, 0x55, 0x4c, 1, 2, 4}};
    EXPECT_TRUE(b.port().set_multicasts(b.port().context, std::array{group}));
    EXPECT_TRUE(c.port().set_multicasts(c.port().context, std::array{other}));
    EXPECT_TRUE(send(a, group));
    EXPECT_EQ(take(b).size(), 1U);
    EXPECT_TRUE(take(c).empty());
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_EQ(take(b).size(), 1U);
    EXPECT_EQ(take(c).size(), 1U);
    EXPECT_TRUE(b.port().set_multicasts(b.port().context, {}));
    EXPECT_TRUE(send(a, group));
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(device(1).groups.size(), 1U) << "broadcast stays";
}

// U-4, U-5
TEST_F(VerbsPorts, nets_of_two_ethertypes_do_not_hear_each_other) {
    PortOptions strange = options(1);
    strange.ether_type = 0x88B6;
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(strange);
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_TRUE(take(b).empty());
}

// U-5
TEST_F(VerbsPorts, frames_travel_over_ipv4_where_the_gid_is_such) {
    for (std::uint8_t n = 0; n < 2; ++n) {
        ibv_gid_entry& entry = device(n).gids[0];
        const Gid gid = test::gid_of(static_cast<std::uint8_t>(n + 1), true);
        std::memcpy(entry.gid.raw, gid.data(), gid.size());
    }
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    EXPECT_TRUE(send(a, mac(b), 100));
    EXPECT_EQ(take(b).size(), 1U);
    const Gid broadcast = mgid_of(kBroadcastGroup, kEtherType, true);
    EXPECT_TRUE(device(1).groups.contains(broadcast));
    EXPECT_EQ(broadcast[12], 239);
    device(1).spoil = [](ibv_wc&, std::byte* grh) { grh[20] = std::byte{0x60}; };
    EXPECT_TRUE(send(a, mac(b), 100));
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(b.counts().forged, 1U);
}

// ---- how much it costs

TEST_F(VerbsPorts, a_burst_takes_one_doorbell_and_few_completions) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    FakeDevice& sender = device(0);
    sender.doorbells = sender.signalled = 0;
    std::array<Segment*, 32> burst{};
    for (Segment*& each : burst)
        each = frame(a, mac(b), 900);
    EXPECT_EQ(a.port().tx(a.port().context, burst.data(), 32), 32);
    EXPECT_EQ(sender.doorbells, 1);
    EXPECT_EQ(sender.signalled, 2);
    EXPECT_EQ(sender.chain_longest, 32);
    EXPECT_EQ(pending(a), 0U);
    EXPECT_EQ(take(b).size(), 32U);
}

TEST_F(VerbsPorts, a_frame_is_kept_until_the_device_has_sent_it) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const std::uint32_t free = available(a);
    device(0).holds_sends = true;
    EXPECT_TRUE(send(a, mac(b), 1000));
    EXPECT_TRUE(send(a, mac(b), 1000));
    EXPECT_EQ(pending(a), 2U);
    EXPECT_EQ(available(a), free - 2);
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
    EXPECT_EQ(available(a), free);
}

TEST_F(VerbsPorts, a_full_send_queue_takes_no_more) {
    PortOptions few = options(0);
    few.send_frames = 4;
    const VerbsPort& a = open(few);
    device(0).holds_sends = true;
    std::array<Segment*, 6> burst{};
    for (Segment*& each : burst)
        each = frame(a, kBroadcastMac, 900);
    EXPECT_EQ(a.port().tx(a.port().context, burst.data(), 6), 4);
    EXPECT_EQ(a.port().tx(a.port().context, burst.data() + 4, 2), 0);
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
    EXPECT_EQ(a.port().tx(a.port().context, burst.data() + 4, 2), 2);
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
}

TEST_F(VerbsPorts, a_short_payload_is_gathered_inline_and_a_long_one_copied_once) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    device(0).inlined = device(0).two_pieces = 0;
    std::vector<std::byte> payload(900, std::byte{0x11});
    for (const std::uint32_t octets : {64U, 900U}) {
        Segment* segment = frame(a, mac(b), 40 + octets);
        segment->tail = payload.data();
        segment->tail_octets = octets;
        device(0).holds_sends = true;
        ASSERT_EQ(a.port().tx(a.port().context, &segment, 1), 1);
        std::ranges::fill(payload, std::byte{0x22});  // the application goes on
        Segment* got = nullptr;
        ASSERT_EQ(b.port().rx(b.port().context, &got, 1), 1);
        EXPECT_EQ(got->length, 40 + octets);
        EXPECT_EQ(got->frame[got->length - 1], std::byte{0x11});
        b.port().pool.drop(got);
        if (octets == 900) {
            EXPECT_EQ(segment->tail, nullptr) << "the device may read it later";
        }
        std::ranges::fill(payload, std::byte{0x11});
    }
    EXPECT_EQ(device(0).inlined, 1);
    EXPECT_EQ(device(0).two_pieces, 1);
    const PortCosts costs = a.port().costs(a.port().context);
    EXPECT_EQ(costs.copied_bytes, 100U + 104 + 900);  // the broadcast of acquaint() is inline too
    EXPECT_EQ(costs.calls, 3U);
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
}

TEST_F(VerbsPorts, the_steady_state_takes_no_memory) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const auto exchange = [&] {
        EXPECT_TRUE(send(a, mac(b), 900));
        EXPECT_EQ(pending(a), 0U);
        std::array<Segment*, 8> got{};
        EXPECT_EQ(b.port().rx(b.port().context, got.data(), 8), 1);
        b.port().pool.drop(got[0]);
    };
    for (int n = 0; n < 200; ++n)
        exchange();
    const std::size_t before = ulc::test::heap_octets();
    for (int n = 0; n < 200; ++n)
        exchange();
    EXPECT_LE(ulc::test::heap_octets(), before + 2048) << "the fabric's queues may move";
}

TEST_F(VerbsPorts, a_receiver_that_holds_all_frames_gets_more_when_it_gives_some_back) {
    PortOptions few = options(1);
    few.segments = 64;
    few.receive_frames = 16;
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(few);
    std::vector<Segment*> held;
    std::size_t lost = 0;
    for (int n = 0; n < 200; ++n) {
        EXPECT_TRUE(send(a, kBroadcastMac));
        EXPECT_EQ(pending(a), 0U);
        Segment* got = nullptr;
        if (b.port().rx(b.port().context, &got, 1) == 1) {
            held.push_back(got);
        } else {
            ++lost;
        }
    }
    EXPECT_EQ(held.size(), 80U) << "64 and the ring";
    EXPECT_EQ(lost, 120U);
    for (Segment* each : held)
        b.port().pool.drop(each);
    EXPECT_TRUE(take(b).empty());
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_EQ(take(b).size(), 1U);
    EXPECT_EQ(b.counts().resets, 0U);
}

}  // namespace
}  // namespace ulc::verbs
