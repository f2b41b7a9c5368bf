// SPDX-License-Identifier: BSD-3-Clause
// Frames that come by FORWARD (mesh_port.h): for this node, or to be sent on by its other link.
// Everything here comes from other nodes: what is not right is counted and dropped.
#include "port/bond_frame.h"
#include "port/mesh_port.h"

namespace ulc::port {

MeshPort::Fate MeshPort::take_forward(std::size_t line, Segment& segment) noexcept {
    wire::ForwardView view;
    if (!wire::parse_forward(segment.frame, segment.length, config_.ether_type, view)) {
        ++counts_.malformed;
        return Fate::kDrop;
    }
    if (!is_group(view.receiver) && view.receiver != own_[line].mac) {
        ++drops_.other_station;
        return Fate::kDrop;
    }
    if (is_own(view.sender) || is_own(view.origin)) {
        ++drops_.own_echo;
        return Fate::kDrop;
    }
    const bool to_group = is_group(view.destination);
    if (to_group != is_group(view.receiver) || !is_path_right(line, segment, view)) {
        ++counts_.misrouted;
        return Fate::kDrop;
    }
    if (view.hops == 0) return arrive(line, segment, view);
    return is_group(view.destination) ? spread(line, segment, view) : pass_on(line, segment, view);
}

/// Returns whether the sender may send this frame by this line. With a further segment it is the
/// origin, which is on the line. Without one it lies where the lines of the origin and of this node
/// meet. A node that is not known yet may speak for itself to all, so that it becomes known.
bool MeshPort::is_path_right(std::size_t line, const Segment& segment,
                             const wire::ForwardView& view) const noexcept {
    const std::uint16_t number = find_for(view.origin, proves_links(segment, wire::kForwardOctets));
    const Peer* origin = number == kNone ? nullptr : &peers_[number];
    if (origin != nullptr && view.origin != origin->addresses[kRow].mac) return false;
    if (origin == nullptr) {
        const unsigned type = std::to_integer<unsigned>(segment.frame[wire::kForwardOctets]) & 0xfU;
        const bool speaks = type == kJobType || type == kNodeType || type == kLinkType;
        if (view.destination != kBroadcastMac || !speaks) return false;
    }
    if (view.hops == 1)
        return view.sender == view.origin && (origin == nullptr || is_on(line, *origin));
    const std::uint16_t between = find(view.sender);
    if (between == kNone) return false;
    const Peer& sender = peers_[between];
    if (view.sender != sender.addresses[line].mac || !is_on(line, sender)) return false;
    if (is_on(other(line), sender)) return false;
    if (origin == nullptr) return true;
    return !is_on(kRow, *origin) && !is_on(kColumn, *origin) &&
           origin->addresses[other(line)].segment == sender.addresses[other(line)].segment;
}

/// Gives the frame to the link for the last segment.
void MeshPort::push_transit(std::size_t line, Segment* segment) noexcept {
    auto& head = *reinterpret_cast<wire::ForwardHeader*>(segment->frame + kTypeAt);
    head.hops = 0;
    set_source(*segment, own_[line].mac);
    Link& link = links_[line];
    // A queue that was empty has no turns to catch up with.
    if (link.transit.count == 0)
        link.transit.given = std::max(link.transit.given, link.own_queue.given);
    link.transit.push(segment);
    ++counts_.forwarded;
}

/// Sends a frame for a node of the other line on.
MeshPort::Fate MeshPort::pass_on(std::size_t line, Segment& segment,
                                 const wire::ForwardView& view) noexcept {
    const std::uint16_t number =
        find_for(view.destination, proves_links(segment, wire::kForwardOctets));
    const std::size_t by = other(line);
    if (number == kNone || view.destination != peers_[number].addresses[kRow].mac ||
        !is_on(by, peers_[number])) {
        ++counts_.misrouted;
        return Fate::kDrop;
    }
    if (!links_[by].up || links_[by].transit.is_full()) {
        ++counts_.full;
        return Fate::kDrop;
    }
    set_destination(segment, peers_[number].addresses[by].mac);
    push_transit(by, &segment);
    return Fate::kPassedOn;
}

/// Takes a frame for a group, and sends a copy on.
MeshPort::Fate MeshPort::spread(std::size_t line, Segment& segment,
                                const wire::ForwardView& view) noexcept {
    const std::size_t by = other(line);
    const SegmentPool& pool = links_[kRow].port.pool;
    Segment* copy = !links_[by].up || links_[by].transit.is_full() ? nullptr : pool.get();
    if (copy == nullptr) {
        ++counts_.full;
    } else {
        copy_frame(copy->frame, segment);
        copy->length = segment.length;
        set_destination(*copy, view.destination);
        push_transit(by, copy);
    }
    segment.length = static_cast<std::uint32_t>(wire::unwrap_forward(segment.frame, view));
    return Fate::kDeliver;
}

/// Takes a frame that has arrived.
MeshPort::Fate MeshPort::arrive(std::size_t line, Segment& segment,
                                const wire::ForwardView& view) noexcept {
    if (!is_group(view.destination) && view.destination != info_.mac) {
        ++counts_.misrouted;
        return Fate::kDrop;
    }
    segment.length = static_cast<std::uint32_t>(wire::unwrap_forward(segment.frame, view));
    // The reply takes the way of the last question.
    if (Asker* asker = asks_about_links(segment) ? find_asker(view.origin) : nullptr)
        asker->waits = false;
    const bool echoes = !is_group(view.destination) && type_of(segment) == kNodeType &&
                        take_echo(line, segment, view.sender);
    return echoes ? Fate::kDrop : Fate::kDeliver;
}

}  // namespace ulc::port
