// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/kernel/isolation.h"

#include <array>
#include <cstdio>

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_flow.h>

#include "dpdk/log.h"

namespace ulc::dpdk {
namespace {

Err refused(const DeviceSpec& spec, const std::string& what, const rte_flow_error& error,
            std::string& why) {
    const char* cause = error.message != nullptr ? error.message : rte_strerror(rte_errno);
    const std::string log = take_recent_log();
    why = spec.name + ": its driver cannot " + what + ": " + cause;
    if (!log.empty()) why += " (" + log + ")";
    why +=
        "; other ways to share it with the kernel are verbs,dev=NAME and net_af_packet,iface=NAME; "
        "'ulc doctor' shows the names";
    return Err::kInvalid;
}

}  // namespace

bool is_bifurcated(const DeviceSpec& spec, const std::string& driver) {
    constexpr std::array kDrivers{"net_mlx4", "net_mlx5", "mlx5_pci", "mlx5_auxiliary"};
    for (const char* name : kDrivers)
        if (driver == name) return true;
    return driver == "net_tap" && spec.argument("remote");
}

Err leave_frames_with_kernel(std::uint16_t ethdev, const DeviceSpec& spec, std::string& why) {
    rte_flow_error error{};
    if (rte_flow_isolate(ethdev, 1, &error) == 0) return Err::kOk;
    return refused(spec, "leave the frames of IP with the kernel", error, why);
}

Err receive_ether_type(std::uint16_t ethdev, const DeviceSpec& spec, std::uint16_t ether_type,
                       std::string& why) {
    rte_flow_attr attributes{};
    attributes.ingress = 1;
    rte_flow_item_eth type{};
    type.hdr.ether_type = rte_cpu_to_be_16(ether_type);
    rte_flow_item_eth mask{};
    mask.hdr.ether_type = UINT16_MAX;
    std::array<rte_flow_item, 2> pattern{};
    pattern[0].type = RTE_FLOW_ITEM_TYPE_ETH;
    pattern[0].spec = &type;
    pattern[0].mask = &mask;
    pattern[1].type = RTE_FLOW_ITEM_TYPE_END;
    const rte_flow_action_queue queue{.index = 0};
    std::array<rte_flow_action, 2> actions{};
    actions[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
    actions[0].conf = &queue;
    actions[1].type = RTE_FLOW_ACTION_TYPE_END;
    rte_flow_error error{};
    if (rte_flow_create(ethdev, &attributes, pattern.data(), actions.data(), &error) != nullptr)
        return Err::kOk;
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "0x%04X", ether_type);
    return refused(spec, std::string("choose frames by EtherType ") + text.data(), error, why);
}

}  // namespace ulc::dpdk
