// SPDX-License-Identifier: BSD-3-Clause
// The plug-in of DPDK for the 8255x family: the chip's part of a port, and its registration.
#include "drivers/i8255x/net_i8255x.h"

#include <array>
#include <span>

#include "drivers/common/net_ethdev.h"
#include "drivers/i8255x/eeprom.h"

namespace ulc::nic {

int g_log_type = 0;
const char* const g_driver_name = "net_i8255x";

}  // namespace ulc::nic

namespace ulc::i8255x {
namespace {

constexpr std::uint16_t kVendorIntel = 0x8086;
constexpr std::uint16_t kDevice82557 = 0x1229;    // also 82558, 82559, 82550, 82551
constexpr std::uint16_t kDevice82559Er = 0x1209;  // also 82551IT

constexpr std::array<rte_pci_id, 3> kIds{{{RTE_PCI_DEVICE(kVendorIntel, kDevice82557)},
                                          {RTE_PCI_DEVICE(kVendorIntel, kDevice82559Er)},
                                          {}}};

constinit rte_pci_driver g_driver = nic::make_driver<Adapter>(kIds.data());

}  // namespace

std::unique_ptr<TxRing> Adapter::make_tx(nic::Memory memory, std::uint16_t size) {
    return std::make_unique<TxRing>(
        std::span(static_cast<CommandBlock*>(memory.at), std::size_t{size} + 1), memory.bus);
}

std::unique_ptr<RxRing> Adapter::make_rx(nic::Memory /*memory*/, std::uint16_t size,
                                         std::uint32_t buffer_octets) {
    return std::make_unique<RxRing>(size, buffer_octets);
}

Fault Adapter::probe(const nic::PortArguments& arguments, MacAddress& own) noexcept {
    EepromImage image;
    Fault address = read_eeprom(bus_, image);
    if (address == Fault::kGone) return address;
    if (address == Fault::kNone) address = parse_address(image, own);
    if (arguments.mac)
        own = *arguments.mac;
    else if (address != Fault::kNone)
        return address;
    if (const Fault fault = reset(); fault != Fault::kNone) return fault;
    threshold_ = arguments.threshold;
    return chip_.set_up_phy(arguments.media);
}

Fault Adapter::attach(nic::Memory /*tx*/, nic::Memory /*rx*/, nic::Memory scratch) noexcept {
    return chip_.set_up(*static_cast<Statistics*>(scratch.at), scratch.bus);
}

Fault Adapter::start_transmit(TxRing& ring) noexcept {
    ring.set_threshold(threshold_units(threshold_));
    return chip_.start_transmit(ring);
}

Fault Adapter::apply(const Link& link) noexcept {
    if (!link.up || link.full_duplex == line_.full_duplex) return Fault::kNone;
    line_.full_duplex = link.full_duplex;
    needs_filter_ = true;
    return Fault::kNone;
}

/// The threshold is part of each block: no stop.
Fault Adapter::raise_threshold(TxRing& ring) noexcept {
    if (threshold_ != TransmitThreshold::kWhole)
        threshold_ = static_cast<TransmitThreshold>(static_cast<int>(threshold_) + 1);
    ring.set_threshold(threshold_units(threshold_));
    return Fault::kNone;
}

bool Adapter::post_filter(TxRing& ring, const MacAddress& own,
                          const std::vector<MacAddress>& multicasts, Reception reception) noexcept {
    const Filter filter{.own = own, .multicasts = multicasts, .reception = reception};
    if (!i8255x::post_filter(ring, filter, line_)) return false;
    needs_filter_ = false;
    return true;
}

std::uint64_t Adapter::missed_frames() const noexcept {
    return chip_.counters().rx_no_resources + chip_.counters().rx_overruns;
}

std::uint64_t Adapter::bad_frames() const noexcept {
    const ChipCounters& c = chip_.counters();
    return c.rx_crc + c.rx_alignment + c.rx_collisions + c.rx_short;
}

std::uint64_t Adapter::lost_frames(std::uint64_t reported) const noexcept {
    const std::uint64_t lost =
        chip_.counters().tx_max_collisions + chip_.counters().tx_late_collisions;
    return lost > reported ? lost - reported : 0;
}

}  // namespace ulc::i8255x

RTE_INIT(ulc_i8255x_log) {
    ulc::nic::g_log_type = rte_log_register_type_and_pick_level("pmd.net.i8255x", RTE_LOG_NOTICE);
}
RTE_PMD_REGISTER_PCI(net_i8255x, ulc::i8255x::g_driver);
RTE_PMD_REGISTER_KMOD_DEP(net_i8255x, "* uio_pci_generic | vfio-pci");
RTE_PMD_REGISTER_PARAM_STRING(net_i8255x, NIC_ARGUMENTS);
