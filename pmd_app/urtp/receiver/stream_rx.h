// SPDX-License-Identifier: BSD-3-Clause
// The receiving half of one stream: numbers, and the deadlines that policies set. In-order receive
// compares numbers only: `ack_at` says when an acknowledgement is due, whatever the policy behind
// it.
//
//          acked      next                 high
//   ─────────┴──────────┴───·───■■───·──■────┴──────▶   ■ held, · missing, all before next in order
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cache_aligned.h"
#include "base/units.h"
#include "urtp/receiver/reorder_wait.h"
#include "urtp/timers.h"
#include "wire/ids.h"

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp {

struct Session;
struct Group;

/// Nodes of the pool that are kept for one stream, where a policy rations it.
struct KeptRoom {
    void fields(state::Archive& archive);  ///< urtp/state/
    bool rationed = false;  ///< else the pool is shared, and credit alone bounds a source
    bool grant_due = false;
    bool refuse_due = false;
    bool flow_spoke = false;       ///< the stream's last control frame was FLOW
    std::uint16_t slots = 0;       ///< nodes that it alone may use
    std::uint16_t slots_used = 0;  ///< those that are taken
    std::uint16_t granted = 0;     ///< nodes kept for numbers before granted_to that have not come
    std::uint16_t want = 0;        ///< numbers from want_first on that its source wants to send
    Seq granted_to;
    Seq want_first;
};

/// Ordered so that nothing is padded: a live session costs at most 1 KiB (sim memory_budget).
/// A group's stream is aligned; a peer's is part of its session.
struct RxStream : CacheAligned {
    // --- what a short message touches, up to the timer's `due`
    StreamId id = 0;  ///< own rank, or the group
    std::uint32_t window = 0;
    Session* session = nullptr;
    Group* group = nullptr;  ///< nullptr: unicast

    Seq next;                     ///< first number not in order
    Seq high;                     ///< one past the highest number known to be sent
    std::uint32_t held = 0;       ///< packets in [next, high) that wait in the store
    Seq ack_at;                   ///< due once next is not before it
    Seq acked;                    ///< next as last told
    Seq limit_told;               ///< next + credit as last told
    std::uint8_t too_early = 0;   ///< packets beyond the hole at `next` (URTP's TooEarly)
    bool counted : 1 = false;     ///< packets carry a global counter (COUNTED)
    bool after_loss : 1 = false;  ///< packets before next were lost and given up (profile detect)
    bool blocked = false;         ///< the packet at next is held, its `after` entries unmet
    bool ack_due = false;
    bool request_due = false;
    bool request_all = false;  ///< not only what was not asked yet
    std::uint8_t patience =
        0;  ///< lone acknowledgements since the last loss: each doubles the next one's delay
    bool timed = false;  ///< asked once since `asked_at`: its repair gives an RTT sample

    // acknowledgement (acknowledge.cc)
    Nanos arrived = kNever;    ///< time of number next-1
    Nanos ack_by = kNever;     ///< the delayed acknowledgement
    Nanos answer_at = kNever;  ///< a group probe's answer, spread
    // requests (request.cc)
    Nanos ask_new_at = kNever;  ///< first REQ for new gaps, spread
    Nanos ask_all_at = kNever;  ///< repetition
    Timer timer;

    // --- the rest
    RxStream* sibling = nullptr;  ///< next stream of the same session
    /// Everything missing before it was asked; where requests name one packet, `next` when
    /// `too_early` began to count.
    Seq asked_to;
    // Where packets may overtake each other (Params::reorder_wait).
    Seq late_to;          ///< missing numbers before it were first missed before ask_new_at was set
    Seq lost_to;          ///< those before it have had their time, so requests ask for them
    ReorderWait reorder;  ///< used where the stream is unicast
    KeptRoom room;
    Nanos ask_wait = 0;  ///< until the repetition after the next one
    Nanos asked_at = kNever;

    void fields(state::Archive& archive);  ///< urtp/state/

    [[nodiscard]] bool flow_due() const noexcept { return room.grant_due || room.refuse_due; }
    [[nodiscard]] bool missing() const noexcept {
        return static_cast<std::uint32_t>(high - next) > held;
    }
    [[nodiscard]] std::uint32_t unacknowledged() const noexcept {
        return static_cast<std::uint32_t>(next - acked);
    }
};

}  // namespace ulc::urtp
