// SPDX-License-Identifier: BSD-3-Clause
#include "udp/udp_port.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "udp/udp_socket.h"

namespace ulc::udp {
namespace {

constexpr std::uint16_t kPathMtuLeast = 1280;  ///< least MTU of IPv6; tunnels over IPv4 have more
constexpr std::uint8_t kFlushFrames = 32;      ///< a call costs as much as 6 frames
constexpr std::size_t kFlushSealed = 20'480;   ///< octets that are sealed before the first is sent
constexpr std::uint32_t kFramesInFlight = 64;  ///< a burst of the engine
constexpr unsigned kDatagramsPerLook = 64;     ///< those that are no frames, of one look
constexpr unsigned kMessagesPerLook = 16;      ///< messages that one look for a frame takes
constexpr std::uint32_t kAskFrames = 8;        ///< sent, before the kernel is asked what waits

PeersConfig peers_config(const PortOptions& options) {
    return {name_of_bits(options.seed.number(0)), options.seed};
}

/// Makes the ring of a net that is not open. Errors: kInvalid.
Err make_ring(const PortOptions& options, const Mac& name, std::unique_ptr<seal::Keyring>& out,
              std::string& why) {
    const DeviceSpec& device = options.device;
    if (device.open) return Err::kOk;
    if (device.key_file.empty() && !options.takes_secrets) {
        why =
            "udp is sealed, and has no key: add key=FILE, the same key on all nodes, made by head "
            "-c 32 /dev/urandom > FILE; or write udp,open where all who reach the net are trusted";
        return Err::kInvalid;
    }
    return seal::make_keyring(device.key_file, name, out, why);
}

/// Returns how long a frame without its Ethernet header is in a packet of that length.
std::uint16_t inside(std::uint16_t packet, const PortOptions& options) noexcept {
    const std::uint16_t around = options.device.own.is_v4() ? kIpv4Octets : kIpv6Octets;
    const std::size_t seal = options.device.open ? 0 : seal::kSealOctets;
    return static_cast<std::uint16_t>(packet - around - kHeadOctets - seal);
}

/// Returns how many frames are sent by a call while others are made: a power of two.
std::uint8_t flush_frames(const PortOptions& options, std::size_t frame_octets) noexcept {
    if (options.device.open) return kFlushFrames;
    return std::bit_floor(static_cast<std::uint8_t>(
        std::clamp<std::size_t>(kFlushSealed / frame_octets, 1, kFlushFrames)));
}

std::uint16_t least_mtu_of(const PortOptions& options) noexcept {
    return inside(kPathMtuLeast, options);
}

/// Returns the octets of a datagram that passes each path.
std::size_t narrow_datagram(const PortOptions& options) noexcept {
    return kPathMtuLeast - (options.device.own.is_v4() ? kIpv4Octets : kIpv6Octets);
}

}  // namespace

UdpPort::UdpPort(const PortOptions& options, const PeersConfig& config,
                 std::unique_ptr<seal::Keyring> ring, std::unique_ptr<DatagramSocket> socket)
    : ring_(std::move(ring)),
      socket_(std::move(socket)),
      peers_(config),
      frame_max_(options.mtu + std::uint32_t{kEthernetOctets}),
      sender_(peers_, {frame_max_, narrow_datagram(options), ring_.get()},
              {socket_.get(), [](void* context, std::span<const Message> messages, int& error) {
                   return static_cast<DatagramSocket*>(context)->send(messages, error);
               }}) {}

Err UdpPort::open(const PortOptions& options, std::unique_ptr<UdpPort>& out, std::string& why) {
    auto socket = std::make_unique<Socket>();
    if (const Err e = socket->open(options.device.own, why); e != Err::kOk) return e;
    return open(options, std::move(socket), out, why);
}

Err UdpPort::open(const PortOptions& asked, std::unique_ptr<DatagramSocket> socket,
                  std::unique_ptr<UdpPort>& out, std::string& why) {
    PortOptions options = asked;
    PeersConfig config = peers_config(options);
    std::unique_ptr<seal::Keyring> ring;
    if (const Err e = make_ring(options, config.own, ring, why); e != Err::kOk) return e;
    config.ring = ring.get();
    if (options.mtu == 0) options.mtu = inside(socket->packet_octets(), options);
    const std::size_t around = kHeadOctets + (options.device.open ? 0 : seal::kSealOctets);
    config.datagram_max = std::min(options.mtu + around, kQuestionMax);
    std::unique_ptr<UdpPort> port(new UdpPort(options, config, std::move(ring), std::move(socket)));
    port->header_.destination = config.own;
    port->header_.type = options.ether_type;
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
    static_cast<void>(port->look());
    out = std::move(port);
    return Err::kOk;
}

std::string UdpPort::addresses() const {
    const Address& own = socket_->local();
    if (!own.is_any()) return text_of(own);
    std::string text;
    for (const Address& address : addresses_here(own.is_v4(), own.port, kMeetingMax))
        text += (text.empty() ? "" : ",") + text_of(address);
    return text;
}

void UdpPort::meet(std::span<const Address> addresses) {
    for (const Address& address : addresses)
        if (address.is_v4() == socket_->local().is_v4()) peers_.add(address, monotonic_now());
    answer();
}

void UdpPort::fill_table(const PortOptions& options) {
    port_.info.mac = peers_.own();
    port_.info.mtu = options.mtu;
    port_.info.mtu_sure = least_mtu_of(options);
    port_.info.follows_paths = true;
    port_.info.tx_ring_frames = Sender::kBurst;
    port_.info.rx_frames = options.segments;
    port_.info.gathers = true;
    port_.info.flush_frames = flush_frames(options, frame_max_);
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
    port_.link_up = [](void* context) { return static_cast<UdpPort*>(context)->look(); };
    port_.missed = [](void* context) {
        const auto& self = *static_cast<const UdpPort*>(context);
        return self.socket_->overruns() + self.no_frame_;
    };
    port_.unanswered = [](void* context) -> std::string {
        const std::string where = static_cast<const UdpPort*>(context)->peers_.unanswered();
        if (where.empty()) return {};
        return "no engine answers at " + where +
               ": see that one runs there and that no firewall drops UDP";
    };
    port_.costs = [](void* context) {
        const auto& self = *static_cast<const UdpPort*>(context);
        PortCosts costs = self.socket_->costs();
        costs.copied_bytes += self.copied_bytes_;
        return costs;
    };
    port_.drops = [](void* context) {
        const auto& self = *static_cast<const UdpPort*>(context);
        PortDrops drops = self.drops_;
        drops += self.socket_->drops();
        drops.unsendable += self.sender_.unsendable();
        drops.damaged += self.peers_.counts().malformed;
        drops.wrong_source += self.peers_.counts().unproven + self.peers_.counts().refused;
        drops.unsealed += self.peers_.counts().unsealed;
        drops.narrowed += self.peers_.counts().narrowed;
        return drops;
    };
}

bool UdpPort::look() {
    const bool is_up = socket_->look();
    peers_.on_timer(monotonic_now());
    know_sender();  // it may have been forgotten
    answer();
    return is_up;
}

void UdpPort::know_sender() noexcept {
    name_ = peers_.name_of(from_);
    header_.source = name_;
    takes_plain_ = ring_ == nullptr && name_ != Mac{};
    keys_ = ring_ == nullptr ? nullptr : peers_.keys_of(from_);
}

bool UdpPort::add_secret(const seal::Secret& secret) noexcept {
    return ring_ == nullptr || ring_->add(secret);
}

/// Sends what is due between nodes. It is asked again if it is lost, so nothing waits for space. A
/// node that was not known gets the last broadcast, which may have begun a job.
void UdpPort::answer() {
    Address newcomer;
    while (peers_.next_new(newcomer))
        sender_.repeat_broadcast(newcomer);
    std::array<std::byte, kQuestionMax> body;
    Address to;
    while (const std::size_t octets = peers_.next_tx(to, body.data())) {
        const SocketAddress address = socket_address(to);
        iovec piece{body.data(), octets};
        const Message message{&address, &piece, 1, 0};
        int error = 0;
        if (socket_->send({&message, 1}, error) != 0) continue;
        if (error == EMSGSIZE) {  // a question that tries the path
            peers_.set_narrow(to, true);
        } else {
            ++drops_.unsendable;
        }
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
    const std::size_t octets = socket_->unsent();
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
    for (unsigned taken = 0; taken < kDatagramsPerLook && next_datagram(datagram); ++taken) {
        if (is_plain(datagram)) {
            if (Segment* const segment = copy_out(datagram, landing); segment != nullptr)
                return segment;
            continue;
        }
        if (take_control(datagram) || !is_frame(datagram)) continue;
        Segment* const segment =
            ring_ != nullptr ? open_frame(datagram, landing) : take_open(datagram, landing);
        if (segment != nullptr) return segment;
    }
    return nullptr;
}

/// False: none is there, or this look has made its share of system calls.
bool UdpPort::next_message() {
    for (unsigned taken = 0; at_ == arrived_.octets.size();) {
        if (taken++ == kMessagesPerLook || !socket_->receive(arrived_)) {
            arrived_ = {};
            at_ = 0;
            return false;
        }
        at_ = 0;
        if (const Address from = address_of(*arrived_.from); from != from_) {
            from_ = from;
            know_sender();
        }
        if (arrived_.octets.empty()) ++drops_.damaged;
        if (!arrived_.truncated) continue;
        ++drops_.too_long;
        at_ = arrived_.octets.size();
    }
    return true;
}

/// False: none is there, or this look has made its share of system calls.
bool UdpPort::next_datagram(std::span<const std::byte>& out) {
    if (at_ == arrived_.octets.size() && !next_message()) return false;
    const std::size_t left = arrived_.octets.size() - at_;
    out = {arrived_.octets.data() + at_, std::min(arrived_.datagram_octets, left)};
    at_ += out.size();
    return true;
}

/// Returns whether a datagram is a whole frame on an open net, as most are: nothing else has to be
/// checked.
bool UdpPort::is_plain(std::span<const std::byte> datagram) const noexcept {
    const auto kind = static_cast<std::uint8_t>(datagram[0]);
    return takes_plain_ && kind >= static_cast<std::uint8_t>(Kind::kFrame) &&
           kind <= static_cast<std::uint8_t>(Kind::kToGroup) && datagram.size() > kHeadOctets &&
           datagram.size() <= frame_max_ - kEthernetOctets + kHeadOctets;
}

/// Takes questions and answers between nodes. False: it is none.
bool UdpPort::take_control(std::span<const std::byte> datagram) {
    switch (static_cast<Kind>(datagram[0])) {
        case Kind::kHello:
        case Kind::kWelcome:
        case Kind::kSealedHello:
        case Kind::kSealedWelcome:
            break;
        default:
            return false;
    }
    peers_.on_datagram(from_, datagram, monotonic_now());
    know_sender();
    answer();
    return true;
}

/// Returns whether a datagram of a node that answered here may hold a frame.
bool UdpPort::is_frame(std::span<const std::byte> datagram) {
    if (name_ == Mac{}) {
        ++drops_.wrong_source;
        return false;
    }
    const auto kind = static_cast<Kind>(datagram[0]);
    const bool sealed = kind == Kind::kSealed || kind == Kind::kSealedForAll;
    if (sealed != (ring_ != nullptr)) {
        ++drops_.unsealed;
        return false;
    }
    const std::size_t around = kHeadOctets + (sealed ? seal::kSealOctets : 0);
    if (datagram.size() > frame_max_ - kEthernetOctets + around) {
        ++drops_.too_long;
        return false;
    }
    if (datagram.size() <= around) ++drops_.damaged;
    return datagram.size() > around;
}

bool UdpPort::has_frame_kind(std::span<const std::byte> datagram) {
    const auto kind = static_cast<Kind>(datagram[0]);
    const bool known = kind == Kind::kFrame || kind == Kind::kToAll || kind == Kind::kToGroup;
    if (!known) ++drops_.damaged;
    return known;
}

Segment* UdpPort::new_segment() {
    Segment* const segment = rx_pool_.get();
    if (segment == nullptr) ++no_frame_;
    return segment;
}

/// Writes the Ethernet header of an open datagram's frame: it has the names of the nodes.
void UdpPort::put_header(Segment& segment, std::span<const std::byte> datagram) {
    Head head;  // a datagram that was opened here is overwritten
    std::memcpy(head.data(), datagram.data(), head.size());
    std::byte* const frame = segment.frame;
    std::memcpy(frame, &header_, sizeof header_);
    Mac to = header_.destination;
    if (static_cast<Kind>(head[0]) != Kind::kFrame && read_head(head, to))
        std::memcpy(frame, &to, sizeof to);
    segment.length = static_cast<std::uint32_t>(kEthernetOctets + datagram.size() - kHeadOctets);
}

/// Makes a frame of a sealed datagram, which is opened where the frame's body belongs.
Segment* UdpPort::open_frame(std::span<const std::byte> datagram, const Landing* landing) {
    Segment* const segment = new_segment();
    if (segment == nullptr) return nullptr;
    std::byte* const text = segment->frame + kEthernetOctets - kHeadOctets;
    const std::span<const std::byte> opened(text, datagram.size() - seal::kSealOctets);
    const bool good = keys_->open(*ring_, datagram, text, failed_at_);
    if (!good) {
        ++drops_.unsealed;
        failed_at_ = monotonic_now() / kMillisecond;
    }
    const bool is_part = good && static_cast<Kind>(opened[0]) == Kind::kPart;
    if (!good || is_part || !has_frame_kind(opened)) {
        const bool is_last = is_part && take_part(opened);
        port::FramePool::put(segment);
        return is_last ? copy_out(peers_.parts_of(from_)->octets, landing) : nullptr;
    }
    put_header(*segment, opened);
    copied_bytes_ += opened.size() - kHeadOctets;
    if (landing == nullptr || segment->length <= landing->front_octets) return segment;
    const Landed landed = landing->where(landing->context, segment->frame, segment->length);
    if (landed.to == nullptr) return segment;
    ULC_CHECK(landed.octets <= segment->length - kEthernetOctets);
    std::memcpy(landed.to, segment->frame + segment->length - landed.octets, landed.octets);
    copied_bytes_ += landed.octets;
    segment->tail = landed.to;
    segment->tail_octets = landed.octets;
    return segment;
}

Segment* UdpPort::take_open(std::span<const std::byte> datagram, const Landing* landing) {
    if (static_cast<Kind>(datagram[0]) != Kind::kPart)
        return has_frame_kind(datagram) ? copy_out(datagram, landing) : nullptr;
    return take_part(datagram) ? copy_out(peers_.parts_of(from_)->octets, landing) : nullptr;
}

/// Adds a part to those of its datagram. True: they are an open datagram now. A part that does not
/// follow the one before is dropped with those: its frame is sent again.
bool UdpPort::take_part(std::span<const std::byte> part) {
    Peers::Assembly& parts = *peers_.parts_of(from_);
    PartHead head;
    std::memcpy(&head, part.data(), sizeof head);
    const unsigned number = head.number & ~unsigned{kLastPart};
    const std::span<const std::byte> piece = part.subspan(sizeof head);
    if (number == 0) {
        parts.datagram = head.datagram;
        parts.next = 0;
        parts.octets.clear();
    }
    const std::size_t octets = parts.octets.size() + piece.size();
    const bool follows = head.datagram == parts.datagram && number == parts.next &&
                         number < kPartsMax && octets <= frame_max_ - kEthernetOctets + kHeadOctets;
    if (!follows) {
        ++drops_.damaged;
        parts.next = 0;
        return false;
    }
    parts.octets.insert(parts.octets.end(), piece.begin(), piece.end());
    ++parts.next;
    if ((head.number & kLastPart) == 0) return false;
    parts.next = 0;
    if (octets <= kHeadOctets) ++drops_.damaged;
    return octets > kHeadOctets && has_frame_kind(parts.octets);
}

/// Makes a frame of an open datagram.
Segment* UdpPort::copy_out(std::span<const std::byte> datagram, const Landing* landing) {
    Segment* const segment = new_segment();
    if (segment == nullptr) return nullptr;
    put_header(*segment, datagram);
    std::byte* const frame = segment->frame;
    const std::span<const std::byte> body = datagram.subspan(kHeadOctets);
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
