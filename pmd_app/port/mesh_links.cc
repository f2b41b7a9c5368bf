// SPDX-License-Identifier: BSD-3-Clause
// The two links of a node of a mesh and their queues (mesh_port.h).
#include <algorithm>
#include <array>

#include "port/bond_frame.h"
#include "port/interface/merge.h"
#include "port/mesh_port.h"

namespace ulc::port {
namespace {

/// Frames of largest size by which a packet may fall behind others: those of two links (bond_port)
/// on each of two segments, and what a node between has in transit.
constexpr Nanos kLateFrames = 16;
/// The same where no speed is known.
constexpr Nanos kLateUnknown = kMillisecond;
constexpr std::uint16_t kBurst = 32;

}  // namespace

void MeshPort::fit_speeds() noexcept {
    std::uint64_t fastest = 0;
    for (const Link& link : links_)
        fastest = std::max(fastest, link.port.info.link_bits_per_second);
    for (Link& link : links_) {
        const std::uint64_t bits = link.port.info.link_bits_per_second;
        link.octet_time = bits == 0 ? 1000 : std::max<std::uint64_t>(1, fastest * 1000 / bits);
    }
}

Nanos MeshPort::reorder_wait(std::uint32_t megabits) const noexcept {
    std::uint64_t slowest = UINT64_MAX;
    for (const Link& link : links_)
        if (const std::uint64_t bits = link.port.info.link_bits_per_second; bits != 0)
            slowest = std::min(slowest, bits);
    return late_time(kLateFrames, info_.mtu + kTypeAt + sizeof(wire::ForwardHeader), slowest,
                     megabits, kLateUnknown);
}

/// Drops what waits for a link that is down: receivers ask again for what was lost.
void MeshPort::drop_waiting(Link& link) noexcept {
    const auto drop_all = [&link](auto& queue) {
        for (std::uint32_t n = 0; n < queue.count; ++n)
            link.port.pool.drop(queue.frames[n]);
        queue.count = 0;
        queue.octets = 0;
    };
    drop_all(link.own_queue);
    drop_all(link.transit);
}

/// Asks the devices for their links, and the paths for their replies.
bool MeshPort::look_at_links() {
    for (std::size_t line = 0; line < kLines; ++line) {
        Link& link = links_[line];
        link.up = link.port.link_up == nullptr || link.port.link_up(link.port.context);
        if (has_lost_address(link.port)) link.up = false;
        if (!link.up) drop_waiting(link);
        const std::uint64_t rate = link.port.info.link_bits_per_second;
        own_[line].megabits =
            !link.up    ? 0
            : rate == 0 ? kMegabitsUnknown
                        : static_cast<std::uint32_t>(std::max<std::uint64_t>(1, rate / 1'000'000));
    }
    watch();
    return links_[kRow].up || links_[kColumn].up;
}

/// The space that the header of a forwarded frame needs is not the engine's.
const InterfaceState* MeshPort::interface() noexcept {
    interface_ = {};
    for (const Link& link : links_)
        merge_interface(link.port, &link == links_.data(), interface_);
    if (interface_.name.empty()) return nullptr;
    interface_.mtu -= std::min<std::uint16_t>(interface_.mtu, sizeof(wire::ForwardHeader));
    return &interface_;
}

Mac MeshPort::take_address() noexcept {
    for (std::size_t line = 0; line < kLines; ++line) {
        Port& port = links_[line].port;
        if (port.take_address == nullptr) continue;
        port.info.mac = own_[line].mac = port.take_address(port.context);
    }
    forget_nodes();
    return info_.mac = own_[kRow].mac;
}

/// Notes which frames have left the device.
void MeshPort::look_at_device(Link& link) noexcept {
    const std::uint32_t with_device = link.next - link.left;
    std::uint32_t pending = 0;
    if (link.up && link.port.tx_pending != nullptr)
        pending = std::min(link.port.tx_pending(link.port.context), with_device);
    for (const std::uint32_t end = link.next - pending; link.left != end; ++link.left) {
        const std::uint16_t length = link.lengths[link.left % kRing];
        link.octets -= length & ~kExtra;
        if ((length & kExtra) == 0) --link.own;
    }
}

/// Gives the frame to the link, which need not take it at once.
void MeshPort::put(Link& link, Segment* segment) noexcept {
    if (link.own_queue.count == 0)
        link.own_queue.given = std::max(link.own_queue.given, link.transit.given);
    link.given += segment->length * link.octet_time;
    link.own_queue.push(segment);
}

/// Offers what waits to the device. While own frames and those of others both wait, the queue that
/// has had fewer octets is next.
void MeshPort::flush(Link& link) noexcept {
    auto& own = link.own_queue;
    auto& transit = link.transit;
    while (own.count + transit.count > 0) {
        const std::uint32_t space = kRing - (link.next - link.left);
        const std::uint32_t offered =
            std::min<std::uint32_t>({own.count + transit.count, space, kBurst});
        std::array<Segment*, kBurst> burst;
        std::array<std::uint16_t, kBurst> lengths;
        std::uint64_t given[] = {own.given, transit.given};
        std::uint32_t at[] = {0, 0};
        for (std::uint32_t n = 0; n < offered; ++n) {
            const bool foreign =
                at[0] == own.count || (at[1] < transit.count && given[1] < given[0]);
            burst[n] = foreign ? transit.frames[at[1]++] : own.frames[at[0]++];
            given[foreign ? 1 : 0] += burst[n]->length;
            lengths[n] = static_cast<std::uint16_t>(burst[n]->length | (foreign ? kExtra : 0));
        }
        const std::uint32_t taken = offered == 0
                                        ? 0
                                        : link.port.tx(link.port.context, burst.data(),
                                                       static_cast<std::uint16_t>(offered));
        std::uint32_t left[] = {0, 0};
        for (std::uint32_t n = 0; n < taken; ++n) {
            const std::uint32_t octets = lengths[n] & ~kExtra;
            const bool foreign = (lengths[n] & kExtra) != 0;
            (foreign ? transit.given : own.given) += octets;
            (foreign ? transit.octets : own.octets) -= octets;
            ++left[foreign ? 1 : 0];
            link.lengths[link.next++ % kRing] = lengths[n];
            link.octets += octets;
        }
        link.own += left[0];
        own.drop_first(left[0]);
        transit.drop_first(left[1]);
        if (taken < offered || offered == 0) return;
    }
}

std::uint32_t MeshPort::tx_pending() {
    std::uint32_t pending = 0;
    for (Link& link : links_) {
        look_at_device(link);
        flush(link);
        if (link.up) pending += link.own + link.own_queue.count;
    }
    return pending;
}

}  // namespace ulc::port
