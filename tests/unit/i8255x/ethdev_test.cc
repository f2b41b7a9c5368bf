// SPDX-License-Identifier: BSD-3-Clause
// Tests what only the 8255x's driver does through ethdev; the rest is in tests/unit/nic.
#include "tests/unit/i8255x/ethdev.h"

namespace ulc::i8255x {
namespace {

TEST_F(I8255xEthdev, shows_its_registers) {
    start();
    std::array<std::uint32_t, 5> registers{};
    rte_dev_reg_info wanted{};
    ASSERT_EQ(rte_eth_dev_get_reg_info(id, &wanted), 0);
    ASSERT_EQ(wanted.length, registers.size());
    wanted.data = registers.data();
    ASSERT_EQ(rte_eth_dev_get_reg_info(id, &wanted), 0);
    EXPECT_EQ(scb::ru_state(registers[0]), scb::Ru::kReady);
    EXPECT_EQ(scb::cu_state(registers[0]), scb::Cu::kSuspended);
}

TEST_F(I8255xEthdev, restarts_the_chip_that_ran_out_of_descriptors) {
    start();
    for (unsigned i = 0; i < kRing + 3U; ++i)
        deliver(static_cast<std::uint8_t>(i));
    const std::uint64_t starts = card.model.receive_starts;
    for (unsigned i = 0; i < kRing; ++i)
        EXPECT_EQ(receive(), std::vector<std::uint8_t>(60, static_cast<std::uint8_t>(i)));
    EXPECT_EQ(card.model.receive_starts, starts + 1);
    deliver(77);
    EXPECT_EQ(receive(), std::vector<std::uint8_t>(60, 77));
    EXPECT_EQ(statistics().imissed, 3U) << "the chip's own count";
    EXPECT_EQ(counter("rx_missed_no_descriptor"), 3U);
    card.model.counted.rx_overruns = 5;
    EXPECT_EQ(counter("rx_missed_fifo_overflow"), 5U);
    ASSERT_EQ(rte_eth_stats_reset(id), 0);
    EXPECT_EQ(statistics().imissed, 0U);
    EXPECT_EQ(statistics().ipackets, 0U);
}

TEST_F(I8255xEthdev, receives_without_a_stop_while_the_application_keeps_up) {
    start();
    const std::uint64_t starts = card.model.receive_starts;
    for (unsigned i = 0; i < 500; ++i) {
        deliver(static_cast<std::uint8_t>(i));
        ASSERT_EQ(receive(), std::vector<std::uint8_t>(60, static_cast<std::uint8_t>(i)));
    }
    EXPECT_EQ(card.model.receive_starts, starts);
    EXPECT_EQ(statistics().imissed, 0U);
}

/// QEMU's model repeats an old frame if it is resumed without a new one, and stands after 16.
TEST_F(I8255xEthdev, rings_once_for_sixteen_frames_and_never_for_none) {
    start();
    const std::uint64_t resumes = card.model.resumes;
    std::array<rte_mbuf*, kRing> burst{};
    for (rte_mbuf*& frame : burst)
        frame = make_frame(60, 1);
    ASSERT_EQ(rte_eth_tx_burst(id, 0, burst.data(), burst.size()), burst.size());
    EXPECT_EQ(card.model.resumes, resumes + 1);
    EXPECT_EQ(card.model.sent.size(), burst.size());
    EXPECT_EQ(rte_eth_tx_burst(id, 0, burst.data(), 0), 0);
    (void)statistics();
    EXPECT_EQ(card.model.resumes, resumes + 1);
}

TEST_F(I8255xEthdev, waits_for_content_that_comes_after_its_descriptor) {
    start();
    card.model.faults.late_content = true;
    for (std::uint8_t i = 1; i < 50; ++i) {
        deliver(i, 60 + i);
        ASSERT_EQ(receive(), std::vector<std::uint8_t>(60 + i, i));
    }
}

TEST_F(I8255xEthdev, lists_groups_and_takes_all_beyond) {
    start();
    std::vector<rte_ether_addr> groups;
    for (std::uint8_t i = 1; i <= 25; ++i) {
        groups.push_back(multicast(i));
        ASSERT_EQ(rte_eth_dev_set_mc_addr_list(id, groups.data(), groups.size()), 0);
        EXPECT_EQ(ChipUnderTest::takes_all_multicasts(card.model), i > kMulticastsMax);
        if (i <= kMulticastsMax) {
            ASSERT_EQ(card.model.multicasts.size(), i);
            EXPECT_EQ(card.model.multicasts.back()[5], i);
        }
    }
    ASSERT_EQ(rte_eth_dev_set_mc_addr_list(id, nullptr, 0), 0);
    EXPECT_FALSE(ChipUnderTest::takes_all_multicasts(card.model));
    EXPECT_TRUE(card.model.multicasts.empty());
}

TEST_F(I8255xEthdev, whose_commands_fail_does_not_start) {
    find();
    set_up();
    card.model.faults.commands_fail = true;
    EXPECT_EQ(rte_eth_dev_start(id), -EIO);
    EXPECT_NE(take_log().find("did not read its address filter"), std::string::npos);
    card.model.faults = {};
    EXPECT_EQ(rte_eth_dev_start(id), 0) << "a repaired fault leaves no trace";
}

TEST_F(I8255xEthdev, that_accepts_no_command_is_reset) {
    start();
    card.model.faults.never_accepts = true;
    ASSERT_TRUE(send(60, 1));
    poll(150);
    EXPECT_NE(take_log().find("does not accept commands"), std::string::npos);
    EXPECT_GE(counter("recoveries"), 1U);
    card.model.faults = {};
    poll(1200);
    EXPECT_NE(take_log().find("runs again"), std::string::npos);
    ASSERT_TRUE(send(60, 2));
    EXPECT_EQ(card.model.sent.size(), 1U);
}

TEST_F(I8255xEthdev, configures_by_its_revision) {
    start();
    EXPECT_EQ(card.model.configuration[18] & 0x08, 0) << "an 82557 has no long frames";
    EXPECT_EQ(rte_eth_dev_stop(id), 0);
    EXPECT_EQ(rte_eth_dev_close(id), 0);
    card.revision = 8;
    card.device_id = 0x1209;
    start();
    EXPECT_NE(card.model.configuration[18] & 0x08, 0);
}

TEST_F(I8255xEthdev, arguments_reach_the_chip) {
    start("media=10half,tx_threshold=1024,collision_retries=0");
    EXPECT_EQ(card.model.phy[0] & 0x3100, 0) << "no negotiation, 10 Mb/s, half duplex";
    ASSERT_TRUE(send(60, 1));
    EXPECT_EQ(card.model.thresholds.back(), 128) << "in units of 8 bytes";
    card.model.faults.tx_status = 0;
    card.model.faults.tx_status_frames = 1;
    ASSERT_TRUE(send(60, 1));
    poll(10);
    EXPECT_EQ(counter("tx_given_up"), 1U) << "no second try";
    EXPECT_EQ(rte_eth_dev_stop(id), 0);
    EXPECT_EQ(rte_eth_dev_close(id), 0);
    card.model.faults = {};
    start("tx_threshold=whole");
    ASSERT_TRUE(send(60, 1));
    EXPECT_EQ(card.model.thresholds.back(), 0xe0);
}

TEST_F(I8255xEthdev, raises_its_threshold_after_an_underflow) {
    start();
    card.model.faults.tx_status = cb::kOk | cb::kUnderrun;
    card.model.faults.tx_status_frames = 1;
    ASSERT_TRUE(send(60, 1));
    (void)statistics();
    ASSERT_TRUE(send(60, 2));
    EXPECT_EQ(counter("tx_underflows"), 1U);
    EXPECT_EQ(statistics().opackets, 2U) << "both were sent";
    EXPECT_EQ(card.model.thresholds, (std::vector<std::uint8_t>{16, 32}));
}

TEST_F(I8255xEthdev, counts_what_the_chip_lost_by_itself) {
    start("collision_retries=0");
    card.model.counted.tx_max_collisions = 4;
    card.model.counted.tx_late_collisions = 1;
    EXPECT_EQ(statistics().oerrors, 5U);
    card.model.counted.rx_crc = 1;
    card.model.counted.rx_alignment = 2;
    card.model.counted.rx_collisions = 3;
    card.model.counted.rx_short = 4;
    EXPECT_EQ(statistics().ierrors, 10U);
    EXPECT_EQ(counter("chip_rx_alignment_errors"), 2U);
    card.model.faults.tx_status_frames = 1;  // an 82557 names the frame, and counts it too
    card.model.counted.tx_max_collisions = 1;
    ASSERT_TRUE(send(60, 1));
    EXPECT_EQ(statistics().oerrors, 6U) << "once";
}

}  // namespace
}  // namespace ulc::i8255x
