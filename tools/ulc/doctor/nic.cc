// SPDX-License-Identifier: BSD-3-Clause
// This file checks NICs: their drivers, what DPDK lacks to take one, the kernel's interfaces and
// its limits for sockets.
#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "tools/ulc/doctor/doctor.h"
#include "tools/ulc/doctor/files.h"

namespace ulc::tools {
namespace {

constexpr long long kMtuUsual = 1500;
constexpr long long kUdpReceive = 8LL << 20;  ///< space for which udp/udp_socket.cc asks

bool is_ethernet(const std::string& device) {
    return first_line(device + "/class").starts_with("0x0200");
}

bool is_user_space(const std::string& driver) {
    return driver == "vfio-pci" || driver == "uio_pci_generic" || driver == "igb_uio";
}

/// Returns true for drivers that keep the kernel's interface while a process has queues besides.
bool is_bifurcated(const std::string& driver) {
    return driver == "mlx4_core" || driver == "mlx5_core";
}

bool has_iommu(const std::string& root) {
    return !names_in(root + "/sys/kernel/iommu_groups").empty();
}

/// A chip that DPDK has no driver for, and this project has.
struct OwnChip {
    const char* identity;
    const char* words;
};
constexpr std::array<OwnChip, 4> kOwnChips{{
    {"1011:0019", "DEC 21143, driver net_tulip"},
    {"1011:0009", "DEC 21140A, driver net_tulip"},
    {"8086:1229", "Intel 8255x, driver net_i8255x"},
    {"8086:1209", "Intel 8255x, driver net_i8255x"},
}};

/// Returns the PCI id, and for the chips of this project's drivers their name.
std::string identity_of(const std::string& device) {
    auto id = fmt::format("{}:{}", first_line(device + "/vendor").substr(2),
                          first_line(device + "/device").substr(2));
    for (const OwnChip& chip : kOwnChips)
        if (id == chip.identity) return fmt::format("{} ({})", id, chip.words);
    return id;
}

/// Network interfaces of a PCI device; virtio has one level more.
std::vector<std::string> interfaces_of(const std::string& device) {
    auto found = names_in(device + "/net");
    for (const auto& name : names_in(device)) {
        if (!name.starts_with("virtio")) continue;
        for (const auto& inner : names_in(fmt::format("{}/{}/net", device, name)))
            found.push_back(inner);
    }
    return found;
}

/// The interface with the default route, "" if none.
std::string default_interface(const std::string& root) {
    std::istringstream table(whole_file(root + "/proc/net/route"));
    std::string line;
    while (std::getline(table, line)) {
        std::istringstream fields(line);
        std::string interface;
        std::string destination;
        fields >> interface >> destination;
        if (destination == "00000000") return interface;
    }
    return "";
}

std::string bind_command(const std::string& root, const std::string& address) {
    const char* driver = has_iommu(root) ? "vfio-pci" : "uio_pci_generic";
    return fmt::format("sudo modprobe {0} && sudo dpdk-devbind.py -b {0} {1}", driver, address);
}

/// Such a NIC is not to be bound to another driver: verbs, and DPDK's own driver, use it as it is.
/// DPDK's driver for mlx4 cannot choose frames by EtherType.
void check_bifurcated(const std::string& device, const std::string& driver,
                      const std::string& address, const std::string& topic, const std::string& what,
                      Findings& out) {
    const auto ports = names_in(device + "/infiniband");
    const bool dpdk_too = driver == "mlx5_core";
    if (ports.empty()) {
        out.push_back({Level::kWarn, topic, what + ", which has no RDMA device yet",
                       fmt::format("sudo modprobe {}_ib", driver.substr(0, driver.find('_')))});
        return;
    }
    out.push_back({Level::kOk, topic,
                   fmt::format("{}, which ulc-engine shares with the kernel: leave it bound, and "
                               "use --device verbs,dev={}{}",
                               what, ports[0],
                               dpdk_too ? ", or --device " + address + " by DPDK's driver" : ""),
                   ""});
}

void check_nic(const std::string& root, const std::string& address, Findings& out) {
    const std::string device = root + "/sys/bus/pci/devices/" + address;
    const std::string driver = link_name(device + "/driver");
    const std::string identity = identity_of(device);
    const std::string topic = "nic " + address;
    if (is_user_space(driver)) {
        out.push_back({Level::kOk, topic,
                       fmt::format("{} is bound to {}: ready for ulc-engine --device {}", identity,
                                   driver, address),
                       ""});
        const std::string group = link_name(device + "/iommu_group");
        const std::string node = root + "/dev/vfio/" + group;
        if (driver == "vfio-pci" && !group.empty() && ::access(node.c_str(), R_OK | W_OK) != 0) {
            out.push_back({Level::kFail, topic, "this user may not open " + node,
                           fmt::format("sudo chown $USER {}", node)});
        }
        return;
    }
    const auto interfaces = interfaces_of(device);
    const std::string interface = interfaces.empty() ? "" : interfaces[0];
    if (is_bifurcated(driver)) {
        const std::string what = fmt::format("{} is with the kernel's driver {}{}", identity,
                                             driver, interface.empty() ? "" : " as " + interface);
        check_bifurcated(device, driver, address, topic, what, out);
    } else if (driver.empty()) {
        out.push_back(
            {Level::kWarn, topic, identity + " has no driver", bind_command(root, address)});
    } else if (!interface.empty() && interface == default_interface(root)) {
        out.push_back(
            {Level::kWarn, topic,
             fmt::format("{} is {} ({}), which carries the default route: binding it would cut "
                         "this machine off",
                         identity, interface, driver),
             fmt::format("ulc-engine --device net_af_packet,iface={}   # shares it with the kernel",
                         interface)});
    } else {
        out.push_back({Level::kWarn, topic,
                       fmt::format("{} is with the kernel's driver {}{}", identity, driver,
                                   interface.empty() ? "" : " as " + interface),
                       bind_command(root, address)});
    }
}

}  // namespace

void check_iommu(const std::string& root, Findings& out) {
    if (has_iommu(root)) {
        out.push_back({Level::kOk, "IOMMU", "on: vfio-pci can keep NICs to their memory", ""});
        return;
    }
    const bool intel = whole_file(root + "/proc/cpuinfo").find("GenuineIntel") != std::string::npos;
    out.push_back({Level::kWarn, "IOMMU",
                   "off or absent: vfio-pci cannot be used, uio_pci_generic can (as root; the NIC "
                   "may then write anywhere)",
                   fmt::format("sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{}iommu=pt /' "
                               "/etc/default/grub && sudo update-grub   # then reboot",
                               intel ? "intel_iommu=on " : "")});
}

void check_nics(const std::string& root, Findings& out) {
    const std::string devices = root + "/sys/bus/pci/devices";
    std::size_t nics = 0;
    for (const auto& address : names_in(devices)) {
        if (!is_ethernet(fmt::format("{}/{}", devices, address))) continue;
        check_nic(root, address, out);
        ++nics;
    }
    if (nics == 0) {
        out.push_back({Level::kWarn, "nic",
                       "no Ethernet NIC on PCI; wires of this machine alone (shared memory, memif) "
                       "and kernel "
                       "interfaces (af_packet) remain",
                       ""});
    }
}

void check_interfaces(const std::string& root, Findings& out) {
    const std::string folder = root + "/sys/class/net";
    constexpr long long kTypeEthernet = 1;
    for (const auto& name : names_in(folder)) {
        const std::string path = fmt::format("{}/{}", folder, name);
        const bool is_idle_virtual =
            !std::filesystem::exists(path + "/device") && first_line(path + "/operstate") == "down";
        if (number_in(path + "/type", 0) != kTypeEthernet || is_idle_virtual) continue;
        const auto mtu = number_in(path + "/mtu", 0);
        const std::string state = first_line(path + "/operstate");
        const std::string topic = "interface " + name;
        if (state == "down") {
            out.push_back({Level::kWarn, topic, fmt::format("is down (MTU {})", mtu),
                           fmt::format("sudo ip link set {} up", name)});
        } else {
            // No advice to raise it: the path behind the interface may carry no more.
            const std::string small =
                mtu < kMtuUsual ? fmt::format(
                                      " (below the usual {}, which is right where the path "
                                      "carries no more; all nodes of a net need the same)",
                                      kMtuUsual)
                                : "";
            out.push_back({Level::kOk, topic, fmt::format("{}, MTU {}{}", state, mtu, small), ""});
        }
    }
}

void check_udp(const std::string& root, Findings& out) {
    const long long most = number_in(root + "/proc/sys/net/core/rmem_max", 0);
    if (most == 0) return;
    if (most >= kUdpReceive) {
        out.push_back({Level::kOk, "UDP", "sockets get all the space that engines ask for", ""});
        return;
    }
    out.push_back({Level::kWarn, "UDP",
                   fmt::format("a socket gets {} KiB of the {} that an engine asks for; bursts of "
                               "several nodes may overflow it",
                               most / 1024, kUdpReceive / 1024),
                   fmt::format("echo net.core.rmem_max={} | sudo tee /etc/sysctl.d/62-ulc.conf && "
                               "sudo sysctl --system",
                               kUdpReceive)});
}

}  // namespace ulc::tools
