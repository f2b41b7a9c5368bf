// SPDX-License-Identifier: BSD-3-Clause
#include "ip/ip_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "udp/datagram.h"

namespace ulc::ip {
namespace {

/// Least MTU of a link whose nodes have UDP datagrams of any use (RFC 791 §3.1).
constexpr std::uint16_t kMtuMin = 576;
constexpr std::size_t kV4At = 12;  ///< place of an IPv4 address in udp::Address

udp::Address address_of(Ipv4 ip, std::uint16_t port) noexcept {
    udp::Address address;
    const Be32 octets{ip};
    address.ip[kV4At - 2] = address.ip[kV4At - 1] = 0xff;
    std::memcpy(&address.ip[kV4At], &octets, sizeof octets);
    address.port = port;
    return address;
}

/// Copies the octets of a message, in order.
class Reader {
public:
    explicit Reader(const udp::Message& message) noexcept : piece_(message.pieces) {}
    void copy(std::byte* to, std::size_t octets) noexcept {
        while (octets > 0) {
            const std::size_t some = std::min(octets, piece_->iov_len - at_);
            std::memcpy(to, static_cast<const std::byte*>(piece_->iov_base) + at_, some);
            to += some;
            octets -= some;
            at_ += some;
            if (at_ < piece_->iov_len) continue;
            ++piece_;
            at_ = 0;
        }
    }

private:
    const iovec* piece_;
    std::size_t at_ = 0;
};

}  // namespace

IpSocket::IpSocket(const Port& below, const SocketOptions& options, std::uint16_t packet_octets)
    : below_(below),
      station_{below.info.mac, options.address, options.prefix, options.port, options.vlan},
      gateway_(options.gateway),
      clock_(options.clock),
      local_(address_of(options.address, options.port)),
      packet_octets_(packet_octets),
      neighbours_(options.seed) {}

IpSocket::~IpSocket() {
    if (given_ != nullptr) below_.pool.drop(given_);
    for (; came_next_ < came_count_; ++came_next_)
        below_.pool.drop(came_[came_next_]);
    for (Segment* const segment : to_send_)
        below_.pool.drop(segment);
    for (const Unresolved& each : unresolved_)
        below_.pool.drop(each.frame);
}

Err IpSocket::open(const Port& below, const SocketOptions& options, std::unique_ptr<IpSocket>& out,
                   std::string& why) {
    ULC_CHECK(below.info.links == 1 && options.clock != nullptr && options.port != 0);
    Segment* const one = below.pool.get();
    ULC_CHECK(one != nullptr);
    const std::uint32_t space = one->capacity;
    below.pool.drop(one);
    const std::size_t link = kLinkOctets + (options.vlan == 0 ? 0 : kTagOctets);
    const auto packet =
        static_cast<std::uint16_t>(std::min<std::size_t>(below.info.mtu, space - link));
    if (packet < kMtuMin) {
        why = "IP needs an MTU of " + std::to_string(kMtuMin) + ", and the device has " +
              std::to_string(packet) + "; raise it on every node";
        return Err::kInvalid;
    }
    out.reset(new IpSocket(below, options, packet));
    return Err::kOk;
}

// ---- sending ------------------------------------------------------------------------------------

std::size_t IpSocket::send(std::span<const udp::Message> messages, int& error) noexcept {
    error = 0;
    std::size_t sent = 0;
    for (; sent < messages.size(); ++sent) {
        if (to_send_.size() >= kBurst && !flush() && to_send_.size() >= kBurst) error = EAGAIN;
        if (error == 0) error = take(messages[sent]);
        if (error != 0) break;
    }
    if (error == EAGAIN) ++refusals_;
    (void)flush();
    return sent;
}

/// Takes a message whole, or returns why not.
int IpSocket::take(const udp::Message& message) noexcept {
    const udp::Address to = udp::address_of(message.to->any);
    if (!to.is_v4()) {
        drop(Reason::kNoRoute);
        return EAFNOSUPPORT;
    }
    std::size_t octets = 0;
    for (std::size_t n = 0; n < message.piece_count; ++n)
        octets += message.pieces[n].iov_len;
    if (octets == 0) return 0;
    const std::size_t each = message.datagram_octets == 0 ? octets : message.datagram_octets;
    const std::size_t frames = (octets + each - 1) / each;
    ULC_CHECK(frames <= udp::kDatagramsMax);
    if (std::min(each, octets) + kAroundOctets > packet_octets_) {
        drop(Reason::kTooLong, frames);
        return EMSGSIZE;
    }
    Be32 ip;
    std::memcpy(&ip, &to.ip[kV4At], sizeof ip);
    if (to == local_ && frames == 1) {
        keep_for_self(message, octets);
        return 0;
    }
    Ipv4 hop = 0;
    if (const int error = hop_to(ip, hop); error != 0) {
        drop(Reason::kNoRoute, frames);
        return error;
    }
    const Mac* const mac = neighbours_.find(hop);
    if (mac == nullptr) {
        if (!neighbours_.ask(hop, clock_())) {
            drop(Reason::kTooManyEntries, frames);
            return 0;
        }
        send_questions();
    }
    if (mac == nullptr && unresolved_.size() + frames > kUnresolvedMax) {
        drop(Reason::kTooManyWait, frames);
        return 0;
    }
    if (below_.pool.available(below_.pool.context) < frames) return EAGAIN;
    put(message, octets, each, hop, mac);
    return 0;
}

/// Sets `hop` to the node of this segment that frames for an address go to.
int IpSocket::hop_to(Ipv4 to, Ipv4& hop) noexcept {
    if (!station_.may_be_node(to)) return EACCES;
    if (to == station_.address) return ECONNREFUSED;  // another port, where nothing is
    hop = station_.is_on_link(to) ? to : gateway_;
    return hop == 0 ? ENETUNREACH : 0;
}

/// Makes frames of a message. mac: of the next hop; nullptr: they wait for it.
void IpSocket::put(const udp::Message& message, std::size_t octets, std::size_t each, Ipv4 hop,
                   const Mac* mac) noexcept {
    const udp::Address to = udp::address_of(message.to->any);
    Be32 ip;
    std::memcpy(&ip, &to.ip[kV4At], sizeof ip);
    Reader reader(message);
    for (std::size_t at = 0; at < octets; at += each) {
        const std::size_t some = std::min(each, octets - at);
        Segment* const segment = below_.pool.get();
        if (segment == nullptr) {  // available() was an estimate
            drop(Reason::kNoFrame, (octets - at + each - 1) / each);
            return;
        }
        const std::size_t link =
            put_link(segment->frame, station_, mac == nullptr ? Mac{} : *mac, kTypeIpv4);
        put_datagram(segment->frame + link, station_, ip, to.port, some);
        reader.copy(segment->frame + link + kAroundOctets, some);
        segment->length = static_cast<std::uint32_t>(link + kAroundOctets + some);
        copied_bytes_ += some;
        ULC_CHECK(mac == nullptr ? unresolved_.push_back({segment, hop})
                                 : to_send_.push_back(segment));
    }
}

/// Keeps a datagram to the own address, as another node may name it. The kernel's socket gives it
/// too, so that UdpPort finds that the address is its own.
void IpSocket::keep_for_self(const udp::Message& message, std::size_t octets) {
    for_self_.resize(octets);
    Reader(message).copy(for_self_.data(), octets);
    has_for_self_ = true;
}

/// Offers what waits to the port below. True: nothing waits any more.
bool IpSocket::flush() noexcept {
    if (below_.tx_failed != nullptr)
        while (Segment* const failed = below_.tx_failed(below_.context)) {
            below_.pool.drop(failed);
            drop(Reason::kGivenUp);
        }
    while (!to_send_.empty()) {
        const auto count = static_cast<std::uint16_t>(std::min(to_send_.size(), kBurst));
        const std::uint16_t sent = below_.tx(below_.context, to_send_.begin(), count);
        std::copy(to_send_.begin() + sent, to_send_.end(), to_send_.begin());
        for (std::uint16_t n = 0; n < sent; ++n)
            to_send_.pop_back();
        if (sent < count) return false;
    }
    return true;
}

/// Sends the frames that waited for the MAC address of a node.
void IpSocket::send_resolved(Ipv4 hop, const Mac& mac) noexcept {
    std::size_t kept = 0;
    for (const Unresolved& each : unresolved_) {
        if (each.hop != hop) {
            unresolved_[kept++] = each;
            continue;
        }
        std::memcpy(each.frame->frame, &mac, sizeof mac);
        ULC_CHECK(to_send_.push_back(each.frame));
    }
    while (unresolved_.size() > kept)
        unresolved_.pop_back();
    (void)flush();
}

/// Drops the frames whose questions had no reply.
void IpSocket::drop_unanswered() noexcept {
    std::size_t kept = 0;
    for (const Unresolved& each : unresolved_) {
        if (neighbours_.is_asked(each.hop)) {
            unresolved_[kept++] = each;
            continue;
        }
        below_.pool.drop(each.frame);
        drop(Reason::kNoNeighbour);
    }
    while (unresolved_.size() > kept)
        unresolved_.pop_back();
}

/// Sends the questions of the table at once, since it counts a second from their time.
void IpSocket::send_questions() noexcept {
    Ipv4 asked = 0;
    while (neighbours_.next_question(asked))
        send_arp(kArpRequest, kBroadcastMac, Mac{}, asked);
}

/// Sends ARP. It is asked again if it is lost, so nothing waits for space.
void IpSocket::send_arp(std::uint16_t operation, const Mac& to, const Mac& target,
                        Ipv4 target_ip) noexcept {
    Segment* const segment = below_.pool.get();
    if (segment == nullptr) return drop(Reason::kNoFrame);
    const std::size_t link = put_link(segment->frame, station_, to, kTypeArp);
    put_arp(segment->frame + link, station_, operation, target, target_ip);
    send_now(segment, link + sizeof(ArpBody));
}

/// Sends a frame of that length, or drops it.
void IpSocket::send_now(Segment* segment, std::size_t octets) noexcept {
    segment->length = static_cast<std::uint32_t>(octets);
    if (below_.tx(below_.context, &segment, 1) == 1) return;
    below_.pool.drop(segment);
    drop(Reason::kNoFrame);
}

std::size_t IpSocket::unsent() noexcept {
    (void)flush();
    const std::size_t pending =
        below_.tx_pending == nullptr ? 0 : below_.tx_pending(below_.context);
    return (to_send_.size() + pending) * (packet_octets_ + station_.link_octets());
}

// ---- receiving ----------------------------------------------------------------------------------

bool IpSocket::receive(udp::Arrived& out) noexcept {
    if (given_ != nullptr) below_.pool.drop(given_);
    given_ = nullptr;
    if (has_for_self_) {
        has_for_self_ = false;
        give(station_.address, station_.port, for_self_, out);
        return true;
    }
    if (!to_send_.empty()) (void)flush();
    if (came_next_ == came_count_) {
        came_count_ = below_.rx(below_.context, came_.data(), kBurst);
        came_next_ = 0;
    }
    while (came_next_ < came_count_) {
        Segment* const frame = came_[came_next_++];
        if (read(*frame, out)) {
            given_ = frame;
            return true;
        }
        below_.pool.drop(frame);
    }
    return false;
}

/// Reads a frame. False: it holds no datagram for this socket.
bool IpSocket::read(const Segment& frame, udp::Arrived& out) noexcept {
    LinkBody body;
    Packet packet;
    Reason reason = read_link({frame.frame, frame.length}, station_, body);
    if (reason == Reason::kNone && body.type == kTypeArp) {
        take_arp(body.octets);
        return false;
    }
    if (reason == Reason::kNone && body.type != kTypeIpv4) reason = Reason::kOtherProtocol;
    if (reason == Reason::kNone) reason = read_packet(body.octets, station_, packet);
    if (reason == Reason::kNone && packet.protocol == kIcmp) {
        Mac from;
        std::memcpy(&from, frame.frame + sizeof from, sizeof from);
        reason = answer_echo(packet, from);
    } else if (reason == Reason::kNone) {
        Datagram datagram;
        reason = read_datagram(packet, station_, datagram);
        if (reason == Reason::kNone) {
            give(datagram.from, datagram.from_port, datagram.octets, out);
            return true;
        }
    }
    if (reason != Reason::kNone) drop(reason);
    return false;
}

/// Answers a ping. The reply goes back to the station that sent the frame, so that a ping, whose
/// source address proves nothing, adds no entry to the table of ARP.
Reason IpSocket::answer_echo(const Packet& request, const Mac& from) noexcept {
    if (const Reason reason = check_echo(request); reason != Reason::kNone) return reason;
    const std::size_t octets = sizeof(Ipv4Header) + request.octets.size();
    if (octets > packet_octets_) return Reason::kTooLong;
    const Nanos now = clock_();
    if (now < next_echo_) return Reason::kTooManyEchoes;
    Segment* const segment = below_.pool.get();
    if (segment == nullptr) return Reason::kNoFrame;
    next_echo_ = now + kEchoApart;
    const std::size_t link = put_link(segment->frame, station_, from, kTypeIpv4);
    put_echo_reply(segment->frame + link, station_, request);
    send_now(segment, link + octets);
    return Reason::kNone;
}

void IpSocket::give(Ipv4 from, std::uint16_t port, std::span<const std::byte> octets,
                    udp::Arrived& out) noexcept {
    from_ = udp::socket_address(address_of(from, port));
    out = {&from_.any, octets, octets.size(), false};
}

void IpSocket::take_arp(std::span<const std::byte> body) {
    ArpBody arp;
    if (const Reason reason = read_arp(body, station_, arp); reason != Reason::kNone) {
        drop(reason);
        return;
    }
    if (arp.operation == kArpReply) {
        if (neighbours_.on_reply(arp.sender_ip, arp.sender, clock_())) {
            send_resolved(arp.sender_ip, arp.sender);
        } else {
            drop(Reason::kUnaskedArp);
            send_questions();
        }
        return;
    }
    if (arp.sender_ip != 0) neighbours_.on_claim(arp.sender_ip, arp.sender, clock_());
    send_questions();
    if (arp.target_ip == station_.address)
        send_arp(kArpReply, arp.sender, arp.sender, arp.sender_ip);
}

// ---- time ---------------------------------------------------------------------------------------

bool IpSocket::look() {
    const bool is_up = below_.link_up == nullptr || below_.link_up(below_.context);
    follow_address();
    // Other nodes learn at once that this address has moved to this machine (RFC 5227 §3).
    if (is_up && !was_up_) send_arp(kArpRequest, kBroadcastMac, Mac{}, station_.address);
    was_up_ = is_up;
    neighbours_.on_timer(clock_());
    send_questions();
    drop_unanswered();
    (void)flush();
    return is_up;
}

/// Takes the interface's MAC address as this station's. Frames that wait have the old one.
void IpSocket::follow_address() {
    const InterfaceState* const state =
        below_.interface == nullptr ? nullptr : below_.interface(below_.context);
    if (state == nullptr || state->mac == station_.mac) return;
    station_.mac = below_.take_address(below_.context);
    was_up_ = false;
}

// ---- counts -------------------------------------------------------------------------------------

std::uint64_t IpSocket::overruns() const noexcept {
    return below_.missed == nullptr ? 0 : below_.missed(below_.context);
}

PortCosts IpSocket::costs() const {
    PortCosts costs;
    if (below_.costs != nullptr) costs = below_.costs(below_.context);
    costs.refusals += refusals_;
    costs.copied_bytes += copied_bytes_;
    return costs;
}

/// Frames that send() refused are not here: its caller counts them.
PortDrops IpSocket::drops() const {
    PortDrops drops;
    if (below_.drops != nullptr) drops = below_.drops(below_.context);
    drops.vlan += dropped(Reason::kOtherVlan);
    drops.other_station += dropped(Reason::kOtherStation);
    drops.wrong_source += dropped(Reason::kBadSource) + dropped(Reason::kAddressInUse);
    for (const Reason reason : {Reason::kShort, Reason::kBadHeader, Reason::kBadChecksum,
                                Reason::kFragment, Reason::kBadArp})
        drops.damaged += dropped(reason);
    for (const Reason reason : {Reason::kNoNeighbour, Reason::kTooManyWait, Reason::kTooManyEntries,
                                Reason::kNoFrame, Reason::kGivenUp})
        drops.unsendable += dropped(reason);
    return drops;
}

std::string IpSocket::drops_as_text() const {
    std::string text;
    for (std::size_t n = 0; n < kReasons; ++n)
        if (dropped_[n] > 0)
            text += (text.empty() ? "" : ", ") + std::to_string(dropped_[n]) + " " +
                    text_of(static_cast<Reason>(n));
    return text;
}

}  // namespace ulc::ip
