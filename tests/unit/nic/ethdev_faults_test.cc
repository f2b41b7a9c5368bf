// SPDX-License-Identifier: BSD-3-Clause
// Tests a NIC driver through DPDK's ethdev, on a card that is broken, wrongly assigned, removed or
// silent: the error text that the user reads, and the fate of the frames. Each driver passes all.
// NIC_UNDER_TEST is the header of the driver's chip: this file knows no chip.
#include NIC_UNDER_TEST

#include <rte_cycles.h>
#include <rte_malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <utility>

namespace ulc::nic {
namespace {

TEST_F(NicEthdev, that_cannot_be_opened_says_what_to_do_and_leaves_nothing) {
    struct Case {
        void (*plant)(Card&);
        const char* sentence;
    };
    const Case cases[] = {
        {[](Card& c) { c.model.faults.gone = true; }, "does not answer"},
        {[](Card& c) { c.model.faults.never_resets = true; }, "power-cycle the machine"},
        {[](Card& c) { c.model.rom.is_silent = true; },
         "give the address with the device argument mac="},
        {[](Card& c) { ChipUnderTest::break_checksum(c.model); },
         "checksum of the serial ROM is wrong; give the address"},
        {[](Card& c) { ChipUnderTest::make_group(c.model); }, "holds no unicast address; give one"},
        {[](Card& c) { c.model.faults.no_phy = true; }, "no PHY answers on MII"},
        {[](Card& c) { c.bus_master_refused = true; }, "run as root"},
        {[](Card& c) { c.bar_octets = 16; },
         "bind it with dpdk-devbind.py to uio_pci_generic or vfio-pci"},
    };
    for (const Case& c : cases) {
        Card broken;
        c.plant(broken);
        EXPECT_LT(broken.probe(), 0) << c.sentence;
        EXPECT_NE(take_log().find(c.sentence), std::string::npos) << c.sentence;
        EXPECT_EQ(rte_eth_dev_count_avail(), 0);
        EXPECT_LE(broken.model.waited, 100 * kMillisecond);
    }
    Card foreign;
    foreign.device_id = ChipUnderTest::kForeignDevice;
    EXPECT_EQ(foreign.probe(), 1) << "left to others";
}

TEST_F(NicEthdev, with_a_broken_rom_takes_the_address_that_is_given) {
    ChipUnderTest::break_checksum(card.model);
    start("mac=02:00:00:00:00:42");
    rte_ether_addr own;
    ASSERT_EQ(rte_eth_macaddr_get(id, &own), 0);
    EXPECT_EQ(own.addr_bytes[5], 0x42);
}

TEST_F(NicEthdev, arguments_that_are_wrong_are_answered_with_those_that_are_right) {
    const std::pair<const char*, const char*> cases[] = {
        {"media=1000full", "one of auto, 10half, 10full, 100half, 100full"},
        {"tx_threshold=64", "one of 128, 256, 512, 1024, whole"},
        {"collision_retries=101", "a number from 0 to 100"},
        {"collision_retries=x", "a number from 0 to 100"},
        {"mac=01:00:00:00:00:01", "a unicast address as 02:00:00:00:00:01"},
        {"mac=nonsense", "a unicast address"},
        {"speed=100", "known are mac, media, tx_threshold and collision_retries"},
    };
    for (const auto& [given, sentence] : cases) {
        Card wrong;
        EXPECT_EQ(wrong.probe(given), -EINVAL) << given;
        EXPECT_NE(take_log().find(sentence), std::string::npos) << given;
    }
    Card bare;
    EXPECT_EQ(bare.probe("media"), -EINVAL) << "a name without a value";
}

TEST_F(NicEthdev, sends_a_frame_of_too_many_collisions_again_and_then_reports_it) {
    start("collision_retries=2");
    card.model.faults.tx_status = ChipUnderTest::kManyCollisions;
    card.model.faults.tx_status_frames = 2;
    ASSERT_TRUE(send(60, 1));
    ASSERT_TRUE(send(60, 2));
    poll(10);
    (void)statistics();
    EXPECT_EQ(card.model.sent.size(), 2U) << "both went in the end";
    EXPECT_EQ(counter("tx_collision_retries"), 2U);
    EXPECT_EQ(counter("tx_given_up"), 0U);
    card.model.faults.tx_status_frames = 3;
    ASSERT_TRUE(send(60, 3));
    for (int i = 0; i < 5; ++i)
        (void)statistics();
    EXPECT_EQ(card.model.sent.size(), 2U);
    EXPECT_EQ(counter("tx_collision_retries"), 4U);
    EXPECT_EQ(counter("tx_given_up"), 1U);
    EXPECT_EQ(statistics().oerrors, 1U);
}

TEST_F(NicEthdev, that_is_taken_away_under_load_is_reported_once_a_second_and_comes_back) {
    start();
    card.model.faults.dma_dead = true;
    for (int i = 0; i < 5; ++i)
        ASSERT_TRUE(send(60, 1));
    card.model.faults.gone = true;
    poll(1300);
    for (int i = 0; i < 100; ++i)
        (void)statistics();  // a concurrent reader changes nothing
    const std::uint64_t tries = counter("failed_recoveries");
    EXPECT_GE(tries, 1U);
    EXPECT_LE(tries, 3U);
    EXPECT_EQ(counter("tx_lost_in_reset"), 5U);
    const std::string said = take_log();
    EXPECT_NE(said.find("the chip does not answer"), std::string::npos);
    EXPECT_NE(said.find("does not come back"), std::string::npos);
    rte_eth_link link{};
    ASSERT_EQ(rte_eth_link_get_nowait(id, &link), 0);
    EXPECT_EQ(link.link_status, RTE_ETH_LINK_DOWN) << "which is how the engine learns of it";
    card.model.faults = {};
    poll(1200);
    EXPECT_NE(take_log().find("runs again"), std::string::npos);
    ASSERT_TRUE(send(60, 9));
    EXPECT_EQ(card.model.sent.size(), 1U);
    deliver(4);
    EXPECT_EQ(receive(), std::vector<std::uint8_t>(60, 4));
}

TEST_F(NicEthdev, that_is_gone_ends_the_wait_for_its_filter) {
    start();
    rte_ether_addr group = multicast(9);
    card.model.faults.gone = true;
    card.model.faults.dma_dead = true;
    Nanos before = card.model.waited;
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), -EBUSY) << "it was not known to be gone";
    EXPECT_LE(card.model.waited - before, 200 * kMillisecond);
    before = card.model.waited;
    EXPECT_EQ(rte_eth_dev_set_mc_addr_list(id, &group, 1), 0) << "for when it comes back";
    EXPECT_EQ(card.model.waited, before);
    card.model.faults = {};
    poll(1200);
    EXPECT_EQ(ChipUnderTest::last_of_group(card.model), 9);
}

TEST_F(NicEthdev, that_is_gone_can_be_stopped_and_closed) {
    start();
    ASSERT_TRUE(send(60, 1));
    card.model.faults.gone = true;
    EXPECT_EQ(rte_eth_dev_stop(id), 0);
    EXPECT_NE(take_log().find("does not answer"), std::string::npos);
    EXPECT_EQ(rte_eth_dev_start(id), -EIO);
    EXPECT_NE(take_log().find("does not answer"), std::string::npos);
    EXPECT_EQ(rte_mempool_avail_count(pool), kBuffers);
}

TEST_F(NicEthdev, that_keeps_a_frame_for_a_second_is_reset_although_frames_come) {
    start();
    card.model.faults.dma_dead = true;
    ASSERT_TRUE(send(60, 1));
    const std::uint64_t until = rte_get_timer_cycles() + rte_get_timer_hz() * 3;
    while (ChipUnderTest::starts(card.model) == 1 && rte_get_timer_cycles() < until) {
        deliver(1);
        (void)receive();
        rte_delay_us_sleep(500);
    }
    EXPECT_NE(take_log().find("left a frame unsent for too long; it is reset"), std::string::npos);
    card.model.faults = {};
    poll(1200);
    EXPECT_EQ(counter("tx_lost_in_reset"), 1U);
    EXPECT_GE(counter("recoveries"), 1U);
    EXPECT_TRUE(send(60, 2));
    EXPECT_EQ(card.model.sent.size(), 1U);
}

TEST_F(NicEthdev, that_lost_power_for_a_moment_is_set_up_again) {
    start();
    poll(150);
    ChipUnderTest::power_off(card.model);
    poll(150);
    EXPECT_NE(take_log().find("forgot its state"), std::string::npos);
    EXPECT_TRUE(card.model.receives());
    EXPECT_EQ(counter("recoveries"), 1U);
}

TEST_F(NicEthdev, whose_dma_reaches_no_memory_does_not_start) {
    find();
    set_up();
    card.model.faults.dma_dead = true;
    EXPECT_EQ(rte_eth_dev_start(id), -EIO);
    EXPECT_NE(take_log().find("check that bus mastering is on"), std::string::npos);
    card.model.faults = {};
    EXPECT_EQ(rte_eth_dev_start(id), 0) << "a repaired fault leaves no trace";
}

TEST_F(NicEthdev, that_does_not_stop_is_reset_before_its_buffers_are_given_back) {
    start();
    card.model.faults.never_stops = true;
    EXPECT_EQ(rte_eth_dev_stop(id), 0);
    EXPECT_NE(take_log().find("did not stop"), std::string::npos);
    card.model.faults = {};
}

TEST_F(NicEthdev, refuses_pools_whose_buffers_hold_no_frame) {
    find();
    const rte_eth_conf conf{};
    ASSERT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), 0);
    rte_mempool* small = rte_pktmbuf_pool_create("small", 31, 0, 0, 1024, SOCKET_ID_ANY);
    EXPECT_LT(rte_eth_rx_queue_setup(id, 0, kRing, SOCKET_ID_ANY, nullptr, small), 0);
    rte_mempool_free(small);
    EXPECT_EQ(rte_eth_rx_queue_setup(id, 0, 8, SOCKET_ID_ANY, nullptr, pool), -EINVAL)
        << "below the least ring";
}

TEST_F(NicEthdev, with_too_few_buffers_does_not_start) {
    find();
    set_up();
    std::vector<rte_mbuf*> taken(kBuffers - kRing / 2);
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool, taken.data(), static_cast<unsigned>(taken.size())), 0);
    EXPECT_EQ(rte_eth_dev_start(id), -ENOMEM);
    EXPECT_NE(take_log().find("give the pool more, or bind it to vfio-pci"), std::string::npos);
    rte_pktmbuf_free_bulk(taken.data(), static_cast<unsigned>(taken.size()));
}

/// Memory of the process above 4 GiB, like a heap of DPDK.
class HighMemory {
public:
    HighMemory() {
        at_ = mmap(nullptr, kOctets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::vector<rte_iova_t> pages(kOctets / 4096);
        for (std::size_t i = 0; i < pages.size(); ++i)
            pages[i] = reinterpret_cast<std::uintptr_t>(at_) + i * 4096;
        EXPECT_EQ(rte_malloc_heap_create("high"), 0);
        EXPECT_EQ(rte_malloc_heap_memory_add("high", at_, kOctets, pages.data(),
                                             static_cast<unsigned>(pages.size()), 4096),
                  0);
    }
    ~HighMemory() {
        EXPECT_EQ(rte_malloc_heap_memory_remove("high", at_, kOctets), 0);
        EXPECT_EQ(rte_malloc_heap_destroy("high"), 0);
        munmap(at_, kOctets);
    }
    HighMemory(const HighMemory&) = delete;
    HighMemory& operator=(const HighMemory&) = delete;
    [[nodiscard]] static unsigned socket() {
        return static_cast<unsigned>(rte_malloc_heap_get_socket("high"));
    }

private:
    static constexpr std::size_t kOctets = 2 << 20;
    void* at_;
};

TEST_F(NicEthdev, refuses_memory_that_32_bits_do_not_reach) {
    find();
    set_up();
    {
        const HighMemory memory;
        EXPECT_EQ(rte_eth_dev_start(id), -ENOMEM);
        EXPECT_NE(take_log().find("the chip reaches 32 bits of addresses, and DPDK's memory lies "
                                  "above; bind it to vfio-pci"),
                  std::string::npos);
        Card other;
        std::snprintf(other.name, sizeof other.name, "0000:00:05.0");
        ASSERT_EQ(other.probe(), 0);
        std::uint16_t second = 0;
        ASSERT_EQ(rte_eth_dev_get_port_by_name(other.name, &second), 0);
        const rte_eth_conf conf{};
        ASSERT_EQ(rte_eth_dev_configure(second, 1, 1, &conf), 0);
        if (ChipUnderTest::kHasReceiveList) {
            EXPECT_EQ(rte_eth_rx_queue_setup(second, 0, kRing, HighMemory::socket(), nullptr, pool),
                      -ENOMEM);
            EXPECT_NE(take_log().find("and its rings would lie above"), std::string::npos);
        }
        EXPECT_EQ(rte_eth_tx_queue_setup(second, 0, kRing, HighMemory::socket(), nullptr), -ENOMEM);
        EXPECT_NE(take_log().find("and its rings would lie above"), std::string::npos);
        EXPECT_EQ(rte_eth_dev_close(second), 0);
    }
    EXPECT_EQ(rte_eth_dev_start(id), 0) << take_log();
}

}  // namespace
}  // namespace ulc::nic
