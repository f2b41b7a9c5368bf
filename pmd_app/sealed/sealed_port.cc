// SPDX-License-Identifier: BSD-3-Clause
#include "sealed/sealed_port.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "wire/mac_text.h"

namespace ulc::sealed {
namespace {

using udp::kEthernetOctets;
using udp::kHeadOctets;
using udp::Kind;

/// Octets by which a sealed frame is longer than the engine's.
constexpr std::uint16_t kAround = kHeadOctets + seal::kSealOctets;
/// Least length of an Ethernet frame. Devices fill up shorter ones, so that a tag would not be
/// their end.
constexpr std::size_t kFrameOctetsMin = 60;

Mac destination_of(const Segment& frame) noexcept {
    Mac mac;
    std::memcpy(&mac, frame.frame, sizeof mac);
    return mac;
}

Mac source_of(const Segment& frame) noexcept {
    Mac mac;
    std::memcpy(&mac, frame.frame + sizeof mac, sizeof mac);
    return mac;
}

/// Returns the form that an address of the segment has in the table of nodes.
udp::Address address_of(const Mac& mac) noexcept {
    udp::Address address;
    std::ranges::copy(mac.octets, address.ip.end() - mac.octets.size());
    address.port = 1;
    return address;
}

Mac mac_of(const udp::Address& address) noexcept {
    Mac mac;
    std::copy_n(address.ip.end() - mac.octets.size(), mac.octets.size(), mac.octets.begin());
    return mac;
}

/// Writes an Ethernet header in front of a frame.
void put_header(std::byte* frame, const Mac& to, const Mac& from,
                std::uint16_t ether_type) noexcept {
    const Be16 type{ether_type};
    std::memcpy(frame, &to, sizeof to);
    std::memcpy(frame + sizeof to, &from, sizeof from);
    std::memcpy(frame + 2 * sizeof to, &type, sizeof type);
}

bool has_type(const Segment& frame, std::uint16_t ether_type) noexcept {
    Be16 type;
    if (frame.length < kEthernetOctets) return false;
    std::memcpy(&type, frame.frame + 2 * sizeof(Mac), sizeof type);
    return type == ether_type;
}

}  // namespace

SealedPort::SealedPort(const Port& below, const PortOptions& options,
                       const udp::PeersConfig& config, std::unique_ptr<seal::Keyring> ring)
    : below_(below),
      options_(options),
      ring_(std::move(ring)),
      peers_(config),
      frame_max_(below.info.mtu - kAround + std::uint32_t{kEthernetOctets}),
      address_(below.info.mac) {}

SealedPort::~SealedPort() {
    for (Segment* const segment : waiting_)
        below_.pool.drop(segment);
}

Err SealedPort::open(const Port& below, const PortOptions& options,
                     std::unique_ptr<SealedPort>& out, std::string& why) {
    ULC_CHECK(below.info.links == 1 && options.clock != nullptr);
    if (below.info.mtu < udp::kControlMax) {
        why = "a sealed net needs an MTU of " + std::to_string(udp::kControlMax) + ", and has " +
              std::to_string(below.info.mtu) + "; raise it on every node";
        return Err::kInvalid;
    }
    udp::PeersConfig config{udp::name_of_bits(options.seed.number(0)), options.seed};
    std::unique_ptr<seal::Keyring> ring;
    if (const Err e = seal::make_keyring(options.key_file, config.own, ring, why); e != Err::kOk)
        return e;
    config.ring = ring.get();
    std::unique_ptr<SealedPort> port(new SealedPort(below, options, config, std::move(ring)));
    const std::uint32_t octets = port->frame_max_;
    if (const Err e = port->tx_pool_.create(options.segments, octets, why); e != Err::kOk) return e;
    if (const Err e = port->rx_pool_.create(options.segments + kBurst, octets, why); e != Err::kOk)
        return e;
    port->fill_table();
    port->look();
    out = std::move(port);
    return Err::kOk;
}

void SealedPort::fill_table() {
    port_.context = this;
    port_.info = below_.info;
    port_.info.mac = peers_.own();
    port_.info.mtu -= kAround;
    port_.info.mtu_sure = std::min<std::uint16_t>(below_.info.mtu_sure - kAround, port_.info.mtu);
    port_.info.rx_frames = options_.segments;
    port_.info.gathers = true;
    port_.pool = tx_pool_.table();
    port_.rx = [](void* context, Segment** frames, std::uint16_t n) {
        return static_cast<SealedPort*>(context)->receive(frames, n);
    };
    port_.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        return static_cast<SealedPort*>(context)->send(frames, n);
    };
    port_.tx_pending = [](void* context) { return static_cast<SealedPort*>(context)->pending(); };
    port_.link_up = [](void* context) {
        auto& self = *static_cast<SealedPort*>(context);
        const bool up = self.below_.link_up == nullptr || self.below_.link_up(self.below_.context);
        self.look();
        return up;
    };
    if (below_.set_multicasts != nullptr)
        port_.set_multicasts = [](void* context, std::span<const Mac> addresses) {
            auto& below = static_cast<SealedPort*>(context)->below_;
            return below.set_multicasts(below.context, addresses);
        };
    if (below_.interface != nullptr) {
        port_.interface = [](void* context) -> const InterfaceState* {
            auto& self = *static_cast<SealedPort*>(context);
            return self.interface_.name.empty() ? nullptr : &self.interface_;
        };
        port_.take_address = [](void* context) {
            return static_cast<SealedPort*>(context)->peers_.own();
        };
    }
    port_.missed = [](void* context) {
        const auto& self = *static_cast<const SealedPort*>(context);
        const bool asks = self.below_.missed != nullptr;
        return self.no_frame_ + (asks ? self.below_.missed(self.below_.context) : 0);
    };
    port_.unanswered = [](void* context) {
        return static_cast<const SealedPort*>(context)->words_of_strangers();
    };
    port_.drops = [](void* context) {
        const auto& self = *static_cast<const SealedPort*>(context);
        PortDrops drops = self.drops_;
        if (self.below_.drops != nullptr) drops += self.below_.drops(self.below_.context);
        drops.damaged += self.peers_.counts().malformed;
        drops.wrong_source += self.peers_.counts().unproven + self.peers_.counts().refused;
        drops.unsealed += self.peers_.counts().unsealed;
        return drops;
    };
    port_.costs = [](void* context) {
        const auto& self = *static_cast<const SealedPort*>(context);
        PortCosts costs;
        if (self.below_.costs != nullptr) costs = self.below_.costs(self.below_.context);
        costs.copied_bytes += self.copied_bytes_;
        return costs;
    };
}

bool SealedPort::add_secret(const seal::Secret& secret) noexcept {
    call_wait_ = kCallFirst;
    next_call_ = 0;
    return ring_->add(secret);
}

// ---- nodes --------------------------------------------------------------------------------------

void SealedPort::look() {
    const Nanos now = options_.clock();
    follow_address();
    if (now >= next_call_ && ring_->count() > 0) {
        peers_.call_all(address_of(kBroadcastMac));
        next_call_ = now + call_wait_;
        call_wait_ = std::min(2 * call_wait_, kCallAgain);
    }
    peers_.on_timer(now);
    know_sender(from_);  // it may have been forgotten
    // Not when it answered: only now, maybe, has it got an answer, and so this node's keys.
    udp::Address newcomer;
    while (peers_.next_new(newcomer))
        repeat_broadcast(newcomer);
    answer();
}

/// Takes the interface's address as this station's. The node keeps its name.
void SealedPort::follow_address() {
    const InterfaceState* const state =
        below_.interface == nullptr ? nullptr : below_.interface(below_.context);
    if (state == nullptr) return;
    if (state->mac != address_) {
        address_ = below_.take_address(below_.context);
        call_wait_ = kCallFirst;
        next_call_ = 0;
    }
    interface_.name = state->name;
    interface_.mac = interface_.own = peers_.own();
    interface_.mtu = state->mtu > kAround ? static_cast<std::uint16_t>(state->mtu - kAround) : 0;
}

/// Sends what is due between nodes. It is asked again if it is lost, so nothing waits for space.
void SealedPort::answer() {
    udp::Address to;
    while (true) {
        Segment* segment = below_.pool.get();
        if (segment == nullptr) return;
        std::byte* const body = segment->frame + kEthernetOctets;
        const std::size_t octets = peers_.next_tx(to, body);
        put_header(segment->frame, mac_of(to), address_, options_.ether_type);
        segment->length = static_cast<std::uint32_t>(kEthernetOctets + octets);
        if (octets > 0 && below_.tx(below_.context, &segment, 1) == 1) continue;
        below_.pool.drop(segment);
        if (octets == 0) return;
        ++drops_.unsendable;
    }
}

void SealedPort::know_sender(const Mac& from) noexcept {
    from_ = from;
    name_ = peers_.name_of(address_of(from));
    keys_ = name_ == Mac{} ? nullptr : peers_.keys_of(address_of(from));
}

/// Names a node that is there and has no key of this one, as any station may pretend (I-17).
std::string SealedPort::words_of_strangers() const {
    if (stranger_ == Mac{} || peers_.name_of(address_of(stranger_)) != Mac{}) return {};
    return "the engine at " + text_of(stranger_) +
           " has another key, or is open: give all engines of the segment one --seal";
}

// ---- sending ------------------------------------------------------------------------------------

std::uint16_t SealedPort::send(Segment* const* frames, std::uint16_t n) {
    std::uint16_t done = 0;
    while (done < n && flush()) {
        const std::uint16_t first = done;
        while (done < n && take(*frames[done]))
            port::FramePool::put(frames[done++]);
        if (done == first) break;  // the port below has no segment
    }
    (void)flush();
    return done;
}

/// Returns false if there is no space for the frame.
bool SealedPort::take(const Segment& frame) {
    const Mac to = destination_of(frame);
    if (frame.length > frame_max_) {
        ++drops_.unsendable;
        return true;
    }
    if (udp::is_group(to)) return take_for_all(frame, to);
    const udp::Peers::Peer* const peer = peers_.find(to);
    if (peer == nullptr) {
        ++drops_.unsendable;
        return true;
    }
    if (waiting_.size() == kBurst || below_.pool.available(below_.pool.context) == 0) return false;
    put(datagram_of(frame), mac_of(peer->address), peer->keys->secret(), to);
    return true;
}

/// Seals the frame once for each secret that a node here has proved.
bool SealedPort::take_for_all(const Segment& frame, const Mac& to) {
    std::size_t secrets = 0;
    for (std::size_t secret = 0; secret < ring_->count(); ++secret)
        if (peers_.holders_of(secret) > 0) ++secrets;
    if (kBurst - waiting_.size() < secrets || below_.pool.available(below_.pool.context) < secrets)
        return false;
    const std::span<const std::byte> datagram = datagram_of(frame);
    if (to == kBroadcastMac) last_to_all_.assign(datagram.begin(), datagram.end());
    for (std::size_t secret = 0; secret < ring_->count(); ++secret)
        if (peers_.holders_of(secret) > 0) put(datagram, to, secret, Mac{});
    return true;
}

/// Writes a frame as an open datagram, at least so long that the sealed one needs no filling.
std::span<const std::byte> SealedPort::datagram_of(const Segment& frame) {
    const std::size_t octets = frame.length - kEthernetOctets + kHeadOctets;
    const std::size_t least = kFrameOctetsMin - kEthernetOctets - seal::kSealOctets;
    datagram_.assign(std::max(octets, least), std::byte{0});
    const std::uint32_t tail = frame.tail == nullptr ? 0 : frame.tail_octets;
    const std::size_t front = octets - kHeadOctets - tail;
    const udp::Head head = udp::head_of(destination_of(frame));
    std::ranges::copy(head, datagram_.begin());
    std::memcpy(&datagram_[kHeadOctets], frame.frame + kEthernetOctets, front);
    if (tail > 0) std::memcpy(&datagram_[kHeadOctets + front], frame.tail, tail);
    copied_bytes_ += octets;
    return datagram_;
}

/// Adds a sealed frame to those that wait. There is space for it.
void SealedPort::put(std::span<const std::byte> datagram, const Mac& to, std::size_t secret,
                     const Mac& receiver) {
    Segment* const segment = below_.pool.get();
    if (segment == nullptr) {  // available() was an estimate
        ++drops_.unsendable;
        return;
    }
    put_header(segment->frame, to, address_, options_.ether_type);
    std::byte* const body = segment->frame + kEthernetOctets;
    std::memcpy(body + sizeof(seal::SealHead), datagram.data(), datagram.size());
    ring_->seal(secret, peers_.cipher(), receiver, body, datagram.size());
    segment->length =
        static_cast<std::uint32_t>(kEthernetOctets + datagram.size() + seal::kSealOctets);
    ULC_CHECK(waiting_.push_back(segment));
}

/// Offers what waits to the port below. True: nothing waits any more.
bool SealedPort::flush() {
    if (waiting_.empty()) return true;
    const auto count = static_cast<std::uint16_t>(waiting_.size());
    const std::uint16_t sent = below_.tx(below_.context, waiting_.begin(), count);
    std::copy(waiting_.begin() + sent, waiting_.end(), waiting_.begin());
    for (std::uint16_t n = 0; n < sent; ++n)
        waiting_.pop_back();
    return waiting_.empty();
}

std::uint32_t SealedPort::pending() {
    (void)flush();
    if (below_.tx_failed != nullptr)
        while (Segment* const failed = below_.tx_failed(below_.context)) {
            below_.pool.drop(failed);
            ++drops_.unsendable;
        }
    const auto waiting = static_cast<std::uint32_t>(waiting_.size());
    return waiting + (below_.tx_pending == nullptr ? 0 : below_.tx_pending(below_.context));
}

/// Gives a node that was not known the last broadcast, which may have begun a job.
void SealedPort::repeat_broadcast(const udp::Address& to) {
    const udp::Peers::Peer* const peer = peers_.find(peers_.name_of(to));
    if (last_to_all_.empty() || peer == nullptr || waiting_.size() == kBurst) return;
    put(last_to_all_, mac_of(to), peer->keys->secret(), Mac{});
    (void)flush();
}

// ---- receiving ----------------------------------------------------------------------------------

std::uint16_t SealedPort::receive(Segment** out, std::uint16_t n) {
    std::array<Segment*, kBurst> came;
    const std::uint16_t count =
        below_.rx(below_.context, came.data(), std::min<std::uint16_t>(n, kBurst));
    std::uint16_t received = 0;
    for (std::uint16_t i = 0; i < count; ++i) {
        const Segment& frame = *came[i];
        Segment* const opened =
            has_type(frame, options_.ether_type) ? open_frame(frame) : pass_on(frame);
        if (opened != nullptr) out[received++] = opened;
        below_.pool.drop(came[i]);
    }
    return received;
}

/// Returns the sealed datagram of a node that answered, if the frame holds one; empty: it does not.
std::span<const std::byte> SealedPort::sealed_in(const Segment& frame) {
    const Mac from = source_of(frame);
    const std::span<const std::byte> body(frame.frame + kEthernetOctets,
                                          frame.length - kEthernetOctets);
    if (from == address_) {
        ++drops_.own_echo;
        return {};
    }
    if (body.empty()) {
        ++drops_.damaged;
        return {};
    }
    const auto kind = static_cast<Kind>(body[0]);
    if (kind == Kind::kSealedHello || kind == Kind::kSealedWelcome) {
        const std::uint64_t unsealed = peers_.counts().unsealed;
        peers_.on_datagram(address_of(from), body, options_.clock());
        if (peers_.counts().unsealed != unsealed) stranger_ = from;
        know_sender(from);
        answer();
        return {};
    }
    if (from != from_) know_sender(from);
    if (kind != Kind::kSealed && kind != Kind::kSealedForAll) {
        ++drops_.unsealed;
        stranger_ = from;
    } else if (keys_ == nullptr) {
        ++drops_.wrong_source;
    } else if (body.size() > frame_max_ - kEthernetOctets + kAround) {
        ++drops_.too_long;
    } else if (body.size() <= kAround) {
        ++drops_.damaged;
    } else {
        return body;
    }
    return {};
}

/// Returns the frame in a sealed one; nullptr: there is none for the engine.
Segment* SealedPort::open_frame(const Segment& sealed) {
    const std::span<const std::byte> body = sealed_in(sealed);
    Segment* const segment = body.empty() ? nullptr : new_segment();
    if (segment == nullptr) return nullptr;
    // The text's head lies where the end of the Ethernet header goes.
    std::byte* const text = segment->frame + kEthernetOctets - kHeadOctets;
    const bool good = keys_->open(*ring_, body, text, failed_at_);
    if (!good) {
        ++drops_.unsealed;
        failed_at_ = options_.clock() / kMillisecond;
    }
    udp::Head head;
    std::memcpy(head.data(), text, head.size());
    Mac to = peers_.own();
    if (!good || !udp::read_head(head, to)) {
        if (good) ++drops_.damaged;
        port::FramePool::put(segment);
        return nullptr;
    }
    put_header(segment->frame, to, name_, options_.ether_type);
    segment->length = static_cast<std::uint32_t>(body.size() - kAround + kEthernetOctets);
    copied_bytes_ += body.size() - kAround;
    return segment;
}

/// Returns the front of a frame of another type, which the engine counts.
Segment* SealedPort::pass_on(const Segment& foreign) {
    Segment* const segment = new_segment();
    if (segment == nullptr) return nullptr;
    segment->length = std::min(foreign.length, frame_max_);
    std::memcpy(segment->frame, foreign.frame, segment->length);
    return segment;
}

Segment* SealedPort::new_segment() {
    Segment* const segment = rx_pool_.get();
    if (segment == nullptr) ++no_frame_;
    return segment;
}

}  // namespace ulc::sealed
