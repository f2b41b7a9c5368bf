// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/node_addresses.h"

#include <algorithm>

namespace ulc::engine {

NodeAddresses::NodeAddresses(const Mac& own, std::uint32_t incarnation, std::uint64_t seed,
                             Counters& counters)
    : own_(own), incarnation_(incarnation), counters_(counters), by_node_(seed) {}

void NodeAddresses::set_own(std::span<const NodeAddress> links, Nanos now) {
    ULC_CHECK(!links.empty() && links.size() <= kNodeLinksMax && links[0].mac == own_);
    if (std::ranges::equal(links, links_)) return;
    if (links.size() == 1 && links_.size() <= 1) return;
    links_.clear();
    for (const NodeAddress& link : links)
        (void)links_.push_back(link);
    ++number_;
    due_ = true;
    repeat_at_ = now + kRepeat;
}

void NodeAddresses::greet(Nanos now) noexcept {
    if (links_.empty() || now - sent_at_ < kGreetGap) return;
    due_ = true;
}

void NodeAddresses::on_timer(Nanos now) noexcept {
    if (repeat_at_ > now) return;
    due_ = true;
    repeat_at_ = now + kRepeat;
}

std::size_t NodeAddresses::next_tx(std::byte* body, Nanos now) {
    if (!due_) return 0;
    due_ = false;
    sent_at_ = now;
    wire::NodeBody head{};
    head.kind = wire::NodeKind::kLinks;
    head.incarnation = incarnation_;
    head.token = number_;
    counters_.add(Counter::links_sent);
    return wire::put_links(body, head, links_);
}

NodeAddresses::Known* NodeAddresses::find(const Mac& node) noexcept {
    const std::uint32_t at = by_node_.find(number_of(node));
    return at == KeyedIndex::kNone ? nullptr : &known_[at];
}

/// Fills the index of the table. False: a node is there twice.
bool NodeAddresses::index_nodes() {
    by_node_.clear();
    for (std::size_t n = 0; n < known_.size(); ++n) {
        if (find(known_[n].node) != nullptr) return false;
        by_node_.insert(number_of(known_[n].node), static_cast<std::uint32_t>(n));
    }
    return true;
}

namespace {

/// Returns whether the announcement names the place in a mesh that a node with these addresses has.
bool is_same_place(std::span<const wire::LinkEntry> entries, const AddressList& addresses) {
    return entries.size() == 2 && addresses.size() == 2 && addresses[0].segment != 0 &&
           entries[0].segment == addresses[0].segment && entries[1].segment == addresses[1].segment;
}

}  // namespace

/// Returns whether an address or the place of the announcement is this node's or a third one's.
bool NodeAddresses::is_taken(const wire::NodeView& view, const Mac& node,
                             bool (*watched)(const void* context, const Mac& mac),
                             const void* context) const noexcept {
    if (is_same_place(view.links, links_)) return true;
    for (const Known& other : known_)
        if (other.node != node && is_same_place(view.links, other.addresses)) return true;
    for (const wire::LinkEntry& entry : view.links) {
        if (entry.mac == own_) return true;
        if (entry.mac != node && watched(context, entry.mac)) return true;
        if (std::ranges::find(links_, entry.mac, &NodeAddress::mac) != links_.end()) return true;
        for (const Known& other : known_) {
            if (other.node == node) continue;
            if (std::ranges::find(other.addresses, entry.mac, &NodeAddress::mac) !=
                other.addresses.end())
                return true;
        }
    }
    return false;
}

void NodeAddresses::forget_old(Nanos now) {
    for (std::size_t n = known_.size(); n-- > 0;) {
        if (now - known_[n].heard < kForget) continue;
        AddressChange change{known_[n].node, {}};
        (void)change.addresses.push_back(known_[n].addresses[0]);
        changes_.push_back(change);
        known_.erase(known_.begin() + static_cast<std::ptrdiff_t>(n));
    }
    ULC_CHECK(index_nodes());
}

void NodeAddresses::on_links(const wire::NodeView& view, const Mac& source,
                             bool (*watched)(const void* context, const Mac& mac),
                             const void* context, Nanos now) {
    if (view.links[0].mac != source) {
        counters_.add(Counter::drop_links_address);
        return;
    }
    Known* known = find(source);
    if (known != nullptr && known->incarnation == view.incarnation && view.token <= known->number) {
        if (view.token == known->number) known->heard = now;
        return;  // repeated, or overtaken by a newer one
    }
    // A change searches the table.
    RateLimit& limit = watched(context, source) ? members_limit_ : strangers_limit_;
    if (!limit.take(now, kChangesPerSecond, kChangesBurst)) {
        counters_.add(Counter::answers_limited);
        return;
    }
    if (is_taken(view, source, watched, context)) {
        forget_old(now);
        known = find(source);
        if (is_taken(view, source, watched, context)) {
            counters_.add(Counter::drop_links_address);
            return;
        }
    }
    if (known == nullptr) {
        if (known_.size() >= kNodesMax) forget_old(now);
        if (known_.size() >= kNodesMax) {
            counters_.add(Counter::drop_links_address);
            return;
        }
        by_node_.insert(number_of(source), static_cast<std::uint32_t>(known_.size()));
        known = &known_.emplace_back();
        known->node = source;
    }
    if (known->incarnation != view.incarnation) greet(now);
    known->incarnation = view.incarnation;
    known->number = view.token;
    known->heard = now;
    known->addresses.clear();
    for (const wire::LinkEntry& entry : view.links)
        (void)known->addresses.push_back({entry.mac, entry.megabits, entry.segment});
    changes_.push_back({source, known->addresses});
}

bool NodeAddresses::next_change(AddressChange& out) {
    if (changes_.empty()) return false;
    out = changes_.front();
    changes_.erase(changes_.begin());
    return true;
}

}  // namespace ulc::engine
