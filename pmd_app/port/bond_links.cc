// SPDX-License-Identifier: BSD-3-Clause
// Links of a bond that go down and come back, and the addresses of other nodes (bond_port.h).
#include <algorithm>

#include "base/check.h"
#include "port/bond_frame.h"
#include "port/bond_port.h"

namespace ulc::port {

// ---- links that go down and come back -----------------------------------------------------------

bool BondPort::look_at_links() {
    watch();
    bool any_heard = false;
    for (std::size_t n = 0; n < count_; ++n) {
        Link& link = links_[n];
        link.carrier = link.port.link_up == nullptr || link.port.link_up(link.port.context);
        if (lost_address(link)) link.carrier = false;
        if (!link.carrier) watch_.forget(n);
        any_heard |= link.carrier && !watch_.is_silent(n);
    }
    up_ = 0;
    std::uint64_t most = 0;
    for (std::size_t n = 0; n < count_; ++n)
        most = std::max(most, links_[n].given);
    bool changed = false;
    for (std::size_t n = 0; n < count_; ++n) {
        Link& link = links_[n];
        const bool up = link.carrier && !(any_heard && watch_.is_silent(n));
        if (up && !link.up) link.given = most;  // it has nothing to catch up with
        changed |= up != link.up;
        link.up = up;
        if (up) ++up_;
        const std::uint64_t rate = link.port.info.link_bits_per_second;
        own_[n].megabits =
            !up         ? 0
            : rate == 0 ? kMegabitsUnknown
                        : static_cast<std::uint32_t>(std::max<std::uint64_t>(1, rate / 1'000'000));
    }
    if (!changed) return up_ > 0;
    for (std::size_t n = 0; n < count_; ++n)
        if (!links_[n].up && count_ > 1) leave(links_[n]);
    listen();
    return up_ > 0;
}

/// Gives the frames that wait for a link that went down or is silent to the others. Receivers ask
/// again for those that its device took.
void BondPort::leave(Link& link) noexcept {
    look_at_device(link);
    const std::uint32_t waited = link.waits;
    link.waits = 0;
    link.waiting_octets = 0;
    for (std::uint32_t n = 0; n < waited; ++n) {
        Segment* segment = link.waiting[n];
        Link* other = is_echo(*segment) ? nullptr : choose(*segment);
        if (other != nullptr) {
            put(*other, segment);
        } else {
            link.port.pool.drop(segment);
        }
    }
}

/// Sends a copy of an announcement from the address of each further link to the node's first one.
/// Else switches would not know where these addresses are until the link sends data, and would
/// bring what is sent to them to every link of the segment (N-34).
void BondPort::show_addresses(const Segment& announcement) noexcept {
    for (std::size_t n = 1; n < count_; ++n) {
        Link& link = links_[n];
        if (!link.up || is_full(link)) continue;
        Segment* copy = link.port.pool.get();
        if (copy == nullptr) return;
        copy_frame(copy->frame, announcement);
        copy->length = announcement.length;
        set_source(*copy, link.port.info.mac);
        set_destination(*copy, info_.mac);
        link.waiting[link.waits++] = copy;
        link.waiting_octets += copy->length;
    }
}

bool BondPort::is_own(const Mac& mac) const noexcept {
    for (std::size_t n = 0; n < count_; ++n)
        if (mac == own_[n].mac) return true;
    return false;
}

/// Chooses the link that takes frames for groups, the first that is up, and tells the devices.
void BondPort::listen() noexcept {
    for (std::size_t n = count_; n-- > 0;)
        if (links_[n].up) listens_ = n;
    if (told_multicasts_) (void)tell_multicasts();
}

bool BondPort::set_multicasts(std::span<const Mac> addresses) {
    multicasts_.assign(addresses.begin(), addresses.end());
    told_multicasts_ = true;
    return tell_multicasts();
}

bool BondPort::tell_multicasts() noexcept {
    bool fits = true;
    for (std::size_t n = 0; n < count_; ++n) {
        const Port& link = links_[n].port;
        if (link.set_multicasts == nullptr) continue;
        const std::span<const Mac> wanted = n == listens_ ? multicasts_ : std::span<const Mac>();
        fits &= link.set_multicasts(link.context, wanted);
    }
    return fits;
}

std::span<const NodeAddress> BondPort::addresses() noexcept { return {own_.data(), count_}; }

// ---- addresses of other nodes -------------------------------------------------------------------

std::uint16_t BondPort::find(const Mac& mac) const noexcept {
    const std::uint32_t peer = places_.find(number_of(mac));
    return peer == KeyedIndex::kNone ? kNone : static_cast<std::uint16_t>(peer);
}

void BondPort::enter(std::uint16_t peer) {
    for (const NodeAddress& address : peers_[peer].addresses)
        places_.insert(number_of(address.mac), peer);
}

/// Removes a peer. The last one takes its place.
void BondPort::remove(std::uint16_t peer) {
    for (const NodeAddress& address : peers_[peer].addresses)
        places_.erase(number_of(address.mac));
    if (peer + 1U < peers_.size()) {
        for (const NodeAddress& address : peers_.back().addresses)
            places_.erase(number_of(address.mac));
        peers_[peer] = peers_.back();
        enter(peer);
    }
    peers_.pop_back();
}

void BondPort::set_addresses(std::span<const NodeAddress> addresses, bool proved) {
    ULC_CHECK(!addresses.empty() && addresses.size() <= kNodeLinksMax);
    if (!proved) return;
    if (const std::uint16_t known = find(addresses[0].mac); known != kNone) remove(known);
    if (addresses.size() > 1 && peers_.size() < kNone) {
        Peer& peer = peers_.emplace_back();
        for (const NodeAddress& address : addresses)
            (void)peer.addresses.push_back(address);
        enter(static_cast<std::uint16_t>(peers_.size() - 1));
    }
    for (Link& link : links_)
        link.last_source = link.last_node = Mac{};
}

/// Notes whether a node that asked for the address of this link takes frames from there.
void BondPort::note_asker(const Mac& from, const Link& link, bool takes) {
    const std::uint16_t peer = find(from);
    const Mac node = peer == kNone ? from : peers_[peer].addresses[0].mac;
    std::uint32_t at = asker_places_.find(number_of(node));
    if (at == KeyedIndex::kNone) {
        if (!takes) return;
        if (askers_.size() >= kAskersMax) {  // those that live ask again
            askers_.clear();
            asker_places_.clear();
        }
        at = static_cast<std::uint32_t>(askers_.size());
        askers_.push_back({node});
        asker_places_.insert(number_of(node), at);
    }
    const unsigned bit = 1U << static_cast<unsigned>(&link - links_.data());
    unsigned& links = askers_[at].takes;
    links = takes ? links | bit : links & ~bit;
}

/// Returns the links, by bits, from which the node takes frames: the first one, and those of which
/// it said so. All, if none of them is up.
unsigned BondPort::links_to(const Mac& node) const noexcept {
    const std::uint32_t at = asker_places_.find(number_of(node));
    const unsigned takes = at == KeyedIndex::kNone ? 1U : 1U | askers_[at].takes;
    for (std::size_t n = 0; n < count_; ++n)
        if (links_[n].up && (takes >> n & 1U) != 0) return takes;
    return ~0U;
}

/// Forgets the addresses of all nodes.
void BondPort::forget_nodes() noexcept {
    peers_.clear();
    places_.clear();
    askers_.clear();
    asker_places_.clear();
    for (Link& link : links_)
        link.last_source = link.last_node = Mac{};
}

/// Fills the table from the peers. False: an address is of two.
bool BondPort::rebuild() {
    places_.clear();
    for (std::size_t n = 0; n < peers_.size(); ++n) {
        for (const NodeAddress& address : peers_[n].addresses) {
            if (find(address.mac) != kNone) return false;
            places_.insert(number_of(address.mac), static_cast<std::uint32_t>(n));
        }
    }
    return true;
}

}  // namespace ulc::port
