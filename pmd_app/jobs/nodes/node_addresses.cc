// SPDX-License-Identifier: BSD-3-Clause
// The node's own addresses, and the table of those of others (node_addresses.h).
#include "jobs/node_addresses.h"

#include <algorithm>

namespace ulc::jobs {
namespace {

/// Returns a place in a mesh as a number, not 0.
std::uint64_t number_of_place(std::uint16_t row, std::uint16_t column) noexcept {
    return std::uint64_t{row} << 16U | column;
}

}  // namespace

NodeAddresses::NodeAddresses(const Mac& own, std::uint32_t incarnation, const seal::Seed& seed,
                             const Liveness& liveness, Counters& counters)
    : incarnation_(incarnation),
      liveness_(liveness),
      counters_(counters),
      tokens_(seed),
      own_(own),
      by_node_(seed.number(1)),
      by_address_(seed.number(2)),
      by_place_(seed.number(3)) {}

// ---- this node's addresses ----------------------------------------------------------------------

void NodeAddresses::on_join(const Mac& node, std::uint32_t incarnation, Nanos now) {
    own_.greet(now);
    Known* known = find(node);
    if (known == nullptr || known->incarnation == 0) return;
    if (known->provisional && known->incarnation != incarnation) return release(*known);
    if (known->provisional || known->incarnation != incarnation) want(*known, now);
}

void NodeAddresses::on_timer(Nanos now) {
    own_.on_timer(now);
    if (sweep_at_ <= now) sweep(now);
    if (ask_at_ > now) return;
    for (std::size_t n = asking_.size(); n-- > 0;) {
        Known& known = known_[asking_[n]];  // may leave the list
        if (known.next <= now) go_on(known, now);
    }
    ask_at_ = kNever;
    for (const std::uint32_t slot : asking_)
        ask_at_ = std::min(ask_at_, known_[slot].next);
}

std::size_t NodeAddresses::next_tx(Mac& to, std::byte* body, Nanos now) {
    wire::NodeBody head{};
    head.incarnation = incarnation_;
    if (own_.is_due()) {
        to = kBroadcastMac;
        head.kind = wire::NodeKind::kLinks;
        counters_.add(Counter::links_sent);
        return own_.announce(body, head, now);
    }
    if (!replies_.empty()) {
        const Probe reply = replies_[replies_.size() - 1];
        replies_.pop_back();
        to = reply.to;
        head.kind = wire::NodeKind::kLinksReply;
        head.token = reply.token;
        return own_.put_reply(body, head);
    }
    if (probes_.empty()) return 0;
    to = probes_.front().to;
    head.kind = wire::NodeKind::kLinksRequest;
    head.token = probes_.front().token;
    head.ours = by_address_.find(number_of(to)) == KeyedIndex::kNone ? 0 : 1;
    probes_.pop_front();
    return wire::put_node(body, head);
}

// ---- the table ----------------------------------------------------------------------------------

std::uint32_t NodeAddresses::slot_of(const Known& known) const noexcept {
    return static_cast<std::uint32_t>(&known - known_.data());
}

NodeAddresses::Known* NodeAddresses::find(const Mac& node) noexcept {
    const std::uint32_t slot = by_node_.find(number_of(node));
    return slot == KeyedIndex::kNone ? nullptr : &known_[slot];
}

/// Returns a new entry; nullptr: there are too many.
NodeAddresses::Known* NodeAddresses::add(const Mac& node) {
    if (by_node_.size() >= kNodesMax) return nullptr;
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(known_.size()));
        known_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    Known& known = known_[slot];
    known = Known{};
    known.node = node;
    known.used = true;
    by_node_.insert(number_of(node), slot);
    return &known;
}

/// Forgets a node: frames for it go to its first address alone.
void NodeAddresses::release(Known& known) {
    withdraw(known);
    if (known.given.size() > 1) {
        AddressChange change{known.node, {}, true};
        (void)change.addresses.push_back(known.given[0]);
        changes_.push_back(change);
    }
    const std::uint32_t slot = slot_of(known);
    ask_no_more(known);
    by_node_.erase(number_of(known.node));
    known = Known{};
    free_.push_back(slot);
    if (by_node_.size() == 0) sweep_at_ = kNever;
}

/// Returns whether no other node is known to have the address.
bool NodeAddresses::is_free(const Mac& mac, const Known& known) const noexcept {
    const std::uint32_t owner = by_address_.find(number_of(mac));
    if (owner != KeyedIndex::kNone && owner != slot_of(known)) return false;
    return mac == known.node || liveness_.find(mac) == kNoNode;
}

/// Returns whether the node may have these addresses as far as this one knows itself. False: it was
/// counted.
bool NodeAddresses::is_possible(const wire::NodeView& view, const Mac& source) noexcept {
    const bool own = std::ranges::any_of(
        view.links, [this](const wire::LinkEntry& entry) { return own_.has(entry.mac); });
    const bool meshed = view.links[0].segment != 0;
    if (view.links[0].mac == source && !own && meshed == own_.is_meshed()) return true;
    counters_.add(Counter::drop_links_address);
    return false;
}

/// Returns whether none of the addresses, and not the place in a mesh, is of another node.
bool NodeAddresses::may_claim(const wire::NodeView& view, const Known& known) const noexcept {
    for (const wire::LinkEntry& entry : view.links)
        if (!is_free(entry.mac, known)) return false;
    if (!own_.is_meshed()) return true;
    const std::uint16_t row = view.links[0].segment;
    const std::uint16_t column = view.links[1].segment;
    if (own_.is_at(row, column)) return false;
    const std::uint32_t owner = by_place_.find(number_of_place(row, column));
    return owner == KeyedIndex::kNone || owner == slot_of(known);
}

std::uint64_t NodeAddresses::Known::place_in_mesh() const noexcept {
    if (addresses.size() != 2) return 0;
    return number_of_place(addresses[0].link.segment, addresses[1].link.segment);
}

/// Enters what counts of the node into the indices.
void NodeAddresses::enter(const Known& known) {
    const std::uint32_t slot = slot_of(known);
    for (const Address& address : known.addresses)
        if (address.counts) by_address_.insert(number_of(address.link.mac), slot);
    if (const std::uint64_t place = known.place_in_mesh(); place != 0)
        by_place_.insert(place, slot);
}

void NodeAddresses::withdraw(const Known& known) {
    for (const Address& address : known.addresses)
        if (address.counts) by_address_.erase(number_of(address.link.mac));
    if (const std::uint64_t place = known.place_in_mesh(); place != 0) by_place_.erase(place);
}

/// Gives the port the addresses that count. A link that is down stays: it may be the last one.
void NodeAddresses::give(Known& known) {
    AddressChange change{known.node, {}, true};
    for (const Address& address : known.addresses)
        if (address.counts) (void)change.addresses.push_back(address.link);
    if (!known.tentative && std::ranges::equal(change.addresses, known.given)) return;
    if (change.addresses.size() == 1 && known.given.size() <= 1) return;
    known.given = change.addresses;
    known.tentative = false;
    changes_.push_back(change);
}

/// Forgets nodes that gave no reply for long, and asks the others again.
void NodeAddresses::sweep(Nanos now) {
    sweep_at_ = now + kRepeat;
    for (Known& known : known_) {
        if (!known.used) continue;
        if (known.incarnation == 0) {
            if (!known.asking && now - known.asked >= kStrangerLife) release(known);
            continue;
        }
        if (now - known.proved >= kForget && liveness_.find(known.node) == kNoNode) {
            release(known);
            continue;
        }
        const bool lacks = std::ranges::any_of(known.addresses, [](const Address& address) {
            return !address.counts && address.link.megabits != 0;
        });
        if (lacks || now - known.proved >= kProve) want(known, now);
    }
}

std::uint32_t NodeAddresses::slowest_link(const Mac& node) const noexcept {
    const std::uint32_t slot = by_node_.find(number_of(node));
    if (slot == KeyedIndex::kNone || known_[slot].given.size() < 2) return 0;
    if (known_[slot].provisional || known_[slot].tentative) return 0;
    std::uint32_t slowest = kMegabitsUnknown;
    for (const Address& address : known_[slot].addresses)
        if (address.counts && address.link.megabits != 0)
            slowest = std::min(slowest, address.link.megabits);
    return slowest;
}

bool NodeAddresses::are_settled(std::span<const Mac> nodes) const noexcept {
    return std::ranges::all_of(nodes, [this](const Mac& node) {
        const std::uint32_t slot = by_node_.find(number_of(node));
        return slot != KeyedIndex::kNone && known_[slot].incarnation != 0 && !known_[slot].asking;
    });
}

bool NodeAddresses::next_change(AddressChange& out) {
    if (changes_.empty()) return false;
    out = changes_.front();
    changes_.pop_front();
    return true;
}

/// Fills the indices from the table.
void NodeAddresses::index_all() {
    by_node_.clear();
    by_address_.clear();
    by_place_.clear();
    for (const Known& known : known_) {
        if (!known.used) continue;
        by_node_.insert(number_of(known.node), slot_of(known));
        enter(known);
    }
}

void NodeAddresses::check_invariants() const {
    own_.check_invariants();
    ULC_CHECK(by_node_.size() + free_.size() == known_.size() && by_node_.size() <= kNodesMax);
    for (std::size_t place = 0; place < asking_.size(); ++place) {
        const Known& known = known_[asking_[place]];
        ULC_CHECK(known.used && known.asking && known.place == place);
    }
}

}  // namespace ulc::jobs
