// SPDX-License-Identifier: BSD-3-Clause
// Payloads that land: while a long message arrives for whose receive a client of this process named
// the memory (abi/placement.h), the port copies the payload of its next packet from the wire
// straight there, and of the frame only the headers.
//
// This is correct because of the order. A packet lands only if the member would take it next while
// nothing of any source waits whose delivery might give the same receive away. Only one packet
// lands at a time: before the port is asked again it was delivered, or is in its frame after all.
// If the port or the member refuses it, then bytes were written into a buffer whose receive is
// posted, where nothing is promised yet.
#include "base/check.h"
#include "engine/fast/receive.h"

namespace ulc::engine {
namespace {

constexpr std::uint32_t kLandedMin = 1024;  ///< bytes of a frame for which the question pays off

struct Asker {
    Core& core;
    Net& net;
    Rank source = 0;  ///< source of the packet announced to land
};

/// Returns true if the frame goes to that endpoint, and to no other of this engine.
bool is_for(Net& net, const Endpoint& endpoint, Handle handle) {
    if (!is_group(handle)) return handle == endpoint.handle();
    const LocalGroup* group = net.groups().find(handle);
    return group != nullptr && group->members.size() == 1 && group->members[0] == &endpoint;
}

Landed where(void* context, const std::byte* front, std::uint32_t length) {
    auto& [core, net, source] = *static_cast<Asker*>(context);
    const Endpoint* endpoint = net.landing();
    if (endpoint == nullptr || endpoint->member() == nullptr || length < kLandedMin ||
        !endpoint->life().has_client() || core.config().crc)
        return {};
    if (const FrameVerdict* kept = kept_part(core, net, front); kept != nullptr) {
        wire::ShortBody body;
        if (kept->endpoint != endpoint ||
            !endpoint->member()->is_next(kept->of, front, length, body) || body.has_tag() ||
            body.payload + body.length != front + length)
            return {};
        source = kept->of.rx->session->rank;
        return {endpoint->outlet()->place_of_part(source, body.length),
                static_cast<std::uint16_t>(body.length)};
    }
    if (!wire::is_judged_by_front(front, length)) return {};
    wire::FrameView view;
    if (wire::parse(front, length, core.config().ether_type, view) != Counter::kCount) return {};
    const auto front_octets = static_cast<std::uint32_t>(view.body - front);
    const bool exact = view.length > 0 && front_octets + view.length == length;  // no padding
    if (!exact || !is_for(net, *endpoint, view.handle) || !endpoint->member()->is_next(view))
        return {};
    urtp::ReadyPacket packet;
    packet.tag = view.tag;
    packet.message_length = view.message_length;
    packet.stream = is_group(view.handle) ? view.handle : endpoint->member()->rank();
    packet.length = view.length;
    packet.flags = view.flags;
    source = view.rank;
    return {endpoint->outlet()->next_place(view.rank, packet), view.length};
}

}  // namespace

bool receive_landing(Core& core, Net& net, Nanos now) {
    Asker asker{core, net};
    const Landing landing{&asker, wire::kFrontOctetsMax, where};
    Received received;
    while (received.frames < kRxBurst) {
        Segment* segment = net.port().rx_landing(net.port().context, landing);
        if (segment == nullptr) break;
        net.show_received(&segment, 1);
        const bool landed = segment->tail != nullptr;
        if (landed) core.counters().add(Counter::payloads_landed);
        if (Endpoint* taker = take_one(core, net, *segment, received, now)) {
            taker->mark(Work::kSettle);
            continue;
        }
        Endpoint* endpoint = net.landing();
        if (endpoint == nullptr || endpoint->member() == nullptr) continue;
        if (endpoint->has(Work::kDeliver)) deliver(core, *endpoint, now);
        if (landed) endpoint->member()->pull_front(asker.source);  // if it is still there
    }
    net.arrivals().took(received.frames == kRxBurst, now);
    received.count(core);
    return received.frames > 0;
}

}  // namespace ulc::engine
