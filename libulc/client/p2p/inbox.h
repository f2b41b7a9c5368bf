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
// Copies and Arrivals are bounded by `memory_octets`. At the bound the inbox takes no further
// message (poll returns ULC_ERR_LIMIT) until the application receives some. Nothing is lost: the
// engine's credit stops the senders.
//
// A sender's messages hold at most as much of that memory as is still free (shares.cc). The engine
// takes no more messages of a sender above this share, and all others go on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "abi/placement.h"
#include "abi/region.h"
#include "client/p2p/matching.h"
#include "client/p2p/rendezvous.h"
#include "client/ulc.h"

namespace ulc::client {

class Inbox {
public:
    static constexpr std::uint64_t kMemoryOctetsDefault = 1ULL << 30;

    enum class Taken : std::uint8_t { kYes, kStalled, kCorrupt };

    explicit Inbox(const abi::Region& region,
                   std::uint64_t memory_octets = kMemoryOctetsDefault) noexcept;
    /// Bytes of unexpected messages of one sender above which it has to hold; UINT64_MAX: none.
    void set_held_max(std::uint64_t octets) noexcept { held_max_ = octets; }
    ~Inbox();
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;

    [[nodiscard]] bool begin_job(std::uint16_t ranks) noexcept;

    /// The arguments of ulc_set_error_handler().
    struct ErrorHandler {
        ulc_error_handler call = nullptr;
        void* context = nullptr;
    };
    void set_error_handler(const ErrorHandler& handler) noexcept { handler_ = handler; }
    /// Tells the handler, if there is one.
    void report(int error, std::uint16_t source, std::uint64_t count) const {
        if (handler_.call != nullptr) handler_.call(handler_.context, error, source, count);
    }

    /// Tells whether find_place() and place() may find anything: a receive of abi::kPlacedMin
    /// octets or more is posted, or the rest of a message was asked for.
    [[nodiscard]] bool may_place() const noexcept { return matcher_.has_long() || asked_ > 0; }
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
    /// The first message whose Ask is due; nullptr: none.
    [[nodiscard]] Arrival* first_to_ask() const noexcept { return to_ask_.front(); }
    /// Tells whether first_to_ask() or each_to_hold() has something.
    [[nodiscard]] bool has_words() const noexcept {
        return first_to_ask() != nullptr || !to_hold_.empty();
    }
    /// Its Ask cannot be sent now: those of other messages come before it.
    void ask_later(Arrival& arrival) noexcept {
        to_ask_.remove(arrival);
        to_ask_.push_back(arrival);
    }
    /// Its Ask was sent. A message that nothing else needs is dropped.
    void on_asked(Arrival& arrival) noexcept;
    /// Calls tell(source, hold) for senders that are to hold or to go on, at most `most` of them;
    /// tell returns false if it could not be said now.
    template <typename Tell>
    void each_to_hold(unsigned most, Tell tell) noexcept {
        for (; most > 0 && !to_hold_.empty(); --most) {
            if (hold_turn_ >= to_hold_.size()) hold_turn_ = 0;
            const std::uint16_t source = to_hold_[hold_turn_];
            Sender& sender = senders_[source];
            if (sender.holds != sender.told && !tell(source, sender.holds)) {
                ++hold_turn_;
                continue;
            }
            sender.told = sender.holds;
            sender.listed = false;
            to_hold_[hold_turn_] = to_hold_.back();
            to_hold_.pop_back();
        }
    }
    /// True if next_intake() has something, or may have.
    [[nodiscard]] bool has_intakes() const noexcept {
        return !to_note_.empty() || !stopped_.empty();
    }
    /// Names the next sender of which the engine shall take other messages than before.
    /// Returns false if there is none.
    [[nodiscard]] bool next_intake(std::uint16_t& source, abi::Intake& intake) noexcept;
    /// Returns the messages of the sender that are taken.
    [[nodiscard]] abi::Intake intake_of(std::uint16_t source) const noexcept {
        return senders_[source].intake;
    }
    /// Malformed announcements and rests so far.
    [[nodiscard]] std::uint64_t malformed() const noexcept { return malformed_; }
    enum class Counts : std::uint8_t { kNo, kYes };
    /// A whole message that the engine did not bring: of the endpoint to itself, or of a peer on
    /// this node. The payload may change meanwhile. counts: an unexpected one counts for its
    /// sender, as set_held_max() says. False: no memory.
    [[nodiscard]] bool deliver(std::uint16_t source, std::uint64_t tag, const Pieces& payload,
                               Counts counts) noexcept;
    /// Returns the payload of a record and, if it is in a block, its offset (else UINT32_MAX);
    /// nullptr if it is out of range.
    [[nodiscard]] const unsigned char* payload_of(const abi::CompletionRecord& record,
                                                  std::uint32_t& length,
                                                  std::uint32_t& block) const noexcept;

    /// Starts a receive; gone: ULC_OK, or why a named source sends nothing more.
    void receive(Request& request, int gone) noexcept;
    /// The same of a receive of many messages.
    void receive_many(Request& many, int gone) noexcept;
    /// False: it has matched.
    [[nodiscard]] bool cancel(Request& request) noexcept;
    /// Takes back the buffer of a receive that a message has begun to fill. The rest of the message
    /// is thrown away. Errors: TIMEOUT (the engine is stuck, and the receive stays).
    [[nodiscard]] int abandon(Request& request) noexcept;
    /// Sets Hooks::forget_place() for places that place() returned.
    struct Forgetter {
        int (*call)(void* context, std::uint16_t source, const abi::Place& place) = nullptr;
        void* context = nullptr;
    };
    void set_forgetter(const Forgetter& forgetter) noexcept { forgetter_ = forgetter; }
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

    /// A block is not needed any more: it is the engine's again.
    void give_back(std::uint32_t block) noexcept { releases_.push(block); }
    /// Ends receives that name a source which sends nothing more with `error`, and drops its half
    /// messages.
    void peer_gone(std::uint16_t source, int error) noexcept;
    /// The source will be another one: drops what came from it and was not received. Messages that
    /// the application has claimed or taken stay.
    void forget(std::uint16_t source) noexcept;
    void fail_all(int error) noexcept;

    [[nodiscard]] Matcher& matcher() noexcept { return matcher_; }
    [[nodiscard]] std::uint64_t memory_used() const noexcept { return memory_used_; }

private:
    static constexpr std::uint32_t kNoBlock = UINT32_MAX;
    static constexpr std::size_t kSlabArrivals = 64;

    [[nodiscard]] Arrival* new_arrival(std::uint16_t source, std::uint32_t stream,
                                       std::uint64_t tag) noexcept;
    void drop_arrival(Arrival& arrival) noexcept;
    [[nodiscard]] bool reserve_heap(Arrival& arrival, std::uint64_t octets) noexcept;
    [[nodiscard]] Taken on_whole(const abi::CompletionRecord& record, const unsigned char* payload,
                                 std::uint32_t length, std::uint32_t block) noexcept;
    [[nodiscard]] Taken on_first(const abi::CompletionRecord& record, const unsigned char* payload,
                                 std::uint32_t length, std::uint32_t block) noexcept;
    [[nodiscard]] Taken on_next(const abi::CompletionRecord& record, const unsigned char* payload,
                                std::uint32_t length, std::uint32_t block) noexcept;
    [[nodiscard]] Taken on_placed(const abi::CompletionRecord& record) noexcept;
    /// A message that looks for its receive, of which `octets` bytes are at `head`.
    struct Beginning {
        std::uint16_t source;
        std::uint32_t stream;
        std::uint64_t tag;
        std::uint64_t length;
        const unsigned char* head;
        std::uint64_t octets;
    };
    [[nodiscard]] Request* match(const Beginning& message) noexcept;
    [[nodiscard]] static Request& next_part(Request& many, const Beginning& message,
                                            bool& last) noexcept;
    [[nodiscard]] Request& posted_part(Request& many, const Beginning& message) noexcept;
    [[nodiscard]] Request* find_receive(const abi::Beginning& message) noexcept;
    [[nodiscard]] Taken on_broken(const abi::CompletionRecord& record) noexcept;
    [[nodiscard]] bool append(Arrival& arrival, const unsigned char* payload,
                              std::uint32_t length) noexcept;
    [[nodiscard]] Arrival* find_open(const abi::CompletionRecord& record) noexcept;
    void finish(Request& request, std::uint64_t length) noexcept;
    void give(Arrival& arrival, Request& request) noexcept;
    void move_to(Arrival& arrival, Listed where) noexcept;
    void retire(Arrival& arrival) noexcept;
    void ask(Arrival& arrival, std::uint64_t up_to) noexcept;
    void count(Arrival& arrival, std::uint64_t octets) noexcept;
    void uncount(Arrival& arrival) noexcept;
    void judge_sender(std::uint16_t source) noexcept;
    void add_unexpected(Arrival& arrival) noexcept;
    /// Returns the memory that is free for messages without a receive.
    [[nodiscard]] std::uint64_t unused() const noexcept {
        return memory_limit_ - std::min(memory_used_, memory_limit_);
    }
    [[nodiscard]] abi::Intake due_intake(std::uint16_t source) noexcept;
    void judge_share(std::uint16_t source) noexcept;
    void judge_if_stopped(std::uint16_t source) noexcept {
        if (senders_[source].intake != abi::Intake::kAll) judge_share(source);
    }
    void charge(const Arrival& arrival, std::uint64_t before, std::uint64_t after) noexcept;
    void throw_away(Arrival& arrival) noexcept;
    [[nodiscard]] int forget_place(const Arrival& arrival) noexcept;
    [[nodiscard]] Arrival* arrival_of(const Request& request) noexcept;
    [[nodiscard]] Taken on_announcement(const abi::CompletionRecord& record,
                                        const unsigned char* payload, std::uint32_t length,
                                        std::uint32_t block) noexcept;
    [[nodiscard]] Taken on_rest(const abi::CompletionRecord& record, const unsigned char* payload,
                                std::uint32_t length, std::uint32_t block) noexcept;
    [[nodiscard]] Taken swallow(const abi::CompletionRecord& record, std::uint32_t length,
                                std::uint32_t block) noexcept;
    [[nodiscard]] Arrival* find_announced(std::uint16_t source, std::uint32_t id) noexcept;
    [[nodiscard]] bool fits_rest(const Arrival& arrival, std::uint64_t octets) const noexcept;
    [[nodiscard]] Arrival* find_rest_place(const abi::Beginning& message) noexcept;
    void part_ended(Arrival& arrival) noexcept;
    void announced_part_ended(Arrival& arrival) noexcept;
    void give_announced(Arrival& arrival, Request& request) noexcept;
    void begin_announced(Arrival& arrival, const unsigned char* head,
                         std::uint64_t octets) noexcept;
    void drop_data(Arrival& arrival) noexcept;
    void break_off(Arrival& arrival, int error) noexcept;
    void drop_open(std::uint16_t source, int error) noexcept;

    abi::Region region_;
    abi::ReleaseProducer releases_;
    Matcher matcher_;
    std::vector<std::unique_ptr<Arrival[]>> slabs_;
    AllArrivals free_;
    AllArrivals taken_;      ///< whole, lent to the application by take()
    AllArrivals claimed_;    ///< the application's
    AskingArrivals to_ask_;  ///< matched, discarded or to be taken: their Ask is due
    struct Sender {
        std::uint64_t held = 0;  ///< bytes of its unexpected messages
        bool holds = false;
        bool told = false;    ///< the last word to it was Hold
        bool listed = false;  ///< in to_hold_
        bool noted = false;   ///< in to_note_
        abi::Intake intake = abi::Intake::kAll;
        abi::Intake noted_intake = abi::Intake::kAll;
        std::uint64_t memory = 0;  ///< bytes of its Arrivals and of their copies
    };
    std::vector<Sender> senders_;         ///< by rank
    std::vector<std::uint16_t> to_hold_;  ///< capacity for all
    std::vector<std::uint16_t> to_note_;  ///< the engine shall hear of them; capacity for all
    std::vector<std::uint16_t> stopped_;  ///< not kAll; capacity for all
    std::size_t stopped_turn_ = 0;        ///< into stopped_
    Forgetter forgetter_;
    std::uint32_t asked_ = 0;    ///< messages in the lists kAsked
    std::size_t hold_turn_ = 0;  ///< into to_hold_
    std::uint64_t held_max_ = UINT64_MAX;
    std::uint64_t malformed_ = 0;
    ErrorHandler handler_;
    std::uint64_t memory_limit_;
    std::uint64_t memory_used_ = 0;
    std::uint32_t arena_held_ = 0;
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
