// SPDX-License-Identifier: BSD-3-Clause
// Run in a guest of the lab: sends frames of every size through a DPDK port to a peer that swaps
// their addresses (dpdk-testpmd --forward-mode=macswap), and checks the frames that return. Also
// tests the filter, and stop and start.
//   frame_echo EAL-ARGUMENTS... -- PEER-MAC
// Ends with "frame_echo: ok ..." and 0, or prints the fault and returns 1.
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::uint16_t kPort = 0;
constexpr std::uint16_t kRing = 64;
constexpr std::uint16_t kEtherType = 0x88b5;
constexpr std::size_t kSmallest = 60;
constexpr std::size_t kLargest = 1514;
/// A frame may be lost while the peer starts; a frame lost in every try is a fault.
constexpr int kTries = 10;
constexpr std::uint64_t kAnswerMs = 300;

[[noreturn]] void fail(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    std::fputs("frame_echo: ", stdout);
    std::vprintf(format, arguments);
    std::fputs("\n", stdout);
    va_end(arguments);
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
}

rte_mempool* g_pool = nullptr;
rte_ether_addr g_own;
rte_ether_addr g_peer;
int g_lost = 0;

void start_port() {
    const rte_eth_conf conf{};
    if (rte_eth_dev_configure(kPort, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(kPort, 0, kRing, SOCKET_ID_ANY, nullptr, g_pool) != 0 ||
        rte_eth_tx_queue_setup(kPort, 0, kRing, SOCKET_ID_ANY, nullptr) != 0)
        fail("the port cannot be set up");
    if (const int error = rte_eth_dev_start(kPort); error != 0)
        fail("the port does not start: %s", rte_strerror(-error));
    rte_eth_link link;
    if (rte_eth_link_get(kPort, &link) != 0 || link.link_status != RTE_ETH_LINK_UP ||
        link.link_speed != RTE_ETH_SPEED_NUM_100M)
        fail("the link is not up at 100 Mb/s");
}

std::byte pattern(std::size_t size, std::size_t at) {
    return static_cast<std::byte>(size * 31 + at * 7);
}

/// Sends a frame to the peer, from `source`, in two segments.
bool send(const rte_ether_addr& source, std::size_t size) {
    rte_mbuf* head = rte_pktmbuf_alloc(g_pool);
    rte_mbuf* tail = rte_pktmbuf_alloc(g_pool);
    if (head == nullptr || tail == nullptr) fail("no buffers");
    const std::size_t first = 14 + size % 40;
    std::vector<std::byte> frame(size);
    auto* header = reinterpret_cast<rte_ether_hdr*>(frame.data());
    header->dst_addr = g_peer;
    header->src_addr = source;
    header->ether_type = rte_cpu_to_be_16(kEtherType);
    for (std::size_t i = sizeof *header; i < size; ++i)
        frame[i] = pattern(size, i);
    std::memcpy(rte_pktmbuf_append(head, static_cast<std::uint16_t>(first)), frame.data(), first);
    std::memcpy(rte_pktmbuf_append(tail, static_cast<std::uint16_t>(size - first)),
                frame.data() + first, size - first);
    if (rte_pktmbuf_chain(head, tail) != 0) fail("cannot chain");
    if (rte_eth_tx_burst(kPort, 0, &head, 1) == 1) return true;
    rte_pktmbuf_free(head);
    return false;
}

/// Returns true if a frame of `size` to `address` with the right content comes within `ms`. Others
/// are dropped; one of this size with wrong content is a fault.
bool receive(const rte_ether_addr& address, std::size_t size, std::uint64_t ms) {
    const std::uint64_t until = rte_get_timer_cycles() + rte_get_timer_hz() * ms / 1000;
    for (int empty = 0; rte_get_timer_cycles() < until;) {
        rte_mbuf* mbuf = nullptr;
        if (rte_eth_rx_burst(kPort, 0, &mbuf, 1) == 0) {
            if (++empty % 50 == 0)
                rte_delay_us_sleep(100);  // QEMU's network needs the processor too
            continue;
        }
        const auto* header = rte_pktmbuf_mtod(mbuf, const rte_ether_hdr*);
        const bool ours = header->ether_type == rte_cpu_to_be_16(kEtherType) &&
                          mbuf->pkt_len == size &&
                          rte_is_same_ether_addr(&header->dst_addr, &address);
        if (ours) {
            const auto* at = rte_pktmbuf_mtod(mbuf, const std::byte*);
            for (std::size_t i = sizeof *header; i < size; ++i)
                if (at[i] != pattern(size, i)) fail("octet %zu of %zu is wrong", i, size);
            if (!rte_is_same_ether_addr(&header->src_addr, &g_peer)) fail("a foreign source");
        }
        rte_pktmbuf_free(mbuf);
        if (ours) return true;
    }
    return false;
}

bool echoes(const rte_ether_addr& source, std::size_t size) {
    return send(source, size) && receive(source, size, kAnswerMs);
}

void must_echo(const rte_ether_addr& source, std::size_t size) {
    for (int i = 0; i < kTries; ++i) {
        if (echoes(source, size)) return;
        ++g_lost;
    }
    fail("no echo of %zu octets in %d tries", size, kTries);
}

/// Tries twice, since a missing frame may also have been lost.
void must_not_echo(const rte_ether_addr& source, std::size_t size, const char* what) {
    for (int i = 0; i < 2; ++i)
        if (echoes(source, size)) fail("%s came", what);
}

void check_filter() {
    rte_ether_addr joined{{0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}};
    rte_ether_addr foreign{{0x01, 0x00, 0x5e, 0x01, 0x02, 0x04}};
    if (rte_eth_dev_set_mc_addr_list(kPort, &joined, 1) != 0) fail("the filter cannot be set");
    must_echo(joined, 100);
    must_not_echo(foreign, 101, "a foreign multicast");
    if (rte_eth_allmulticast_enable(kPort) != 0) fail("all-multicast cannot be set");
    must_echo(foreign, 102);
    if (rte_eth_allmulticast_disable(kPort) != 0) fail("all-multicast cannot be unset");
    if (rte_eth_dev_set_mc_addr_list(kPort, nullptr, 0) != 0) fail("the filter cannot be emptied");
    must_not_echo(joined, 103, "a multicast through an empty filter");
    const rte_ether_addr other{{0x02, 0, 0, 0, 0, 0x77}};
    must_not_echo(other, 104, "a foreign unicast");
    if (rte_eth_promiscuous_enable(kPort) != 0) fail("promiscuous cannot be set");
    must_echo(other, 105);
    if (rte_eth_promiscuous_disable(kPort) != 0) fail("promiscuous cannot be unset");
}

void check_statistics(std::uint64_t least) {
    rte_eth_stats stats;
    if (rte_eth_stats_get(kPort, &stats) != 0) fail("no statistics");
    if (stats.ipackets < least || stats.opackets < least) fail("too few frames counted");
    if (stats.ierrors != 0 || stats.oerrors != 0) fail("errors counted");
    const int count = rte_eth_xstats_get(kPort, nullptr, 0);
    std::vector<rte_eth_xstat> values(static_cast<std::size_t>(std::max(count, 0)));
    std::vector<rte_eth_xstat_name> names(values.size());
    if (count <= 0 || rte_eth_xstats_get(kPort, values.data(), values.size()) != count ||
        rte_eth_xstats_get_names(kPort, names.data(), names.size()) != count)
        fail("no extended statistics");
    const bool named = std::any_of(names.begin(), names.end(), [](const rte_eth_xstat_name& n) {
        return std::strcmp(n.name, "tx_collision_retries") == 0;
    });
    if (!named) fail("tx_collision_retries is not among the statistics");
    if (rte_eth_stats_reset(kPort) != 0 || rte_eth_stats_get(kPort, &stats) != 0 ||
        stats.ipackets != 0)
        fail("statistics cannot be reset");
}

}  // namespace

int main(int argc, char** argv) {
    const int used = rte_eal_init(argc, argv);
    if (used < 0) fail("DPDK does not start");
    if (used + 1 >= argc || rte_ether_unformat_addr(argv[used + 1], &g_peer) != 0)
        fail("usage: frame_echo EAL-ARGUMENTS... -- PEER-MAC");
    if (rte_eth_dev_count_avail() != 1) fail("%u ports, not one", rte_eth_dev_count_avail());
    g_pool = rte_pktmbuf_pool_create("echo", 1023, 32, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (g_pool == nullptr) fail("no pool");
    start_port();
    if (rte_eth_macaddr_get(kPort, &g_own) != 0) fail("no address");
    // The peer boots too.
    for (int i = 0; i < 100 && !echoes(g_own, kSmallest); ++i) {
    }
    g_lost = 0;
    std::uint64_t sizes = 0;
    for (std::size_t size = kSmallest; size <= kLargest; ++size, ++sizes) {
        must_echo(g_own, size);
        if (size % 400 != 0) continue;
        // Stops with frames of the peer in flight, and starts again.
        for (int i = 0; i < 8; ++i)
            (void)send(g_own, 200);
        if (rte_eth_dev_stop(kPort) != 0) fail("the port does not stop");
        start_port();
    }
    check_filter();
    check_statistics(sizes / 4);
    std::printf("frame_echo: ok, %zu sizes there and back, %d tries repeated\n",
                static_cast<std::size_t>(sizes), g_lost);
    if (rte_eth_dev_stop(kPort) != 0 || rte_eth_dev_close(kPort) != 0) fail("no clean close");
    return rte_eal_cleanup() == 0 ? 0 : 1;
}
