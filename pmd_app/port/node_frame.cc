// SPDX-License-Identifier: BSD-3-Clause
#include "port/node_frame.h"

#include "wire/build.h"
#include "wire/parse.h"

namespace ulc::port {
namespace {

/// Incarnation in these frames: it has no meaning, and must not be 0.
constexpr std::uint32_t kIncarnation = 1;

void put_head(Segment& segment, std::uint16_t ether_type, const Mac& source, const Mac& destination,
              std::size_t octets) noexcept {
    wire::FrameHead head;
    head.destination = destination;
    head.source = source;
    head.ether_type = ether_type;
    head.type = wire::FrameType::kNode;
    segment.length = static_cast<std::uint32_t>(wire::build_control(segment.frame, head, octets));
}

}  // namespace

void build_echo(Segment& segment, std::uint16_t ether_type, wire::NodeKind kind, const Mac& source,
                const Mac& destination, std::uint64_t token) noexcept {
    wire::NodeBody body{};
    body.kind = kind;
    body.incarnation = kIncarnation;
    body.token = token;
    const std::size_t octets = wire::put_node(segment.frame + wire::kHeadOctets, body);
    put_head(segment, ether_type, source, destination, octets);
}

void broadcast_links(const Port& port, std::uint16_t ether_type, std::uint32_t incarnation,
                     std::uint64_t number, std::span<const NodeAddress> addresses) {
    Segment* segment = port.pool.get();
    if (segment == nullptr) return;
    wire::NodeBody head{};
    head.kind = wire::NodeKind::kLinks;
    head.incarnation = incarnation;
    head.token = number;
    const std::size_t octets = wire::put_links(segment->frame + wire::kHeadOctets, head, addresses);
    put_head(*segment, ether_type, addresses[0].mac, kBroadcastMac, octets);
    if (port.tx(port.context, &segment, 1) == 0) port.pool.drop(segment);
}

void ask_for_links(const Port& port, std::uint16_t ether_type, const Mac& to, std::uint64_t token) {
    Segment* segment = port.pool.get();
    if (segment == nullptr) return;
    wire::NodeBody body{};
    body.kind = wire::NodeKind::kLinksRequest;
    body.incarnation = kIncarnation;
    body.token = token;
    const std::size_t octets = wire::put_node(segment->frame + wire::kHeadOctets, body);
    put_head(*segment, ether_type, port.info.mac, to, octets);
    if (port.tx(port.context, &segment, 1) == 0) port.pool.drop(segment);
}

bool parse_node_frame(const Segment& segment, std::uint16_t ether_type, Mac& source,
                      wire::NodeView& out) noexcept {
    wire::FrameView view;
    if (wire::parse(segment.frame, segment.length, ether_type, view) != Counter::kCount ||
        view.type != wire::FrameType::kNode || !wire::parse_node(view.body, view.length, out))
        return false;
    source = view.source;
    return true;
}

}  // namespace ulc::port
