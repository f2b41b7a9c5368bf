// SPDX-License-Identifier: BSD-3-Clause
// Tests the glue of the NIC driver as an application of DPDK meets it, with the register model as
// its card. The file that accesses registers in memory (net_tulip_memory.cc) is replaced by one
// that accesses the model, and the PCI bus by two functions. DPDK itself is the real one, on memory
// below 4 GiB whose bus addresses are the process's own.
#pragma once

#include <gtest/gtest.h>

#include <ethdev_pci.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/tulip/model.h"

namespace ulc::tulip {

/// Starts DPDK on memory below 4 GiB; once a process. Its log goes to take_log().
void start_dpdk();
/// Returns the log of DPDK and the driver since the last call.
[[nodiscard]] std::string take_log();

/// A slot that contains the model.
struct Card {
    TulipModel model{0};
    bool bus_master_refused = false;
    bool bus_master = false;
    std::uint64_t bar_octets = 128;
    std::uint16_t device_id = 0x0019;
    char name[16] = "0000:00:04.0";

    /// Probes the card as the PCI bus does when it finds it. Returns 0 or a negative errno.
    int probe(const std::string& arguments = "");
    void remove();

    rte_devargs devargs{};
    std::string arguments;
    rte_pci_device pci{};
};

/// An application with one port, queues of kRing and a pool of kBuffers.
class TulipEthdev : public testing::Test {
protected:
    static constexpr std::uint16_t kRing = 16;
    static constexpr unsigned kBuffers = 127;

    void SetUp() override;
    void TearDown() override;

    /// Probes, configures and starts; `id` is then the port.
    void start(const std::string& arguments = "");
    void set_up(bool loopback = false);

    rte_mbuf* make_frame(std::size_t octets, std::uint8_t number, std::size_t parts = 1);
    /// Offers one frame and frees it if it is not taken.
    bool send(std::size_t octets, std::uint8_t number, std::size_t parts = 1);
    /// Returns the content of the next received frame; empty if there is none.
    std::vector<std::uint8_t> receive();
    void deliver(std::uint8_t number, std::size_t octets = 60, std::uint32_t status = 0);
    [[nodiscard]] std::uint64_t counter(std::string_view name);
    [[nodiscard]] rte_eth_stats statistics();
    /// Polls for `ms` of real time, as an engine does.
    void poll(int ms);

    Card card;
    std::uint16_t id = RTE_MAX_ETHPORTS;
    rte_mempool* pool = nullptr;
};

}  // namespace ulc::tulip
