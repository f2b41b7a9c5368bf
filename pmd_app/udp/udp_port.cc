// SPDX-License-Identifier: BSD-3-Clause
#include "udp/udp_port.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/prng.h"

namespace ulc::udp {
namespace {

constexpr std::uint16_t kEthernetMtu = 1500;
constexpr std::uint16_t kPathMtuLeast = 1280;  ///< least MTU of IPv6; tunnels over IPv4 have more
constexpr std::uint16_t kIpv4Octets = 20 + 8;  ///< IP and UDP headers
constexpr std::uint16_t kIpv6Octets = 40 + 8;
constexpr std::uint8_t kFlushFrames = 32;      ///< a call costs as much as 6 frames
constexpr std::uint32_t kFramesInFlight = 64;  ///< a burst of the engine
constexpr unsigned kMessagesPerLook = 16;      ///< messages that one look for a frame takes
constexpr std::uint32_t kAskFrames = 8;        ///< sent, before the kernel is asked what waits

/// Returns a name of 46 random bits.
Mac random_name(Prng& prng) noexcept {
    const std::uint64_t bits = prng.next();
    Mac name;
    std::memcpy(name.octets.data(), &bits, name.octets.size());
    name.octets[0] = static_cast<std::uint8_t>((name.octets[0] & 0xfcU) | 2U);
    return name;
}

PeersConfig peers_config(const PortOptions& options) {
    Prng prng(options.seed);
    return {random_name(prng), prng.next()};
}

/// Returns how long a frame without its Ethernet header is in a packet of that length.
std::uint16_t inside(std::uint16_t packet, const PortOptions& options) noexcept {
    const std::uint16_t around = options.device.own.is_v4() ? kIpv4Octets : kIpv6Octets;
    return static_cast<std::uint16_t>(packet - around - kHeadOctets);
}

std::uint16_t mtu_of(const PortOptions& options) noexcept {
    return options.mtu != 0 ? options.mtu : inside(kEthernetMtu, options);
}

std::uint16_t least_mtu_of(const PortOptions& options) noexcept {
    return inside(kPathMtuLeast, options);
}

}  // namespace

UdpPort::UdpPort(const PortOptions& options)
    : peers_(peers_config(options)),
      frame_max_(mtu_of(options) + std::uint32_t{kEthernetOctets}),
      sender_(peers_, frame_max_,
              {&socket_, [](void* context, std::span<const Message> messages, int& error) {
                   return static_cast<Socket*>(context)->send(messages, error);
               }}) {}

Err UdpPort::open(const PortOptions& options, std::unique_ptr<UdpPort>& out, std::string& why) {
    std::unique_ptr<UdpPort> port(new UdpPort(options));
    if (const Err e = port->socket_.open(options.device.own, why); e != Err::kOk) return e;
    port->ether_type_ = options.ether_type;
    const std::uint32_t octets = port->frame_max_;
    if (const Err e = port->tx_pool_.create(options.segments, octets, why); e != Err::kOk) return e;
    if (const Err e = port->rx_pool_.create(options.segments + kFramesInFlight, octets, why);
        e != Err::kOk)
        return e;
    port->fill_table(options);
    std::vector<Address> peers = options.device.peers;
    for (const std::string& name : options.device.named_peers)
        if (const Err e = resolve(name, options.device.own.is_v4(), peers, why); e != Err::kOk)
            return e;
    for (const Address& peer : peers)
        port->peers_.add(peer, monotonic_now());
    port->look();
    out = std::move(port);
    return Err::kOk;
}

std::string UdpPort::addresses() const {
    const Address& own = socket_.local();
    if (!own.is_any()) return text_of(own);
    std::string text;
    for (const Address& address : addresses_here(own.is_v4(), own.port, kMeetingMax))
        text += (text.empty() ? "" : ",") + text_of(address);
    return text;
}

void UdpPort::meet(std::span<const Address> addresses) {
    for (const Address& address : addresses)
        if (address.is_v4() == socket_.local().is_v4()) peers_.add(address, monotonic_now());
    answer();
}

void UdpPort::fill_table(const PortOptions& options) {
    port_.info.mac = peers_.own();
    port_.info.mtu = mtu_of(options);
    port_.info.mtu_sure = least_mtu_of(options);
    port_.info.tx_ring_frames = Sender::kBurst;
    port_.info.rx_frames = options.segments;
    port_.info.gathers = true;
    port_.info.flush_frames = kFlushFrames;
    port_.context = this;
    port_.pool = tx_pool_.table();
    port_.rx = [](void* context, Segment** frames, std::uint16_t n) {
        return static_cast<UdpPort*>(context)->receive(frames, n);
    };
    port_.rx_landing = [](void* context, const Landing& landing) {
        return static_cast<UdpPort*>(context)->take(&landing);
    };
    port_.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        return static_cast<UdpPort*>(context)->send(frames, n);
    };
    port_.tx_pending = [](void* context) { return static_cast<UdpPort*>(context)->pending(); };
    port_.link_up = [](void* context) {
        static_cast<UdpPort*>(context)->look();
        return true;
    };
    port_.missed = [](void* context) {
        const auto& self = *static_cast<const UdpPort*>(context);
        return self.socket_.overruns() + self.no_frame_;
    };
    port_.unanswered = [](void* context) {
        return static_cast<const UdpPort*>(context)->peers_.unanswered();
    };
    port_.costs = [](void* context) {
        const auto& self = *static_cast<const UdpPort*>(context);
        const Socket::Counts& counts = self.socket_.counts();
        return PortCosts{counts.sends, counts.refusals, self.copied_bytes_};
    };
    port_.drops = [](void* context) {
        const auto& self = *static_cast<const UdpPort*>(context);
        PortDrops drops = self.drops_;
        drops.unsendable += self.sender_.unsendable();
        drops.damaged += self.peers_.counts().malformed;
        drops.wrong_source += self.peers_.counts().unproven + self.peers_.counts().refused;
        return drops;
    };
}

void UdpPort::look() {
    peers_.on_timer(monotonic_now());
    answer();
}

/// Sends what is due between nodes. It is asked again if it is lost, so nothing waits for space. A
/// node that was not known gets the last broadcast, which may have begun a job.
void UdpPort::answer() {
    Address newcomer;
    while (peers_.next_new(newcomer))
        sender_.repeat_broadcast(newcomer);
    std::array<std::byte, kControlMax> body;
    Address to;
    while (const std::size_t octets = peers_.next_tx(to, body.data())) {
        const SocketAddress address = socket_address(to);
        iovec piece{body.data(), octets};
        const Message message{&address, &piece, 1, 0};
        int error = 0;
        if (socket_.send({&message, 1}, error) == 0) ++drops_.unsendable;
    }
}

// ---- sending ------------------------------------------------------------------------------------

std::uint16_t UdpPort::send(Segment* const* frames, std::uint16_t n) {
    const std::uint16_t taken = sender_.send(frames, n);
    unasked_ += taken;
    return taken;
}

std::uint32_t UdpPort::pending() {
    const std::size_t frames = sender_.send_rest() ? 0 : sender_.waiting();
    // A system call for each short message would cost more than a few frames unseen.
    if (!unsent_ && unasked_ < kAskFrames) return static_cast<std::uint32_t>(frames);
    const std::size_t octets = socket_.unsent();
    unsent_ = octets > 0;
    unasked_ = 0;
    return static_cast<std::uint32_t>(frames + (octets + frame_max_ - 1) / frame_max_);
}

// ---- receiving ----------------------------------------------------------------------------------

std::uint16_t UdpPort::receive(Segment** out, std::uint16_t n) {
    std::uint16_t received = 0;
    while (received < n) {
        Segment* segment = take(nullptr);
        if (segment == nullptr) break;
        out[received++] = segment;
    }
    return received;
}

Segment* UdpPort::take(const Landing* landing) {
    std::span<const std::byte> datagram;
    while (next_datagram(datagram)) {
        if (!is_frame(datagram)) continue;
        if (Segment* segment = copy_out(datagram, landing); segment != nullptr) return segment;
    }
    return nullptr;
}

/// False: none is there, or this look has made its share of system calls.
bool UdpPort::next_datagram(std::span<const std::byte>& out) {
    for (unsigned taken = 0; at_ == arrived_.octets.size();) {
        if (taken++ == kMessagesPerLook || !socket_.receive(arrived_)) {
            arrived_ = {};
            at_ = 0;
            return false;
        }
        at_ = 0;
        from_ = address_of(*arrived_.from);
        name_ = peers_.name_of(from_);
        if (arrived_.octets.empty()) ++drops_.damaged;
        if (!arrived_.truncated) continue;
        ++drops_.too_long;
        at_ = arrived_.octets.size();
    }
    out = arrived_.octets.subspan(at_,
                                  std::min(arrived_.datagram_octets, arrived_.octets.size() - at_));
    at_ += out.size();
    return true;
}

/// Returns whether a datagram is a frame of a node that answered here. Takes questions and answers
/// between nodes.
bool UdpPort::is_frame(std::span<const std::byte> datagram) {
    const auto kind = static_cast<Kind>(datagram[0]);
    if (kind == Kind::kHello || kind == Kind::kWelcome) {
        peers_.on_datagram(from_, datagram, monotonic_now());
        answer();
        name_ = peers_.name_of(from_);
        return false;
    }
    if (name_ == Mac{}) {
        ++drops_.wrong_source;
        return false;
    }
    const bool known = kind == Kind::kFrame || kind == Kind::kToAll || kind == Kind::kToGroup;
    if (!known || datagram.size() <= kHeadOctets) {
        ++drops_.damaged;
        return false;
    }
    if (datagram.size() - kHeadOctets + kEthernetOctets > frame_max_) {
        ++drops_.too_long;
        return false;
    }
    return true;
}

/// Makes a frame of a datagram: its Ethernet header has the names of the nodes.
Segment* UdpPort::copy_out(std::span<const std::byte> datagram, const Landing* landing) {
    Segment* segment = rx_pool_.get();
    if (segment == nullptr) {
        ++no_frame_;
        return nullptr;
    }
    Mac to = port_.info.mac;
    const auto kind = static_cast<Kind>(datagram[0]);
    if (kind == Kind::kToAll) to = kBroadcastMac;
    if (kind == Kind::kToGroup) {
        std::ranges::copy(kGroupPrefix, to.octets.begin());
        std::memcpy(&to.octets[kGroupPrefix.size()], &datagram[1], kHeadOctets - 1);
    }
    std::byte* const frame = segment->frame;
    std::memcpy(frame, &to, sizeof to);
    std::memcpy(frame + sizeof to, &name_, sizeof name_);
    std::memcpy(frame + sizeof to + sizeof name_, &ether_type_, sizeof ether_type_);
    const std::span<const std::byte> body = datagram.subspan(kHeadOctets);
    segment->length = static_cast<std::uint32_t>(kEthernetOctets + body.size());
    copied_bytes_ += body.size();
    Landed landed;
    if (landing != nullptr && segment->length > landing->front_octets) {
        std::memcpy(frame + kEthernetOctets, body.data(), landing->front_octets - kEthernetOctets);
        landed = landing->where(landing->context, frame, segment->length);
    }
    if (landed.to == nullptr) {
        std::memcpy(frame + kEthernetOctets, body.data(), body.size());
        return segment;
    }
    ULC_CHECK(landed.octets <= body.size());
    std::memcpy(landed.to, body.data() + body.size() - landed.octets, landed.octets);
    segment->tail = landed.to;
    segment->tail_octets = landed.octets;
    return segment;
}

}  // namespace ulc::udp
