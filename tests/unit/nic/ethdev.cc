// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/nic/ethdev.h"

#include <rte_eal.h>
#include <rte_log.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace ulc::nic {
namespace {

rte_pci_driver* g_driver = nullptr;
char* g_said = nullptr;
std::size_t g_said_octets = 0;
std::FILE* g_log = nullptr;
constexpr int kSlotResource = 5;  ///< no card here has that BAR

Slot* slot_of(const rte_pci_device* device) {
    return static_cast<Slot*>(device->mem_resource[kSlotResource].addr);
}

}  // namespace

// ---- replacements of the bus --------------------------------------------------------------------
extern "C" void rte_pci_register(rte_pci_driver* driver) { g_driver = driver; }
extern "C" int rte_pci_set_bus_master(rte_pci_device* device, bool enable) {
    if (slot_of(device)->bus_master_refused) return -1;
    slot_of(device)->bus_master = enable;
    return 0;
}
extern "C" int rte_pci_read_config(const rte_pci_device* device, void* out, std::size_t octets,
                                   off_t offset) {
    if (octets != 1 || offset != 8) return -1;  // the revision is all that a driver reads
    std::memcpy(out, &slot_of(device)->revision, 1);
    return 1;
}

int Slot::probe(const std::string& with, void* model, std::uint16_t vendor, int bar) {
    arguments = with;
    devargs.args = arguments.data();
    pci.device.name = name;
    pci.device.devargs = &devargs;
    pci.id.vendor_id = vendor;
    pci.id.device_id = device_id;
    pci.mem_resource[bar].addr = model;
    pci.mem_resource[bar].len = bar_octets;
    pci.mem_resource[kSlotResource].addr = this;
    bool known = false;
    for (const rte_pci_id* i = g_driver->id_table; i->vendor_id != 0; ++i)
        known |= i->vendor_id == pci.id.vendor_id && i->device_id == pci.id.device_id;
    if (!known) return 1;  // the bus asks the next driver
    pci.driver = g_driver;
    pci.device.driver = &g_driver->driver;
    return g_driver->probe(g_driver, &pci);
}

void Slot::remove() { EXPECT_EQ(g_driver->remove(&pci), 0); }

void start_dpdk() {
    static const bool started = [] {
        setenv("XDG_RUNTIME_DIR", "/tmp", 0);  // NOLINT(concurrency-mt-unsafe): one thread
        g_log = open_memstream(&g_said, &g_said_octets);
        rte_openlog_stream(g_log);
        std::string prefix = "--file-prefix=nic" + std::to_string(getpid());
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

}  // namespace ulc::nic
