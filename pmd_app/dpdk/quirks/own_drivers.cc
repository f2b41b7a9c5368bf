// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/quirks/own_drivers.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "dpdk/pci_card.h"

namespace ulc::dpdk {
namespace {

/// No memory of the process is there, and it leaves 3.75 GiB that 32 bits reach.
constexpr const char* kLowAddresses = "--base-virtaddr=0x10000000";
constexpr std::array<OwnDriver, 2> kOwnDrivers{{
    {.name = "net_tulip",
     .chip = "DEC 21143",
     .plugin = "librte_net_tulip.so",
     .folder = "tulip",
     .vendor = "0x1011",
     .devices = {"0x0019", "0x0009"}},
    {.name = "net_i8255x",
     .chip = "Intel 8255x",
     .plugin = "librte_net_i8255x.so",
     .folder = "i8255x",
     .vendor = "0x8086",
     .devices = {"0x1229", "0x1209"}},
}};

std::string first_word(const std::string& path) {
    std::string word;
    std::ifstream(path) >> word;
    return word;
}

/// Returns the folder of the file from which this code was loaded: ulc-engine or libulc-engine.so.
std::string own_folder() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
        return ".";
    std::string path = info.dli_fname;
    std::array<char, 4096> target{};
    // A program is named as it was called, which may be without a folder.
    if (path.find('/') == std::string::npos) {
        const ssize_t length = readlink("/proc/self/exe", target.data(), target.size() - 1);
        if (length > 0) path.assign(target.data(), static_cast<std::size_t>(length));
    }
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

const OwnDriver* own_driver_of(const std::string& address) {
    const bool has_domain = std::count(address.begin(), address.end(), ':') == 2;
    const std::string folder =
        "/sys/bus/pci/devices/" + std::string(has_domain ? "" : "0000:") + address;
    const std::string vendor = first_word(folder + "/vendor");
    const std::string device = first_word(folder + "/device");
    for (const OwnDriver& driver : kOwnDrivers)
        if (vendor == driver.vendor &&
            std::find(driver.devices.begin(), driver.devices.end(), device) != driver.devices.end())
            return &driver;
    return nullptr;
}

std::string plugin_of(const OwnDriver& driver) {
    const std::string here = own_folder();
    // The folder of the engine's library, that of a program in a prefix, and the folder of the
    // build.
    const std::array<std::string, 4> folders{here, here + "/ulc/drivers", ULC_DRIVER_FOLDER,
                                             here + "/../drivers/" + driver.folder};
    for (const std::string& folder : folders) {
        std::string path = folder + "/" + driver.plugin;
        if (access(path.c_str(), R_OK) == 0) return path;
    }
    return "";
}

std::vector<std::string> own_driver_arguments(const std::vector<std::string>& addresses) {
    std::vector<std::string> ours;
    std::copy_if(addresses.begin(), addresses.end(), std::back_inserter(ours),
                 [](const std::string& address) { return own_driver_of(address) != nullptr; });
    if (ours.empty()) return {};
    std::vector<std::string> arguments{"--iova-mode=pa"};
    if (std::all_of(ours.begin(), ours.end(), behind_iommu))
        arguments = {"--iova-mode=va", kLowAddresses};
    for (const OwnDriver& driver : kOwnDrivers) {
        const bool used = std::any_of(ours.begin(), ours.end(), [&](const std::string& address) {
            return own_driver_of(address) == &driver;
        });
        const std::string plugin = used ? plugin_of(driver) : "";
        if (!plugin.empty()) arguments.insert(arguments.end(), {"-d", plugin});
    }
    return arguments;
}

}  // namespace ulc::dpdk
