// SPDX-License-Identifier: BSD-3-Clause
// The messages of one endpoint: checks the caller and the arguments, and decides by which way a
// message goes: the engine, the ring of a peer on this node (near/near.h), or none, to itself.
//
//   send      near ring, else outbox.h ─▶ engine       receive    inbox.h ◀─ engine, near ring
//   poll      take_short(), or on_message() for each record; then progress() and answer()
//
// Tags may be any; the API checks those of users.
#pragma once

#include <cstdint>
#include <memory>

#include "abi/region.h"
#include "client/groups/groups.h"
#include "client/jobs/membership.h"
#include "client/messages/control_messages.h"
#include "client/messages/source_notes.h"
#include "client/near/near.h"
#include "client/p2p/inbox.h"
#include "client/p2p/outbox.h"

namespace ulc::client {

class Messages {
public:
    /// Settings that ulc_rejoin() repeats.
    struct Settings {
        ErrorHandler handler;  ///< called for events of no request
        std::uint64_t announce_from = UINT64_MAX;
        std::uint64_t held_max = UINT64_MAX;
    };

    /// The references outlive this. `memory`: bytes for messages without a receive.
    Messages(const abi::Region& region, const Hooks& hooks, Submitter& submitter,
             const Membership& membership, Groups& groups, std::uint64_t memory) noexcept;

    [[nodiscard]] Outbox& outbox() noexcept { return outbox_; }
    [[nodiscard]] const Outbox& outbox() const noexcept { return outbox_; }
    [[nodiscard]] Inbox& inbox() noexcept { return inbox_; }
    [[nodiscard]] Collector& collector() noexcept { return collector_; }
    [[nodiscard]] SourceNotes& source_notes() noexcept { return notes_; }
    /// Returns the ways to peers of this node; nullptr: all messages go through the engine.
    [[nodiscard]] Near* near() noexcept { return near_.get(); }
    [[nodiscard]] const Near* near() const noexcept { return near_.get(); }

    // --- settings
    [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
    void set_error_handler(const ErrorHandler& handler) noexcept { settings_.handler = handler; }
    [[nodiscard]] int set_rendezvous(std::uint64_t from, std::uint64_t held_max) noexcept;
    /// Performs ulc_near_prepare().
    [[nodiscard]] int prepare_near(const NearMemory& memory);

    // --- as the functions of ulc.h. `flags`: of ulc_send_flag.
    [[nodiscard]] int send(std::uint16_t to, std::uint64_t tag, const Pieces& payload,
                           unsigned flags, ulc_request* request);
    [[nodiscard]] int multicast(std::uint32_t group, std::uint64_t subset, std::uint64_t tag,
                                const Pieces& payload, unsigned flags, ulc_request* request);
    [[nodiscard]] int receive(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                              const Pieces& buffer, ulc_request* request);
    [[nodiscard]] int receive_many(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                                   ulc_part_giver give, ulc_request* request);
    [[nodiscard]] int probe(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                            ulc_status* status) noexcept;
    [[nodiscard]] int probe_head(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                                 void* head, std::size_t* octets, ulc_status* status) noexcept;
    [[nodiscard]] int claim(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                            Arrival** message, ulc_status* status) noexcept;
    [[nodiscard]] int receive_claimed(Arrival* message, const Pieces& buffer,
                                      ulc_request* request) noexcept;
    [[nodiscard]] int discard(Arrival* message) noexcept;
    [[nodiscard]] int cancel(ulc_request* request) noexcept;
    [[nodiscard]] int move_payload(ulc_request* request, unsigned char* copy,
                                   std::uint64_t octets) noexcept;
    [[nodiscard]] int abandon(ulc_request* request) noexcept;
    [[nodiscard]] int take(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                           const void** view, ulc_status* status) noexcept;
    /// Sends announced messages without a request for them, because this side asks and answers no
    /// more.
    void push_announced() noexcept { outbox_.push_announced(membership_.rank()); }
    /// Finds the tag of the first message that such a receive would take. Errors: AGAIN (none).
    [[nodiscard]] int peek(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                           std::uint64_t* found) noexcept;
    /// Returns the number of control messages of other ranks' libulc that were malformed or came
    /// too late, and were dropped.
    [[nodiscard]] std::uint64_t control_dropped() const noexcept {
        return control_.dropped() + inbox_.arrivals().malformed() +
               (near_ != nullptr ? near_->malformed() : 0);
    }

    // --- poll
    /// Takes a record that needs no other step. Returns false if on_message() decides.
    [[nodiscard, gnu::always_inline]] bool take_short(
        const abi::CompletionRecord& record) noexcept {
        return near_ == nullptr && inbox_.take_short(record);
    }
    /// Handles a kMessage record. kStalled: not taken, offer it again.
    [[nodiscard]] Inbox::Taken on_message(const abi::CompletionRecord& record);
    /// True if a poll has more to do than to take records.
    [[nodiscard]] bool has_more_to_do() const noexcept {
        return !outbox_.all_submitted() || outbox_.has_done() || owes_answers();
    }
    /// True if answer() has anything to do.
    [[nodiscard]] bool owes_answers() const noexcept {
        return near_ != nullptr || inbox_.owes_answers() ||
               inbox_.arrivals().shares().has_intakes();
    }
    /// Gives the inbox the messages that the peer wrote to its ring. Returns false if there is no
    /// memory for a message.
    [[nodiscard]] bool drain_near(std::uint16_t peer) noexcept {
        return near_ == nullptr || peer >= membership_.size() || near_->drain(peer);
    }
    /// Takes what rings have, and sends what is due to peers and to the engine. Returns events;
    /// *stalled is set if there is no memory.
    unsigned answer(bool* stalled) noexcept;

    // --- transitions of the endpoint
    /// Begins a job. Returns false if out of memory; may throw std::bad_alloc.
    [[nodiscard]] bool begin_job();
    void peer_gone(std::uint16_t rank, int error);
    /// Forgets a peer: its rank may mean another one from now on.
    void forget(std::uint16_t rank);
    void fail_all(int error) noexcept;
    void check_invariants() const;

private:
    friend struct Breaker;
    [[nodiscard]] int send_by_near(std::uint16_t to, std::uint64_t tag, const Pieces& payload,
                                   unsigned flags, ulc_request* request);
    [[nodiscard]] int send_by_engine(std::uint16_t to, std::uint64_t tag, const Pieces& payload,
                                     unsigned flags, ulc_request* request);
    [[nodiscard]] int send_to_self(const SendArgs& args, ulc_request* request);
    [[nodiscard]] int may_receive(std::uint16_t from) const noexcept;
    [[nodiscard]] int gone(std::uint16_t from) const noexcept;
    [[nodiscard]] int may_look(std::uint16_t from, int& none) const noexcept;
    [[nodiscard]] Request& begin_receive(ulc_request* memory, std::uint16_t from, std::uint64_t tag,
                                         std::uint64_t mask) noexcept;
    /// Sends the Asks that a receive has made due.
    void answer_asks() noexcept {
        if (inbox_.arrivals().first_to_ask() != nullptr) control_.answer();
    }

    const abi::Region& region_;
    Submitter& submitter_;
    const Membership& membership_;
    Groups& groups_;
    Settings settings_;
    Outbox outbox_;
    Inbox inbox_;
    SourceNotes notes_;
    ControlMessages control_;
    Collector collector_;
    std::unique_ptr<Near> near_;
};

}  // namespace ulc::client
