// SPDX-License-Identifier: BSD-3-Clause
// The participants: peers, the sessions with those that were heard or sent to, groups, and links.
// Lookups for every part of the transport, the heads of frames, and news of peers. Streams begin
// and end in the Sender and the Receiver; transport.cc calls both.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/tables/list.h"
#include "urtp/context.h"
#include "urtp/session.h"
#include "wire/build.h"
#include "wire/parse.h"

namespace ulc::urtp {

class Sessions {
public:
    static constexpr std::size_t kGroupsMax = 1024;

    /// peers: by rank, or as many empty ones as there may be links; copied. context: outlives this.
    Sessions(const Context& context, std::span<const Peer> peers);

    // --- peers
    [[nodiscard]] std::size_t size() const noexcept { return peers_.size(); }
    [[nodiscard]] const Peer& peer(Rank rank) const noexcept { return peers_[rank]; }
    /// The member is of no job, and open for links.
    [[nodiscard]] bool for_links() const noexcept { return context_.config.rank == kNoRank; }
    [[nodiscard]] bool is_vacant(Rank rank) const noexcept {
        return for_links() && ends_[rank].self == kNoRank;
    }
    /// Returns the name under which the peer knows this member.
    [[nodiscard]] Rank name_at(Rank peer) const noexcept {
        return for_links() ? ends_[peer].self : context_.config.rank;
    }
    [[nodiscard]] LinkEnds ends_of(Rank peer) const noexcept {
        const TransportConfig& c = context_.config;
        return for_links() ? ends_[peer] : LinkEnds{c.rank, c.first_seq, c.first_seq};
    }
    /// The frame's source is the rank that it names.
    [[nodiscard]] bool is_from_peer(const wire::FrameView& frame) const noexcept {
        return frame.rank < peers_.size() && peers_[frame.rank].mac == frame.source;
    }

    // --- sessions
    /// nullptr: none was made. rank: below size().
    [[nodiscard]] Session* find(std::size_t rank) const noexcept { return sessions_[rank].get(); }
    /// Makes the session, without streams. The slot is not vacant and has none.
    Session& make(Rank rank);
    /// poll_event() has something of this session.
    void tell(Session& session) noexcept { news_.add(session); }
    [[nodiscard]] bool has_news() const noexcept { return !news_.empty(); }
    [[nodiscard]] bool poll_event(Event& out) noexcept;

    // --- links (docs/PROTOCOL.md §4). Each end names the other by a slot. A frame carries the name
    // that its receiver has for its sender, so nothing is looked up by address.
    /// Makes a link (Transport::link()).
    Err link(Rank slot, const Peer& peer, const LinkEnds& ends);
    /// Returns whether the peer is gone, and its news was taken.
    [[nodiscard]] bool may_unlink(Rank slot) const noexcept;
    /// Makes the slot vacant. Its session's streams have ended and are in no list.
    void vacate(Rank slot) noexcept;

    // --- groups
    [[nodiscard]] Group* find_group(GroupHandle handle) const noexcept {
        if (last_group_ < handles_.size() && handles_[last_group_] == handle)
            return groups_[last_group_].get();
        return look_up(handle);
    }
    /// Returns the source's stream in the group; nullptr: no packet came yet. A source's groups are
    /// few.
    [[nodiscard]] static RxStream* heard(const Group& group, Session& session) noexcept {
        RxStream* rx = session.unicast.sibling;
        while (rx != nullptr && rx->group != &group)
            rx = rx->sibling;
        return rx;
    }
    [[nodiscard]] std::span<const std::unique_ptr<Group>> groups() const noexcept {
        return groups_;
    }
    /// Makes a group (Transport::add_group()). out: the group, without rules.
    Err add_group(GroupHandle handle, std::span<const Rank> ranks, Group*& out);
    void erase_group(const Group& group) noexcept;

    // --- heads of frames
    [[nodiscard]] wire::FrameHead head_to(Rank rank, wire::FrameType type) const noexcept;
    /// Addresses all members.
    [[nodiscard]] wire::FrameHead head_to(const Group& group, wire::FrameType type) const noexcept;
    /// Writes what the DATA packets to a peer begin with: what head_of() its stream returns.
    void write_head(Rank rank, wire::Head& out) const noexcept {
        out = data_head_;
        out.ethernet.destination = peers_[rank].mac;
        out.header.handle = peers_[rank].handle;
        if (for_links()) [[unlikely]]
            out.header.rank = ends_[rank].self;
    }
    /// Returns what the packets of a stream begin with.
    [[nodiscard]] wire::Head head_of(const TxStream& tx) const noexcept;

    /// Calls visit(Session&) for each session.
    template <typename Visit>
    void each(Visit visit) const {
        for (const auto& session : sessions_)
            if (session != nullptr) visit(*session);
    }
    /// Calls visit(TxStream&) for each stream that this member sends.
    template <typename Visit>
    void each_sending(Visit visit) const {
        for (const auto& group : groups_)
            if (group->tx != nullptr) visit(*group->tx);
        for (const auto& session : sessions_)
            if (session != nullptr && session->tx != nullptr) visit(*session->tx);
    }

    // --- an upgrade (urtp/state/)
    void fields(state::Archive& archive);       ///< peers
    void news_fields(state::Archive& archive);  ///< after the sessions were made
    /// Fails the process if an invariant is broken. O(peers + members of groups).
    void check_invariants() const;

private:
    [[nodiscard]] Group* look_up(GroupHandle handle) const noexcept;
    bool poll_held(Session& session, Event& out) noexcept;
    [[nodiscard]] wire::FrameHead head_from_us(wire::FrameType type) const noexcept;

    const Context& context_;
    std::vector<Peer> peers_;
    std::vector<LinkEnds> ends_;                      ///< by slot; empty in a job
    std::vector<std::unique_ptr<Session>> sessions_;  ///< by rank; made at the first contact
    std::vector<GroupHandle> handles_;  ///< parallel to groups_: a lookup touches only these
    std::vector<std::unique_ptr<Group>> groups_;
    mutable std::size_t last_group_ = 0;  ///< found last
    List<Session, &Session::news_link> news_;
    const wire::Head data_head_;  ///< DATA's, without the receiver
};

}  // namespace ulc::urtp
