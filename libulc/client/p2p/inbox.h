// SPDX-License-Identifier: BSD-3-Clause
// The receive path of one endpoint: completion records → the application's buffers.
//
// A whole message that meets its receive is copied once, from record or arena into the buffer.
// Otherwise it waits:
//   inline            in the Arrival
//   one arena block   there, while such blocks hold at most half of the rx arena. Beyond that, or
//                     if the engine had no other block for that source, it waits in a copy, so
//                     that messages without a receive cannot stop awaited ones
//   in chunks         in a copy that grows with them; a receive that matches meanwhile takes over
//                     where the copy ends
// An engine of this process asks when a message begins whether its receive is posted, and copies
// straight into the buffer (place()).
// A receive of many messages stays posted. Each message that it matches goes into a part, a request
// of the caller that is asked for when the message begins.
// A message that the application has claimed goes on being collected, until it is received or
// discarded (claims.cc).
// Copies and Arrivals are bounded (arrivals.h). At the bound the inbox takes no further
// message (poll returns ULC_ERR_LIMIT) until the application receives some. Nothing is lost: the
// engine's credit stops the senders.
//
// A sender's messages hold at most as much of that memory as is still free (shares.h). The engine
// takes no more messages of a sender above this share, and all others go on.
#pragma once

#include <cstdint>

#include "abi/placement.h"
#include "abi/region.h"
#include "client/arrivals/arrival.h"
#include "client/arrivals/arrivals.h"
#include "client/p2p/matching.h"
#include "client/p2p/rendezvous.h"
#include "client/ulc.h"

namespace ulc::client {

class Inbox {
public:
    static constexpr std::uint64_t kMemoryOctetsDefault = 1ULL << 30;

    using Taken = client::Taken;

    /// Performs Hooks::forget_place() for places that place() returned.
    struct Forgetter {
        int (*call)(void* context, std::uint16_t source, const abi::Place& place) = nullptr;
        void* context = nullptr;

        [[nodiscard]] int forget(const Arrival& arrival) const noexcept {
            if (call == nullptr) return ULC_ERR_AGAIN;
            return call(context, arrival.source, place_of(*arrival.request, arrival.received));
        }
    };

    /// handler: outlives this. `memory`: limit in bytes.
    Inbox(const abi::Region& region, const ErrorHandler& handler, std::uint64_t memory,
          const Forgetter& forgetter) noexcept
        : arrivals_(region, handler, memory), handler_(handler), forgetter_(forgetter) {}

    [[nodiscard]] bool begin_job(std::uint16_t ranks) noexcept {
        return arrivals_.begin_job(ranks) && matcher_.begin_job(ranks);
    }

    /// Tells whether find_place() and place() may find anything: a receive of abi::kPlacedMin
    /// octets or more is posted, or the rest of a message was asked for.
    [[nodiscard]] bool may_place() const noexcept {
        return matcher_.has_long() || arrivals_.has_asked();
    }
    /// The buffer of the receive of a message that begins; none: it is not posted, or too short.
    /// All messages that came before have been taken (abi::Beginning::taken_at_least).
    [[nodiscard]] abi::Place find_place(const abi::Beginning& message) noexcept;
    /// The same, and makes the message that receive's.
    [[nodiscard]] abi::Place place(const abi::Beginning& message) noexcept;
    /// Takes a whole message that is inside its record, for the first receive that names its
    /// source. Returns false, with nothing changed, if on_message() or another rule decides.
    [[nodiscard]] bool take_short(const abi::CompletionRecord& record) noexcept;
    /// A kMessage record. kStalled: not taken, offer it again.
    [[nodiscard]] Taken on_message(const abi::CompletionRecord& record) noexcept;
    /// A kMessage record of an announcement, or of the rest of an announced message (rendezvous.h).
    [[nodiscard]] Taken on_announced(const abi::CompletionRecord& record) noexcept;
    /// An announcement of the endpoint to itself. False: no memory.
    [[nodiscard]] bool announce_local(std::uint16_t self, std::uint64_t tag, std::uint64_t length,
                                      std::uint32_t id) noexcept;
    /// The payload of a message of the endpoint to itself, whose Ask is due. False: no memory now.
    [[nodiscard]] bool finish_local(Arrival& arrival, const Pieces& payload) noexcept;
    /// True if Asks or Holds are due.
    [[nodiscard]] bool owes_answers() const noexcept {
        return arrivals_.first_to_ask() != nullptr || arrivals_.shares().has_holds();
    }
    enum class Counts : std::uint8_t { kNo, kYes };
    /// A whole message that the engine did not bring: of the endpoint to itself, or of a peer on
    /// this node. The payload may change meanwhile. counts: an unexpected one counts for its
    /// sender, as set_held_max() says. False: no memory.
    [[nodiscard]] bool deliver(std::uint16_t source, std::uint64_t tag, const Pieces& payload,
                               Counts counts) noexcept;
    /// Starts a receive; gone: ULC_OK, or why a named source sends nothing more.
    void receive(Request& request, int gone) noexcept;
    /// The same of a receive of many messages.
    void receive_many(Request& many, int gone) noexcept;
    /// False: it has matched.
    [[nodiscard]] bool cancel(Request& request) noexcept;
    /// Takes back the buffer of a receive that a message has begun to fill. The rest of the message
    /// is thrown away. Errors: TIMEOUT (the engine is stuck, and the receive stays).
    [[nodiscard]] int abandon(Request& request) noexcept;
    /// Takes and releases a view, as ulc_take() and ulc_release() say.
    [[nodiscard]] int take(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                           const void** view, ulc_status* status) noexcept;
    void release(const void* view) noexcept;
    /// The first match, left where it is; nullptr: none. Fills *status.
    Arrival* probe(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                   ulc_status* status) noexcept;
    /// The same, which no receive finds any more; its chunks go on being collected.
    [[nodiscard]] Arrival* claim(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                                 ulc_status* status) noexcept;
    /// Gives a claimed message to a receive. It must not be used any more.
    void receive_claimed(Request& request, Arrival& arrival) noexcept;
    /// Throws a claimed message away. It must not be used any more.
    void discard(Arrival& arrival) noexcept;

    /// Ends receives that name a source which sends nothing more with `error`, and drops its half
    /// messages.
    void peer_gone(std::uint16_t source, int error) noexcept;
    /// The source will be another one: drops what came from it and was not received. Messages that
    /// the application has claimed or taken stay.
    void forget(std::uint16_t source) noexcept;
    void fail_all(int error) noexcept;

    [[nodiscard]] Matcher& matcher() noexcept { return matcher_; }
    [[nodiscard]] Arrivals& arrivals() noexcept { return arrivals_; }
    [[nodiscard]] const Arrivals& arrivals() const noexcept { return arrivals_; }
    void check_invariants() const;

private:
    friend struct Breaker;
    static constexpr std::uint32_t kNoBlock = Arrivals::kNoBlock;

    [[nodiscard]] Taken on_whole(const abi::CompletionRecord& record, const unsigned char* payload,
                                 std::uint32_t length, std::uint32_t block) noexcept;
    [[nodiscard]] Taken on_first(const abi::CompletionRecord& record, const unsigned char* payload,
                                 std::uint32_t length, std::uint32_t block) noexcept;
    [[nodiscard]] Taken on_next(const abi::CompletionRecord& record, const unsigned char* payload,
                                std::uint32_t length, std::uint32_t block) noexcept;
    [[nodiscard]] Taken on_placed(const abi::CompletionRecord& record) noexcept;
    [[nodiscard]] Taken on_broken(const abi::CompletionRecord& record) noexcept;
    [[nodiscard]] bool append(Arrival& arrival, const unsigned char* payload,
                              std::uint32_t length) noexcept;
    void give(Arrival& arrival, Request& request) noexcept;
    void add_unexpected(Arrival& arrival) noexcept;
    void throw_away(Arrival& arrival) noexcept;
    [[nodiscard]] Taken on_announcement(const abi::CompletionRecord& record,
                                        const unsigned char* payload, std::uint32_t length,
                                        std::uint32_t block) noexcept;
    [[nodiscard]] Taken on_rest(const abi::CompletionRecord& record, const unsigned char* payload,
                                std::uint32_t length, std::uint32_t block) noexcept;
    void part_ended(Arrival& arrival) noexcept;
    void announced_part_ended(Arrival& arrival) noexcept;
    void give_announced(Arrival& arrival, Request& request) noexcept;
    void begin_announced(Arrival& arrival, const unsigned char* head,
                         std::uint64_t octets) noexcept;
    void break_off(Arrival& arrival, int error) noexcept;
    void drop_open(std::uint16_t source, int error) noexcept;

    Matcher matcher_;
    Arrivals arrivals_;
    AllArrivals taken_;    ///< whole, lent to the application by take()
    AllArrivals claimed_;  ///< the application's
    const ErrorHandler& handler_;
    const Forgetter forgetter_;
};

[[gnu::always_inline]] inline bool Inbox::take_short(const abi::CompletionRecord& record) noexcept {
    constexpr std::uint8_t kShort = abi::kCompleteInline | abi::kCompleteFirst | abi::kCompleteLast;
    const std::uint8_t flags = record.flags;
    const std::uint64_t tag = (flags & abi::kCompleteHasTag) != 0 ? record.tag : 0;
    const std::uint64_t length = record.inline_length;
    if (record.kind != abi::CompletionKind::kMessage || record.status != 0 ||
        (flags & ~abi::kCompleteHasTag) != kShort || length > abi::kInlineOctetsMax ||
        record.source >= matcher_.ranks() || tag >= kLibulcTags)
        return false;
    Request* request = matcher_.match_first(record.source, tag, length);
    if (request == nullptr) return false;
    copy_short(request->buffer, record.body.inline_octets, length);
    describe(*request, record.source, record.stream, tag);
    request->length = length;
    request->done(ULC_OK);
    return true;
}

}  // namespace ulc::client
