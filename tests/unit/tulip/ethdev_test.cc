// SPDX-License-Identifier: BSD-3-Clause
// Tests what only the 21143's driver does through ethdev; the rest is in tests/unit/nic.
#include "tests/unit/tulip/ethdev.h"

namespace ulc::tulip {
namespace {

TEST_F(TulipEthdev, shows_its_registers_and_changes_none) {
    start();
    std::array<std::uint32_t, 16> registers{};
    rte_dev_reg_info wanted{};
    ASSERT_EQ(rte_eth_dev_get_reg_info(id, &wanted), 0);
    ASSERT_EQ(wanted.length, registers.size());
    wanted.data = registers.data();
    card.model.missed = 3;
    ASSERT_EQ(rte_eth_dev_get_reg_info(id, &wanted), 0);
    EXPECT_EQ(registers[6], card.model.csr(Csr::kOperationMode));
    EXPECT_EQ(card.model.missed, 3U) << "a look at the registers takes nothing from the statistics";
}

TEST_F(TulipEthdev, sets_the_speed_of_its_port) {
    start();
    card.model.phy[5] = 0x0021;  // the partner has 10 Mb/s, half duplex
    poll(150);                   // the PHY is asked ten times a second
    rte_eth_link link{};
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_EQ(link.link_speed, RTE_ETH_SPEED_NUM_10M);
    EXPECT_NE(card.model.csr(Csr::kOperationMode) & csr6::kTTM, 0U);
}

TEST_F(TulipEthdev, counts_collisions) {
    start("collision_retries=1");
    card.model.faults.tx_status = tdes0::kES | tdes0::kEC | 15U << tdes0::kCCShift;
    card.model.faults.tx_status_frames = 2;
    ASSERT_TRUE(send(60, 1));
    for (int i = 0; i < 3; ++i)
        (void)statistics();
    EXPECT_EQ(counter("tx_collisions"), 30U);
}

TEST_F(TulipEthdev, whose_bus_fails_at_the_start_says_so) {
    find();
    set_up();
    card.model.faults.bus_error = true;
    EXPECT_EQ(rte_eth_dev_start(id), -EIO);
    EXPECT_NE(take_log().find("bus error"), std::string::npos);
    card.model.faults = {};
    EXPECT_EQ(rte_eth_dev_start(id), 0) << "a repaired fault leaves no trace";
}

TEST_F(TulipEthdev, filters_fourteen_groups_exactly_and_more_by_hash) {
    start();
    std::vector<rte_ether_addr> groups;
    for (std::uint8_t i = 1; i <= 20; ++i) {
        groups.push_back(multicast(i));
        ASSERT_EQ(rte_eth_dev_set_mc_addr_list(id, groups.data(), groups.size()), 0);
        const bool hash = (card.model.setup_control & tdes1::kFT0) != 0;
        EXPECT_EQ(hash, i > 14) << static_cast<int>(i);
        // In both cases the group that was added last is in the filter that the chip read.
        const MacAddress last{0x01, 0x00, 0x5e, 0x00, 0x00, i};
        if (hash) {
            const std::uint32_t bit = hash_bit(last);
            EXPECT_NE(static_cast<unsigned>(card.model.setup[bit / 16 * 4 + bit % 16 / 8]) &
                          1U << bit % 8,
                      0U);
        } else {
            EXPECT_EQ(static_cast<unsigned>(card.model.setup[(i + 1U) * 12 + 9]), i);
        }
    }
    ASSERT_EQ(rte_eth_dev_set_mc_addr_list(id, nullptr, 0), 0);
    EXPECT_EQ(card.model.setup_control & tdes1::kFT0, 0U);
}

TEST_F(TulipEthdev, wakes_the_chip_that_ran_out_of_descriptors) {
    start();
    for (unsigned i = 0; i < kRing + 3U; ++i)
        deliver(static_cast<std::uint8_t>(i));
    const std::uint64_t demands = card.model.receive_demands;
    for (unsigned i = 0; i < kRing; ++i)
        EXPECT_EQ(receive(), std::vector<std::uint8_t>(60, static_cast<std::uint8_t>(i)));
    EXPECT_GT(card.model.receive_demands, demands);
    EXPECT_EQ(statistics().imissed, 3U) << "the chip's own count";
    EXPECT_EQ(counter("rx_missed_no_descriptor"), 3U);
    card.model.missed = 5U << csr8::kFifoShift;
    EXPECT_EQ(counter("rx_missed_fifo_overflow"), 5U);
    ASSERT_EQ(rte_eth_stats_reset(id), 0);
    EXPECT_EQ(statistics().imissed, 0U);
    EXPECT_EQ(statistics().ipackets, 0U);
}

TEST_F(TulipEthdev, of_a_21140_is_driven_by_its_own_port) {
    card.device_id = 0x0009;
    start();
    EXPECT_TRUE(send(60, 1));
    EXPECT_EQ(card.model.sent.size(), 1U);
}

TEST_F(TulipEthdev, arguments_reach_the_chip) {
    start("media=10half,tx_threshold=1024,collision_retries=0");
    EXPECT_EQ(card.model.phy[0] & 0x3100, 0) << "no negotiation, 10 Mb/s, half duplex";
    const auto threshold = [&] {
        return (card.model.csr(Csr::kOperationMode) & csr6::kTRMask) >> csr6::kTRShift;
    };
    EXPECT_EQ(threshold(), 3U);
    card.model.faults.tx_status = tdes0::kES | tdes0::kEC;
    card.model.faults.tx_status_frames = 1;
    ASSERT_TRUE(send(60, 1));
    poll(10);
    EXPECT_EQ(counter("tx_given_up"), 1U) << "no second try";
    Card whole;
    EXPECT_EQ(rte_eth_dev_stop(id), 0);
    EXPECT_EQ(rte_eth_dev_close(id), 0);
    card.model.faults = {};
    start("tx_threshold=whole");
    EXPECT_NE(card.model.csr(Csr::kOperationMode) & csr6::kSF, 0U);
}

TEST_F(TulipEthdev, raises_its_threshold_after_an_underflow) {
    start("collision_retries=3");
    card.model.faults.tx_status = tdes0::kES | tdes0::kUF;
    card.model.faults.tx_status_frames = 1;
    ASSERT_TRUE(send(60, 1));
    (void)statistics();
    ASSERT_TRUE(send(60, 2));
    EXPECT_EQ(counter("tx_underflows"), 1U);
    EXPECT_EQ((card.model.csr(Csr::kOperationMode) & csr6::kTRMask) >> csr6::kTRShift, 1U);
    EXPECT_EQ(card.model.sent.size(), 2U) << "the frame went again";
}

TEST_F(TulipEthdev, counts_frames_without_carrier_and_frames_that_jabber) {
    start();
    for (const auto& [status, name] : {std::pair{tdes0::kES | tdes0::kNC, "tx_no_carrier"},
                                       std::pair{tdes0::kES | tdes0::kLO, "tx_no_carrier"},
                                       std::pair{tdes0::kES | tdes0::kTO, "tx_jabber"}}) {
        const std::uint64_t before = counter(name);
        card.model.faults.tx_status = status;
        card.model.faults.tx_status_frames = 1;
        ASSERT_TRUE(send(60, 1));
        EXPECT_EQ(counter(name), before + 1) << name;
    }
    EXPECT_EQ(statistics().oerrors, 3U);
}

TEST_F(TulipEthdev, with_a_bus_error_is_reset_and_runs_on) {
    start();
    card.model.faults.bus_error = true;
    ASSERT_TRUE(send(60, 1));
    card.model.faults.bus_error = false;  // it happened once
    poll(150);
    EXPECT_NE(take_log().find("fatal PCI bus error (CSR5<FBE>); the chip is reset"),
              std::string::npos);
    EXPECT_EQ(counter("recoveries"), 1U);
    EXPECT_EQ(counter("failed_recoveries"), 0U);
    ASSERT_TRUE(send(60, 2));
    EXPECT_EQ(card.model.sent.back(), std::vector<std::byte>(60, std::byte{2}));
}

TEST_F(TulipEthdev, that_does_not_stop_for_another_speed_is_reset) {
    start();
    rte_eth_link link{};
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    card.model.phy[5] = 0x0021;
    card.model.faults.never_stops = true;
    poll(150);
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN) << "the chip has not stopped";
    EXPECT_GE(counter("recoveries"), 1U);
    card.model.faults = {};
    poll(1200);
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_EQ(link.link_speed, RTE_ETH_SPEED_NUM_10M);
}

}  // namespace
}  // namespace ulc::tulip
