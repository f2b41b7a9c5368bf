// SPDX-License-Identifier: BSD-3-Clause
// The other nodes of a mesh, and which paths to them carry frames (mesh_port.h, link_watch.h).
#include <algorithm>

#include "base/check.h"
#include "port/bond_frame.h"
#include "port/mesh_port.h"
#include "port/node_frame.h"

namespace ulc::port {
namespace {

/// Looks at the links between two choices of the line that spreads frames for groups.
constexpr std::uint32_t kGroupLooks = 8;

}  // namespace

// ---- addresses ----------------------------------------------------------------------------------

bool MeshPort::is_own(const Mac& mac) const noexcept {
    return mac == own_[kRow].mac || mac == own_[kColumn].mac;
}

std::uint16_t MeshPort::find_for(const Mac& mac, bool proves) const noexcept {
    const std::uint32_t peer = places_.find(number_of(mac));
    if (peer == KeyedIndex::kNone || !(proves || peers_[peer].proved)) return kNone;
    return static_cast<std::uint16_t>(peer);
}

std::uint16_t MeshPort::find(const Mac& mac) const noexcept { return find_for(mac, false); }

std::uint16_t MeshPort::add_peer() {
    const seal::Seed seed = tokens_.next_seed();
    if (!free_.empty()) {
        const std::uint16_t number = free_.back();
        free_.pop_back();
        peers_[number] = Peer(seed);
        return number;
    }
    if (peers_.size() >= kNone) return kNone;
    peers_.emplace_back(seed);
    return static_cast<std::uint16_t>(peers_.size() - 1);
}

/// Enters the addresses of a peer, and its place if it is proved. A claim is of the first address
/// alone, so no claim is in the way of another node's. An address of another peer stays that one's.
void MeshPort::enter(std::uint16_t number) {
    const Peer& peer = peers_[number];
    for (std::size_t n = 0; n < (peer.proved ? kLines : 1); ++n)
        if (const Mac& mac = peer.addresses[n].mac;
            places_.find(number_of(mac)) == KeyedIndex::kNone)
            places_.insert(number_of(mac), number);
    for (std::size_t line = 0; peer.proved && line < kLines; ++line) {
        if (!is_on(line, peer)) continue;
        const std::size_t at = peer.addresses[other(line)].segment;
        if (beside_[line].size() <= at) beside_[line].resize(at + 1, kNone);
        beside_[line][at] = number;
    }
}

void MeshPort::withdraw(std::uint16_t number) {
    const Peer& peer = peers_[number];
    for (const NodeAddress& address : peer.addresses)
        if (places_.find(number_of(address.mac)) == number) places_.erase(number_of(address.mac));
    for (std::size_t line = 0; line < kLines; ++line) {
        const std::size_t at = peer.addresses[other(line)].segment;
        if (is_on(line, peer) && at < beside_[line].size() && beside_[line][at] == number)
            beside_[line][at] = kNone;
    }
}

void MeshPort::remove_peer(std::uint16_t number) {
    withdraw(number);
    peers_[number].used = peers_[number].proved = false;
    free_.push_back(number);
    const auto last = std::remove(watched_.begin(), watched_.begin() + watched_count_, number);
    watched_count_ = static_cast<std::size_t>(last - watched_.begin());
}

/// Forgets the addresses of all nodes.
void MeshPort::forget_nodes() noexcept {
    peers_.clear();
    free_.clear();
    places_.clear();
    for (auto& line : beside_)
        line.clear();
    watched_count_ = 0;
    askers_ = {};
}

/// Costs the same for any number of nodes.
void MeshPort::set_addresses(std::span<const NodeAddress> addresses, bool proved) {
    ULC_CHECK(!addresses.empty() && addresses.size() <= kNodeLinksMax);
    std::uint16_t number = find_for(addresses[0].mac, true);
    const bool known = number != kNone && peers_[number].addresses[kRow].mac == addresses[0].mac;
    if (addresses.size() != kLines || addresses[0].segment == 0) {
        if (known) remove_peer(number);
        return;
    }
    if (number != kNone && !known) return;  // the column's address of a node that is proved
    if (known) {
        withdraw(number);
    } else if (number = add_peer(); number == kNone) {
        return;
    }
    std::ranges::copy(addresses, peers_[number].addresses.begin());
    peers_[number].proved = proved;
    // Another peer, which is not proved, may claim the column's address as its first one.
    if (const std::uint16_t claimant = find_for(addresses[kColumn].mac, true);
        proved && claimant != kNone && claimant != number && !peers_[claimant].proved)
        remove_peer(claimant);
    enter(number);
}

/// Notes by which line a node asked that is not proved. The oldest of too many is forgotten, and
/// asks again.
void MeshPort::note_asker(const Mac& mac, std::size_t line) noexcept {
    Asker* asker = find_asker(mac);
    if (asker == nullptr) asker = &askers_[next_asker_++ % kAskers];
    *asker = {mac, line, true};
}

MeshPort::Asker* MeshPort::find_asker(const Mac& mac) noexcept {
    const auto at = std::ranges::find_if(
        askers_, [&](const Asker& asker) { return asker.waits && asker.mac == mac; });
    return at == askers_.end() ? nullptr : &*at;
}

// ---- paths --------------------------------------------------------------------------------------

/// Returns the node on this line that sends frames to the peer on, by the peer's other line.
const MeshPort::Peer* MeshPort::forwarder(std::size_t line, const Peer& peer) const noexcept {
    const std::size_t at = peer.addresses[other(line)].segment;
    if (at >= beside_[line].size() || beside_[line][at] == kNone) return nullptr;
    return &peers_[beside_[line][at]];
}

/// Returns whether all links of the path that begins with this line say that they are up.
bool MeshPort::is_there(std::size_t line, const Peer& peer) const noexcept {
    if (!links_[line].up || peer.addresses[other(line)].megabits == 0) return false;
    const Peer* between = forwarder(line, peer);
    return between != nullptr && between->addresses[kRow].megabits != 0 &&
           between->addresses[kColumn].megabits != 0;
}

/// Returns whether the path is there and not silent.
bool MeshPort::is_good(std::size_t line, const Peer& peer) const noexcept {
    return is_there(line, peer) && !peer.watch.is_silent(line);
}

/// Watches the paths to the node from now on, if there is space.
void MeshPort::begin_watch(Peer& peer) noexcept {
    if (peer.watched || watched_count_ == kWatched) return;
    peer.watched = true;
    peer.looks = LinkWatch::kBusyLooks - 1;
    watched_[watched_count_++] = static_cast<std::uint16_t>(&peer - peers_.data());
}

/// Asks by both paths.
void MeshPort::ask(Peer& peer) noexcept {
    for (std::size_t line = 0; line < kLines; ++line) {
        if (!is_there(line, peer)) {
            peer.watch.forget(line);
            continue;
        }
        const Mac by = forwarder(line, peer)->addresses[line].mac;
        if (send_echo(line, wire::NodeKind::kEchoRequest, by, peer.addresses[kRow].mac,
                      peer.watch.token()))
            peer.watch.asked(line);
    }
}

/// Ends the rounds that are over, and begins others. A node is watched while frames go to it, and
/// while its paths are in doubt.
void MeshPort::watch() noexcept {
    replies_ = 0;
    if (group_busy_) {  // they go to all nodes, so all are watched in turn
        for (std::size_t n = 0; n < peers_.size() && watched_count_ < kWatched; ++n) {
            Peer& peer = peers_[next_group_++ % peers_.size()];
            if (!peer.proved || is_on(kRow, peer) || is_on(kColumn, peer)) continue;
            peer.busy = true;
            begin_watch(peer);
        }
        group_busy_ = false;
    }
    std::size_t kept = 0;
    for (std::size_t n = 0; n < watched_count_; ++n) {
        Peer& peer = peers_[watched_[n]];
        const bool over =
            ++peer.looks >= (peer.watch.doubts() ? LinkWatch::kDoubtLooks : LinkWatch::kBusyLooks);
        if (over) {
            peer.looks = 0;
            const std::uint64_t before = peer.watch.silences();
            peer.watch.end_round();
            silences_ += peer.watch.silences() - before;
            peer.watched = peer.busy || peer.watch.doubts();
            peer.busy = false;
            if (peer.watched) ask(peer);
        }
        if (peer.watched) watched_[kept++] = watched_[n];
    }
    watched_count_ = kept;
    if (++looks_ % kGroupLooks == 0) choose_group_line();
}

/// Spreads frames for groups by the line from which more nodes are reached.
void MeshPort::choose_group_line() noexcept {
    std::array<std::size_t, kLines> reached{};
    for (const Peer& peer : peers_) {
        if (!peer.proved || is_on(kRow, peer) || is_on(kColumn, peer)) continue;
        for (std::size_t line = 0; line < kLines; ++line)
            if (is_good(line, peer)) ++reached[line];
    }
    if (reached[other(group_line_)] > reached[group_line_]) group_line_ = other(group_line_);
}

// ---- echo requests and replies ------------------------------------------------------------------

/// Sends a request or a reply. by: the node between; none: `to` is on this line. False: there is no
/// space.
bool MeshPort::send_echo(std::size_t line, wire::NodeKind kind, const Mac& by, const Mac& to,
                         std::uint64_t token) noexcept {
    Link& link = links_[line];
    if (link.own_queue.is_full()) return false;
    Segment* segment = links_[kRow].port.pool.get();
    if (segment == nullptr) return false;
    const Mac source = by == Mac{} ? own_[line].mac : info_.mac;
    build_echo(*segment, config_.ether_type, kind, source, to, token);
    if (by != Mac{}) {
        Segment* outer = wrap(*segment, {by, info_.mac, 1, info_.mac, to, 0});
        links_[kRow].port.pool.drop(segment);
        if (outer == nullptr) return false;
        segment = outer;
    }
    put(link, segment);
    flush(link);
    return true;
}

/// Takes a request or a reply for this node. by: the node between that brought it. False: the frame
/// is neither.
bool MeshPort::take_echo(std::size_t line, const Segment& segment, const Mac& by) noexcept {
    Mac source;
    wire::NodeView node;
    if (!parse_node_frame(segment, config_.ether_type, source, node)) return false;
    if (node.kind == wire::NodeKind::kEchoReply) {
        const std::uint16_t peer = find(source);
        if (peer != kNone && by != Mac{}) peers_[peer].watch.replied(line, node.token);
        return true;
    }
    if (node.kind != wire::NodeKind::kEchoRequest) return false;
    if (replies_ >= kEchoRepliesMax || is_full(links_[line]) || is_group(source)) return true;
    if (send_echo(line, wire::NodeKind::kEchoReply, by, source, node.token)) ++replies_;
    return true;
}

}  // namespace ulc::port
