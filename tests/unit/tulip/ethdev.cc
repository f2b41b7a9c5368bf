// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/tulip/ethdev.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_log.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "drivers/tulip/net_tulip.h"

namespace ulc::tulip {
namespace {

rte_pci_driver* g_driver = nullptr;
char* g_said = nullptr;
std::size_t g_said_octets = 0;
std::FILE* g_log = nullptr;

Card* card_of(const rte_pci_device* device) {
    return static_cast<Card*>(device->mem_resource[5].addr);
}

}  // namespace

// ---- replacements of the bus and of the card's memory -------------------------------------------
std::uint32_t MemoryBus::read(Csr csr) noexcept {
    return reinterpret_cast<TulipModel*>(bar_)->read(csr);
}
void MemoryBus::write(Csr csr, std::uint32_t value) noexcept {
    reinterpret_cast<TulipModel*>(bar_)->write(csr, value);
}
void MemoryBus::wait(Nanos span) noexcept { reinterpret_cast<TulipModel*>(bar_)->wait(span); }

extern "C" void rte_pci_register(rte_pci_driver* driver) { g_driver = driver; }
extern "C" int rte_pci_set_bus_master(rte_pci_device* device, bool enable) {
    if (card_of(device)->bus_master_refused) return -1;
    card_of(device)->bus_master = enable;
    return 0;
}

// ---- the bus ------------------------------------------------------------------------------------
int Card::probe(const std::string& with) {
    arguments = with;
    devargs.args = arguments.data();
    pci.device.name = name;
    pci.device.devargs = &devargs;
    pci.id.vendor_id = 0x1011;
    pci.id.device_id = device_id;
    pci.mem_resource[1].addr = &model;
    pci.mem_resource[1].len = bar_octets;
    pci.mem_resource[5].addr = this;
    bool known = false;
    for (const rte_pci_id* i = g_driver->id_table; i->vendor_id != 0; ++i)
        known |= i->vendor_id == pci.id.vendor_id && i->device_id == pci.id.device_id;
    if (!known) return 1;  // the bus asks the next driver
    pci.driver = g_driver;
    pci.device.driver = &g_driver->driver;
    return g_driver->probe(g_driver, &pci);
}

void Card::remove() { EXPECT_EQ(g_driver->remove(&pci), 0); }

void start_dpdk() {
    static const bool started = [] {
        setenv("XDG_RUNTIME_DIR", "/tmp", 0);  // NOLINT(concurrency-mt-unsafe): one thread
        g_log = open_memstream(&g_said, &g_said_octets);
        rte_openlog_stream(g_log);
        std::string prefix = "--file-prefix=tulip" + std::to_string(getpid());
        std::vector<std::string> words{"test",
                                       "--no-huge",
                                       "--no-pci",
                                       "--no-telemetry",
                                       "--no-shconf",
                                       "-m",
                                       "32",
                                       "--iova-mode=va",
                                       "--base-virtaddr=0x20000000",
                                       "--lcores=0",
                                       prefix};
        std::vector<char*> argv;
        argv.reserve(std::size(words));
        for (std::string& word : words)
            argv.push_back(word.data());
        return rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0;
    }();
    ASSERT_TRUE(started) << take_log();
}

std::string take_log() {
    std::fflush(g_log);
    std::string said(g_said, g_said_octets);
    std::rewind(g_log);
    return said;
}

// ---- the application ----------------------------------------------------------------------------
void TulipEthdev::SetUp() {
    start_dpdk();
    pool =
        rte_pktmbuf_pool_create("frames", kBuffers, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    ASSERT_NE(pool, nullptr) << take_log();
    (void)take_log();
}

/// Whatever happened, every buffer comes back.
void TulipEthdev::TearDown() {
    if (rte_eth_dev_is_valid_port(id) != 0) {
        rte_eth_dev_stop(id);
        EXPECT_EQ(rte_eth_dev_close(id), 0);
    }
    EXPECT_EQ(rte_mempool_avail_count(pool), kBuffers);
    rte_mempool_free(pool);
}

void TulipEthdev::set_up(bool loopback) {
    rte_eth_conf conf{};
    conf.lpbk_mode = loopback ? 1 : 0;
    ASSERT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), 0) << take_log();
    ASSERT_EQ(rte_eth_rx_queue_setup(id, 0, kRing, SOCKET_ID_ANY, nullptr, pool), 0) << take_log();
    ASSERT_EQ(rte_eth_tx_queue_setup(id, 0, kRing, SOCKET_ID_ANY, nullptr), 0) << take_log();
}

void TulipEthdev::start(const std::string& arguments) {
    ASSERT_EQ(card.probe(arguments), 0) << take_log();
    ASSERT_EQ(rte_eth_dev_get_port_by_name(card.name, &id), 0);
    set_up();
    ASSERT_EQ(rte_eth_dev_start(id), 0) << take_log();
}

rte_mbuf* TulipEthdev::make_frame(std::size_t octets, std::uint8_t number, std::size_t parts) {
    rte_mbuf* head = nullptr;
    for (std::size_t i = 0; i < parts; ++i) {
        rte_mbuf* part = rte_pktmbuf_alloc(pool);
        EXPECT_NE(part, nullptr);
        const auto size = static_cast<std::uint16_t>(octets / parts + (i < octets % parts ? 1 : 0));
        std::memset(rte_pktmbuf_append(part, size), number, size);
        if (head == nullptr)
            head = part;
        else
            EXPECT_EQ(rte_pktmbuf_chain(head, part), 0);
    }
    return head;
}

bool TulipEthdev::send(std::size_t octets, std::uint8_t number, std::size_t parts) {
    rte_mbuf* frame = make_frame(octets, number, parts);
    if (rte_eth_tx_burst(id, 0, &frame, 1) == 1) return true;
    rte_pktmbuf_free(frame);
    return false;
}

std::vector<std::uint8_t> TulipEthdev::receive() {
    rte_mbuf* frame = nullptr;
    if (rte_eth_rx_burst(id, 0, &frame, 1) == 0) return {};
    EXPECT_EQ(frame->nb_segs, 1);
    EXPECT_EQ(frame->port, id);
    const auto* at = rte_pktmbuf_mtod(frame, const std::uint8_t*);
    std::vector<std::uint8_t> octets(at, at + frame->pkt_len);
    rte_pktmbuf_free(frame);
    return octets;
}

void TulipEthdev::deliver(std::uint8_t number, std::size_t octets, std::uint32_t status) {
    const std::vector<std::byte> frame(octets, std::byte{number});
    (void)card.model.deliver(frame, status);
}

std::uint64_t TulipEthdev::counter(std::string_view name) {
    std::uint64_t xid = 0;
    std::uint64_t value = 0;
    EXPECT_EQ(rte_eth_xstats_get_id_by_name(id, name.data(), &xid), 0) << name;
    EXPECT_EQ(rte_eth_xstats_get_by_id(id, &xid, &value, 1), 1) << name;
    return value;
}

rte_eth_stats TulipEthdev::statistics() {
    rte_eth_stats stats{};
    EXPECT_EQ(rte_eth_stats_get(id, &stats), 0);
    return stats;
}

void TulipEthdev::poll(int ms) {
    const std::uint64_t until =
        rte_get_timer_cycles() + rte_get_timer_hz() * static_cast<unsigned>(ms) / 1000;
    while (rte_get_timer_cycles() < until) {
        (void)receive();
        rte_delay_us_sleep(500);
    }
}

}  // namespace ulc::tulip
