// SPDX-License-Identifier: BSD-3-Clause
// Tests the NIC driver through DPDK's ethdev, on the register model: the calls of its users, and
// the results that they get.
#include "tests/unit/tulip/ethdev.h"

#include <rte_cycles.h>

#include <algorithm>
#include <array>
#include <utility>

#include "drivers/tulip/setup_frame.h"

namespace ulc::tulip {
namespace {

rte_ether_addr multicast(std::uint8_t number) { return {{0x01, 0x00, 0x5e, 0x00, 0x00, number}}; }

TEST_F(TulipEthdev, starts_stops_starts_again_and_closes_with_every_buffer_back) {
    start();
    EXPECT_TRUE(card.bus_master);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(card.model.receives());
        ASSERT_TRUE(send(60, 1));
        deliver(2);
        deliver(3);
        EXPECT_EQ(receive(), std::vector<std::uint8_t>(60, 2));
        ASSERT_EQ(rte_eth_dev_stop(id), 0);
        EXPECT_FALSE(card.model.receives());
        EXPECT_EQ(rte_mempool_avail_count(pool), kBuffers) << "a port that stands holds no buffer";
        ASSERT_EQ(rte_eth_dev_start(id), 0) << take_log();
    }
    EXPECT_EQ(card.model.sent.size(), 3U);
}

TEST_F(TulipEthdev, is_taken_away_with_its_card) {
    start();
    deliver(1);
    ASSERT_EQ(rte_eth_dev_stop(id), 0);
    card.remove();
    EXPECT_EQ(rte_eth_dev_is_valid_port(id), 0);
    EXPECT_EQ(rte_eth_dev_count_avail(), 0);
    EXPECT_EQ(card.probe(), 0) << "and the card is found again";
    card.remove();
}

TEST_F(TulipEthdev, tells_what_it_can) {
    start();
    rte_eth_dev_info info;
    ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
    EXPECT_STREQ(info.driver_name, "net_tulip");
    EXPECT_EQ(info.max_rx_queues, 1);
    EXPECT_EQ(info.max_mtu, 1500);
    EXPECT_NE(info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS, 0U);
    rte_eth_rxq_info rx;
    rte_eth_txq_info tx;
    ASSERT_EQ(rte_eth_rx_queue_info_get(id, 0, &rx), 0);
    ASSERT_EQ(rte_eth_tx_queue_info_get(id, 0, &tx), 0);
    EXPECT_EQ(rx.nb_desc, kRing);
    EXPECT_EQ(rx.mp, pool);
    EXPECT_EQ(tx.nb_desc, kRing);
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

TEST_F(TulipEthdev, carries_the_mtu_of_ethernet_and_no_more) {
    start();
    ASSERT_EQ(rte_eth_dev_stop(id), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(id, 1500), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(id, 68), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(id, 1501), -EINVAL);
    EXPECT_EQ(rte_eth_dev_set_mtu(id, 67), -EINVAL);
}

TEST_F(TulipEthdev, sends_frames_of_every_size_in_any_number_of_parts) {
    start();
    std::size_t at = 0;
    for (std::size_t octets = 60; octets <= 1518; octets += 7) {
        const std::size_t parts = 1 + octets % 16;
        ASSERT_TRUE(send(octets, static_cast<std::uint8_t>(octets), parts)) << octets;
        ASSERT_EQ(card.model.sent.size(), ++at);
        const std::vector<std::byte> expected(octets, std::byte{static_cast<std::uint8_t>(octets)});
        ASSERT_EQ(card.model.sent.back(), expected);
    }
    EXPECT_EQ(statistics().opackets, at);
    EXPECT_EQ(statistics().oerrors, 0U);
}

TEST_F(TulipEthdev, sends_header_and_payload_as_the_two_buffers_of_one_descriptor) {
    start();
    rte_eth_txq_info info;
    ASSERT_EQ(rte_eth_tx_queue_info_get(id, 0, &info), 0);
    card.model.faults.dma_dead = true;  // posted frames stay where they are
    unsigned taken = 0;
    while (send(100, 1, 2))
        ++taken;
    EXPECT_EQ(taken, kRing) << "two parts a descriptor";
}

TEST_F(TulipEthdev, refuses_and_counts_what_it_cannot_send) {
    start();
    EXPECT_TRUE(send(1519, 1, 2)) << "taken, so that the caller does not offer it without end";
    EXPECT_TRUE(send(170, 1, 17));
    rte_mbuf* empty = rte_pktmbuf_alloc(pool);
    EXPECT_EQ(rte_eth_tx_burst(id, 0, &empty, 1), 1);
    rte_mbuf* far = make_frame(60, 1);
    const rte_iova_t near = far->buf_iova;
    far->buf_iova = (std::uint64_t{1} << 32) - RTE_PKTMBUF_HEADROOM - 30;  // its end is beyond
    rte_mbuf_refcnt_set(far, 2);
    EXPECT_EQ(rte_eth_tx_burst(id, 0, &far, 1), 1);
    far->buf_iova = near;
    rte_pktmbuf_free(far);
    EXPECT_TRUE(card.model.sent.empty());
    EXPECT_EQ(counter("tx_refused"), 4U);
    EXPECT_EQ(statistics().oerrors, 4U);
    EXPECT_TRUE(send(1518, 2));
    EXPECT_EQ(card.model.sent.size(), 1U);
}

TEST_F(TulipEthdev, tells_which_descriptors_are_done) {
    start();
    EXPECT_EQ(rte_eth_tx_descriptor_status(id, 0, 0), RTE_ETH_TX_DESC_DONE);
    card.model.faults.dma_dead = true;
    ASSERT_TRUE(send(60, 1));
    EXPECT_EQ(rte_eth_tx_descriptor_status(id, 0, kRing - 1), RTE_ETH_TX_DESC_FULL);
    EXPECT_EQ(rte_eth_tx_descriptor_status(id, 0, kRing - 2), RTE_ETH_TX_DESC_DONE);
    EXPECT_EQ(rte_eth_tx_descriptor_status(id, 0, kRing), -EINVAL);
    EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, 0), RTE_ETH_RX_DESC_AVAIL);
    deliver(1);
    EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, 0), RTE_ETH_RX_DESC_DONE);
    EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, 1), RTE_ETH_RX_DESC_AVAIL);
    EXPECT_EQ(rte_eth_rx_descriptor_status(id, 0, kRing), -EINVAL);
}

TEST_F(TulipEthdev, counts_each_bad_frame_by_its_cause_and_keeps_its_buffer) {
    start();
    const std::pair<std::uint32_t, const char*> cases[] = {
        {rdes0::kES | rdes0::kCE, "rx_crc_errors"},
        {rdes0::kES | rdes0::kRE, "rx_crc_errors"},
        {rdes0::kES | rdes0::kRF, "rx_runts"},
        {rdes0::kES | rdes0::kCS, "rx_runts"},
        {rdes0::kES | rdes0::kRW, "rx_too_long"},
        {rdes0::kES | rdes0::kOF, "rx_fifo_overflow_errors"},
        {rdes0::kES, "rx_malformed_descriptors"},
    };
    for (int round = 0; round < 5; ++round) {
        for (const auto& [status, name] : cases) {
            const std::uint64_t before = counter(name);
            deliver(1, 60, status);
            EXPECT_TRUE(receive().empty());
            EXPECT_EQ(counter(name), before + 1) << name;
        }
    }
    EXPECT_EQ(statistics().ierrors, 35U);
    deliver(7);
    EXPECT_EQ(receive(), std::vector<std::uint8_t>(60, 7));
    EXPECT_EQ(statistics().ipackets, 1U);
    EXPECT_EQ(statistics().ibytes, 60U);
}

TEST_F(TulipEthdev, drops_and_counts_while_the_pool_is_empty_and_goes_on_after) {
    start();
    std::vector<rte_mbuf*> all;
    while (rte_mbuf* mbuf = rte_pktmbuf_alloc(pool))
        all.push_back(mbuf);
    deliver(1);
    EXPECT_TRUE(receive().empty());
    EXPECT_EQ(statistics().rx_nombuf, 1U);
    for (rte_mbuf* mbuf : all)
        rte_pktmbuf_free(mbuf);
    deliver(2);
    EXPECT_EQ(receive(), std::vector<std::uint8_t>(60, 2));
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

TEST_F(TulipEthdev, keeps_its_filter_over_a_stop) {
    start();
    ASSERT_EQ(rte_eth_dev_stop(id), 0);
    rte_ether_addr group = multicast(9);
    ASSERT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), 0) << "while it stands";
    ASSERT_EQ(rte_eth_dev_start(id), 0);
    EXPECT_EQ(static_cast<unsigned>(card.model.setup[2 * 12 + 9]), 9U);
}

TEST_F(TulipEthdev, says_so_when_the_chip_does_not_take_a_filter) {
    start();
    card.model.faults.dma_dead = true;
    rte_ether_addr group = multicast(1);
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), -EBUSY);
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), -EBUSY) << "the first one still waits";
    EXPECT_LE(card.model.waited, 5 * kSecond);
}

TEST_F(TulipEthdev, waits_for_room_for_a_filter_behind_frames_that_wait) {
    start();
    card.model.faults.dma_dead = true;
    while (send(60, 1)) {
    }
    rte_ether_addr group = multicast(1);
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), -EBUSY);
    card.model.faults.dma_dead = false;
    card.model.write(Csr::kTransmitPollDemand, 1);
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), 0);
}

TEST_F(TulipEthdev, receives_as_it_is_told) {
    start();
    const auto mode = [&] { return card.model.csr(Csr::kOperationMode) & (csr6::kPR | csr6::kPM); };
    EXPECT_EQ(mode(), 0U);
    ASSERT_EQ(rte_eth_promiscuous_enable(id), 0);
    EXPECT_EQ(mode(), csr6::kPR);
    ASSERT_EQ(rte_eth_allmulticast_enable(id), 0);
    EXPECT_EQ(mode(), csr6::kPR | csr6::kPM);
    ASSERT_EQ(rte_eth_promiscuous_disable(id), 0);
    EXPECT_EQ(mode(), csr6::kPM);
    ASSERT_EQ(rte_eth_allmulticast_disable(id), 0);
    EXPECT_EQ(mode(), 0U);
}

TEST_F(TulipEthdev, takes_another_address_while_it_runs) {
    start();
    rte_ether_addr own;
    ASSERT_EQ(rte_eth_macaddr_get(id, &own), 0);
    EXPECT_EQ(own.addr_bytes[1], 0x11) << "the serial ROM's";
    rte_ether_addr other{{0x02, 0, 0, 0, 0, 0x77}};
    ASSERT_EQ(rte_eth_dev_default_mac_addr_set(id, &other), 0);
    EXPECT_EQ(static_cast<unsigned>(card.model.setup[9]), 0x77U);
}

TEST_F(TulipEthdev, loops_back_inside_the_chip_if_told_to) {
    ASSERT_EQ(card.probe(), 0);
    ASSERT_EQ(rte_eth_dev_get_port_by_name(card.name, &id), 0);
    set_up(true);
    ASSERT_EQ(rte_eth_dev_start(id), 0);
    EXPECT_NE(card.model.csr(Csr::kOperationMode) & csr6::kOMInternal, 0U);
    ASSERT_EQ(rte_eth_dev_stop(id), 0);
    rte_eth_conf conf{};
    conf.lpbk_mode = 2;
    EXPECT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), -EINVAL);
    EXPECT_NE(take_log().find("loopback mode 2: 0 (none) or 1"), std::string::npos);
}

TEST_F(TulipEthdev, follows_the_link_at_start_and_later) {
    card.model.faults.link_down = true;
    start();
    rte_eth_link link{};
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN);
    EXPECT_TRUE(send(60, 1)) << "a link that is down is no fault of the port";
    card.model.link_up_after_reads = 6;  // comes up during the wait
    ASSERT_EQ(rte_eth_link_get(id, &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
    EXPECT_EQ(link.link_speed, RTE_ETH_SPEED_NUM_100M);
    EXPECT_EQ(link.link_duplex, RTE_ETH_LINK_FULL_DUPLEX);
    EXPECT_NE(card.model.csr(Csr::kOperationMode) & csr6::kFD, 0U) << "the chip follows the PHY";
    card.model.faults.link_down = true;
    poll(150);  // asked at most ten times a second
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN);
    card.model.faults.link_down = false;
    card.model.phy[5] = 0x0021;  // the partner has 10 Mb/s, half duplex
    poll(150);
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_EQ(link.link_speed, RTE_ETH_SPEED_NUM_10M);
    EXPECT_EQ(link.link_duplex, RTE_ETH_LINK_HALF_DUPLEX);
    EXPECT_NE(card.model.csr(Csr::kOperationMode) & csr6::kTTM, 0U);
    EXPECT_TRUE(card.model.receives()) << "and runs on";
}

TEST_F(TulipEthdev, asks_the_phy_ten_times_a_second_however_often_it_is_asked) {
    start();
    rte_eth_link link{};
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    const std::uint64_t before = card.model.accesses;
    for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_LT(card.model.accesses - before, 5000U) << "of one question at most";
}

}  // namespace
}  // namespace ulc::tulip
