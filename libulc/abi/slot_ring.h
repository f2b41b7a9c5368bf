// SPDX-License-Identifier: BSD-3-Clause
// The two rings of an endpoint, over the records of abi/records.h: submissions (client → engine)
// and completions (engine → client). One producer and one consumer each; the same templates run in
// libulc, in the engine, in the simulator and in the tests.
//
//   slot          0      1      2      3        slots = 4, n counts records (32 bits, wraps)
//   lap 1 (n=0…)  mark 1 mark 1 mark 1 mark 1
//   lap 2 (n=4…)  mark 2 mark 2 mark 1 mark 1   ← n = 6 has not come: mark of n = 2
//
// A record begins with its mark, so a hand-over of a short one costs one cache line, and there is
// no shared producer index. The consumer of record n waits for mark_of(n) in slot n mod slots. In
// the other direction, the consumer's cursor (sq_consumed, cq_consumed) is published lazily, once a
// quarter of the ring. A producer that finds the ring full by that cursor has at least three
// quarters of it back after the next publication, so laziness cannot stop it.
//
// Memory orders:
//   A  producer: store(mark, release)      with  consumer: load(mark, acquire)      the contents
//   B  consumer: store(consumed, release)  with  producer: load(consumed, acquire)  the slot may be
//                                                                                   overwritten
//   C  either side before it sleeps: store(asleep) · seq_cst fence · check the ring again, and
//      the other side after it wrote: store(mark) · seq_cst fence · load(asleep)
//      (Dekker; see the end of the file)
//
// Trust: the client may write anything anywhere at any time. So the engine's halves keep their
// cursors in private memory, copy a record once and return the copy, and validate the client's
// cursor before they use it. The client's halves validate the engine's cursor too, but read
// completions in place.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "abi/endpoint_region.h"
#include "abi/records.h"
#include "base/check.h"

namespace ulc::abi {

/// The marks of two laps could be equal with one slot after the counter wraps; fewer than eight
/// gain nothing.
inline constexpr std::uint32_t kSlotsMin = 8;
inline constexpr std::uint32_t kSlotsMax = 1U << 16;

[[nodiscard]] constexpr bool slots_valid(std::uint32_t slots) noexcept {
    return slots >= kSlotsMin && slots <= kSlotsMax && (slots & (slots - 1)) == 0;
}

/// The producing half. Record: SubmissionRecord or CompletionRecord. One thread.
template <typename Record>
class SlotProducer {
public:
    SlotProducer() = default;
    /// `slots`: the ring; `consumed`: the consumer's published cursor; `start`: the number of the
    /// first record (0 in production; tests start just before a wrap, with both halves and the
    /// cursor at the same number).
    SlotProducer(Record* ring, std::uint32_t slots, const std::atomic<std::uint32_t>* consumed,
                 std::uint32_t start = 0) noexcept
        : ring_(ring), consumed_(consumed), slots_(slots), next_(start), seen_consumed_(start) {
        ULC_CHECK(slots_valid(slots));
        at_ = ring + (start & (slots - 1));
        mark_ = mark_of(start, slots);
    }

    /// Returns the number of slots that may be filled, at most `wanted` (more may be free). Reads
    /// the shared cursor only if its last known value is not enough. 0: full, or the cursor is
    /// corrupt().
    [[nodiscard]] std::uint32_t room(std::uint32_t wanted = 1) noexcept {
        std::uint32_t used = next_ - seen_consumed_;
        if (slots_ - used < wanted) {
            const std::uint32_t consumed = consumed_->load(std::memory_order_acquire);  // B
            if (consumed - seen_consumed_ > used) {  // moved back, or past the records produced
                corrupt_ = true;
                return 0;
            }
            seen_consumed_ = consumed;
            used = next_ - seen_consumed_;
        }
        return slots_ - used < wanted ? slots_ - used : wanted;
    }

    /// Returns whether no slot may be filled, as after a corrupt() cursor.
    [[nodiscard]] bool is_full() noexcept {
        return next_ - seen_consumed_ == slots_ && room() == 0;
    }
    /// Returns the slot of the next record, to be filled in place (all but its mark), or nullptr
    /// when the ring is full. Claiming twice without publish() gives the same slot.
    [[nodiscard]] Record* claim() noexcept {
        if (is_full()) [[unlikely]]
            return nullptr;
        return at_;
    }

    /// Hands the claimed slot to the consumer.
    void publish() noexcept { publish(*at_); }
    /// The same. `record`: the result of claim().
    void publish(Record& record) noexcept {
        std::atomic_ref<std::uint32_t>(record.mark).store(mark_, std::memory_order_release);  // A
        ++next_;
        ++at_;
        if ((next_ & (slots_ - 1)) == 0) {  // a lap is done
            at_ = ring_;
            mark_ = mark_of(next_, slots_);
        }
    }

    /// Claims, copies and publishes. Returns false if the ring is full.
    [[nodiscard]] bool push(const Record& record) noexcept {
        Record* slot = claim();
        if (slot == nullptr) return false;
        // Copies all but the mark, which is the first word.
        std::memcpy(reinterpret_cast<char*>(slot) + sizeof record.mark,
                    reinterpret_cast<const char*>(&record) + sizeof record.mark,
                    sizeof record - sizeof record.mark);
        publish();
        return true;
    }

    /// Returns true if the consumer's cursor once held a value that no correct consumer publishes.
    [[nodiscard]] bool corrupt() const noexcept { return corrupt_; }
    /// Returns the number of records produced, free running.
    [[nodiscard]] std::uint32_t produced() const noexcept { return next_; }
    [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
    /// Writes or reads the private cursors (base/state/archive.h).
    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(next_, seen_consumed_, corrupt_);
        if (!archive.require(next_ - seen_consumed_ <= slots_, "a ring is fuller than it can be"))
            return;
        at_ = ring_ + (next_ & (slots_ - 1));
        mark_ = mark_of(next_, slots_);
    }

private:
    Record* ring_ = nullptr;
    Record* at_ = nullptr;  ///< the next record's slot
    const std::atomic<std::uint32_t>* consumed_ = nullptr;
    std::uint32_t slots_ = 0;
    std::uint32_t next_ = 0;
    std::uint32_t seen_consumed_ = 0;
    std::uint32_t mark_ = 0;  ///< mark of the next record
    bool corrupt_ = false;
};

/// The place of a ring's next record, valid until its consumer takes it.
class NextSlot {
public:
    NextSlot(std::uint32_t& mark, std::uint32_t awaited) noexcept
        : mark_(&mark), awaited_(awaited) {}
    bool operator==(const NextSlot&) const = default;
    [[nodiscard]] bool has_come() const noexcept {
        return std::atomic_ref<std::uint32_t>(*mark_).load(std::memory_order_acquire) ==
               awaited_;  // A
    }

private:
    std::uint32_t* mark_;
    std::uint32_t awaited_;
};

/// The consuming half. One thread.
template <typename Record>
class SlotConsumer {
public:
    SlotConsumer() = default;
    SlotConsumer(Record* ring, std::uint32_t slots, std::atomic<std::uint32_t>* consumed,
                 std::uint32_t start = 0) noexcept
        : ring_(ring), consumed_(consumed), slots_(slots), next_(start), published_(start) {
        ULC_CHECK(slots_valid(slots));
        at_ = ring + (start & (slots - 1));
        awaited_ = mark_of(start, slots);
    }

    /// Returns true if a record is there.
    [[nodiscard]] bool ready() const noexcept { return next().has_come(); }
    [[nodiscard]] NextSlot next() const noexcept { return {at_->mark, awaited_}; }
    /// The same of the record `ahead` records behind the next one; ahead: at most the slots.
    [[nodiscard]] NextSlot next(std::uint32_t ahead) const noexcept {
        if (ahead == 0) [[likely]]
            return next();
        return {ring_[(next_ + ahead) & (slots_ - 1)].mark, mark_of(next_ + ahead, slots_)};
    }

    /// Copies the next record, once, and frees its slot. Returns false if there is none. For the
    /// engine: it must validate `out`, which the client cannot change any more. (out.mark is
    /// meaningless.)
    [[nodiscard]] bool take(Record& out) noexcept {
        if (!ready()) return false;
        std::memcpy(&out, at_, sizeof out);
        asm volatile(
            "" ::
                : "memory");  // the compiler must not read the shared slot again in place of `out`
        pop();
        return true;
    }

    /// Returns the next record in place, valid until pop(); nullptr if there is none. For the
    /// client, which trusts the engine not to change it; and for the engine if it reads each word
    /// once, and validates the value that it has read.
    [[nodiscard]] const Record* front() const noexcept { return ready() ? at_ : nullptr; }

    /// Returns the place of the next record, after next().has_come() reported it; as front().
    [[nodiscard]] const Record& peek() const noexcept { return *at_; }
    [[nodiscard]] const Record& peek(std::uint32_t ahead) const noexcept {
        return ring_[(next_ + ahead) & (slots_ - 1)];
    }

    /// Frees the slot of front() or peek().
    void pop() noexcept {
        ++next_;
        ++at_;
        if ((next_ & (slots_ - 1)) == 0) {  // a lap is done
            at_ = ring_;
            awaited_ = mark_of(next_, slots_);
        }
        if (next_ - published_ >= slots_ / 4) publish_cursor();
    }

    /// Publishes every slot freed until this time. No side needs it for progress.
    void publish_cursor() noexcept {
        if (published_ == next_) return;
        published_ = next_;
        consumed_->store(next_, std::memory_order_release);  // B
    }

    /// Returns the number of records consumed, free running.
    [[nodiscard]] std::uint32_t consumed() const noexcept { return next_; }
    [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
    /// Writes or reads the private cursors, as SlotProducer::fields() does.
    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(next_, published_);
        if (!archive.require(next_ - published_ < slots_, "a ring was read too far")) return;
        at_ = ring_ + (next_ & (slots_ - 1));
        awaited_ = mark_of(next_, slots_);
    }

private:
    Record* ring_ = nullptr;
    Record* at_ = nullptr;  ///< the next record's slot
    std::atomic<std::uint32_t>* consumed_ = nullptr;
    std::uint32_t slots_ = 0;
    std::uint32_t next_ = 0;
    std::uint32_t published_ = 0;
    std::uint32_t awaited_ = 0;  ///< mark of the next record
};

using SubmissionProducer = SlotProducer<SubmissionRecord>;  ///< client
using SubmissionConsumer = SlotConsumer<SubmissionRecord>;  ///< engine: take()
using CompletionProducer = SlotProducer<CompletionRecord>;  ///< engine: claim(), publish()
using CompletionConsumer = SlotConsumer<CompletionRecord>;  ///< client: front(), pop()

// ---------------------------------------------------------------- sleeping and waking (C)
//
// No wake-up is lost. The sleeper stores its flag, fences, and checks its ring again; the waker
// stores a mark, fences, and loads the flag. The two fences are totally ordered. If the sleeper's
// is first, the waker's load sees the flag and it wakes. If the waker's is first, the sleeper's
// second check sees the mark and it does not sleep. Both may be true; then one wake-up is spurious.
//
// A client's state word is its flag, for sleeping and for computing alike. The engine clears the
// flag by an exchange and notifies according to the value that it read, because the client may have
// cleared the flag that the engine saw, and have set the other one since.
//
// Between the second check and the sleep itself:
//   client  sleeps by FUTEX_WAIT(wake_sequence, value read before the flag was set); the engine
//           increments wake_sequence before FUTEX_WAKE, so the kernel refuses a late sleeper.
//           A client that computes does not sleep: its upcall is a byte that stays in its socket.
//   engine  sleeps in poll() on its doorbell sockets; the doorbell byte stays readable until it is
//           taken.

/// Client, after publish(): returns true if the engine must be woken (one byte on the socket).
[[nodiscard]] inline bool engine_needs_doorbell(const EndpointControl& control) noexcept {
    std::atomic_thread_fence(
        std::memory_order_seq_cst);  // C, with engine_going_to_sleep + sleep_fence
    return control.engine_asleep.load(std::memory_order_relaxed) != 0;
}

/// Engine, before it sleeps: for each endpoint this, then one sleep_fence(), then
/// SubmissionConsumer::ready() of each; it sleeps only if none is ready. Afterwards engine_awake()
/// for each.
inline void engine_going_to_sleep(EndpointControl& control) noexcept {
    control.engine_asleep.store(1, std::memory_order_relaxed);
}
inline void sleep_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void engine_awake(EndpointControl& control) noexcept {
    control.engine_asleep.store(0, std::memory_order_relaxed);
}

/// Engine, once after the completions of a round for this client: returns what it must do. kAsleep:
/// FUTEX_WAKE (shared, 1 waiter) on wake_sequence. kComputing: one upcall. The state returns to
/// kPolling, so that a client that has not run yet is notified once.
[[nodiscard]] inline ClientState client_to_notify(EndpointControl& control) noexcept {
    constexpr auto kPolling = static_cast<std::uint32_t>(ClientState::kPolling);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // C, with client_going_to_…
    if (control.client_state.load(std::memory_order_relaxed) == kPolling)
        return ClientState::kPolling;
    // The client may have changed its state since: only the state that is overwritten here counts.
    const std::uint32_t state = control.client_state.exchange(kPolling, std::memory_order_relaxed);
    if (state == kPolling) return ClientState::kPolling;
    if (state == static_cast<std::uint32_t>(ClientState::kComputing))
        return ClientState::kComputing;
    control.wake_sequence.fetch_add(1, std::memory_order_release);
    return ClientState::kAsleep;
}

/// Client, before it sleeps; then CompletionConsumer::ready() again, and only if there is nothing,
/// FUTEX_WAIT for the value returned here. Afterwards client_polls().
[[nodiscard]] inline std::uint32_t client_going_to_sleep(EndpointControl& control) noexcept {
    const std::uint32_t sequence = control.wake_sequence.load(std::memory_order_acquire);
    control.client_state.store(static_cast<std::uint32_t>(ClientState::kAsleep),
                               std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // C, with client_to_notify
    return sequence;
}

/// Client, before it computes: revokes its promise and arms the upcall. Then
/// CompletionConsumer::ready() again; if there is something, client_polls().
inline void client_going_to_compute(EndpointControl& control) noexcept {
    control.client_state.store(static_cast<std::uint32_t>(ClientState::kComputing),
                               std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // C, with client_to_notify
}

/// Client: promises to poll its ring.
inline void client_polls(EndpointControl& control) noexcept {
    control.client_state.store(static_cast<std::uint32_t>(ClientState::kPolling),
                               std::memory_order_relaxed);
}

}  // namespace ulc::abi
