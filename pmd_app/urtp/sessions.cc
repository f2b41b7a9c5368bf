// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/sessions.h"

#include <algorithm>
#include <bit>

namespace ulc::urtp {

namespace {

constexpr std::size_t kGroupMembersMax = 4096;

}  // namespace

Sessions::Sessions(const Context& context, std::span<const Peer> peers)
    : context_(context),
      peers_(peers.begin(), peers.end()),
      ends_(for_links() ? peers.size() : 0),
      sessions_(peers.size()),
      data_head_(wire::make_head(head_from_us(wire::FrameType::kData))) {
    ULC_CHECK((for_links() || context.config.rank < peers.size()) && peers.size() < kNoRank);
    if (for_links()) peers_.assign(peers_.size(), {});
}

Session& Sessions::make(Rank rank) {
    const bool local = peers_[rank].mac == context_.config.mac;
    sessions_[rank] = std::make_unique<Session>(rank, local, context_.params().initial_rtt);
    return *sessions_[rank];
}

/// Takes one event that a group has of this member. False: there is none.
bool Sessions::poll_held(Session& session, Event& out) noexcept {
    session.held_untold = false;
    bool found = false;
    for (const auto& group : groups_) {
        const std::uint16_t index = group->index_of[session.rank];
        if (group->holders == nullptr || index == kNoRank) continue;
        if (found) {
            session.held_untold |= group->holders->has_news(index);
            continue;
        }
        const Holders::News news = group->holders->take_news(index);
        found = news.ms > 0;
        const EventKind kind = news.silent ? EventKind::kHeldSilent : EventKind::kHeldSlow;
        if (found) out = {kind, session.rank, news.ms, group->handle};
    }
    return found;
}

bool Sessions::poll_event(Event& out) noexcept {
    while (Session* session = news_.front()) {
        bool told = false;  // nothing, if the group that it held up is removed
        // Only a profile that does not acknowledge loses packets for good.
        const bool failed = session->gone_untold && context_.params().acknowledged;
        if (session->lost > 0 && !failed) {
            out = {EventKind::kLost, session->rank, session->lost};
            session->lost = 0;
            told = true;
        } else if (session->held_untold) {
            told = poll_held(*session, out);
        }
        if (!told && session->gone_untold) {
            out = {session->gone_as, session->rank, failed ? session->lost : 0};
            if (failed) session->lost = 0;
            session->gone_untold = false;
            told = true;
        }
        if (!session->gone_untold && !session->held_untold) news_.remove(*session);
        if (told) return true;
    }
    return false;
}

Err Sessions::link(Rank slot, const Peer& peer, const LinkEnds& ends) {
    const bool unicast = (peer.mac.octets[0] & 1U) == 0 && peer.mac != Mac{};
    if (!for_links() || slot >= peers_.size() || ends.self == kNoRank || !unicast ||
        peer.handle == 0 || is_group(peer.handle))
        return Err::kInvalid;
    if (!is_vacant(slot)) return Err::kMismatch;
    peers_[slot] = peer;
    ends_[slot] = ends;
    return Err::kOk;
}

bool Sessions::may_unlink(Rank slot) const noexcept {
    const Session* session = sessions_[slot].get();
    return session == nullptr ||
           (session->gone && !news_.holds(*session) && session->ready_head == nullptr);
}

void Sessions::vacate(Rank slot) noexcept {
    sessions_[slot].reset();
    peers_[slot] = {};
    ends_[slot] = {};
}

Group* Sessions::look_up(GroupHandle handle) const noexcept {
    const auto at = std::find(handles_.begin(), handles_.end(), handle);
    if (at == handles_.end()) return nullptr;
    last_group_ = static_cast<std::size_t>(at - handles_.begin());
    return groups_[last_group_].get();
}

Err Sessions::add_group(GroupHandle handle, std::span<const Rank> ranks, Group*& out) {
    if (!is_group(handle) || ranks.empty() || ranks.size() > kGroupMembersMax || for_links())
        return Err::kInvalid;
    if (find_group(handle) != nullptr) return Err::kMismatch;
    if (groups_.size() == kGroupsMax) return Err::kLimit;
    auto group = std::make_unique<Group>();
    group->handle = handle;
    group->ranks.assign(ranks.begin(), ranks.end());
    group->index_of.assign(peers_.size(), kNoRank);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i] >= peers_.size() || group->index_of[ranks[i]] != kNoRank) return Err::kInvalid;
        group->index_of[ranks[i]] = static_cast<std::uint16_t>(i);
    }
    group->own = group->index_of[context_.config.rank];
    if (group->own == kNoRank) return Err::kInvalid;
    const Params& p = context_.params();
    group->ack_modulus = std::max(p.group_ack_window, static_cast<std::uint32_t>(ranks.size()));
    group->window = std::max({p.window, std::bit_ceil(2 * group->ack_modulus),
                              std::bit_ceil(std::max(1U, p.group_window_min))});
    out = group.get();
    handles_.push_back(handle);
    groups_.push_back(std::move(group));
    return Err::kOk;
}

void Sessions::erase_group(const Group& group) noexcept {
    const auto at = std::find(handles_.begin(), handles_.end(), group.handle);
    ULC_CHECK(at != handles_.end());
    groups_.erase(groups_.begin() + (at - handles_.begin()));
    handles_.erase(at);
    last_group_ = 0;
}

wire::FrameHead Sessions::head_from_us(wire::FrameType type) const noexcept {
    const TransportConfig& config = context_.config;
    wire::FrameHead head;
    head.source = config.mac;
    head.ether_type = config.ether_type;
    head.type = type;
    head.rank = config.rank;
    head.crc = config.crc;
    return head;
}

wire::FrameHead Sessions::head_to(Rank rank, wire::FrameType type) const noexcept {
    wire::FrameHead head = head_from_us(type);
    head.destination = peers_[rank].mac;
    head.handle = peers_[rank].handle;
    head.rank = name_at(rank);
    return head;
}

wire::FrameHead Sessions::head_to(const Group& group, wire::FrameType type) const noexcept {
    wire::FrameHead head = head_from_us(type);
    head.destination = group.address;
    head.handle = group.handle;
    return head;
}

wire::Head Sessions::head_of(const TxStream& tx) const noexcept {
    wire::Head head = data_head_;
    if (tx.group != nullptr) {
        const auto type = tx.group->counted ? wire::FrameType::kCounted : wire::FrameType::kMcast;
        head.ethernet.destination = tx.group->address;
        head.header.version_type = wire::version_type(type);
        head.header.handle = tx.id;
    } else {
        const Peer& peer = peers_[tx.rank[0]];
        head.ethernet.destination = peer.mac;
        head.header.handle = peer.handle;
        if (for_links()) head.header.rank = ends_[tx.rank[0]].self;
    }
    return head;
}

void Sessions::check_invariants() const {
    ULC_CHECK(sessions_.size() == peers_.size() && handles_.size() == groups_.size());
    ULC_CHECK(ends_.size() == (for_links() ? peers_.size() : 0));
    for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
        const Session* session = sessions_[rank].get();
        if (session == nullptr) continue;
        ULC_CHECK(session->rank == rank && rank != context_.config.rank);
        ULC_CHECK(news_.holds(*session) == (session->gone_untold || session->lost > 0));
        ULC_CHECK(session->unicast.session == session && session->unicast.group == nullptr);
        for (const RxStream* rx = session->unicast.sibling; rx != nullptr; rx = rx->sibling)
            ULC_CHECK(rx->session == session && rx->group != nullptr &&
                      rx->id == rx->group->handle);
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        const Group& group = *groups_[i];
        ULC_CHECK(group.handle == handles_[i] && group.rules != nullptr);
        ULC_CHECK(group.ranks[group.own] == context_.config.rank);
    }
}

}  // namespace ulc::urtp
