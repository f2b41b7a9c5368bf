// SPDX-License-Identifier: BSD-3-Clause
// The state that a member keeps of one peer that was heard from or sent to, and of one group. Made
// at the first packet.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_aligned.h"
#include "base/tables/list.h"
#include "urtp/group_rules.h"
#include "urtp/receiver/rx_store.h"
#include "urtp/receiver/stream_rx.h"
#include "urtp/rtt.h"
#include "urtp/sender/holders.h"
#include "urtp/sender/stream_tx.h"
#include "urtp/timers.h"
#include "urtp/types.h"

namespace ulc::urtp {

/// Aligned, so that what a short message touches lies in two cache lines (unit urtp_cache_lines).
struct Session : CacheAligned {
    Session(Rank of, bool of_this_node, Nanos initial_rtt)
        : rank(of), local(of_this_node), rtt(initial_rtt) {
        expect_timer.kind = TimerOwner::kSession;
        expect_timer.owner = this;
        reserved.reserved = true;
    }

    void fields(state::Archive& archive);  ///< urtp/state/

    // --- what a short message touches, up to the timer's `due` in `unicast`
    std::unique_ptr<TxStream> tx;  ///< from us to it
    RxStream* unacked_group =
        nullptr;  ///< the group stream that advanced last: piggybacked on the next DATA to it
    const Rank rank;
    std::uint16_t blocked = 0;    ///< streams whose head waits for `after` entries
    std::uint8_t unanswered = 0;  ///< probes since the last frame from it; saturating
    /// True if it was given less credit than it could use, or lost packets for lack of space.
    bool starved : 1 = false;
    bool reserved_used : 1 = false;
    bool in_doubt : 1 = false;     ///< a separate frame must ask it whether it lives
    bool expecting : 1 = false;    ///< a pending receive names this source
    bool in_slot : 1 = false;      ///< its ready packets wait for a receive that names it (P0)
    bool held_untold : 1 = false;  ///< it held up a group of ours, which no event has reported yet
    bool gone = false;
    const bool local;  ///< on this node, so its frames come from the pool for sending

    RxStream unicast;  ///< from it to us; the groups' are its siblings
    [[nodiscard]] RxStream* streams() noexcept { return &unicast; }  ///< all from it

    // --- the rest
    bool gone_untold = false;
    EventKind gone_as{};
    StreamId spoke = kNoRank;  ///< stream that had the last control frame: the others' turn is next
    std::uint32_t held = 0;    ///< nodes of the pool that its packets occupy
    std::uint32_t lost = 0;    ///< to report: packets of it (detect); messages to it, once gone
    RepairCounts counts;       ///< with this peer
    Nanos unanswered_since = kNever;
    Rtt rtt;
    ReplyTime reply;  ///< reply time of pending receives that name it, until a packet comes

    RxNode* ready_head = nullptr;
    RxNode* ready_tail = nullptr;
    RxNode reserved;  ///< its own packet of memory, whatever the others hold
    /// Payload of that packet: not in a frame, since those are shared. Made at the first one.
    std::unique_ptr<std::byte[]> reserved_octets;

    Nanos expected_since = 0;
    Nanos expect_at = kNever;
    Nanos expect_wait = 0;
    /// The stream for the next request, with Params::receives_in_turn; nullptr: a group, as most
    /// receives are of collectives.
    RxStream* ask_by = nullptr;
    Timer expect_timer;
    Links<Session> ready_link;
    Links<Session> control_link;
    Links<Session> starved_link;
    Links<Session> news_link;
    Links<Session> awaited_link;
};

struct Group {
    void fields(state::Archive& archive);  ///< urtp/state/

    GroupHandle handle = 0;
    Mac address = kBroadcastMac;          ///< to which its members listen
    std::vector<Rank> ranks;              ///< by index
    std::vector<std::uint16_t> index_of;  ///< by rank; kNoRank: not a member
    std::uint16_t own = 0;                ///< own index
    std::uint32_t ack_modulus = 16;       ///< A
    std::uint32_t window = 0;
    std::unique_ptr<TxStream> tx;
    std::unique_ptr<Holders> holders;           ///< made with `tx`
    std::vector<std::unique_ptr<RxStream>> rx;  ///< streams of the members heard, in any order
    std::unique_ptr<GroupRules> rules;          ///< never nullptr
    bool counted = false;  ///< its packets have a global counter (frame type COUNTED)
    Links<Group> control_link;
};

}  // namespace ulc::urtp
