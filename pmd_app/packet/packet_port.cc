// SPDX-License-Identifier: BSD-3-Clause
#include "packet/packet_port.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

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
    port->frame_max_ = port->socket_.mtu() + kEthernetOctets;
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
    port_.link_up = [](void* context) {
        return static_cast<PacketPort*>(context)->socket_.running();
    };
    port_.missed = [](void* context) {
        auto& self = *static_cast<PacketPort*>(context);
        return self.socket_.dropped() + self.counts_.no_frame;
    };
    port_.costs = [](void* context) {
        const auto& self = *static_cast<const PacketPort*>(context);
        const PacketSocket::Counts& socket = self.socket_counts();
        return PortCosts{socket.pushes, socket.refusals, self.counts_.copied_bytes};
    };
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
    PacketSocket::Received got;
    while (socket_.next_frame(got)) {
        Segment* segment = nullptr;
        Mac to;
        std::memcpy(&to, got.frame, sizeof to);
        const bool ours = (to.octets[0] & 1U) != 0 || to == port_.info.mac;
        if (!ours || !got.whole || got.length > frame_max_ || got.length < kEthernetOctets) {
            ++counts_.unwanted;
        } else {
            segment = copy_out(got, landing);
        }
        socket_.release_frame();
        if (segment != nullptr) return segment;
    }
    return nullptr;
}

// The kernel does not change a frame in the ring before release_frame(), so one look is enough.
Segment* PacketPort::copy_out(const PacketSocket::Received& got, const Landing* landing) {
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
    std::uint16_t sent = 0;
    for (; sent < n; ++sent) {
        std::byte* to = socket_.transmit_slot();
        if (to == nullptr) break;
        Segment* segment = frames[sent];
        ULC_CHECK(segment->length <= frame_max_);
        copy_frame(to, *segment);
        socket_.write(segment->length);
        counts_.copied_bytes += segment->length;
        port::FramePool::put(segment);
    }
    if (sent > 0) socket_.push();
    counts_.frames_sent += sent;
    return sent;
}

std::uint32_t PacketPort::pending() {
    const std::uint32_t frames = socket_.in_use();
    if (frames > 0 && socket_.must_push()) socket_.push();
    return frames;
}

}  // namespace ulc::packet
