#include "verbs/device.h"

#include <charconv>

namespace ulc::verbs {
namespace {

constexpr std::string_view kName = "verbs";
constexpr std::string_view kUsage = "write verbs,dev=NAME[,port=N][,gid=INDEX][,pkey=KEY]";
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
    return "has no argument '" + std::string(key) + "'; " + std::string(kUsage);
}

}  // namespace

bool is_verbs(std::string_view device) noexcept {
    return device.substr(0, device.find(',')) == kName;
}

Err parse_device(std::string_view device, DeviceSpec& out, std::string& why) {
    DeviceSpec spec;
    std::size_t comma = device.find(',');
    while (comma != std::string_view::npos) {
        device.remove_prefix(comma + 1);
        comma = device.find(',');
        const std::string_view argument = device.substr(0, comma);
        const std::size_t equals = argument.find('=');
        const std::string_view value =
            equals == std::string_view::npos ? "" : argument.substr(equals + 1);
        const std::string wrong = set_argument(argument.substr(0, equals), value, spec);
        if (!wrong.empty()) {
            why = "verbs device " + wrong;
            return Err::kInvalid;
        }
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
