// SPDX-License-Identifier: BSD-3-Clause
// A node announces itself by both links, as its engine does later (docs/protocol/NODES.md §8.8).
// Nodes that hear it for the first time announce themselves at once.
#include "main/mesh_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "port/node_frame.h"
#include "wire/forward.h"
#include "wire/job.h"
#include "wire/mac_text.h"
#include "wire/node_address.h"

namespace ulc::daemon {
namespace {

constexpr int kTries = 10;
constexpr std::chrono::milliseconds kTryWait{20};
constexpr const char* kLines[] = {"row", "column"};

bool is_up(const Port& port) { return port.link_up == nullptr || port.link_up(port.context); }

/// Returns why a node whose announcement came by link `line` cannot be there; empty: it can.
std::string judge(const wire::NodeView& node, std::size_t line,
                  const std::array<NodeAddress, 2>& own, const std::string& net) {
    const Mac mac = node.links[0].mac;
    const std::string link = text_of(own[line].mac);
    if (mac == own[0].mac)
        return fmt::format(
            "the links {} and {} of net {} are on one segment; a mesh needs a switch or VLAN for "
            "each row and each column",
            text_of(own[0].mac), text_of(own[1].mac), net);
    if (node.links.size() != own.size() || node.links[0].segment == 0)
        return fmt::format(
            "the link {} of net {} hears the node {}, which is in no mesh; start its engine with "
            "--mesh, or use another switch",
            link, net, text_of(mac));
    if (node.links[line].segment != own[line].segment)
        return fmt::format(
            "the link {} of net {} hears the node {} of {} {}, and is to be in {} {}; compare "
            "--mesh with the cables",
            link, net, text_of(mac), kLines[line], std::uint16_t{node.links[line].segment},
            kLines[line], own[line].segment);
    if (node.links[1 - line].segment == own[1 - line].segment)
        return fmt::format(
            "the node {} is in row {}, column {} of net {} already; give each node its own --mesh",
            text_of(mac), own[0].segment, own[1].segment, net);
    return {};
}

/// Returns whether the frame is an announcement of a node of this segment. A node spreads its
/// announcements by one of its links in FORWARD, which is taken out.
bool is_announcement(Segment& segment, std::uint16_t ether_type, wire::NodeView& out) {
    wire::ForwardView forward;
    if (wire::parse_forward(segment.frame, segment.length, ether_type, forward)) {
        if (forward.hops == 0) return false;
        segment.length = static_cast<std::uint32_t>(wire::unwrap_forward(segment.frame, forward));
    }
    Mac source;
    return port::parse_node_frame(segment, ether_type, source, out) &&
           out.kind == wire::NodeKind::kLinks && out.links[0].mac == source;
}

/// Takes what has come by a link. Returns the first reason against it.
std::string listen(const Port& port, std::size_t line, const std::array<NodeAddress, 2>& own,
                   std::uint16_t ether_type, const std::string& net) {
    std::array<Segment*, 32> burst;
    const std::uint16_t count = port.rx(port.context, burst.data(), burst.size());
    std::string wrong;
    for (std::uint16_t n = 0; n < count; ++n) {
        wire::NodeView node;
        if (wrong.empty() && is_announcement(*burst[n], ether_type, node))
            wrong = judge(node, line, own, net);
        port.pool.drop(burst[n]);
    }
    if (port.tx_pending != nullptr) (void)port.tx_pending(port.context);
    return wrong;
}

}  // namespace

Err check_mesh(const Port& row, const Port& column, const port::MeshPlace& place,
               const std::string& net, std::uint16_t ether_type, std::string& why) {
    const std::array<NodeAddress, 2> own{NodeAddress{row.info.mac, 1, place.row},
                                         NodeAddress{column.info.mac, 1, place.column}};
    if (row.info.mtu != column.info.mtu) {
        why = fmt::format(
            "the links of net {} have MTUs of {} ({}) and {} ({}); give --mtu {} or set both alike",
            net, row.info.mtu, text_of(own[0].mac), column.info.mtu, text_of(own[1].mac),
            std::min(row.info.mtu, column.info.mtu));
    } else if (row.info.mtu < wire::kMtuMin + sizeof(wire::ForwardHeader)) {
        why = fmt::format("the links of net {} have an MTU of {}; a mesh needs {}", net,
                          row.info.mtu, wire::kMtuMin + sizeof(wire::ForwardHeader));
    } else if (own[0].mac == own[1].mac) {
        why = fmt::format("two links of net {} have the address {}; change one", net,
                          text_of(own[0].mac));
    }
    const Port* const ports[] = {&row, &column};
    for (int tries = 0; tries < kTries && why.empty(); ++tries) {
        for (const Port* port : ports)
            if (is_up(*port)) port::broadcast_links(*port, ether_type, 1, own);
        std::this_thread::sleep_for(kTryWait);
        for (std::size_t line = 0; line < own.size() && why.empty(); ++line)
            why = listen(*ports[line], line, own, ether_type, net);
    }
    return why.empty() ? Err::kOk : Err::kInvalid;
}

}  // namespace ulc::daemon
