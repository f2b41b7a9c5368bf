// SPDX-License-Identifier: BSD-3-Clause
// Liveness of nodes. Silence starts questions (PING), unanswered questions end a node, silence
// alone never does (DECISIONS D13; U-Net MPI §5.4): a peer that computes for a minute has an
// engine that answers.
//
//   heard ──node_idle──▶ ping every ping_wait ──≥ patience silent, ≥ pings_min unanswered──▶ dead
//     ▲──────── any frame from the node ────────┴────────────────────────────────┘
//
// The patience with a node is node_dead, or four times as long as it let a ping wait before, up to
// patience_max: on a busy machine an engine loses the processor again and again, and a node that
// was away for a second comes back. An absence counts half as much every forget_wait. A job may
// have more patience (15 s for MPI): its ranks go on, so a dead node with live ranks is asked on,
// and reported again each time that its silence has grown by a sixteenth. The time for which this
// engine was away itself does not count against others. A long one is kept for forget_wait, since
// it explains why others end this node's ranks then. An engine that returns from one pings all
// nodes, up to four times in 3 ms, so that a node that is about to judge hears it.
//
// An answer that carries another incarnation than the roster's says that the engine died and
// another one runs there. GONE says the same of one endpoint. EXPELLED says that one here is held
// for dead there. Each ends something only as the answer to a PING with a fresh token. Unasked they
// are hints, sent at a limited rate, and a hint only makes this engine ask. A node that is heard is
// asked twice every node_dead: another job may speak for it, or it may hear nothing from here. If
// it answers none of deaf_pings pings within the patience, it is dead as well. A ping counts only
// once next_tx() handed it out, so an engine that could not send, or did not run, kills no rank.
// Timers: one sweep over the nodes every sweep_wait while any node is watched. Sans-IO, engine
// thread only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bounded.h"
#include "base/counters.h"
#include "base/units.h"
#include "jobs/nodes/ended_endpoints.h"
#include "seal/tokens.h"
#include "wire/ids.h"
#include "wire/job.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::jobs {

/// Names a watched node: 16 bits of slot, 16 bits of the slot's generation, so that an index kept
/// too long names no node, and never another one.
using NodeIndex = std::uint32_t;
inline constexpr NodeIndex kNoNode = 0xffffffffU;
inline constexpr NodeIndex kNodeSlotMask = 0xffffU;
inline constexpr std::uint32_t kNodesMax = 0xffff;
/// Capacity of each of two queues of answers: to watched nodes, and to strangers.
inline constexpr std::size_t kAnswersMax = 64;

struct LivenessConfig {
    Nanos node_idle = 250 * kMillisecond;  ///< silence before the first ping
    Nanos node_dead = 2 * kSecond;  ///< from the last frame heard, with pings_min unanswered pings
    Nanos patience_max = 60 * kSecond;  ///< instead of node_dead, with a node that was away before
    Nanos forget_wait = 10 * kSecond;
    std::uint8_t pings_min = 8;
    std::uint8_t deaf_pings = 16;  ///< unanswered by a node that is heard all the time
    std::uint32_t nodes_max = 8192;
    std::uint32_t gones_per_second = 1000;      ///< hints: unasked GONE and EXPELLED
    std::uint32_t strangers_per_second = 1000;  ///< answers to nodes that are not watched
};

/// A finding of liveness; the caller turns it into ranks.
struct NodeVerdict {
    enum class Kind : std::uint8_t {
        kDead,          ///< the node does not answer
        kRestarted,     ///< another engine incarnation answers there
        kGone,          ///< one endpoint is unknown there
        kExpelled,      ///< one endpoint here is held for dead there
        kSaysGone,      ///< kGone without proof
        kSaysExpelled,  ///< kExpelled without proof
        kAsks,          ///< a PING, to be answered by one of the answer functions
    };
    Kind kind{};
    Mac mac;
    std::uint32_t incarnation = 0;  ///< the sending engine's
    Handle theirs = 0;              ///< kGone: which; kAsks: the asker's, that may be held for dead
    Handle ours = 0;                ///< kExpelled: which; kAsks: is it here?
    wire::LeaveReason reason{};     ///< kGone; kExpelled: kExcluded, the endpoint alone, or 0
    std::uint64_t token = wire::kNoToken;  ///< kAsks
    Nanos silence = 0;                     ///< kDead: for how long it answered nothing
};

/// A rate with a burst. Kept as the time at which the bucket was empty.
class RateLimit {
public:
    /// False: too many. per_second 0: none. most: the burst.
    [[nodiscard]] bool take(Nanos now, std::uint32_t per_second,
                            std::size_t most = kAnswersMax) noexcept;
    void fields(state::Archive& archive);

private:
    Nanos empty_at_ = -kNever / 2;  ///< full, at any time
};

class Liveness {
public:
    Liveness(const LivenessConfig& config, const Mac& own, std::uint32_t incarnation,
             const seal::Seed& seed, Counters& counters);

    /// One more live rank at that node; the first starts the watch. False: nodes_max is reached.
    [[nodiscard]] bool watch(const Mac& mac, std::uint32_t incarnation, Nanos now);
    /// Calls of links may watch one more node: they leave half of nodes_max for jobs.
    [[nodiscard]] bool has_room_for_calls() const noexcept {
        return by_mac_.size() < config_.nodes_max / 2;
    }
    /// One rank less; the last ends the watch.
    void unwatch(const Mac& mac) noexcept;
    [[nodiscard]] NodeIndex find(const Mac& mac) const noexcept;
    /// Returns the number of the newest ping to a watched node.
    [[nodiscard]] std::uint64_t pings_to(const Mac& mac) const noexcept;
    /// Returns the incarnation of a watched node; 0: it is not watched.
    [[nodiscard]] std::uint32_t incarnation_of(const Mac& mac) const noexcept;
    void heard(NodeIndex node, Nanos now) noexcept {
        const std::size_t slot = node & kNodeSlotMask;
        if (slot < nodes_.size() && nodes_[slot].index == node) nodes_[slot].last_heard = now;
    }
    /// Returns where heard() keeps the time, valid until any other call that may change what is
    /// watched; nullptr: no such node is watched.
    [[nodiscard]] Nanos* place_of_heard(NodeIndex node) noexcept {
        const std::size_t slot = node & kNodeSlotMask;
        const bool watched = slot < nodes_.size() && nodes_[slot].index == node;
        return watched ? &nodes_[slot].last_heard : nullptr;
    }
    /// Returns whether the node has been silent for as long as a death takes in a job of that
    /// patience (0: none), or is not watched.
    [[nodiscard]] bool is_silent(NodeIndex node, Nanos patience, Nanos now) const noexcept {
        const std::size_t slot = node & kNodeSlotMask;
        if (slot >= nodes_.size() || nodes_[slot].index != node) return true;
        // A sweep that is late shows that this engine was away, which no sweep has noted yet.
        const Nanos silence = nodes_[slot].unheard(std::min(now, sweep_at_));
        return silence >= patience && silence >= patience_with(nodes_[slot], now);
    }
    /// A frame from there named that incarnation. If it is not the watched one, ask now: the frame
    /// may be an old one, only the answer to a fresh token is proof.
    void hint(const Mac& mac, std::uint32_t incarnation, Nanos now);
    /// Returns whether a hint about a watched node may make this engine ask it: no more often than
    /// once a millisecond, and not while such a question waits.
    [[nodiscard]] bool may_doubt(const Mac& mac, Nanos now) const noexcept;
    /// Asks a watched node at once about these endpoints of the two ends (0: none), unless it was
    /// asked just now.
    void doubt(const Mac& mac, Handle ours, Handle theirs, Nanos now);
    /// A local endpoint ended: GONE about its handle will say how.
    void ended(Handle handle, wire::LeaveReason reason) noexcept;

    /// A parsed NODE body. True: `verdict` is to be acted on.
    [[nodiscard]] bool on_node(const wire::NodeView& view, const Mac& source, Nanos now,
                               NodeVerdict& verdict);
    /// Hints that a handle is unknown here, or that an endpoint of that node is held for dead here.
    void unknown_handle(const Mac& source, Handle handle, Nanos now) noexcept;
    void held_for_dead(const Mac& source, Handle theirs, wire::LeaveReason reason,
                       Nanos now) noexcept;
    /// Exactly one of these answers a verdict kAsks.
    void answer_pong(const NodeVerdict& asked) noexcept;
    void answer_gone(const NodeVerdict& asked) noexcept;
    void answer_expelled(const NodeVerdict& asked, wire::LeaveReason reason) noexcept;

    /// A NODE frame's body and where to; false: none. A PING that asks about no endpoint yet may be
    /// given a question by the caller.
    [[nodiscard]] bool next_tx(Mac& destination, wire::NodeBody& body, Nanos now);
    [[nodiscard]] bool has_tx() const noexcept;
    [[nodiscard]] Nanos next_timer() const noexcept { return sweep_at_; }
    void on_timer(Nanos now);
    /// Returns the longest time lately for which this engine did not run, if that is about as long
    /// as other nodes wait before they hold a node for dead; else 0. patience: that of the job, if
    /// longer than node_dead.
    [[nodiscard]] Nanos own_absence(Nanos patience, Nanos now) const noexcept;
    /// Nodes found dead by on_timer(); call until false. A node stays watched until its ranks are
    /// unwatched, and is found again later if some are not.
    [[nodiscard]] bool next_dead(NodeVerdict& verdict) noexcept;

    /// Returns how many places of the table of ended endpoints were looked at, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return ended_.steps(); }
    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    struct Node {
        NodeIndex index = kNoNode;  ///< own name; kNoNode: the slot is free
        Mac mac;
        bool ping_due = false;
        std::uint8_t pings = 0;  ///< handed out since last heard, saturating
        std::uint8_t asked = 0;  ///< handed out since the last answer, saturating
        std::uint32_t incarnation = 0;
        std::uint32_t ranks = 0;
        Nanos last_heard = 0;
        Nanos last_ping = 0;
        Nanos asked_since = 0;  ///< the first of those
        Nanos excused = 0;      ///< this engine was away so long since it heard the node …
        Nanos excused_at = 0;   ///< … as known at this time
        Nanos reported = 0;     ///< the silence at the latest report that it is dead; 0: none
        Nanos waits_since = 0;  ///< the first ping since it was last heard; 0: none
        Nanos absence = 0;      ///< how long it let one wait, as remembered at absence_at
        Nanos absence_at = 0;
        seal::TokenSeries tokens;  ///< those of the last kTokensBack pings are valid in answers
        std::uint64_t number = 0;  ///< number of the newest ping
        Handle ours = 0;           ///< the next ping's questions
        Handle theirs = 0;

        /// Returns for how long the node was not heard while this engine ran.
        [[nodiscard]] Nanos unheard(Nanos now) const noexcept {
            return now - last_heard - (last_heard >= excused_at ? 0 : excused);
        }
        void fields(state::Archive& archive);
    };
    struct Answer {
        Mac to;
        wire::NodeBody body;
        void fields(state::Archive& archive);
    };
    /// Index of a MAC in by_mac_, or where it would stand.
    [[nodiscard]] std::size_t place_of(const Mac& mac) const noexcept;
    [[nodiscard]] Node* at(const Mac& mac) noexcept;
    [[nodiscard]] Nanos ping_wait() const noexcept;
    [[nodiscard]] Nanos sweep_wait() const noexcept;
    void ask(std::uint32_t slot);
    void sweep(std::uint32_t slot, Nanos now);
    [[nodiscard]] Nanos absence_of(const Node& node, Nanos now) const noexcept;
    [[nodiscard]] Nanos patience_with(const Node& node, Nanos now) const noexcept;
    [[nodiscard]] Nanos silence_of(const Node& node, Nanos now) const noexcept;
    void excuse(Node& node, Nanos away, Nanos now) const noexcept;
    void note_answer(Node& node, Nanos now) noexcept;
    void note_own_absence(Nanos away, Nanos now) noexcept;
    /// True: an answer to one of the latest pings to that node.
    [[nodiscard]] bool fresh(const wire::NodeView& view, const Mac& source) const noexcept;
    /// Queues an answer, or a hint, that its rate allows.
    void answer(const Mac& to, const wire::NodeBody& body) noexcept;
    [[nodiscard]] bool may_hint(const Mac& to, Nanos now) noexcept;
    [[nodiscard]] bool may_answer(const Mac& to, Nanos now) noexcept;

    LivenessConfig config_;
    Mac own_;
    std::uint32_t incarnation_;
    Counters& counters_;
    seal::Tokens tokens_;
    std::vector<Node> nodes_;              ///< slots are stable
    std::vector<std::uint32_t> by_mac_;    ///< slots of watched nodes, sorted by MAC
    std::vector<std::uint32_t> free_;      ///< slots
    std::vector<std::uint32_t> ping_due_;  ///< slots; Node::ping_due guards against doubles
    std::vector<NodeIndex> dead_;          ///< to be reported
    std::uint32_t generation_ = 0;
    FixedVector<Answer, kAnswersMax> answers_;    ///< to watched nodes
    FixedVector<Answer, kAnswersMax> strangers_;  ///< to others
    RateLimit strangers_limit_;
    RateLimit hints_limit_;
    EndedEndpoints ended_;  ///< the latest of this engine
    Nanos sweep_at_ = kNever;
    std::uint8_t announcements_ = 0;  ///< sweeps left that say that this engine returned
    Nanos own_absence_ = 0;           ///< the longest of this engine in forget_wait, ended at …
    Nanos own_absence_at_ = 0;
};

}  // namespace ulc::jobs
