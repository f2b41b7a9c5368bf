// SPDX-License-Identifier: BSD-3-Clause
// The sends of one client that wait for the transport, in private memory: ordering, fragmentation,
// and the end of each. A submission record is copied once, into its place here; payloads stay
// in the client's arena until they are copied into frames. Beyond the capacity records stay in the
// submission ring, and the client sees that it is full.
//
// The ordering rule (docs/PROTOCOL.md §5): messages that share a destination are first transmitted
// in submission order. A scan goes through the queue in order and notes what it could not finish:
//
//   after a blocked unicast to r    a unicast to another rank may pass, no multicast may
//   after a blocked multicast       nothing may pass
//   a message submitted in chunks   blocks from its first packet to its last; its own later chunks
//                                   pass the messages that it blocks
//
// So a client must not fill this queue, between the chunks of one message, with others that share a
// destination: it would stop itself. The client does not know when sends of schedules come. They
// are queued only if no message for which they would wait lacks chunks; a client that sends long
// messages without a pause delays them that long.
//
// With the profile `pack`, a packet that holds a whole message takes along the messages directly
// behind it in the queue that go to the same ranks and fit (docs/protocol/MESSAGES.md §6.7).
//
// "Every destination has it in order" (kSubmitNotifyAcked) shows in the segment: the transport
// releases its reference then, so the queue's own is the last one. A long direct payload
// (kSubmitDirect) on a port that gathers is not copied into frames: they refer to it, and its
// end comes when no frame refers to it any more. So is a long block of the client's arena on
// a port whose device reads that arena (Port::add_memory), each chunk of a message alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "abi/region.h"
#include "base/bounded.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "endpoint/rank_set.h"
#include "endpoint/sink.h"
#include "port/segment.h"
#include "urtp/frame_share.h"
#include "urtp/transport.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {

class Offloads;
class Outlet;

/// Frames that refer to payloads of clients and wait for the port. Implemented by the Transmitter.
class GatheredFrames {
public:
    virtual ~GatheredFrames() = default;
    /// Copies the payloads to which waiting frames refer, so that the payloads may change.
    virtual void pull_tails() noexcept = 0;
    /// Returns the key by which the port's device reads this arena of a client; 0: it does not.
    [[nodiscard]] virtual std::uint32_t key_of(std::span<const std::byte> arena) noexcept = 0;
};

/// The objects with which a send queue works; all outlive the call.
struct SendContext {
    urtp::Transport* member;  ///< nullptr: no job; records are only answered
    const SegmentPool& pool;
    const abi::Region& region;
    Outlet& outlet;
    Counters& counters;
    std::uint16_t mtu;
    bool client_gone = false;  ///< no client reads answers
    /// Frames may refer to payloads; this object may keep some for the port. nullptr: payloads are
    /// copied.
    GatheredFrames* gathers = nullptr;
    Offloads* offloads = nullptr;        ///< is notified of the sends that it injected
    urtp::FrameShare* frames = nullptr;  ///< its share of frames; nullptr: any number
};

class SendQueue {
public:
    /// `capacity`: records; a power of two.
    explicit SendQueue(std::uint32_t capacity);

    /// Begins a job of that number of ranks: unicasts go to ranks below.
    void begin_job(std::size_t ranks) { blocked_.ranks.resize(ranks); }

    /// Returns where the next submission must be copied; nullptr if full. Not queued before
    /// accept().
    [[nodiscard]] abi::SubmissionRecord* slot() noexcept;

    enum class Verdict : std::uint8_t {
        kOk,
        kFailed,   ///< to be answered; the endpoint lives on
        kCorrupt,  ///< no correct client writes this
    };
    /// Validates the kSend record in slot(): flags, block, place in its message. `stream_error`:
    /// kOk, or the error of its stream or time; then the record is queued only to be answered. Each
    /// chunk of a message repeats the subset of the first one.
    [[nodiscard]] Verdict accept(const abi::Region& region, Err stream_error) noexcept;

    /// Returns true if a new short message waits for no other: it may go to the transport.
    [[nodiscard]] bool passes_short() const noexcept { return empty() && open_count_ == 0; }
    /// Queues a whole message of an offloaded schedule, a record that accept() would pass. Returns
    /// false if the queue is full, or the client is in the middle of a message that shares a
    /// destination.
    [[nodiscard]] bool inject(const abi::SubmissionRecord& record, Sink sink) noexcept;
    /// Ends the sends to a rank that is gone; call it before its member forgets it. Sends that it
    /// has not acknowledged end with kPeerDied, and so does a message to it that still lacks
    /// chunks.
    void peer_gone(std::uint32_t rank, const SegmentPool& pool) noexcept;

    /// Drops the messages that lack chunks, for a client that submits no more: they would hold back
    /// those behind them. Returns whether there were some.
    bool end_unfinished() noexcept;

    /// Transmits the packets that the rules allow and answers records that are done. Returns true
    /// if something moved.
    bool pump(const SendContext& context, Nanos now);

    /// Drops the sends of a client that is gone: its memory is not read again. Packets in the
    /// transport stay there.
    void abort(const SegmentPool& pool) noexcept;

    /// True if nothing waits, neither for the transport nor for an answer.
    [[nodiscard]] bool empty() const noexcept { return head_ == tail_ && awaiting_.empty(); }
    /// Returns the bytes that wait for the transport.
    [[nodiscard]] std::uint64_t waiting_bytes() const noexcept;
    /// True if unicast messages failed because their receiver is gone, since take_failed().
    [[nodiscard]] bool has_failed() const noexcept { return !failed_.empty(); }
    /// Calls of(rank, refused, rests) for each rank of the job to which some failed: messages that
    /// the transport refused, and last chunks without a first one.
    template <typename Function>
    void take_failed(Function of) {
        for (const Failed& one : failed_)
            of(one.rank, one.refused, one.rests);
        failed_.clear();
    }
    /// True if something for that stream waits, for the transport or for an answer.
    [[nodiscard]] bool has(std::uint32_t stream) const noexcept;
    /// True if something waits for a condition that no frame announces: a segment, a last
    /// reference.
    [[nodiscard]] bool retry() const noexcept { return retry_; }

    /// Fails the process if a record, an open message or a send that awaits its end does not fit
    /// the others. O(capacity).
    void check_invariants() const;

    /// Writes or reads. Reading takes references of the pool, also after a failure.
    void fields(state::Archive& archive, const abi::Region& region, const SegmentPool& pool);

private:
    friend struct Breaker;  // tests/unit/engine/invariants_test.cc

    enum class State : std::uint8_t { kQueued, kAnswer, kDone };
    friend constexpr State last_value(State) { return State::kDone; }
    static constexpr std::uint8_t kNoMessage = 0xff;
    static constexpr std::size_t kOpenMax = 32;  ///< messages in chunks, open at once
    static constexpr std::size_t kAwaitingMax = 192;

    struct Pending {
        abi::SubmissionRecord record;
        std::uint32_t done = 0;  ///< bytes of this record passed to the transport
        State state = State::kQueued;
        std::uint8_t message = kNoMessage;  ///< into open_, of a record that is not a whole message
        Err status = Err::kOk;
        bool gathered = false;  ///< its frames refer to the payload
        std::uint32_t key = 0;  ///< their Segment::tail_key
        Sink sink;  ///< sink of an offloaded schedule, which is answered instead of the client
        void fields(state::Archive& archive);
    };
    struct OpenMessage {
        std::uint64_t length = 0;
        std::uint64_t submitted = 0;
        std::uint64_t sent = 0;
        std::uint64_t subset = 0;  ///< valid if has_subset
        std::uint32_t stream = 0;
        std::uint32_t records = 0;  ///< queued
        Err status = Err::kOk;  ///< status of the first record that failed; the rest fail likewise
        bool has_subset = false;
        bool used = false;
        bool started = false;
        bool complete = false;  ///< the last chunk was submitted
        bool stalled = false;   ///< an earlier chunk did not finish in this scan
        void fields(state::Archive& archive);
    };
    struct Awaiting {
        Segment* segment = nullptr;  ///< its last
        std::uint32_t cookie = 0;
        std::uint32_t stream = 0;
        bool gathered = false;  ///< its frames refer to the payload
        bool failed = false;    ///< its receiver is gone and has not acknowledged it
        void fields(state::Archive& archive);
    };
    /// Messages to a rank that is gone. The rests are those of messages that failed before, and any
    /// that the client makes up.
    struct Failed {
        Rank rank;
        std::uint32_t refused = 0;
        std::uint32_t rests = 0;
    };
    /// Destinations that a scan could not finish.
    struct Blocked {
        RankSet ranks;
        bool group = false;

        void clear() noexcept {
            ranks.clear();
            group = false;
        }
        void add(std::uint32_t stream) noexcept {
            if (is_group(stream)) {
                group = true;
            } else {
                ranks.add(stream);
            }
        }
        [[nodiscard]] bool stops(std::uint32_t stream) const noexcept {
            if (group) return true;
            return is_group(stream) ? !ranks.empty() : ranks.contains(stream);
        }
    };

    [[nodiscard]] Pending& at(std::uint32_t n) noexcept { return ring_[n & mask_]; }
    [[nodiscard]] static bool shape_valid(const abi::SubmissionRecord& record,
                                          const abi::Region& region) noexcept;
    [[nodiscard]] std::uint8_t find_open(std::uint32_t stream) const noexcept;
    /// Ends a message that lacks chunks, after those that are queued.
    void end_open(OpenMessage& message) noexcept;
    [[nodiscard]] Verdict place_chunk(Pending& pending, Err stream_error) noexcept;
    [[nodiscard]] static bool same_subset(const OpenMessage& message,
                                          const abi::SubmissionRecord& record) noexcept;
    [[nodiscard]] bool waits_for_chunks(std::uint32_t stream) const noexcept;
    void block_open() noexcept;
    [[nodiscard]] bool may_block(std::uint32_t stream) const noexcept;
    [[nodiscard]] bool may_wait(const Pending& pending, const abi::Region& region) const noexcept;
    bool scan(const SendContext& context, Nanos now);
    bool advance(Pending& pending, const SendContext& context, Nanos now);
    static void choose_gathering(Pending& pending, const SendContext& context) noexcept;
    [[nodiscard]] urtp::MessageSize size_of(const Pending& pending) const noexcept;
    bool transmit(Pending& pending, const SendContext& context, Nanos now);
    [[nodiscard]] bool send_packet(Pending& pending, const SendContext& context, Nanos now);
    [[nodiscard]] std::uint32_t pack(const Pending& first, const SendContext& context,
                                     std::byte* list, std::uint32_t room) noexcept;
    void finish(Pending& pending, Err status) noexcept;
    void note_failed(const abi::SubmissionRecord& record, Err status) noexcept;
    void answer(Pending& pending, const SendContext& context) noexcept;
    bool answer_acknowledged(const SendContext& context) noexcept;

    std::uint32_t mask_;
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t open_count_ = 0;
    bool retry_ = false;
    std::vector<Failed> failed_;  ///< one a rank, not taken yet
    std::unique_ptr<Pending[]> ring_;
    OpenMessage open_[kOpenMax];
    Blocked blocked_;                               ///< in this scan
    FixedVector<Awaiting, kAwaitingMax> awaiting_;  ///< in the order of their last packets
};

}  // namespace ulc::endpoint
