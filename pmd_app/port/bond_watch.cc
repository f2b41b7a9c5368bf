// SPDX-License-Identifier: BSD-3-Clause
// Links of a bond that say that they are up and carry nothing (bond_port.h, link_watch.h): echo
// requests by each link, and replies to those of others (docs/protocol/NODES.md §8.7).
#include "port/bond_frame.h"
#include "port/bond_port.h"
#include "port/node_frame.h"

namespace ulc::port {
namespace {

/// Looks at the links between two rounds of requests of a bond that carries nothing.
constexpr std::uint32_t kIdleLooks = 250;

}  // namespace

/// Ends a round when it is time, and asks by each link the node to which a frame went last. An idle
/// bond asks rarely, and one with doubts often.
void BondPort::watch() noexcept {
    replies_ = 0;
    if (count_ == 1) return;
    const std::uint32_t busy = busy_ ? LinkWatch::kBusyLooks : kIdleLooks;
    if (++looks_ < (watch_.doubts() ? LinkWatch::kDoubtLooks : busy)) return;
    looks_ = 0;
    busy_ = false;
    watch_.end_round();
    if (asks_ == Mac{}) return;
    const std::uint16_t peer = find(asks_);
    for (std::size_t n = 0; n < count_; ++n) {
        Link& link = links_[n];
        const Mac to = peer == kNone ? asks_ : address_of(peers_[peer], link);
        if (!link.carrier) continue;
        // A device that has not taken the last requests carries nothing either.
        if (link.waits == link.waiting.size() ||
            send_echo(link, wire::NodeKind::kEchoRequest, to, watch_.token()))
            watch_.asked(n);
    }
}

/// Sends a request or a reply by a link that has space for it. False: no segment is left.
bool BondPort::send_echo(Link& link, wire::NodeKind kind, const Mac& to,
                         std::uint64_t token) noexcept {
    Segment* segment = link.port.pool.get();
    if (segment == nullptr) return false;
    build_echo(*segment, config_.ether_type, kind, link.port.info.mac, to, token);
    link.waiting[link.waits++] = segment;
    link.waiting_octets += segment->length;
    flush(link);
    return true;
}

/// Takes a request or a reply that came by this link for its own address. False: the frame is
/// neither.
bool BondPort::take_echo(Link& link, const Segment& segment) noexcept {
    Mac source;
    wire::NodeView node;
    if (!parse_node_frame(segment, config_.ether_type, source, node)) return false;
    if (node.kind == wire::NodeKind::kEchoReply) {
        watch_.replied(static_cast<std::size_t>(&link - links_.data()), node.token);
        return true;
    }
    if (node.kind != wire::NodeKind::kEchoRequest) return false;
    const bool may = replies_ < kEchoRepliesMax && !is_full(link);
    if (!may || is_group(source) || is_own(source)) return true;
    if (send_echo(link, wire::NodeKind::kEchoReply, source, node.token)) ++replies_;
    return true;
}

}  // namespace ulc::port
