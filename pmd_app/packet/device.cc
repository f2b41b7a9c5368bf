// SPDX-License-Identifier: BSD-3-Clause
#include "packet/device.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "port/device_arguments.h"

namespace ulc::packet {
namespace {

constexpr std::string_view kName = "net_af_packet";
constexpr std::uint32_t kReceiveFramesMin = 64;
constexpr std::uint32_t kReceiveFramesMax = 65536;
constexpr std::size_t kInterfaceMax = 15;  // IFNAMSIZ without its terminator
constexpr std::string_view kUsage =
    "write net_af_packet,iface=NAME[,framecnt=SLOTS][,qdisc_bypass=0|1]";

std::optional<std::uint32_t> number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Sets one argument. Returns why not; empty: it is set.
std::string set_argument(std::string_view key, std::string_view value, DeviceSpec& spec) {
    const auto given = number(value);
    if (key == "iface") {
        spec.interface = value;
        if (!value.empty() && value.size() <= kInterfaceMax) return "";
        return "needs iface=NAME, one of those that 'ip link' shows, at most " +
               std::to_string(kInterfaceMax) + " characters";
    }
    if (key == "framecnt") {
        if (given && *given >= kReceiveFramesMin && *given <= kReceiveFramesMax) {
            spec.receive_frames = *given;
            return "";
        }
        return "framecnt=" + std::string(value) + " is not a number from " +
               std::to_string(kReceiveFramesMin) + " to " + std::to_string(kReceiveFramesMax);
    }
    if (key == "qdisc_bypass") {
        if (given && *given <= 1) {
            spec.qdisc_bypass = *given == 1;
            return "";
        }
        return "qdisc_bypass=" + std::string(value) + " is neither 0 nor 1";
    }
    if (key == "qpairs") {
        if (given && *given == 1) return "";
        return "qpairs=" + std::string(value) + ": a net uses one queue pair; leave qpairs out";
    }
    if (key == "blocksz" || key == "framesz")
        return std::string(key) + "= follows from the MTU; leave it out";
    return "has no argument '" + std::string(key) + "'; " + std::string(kUsage);
}

}  // namespace

bool is_packet(std::string_view device) noexcept {
    if (!device.starts_with(kName)) return false;
    device.remove_prefix(kName.size());
    const std::string_view digits = device.substr(0, device.find(','));
    return std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

Err parse_device(std::string_view device, DeviceSpec& out, std::string& why) {
    DeviceSpec spec;
    const auto set = [&](auto key, auto value) { return set_argument(key, value, spec); };
    if (const std::string wrong = port::set_arguments(device, set); !wrong.empty()) {
        why = std::string(kName).append(" ").append(wrong);
        return Err::kInvalid;
    }
    if (spec.interface.empty()) {
        why = std::string(kName) + " needs iface=NAME, one of those that 'ip link' shows";
        return Err::kInvalid;
    }
    out = std::move(spec);
    return Err::kOk;
}

}  // namespace ulc::packet
