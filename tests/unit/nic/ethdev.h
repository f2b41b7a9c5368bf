// SPDX-License-Identifier: BSD-3-Clause
// Tests the glue of a NIC driver as an application of DPDK meets it, with a register model as its
// card. The file that accesses registers in memory (net_<driver>_memory.cc) is replaced by one that
// accesses the model, and the PCI bus by three functions. DPDK itself is the real one, on memory
// below 4 GiB whose bus addresses are the process's own.
//
// Chip, one for each driver: Model (a bus; see tulip/model.h), kVendor, kDevice, kBar, kBarOctets.
#pragma once

#include <gtest/gtest.h>

#include <ethdev_pci.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ulc::nic {

/// Starts DPDK on memory below 4 GiB; once a process. Its log goes to take_log().
void start_dpdk();
/// Returns the log of DPDK and the driver since the last call.
[[nodiscard]] std::string take_log();

/// A slot of the PCI bus.
struct Slot {
    bool bus_master_refused = false;
    bool bus_master = false;
    std::uint64_t bar_octets = 0;
    std::uint16_t device_id = 0;
    std::uint8_t revision = 0;
    char name[16] = "0000:00:04.0";

    void remove();

    rte_devargs devargs{};
    std::string arguments;
    rte_pci_device pci{};

protected:
    /// Probes the card as the PCI bus does when it finds it. Returns 0 or a negative errno.
    int probe(const std::string& with, void* model, std::uint16_t vendor, int bar);
};

/// A slot that contains the model.
template <typename Chip>
struct ModelCard : Slot {
    ModelCard() {
        bar_octets = Chip::kBarOctets;
        device_id = Chip::kDevice;
    }
    int probe(const std::string& with = "") {
        return Slot::probe(with, &model, Chip::kVendor, Chip::kBar);
    }
    typename Chip::Model model{0};
};

/// An application with one port, queues of kRing and a pool of kBuffers.
template <typename Chip>
class EthdevTest : public testing::Test {
protected:
    using Card = ModelCard<Chip>;
    using Status = typename Chip::Status;
    static constexpr std::uint16_t kRing = 16;
    static constexpr unsigned kBuffers = 127;

    void SetUp() override {
        start_dpdk();
        pool = rte_pktmbuf_pool_create("frames", kBuffers, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
                                       SOCKET_ID_ANY);
        ASSERT_NE(pool, nullptr) << take_log();
        (void)take_log();
    }
    /// Whatever happened, every buffer comes back.
    void TearDown() override {
        if (rte_eth_dev_is_valid_port(id) != 0) {
            rte_eth_dev_stop(id);
            EXPECT_EQ(rte_eth_dev_close(id), 0);
        }
        EXPECT_EQ(rte_mempool_avail_count(pool), kBuffers);
        rte_mempool_free(pool);
    }

    /// Probes; `id` is then the port.
    void find(const std::string& arguments = "") {
        ASSERT_EQ(card.probe(arguments), 0) << take_log();
        ASSERT_EQ(rte_eth_dev_get_port_by_name(card.name, &id), 0);
    }
    void set_up(bool loopback = false) {
        rte_eth_conf conf{};
        conf.lpbk_mode = loopback ? 1 : 0;
        ASSERT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), 0) << take_log();
        ASSERT_EQ(rte_eth_rx_queue_setup(id, 0, kRing, SOCKET_ID_ANY, nullptr, pool), 0)
            << take_log();
        ASSERT_EQ(rte_eth_tx_queue_setup(id, 0, kRing, SOCKET_ID_ANY, nullptr), 0) << take_log();
    }
    /// Probes, configures and starts.
    void start(const std::string& arguments = "") {
        find(arguments);
        set_up();
        ASSERT_EQ(rte_eth_dev_start(id), 0) << take_log();
    }

    rte_mbuf* make_frame(std::size_t octets, std::uint8_t number, std::size_t parts = 1) {
        rte_mbuf* head = nullptr;
        for (std::size_t i = 0; i < parts; ++i) {
            rte_mbuf* part = rte_pktmbuf_alloc(pool);
            EXPECT_NE(part, nullptr);
            const auto size =
                static_cast<std::uint16_t>(octets / parts + (i < octets % parts ? 1 : 0));
            std::memset(rte_pktmbuf_append(part, size), number, size);
            if (head == nullptr)
                head = part;
            else
                EXPECT_EQ(rte_pktmbuf_chain(head, part), 0);
        }
        return head;
    }
    /// Offers one frame and frees it if it is not taken.
    bool send(std::size_t octets, std::uint8_t number, std::size_t parts = 1) {
        rte_mbuf* frame = make_frame(octets, number, parts);
        if (rte_eth_tx_burst(id, 0, &frame, 1) == 1) return true;
        rte_pktmbuf_free(frame);
        return false;
    }
    /// Returns the content of the next received frame; empty if there is none.
    std::vector<std::uint8_t> receive() {
        rte_mbuf* frame = nullptr;
        if (rte_eth_rx_burst(id, 0, &frame, 1) == 0) return {};
        EXPECT_EQ(frame->nb_segs, 1);
        EXPECT_EQ(frame->port, id);
        const auto* at = rte_pktmbuf_mtod(frame, const std::uint8_t*);
        std::vector<std::uint8_t> octets(at, at + frame->pkt_len);
        rte_pktmbuf_free(frame);
        return octets;
    }
    void deliver(std::uint8_t number, std::size_t octets = 60, Status status = 0) {
        const std::vector<std::byte> frame(octets, std::byte{number});
        (void)card.model.deliver(frame, status);
    }
    [[nodiscard]] std::uint64_t counter(std::string_view name) {
        std::uint64_t xid = 0;
        std::uint64_t value = 0;
        EXPECT_EQ(rte_eth_xstats_get_id_by_name(id, name.data(), &xid), 0) << name;
        EXPECT_EQ(rte_eth_xstats_get_by_id(id, &xid, &value, 1), 1) << name;
        return value;
    }
    [[nodiscard]] rte_eth_stats statistics() {
        rte_eth_stats stats{};
        EXPECT_EQ(rte_eth_stats_get(id, &stats), 0);
        return stats;
    }
    /// Polls for `ms` of real time, as an engine does.
    void poll(int ms) {
        const std::uint64_t until =
            rte_get_timer_cycles() + rte_get_timer_hz() * static_cast<unsigned>(ms) / 1000;
        while (rte_get_timer_cycles() < until) {
            (void)receive();
            rte_delay_us_sleep(500);
        }
    }

    Card card;
    std::uint16_t id = RTE_MAX_ETHPORTS;
    rte_mempool* pool = nullptr;
};

[[nodiscard]] inline rte_ether_addr multicast(std::uint8_t number) {
    return {{0x01, 0x00, 0x5e, 0x00, 0x00, number}};
}

}  // namespace ulc::nic
