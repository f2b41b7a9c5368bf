// SPDX-License-Identifier: BSD-3-Clause
// The pure parts of the switch: station table, faults, output queue.
#include <gtest/gtest.h>

#include <vector>

#include "switch/faults.h"
#include "switch/mac_table.h"
#include "switch/out_queue.h"

namespace ulc::ether_switch {
namespace {

Mac station(std::uint32_t n) {
    return {{0x02, 0, static_cast<std::uint8_t>(n >> 24), static_cast<std::uint8_t>(n >> 16),
             static_cast<std::uint8_t>(n >> 8), static_cast<std::uint8_t>(n)}};
}

TEST(MacTable, learns_moves_and_forgets) {
    MacTable table(64, 10 * kSecond);
    EXPECT_EQ(table.find(station(1), 0), kNoPort);
    table.learn(station(1), 3, 0);
    EXPECT_EQ(table.find(station(1), kSecond), 3);
    table.learn(station(1), 5, kSecond);  // moved
    EXPECT_EQ(table.find(station(1), kSecond), 5);
    EXPECT_EQ(table.size(kSecond), 1U);
    EXPECT_EQ(table.find(station(1), 11 * kSecond), kNoPort);  // aged: last heard at 1 s
    table.learn(station(1), 2, 20 * kSecond);
    table.forget_port(2);
    EXPECT_EQ(table.find(station(1), 20 * kSecond), kNoPort);
}

TEST(MacTable, never_learns_a_group_address) {
    MacTable table(64, kSecond);
    table.learn(kBroadcastMac, 1, 0);
    table.learn({{0x01, 0, 0x5e, 0, 0, 1}}, 1, 0);
    EXPECT_EQ(table.size(0), 0U);
}

TEST(MacTable, full_it_forgets_the_oldest_and_keeps_no_station_twice) {
    MacTable table(64, 1000 * kSecond);
    for (std::uint32_t i = 0; i < 10'000; ++i) {
        table.learn(station(i), static_cast<std::uint16_t>(i % 7), i);
        ASSERT_EQ(table.find(station(i), i), i % 7);
        ASSERT_LE(table.size(i), 64U);
        table.learn(station(i), static_cast<std::uint16_t>(i % 5), i);
        ASSERT_EQ(table.find(station(i), i), i % 5);
    }
    const std::size_t before = table.size(10'000);
    table.learn(station(9'999), 1, 10'000);
    EXPECT_EQ(table.size(10'000), before);
}

TEST(Faults, the_same_seed_gives_the_same_fates_and_ports_differ) {
    const FaultConfig config{.loss = 0.3, .duplicate = 0.2, .reorder = 0.1, .jitter = kMicrosecond};
    FaultModel a(config, 42, 0);
    FaultModel b(config, 42, 0);
    FaultModel other(config, 42, 1);
    int differences = 0;
    for (int i = 0; i < 1000; ++i) {
        const Fate x = a.judge();
        const Fate y = b.judge();
        ASSERT_EQ(x.copies, y.copies);
        ASSERT_EQ(x.held, y.held);
        ASSERT_EQ(x.after[0], y.after[0]);
        differences += other.judge().copies != x.copies ? 1 : 0;
    }
    EXPECT_GT(differences, 100);
}

TEST(Faults, rates_are_met_and_losses_of_two_ports_are_independent) {
    const FaultConfig config{.loss = 0.1, .duplicate = 0.05, .reorder = 0.02};
    FaultModel a(config, 7, 0);
    FaultModel b(config, 7, 1);
    constexpr int kFrames = 200'000;
    int lost_a = 0;
    int lost_both = 0;
    int twice = 0;
    int held = 0;
    for (int i = 0; i < kFrames; ++i) {
        const Fate x = a.judge();
        const Fate y = b.judge();
        lost_a += x.copies == 0 ? 1 : 0;
        lost_both += x.copies == 0 && y.copies == 0 ? 1 : 0;
        twice += x.copies == 2 ? 1 : 0;
        held += x.held ? 1 : 0;
    }
    EXPECT_NEAR(lost_a, 0.1 * kFrames, 0.005 * kFrames);
    EXPECT_NEAR(lost_both, 0.01 * kFrames, 0.002 * kFrames);
    EXPECT_NEAR(twice, 0.9 * 0.05 * kFrames, 0.004 * kFrames);
    EXPECT_NEAR(held, 0.02 * kFrames, 0.002 * kFrames);
}

TEST(Faults, one_probability_does_not_shift_anothers_choices) {
    FaultModel only_loss({.loss = 0.1}, 9, 0);
    FaultModel both({.loss = 0.1, .duplicate = 0.5, .reorder = 0.5}, 9, 0);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(only_loss.judge().copies == 0, both.judge().copies == 0);
    }
}

TEST(OutQueue, leaves_in_order_of_time_then_of_arrival) {
    OutQueue queue(0, 0, 8);
    std::vector<std::uint32_t> left;
    for (const Nanos due : {30, 10, 20, 10}) {
        ASSERT_TRUE(
            queue.push({.due = due, .length = static_cast<std::uint32_t>(queue.size())}, false));
    }
    Waiting frame;
    EXPECT_FALSE(queue.pop(9, frame));
    EXPECT_EQ(queue.next_due(), 10);
    while (queue.pop(30, frame))
        left.push_back(frame.length);
    EXPECT_EQ(left, (std::vector<std::uint32_t>{1, 3, 2, 0}));
    EXPECT_EQ(queue.next_due(), kNever);
}

TEST(OutQueue, a_frame_put_back_keeps_its_place) {
    OutQueue queue(0, 0, 8);
    for (std::uint32_t i = 0; i < 4; ++i)
        ASSERT_TRUE(queue.push({.due = 5, .length = i}, false));
    Waiting first;
    Waiting second;
    ASSERT_TRUE(queue.pop(5, first) && queue.pop(5, second));
    queue.put_back(second);
    queue.put_back(first);
    for (std::uint32_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(queue.pop(5, first));
        EXPECT_EQ(first.length, i);
    }
}

TEST(OutQueue, is_bounded) {
    OutQueue queue(0, 0, 3);
    for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(queue.push({.due = 1}, false));
    EXPECT_FALSE(queue.push({.due = 1}, false));
}

TEST(OutQueue, with_a_rate_spaces_frames_by_their_time_on_the_wire) {
    OutQueue queue(100'000'000, 1 << 20, 64);
    EXPECT_EQ(queue.wire_time(1514), 123'040);  // 1538 octets at 12.5 MB/s
    EXPECT_EQ(queue.wire_time(20), 6'720);      // 84 octets: the shortest frame
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(queue.push({.due = 1000, .length = 1514}, false));
    Waiting frame;
    for (int i = 1; i <= 3; ++i) {
        EXPECT_EQ(queue.next_due(), 1000 + i * 123'040);
        ASSERT_TRUE(queue.pop(kNever, frame));
    }
    ASSERT_TRUE(
        queue.push({.due = kSecond, .length = 1514}, false));  // an idle link starts at once
    EXPECT_EQ(queue.next_due(), kSecond + 123'040);
}

TEST(OutQueue, a_frame_lost_on_the_wire_takes_its_time) {
    OutQueue queue(100'000'000, 1 << 20, 64);
    queue.waste({.due = 1000, .length = 1514});
    EXPECT_TRUE(queue.empty());
    ASSERT_TRUE(queue.push({.due = 1000, .length = 1514}, false));
    EXPECT_EQ(queue.next_due(), 1000 + 2 * 123'040);
}

TEST(OutQueue, a_full_buffer_refuses_and_drains) {
    OutQueue queue(100'000'000, 10'000, 64);
    int taken = 0;
    while (queue.push({.due = 0, .length = 1514}, false))
        ++taken;
    EXPECT_EQ(taken, 7);  // the frame on the wire, and those that wait behind at most 10 000 octets
    EXPECT_TRUE(queue.push({.due = 200 * kMicrosecond, .length = 1514}, false));
}

}  // namespace
}  // namespace ulc::ether_switch
