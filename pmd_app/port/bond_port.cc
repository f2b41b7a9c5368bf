// SPDX-License-Identifier: BSD-3-Clause
#include "port/bond_port.h"

#include <algorithm>

#include "base/check.h"
#include "port/bond_frame.h"

namespace ulc::port {
namespace {

/// Frames of largest size by which a packet on one link may fall behind those on another: what two
/// links hold in port and switch when both are kept equally full.
constexpr Nanos kLateFrames = 4;
/// The same where no speed is known.
constexpr Nanos kLateUnknown = 500 * kMicrosecond;
/// Bursts that one rx() asks each link for.
constexpr std::size_t kAsksMost = 4;

}  // namespace

BondPort::BondPort(std::span<const Port> links, const BondConfig& config)
    : count_(links.size()),
      config_(config),
      watch_(config.seed),
      places_(config.seed.number(1)),
      asker_places_(config.seed.number(2)) {
    ULC_CHECK(count_ >= 1 && count_ <= kNodeLinksMax);
    info_ = links[0].info;
    info_.links = static_cast<std::uint8_t>(count_);
    bool rates_known = info_.link_bits_per_second != 0;
    for (std::size_t n = 0; n < count_; ++n) {
        links_[n].port = links[n];
        own_[n].mac = links[n].info.mac;
        if (n == 0) continue;
        const PortInfo& other = links[n].info;
        ULC_CHECK(other.mtu == info_.mtu && other.mac != info_.mac);
        rates_known &= other.link_bits_per_second != 0;
        info_.link_bits_per_second += other.link_bits_per_second;
        info_.tx_ring_frames = static_cast<std::uint16_t>(
            std::min<std::uint32_t>(UINT16_MAX, info_.tx_ring_frames + other.tx_ring_frames));
        info_.rx_frames =
            info_.rx_frames == 0 || other.rx_frames == 0 ? 0 : info_.rx_frames + other.rx_frames;
        info_.tx_pending_time = std::max(info_.tx_pending_time, other.tx_pending_time);
        info_.half_duplex |= other.half_duplex;
        info_.multicast_filters = std::min(info_.multicast_filters, other.multicast_filters);
        info_.gathers &= other.gathers;
    }
    if (!rates_known) info_.link_bits_per_second = 0;
    fit_speeds();
    (void)look_at_links();
}

BondPort::~BondPort() {
    for (Link& link : links_)
        for (std::uint32_t n = 0; n < link.waits; ++n)
            link.port.pool.drop(link.waiting[n]);
}

/// Weighs the links by their speeds. A link of unknown speed counts as one of the fastest.
void BondPort::fit_speeds() noexcept {
    std::uint64_t fastest = 0;
    for (std::size_t n = 0; n < count_; ++n)
        fastest = std::max(fastest, links_[n].port.info.link_bits_per_second);
    for (std::size_t n = 0; n < count_; ++n) {
        const std::uint64_t bits = links_[n].port.info.link_bits_per_second;
        links_[n].octet_time = bits == 0 ? 1000 : std::max<std::uint64_t>(1, fastest * 1000 / bits);
    }
}

Nanos BondPort::reorder_wait(std::uint32_t megabits) const noexcept {
    if (count_ == 1 && megabits == 0) return 0;
    std::uint64_t slowest = UINT64_MAX;  ///< slowest link of known speed
    for (std::size_t n = 0; n < count_; ++n)
        if (const std::uint64_t bits = links_[n].port.info.link_bits_per_second; bits != 0)
            slowest = std::min(slowest, bits);
    return late_time(kLateFrames, info_.mtu + kTypeAt, slowest, megabits, kLateUnknown);
}

Port BondPort::table() noexcept {
    const Port& first = links_[0].port;
    Port port;
    port.context = this;
    port.info = info_;
    port.pool = first.pool;
    port.rx = [](void* context, Segment** out, std::uint16_t n) {
        return static_cast<BondPort*>(context)->rx(out, n);
    };
    if (count_ == 1 && first.rx_landing != nullptr)
        port.rx_landing = [](void* context, const Landing& landing) {
            return static_cast<BondPort*>(context)->rx_landing(landing);
        };
    port.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        return static_cast<BondPort*>(context)->tx(frames, n);
    };
    port.tx_pending = [](void* context) { return static_cast<BondPort*>(context)->tx_pending(); };
    if (count_ == 1 && first.add_memory != nullptr) lend_memory(port);
    bool fails = false;
    bool filters = false;
    for (std::size_t n = 0; n < count_; ++n) {
        fails |= links_[n].port.tx_failed != nullptr;
        filters |= links_[n].port.set_multicasts != nullptr;
    }
    if (fails)
        port.tx_failed = [](void* context) { return static_cast<BondPort*>(context)->tx_failed(); };
    if (filters)
        port.set_multicasts = [](void* context, std::span<const Mac> addresses) {
            return static_cast<BondPort*>(context)->set_multicasts(addresses);
        };
    port.addresses = [](void* context) { return static_cast<BondPort*>(context)->addresses(); };
    port.set_addresses = [](void* context, std::span<const NodeAddress> addresses, bool proved) {
        static_cast<BondPort*>(context)->set_addresses(addresses, proved);
    };
    port.reorder_wait = [](void* context, std::uint32_t megabits) {
        return static_cast<const BondPort*>(context)->reorder_wait(megabits);
    };
    port.link_up = [](void* context) { return static_cast<BondPort*>(context)->look_at_links(); };
    if (count_ > 1)
        port.silences = [](void* context) {
            return static_cast<BondPort*>(context)->watch_.silences();
        };
    port.missed = [](void* context) { return static_cast<BondPort*>(context)->missed(); };
    port.drops = [](void* context) {
        PortDrops sum;
        for (const Link& link : static_cast<BondPort*>(context)->links_)
            if (link.port.drops != nullptr) sum += link.port.drops(link.port.context);
        return sum;
    };
    port.interface = [](void* context) { return static_cast<BondPort*>(context)->interface(); };
    port.take_address = [](void* context) {
        return static_cast<BondPort*>(context)->take_address();
    };
    if (first.costs != nullptr)
        port.costs = [](void* context) { return static_cast<BondPort*>(context)->costs(); };
    return port;
}

/// Gives the functions for memory that the device reads. Only a link that is alone has them.
void BondPort::lend_memory(Port& port) noexcept {
    port.add_memory = [](void* context, std::span<const std::byte> memory) {
        const Port& link = static_cast<BondPort*>(context)->links_[0].port;
        return link.add_memory(link.context, memory);
    };
    port.remove_memory = [](void* context, const std::byte* memory) {
        const Port& link = static_cast<BondPort*>(context)->links_[0].port;
        link.remove_memory(link.context, memory);
    };
}

std::uint64_t BondPort::missed() const {
    std::uint64_t missed = 0;
    for (std::size_t n = 0; n < count_; ++n) {
        const Port& link = links_[n].port;
        if (link.missed != nullptr) missed += link.missed(link.context);
    }
    return missed;
}

PortCosts BondPort::costs() const {
    PortCosts sum;
    for (std::size_t n = 0; n < count_; ++n) {
        const Port& link = links_[n].port;
        const PortCosts costs = link.costs(link.context);
        sum.calls += costs.calls;
        sum.refusals += costs.refusals;
        sum.copied_bytes += costs.copied_bytes;
    }
    return sum;
}

// ---- receiving ----------------------------------------------------------------------------------

/// Puts the first addresses of both nodes into the frame. False: it is this node's own, or for the
/// links alone, or another link brings it too.
bool BondPort::take(Link& link, Segment& segment) noexcept {
    const Mac to = destination_of(segment);
    const Mac from = source_of(segment);
    if (is_group(to)) {
        if (&link != &links_[listens_]) return false;
        if (count_ > 1 && is_own(from)) return false;
    } else if (to == link.port.info.mac) {
        if (type_of(segment) == kNodeType && take_echo(link, segment)) return false;
        if (&link != links_.data()) {
            if (asks_about_links(segment)) note_asker(from, link, takes_frames(segment));
            set_destination(segment, info_.mac);
        }
    }
    if (from != link.last_source) {
        if (count_ > 1 && is_own(from)) return false;  // show_addresses()
        const std::uint16_t peer = find(from);
        link.last_source = from;
        link.last_node = peer == kNone ? from : peers_[peer].addresses[0].mac;
        const bool of_stream = peer != kNone && !is_group(to) && !speaks_for_node(segment);
        if (asks_ == Mac{} && of_stream) asks_ = link.last_node;
    }
    if (link.last_node != from) set_source(segment, link.last_node);
    return true;
}

/// Takes frames of the links in turn until the burst is full or all links are empty: the engine
/// takes a port for empty whose burst is not full. Frames that are dropped leave space, and could
/// come without an end, so each link is asked a few times at most.
std::uint16_t BondPort::rx(Segment** out, std::uint16_t n) {
    std::uint16_t kept = 0;
    std::size_t empty = 0;  ///< links in a row that had no more
    for (std::size_t ask = 0; ask < count_ * kAsksMost && kept < n && empty < count_; ++ask) {
        Link& link = links_[(turn_ + ask) % count_];
        const auto wanted = static_cast<std::uint16_t>(n - kept);
        Segment** const from = out + kept;
        const std::uint16_t came = link.port.rx(link.port.context, from, wanted);
        empty = came < wanted ? empty + 1 : 0;
        for (std::uint16_t i = 0; i < came; ++i) {
            if (take(link, *from[i])) {
                out[kept++] = from[i];
            } else {
                link.port.pool.drop(from[i]);
            }
        }
    }
    ++turn_;
    // The engine may have nothing more to send, and would not ask for these.
    for (std::size_t at = 0; at < count_; ++at) {
        Link& link = links_[at];
        if (link.waits == 0 || !(link.carrier || count_ == 1)) continue;
        look_at_device(link);
        flush(link);
    }
    busy_ |= kept > 0;
    return kept;
}

Segment* BondPort::rx_landing(const Landing& landing) {
    Link& link = links_[0];
    while (Segment* segment = link.port.rx_landing(link.port.context, landing)) {
        if (take(link, *segment)) return segment;
        link.port.pool.drop(segment);
    }
    return nullptr;
}

// ---- sending ------------------------------------------------------------------------------------

/// Notes which frames have left the device.
void BondPort::look_at_device(Link& link) noexcept {
    const std::uint32_t with_device = link.next - link.left;
    std::uint32_t pending = 0;
    if (link.up && link.port.tx_pending != nullptr)
        pending = std::min(link.port.tx_pending(link.port.context), with_device);
    for (const std::uint32_t end = link.next - pending; link.left != end; ++link.left)
        link.octets -= link.lengths[link.left % kRing];
}

/// links: those that may take the frame, by bits.
BondPort::Link* BondPort::least_loaded(std::uint32_t octets, unsigned links) noexcept {
    Link* best = nullptr;
    std::uint64_t best_load = 0;
    for (std::size_t n = 0; n < count_; ++n) {
        Link& link = links_[n];
        if (!link.up || (links >> n & 1U) == 0 || is_full(link)) continue;
        const std::uint64_t load = (link.octets + link.waiting_octets + octets) * link.octet_time;
        const bool better =
            best == nullptr || load < best_load || (load == best_load && link.given < best->given);
        if (!better) continue;
        best = &link;
        best_load = load;
    }
    if (best == nullptr || best->octets + best->waiting_octets == 0) return best;
    // An idle slow link takes its share too, though a fast one would send this frame sooner.
    for (std::size_t n = 0; n < count_; ++n) {
        Link& link = links_[n];
        if (link.up && (links >> n & 1U) != 0 && link.octets + link.waiting_octets == 0 &&
            link.given + octets * link.octet_time <= best->given)
            return &link;
    }
    return best;
}

/// Returns the same link for all frames to this address while the same links are up, so that none
/// overtakes another. links: as in least_loaded().
BondPort::Link* BondPort::fixed_link(const Mac& to, unsigned links) noexcept {
    std::size_t left = up_;
    for (std::size_t n = 0; n < count_; ++n)
        if (links_[n].up && (links >> n & 1U) == 0) --left;
    if (left == 0) return nullptr;
    left = hash_of(to) % left;
    for (std::size_t n = 0; n < count_; ++n) {
        if (!links_[n].up || (links >> n & 1U) == 0 || left-- > 0) continue;
        return is_full(links_[n]) ? nullptr : &links_[n];
    }
    return nullptr;
}

/// Returns the link for frames that carry the node's first address. It is the link that has this
/// address, while that is up: switches learn where an address is from its last frame.
BondPort::Link* BondPort::first_link() noexcept {
    for (std::size_t n = 0; n < count_; ++n)
        if (links_[n].up) return is_full(links_[n]) ? nullptr : &links_[n];
    return nullptr;
}

BondPort::Link* BondPort::choose(const Segment& segment) noexcept {
    if (count_ == 1) return is_full(links_[0]) ? nullptr : links_.data();
    const Mac to = destination_of(segment);
    if (!is_group(to) && (!speaks_for_node(segment) || is_ping(segment))) asks_ = to;
    // The segment brings a frame for a group to one link of each receiver. By several links at once
    // a sender would offer more than that link carries. Each member takes it from the first one.
    if (is_group(to) || speaks_for_node(segment)) return first_link();
    const unsigned links = links_to(to);
    // A node of one link gets its frames in order.
    if (find(to) == kNone) return fixed_link(to, links);
    return least_loaded(segment.length, links);
}

/// Returns the peer's address that this link sends to: of the same number, if both have several.
Mac BondPort::address_of(const Peer& peer, const Link& link) const noexcept {
    const auto& all = peer.addresses;
    const auto number = static_cast<std::size_t>(&link - links_.data());
    std::size_t wanted = (count_ > 1 ? number : hash_of(info_.mac)) % all.size();
    for (std::size_t tries = 0; tries < all.size(); ++tries) {
        const NodeAddress& address = all[(wanted + tries) % all.size()];
        if (address.megabits != 0) return address.mac;
    }
    return all[0].mac;
}

void BondPort::address(Link& link, Segment& segment) noexcept {
    if (asks_about_links(segment)) return set_source(segment, link.port.info.mac);
    const bool for_node = speaks_for_node(segment);
    if (count_ > 1) set_source(segment, for_node ? info_.mac : link.port.info.mac);
    const Mac to = destination_of(segment);
    if (is_group(to)) return;
    if (const std::uint16_t peer = find(to); peer != kNone)
        set_destination(segment, address_of(peers_[peer], link));
}

/// Gives the frame to the link, which need not take it at once.
void BondPort::put(Link& link, Segment* segment) noexcept {
    // The link of a frame that speaks for its node was no choice, so it is not made up for.
    if (!speaks_for_node(*segment)) link.given += segment->length * link.octet_time;
    address(link, *segment);
    link.waiting[link.waits++] = segment;
    link.waiting_octets += segment->length;
}

void BondPort::flush(Link& link) noexcept {
    if (link.waits == 0) return;
    const std::uint32_t first = link.next;
    std::uint32_t offered = std::min(link.waits, kRing - (link.next - link.left));
    // Lengths are read before the device owns the frames.
    for (std::uint32_t n = 0; n < offered; ++n)
        link.lengths[(first + n) % kRing] = static_cast<std::uint16_t>(link.waiting[n]->length);
    const std::uint32_t taken =
        link.port.tx(link.port.context, link.waiting.data(), static_cast<std::uint16_t>(offered));
    std::uint64_t octets = 0;
    for (std::uint32_t n = 0; n < taken; ++n)
        octets += link.lengths[(first + n) % kRing];
    link.next += taken;
    link.octets += octets;
    link.waiting_octets -= octets;
    link.waits -= taken;
    std::copy_n(link.waiting.begin() + taken, link.waits, link.waiting.begin());
}

std::uint16_t BondPort::tx(Segment* const* frames, std::uint16_t n) {
    for (std::size_t at = 0; at < count_; ++at) {
        look_at_device(links_[at]);
        if (links_[at].carrier || count_ == 1) flush(links_[at]);
    }
    std::uint16_t taken = 0;
    while (taken < n) {
        Link* link = choose(*frames[taken]);
        if (link == nullptr) break;
        Segment& segment = *frames[taken++];
        const bool announces = count_ > 1 && announces_links(segment);
        put(*link, &segment);
        if (announces) show_addresses(segment);
    }
    for (std::size_t at = 0; at < count_; ++at)
        if (links_[at].carrier || count_ == 1) flush(links_[at]);
    busy_ |= taken > 0;
    return taken;
}

std::uint32_t BondPort::tx_pending() {
    std::uint32_t pending = 0;
    for (std::size_t n = 0; n < count_; ++n) {
        Link& link = links_[n];
        look_at_device(link);
        if (link.waits > 0 && (link.carrier || count_ == 1)) flush(link);
        if (link.up || count_ == 1) pending += link.next - link.left + link.waits;
    }
    return pending;
}

/// Takes back the addresses, under which the transport knows its frame.
Segment* BondPort::tx_failed() {
    for (std::size_t n = 0; n < count_; ++n) {
        const Port& link = links_[n].port;
        Segment* segment = link.tx_failed == nullptr ? nullptr : link.tx_failed(link.context);
        if (segment == nullptr) continue;
        set_source(*segment, info_.mac);
        if (const std::uint16_t peer = find(destination_of(*segment)); peer != kNone)
            set_destination(*segment, peers_[peer].addresses[0].mac);
        return segment;
    }
    return nullptr;
}

}  // namespace ulc::port
