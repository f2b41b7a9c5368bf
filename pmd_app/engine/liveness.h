// Which nodes live. Silence starts questions (PING), unanswered questions kill, silence alone never does (DESIGN decision
// 13; U-Net MPI §5.4): a peer that computes for a minute has an engine that answers.
//
//   heard ──node_idle──▶ ping every ping_wait ──(≥ node_dead since heard, ≥ pings_min unanswered)──▶ dead
//     ▲──────── any frame from the node ────────┘
//
// A PONG that carries another incarnation than the roster's says that the engine died and another one runs there. GONE
// says the same of one endpoint; sent at a limited rate. A ping counts only once it was handed out by next_tx(), so an
// engine that could not send, or was not scheduled, kills nobody.
// Timers: one sweep over the nodes every sweep_wait while any node is watched. Sans-IO, engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bounded.h"
#include "base/counters.h"
#include "base/prng.h"
#include "base/units.h"
#include "wire/ids.h"
#include "wire/job.h"

namespace ulc::engine {

/// Names a watched node: 16 bits of slot, 16 bits of the slot's generation, so that an index kept too
/// long names nobody rather than somebody else.
using NodeIndex = std::uint32_t;
inline constexpr NodeIndex kNoNode = 0xffffffffU;
inline constexpr NodeIndex kNodeSlotMask = 0xffffU;
inline constexpr std::uint32_t kNodesMax = 0xffff;
/// Answers (PONG, GONE) waiting for the wire, of each kind.
inline constexpr std::size_t kAnswersMax = 64;

struct LivenessConfig {
    Nanos node_idle = 250 * kMillisecond;  ///< silence before the first ping
    Nanos node_dead = 2 * kSecond;  ///< from the last frame heard, with pings_min unanswered pings
    std::uint8_t pings_min = 8;
    std::uint32_t nodes_max = 8192;
    std::uint32_t gones_per_second = 1000;
};

/// What liveness found out; the caller turns it into ranks.
struct NodeVerdict {
    enum class Kind : std::uint8_t {
        kDead,       ///< the node does not answer
        kRestarted,  ///< another engine incarnation answers there
        kGone,       ///< one endpoint is unknown there
    };
    Kind kind{};
    Mac mac;
    std::uint32_t incarnation = 0;  ///< kRestarted, kGone: of the engine that answered
    Handle handle = 0;              ///< kGone
    wire::LeaveReason reason{};     ///< kGone
};

class Liveness {
public:
    Liveness(const LivenessConfig& config, const Mac& own, std::uint32_t incarnation,
             std::uint64_t seed, Counters& counters);

    /// One more live rank at that node; the first starts the watch. False: nodes_max is reached.
    [[nodiscard]] bool watch(const Mac& mac, std::uint32_t incarnation, Nanos now);
    /// One rank less; the last ends the watch.
    void unwatch(const Mac& mac) noexcept;
    [[nodiscard]] NodeIndex find(const Mac& mac) const noexcept;
    void heard(NodeIndex node, Nanos now) noexcept {
        const std::size_t slot = node & kNodeSlotMask;
        if (slot < nodes_.size() && nodes_[slot].index == node) nodes_[slot].last_heard = now;
    }
    /// −kNever / 2, as good as never: no such node is watched.
    [[nodiscard]] Nanos last_heard(NodeIndex node) const noexcept {
        const std::size_t slot = node & kNodeSlotMask;
        const bool watched = slot < nodes_.size() && nodes_[slot].index == node;
        return watched ? nodes_[slot].last_heard : -kNever / 2;
    }
    /// A frame from there named that incarnation. If it is not the watched one, ask now: the frame may
    /// be an old one, only a PONG to a fresh token is proof.
    void hint(const Mac& mac, std::uint32_t incarnation);
    /// A local endpoint ended: GONE about its handle will say how.
    void ended(Handle handle, wire::LeaveReason reason) noexcept;

    /// A parsed NODE body. True: `verdict` is to be acted on.
    [[nodiscard]] bool on_node(const wire::NodeView& view, const Mac& source, Nanos now,
                               NodeVerdict& verdict);
    void unknown_handle(const Mac& source, Handle handle, Nanos now) noexcept;

    /// A NODE frame's body and where to; false: none.
    [[nodiscard]] bool next_tx(Mac& destination, wire::NodeBody& body, Nanos now);
    [[nodiscard]] bool has_tx() const noexcept;
    [[nodiscard]] Nanos next_timer() const noexcept { return sweep_at_; }
    void on_timer(Nanos now);
    /// Nodes found dead by on_timer(); call until false. The node stays watched until its ranks are unwatched.
    [[nodiscard]] bool next_dead(NodeVerdict& verdict) noexcept;

private:
    struct Node {
        NodeIndex index = kNoNode;  ///< own name; kNoNode: the slot is free
        Mac mac;
        bool ping_due = false;
        bool dead = false;
        std::uint8_t pings = 0;  ///< handed out since last heard, saturating
        std::uint32_t incarnation = 0;
        std::uint32_t ranks = 0;
        Nanos last_heard = 0;
        Nanos last_ping = 0;
        std::uint64_t token = 0;  ///< of the newest ping; the last kTokensBack are valid answers
    };
    struct Ended {
        Handle handle = 0;
        wire::LeaveReason reason{};
    };
    struct Answer {
        Mac to;
        wire::NodeBody body;
    };
    /// Index of a MAC in by_mac_, or where it would stand.
    [[nodiscard]] std::size_t place_of(const Mac& mac) const noexcept;
    [[nodiscard]] Node* at(const Mac& mac) noexcept;
    [[nodiscard]] Nanos ping_wait() const noexcept;
    [[nodiscard]] Nanos sweep_wait() const noexcept;
    void ask(std::uint32_t slot);
    void sweep(std::uint32_t slot, Nanos now);
    [[nodiscard]] bool on_pong(const wire::NodeView& view, const Mac& source, NodeVerdict& verdict);
    void answer(const Mac& to, const wire::NodeBody& body) noexcept;

    LivenessConfig config_;
    Mac own_;
    std::uint32_t incarnation_;
    Counters& counters_;
    Prng prng_;
    std::vector<Node> nodes_;              ///< slots are stable
    std::vector<std::uint32_t> by_mac_;    ///< slots of watched nodes, sorted by MAC
    std::vector<std::uint32_t> free_;      ///< slots
    std::vector<std::uint32_t> ping_due_;  ///< slots; Node::ping_due guards against doubles
    std::vector<NodeIndex> dead_;
    std::uint32_t generation_ = 0;
    FixedVector<Answer, kAnswersMax> answers_;
    std::vector<Ended> ended_;  ///< ring of the latest local ends
    std::size_t ended_next_ = 0;
    Nanos sweep_at_ = kNever;
    Nanos gone_credit_at_ = 0;  ///< token bucket of GONE, kept as the time at which it was empty
};

}  // namespace ulc::engine
