// SPDX-License-Identifier: BSD-3-Clause
// The doctor's look at the frames that a running engine did not take or could not send.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "tools/ulc/doctor/doctor.h"
#include "tools/ulc/watch/counter_page.h"

namespace ulc::tools {
namespace {

/// A counter that should not rise, and what its rise means.
struct Sign {
    std::string_view counter;
    std::string_view text;  ///< after the number of frames
    std::string_view fix;
};

constexpr std::array kSigns{
    Sign{"tx_unsendable", "could not be sent: part of the path takes only shorter ones",
         "give all interfaces and bridges of the path one MTU: ip link set INTERFACE mtu N"},
    Sign{"drop_vlan", "came with the tag of a VLAN that this interface is not in",
         "set this node's switch port to one untagged VLAN, or use that VLAN's own interface"},
    Sign{"drop_too_long", "came that are longer than this node's MTU",
         "give all nodes one MTU: ip link set INTERFACE mtu N"},
    Sign{"port_errors", "came damaged, or of a length that the device does not take",
         "check the cable, and that both ends of the link use one MTU"},
    Sign{"port_missed", "came and were lost, since the host was too slow for the port's ring",
         "run fewer pollers than cores, or give the engine a core"},
};

/// Changes of a port's interface, which the engine's log names.
constexpr std::array kChanges{
    Sign{"mtu_falls", "the MTU of a port's interface fell below the engine's",
         "the engine's log names it; ip link set INTERFACE mtu N, or a lower --mtu on every node"},
    Sign{"paths_narrowed",
         "the path to a node stopped taking long packets: UDP cuts them, other jobs end",
         "raise the MTU of switches, routers and tunnels between; the log names the node"},
    Sign{"mac_changes", "the interface of a port got another MAC address",
         "the engine's log names it; set the address before the engine starts"},
};

/// Frames for other nodes are normal in small numbers: a switch floods what it has not learnt.
constexpr std::string_view kOthers = "drop_other_station";
constexpr std::uint64_t kOthersShare = 10;  ///< told from one in that many frames on

}  // namespace

void check_frames(const CounterValues& counters, Findings& out) {
    const auto value = [&](std::string_view name) {
        const auto found = counters.find(name);
        return found == counters.end() ? std::uint64_t{0} : found->second;
    };
    const std::size_t before = out.size();
    for (const Sign& sign : kSigns)
        if (const std::uint64_t frames = value(sign.counter); frames > 0)
            out.push_back({Level::kWarn, "frames",
                           fmt::format("{} frames {} ({})", frames, sign.text, sign.counter),
                           std::string(sign.fix)});
    for (const Sign& change : kChanges)
        if (const std::uint64_t times = value(change.counter); times > 0)
            out.push_back({Level::kWarn, "interface",
                           fmt::format("{}: {} times ({})", change.text, times, change.counter),
                           std::string(change.fix)});
    const std::uint64_t others = value(kOthers);
    if (others * kOthersShare > value("rx_frames") + others)
        out.push_back(
            {Level::kWarn, "frames",
             fmt::format("{} frames came for other nodes ({})", others, kOthers),
             "look for a hub or a mirrored port, and for two nodes with one MAC address"});
    if (out.size() == before)
        out.push_back({Level::kOk, "frames",
                       "the engine has taken each frame for it, and could send each one", ""});
}

void check_engine_frames(const std::string& socket, Findings& out) {
    CounterPage page;
    std::string error;
    if (!page.open(socket, &error)) return;  // check_socket() says why
    const std::vector<std::uint64_t> values = page.values();
    CounterValues counters;
    for (std::size_t n = 0; n < values.size(); ++n)
        counters[page.names()[n]] = values[n];
    check_frames(counters, out);
}

}  // namespace ulc::tools
