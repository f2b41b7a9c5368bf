// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/quirks/parked.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace ulc::dpdk {
namespace {

struct Parked {
    std::string arguments;
    std::string socket;
    std::uint16_t ethdev_id = 0;
};

/// Devices are the process's, so this is too; a forked child must leave the sockets alone.
struct ParkingLot {
    std::vector<Parked> devices;
    pid_t owner = 0;
};

ParkingLot& parking_lot() {
    static auto* const lot = new ParkingLot;  // never destroyed: used at exit
    return *lot;
}

}  // namespace

void park_device(const DeviceSpec& spec, std::uint16_t ethdev_id) {
    ParkingLot& lot = parking_lot();
    if (lot.owner == 0) std::atexit(remove_parked_sockets);
    lot.owner = getpid();
    lot.devices.push_back(
        {spec.joined_arguments(), spec.argument("socket").value_or(""), ethdev_id});
}

std::optional<std::uint16_t> take_parked_device(const DeviceSpec& spec) {
    auto& devices = parking_lot().devices;
    const std::string arguments = spec.joined_arguments();
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const Parked& parked) {
        return parked.arguments == arguments;
    });
    if (found == devices.end()) return std::nullopt;
    const std::uint16_t id = found->ethdev_id;
    devices.erase(found);
    return id;
}

void remove_parked_sockets() {
    const ParkingLot& lot = parking_lot();
    if (lot.owner != getpid()) return;
    for (const Parked& parked : lot.devices) {
        if (!parked.socket.empty()) unlink(parked.socket.c_str());
    }
}

}  // namespace ulc::dpdk
