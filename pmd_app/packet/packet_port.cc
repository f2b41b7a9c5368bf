// SPDX-License-Identifier: BSD-3-Clause
#include "packet/packet_port.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"

namespace ulc::packet {
namespace {

constexpr std::uint32_t kEthernetOctets = 14;
constexpr std::uint32_t kFramesInFlight = 64;  ///< a burst of the engine
/// The kernel's drivers free sent frames by interrupts, which NICs delay by up to 200 us or so.
constexpr Nanos kPendingTime = 250 * kMicrosecond;

}  // namespace

Err PacketPort::open(const PortOptions& options, std::unique_ptr<PacketPort>& out,
                     std::string& why) {
    std::unique_ptr<PacketPort> port(new PacketPort);
    port->interface_ = options.device.interface;
    const SocketOptions socket{.interface = options.device.interface,
                               .ether_type = options.ether_type,
                               .mtu = options.mtu,
                               .receive_frames = options.device.receive_frames,
                               .qdisc_bypass = options.device.qdisc_bypass};
    if (const Err e = port->socket_.open(socket, why); e != Err::kOk) return e;
    port->frame_max_ = port->send_max_ = port->socket_.mtu() + kEthernetOctets;
    const std::uint32_t octets = port->frame_max_;
    if (const Err e = port->tx_pool_.create(options.segments, octets, why); e != Err::kOk) return e;
    if (const Err e = port->rx_pool_.create(options.segments + kFramesInFlight, octets, why);
        e != Err::kOk)
        return e;
    port->fill_table(options);
    out = std::move(port);
    return Err::kOk;
}

void PacketPort::fill_table(const PortOptions& options) {
    port_.info.mac = socket_.mac();
    port_.info.mtu = socket_.mtu();
    port_.info.link_bits_per_second = socket_.bits_per_second();
    port_.info.tx_ring_frames = kTransmitSlots;
    port_.info.tx_pending_time = kPendingTime;
    port_.info.rx_frames = options.segments;
    port_.info.gathers = true;
    port_.context = this;
    port_.pool = tx_pool_.table();
    port_.rx = [](void* context, Segment** frames, std::uint16_t n) {
        return static_cast<PacketPort*>(context)->receive(frames, n);
    };
    port_.rx_landing = [](void* context, const Landing& landing) {
        return static_cast<PacketPort*>(context)->take(&landing);
    };
    port_.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        return static_cast<PacketPort*>(context)->send(frames, n);
    };
    port_.tx_pending = [](void* context) { return static_cast<PacketPort*>(context)->pending(); };
    port_.link_up = [](void* context) { return static_cast<PacketPort*>(context)->look(); };
    port_.interface = [](void* context) -> const InterfaceState* {
        return &static_cast<PacketPort*>(context)->socket_.watch().state();
    };
    port_.take_address = [](void* context) {
        auto& self = *static_cast<PacketPort*>(context);
        self.socket_.watch().take_address();
        self.by_old_address_ = false;
        return self.port_.info.mac = self.socket_.watch().state().own;
    };
    port_.missed = [](void* context) {
        auto& self = *static_cast<PacketPort*>(context);
        return self.socket_.dropped() + self.counts_.no_frame;
    };
    port_.costs = [](void* context) {
        const auto& self = *static_cast<const PacketPort*>(context);
        const TransmitRing::Counts& ring = self.ring_counts();
        return PortCosts{ring.pushes, ring.refusals, self.counts_.copied_bytes};
    };
    port_.drops = [](void* context) {
        const auto& self = *static_cast<const PacketPort*>(context);
        PortDrops drops = self.counts_.drops;
        drops.unsendable += self.ring_counts().unsendable;
        return drops;
    };
}

bool PacketPort::look() {
    const bool up = socket_.running();
    const InterfaceState& state = socket_.watch().state();
    by_old_address_ = state.mac != state.own;
    send_max_ = state.mtu + kEthernetOctets;
    return up;
}

// ---- the hot path -------------------------------------------------------------------------------

std::uint16_t PacketPort::receive(Segment** out, std::uint16_t n) {
    std::uint16_t received = 0;
    while (received < n) {
        Segment* segment = take(nullptr);
        if (segment == nullptr) break;
        out[received++] = segment;
    }
    return received;
}

Segment* PacketPort::take(const Landing* landing) {
    Received got;
    while (socket_.next_frame(got)) {
        Segment* segment = nullptr;
        if (is_ours(got, port_.info.mac, !by_old_address_, frame_max_, counts_.drops))
            segment = copy_out(got, landing);
        socket_.release_frame();
        if (segment != nullptr) return segment;
    }
    return nullptr;
}

// The kernel does not change a frame in the ring before release_frame(), so one look is enough.
Segment* PacketPort::copy_out(const Received& got, const Landing* landing) {
    Segment* segment = rx_pool_.get();
    if (segment == nullptr) {
        ++counts_.no_frame;
        return nullptr;
    }
    segment->length = got.length;
    counts_.copied_bytes += got.length;
    Landed landed;
    if (landing != nullptr && got.length > landing->front_octets) {
        std::memcpy(segment->frame, got.frame, landing->front_octets);
        landed = landing->where(landing->context, segment->frame, got.length);
    }
    if (landed.to == nullptr) {
        std::memcpy(segment->frame, got.frame, got.length);
        return segment;
    }
    ULC_CHECK(landed.octets <= got.length);
    std::memcpy(landed.to, got.frame + got.length - landed.octets, landed.octets);
    segment->tail = landed.to;
    segment->tail_octets = landed.octets;
    return segment;
}

std::uint16_t PacketPort::send(Segment* const* frames, std::uint16_t n) {
    TransmitRing& ring = socket_.transmit_ring();
    std::uint16_t sent = 0;
    std::uint16_t written = 0;
    for (; sent < n; ++sent) {
        if (frames[sent]->length > send_max_) [[unlikely]] {  // the kernel would skip it unsaid
            ++counts_.drops.unsendable;
            port::FramePool::put(frames[sent]);
            continue;
        }
        std::byte* to = ring.slot();
        if (to == nullptr) break;
        Segment* segment = frames[sent];
        ULC_CHECK(segment->length <= frame_max_);
        copy_frame(to, *segment);
        ring.write(segment->length);
        counts_.copied_bytes += segment->length;
        port::FramePool::put(segment);
        ++written;
    }
    if (written > 0) ring.push();
    counts_.frames_sent += written;
    return sent;
}

std::uint32_t PacketPort::pending() {
    TransmitRing& ring = socket_.transmit_ring();
    const std::uint32_t frames = ring.in_use();
    if (frames > 0 && ring.must_push()) ring.retry(monotonic_now());
    return frames;
}

}  // namespace ulc::packet
