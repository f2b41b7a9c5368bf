// The sending half of one stream: a ring of retained packets, and what each destination acknowledged.
//
//          base            sent        tail        limit, base + window
//   ─────────┴───────────────┴───────────┴──────────┴────▶
//            │ unacknowledged│ committed │ may commit│
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "base/units.h"
#include "urtp/congestion.h"
#include "urtp/list.h"
#include "urtp/pacer.h"
#include "urtp/rtt.h"
#include "urtp/timers.h"
#include "wire/ids.h"
#include "wire/segment.h"

namespace ulc::urtp {

struct Group;
struct TxStream;

/// A retained packet.
struct TxSlot {
    static constexpr std::uint16_t kNobody = 0xffff;
    static constexpr std::uint16_t kSeveral = 0xfffe;

    Segment* segment = nullptr;
    TxStream* stream = nullptr;
    TxSlot* link = nullptr;  ///< commit order, until first transmission
    Nanos sent_at = 0;       ///< of the latest transmission
    union {
        std::uint32_t ticket = 0;  ///< of the latest transmission (departures.h)
        std::uint32_t due;         ///< of the repair, while one is asked for (repair.cc)
    };
    std::uint16_t asked_by = kNobody;  ///< group index whose request waits, or kSeveral
    std::uint8_t transmissions = 0;    ///< saturating
};

struct TxStream {
    /// members: by group index, or the one receiver. own: index that is no destination (any other
    /// value: none). Allocates; nothing else here does.
    TxStream(StreamId stream, Group* of_group, std::span<const Rank> members, std::size_t own,
             std::uint32_t ring, Seq first, Nanos initial_rtt);
    ~TxStream();
    TxStream(const TxStream&) = delete;
    TxStream& operator=(const TxStream&) = delete;

    [[nodiscard]] TxSlot& slot(Seq seq) noexcept { return slots[seq.value & (window - 1)]; }
    [[nodiscard]] bool active() const noexcept { return base != tail; }
    [[nodiscard]] bool on_wire() const noexcept { return base != sent; }
    [[nodiscard]] bool has_room() const noexcept {
        return tail.in_window(base, cwnd) && tail.before(limit);
    }

    /// Destination `at` has everything before `next`; true: base moved (free what lies before it).
    bool acknowledge(std::uint32_t at, Seq next) noexcept;
    /// Destination `at` accepts numbers before `beyond`, for now: a later word may retract it.
    void allow(std::uint32_t at, Seq edge) noexcept;
    /// Destination `at` left. True: base moved.
    bool remove_destination(std::uint32_t at) noexcept;
    [[nodiscard]] bool is_destination(std::uint32_t at) const noexcept { return absent[at] == 0; }

    const StreamId id;
    const std::uint32_t window;  ///< slots in the ring, power of two
    Group* const group;
    Seq base;
    Seq sent;
    Seq tail;
    Seq limit;  ///< least of the destinations' edges
    /// Packets that may be unacknowledged: `window`, or less by congestion.
    std::uint32_t cwnd;
    /// Every so many-th packet asks for acknowledgement at once; kNeverAsk: none does.
    static constexpr std::uint32_t kNeverAsk = UINT32_MAX;
    std::uint32_t ask_every = kNeverAsk;
    Seq asked;                  ///< the packet after the last one that asked
    Seq repair_from;            ///< none before it is asked for
    std::uint32_t repairs = 0;  ///< packets that are
    const std::uint16_t
        members;  ///< length of the arrays below, indexed by group index (0: unicast)
    std::uint16_t destinations;  ///< left
    Pacer pacer;
    std::unique_ptr<TxSlot[]> slots;
    Seq* next = nullptr;              ///< acknowledged before it
    Seq* edge = nullptr;              ///< accepts numbers before it (credit)
    std::uint32_t* absent = nullptr;  ///< all ones: not, or no longer, a destination
    Rank* rank = nullptr;

    // reservations, where a policy makes them (policies/room.h)
    std::unique_ptr<Seq[]> granted;  ///< by destination: has room for what is before it
    Seq want_first;
    std::uint16_t want = 0;  ///< numbers from want_first on are to be asked room for
    std::uint16_t want_at = TxSlot::kNobody;  ///< of this destination, or of kSeveral
    bool want_turn = false;                   ///< the tail timer asks for room and for news in turn
    std::uint8_t patience = 0;  ///< the receiver's, as its acknowledgements and vain probes show it
    bool wants_credit = false;  ///< a packet waits for credit or window
    std::uint8_t repeats_halved =
        0;  ///< times that a window is, for what is repeated at once (Core::may_repeat())

    std::variant<std::monostate, LossBased, AdaptiveBackoff, DelayBased>
        congestion;    ///< the policy's state
    Seq freed;         ///< segments before it were let go
    Nanos cut_at = 0;  ///< when it last took congestion for there
    Rtt rtt;
    Nanos probe_at = kNever;
    Nanos probe_wait = 0;
    Nanos probed_at = 0;
    Timer timer;
    Link<TxStream> active_link;
    Link<TxStream> probe_link;
    Link<TxStream> repair_link;

private:
    /// The arrays of a single destination, so that no cache line is touched for them; of a group's they are allocated.
    struct Single {
        Seq next;
        Seq edge;
        std::uint32_t absent = 0;
        Rank rank = kNoRank;
    } single_;
    bool settle_base() noexcept;
    void settle_limit() noexcept;
};

}  // namespace ulc::urtp
