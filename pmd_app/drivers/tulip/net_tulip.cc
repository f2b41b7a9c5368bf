// SPDX-License-Identifier: BSD-3-Clause
// The plug-in of DPDK for the 21143 and 21140A: the chip's part of a port, and its registration.
#include "drivers/tulip/net_tulip.h"

#include <array>
#include <span>

#include "drivers/common/net_ethdev.h"
#include "drivers/tulip/srom.h"

namespace ulc::nic {

int g_log_type = 0;
const char* const g_driver_name = "net_tulip";

}  // namespace ulc::nic

namespace ulc::tulip {
namespace {

constexpr std::array<rte_pci_id, 3> kIds{
    {{RTE_PCI_DEVICE(kVendorDec, kDevice21143)}, {RTE_PCI_DEVICE(kVendorDec, kDevice21140)}, {}}};

constinit rte_pci_driver g_driver = nic::make_driver<Adapter>(kIds.data());

}  // namespace

std::unique_ptr<TxRing> Adapter::make_tx(nic::Memory memory, std::uint16_t size) {
    return std::make_unique<TxRing>(std::span(static_cast<Descriptor*>(memory.at), size));
}

std::unique_ptr<RxRing> Adapter::make_rx(nic::Memory memory, std::uint16_t size,
                                         std::uint32_t buffer_octets) {
    return std::make_unique<RxRing>(std::span(static_cast<Descriptor*>(memory.at), size),
                                    buffer_octets);
}

/// The ROM first: it says how the PHY is switched on, and answers also before a reset.
Fault Adapter::probe(const nic::PortArguments& arguments, MacAddress& own) noexcept {
    RomImage image{};
    const Fault rom = read_rom(bus_, image);
    if (rom == Fault::kGone) return rom;
    Fault address = rom;
    if (rom == Fault::kNone) {
        address = parse_address(image, own);
        if (address == Fault::kNone) sequence_ = parse_port_sequence(image, model_);
    }
    if (arguments.mac)
        own = *arguments.mac;
    else if (address != Fault::kNone)
        return address;
    if (const Fault fault = reset(); fault != Fault::kNone) return fault;
    chip_.set_threshold(arguments.threshold);
    return chip_.set_up_phy(arguments.media);
}

Fault Adapter::attach(nic::Memory tx, nic::Memory rx, nic::Memory scratch) noexcept {
    setup_frame_ = scratch.at;
    setup_bus_ = scratch.bus;
    chip_.set_lists(tx.bus, rx.bus);
    return Fault::kNone;
}

/// The first setup frame must be read before anything is received (HRM, "Setup frame").
Fault Adapter::start_transmit(TxRing& /*ring*/) noexcept {
    chip_.start_transmit();
    chip_.demand_transmit();
    return Fault::kNone;
}

Fault Adapter::start_receive(RxRing& /*ring*/) noexcept {
    chip_.start_receive();
    chip_.demand_receive();
    return Fault::kNone;
}

bool Adapter::post_filter(TxRing& ring, const MacAddress& own,
                          const std::vector<MacAddress>& multicasts,
                          Reception /*reception*/) noexcept {
    const std::span<std::byte, kSetupFrameOctets> frame(static_cast<std::byte*>(setup_frame_),
                                                        kSetupFrameOctets);
    const FilterKind kind = build_setup_frame(own, multicasts, frame);
    return ring.post_setup(setup_bus_, kind == FilterKind::kHash);
}

/// Reading CSR8 or CSR9 changes something.
std::uint32_t Adapter::register_at(std::uint32_t index) noexcept {
    const auto csr = static_cast<Csr>(index);
    return csr == Csr::kMissedFrames || csr == Csr::kRomAndMii ? 0 : bus_.read(csr);
}

}  // namespace ulc::tulip

RTE_INIT(ulc_tulip_log) {
    ulc::nic::g_log_type = rte_log_register_type_and_pick_level("pmd.net.tulip", RTE_LOG_NOTICE);
}
RTE_PMD_REGISTER_PCI(net_tulip, ulc::tulip::g_driver);
RTE_PMD_REGISTER_KMOD_DEP(net_tulip, "* uio_pci_generic | vfio-pci");
RTE_PMD_REGISTER_PARAM_STRING(net_tulip, NIC_ARGUMENTS);
