// SPDX-License-Identifier: BSD-3-Clause
// The messages of one endpoint that have arrived or are arriving, and are not in the application's
// hands: their memory, the lists of their sources, and the Asks that are due for them
// (rendezvous.h). Used by Inbox, which matches them to receives.
//
// Copies are bounded by Shares::limit(). Blocks of the rx arena hold at most half of it, so that
// messages without a receive cannot stop awaited ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "abi/region.h"
#include "client/arrivals/arrival.h"
#include "client/arrivals/shares.h"

namespace ulc::client {

class Arrivals {
public:
    static constexpr std::uint32_t kNoBlock = UINT32_MAX;

    /// The references outlive this.
    Arrivals(const abi::Region& region, const ErrorHandler& handler, std::uint64_t memory) noexcept
        : region_(region), releases_(region.release_producer()), shares_(*this, handler, memory) {}
    ~Arrivals();
    Arrivals(const Arrivals&) = delete;
    Arrivals& operator=(const Arrivals&) = delete;

    /// Begins a job of that number of ranks. Returns false if out of memory.
    [[nodiscard]] bool begin_job(std::uint16_t ranks) noexcept;
    [[nodiscard]] Shares& shares() noexcept { return shares_; }
    [[nodiscard]] const Shares& shares() const noexcept { return shares_; }

    // --- payload of records
    /// Returns the payload of a record and, if it is in a block, its offset (else kNoBlock);
    /// nullptr if it is out of range.
    [[nodiscard]] const unsigned char* payload_of(const abi::CompletionRecord& record,
                                                  std::uint32_t& length,
                                                  std::uint32_t& block) const noexcept;
    /// Returns a block, if it is one, to the engine.
    void give_back(std::uint32_t block) noexcept {
        if (block != kNoBlock) releases_.push(block);
    }

    // --- messages
    /// Returns a new message, in no list; nullptr: memory or its limit is used up.
    [[nodiscard]] Arrival* create(std::uint16_t source, std::uint32_t stream,
                                  std::uint64_t tag) noexcept;
    /// Frees the message, which is in no list, and its data.
    void drop(Arrival& arrival) noexcept;
    /// Frees the data of the message.
    void drop_data(Arrival& arrival) noexcept;
    /// Takes the first record of a message that no correct libulc sends, and forgets its chunks.
    [[nodiscard]] Taken swallow(const abi::CompletionRecord& record, std::uint32_t length,
                                std::uint32_t block) noexcept;
    /// Returns the number of messages that swallow() has taken.
    [[nodiscard]] std::uint64_t malformed() const noexcept { return malformed_; }
    /// Makes the copy of the message able to hold `octets`; it at least doubles. Returns false for
    /// lack of memory, or at the limit.
    [[nodiscard]] bool reserve(Arrival& arrival, std::uint64_t octets) noexcept;
    /// Leaves a whole message in its block. Returns false if blocks hold too much of the arena.
    [[nodiscard]] bool keep_block(Arrival& arrival, std::uint32_t block,
                                  const unsigned char* payload) noexcept;
    /// Notes that the application waits for all of the message: its data are in no share any more.
    void await(Arrival& arrival) noexcept;
    /// Drops a message of which nothing more comes, when its Ask was sent.
    void retire(Arrival& arrival) noexcept;

    // --- lists of a source
    /// Takes the message out of the list of its source that it is in, and puts it into another.
    void move_to(Arrival& arrival, Listed where) noexcept;
    /// Returns the first message of that list; nullptr: it is empty.
    [[nodiscard]] Arrival* first(std::uint16_t source, Listed which) noexcept {
        return list(source, which).front();
    }
    /// Returns the message of that stream whose chunks are coming; nullptr: there is none.
    [[nodiscard]] Arrival* find_open(std::uint16_t source, std::uint32_t stream) const noexcept;
    /// Returns the announced message with that id that is not open; nullptr: there is none.
    [[nodiscard]] Arrival* find_announced(std::uint16_t source, std::uint32_t id) noexcept;
    /// Returns the announced message whose rest begins, if the rest may go into a receive's buffer;
    /// nullptr: it may not.
    [[nodiscard]] Arrival* find_rest_place(const abi::Beginning& message) noexcept;
    /// Returns the message that a receive has matched; nullptr: there is none.
    [[nodiscard]] Arrival* find_matched(const Request& request) noexcept;
    /// True if a message is coming from the source that something waits for, or that is discarded.
    [[nodiscard]] bool has_wanted(std::uint16_t source) const noexcept;
    /// True if the rest of some message was asked for.
    [[nodiscard]] bool has_asked() const noexcept { return asked_ > 0; }

    // --- Asks
    /// Makes an Ask for bytes up to `up_to` due.
    void ask(Arrival& arrival, std::uint64_t up_to) noexcept;
    /// Returns the first message whose Ask is due; nullptr: none.
    [[nodiscard]] Arrival* first_to_ask() const noexcept { return to_ask_.front(); }
    /// Notes that its Ask cannot be sent now: those of other messages come before it.
    void ask_later(Arrival& arrival) noexcept {
        to_ask_.remove(arrival);
        to_ask_.push_back(arrival);
    }
    /// Notes that its Ask was sent. A message that nothing else needs is dropped.
    void on_asked(Arrival& arrival) noexcept;

    void check_invariants() const;

private:
    friend struct Breaker;
    static constexpr std::size_t kSlabArrivals = 64;
    /// The messages of a source that are not whole.
    struct Source {
        OpenArrivals open;
        OpenArrivals announced;
        OpenArrivals asked;
    };

    [[nodiscard]] OpenArrivals& list(std::uint16_t source, Listed which) noexcept {
        Source& from = sources_[source];
        return which == Listed::kOpen        ? from.open
               : which == Listed::kAnnounced ? from.announced
                                             : from.asked;
    }

    const abi::Region& region_;
    abi::ReleaseProducer releases_;
    Shares shares_;
    std::vector<std::unique_ptr<Arrival[]>> slabs_;
    AllArrivals free_;
    std::vector<Source> sources_;  ///< by rank
    AskingArrivals to_ask_;        ///< matched, discarded or to be taken: their Ask is due
    std::uint32_t asked_ = 0;      ///< messages in the lists kAsked
    std::uint32_t arena_held_ = 0;
    std::uint64_t malformed_ = 0;
};

}  // namespace ulc::client
