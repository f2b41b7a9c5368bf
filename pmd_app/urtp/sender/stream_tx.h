// SPDX-License-Identifier: BSD-3-Clause
// The sending half of one stream: a ring of retained packets, and the numbers that each destination
// acknowledged.
//
//          base            sent        tail        limit, base + window
//   ─────────┴───────────────┴───────────┴──────────┴────▶
//            │ unacknowledged│ committed │ may commit│
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "base/cache_aligned.h"
#include "base/tables/list.h"
#include "base/units.h"
#include "port/segment.h"
#include "urtp/context.h"
#include "urtp/rtt.h"
#include "urtp/sender/congestion.h"
#include "urtp/sender/pacer.h"
#include "urtp/timers.h"
#include "wire/ids.h"

namespace ulc::urtp {

struct Group;
struct TxStream;

/// A retained packet.
struct TxSlot {
    /// Transmissions after which a packet is merely lost, by one of many or again; beyond,
    /// repetitions crowd each other out.
    static constexpr int kTriesBeforeBackOff = 4;
    /// Transmissions up to which a lost packet says nothing about those behind it.
    static constexpr std::uint8_t kBlameless = 3;
    static constexpr std::uint16_t kNobody = 0xffff;
    static constexpr std::uint16_t kSeveral = 0xfffe;

    Segment* segment = nullptr;
    TxStream* stream = nullptr;
    TxSlot* link = nullptr;  ///< commit order, until first transmission
    Nanos sent_at = 0;       ///< the latest transmission
    union {
        std::uint32_t ticket = 0;  ///< its ticket (departures.h)
        std::uint32_t due;         ///< time of the repair, while one is asked for (repairs.cc)
    };
    std::uint16_t asked_by = kNobody;  ///< group index whose request waits, or kSeveral
    std::uint8_t transmissions = 0;    ///< saturating

    /// The packet is repeated for one before it: its luck does not count yet.
    void hold_blameless() noexcept {
        if (transmissions >= kBlameless) transmissions = kBlameless - 1;
    }
};

/// Aligned, so that what a short message touches lies in two cache lines (unit urtp_cache_lines).
struct TxStream : CacheAligned {
    /// members: by group index, or the one receiver. own: index that is no destination (any other
    /// value: none). Allocates; nothing else here does.
    TxStream(StreamId stream, Group* of_group, std::span<const Rank> members, std::size_t own,
             std::uint32_t ring, Seq first, Nanos initial_rtt);
    ~TxStream();
    TxStream(const TxStream&) = delete;
    TxStream& operator=(const TxStream&) = delete;

    [[nodiscard]] TxSlot& slot(Seq seq) const noexcept { return slots[seq.value & (window - 1)]; }
    [[nodiscard]] bool active() const noexcept { return base != tail; }
    [[nodiscard]] bool on_wire() const noexcept { return base != sent; }
    [[nodiscard]] bool has_room() const noexcept {
        return tail.in_window(base, cwnd) && tail.before(limit);
    }
    /// Repairs or destinations have changed.
    void renew_clear() noexcept { clear = takes_short && repairs == 0 && destinations > 0; }
    [[nodiscard]] bool is_to_group() const noexcept { return is_group(id); }  ///< group is set

    /// Destination `at` has everything before `next`; true: base moved (free what lies before it).
    bool acknowledge(std::uint32_t at, Seq seen) noexcept {
        if (members > 1) return acknowledge_one_of(at, seen);
        const bool moved = base != seen;
        next[0] = base = seen;
        return moved;
    }
    /// Destination `at` accepts numbers before `beyond`, for now: a later word may retract it.
    void allow(std::uint32_t at, Seq beyond) noexcept {
        if (members > 1) return allow_one_of(at, beyond);
        edge[0] = limit = beyond;
    }
    /// acknowledge() and allow() of the only destination, which is known to be one.
    void acknowledge_only(Seq seen, Seq beyond) noexcept {
        single_.next = base = seen;
        single_.edge = limit = beyond;
    }
    /// The only destination has the next packet, and said so, without a frame. Nothing is retained.
    void pass() noexcept {
        base = sent = freed = asked = ++tail;
        next[0] = tail;
        allow(0, edge[0] + 1);
        wants_credit = false;
    }
    /// Destination `at` left. True: base moved.
    bool remove_destination(std::uint32_t at) noexcept;
    [[nodiscard]] bool is_destination(std::uint32_t at) const noexcept { return absent[at] == 0; }
    /// The next packet asks for acknowledgement at once.
    [[nodiscard]] bool asks() const noexcept {
        return static_cast<std::uint32_t>(tail - asked) + 1 >= ask_every;
    }
    /// Nothing but the window bounds the stream: no queue shows in its round trip.
    [[nodiscard]] bool is_unbounded() const noexcept {
        return cwnd == window && pacer.gap() == 0 && members == 1;
    }
    /// The acknowledgement of `packets` more packets is to give a sample of the round trip.
    [[nodiscard]] bool wants_sample(std::uint32_t packets, Nanos now) const noexcept {
        return samples < kSampleEvery || ticks(now) - sampled_at >= ticks(kSampleWait) ||
               untold + packets >= kSampleEvery || !is_unbounded();
    }
    /// The tail's news are of interest at this destination.
    [[nodiscard]] bool lacks(std::uint32_t at) const noexcept {
        return is_destination(at) && (next[at] != sent || !on_wire());
    }
    /// A round trip has passed since the last cut: news may be its effect.
    [[nodiscard]] bool may_cut(Nanos now) const noexcept { return now - cut_at >= rtt.smoothed(); }

    void fields(state::Archive& archive);  ///< urtp/state/

    // --- the first line
    const StreamId id;
    const std::uint32_t window;  ///< slots in the ring, power of two
    Seq base;
    Seq sent;
    Seq tail;
    Seq limit;  ///< least of the destinations' edges
    /// Packets that may be unacknowledged: `window`, or less by congestion.
    std::uint32_t cwnd;
    /// Every so many-th packet asks for acknowledgement at once; kNeverAsk: none does.
    static constexpr std::uint32_t kNeverAsk = UINT32_MAX;
    std::uint32_t ask_every = kNeverAsk;
    Seq asked;  ///< the packet after the last one that asked
    Seq freed;  ///< segments before it were let go
    std::unique_ptr<TxSlot[]> slots;
    const std::uint16_t
        members;             ///< length of the arrays below, indexed by group index (0: unicast)
    std::uint16_t want = 0;  ///< numbers from want_first on that need a reservation
    bool want_turn : 1 = false;     ///< the tail timer asks for space and for news in turn
    bool backs_off : 1 = false;     ///< repeats ever more rarely what it repeats without effect
    bool wants_credit : 1 = false;  ///< a packet waits for credit or window
    /// The configuration and the kind of group leave short messages the fast path.
    bool takes_short : 1 = false;
    /// Window, credit, pacer and order alone decide about a short message: what the fast path asks.
    bool clear : 1 = false;
    /// The receiver's, as its acknowledgements and unanswered probes show it.
    std::uint8_t patience : 3 = 0;
    /// Times that a window is, for what is repeated at once (Repairs::may_repeat()).
    std::uint8_t repeats_halved : 5 = 0;
    static_assert(kPatienceMax < 1U << 3U);
    std::uint8_t samples = 0;  ///< round trips measured, up to kSampleEvery
    std::uint8_t untold = 0;   ///< packets acknowledged since then
    Nanos probe_wait = 0;

    // --- the second line
    Pacer pacer;
    Nanos probe_at = kNever;
    Links<TxStream> active_link;
    std::uint32_t wait = 0;        ///< the tail's, in ns; 0: to be computed (TailWait)
    std::uint32_t sampled_at = 0;  ///< in ticks()
private:
    /// The numbers of a single destination; a group's are allocated.
    struct Single {
        Seq next;
        Seq edge;
    } single_;

public:
    Timer timer;  ///< its `due`

    // --- the rest
    Group* const group;
    Seq* next = nullptr;              ///< acknowledged before it
    Seq* edge = nullptr;              ///< accepts numbers before it (credit)
    std::uint32_t* absent = nullptr;  ///< all ones: not, or no longer, a destination
    Rank* rank = nullptr;

    // reservations, where a policy makes them (KeptRoom)
    std::unique_ptr<Seq[]> granted;  ///< by destination: keeps space for the numbers before it
    Seq want_first;
    std::uint16_t want_at = TxSlot::kNobody;  ///< this destination, or kSeveral
    std::uint16_t destinations;               ///< left

    std::variant<std::monostate, LossBased, AdaptiveBackoff, DelayBased>
        congestion;    ///< the policy's state
    Nanos cut_at = 0;  ///< when it last took congestion for there
    Rtt rtt;
    // --- round trips are measured now and then while nothing bounds the stream (answers.cc)
    static constexpr std::uint32_t kSampleEvery = 16;  ///< packets
    static constexpr Nanos kSampleWait = 100 * kMicrosecond;
    /// Time in units of 1,024 ns, in four octets: a session has few (sim/memory_budget).
    [[nodiscard]] static std::uint32_t ticks(Nanos time) noexcept {
        return static_cast<std::uint32_t>(time >> 10);
    }
    Nanos probed_at = 0;
    Links<TxStream> probe_link;
    Links<TxStream> repair_link;
    Seq repair_from;            ///< none before it is asked for
    std::uint32_t repairs = 0;  ///< packets that are

private:
    struct SingleRest {
        std::uint32_t absent = 0;
        Rank rank = kNoRank;
    } single_rest_;
    bool acknowledge_one_of(std::uint32_t at, Seq seen) noexcept;
    void allow_one_of(std::uint32_t at, Seq beyond) noexcept;
    bool settle_base() noexcept;
    void settle_limit() noexcept;
};

}  // namespace ulc::urtp
