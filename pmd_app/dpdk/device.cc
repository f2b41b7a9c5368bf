// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/device.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>

namespace ulc::dpdk {
namespace {

constexpr std::uint32_t kPlainBufferOctets =
    2048;  ///< the default of memif, af_packet and most NICs
constexpr std::uint32_t kEthernetOctets = 14 + 4;  ///< header and one VLAN tag
constexpr std::uint32_t kPacketRingOctets = 96;  ///< af_packet: tpacket2 header, address, alignment
constexpr std::uint32_t kPageOctets = 4096;

bool all_hex(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(),
                                        [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// af_packet's ring frame: a power of two that holds the frame behind its header.
std::uint32_t ring_frame_octets(std::uint16_t mtu) {
    const std::uint32_t need = mtu + kEthernetOctets + kPacketRingOctets;
    return std::max(kPlainBufferOctets, std::bit_ceil(need));
}

std::uint32_t memif_buffer_octets(std::uint16_t mtu) {
    const std::uint32_t need = mtu + kEthernetOctets;
    return std::max(kPlainBufferOctets, (need + 63) / 64 * 64);
}

/// Bytes by which memif's own buffers exceed those of the pool. From DPDK 24.11 on, its receive
/// function copies as many bytes as the peer says unless the pool's buffers are smaller than bsize.
constexpr std::uint32_t kMemifExcess = 64;

DeviceKind kind_of(std::string_view name) {
    if (name.starts_with("net_memif")) return DeviceKind::kMemif;
    if (name.starts_with("net_af_packet") || name.starts_with("eth_af_packet")) {
        return DeviceKind::kAfPacket;
    }
    return DeviceKind::kOther;
}

}  // namespace

std::optional<std::string> DeviceSpec::argument(std::string_view key) const {
    for (const std::string& argument : arguments) {
        if (argument.starts_with(key) && argument.size() > key.size() &&
            argument[key.size()] == '=') {
            return argument.substr(key.size() + 1);
        }
    }
    return std::nullopt;
}

void DeviceSpec::add_unless_given(std::string_view key, const std::string& value) {
    if (!argument(key)) arguments.push_back(std::string(key) + "=" + value);
}

std::string DeviceSpec::joined_arguments() const {
    std::string joined;
    for (const std::string& argument : arguments) {
        if (!joined.empty()) joined += ',';
        joined += argument;
    }
    return joined;
}

bool is_pci_address(std::string_view device) {
    if (std::count(device.begin(), device.end(), ':') == 2) {
        const std::size_t colon = device.find(':');
        if (!all_hex(device.substr(0, colon))) return false;
        device.remove_prefix(colon + 1);
    }
    // bb:dd.f
    return device.size() == 7 && device[2] == ':' && device[5] == '.' &&
           all_hex(device.substr(0, 2)) && all_hex(device.substr(3, 2)) &&
           all_hex(device.substr(6, 1));
}

std::optional<DeviceSpec> parse_device(std::string_view device, unsigned number, std::string& why) {
    DeviceSpec spec;
    std::string_view rest = device;
    const std::string_view head = rest.substr(0, rest.find(','));
    if (is_pci_address(head)) {
        spec.kind = DeviceKind::kPci;
        spec.name = head.size() == 7 ? "0000:" + std::string(head) : std::string(head);
    } else if (head.starts_with("net_") || head.starts_with("eth_")) {
        spec.name = head;
        spec.kind = kind_of(spec.name);
        while (std::isdigit(static_cast<unsigned char>(spec.name.back())) != 0)
            spec.name.pop_back();
        spec.name += std::to_string(number);
    } else {
        why = "device '" + std::string(device) +
              "' is neither a PCI address (0000:03:00.0; see dpdk-devbind.py --status) nor a DPDK "
              "virtual "
              "device (net_memif,... net_af_packet,iface=eth0 net_tap,...)";
        return std::nullopt;
    }
    while (rest.find(',') != std::string_view::npos) {
        rest.remove_prefix(rest.find(',') + 1);
        const std::string_view argument = rest.substr(0, rest.find(','));
        if (!argument.empty()) spec.arguments.emplace_back(argument);
    }
    // The driver's own default is an abstract socket, which every local user may connect to.
    if (spec.kind == DeviceKind::kMemif) spec.add_unless_given("socket-abstract", "no");
    return spec;
}

void size_device(DeviceSpec& spec, std::uint16_t mtu) {
    if (spec.kind == DeviceKind::kMemif) {
        spec.add_unless_given("bsize", std::to_string(memif_buffer_octets(mtu) + kMemifExcess));
        spec.add_unless_given("rsize", "8");
    } else if (spec.kind == DeviceKind::kAfPacket) {
        const std::uint32_t frame = ring_frame_octets(mtu);
        spec.add_unless_given("framesz", std::to_string(frame));
        spec.add_unless_given("blocksz", std::to_string(std::max(frame, kPageOctets)));
    }
}

std::uint32_t receive_buffer_octets(const DeviceSpec& spec, std::uint16_t mtu) {
    switch (spec.kind) {
        case DeviceKind::kMemif: {
            const auto given = spec.argument("bsize");
            const auto octets = given ? std::strtoul(given->c_str(), nullptr, 10) : 0;
            const auto bounded = std::max<std::uint64_t>(octets, kMemifExcess) - kMemifExcess;
            return std::max(memif_buffer_octets(mtu), static_cast<std::uint32_t>(bounded));
        }
        case DeviceKind::kAfPacket: {
            const auto given = spec.argument("framesz");
            const auto octets = given ? std::strtoul(given->c_str(), nullptr, 10) : 0;
            return std::max<std::uint32_t>(ring_frame_octets(mtu),
                                           static_cast<std::uint32_t>(octets));
        }
        case DeviceKind::kPci:
        case DeviceKind::kOther:
            break;
    }
    return std::max(kPlainBufferOctets, (mtu + kEthernetOctets + 63) / 64 * 64);
}

}  // namespace ulc::dpdk
