// SPDX-License-Identifier: BSD-3-Clause
// Device strings: the user's text for a port, and the text that DPDK gets for it. Pure.
//
//   0000:03:00.0                                   a NIC bound with dpdk-devbind
//   0000:03:00.0,media=10half                      the same, with arguments of its driver
//   net_memif,role=client,socket=/run/a.sock       any DPDK virtual device; its number is ours
//   net_af_packet0,iface=eth0
//
// Sizes that depend on the MTU are added unless the user gave them: memif bsize, af_packet framesz
// and blocksz (their defaults of 2048 bytes lose jumbo frames silently); and memif rsize, 2^8
// descriptors, so that a ring's buffers stay in the cache. With the default of 2^10 a bare DPDK
// stream of 64 bytes is three times slower (ulc-bench-dpdk, memif/stream/64), and each of the first
// thousand frames causes a page fault.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ulc::dpdk {

enum class DeviceKind : std::uint8_t {
    kPci,
    kMemif,
    kAfPacket,
    kOther,  ///< any other virtual device
};

struct DeviceSpec {
    DeviceKind kind = DeviceKind::kOther;
    std::string name;                    ///< "net_memif0" or the PCI address
    std::vector<std::string> arguments;  ///< "key=value", in the user's order

    [[nodiscard]] std::optional<std::string> argument(std::string_view key) const;
    void add_unless_given(std::string_view key, const std::string& value);
    /// "key=value,key=value"
    [[nodiscard]] std::string joined_arguments() const;
};

/// "03:00.0" or "0000:03:00.0".
[[nodiscard]] bool is_pci_address(std::string_view device);

/// Parses a device string. Returns nothing if it is not understood; `why` then says what would be.
/// `number`: that of a virtual device in this process. A number that the user wrote is ignored,
/// since two ports may have been given the same.
[[nodiscard]] std::optional<DeviceSpec> parse_device(std::string_view device, unsigned number,
                                                     std::string& why);

/// Adds the arguments that the MTU requires. `mtu`: bytes after the Ethernet header.
void size_device(DeviceSpec& spec, std::uint16_t mtu);

/// Returns the bytes of frame data that a receive buffer of this device must hold.
[[nodiscard]] std::uint32_t receive_buffer_octets(const DeviceSpec& spec, std::uint16_t mtu);

}  // namespace ulc::dpdk
