// SPDX-License-Identifier: BSD-3-Clause
#include "main/net_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "abi/attach.h"
#include "main/wires/wire.h"
#include "wire/node_address.h"

namespace ulc::daemon {

std::vector<std::string> names_of(const std::vector<NetOption>& nets) {
    std::vector<std::string> names;
    for (const NetOption& net : nets)
        if (std::ranges::find(names, net.name) == names.end()) names.push_back(net.name);
    return names;
}

namespace {

/// Returns the length of the net's name before the colon; 0: it has none.
std::size_t name_octets(std::string_view device) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const std::size_t colon = device.find(':');
    if (colon == std::string_view::npos || kLetters.find(device.front()) == std::string_view::npos)
        return 0;
    const bool is_name = std::ranges::all_of(device.substr(0, colon), [&](char c) {
        return kLetters.find(c) != std::string_view::npos || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    });
    return is_name ? colon : 0;
}

/// Returns why a net with several devices cannot be; empty: it can.
std::string check_bonds(const std::vector<NetOption>& nets) {
    for (const std::string& name : names_of(nets)) {
        const auto links = std::ranges::count(nets, name, &NetOption::name);
        if (links == 1) continue;
        const auto first = std::ranges::find(nets, name, &NetOption::name);
        if (links > static_cast<std::ptrdiff_t>(kNodeLinksMax))
            return fmt::format("{} devices are links of net {}; a net has at most {} links", links,
                               name, kNodeLinksMax);
        if (!wire_of(first->device).may_be_link)
            return fmt::format(
                "{} cannot be one of several links of net {}; give it a net of "
                "another name",
                first->device, name);
    }
    return {};
}

/// Reads "12" as a number of a segment. Returns 0 if it is none.
std::uint16_t number_of(std::string_view text) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole && value <= kMeshLinesMax ? static_cast<std::uint16_t>(value) : std::uint16_t{0};
}

}  // namespace

bool parse_place(std::string_view text, port::MeshPlace& out) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return false;
    out.row = number_of(text.substr(0, comma));
    out.column = number_of(text.substr(comma + 1));
    return out.row != 0 && out.column != 0;
}

std::string check_nets(const std::vector<NetOption>& nets) {
    if (nets.empty())
        return "no device; name one with --device, for example a NIC bound with dpdk-devbind.py";
    if (const std::size_t count = names_of(nets).size(); count > engine::kNetsMax)
        return fmt::format("{} nets by --device; an engine has at most {} nets", count,
                           engine::kNetsMax);
    for (auto net = nets.begin(); net != nets.end(); ++net) {
        if (net->device.empty())
            return "--device is empty; name a NIC or a virtual device, as in lab:0000:03:00.0";
        if (net->name.size() >= abi::kNetNameOctetsMax)
            return fmt::format("the net's name {} is longer than {} letters", net->name,
                               abi::kNetNameOctetsMax - 1);
        for (auto other = nets.begin(); other != net; ++other) {
            if (other->name == net->name && other->device == net->device)
                return "--device " + net->device + " is twice in net " + net->name +
                       "; each link needs a NIC";
            if (other->name == net->name && &wire_of(other->device) != &wire_of(net->device))
                return "net " + net->name + ": " + other->device + " and " + net->device +
                       " are unlike wires; links of one net are NICs of one kind";
            if (other->device == net->device)
                return "--device " + net->device + " is there twice; a port belongs to one net";
        }
    }
    return check_bonds(nets);
}

std::vector<NetOption> nets_of(const std::vector<std::string>& devices) {
    std::vector<NetOption> nets;
    for (const std::string& device : devices) {
        const std::size_t name = dpdk::is_pci_address(device) ? 0 : name_octets(device);
        if (name > 0) {
            nets.push_back({device.substr(0, name), device.substr(name + 1)});
        } else {
            nets.push_back({std::to_string(nets.size()), device});
        }
    }
    return nets;
}

}  // namespace ulc::daemon
