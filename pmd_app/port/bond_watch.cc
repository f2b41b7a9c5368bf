// SPDX-License-Identifier: BSD-3-Clause
// Links of a bond that say that they are up and carry nothing (bond_port.h, link_watch.h): echo
// requests by each link, and replies to those of others (docs/protocol/NODES.md §8.7).
#include "port/bond_frame.h"
#include "port/bond_port.h"
#include "wire/build.h"
#include "wire/job.h"
#include "wire/parse.h"

namespace ulc::port {
namespace {

/// Looks at the links, a millisecond apart or more, between two rounds of requests.
constexpr std::uint32_t kDoubtLooks = 8;
constexpr std::uint32_t kBusyLooks = 50;
constexpr std::uint32_t kIdleLooks = 250;
/// Replies between two looks.
constexpr std::uint32_t kRepliesMax = 32;
/// Incarnation in echo frames: it has no meaning, and must not be 0.
constexpr std::uint32_t kIncarnation = 1;

}  // namespace

/// Ends a round when it is time, and asks by each link the node to which a frame went last. An idle
/// bond asks rarely, and one with doubts often.
void BondPort::watch() noexcept {
    replies_ = 0;
    if (count_ == 1) return;
    const std::uint32_t busy = busy_ ? kBusyLooks : kIdleLooks;
    if (++looks_ < (watch_.doubts() ? kDoubtLooks : busy)) return;
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
    wire::NodeBody body{};
    body.kind = kind;
    body.incarnation = kIncarnation;
    body.token = token;
    wire::FrameHead head;
    head.destination = to;
    head.source = link.port.info.mac;
    head.ether_type = config_.ether_type;
    head.type = wire::FrameType::kNode;
    const std::size_t octets = wire::put_node(segment->frame + wire::kHeadOctets, body);
    segment->length = static_cast<std::uint32_t>(wire::build_control(segment->frame, head, octets));
    link.waiting[link.waits++] = segment;
    link.waiting_octets += segment->length;
    flush(link);
    return true;
}

/// Takes a request or a reply that came by this link for its own address. False: the frame is
/// neither.
bool BondPort::take_echo(Link& link, const Segment& segment) noexcept {
    wire::FrameView view;
    wire::NodeView node;
    if (wire::parse(segment.frame, segment.length, config_.ether_type, view) != Counter::kCount ||
        view.type != wire::FrameType::kNode || !wire::parse_node(view.body, view.length, node))
        return false;
    if (node.kind == wire::NodeKind::kEchoReply) {
        watch_.replied(static_cast<std::size_t>(&link - links_.data()), node.token);
        return true;
    }
    if (node.kind != wire::NodeKind::kEchoRequest) return false;
    const bool may = replies_ < kRepliesMax && !is_full(link);
    if (!may || is_group(view.source) || is_own(view.source)) return true;
    if (send_echo(link, wire::NodeKind::kEchoReply, view.source, node.token)) ++replies_;
    return true;
}

}  // namespace ulc::port
