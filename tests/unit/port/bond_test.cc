// SPDX-License-Identifier: BSD-3-Clause
// Several links as one port (port/bond_port.h), over ports that are lists of frames. Frames are
// shared by queue and speed; links go down and come back; each link has an address.
#include <array>

#include "tests/unit/port/bond_fixture.h"

namespace ulc::port {
namespace {

TEST_F(Bond, has_the_first_address_and_the_sum_of_the_rest) {
    make(2);
    EXPECT_EQ(port_.info.mac, mac_of(1));
    EXPECT_EQ(port_.info.links, 2);
    EXPECT_EQ(port_.info.link_bits_per_second, 200'000'000U);
    EXPECT_EQ(port_.info.tx_ring_frames, 128);
    EXPECT_EQ(port_.info.rx_frames, 200U);
    EXPECT_GT(reorder_wait(), 4 * 120 * kMicrosecond);
    EXPECT_LT(reorder_wait(), 5 * 125 * kMicrosecond);
    EXPECT_GT(reorder_wait(1), 40 * kMillisecond) << "of nodes with a slow link";
}

TEST_F(Bond, frames_go_to_the_link_with_the_shortest_queue) {
    make(2);
    peer({100, 100});
    for (int n = 0; n < 10; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(with(0), 5U);
    EXPECT_EQ(with(1), 5U);
    device(1).done(4);
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(with(0), 5U);
    EXPECT_EQ(with(1), 5U);
}

TEST_F(Bond, queues_are_weighed_by_speed) {
    make(2, {1'000'000'000, 100'000'000});
    peer({1000, 100});
    for (int n = 0; n < 44; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(with(0), 40U);
    EXPECT_EQ(with(1), 4U);
}

TEST_F(Bond, an_idle_slow_link_takes_its_share_while_the_fast_one_is_busy) {
    make(2, {1'000'000'000, 100'000'000});
    peer({1000, 100});
    for (int n = 0; n < 110; ++n) {
        ASSERT_TRUE(send(mac_of(2)));
        if (with(0) > 1) device(0).done(with(0) - 1);
        if (n % 10 == 0) device(1).done(with(1));
    }
    EXPECT_NEAR(1000.0 - static_cast<double>(device(1).accepts), 10, 2);
}

TEST_F(Bond, a_slow_link_gets_no_message_that_is_alone) {
    make(2, {1'000'000'000, 100'000'000});
    peer({1000, 100});
    for (int n = 0; n < 20; ++n) {
        ASSERT_TRUE(send(mac_of(2), kData, 60));
        EXPECT_EQ(with(1), 0U);
        device(0).done(1);
    }
}

// N-33
TEST_F(Bond, frames_for_groups_go_by_one_link) {
    make(2);
    for (int n = 0; n < 10; ++n)
        ASSERT_TRUE(send(kGroup));
    EXPECT_TRUE(with(0) == 10 || with(1) == 10);
}

TEST_F(Bond, links_that_show_no_queue_get_equal_shares) {
    make(2);
    peer({100, 100});
    for (int n = 0; n < 10; ++n) {
        ASSERT_TRUE(send(mac_of(2), kData, n % 2 == 0 ? 1500 : 60));
        device(0).done(with(0));
        device(1).done(with(1));
    }
    EXPECT_NEAR(static_cast<double>(device(0).accepts), static_cast<double>(device(1).accepts), 9);
}

// N-31
TEST_F(Bond, each_link_fills_in_its_addresses_and_frames_for_nodes_keep_the_first) {
    make(2);
    peer({100, 100});
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    for (unsigned link : {0U, 1U}) {
        ASSERT_EQ(with(link), 2U);
        EXPECT_EQ(destination_of(*device(link).with[0]), mac_of(2, link));
        EXPECT_EQ(source_of(*device(link).with[0]), mac_of(1, link));
    }
    for (const std::byte type : {kJob, kNode, kLink})
        for (int n = 0; n < 4; ++n)
            ASSERT_TRUE(send(kBroadcastMac, type));
    ASSERT_EQ(with(0), 14U) << "by the link that has the first address";
    for (std::size_t n = 2; n < with(0); ++n)
        EXPECT_EQ(source_of(*device(0).with[n]), mac_of(1));
    EXPECT_EQ(with(1), 6U) << "NODE frames that show its address";
}

// N-34
TEST_F(Bond, an_announcement_shows_the_address_of_each_link_to_switches) {
    make(3);
    device(1).up = false;
    EXPECT_TRUE(port_.link_up(port_.context));
    ASSERT_TRUE(send(kBroadcastMac, kNode, 80));
    ASSERT_EQ(with(0), 1U);
    EXPECT_EQ(source_of(*device(0).with[0]), mac_of(1));
    EXPECT_EQ(with(1), 0U) << "down";
    ASSERT_EQ(with(2), 1U);
    const Segment* copy = device(2).with[0];
    EXPECT_EQ(source_of(*copy), mac_of(1, 2));
    EXPECT_EQ(destination_of(*copy), mac_of(1)) << "no other node takes it";
    EXPECT_EQ(copy->length, 80U);
    arrive(0, frame(mac_of(1), mac_of(1, 2), kNode, 80));
    EXPECT_EQ(received(), Mac{}) << "its own";
    ASSERT_TRUE(send(kBroadcastMac, kJob, 80));
    EXPECT_EQ(with(2), 1U);
}

TEST_F(Bond, an_announcement_goes_out_without_copies_when_no_frame_is_left) {
    make(2);
    device(1).accepts = 0;
    std::vector<Segment*> all;
    while (Segment* segment = pool_.get())
        all.push_back(segment);
    FramePool::put(all.back());
    all.pop_back();
    ASSERT_TRUE(send(kBroadcastMac, kNode, 80));
    EXPECT_EQ(with(0), 1U);
    for (Segment* segment : all)
        FramePool::put(segment);
    for (int n = 0; n < 40; ++n) {
        ASSERT_TRUE(send(kBroadcastMac, kNode, 80));
        device(0).done(1);
    }
    EXPECT_EQ(port_.tx_pending(port_.context), 33U) << "a device that takes nothing gets no more";
}

TEST_F(Bond, a_link_of_unknown_speed_counts_as_the_others) {
    make(2, {100'000'000, 0});
    peer({100, kMegabitsUnknown});
    EXPECT_LT(reorder_wait(100), 5 * 125 * kMicrosecond);
    EXPECT_LT(reorder_wait(kMegabitsUnknown), 5 * 125 * kMicrosecond);
    EXPECT_EQ(port_.addresses(port_.context)[0].megabits, 100U);
    EXPECT_EQ(port_.addresses(port_.context)[1].megabits, kMegabitsUnknown);
    for (int n = 0; n < 20; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(with(0), 10U);
    EXPECT_EQ(with(1), 10U);
}

TEST_F(Bond, links_of_which_none_says_its_speed_wait_for_no_slow_one) {
    make(2, {0, 0});
    peer({kMegabitsUnknown, kMegabitsUnknown});
    EXPECT_EQ(port_.addresses(port_.context)[1].megabits, kMegabitsUnknown);
    EXPECT_EQ(reorder_wait(kMegabitsUnknown), 500 * kMicrosecond);
}

TEST_F(Bond, a_retained_frame_is_addressed_anew_when_it_is_sent_again) {
    make(2);
    peer({100, 100});
    Segment* segment = frame(mac_of(2), mac_of(1));
    for (int n = 0; n < 2; ++n) {
        port_.pool.hold(segment);
        ASSERT_EQ(port_.tx(port_.context, &segment, 1), 1);
    }
    EXPECT_EQ(with(1), 1U);
    EXPECT_EQ(destination_of(*segment), mac_of(2, 1));
    EXPECT_EQ(source_of(*segment), mac_of(1, 1));
    FramePool::put(segment);
}

TEST_F(Bond, a_node_of_one_link_gets_its_frames_in_order) {
    make(2);
    for (int n = 0; n < 10; ++n)
        ASSERT_TRUE(send(mac_of(3)));
    EXPECT_TRUE(with(0) == 10 || with(1) == 10);
}

// N-29
TEST_F(Bond, a_link_of_the_peer_that_is_down_gets_nothing) {
    make(2);
    peer({0, 100});
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    for (unsigned link : {0U, 1U})
        for (const Segment* segment : device(link).with)
            EXPECT_EQ(destination_of(*segment), mac_of(2, 1));
}

// N-29
TEST_F(Bond, a_link_that_went_down_is_left_with_what_waits_and_taken_again) {
    make(2);
    peer({100, 100});
    device(0).accepts = device(1).accepts = 2;
    for (int n = 0; n < 10; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    device(1).accepts = 1000;
    device(0).up = false;
    EXPECT_TRUE(port_.link_up(port_.context));
    EXPECT_EQ(port_.addresses(port_.context)[0].megabits, 0U);
    EXPECT_EQ(port_.addresses(port_.context)[1].megabits, 100U);
    EXPECT_EQ(port_.tx_pending(port_.context), 8U) << "the dead link's frames have left";
    EXPECT_EQ(with(1), 8U);
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(with(0), 2U);
    device(0).up = true;
    device(0).accepts = 1000;
    EXPECT_TRUE(port_.link_up(port_.context));
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(with(0), 6U);
    device(0).up = device(1).up = false;
    EXPECT_FALSE(port_.link_up(port_.context));
    EXPECT_FALSE(send(mac_of(2)));
}

TEST_F(Bond, what_a_full_device_does_not_take_waits_and_bounds_what_is_taken) {
    make(2);
    peer({100, 100});
    device(0).accepts = device(1).accepts = 0;
    unsigned taken = 0;
    while (send(mac_of(2)))
        ++taken;
    EXPECT_EQ(taken, 64U);
    EXPECT_EQ(port_.tx_pending(port_.context), 64U);
    device(0).accepts = device(1).accepts = 100;
    EXPECT_EQ(port_.tx_pending(port_.context), 64U);
    EXPECT_EQ(with(0) + with(1), 64U);
}

// N-31
TEST_F(Bond, any_address_of_a_node_is_its_first_one_to_the_engine) {
    make(2);
    peer({100, 100});
    arrive(1, frame(mac_of(1, 1), mac_of(2, 1)));
    EXPECT_EQ(received(), mac_of(2));
    arrive(0, frame(mac_of(1), mac_of(2)));
    EXPECT_EQ(received(), mac_of(2));
    arrive(0, frame(mac_of(1), mac_of(9)));
    EXPECT_EQ(received(), mac_of(9)) << "unknown to the table";
    peer({100});
    arrive(1, frame(mac_of(1, 1), mac_of(2, 1)));
    EXPECT_EQ(received(), mac_of(2, 1)) << "it has that address no more";
}

// N-33
TEST_F(Bond, one_link_alone_brings_frames_for_groups_and_none_the_nodes_own) {
    make(2);
    const std::vector<Mac> wanted{kGroup};
    EXPECT_TRUE(port_.set_multicasts(port_.context, wanted));
    EXPECT_EQ(device(0).multicasts.size(), 1U);
    EXPECT_TRUE(device(1).multicasts.empty());
    arrive(1, frame(kGroup, mac_of(2)));
    EXPECT_EQ(received(), Mac{});
    arrive(0, frame(kGroup, mac_of(2)));
    EXPECT_EQ(received(), mac_of(2));
    arrive(0, frame(kBroadcastMac, mac_of(1, 1)));
    EXPECT_EQ(received(), Mac{}) << "its own, by the other link";
    device(0).up = false;
    EXPECT_TRUE(port_.link_up(port_.context));
    EXPECT_TRUE(device(0).multicasts.empty());
    EXPECT_EQ(device(1).multicasts.size(), 1U);
    arrive(1, frame(kGroup, mac_of(2)));
    EXPECT_EQ(received(), mac_of(2));
}

TEST_F(Bond, what_waits_for_a_device_goes_when_the_engine_only_receives) {
    make(2);
    peer({100, 100});
    device(0).accepts = device(1).accepts = 0;
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    device(0).accepts = device(1).accepts = 100;
    EXPECT_EQ(received(), Mac{});
    EXPECT_EQ(with(0) + with(1), 4U);
}

TEST_F(Bond, a_burst_is_short_only_when_no_link_has_more) {
    make(2);
    const auto arrive_many = [&](unsigned link, const Mac& to, unsigned frames) {
        for (; frames > 0; --frames)
            arrive(link, frame(to, mac_of(2)));
    };
    std::array<Segment*, 32> burst;
    const auto take = [&] {
        const std::uint16_t count = port_.rx(port_.context, burst.data(), burst.size());
        for (std::uint16_t n = 0; n < count; ++n)
            FramePool::put(burst[n]);
        return count;
    };
    arrive_many(1, kGroup, 20);  // the other link brings them
    arrive_many(1, mac_of(1, 1), 16);
    arrive_many(0, mac_of(1), 20);
    EXPECT_EQ(take(), 32);
    EXPECT_EQ(take(), 4);
    arrive_many(0, mac_of(1), 20);
    EXPECT_EQ(take(), 20);
    arrive_many(1, kGroup, 400);
    EXPECT_EQ(take(), 0);
    EXPECT_GE(device(1).come.size(), 200U) << "a flood of such frames ends a burst";
}

TEST_F(Bond, a_port_of_one_link_that_is_wrapped_sends_in_order_and_knows_all_addresses) {
    make(1);
    EXPECT_EQ(reorder_wait(), 0);
    peer({100, 1});
    EXPECT_EQ(reorder_wait(), 0) << "of nodes with one link each";
    peer({100, 100});
    EXPECT_GT(reorder_wait(100), 0) << "the node of two links sends by both";
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    const Mac to = destination_of(*device(0).with[0]);
    for (const Segment* segment : device(0).with) {
        EXPECT_EQ(destination_of(*segment), to) << "no frame overtakes another";
        EXPECT_EQ(source_of(*segment), mac_of(1));
    }
    arrive(0, frame(mac_of(1), mac_of(2, 1)));
    EXPECT_EQ(received(), mac_of(2));
    device(0).up = false;
    EXPECT_FALSE(port_.link_up(port_.context));
}

TEST_F(Bond, many_nodes_are_told_apart) {
    make(2);
    for (unsigned node = 2; node < 200; ++node) {
        const std::vector<NodeAddress> addresses{{mac_of(node), 100}, {mac_of(node, 1), 100}};
        port_.set_addresses(port_.context, addresses, true);
    }
    for (unsigned node = 2; node < 200; node += 3) {
        const std::vector<NodeAddress> alone{{mac_of(node), 100}};
        port_.set_addresses(port_.context, alone, true);
    }
    for (unsigned node = 2; node < 200; ++node) {
        arrive(1, frame(mac_of(1, 1), mac_of(node, 1)));
        EXPECT_EQ(received(), mac_of(node, node % 3 == 2 ? 1 : 0));
    }
}

// N-53
TEST_F(Bond, addresses_that_are_not_proved_are_not_used) {
    make(2);
    const std::vector<NodeAddress> claimed{{mac_of(2), 0}, {mac_of(2, 1), 100}};
    port_.set_addresses(port_.context, claimed, false);
    ASSERT_TRUE(send(mac_of(2)));
    const unsigned link = with(0) == 1 ? 0 : 1;
    EXPECT_EQ(destination_of(*device(link).with[0]), mac_of(2));
}

// N-58
TEST_F(Bond, a_link_carries_frames_for_a_node_once_that_takes_them) {
    make(2);
    const std::vector<NodeAddress> addresses{{mac_of(2), 100}, {mac_of(2, 1), 100}};
    port_.set_addresses(port_.context, addresses, true);
    const auto send_all = [&] {
        for (const std::unique_ptr<Device>& each : devices_)
            each->done(each->with.size());
        for (unsigned n = 0; n < 8; ++n) {
            ASSERT_TRUE(send(mac_of(2)));
            ASSERT_TRUE(send(mac_of(10 + n)));  // nodes of one link
            ASSERT_TRUE(send(kGroup));
        }
    };
    send_all();
    EXPECT_EQ(with(1), 0U) << "they would drop frames from an address that they do not know";
    asks(mac_of(2), 1, false);
    send_all();
    EXPECT_EQ(with(1), 0U) << "it has no reply yet";
    asks(mac_of(2), 1, true);
    send_all();
    EXPECT_GE(with(1), 8U);
    for (const Segment* segment : device(1).with)
        EXPECT_EQ(destination_of(*segment), mac_of(2, 1));
    asks(mac_of(2), 1, false);
    send_all();
    EXPECT_EQ(with(1), 0U) << "it began again";
    asks(mac_of(2), 1, true);
    for (unsigned n = 0; n < 8; ++n)
        asks_at_all_links(mac_of(10 + n));
    send_all();
    EXPECT_GE(with(1), 10U) << "nodes of one link have one of the links each";
    device(0).up = false;
    EXPECT_TRUE(port_.link_up(port_.context));
    device(0).done(with(0));
    device(1).done(with(1));
    ASSERT_TRUE(send(mac_of(99)));
    EXPECT_EQ(with(1), 1U) << "there is no other";
}

// N-58
TEST_F(Bond, nodes_that_asked_without_end_are_forgotten_together) {
    make(2);
    peer({100, 100});
    for (unsigned n = 0; n < 10'000; ++n) {
        Mac stranger = mac_of(3);
        std::memcpy(stranger.octets.data() + 2, &n, sizeof n);
        asks(stranger, 1, true);
    }
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_EQ(with(1), 0U);
    asks_at_all_links(mac_of(2));
    for (int n = 0; n < 4; ++n)
        ASSERT_TRUE(send(mac_of(2)));
    EXPECT_GT(with(1), 0U) << "it has asked again";
}

TEST_F(Bond, a_new_own_address_begins_with_no_node) {
    make(1);
    peer({100, 100});
    (void)port_.take_address(port_.context);
    const std::vector<NodeAddress> other{{mac_of(3), 100}, {mac_of(2, 1), 100}};
    port_.set_addresses(port_.context, other, true);
    arrive(0, frame(mac_of(1), mac_of(2, 1)));
    EXPECT_EQ(received(), mac_of(3));
}

// N-54
TEST_F(Bond, a_question_about_links_goes_to_the_address_that_it_asks) {
    make(2);
    peer({100, 100});
    device(0).up = false;
    EXPECT_TRUE(port_.link_up(port_.context));
    for (const Mac& to : {mac_of(2), mac_of(2, 1), mac_of(2, 3)}) {
        Segment* question = frame(to, mac_of(1), kNode, 60);
        question->frame[wire::kHeadOctets] = std::byte{8};
        ASSERT_EQ(port_.tx(port_.context, &question, 1), 1);
        EXPECT_EQ(destination_of(*device(1).with.back()), to);
        EXPECT_EQ(source_of(*device(1).with.back()), mac_of(1, 1)) << "it can be answered there";
    }
}

}  // namespace
}  // namespace ulc::port
