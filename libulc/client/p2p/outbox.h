// SPDX-License-Identifier: BSD-3-Clause
// The send path of one endpoint: messages of any length → submission records and blocks of the tx
// arena.
//
//   ≤ 104 bytes, all members     inside the record: done when written
//   ≤ one chunk                  copied into one block: done when written; the block comes back
//                                when the engine has copied it
//   longer                       chunk by chunk, as blocks come back; the request waits in the
//                                pending list
//   memory of ulc_alloc()        the record names the block itself: done with the block
//   ≥ 16 KiB, embedded           the record names the caller's memory: done when it was read
//   announced                    an announcement with the first part; the rest when requested
//   to be delivered              as above, but done with the last record, at its acknowledgements
//
// The engine says what is done in the ring dq (abi/entry_rings.h).
//
// FIFO per receiver is decided here first (docs/PROTOCOL.md §5): a send waits behind a pending one
// that shares a receiver. Two unicasts share one if they name the same rank; a multicast counts as
// sharing one with everything.
//
// Limits: as many blocks out as dq has entries; one receiver (and all groups together) holds at
// most half of the arena, so that one that does not receive cannot stop the others; copies made for
// sends without a request kDetachedOctetsMax.
#pragma once

#include <cstdint>
#include <vector>

#include "client/p2p/announcements.h"
#include "client/p2p/in_flight.h"
#include "client/p2p/request.h"
#include "client/p2p/submitter.h"
#include "client/p2p/tx_arena.h"

namespace ulc::client {

/// A send as requested.
struct SendArgs {
    std::uint32_t stream = 0;  ///< rank or group handle
    std::uint64_t subset = 0;
    bool has_subset = false;
    bool delivered = false;  ///< done when every receiver's engine has it; needs a request
    bool matched = false;    ///< done when a receive has matched; needs a request
    std::uint64_t tag = 0;
    Pieces payload;

    /// Returns a request that has handed over nothing.
    [[nodiscard]] Request request() const noexcept;
};

class Outbox {
public:
    static constexpr std::uint64_t kDetachedOctetsMax = 64ULL << 20;
    static constexpr std::uint32_t kChunkOctetsMax = 256U << 10;
    static constexpr std::uint64_t kDirectOctetsMin = 16U << 10;

    Outbox(const abi::Region& region, Submitter& submitter) noexcept;
    ~Outbox();
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    /// Begins a job of that number of ranks. Returns false if out of memory.
    [[nodiscard]] bool begin_job(std::uint16_t ranks) noexcept;

    /// Starts a send. `request` nullptr: all or nothing, at once. Errors: ULC_ERR_AGAIN (without a
    /// request), NO_MEMORY.
    [[nodiscard]] int send(const SendArgs& args, ulc_request* request) noexcept;
    /// Sends a short message at once, if nothing waits and no rule except the length applies: not
    /// delivered or matched, to all members. `request`: may be nullptr. Returns false if nothing
    /// was changed; send() decides.
    [[nodiscard]] bool send_short(std::uint32_t stream, std::uint64_t tag, const Pieces& payload,
                                  ulc_request* request) noexcept;
    /// Takes the sends that the engine says are done, up to a limit. Returns how many; -1: it names
    /// one that is not there.
    [[nodiscard]] int take_done() noexcept { return in_flight_.count() == 0 ? 0 : take_all_done(); }
    /// True if take_done() would take one.
    [[nodiscard]] bool has_done() const noexcept {
        return in_flight_.count() != 0 && done_.ready();
    }
    /// Submits waiting sends, as far as there is space. Returns how many requests ended.
    unsigned progress() noexcept { return pending_.empty() ? 0 : advance_pending(); }
    /// Ends sends to a rank that is gone with `error`. Returns the number of messages that were not
    /// all submitted.
    unsigned peer_gone(std::uint16_t rank, int error) noexcept;
    /// Ends everything with the endpoint.
    void fail_all(int error) noexcept;

    // --- announced messages (rendezvous.h), in outbox_announced.cc
    [[nodiscard]] Announcements& announcements() noexcept { return announcements_; }
    /// Handles an Ask of `source` for bytes up to `up_to`. Returns false if no such message waits
    /// for it.
    [[nodiscard]] bool on_ask(std::uint32_t source, std::uint32_t id, std::uint64_t up_to) noexcept;
    /// Handles a Hold or Go of `source`.
    void on_hold(std::uint32_t source, bool hold) noexcept;
    /// Sends everything announced, unasked, and announces nothing more, because the endpoint
    /// leaves. Messages of `self` to itself end.
    void push_announced(std::uint32_t self) noexcept;
    /// Starts a message of the endpoint to itself, which on_ask() ends. ULC_OK: *id is set.
    [[nodiscard]] int announce_own(const SendArgs& args, ulc_request* memory,
                                   std::uint32_t* id) noexcept;
    /// Withdraws the message that announce_own() just started.
    void take_back_own(std::uint32_t id) noexcept;

    /// True if nothing for that rank waits for space.
    [[nodiscard]] bool all_submitted_to(std::uint16_t rank) const noexcept {
        return peers_[rank].pending == 0;
    }
    /// True if nothing waits for space (the engine may still have blocks).
    [[nodiscard]] bool all_submitted() const noexcept { return pending_.empty(); }
    /// True if the engine also said of every send with a cookie that it is done.
    [[nodiscard]] bool idle() const noexcept { return pending_.empty() && in_flight_.count() == 0; }
    [[nodiscard]] TxArena& arena() noexcept { return arena_; }
    void check_invariants() const;

private:
    friend struct Breaker;
    enum class Step : std::uint8_t { kFinished, kBlocked, kRingFull };
    static constexpr std::uint32_t kNoCookie = InFlight::kNoCookie;

    /// A send without a request that was too long to be copied at once; the payload follows it in
    /// memory.
    struct Detached {
        Links<Detached> links;
        Request request;
        std::uint64_t octets = 0;
    };
    using DetachedList = List<Detached, &Detached::links>;
    struct Peer {
        std::uint32_t pending = 0;       ///< requests in the pending list
        std::uint32_t arena_octets = 0;  ///< in the engine
        std::uint32_t blocked_pass = 0;
    };

    [[nodiscard]] int take_all_done() noexcept;
    [[nodiscard]] bool on_done(const abi::SendDone& done) noexcept;
    unsigned advance_pending() noexcept;
    [[nodiscard]] Step advance(Request& request, bool whole_only) noexcept;
    [[nodiscard]] Step hand_inline(Request& request) noexcept;
    [[nodiscard]] Step hand_whole(Request& request, std::uint8_t flag,
                                  std::uint32_t offset) noexcept;
    [[nodiscard]] Step hand_chunk(Request& request, bool whole_only) noexcept;
    void fill(abi::SubmissionRecord& record, const Request& request, std::uint32_t cookie,
              std::uint32_t offset, std::uint32_t octets) noexcept;
    [[nodiscard]] std::uint32_t& held_by(std::uint32_t stream) noexcept;
    [[nodiscard]] bool must_queue(std::uint32_t stream) const noexcept;
    void enqueue(Request& request) noexcept;
    void dequeue(Request& request) noexcept;
    [[nodiscard]] int send_detached(const SendArgs& args) noexcept;
    [[nodiscard]] Request* copy_detached(const SendArgs& args, int& error) noexcept;
    [[nodiscard]] int send_announced(const SendArgs& args, ulc_request* memory) noexcept;
    [[nodiscard]] Request* open_announcement(const SendArgs& args, ulc_request* memory,
                                             int& error) noexcept;
    [[nodiscard]] std::uint64_t first_part(const Request& request, bool held) const noexcept;
    [[nodiscard]] Step hand_announcement(Request& request) noexcept;
    void send_rest(Request& request, std::uint64_t up_to) noexcept;
    void announce_pending(std::uint32_t to) noexcept;
    void announced_peer_gone(std::uint32_t rank, int error) noexcept;
    void end(Request& request, int error) noexcept;

    Submitter& submitter_;
    abi::SendDoneConsumer done_;
    bool reaches_process_;  ///< the engine can read any memory of the caller
    TxArena arena_;
    std::uint32_t chunk_octets_;
    InFlight in_flight_;
    Announcements announcements_;
    std::vector<Peer> peers_;
    RequestList pending_;
    DetachedList detached_;
    std::uint32_t pending_groups_ = 0;
    std::uint32_t group_octets_ = 0;
    std::uint64_t detached_octets_ = 0;
    std::uint32_t pass_ = 0;
};

static_assert(abi::kInlineOctetsMax <= kCopyShortMax);

/// Makes the record one of a whole message inside itself; the caller adds the bytes.
inline void describe_inline(abi::SubmissionRecord& record, std::uint32_t stream, std::uint64_t tag,
                            std::uint64_t length) noexcept {
    record.flags =
        static_cast<std::uint8_t>(abi::kSubmitInline | abi::kSubmitFirst | abi::kSubmitLast |
                                  (tag != 0 ? abi::kSubmitHasTag : 0));
    record.inline_length = static_cast<std::uint16_t>(length);
    record.stream = stream;
    record.tag = tag;
}

[[gnu::always_inline]] inline bool Outbox::send_short(std::uint32_t stream, std::uint64_t tag,
                                                      const Pieces& payload,
                                                      ulc_request* request) noexcept {
    const std::uint64_t length = payload.length;
    if (length > abi::kInlineOctetsMax || length >= announcements_.from() || !pending_.empty())
        return false;
    abi::SubmissionRecord* record = submitter_.claim_raw();
    if (record == nullptr) return false;
    record->kind = abi::SubmitKind::kSend;
    record->cookie = 0;
    describe_inline(*record, stream, tag, length);
    payload.read_short(record->body.inline_octets);
    submitter_.publish();
    if (request != nullptr) Request::begin_done(request, stream, tag, length);
    return true;
}

}  // namespace ulc::client
