// SPDX-License-Identifier: BSD-3-Clause
// Tests a NIC driver through DPDK's ethdev, on the register model: the calls of its users, and the
// results that they get. Each driver passes all of it.
// NIC_UNDER_TEST is the header of the driver's chip: this file knows no chip.
#include NIC_UNDER_TEST

#include <rte_cycles.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ulc::nic {
namespace {

TEST_F(NicEthdev, starts_stops_starts_again_and_closes_with_every_buffer_back) {
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

TEST_F(NicEthdev, is_taken_away_with_its_card) {
    start();
    deliver(1);
    ASSERT_EQ(rte_eth_dev_stop(id), 0);
    card.remove();
    EXPECT_EQ(rte_eth_dev_is_valid_port(id), 0);
    EXPECT_EQ(rte_eth_dev_count_avail(), 0);
    EXPECT_EQ(card.probe(), 0) << "and the card is found again";
    card.remove();
}

TEST_F(NicEthdev, tells_what_it_can) {
    start();
    rte_eth_dev_info info;
    ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
    EXPECT_STREQ(info.driver_name, ChipUnderTest::kName);
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
}

TEST_F(NicEthdev, carries_the_mtu_of_ethernet_and_no_more) {
    start();
    ASSERT_EQ(rte_eth_dev_stop(id), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(id, 1500), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(id, 68), 0);
    EXPECT_EQ(rte_eth_dev_set_mtu(id, 1501), -EINVAL);
    EXPECT_EQ(rte_eth_dev_set_mtu(id, 67), -EINVAL);
}

TEST_F(NicEthdev, sends_frames_of_every_size_in_any_number_of_parts) {
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

TEST_F(NicEthdev, sends_header_and_payload_as_buffers_of_one_descriptor) {
    start();
    rte_eth_txq_info info;
    ASSERT_EQ(rte_eth_tx_queue_info_get(id, 0, &info), 0);
    card.model.faults.dma_dead = true;  // posted frames stay where they are
    unsigned taken = 0;
    while (send(100, 1, 2))
        ++taken;
    EXPECT_EQ(taken, kRing) << "one descriptor for both parts";
}

TEST_F(NicEthdev, refuses_and_counts_what_it_cannot_send) {
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

TEST_F(NicEthdev, tells_which_descriptors_are_done) {
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

TEST_F(NicEthdev, counts_each_bad_frame_by_its_cause_and_keeps_its_buffer) {
    start();
    for (int round = 0; round < 5; ++round) {
        for (const auto& [status, name] : ChipUnderTest::kBadFrames) {
            const std::uint64_t before = counter(name);
            deliver(1, 60, status);
            EXPECT_TRUE(receive().empty());
            EXPECT_EQ(counter(name), before + 1) << name;
        }
    }
    EXPECT_EQ(statistics().ierrors, 5 * ChipUnderTest::kBadFrames.size());
    deliver(7);
    EXPECT_EQ(receive(), std::vector<std::uint8_t>(60, 7));
    EXPECT_EQ(statistics().ipackets, 1U);
    EXPECT_EQ(statistics().ibytes, 60U);
}

TEST_F(NicEthdev, drops_and_counts_while_the_pool_is_empty_and_goes_on_after) {
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

TEST_F(NicEthdev, keeps_its_filter_over_a_stop) {
    start();
    ASSERT_EQ(rte_eth_dev_stop(id), 0);
    rte_ether_addr group = multicast(9);
    ASSERT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), 0) << "while it stands";
    ASSERT_EQ(rte_eth_dev_start(id), 0);
    EXPECT_EQ(ChipUnderTest::last_of_group(card.model), 9);
}

TEST_F(NicEthdev, says_so_when_the_chip_does_not_take_a_filter) {
    start();
    card.model.faults.dma_dead = true;
    rte_ether_addr group = multicast(1);
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), -EBUSY);
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), -EBUSY) << "the first one still waits";
    EXPECT_LE(card.model.waited, 5 * kSecond);
}

TEST_F(NicEthdev, waits_for_room_for_a_filter_behind_frames_that_wait) {
    start();
    card.model.faults.dma_dead = true;
    while (send(60, 1)) {
    }
    rte_ether_addr group = multicast(1);
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), -EBUSY);
    card.model.faults.dma_dead = false;
    ChipUnderTest::ring(card.model);
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), 0);
}

TEST_F(NicEthdev, receives_as_it_is_told) {
    start();
    const auto expect = [&](bool promiscuous, bool all) {
        EXPECT_EQ(ChipUnderTest::is_promiscuous(card.model), promiscuous);
        EXPECT_EQ(ChipUnderTest::takes_all_multicasts(card.model), all);
        EXPECT_TRUE(card.model.receives());
    };
    expect(false, false);
    ASSERT_EQ(rte_eth_promiscuous_enable(id), 0);
    expect(true, false);
    ASSERT_EQ(rte_eth_allmulticast_enable(id), 0);
    expect(true, true);
    ASSERT_EQ(rte_eth_promiscuous_disable(id), 0);
    expect(false, true);
    ASSERT_EQ(rte_eth_allmulticast_disable(id), 0);
    expect(false, false);
}

TEST_F(NicEthdev, takes_another_address_while_it_runs) {
    start();
    rte_ether_addr own;
    ASSERT_EQ(rte_eth_macaddr_get(id, &own), 0);
    EXPECT_EQ(own.addr_bytes[1], 0x11) << "the serial ROM's";
    rte_ether_addr other{{0x02, 0, 0, 0, 0, 0x77}};
    ASSERT_EQ(rte_eth_dev_default_mac_addr_set(id, &other), 0);
    EXPECT_EQ(ChipUnderTest::last_of_own(card.model), 0x77);
}

TEST_F(NicEthdev, loops_back_inside_the_chip_if_told_to) {
    find();
    set_up(true);
    ASSERT_EQ(rte_eth_dev_start(id), 0);
    EXPECT_TRUE(ChipUnderTest::loops_back(card.model));
    ASSERT_EQ(rte_eth_dev_stop(id), 0);
    rte_eth_conf conf{};
    conf.lpbk_mode = 2;
    EXPECT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), -EINVAL);
    EXPECT_NE(take_log().find("loopback mode 2: 0 (none) or 1"), std::string::npos);
}

TEST_F(NicEthdev, follows_the_link_at_start_and_later) {
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
    poll(150);
    EXPECT_TRUE(ChipUnderTest::is_full_duplex(card.model)) << "the chip follows the PHY";
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
    poll(150);
    EXPECT_FALSE(ChipUnderTest::is_full_duplex(card.model));
    EXPECT_TRUE(card.model.receives()) << "and runs on";
}

TEST_F(NicEthdev, asks_the_phy_ten_times_a_second_however_often_it_is_asked) {
    start();
    rte_eth_link link{};
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    const std::uint64_t before = card.model.accesses;
    for (int i = 0; i < 1000; ++i)
        ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_LT(card.model.accesses - before, 5000U) << "of one question at most";
}

}  // namespace
}  // namespace ulc::nic
