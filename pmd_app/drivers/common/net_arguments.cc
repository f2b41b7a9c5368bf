// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/common/net_arguments.h"

#include <rte_ether.h>
#include <rte_kvargs.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/common/net_log.h"

namespace ulc::nic {
namespace {

constexpr const char* kArgMac = "mac";
constexpr const char* kArgMedia = "media";
constexpr const char* kArgThreshold = "tx_threshold";
constexpr const char* kArgRetries = "collision_retries";

template <typename T, std::size_t N>
int choose(const char* key, const char* value, const std::pair<const char*, T> (&table)[N],
           T& out) {
    for (const auto& [name, choice] : table) {
        if (std::string_view(name) != value) continue;
        out = choice;
        return 0;
    }
    std::string names;
    for (const auto& entry : table)
        names += std::string(names.empty() ? "" : ", ") + entry.first;
    NIC_LOG(ERR, "%s=%s: one of %s\n", key, value, names.c_str());
    return -EINVAL;
}

int take_argument(const char* key, const char* value, void* context) {
    auto& arguments = *static_cast<PortArguments*>(context);
    if (value == nullptr) return -EINVAL;
    if (std::string_view(key) == kArgMac) {
        rte_ether_addr address;
        if (rte_ether_unformat_addr(value, &address) != 0 ||
            !rte_is_valid_assigned_ether_addr(&address)) {
            NIC_LOG(ERR, "mac=%s: a unicast address as 02:00:00:00:00:01\n", value);
            return -EINVAL;
        }
        std::copy_n(address.addr_bytes, 6, arguments.mac.emplace().begin());
        return 0;
    }
    if (std::string_view(key) == kArgMedia) {
        static constexpr std::pair<const char*, Media> kTable[] = {{"auto", Media::kNegotiate},
                                                                   {"10half", Media::k10Half},
                                                                   {"10full", Media::k10Full},
                                                                   {"100half", Media::k100Half},
                                                                   {"100full", Media::k100Full}};
        return choose(key, value, kTable, arguments.media);
    }
    if (std::string_view(key) == kArgThreshold) {
        static constexpr std::pair<const char*, TransmitThreshold> kTable[] = {
            {"128", TransmitThreshold::k128},
            {"256", TransmitThreshold::k256},
            {"512", TransmitThreshold::k512},
            {"1024", TransmitThreshold::k1024},
            {"whole", TransmitThreshold::kWhole}};
        return choose(key, value, kTable, arguments.threshold);
    }
    char* end = nullptr;
    const unsigned long retries = std::strtoul(value, &end, 10);
    if (end == value || *end != '\0' || retries > 100) {
        NIC_LOG(ERR, "%s=%s: a number from 0 to 100\n", kArgRetries, value);
        return -EINVAL;
    }
    arguments.collision_retries = static_cast<std::uint8_t>(retries);
    return 0;
}

}  // namespace

int parse_arguments(const rte_devargs* given, PortArguments& arguments) {
    if (given == nullptr || given->args == nullptr || *given->args == '\0') return 0;
    static const char* const kKeys[] = {kArgMac, kArgMedia, kArgThreshold, kArgRetries, nullptr};
    rte_kvargs* list = rte_kvargs_parse(given->args, kKeys);
    if (list == nullptr) {
        NIC_LOG(ERR, "'%s': known are mac, media, tx_threshold and collision_retries\n",
                given->args);
        return -EINVAL;
    }
    const int error = rte_kvargs_process(list, nullptr, take_argument, &arguments);
    rte_kvargs_free(list);
    return error < 0 ? -EINVAL : 0;
}

}  // namespace ulc::nic
