// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/device.h"

#include <charconv>

#include "port/device_arguments.h"

namespace ulc::verbs {
namespace {

constexpr std::string_view kName = "verbs";
constexpr std::string_view kUsage =
    "write verbs,dev=NAME[,port=N][,gid=INDEX][,pkey=KEY][,join=cm]";
constexpr std::size_t kNameMax = 63;  // IBV_SYSFS_NAME_MAX without its terminator

/// Decimal, or hexadecimal after 0x.
std::optional<std::uint32_t> number(std::string_view text, std::uint32_t least,
                                    std::uint32_t most) {
    const int base = text.starts_with("0x") ? 16 : 10;
    if (base == 16) text.remove_prefix(2);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    if (value < least || value > most) return std::nullopt;
    return value;
}

/// Sets one argument. Returns why not; empty: it is set.
std::string set_argument(std::string_view key, std::string_view value, DeviceSpec& spec) {
    const std::string given = std::string(key) + "=" + std::string(value);
    if (key == "dev") {
        spec.name = value;
        if (!value.empty() && value.size() <= kNameMax) return "";
        return "needs dev=NAME, one of those that 'ibv_devices' shows";
    }
    if (key == "port") {
        const auto port = number(value, 1, 254);
        if (port) spec.port = static_cast<std::uint8_t>(*port);
        return port ? "" : given + " is not a port number from 1 to 254";
    }
    if (key == "gid") {
        const auto index = number(value, 0, 255);
        if (index) spec.gid = static_cast<std::uint16_t>(*index);
        return index ? "" : given + " is not an index from 0 to 255 of the port's GID table";
    }
    if (key == "pkey") {
        const auto p_key = number(value, 1, 0xffff);
        if (p_key) spec.p_key = static_cast<std::uint16_t>(*p_key);
        return p_key ? "" : given + " is not a partition key, as in pkey=0x8001";
    }
    if (key == "join") {
        spec.join_by_manager = value == "cm";
        return value == "cm" ? "" : given + " is not join=cm; leave it out, or see ulc-engine(8)";
    }
    return "has no argument '" + std::string(key) + "'; " + std::string(kUsage);
}

}  // namespace

bool is_verbs(std::string_view device) noexcept {
    return device.substr(0, device.find(',')) == kName;
}

Err parse_device(std::string_view device, DeviceSpec& out, std::string& why) {
    DeviceSpec spec;
    const auto set = [&](auto key, auto value) { return set_argument(key, value, spec); };
    if (const std::string wrong = port::set_arguments(device, set); !wrong.empty()) {
        why = "verbs device " + wrong;
        return Err::kInvalid;
    }
    if (spec.name.empty()) {
        why = "verbs device needs dev=NAME, one of those that 'ibv_devices' shows; " +
              std::string(kUsage);
        return Err::kInvalid;
    }
    out = std::move(spec);
    return Err::kOk;
}

}  // namespace ulc::verbs
