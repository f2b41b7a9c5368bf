// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/pci_card.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

namespace ulc::dpdk {
namespace {

std::string folder_of(const std::string& address) {
    const bool has_domain = std::count(address.begin(), address.end(), ':') == 2;
    return "/sys/bus/pci/devices/" + std::string(has_domain ? "" : "0000:") + address;
}

/// Returns the last part of a link's target; empty without one.
std::string link_name(const std::string& path) {
    std::error_code none;
    return std::filesystem::read_symlink(path, none).filename().string();
}

std::string bind_command(const std::string& folder, const std::string& address) {
    const std::string driver =
        link_name(folder + "/iommu_group").empty() ? "uio_pci_generic" : "vfio-pci";
    return "sudo modprobe " + driver + " && sudo dpdk-devbind.py -b " + driver + " " + address;
}

}  // namespace

Err claim_card(const std::string& address, std::string& why) {
    static std::set<std::string> held;
    const std::string folder = folder_of(address);
    if (held.contains(folder)) return Err::kOk;
    const int fd = open((folder + "/config").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        why = "no PCI device " + address + "; 'ulc doctor' shows the NICs";
        return Err::kInvalid;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        why = address +
              " is in use by another engine; attach to that one, end it, or name another NIC "
              "('ulc doctor' shows them)";
        return Err::kInvalid;
    }
    held.insert(folder);  // fd stays open: the kernel releases the card when this process ends
    return Err::kOk;
}

bool behind_iommu(const std::string& address) {
    const std::string folder = folder_of(address);
    return link_name(folder + "/driver") == "vfio-pci" &&
           !link_name(folder + "/iommu_group").empty();
}

std::string why_no_port(const std::string& address) {
    const std::string folder = folder_of(address);
    const std::string driver = link_name(folder + "/driver");
    constexpr std::array kForUsers{"vfio-pci", "uio_pci_generic", "igb_uio"};
    if (driver.empty()) return "it is bound to no driver; run: " + bind_command(folder, address);
    if (std::find(kForUsers.begin(), kForUsers.end(), driver) != kForUsers.end())
        return "it is bound to " + driver +
               ", but DPDK could not open it; is there a driver for it, and may this user? run "
               "'ulc doctor'";
    if (driver == "mlx5_core")
        return "leave it bound to mlx5_core, and install DPDK's driver for it "
               "(librte-net-mlx5-23); "
               "or use verbs,dev=NAME ('ulc doctor' shows the name)";
    if (driver == "mlx4_core")
        return "leave it bound to mlx4_core, and use verbs,dev=NAME ('ulc doctor' shows the name)";
    return "it still belongs to the kernel's driver " + driver +
           "; if no remote login uses it, run: " + bind_command(folder, address) +
           "; or share it with the kernel: net_af_packet,iface=NAME";
}

}  // namespace ulc::dpdk
