// SPDX-License-Identifier: BSD-3-Clause
// One endpoint: the non-blocking, context-free core behind ulc.h. It knows a mapped region and
// Hooks, and no socket, clock or thread; so the simulator drives the same object over private
// memory.
//
//   endpoint.cc   poll, dispatch of completions, ends          jobs.cc     join, leave, peers
//   links.h       peers outside of a job, endpoint_links.cc
//   messages.cc   the entries for messages and groups          waiter.h    spin, yield, sleep
//   outbox.h      the send path                                inbox.h     the receive path
//   rendezvous.h  announced messages, endpoint_announced.cc
//   near.h        peers of this node, endpoint_near.cc
//   upcall.h      interrupts of a thread that computes         engine_watch.h  does it live?
//   groups.h      creation of groups                           offloads.h  schedules that it runs
//   attach_client.h, embedded_client.h: make regions
//
// States: kIdle ──join──▶ kForming ──▶ kFormed ──leave──▶ kLeaving ──▶ kClosed
//                                         └─────the engine ended it─────────▶┘
//                            └──▶ kFailed ──join──▶ …     any ──engine gone, corruption──▶ kClosed
//
// Unexpected arrivals and groups allocate; allocation failure is an error of the call, or stops the
// inbox (see there).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi/client_notes.h"
#include "abi/placement.h"
#include "abi/region.h"
#include "base/medium.h"
#include "client/attach/engine_watch.h"
#include "client/collective/offloads.h"
#include "client/groups/groups.h"
#include "client/hooks.h"
#include "client/links/link_table.h"
#include "client/near/near.h"
#include "client/p2p/inbox.h"
#include "client/p2p/outbox.h"
#include "client/p2p/submitter.h"
#include "client/ulc.h"
#include "client/waits/upcall.h"
#include "client/waits/waiter.h"

namespace ulc::client {

/// Arena of clients that offload, unless the engine gives more: data of such a collective are in
/// the tx arena, so it has space for a broadcast of 1 MiB, its schedule, and other sends.
inline constexpr std::uint32_t kOffloadArenaOctets = 4U << 20;

struct Limits {
    std::uint64_t unexpected_octets = Inbox::kMemoryOctetsDefault;
    std::uint64_t check_collectives = 1;  ///< 0: messages of collectives have no signature
    std::uint64_t patience_ms =
        1000;  ///< a collective that waits this long asks the members for which it waits
    std::uint64_t offload = 0;  ///< 1: started barriers and broadcasts are submitted to the engine
    std::uint16_t medium = 0;   ///< medium of jobs whose rank 0 this is: as JoinRequest::medium
};

/// Keeps the settings that ulc_rejoin() repeats to the next engine.
struct Recall {
    std::string engine;       ///< as given to ulc_open()
    std::string profile;      ///< for the next job; empty: the engine's
    Nanos patience = 0;       ///< with nodes of the next job; 0: the engine's
    abi::JoinRequest join{};  ///< the last; name_length 0: none
    std::uint16_t links = 0;  ///< the number it was opened for; 0: none
    ulc_link_address name{};  ///< the name it was opened under; zeros: none
    ErrorHandler handler;     ///< called for events of no request
    std::uint64_t announce_from = UINT64_MAX;
    std::uint64_t held_max = UINT64_MAX;
};

class Endpoint {
public:
    Endpoint(const abi::Region& region, const Hooks& hooks, const Limits& limits);
    ~Endpoint();  ///< calls hooks.close
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    void set_error_handler(const ErrorHandler& handler) noexcept { recall_.handler = handler; }
    [[nodiscard]] const Recall& recall() const noexcept { return recall_; }
    void opened_as(std::string engine) noexcept { recall_.engine = std::move(engine); }
    /// Repeats the settings of another endpoint. Called before it joins.
    void prepare_as(const Recall& other);
    /// Takes over the ended requests that the other's caller collects.
    void take_collected(Endpoint& other) noexcept;

    // --- jobs; as the functions of ulc.h
    [[nodiscard]] int set_profile(std::string_view profile);
    /// Sets how long a peer's node is silent before it counts as dead, from the next job on.
    void set_patience(Nanos patience) noexcept { recall_.patience = patience; }
    [[nodiscard]] bool has_profile() const noexcept { return !recall_.profile.empty(); }
    [[nodiscard]] int join(const char* job, std::size_t job_octets, std::uint16_t rank,
                           std::uint16_t size, const unsigned char* nonce, Nanos timeout);
    /// Gives the nonce of a job to the engine's sealed wires. nullptr: there is none. Returns an
    /// error of ulc.h: without a key such a wire reaches no node.
    [[nodiscard]] int seal(const unsigned char* nonce) const;
    /// Starts ulc_open_links(). `key`: 16 random bytes, not all 0.
    [[nodiscard]] int open_links(std::uint16_t links, const unsigned char* key);
    /// Starts ulc_open_links_as().
    [[nodiscard]] int open_links_as(std::uint16_t links, const ulc_link_address& name);
    [[nodiscard]] int address(ulc_link_address& out) const noexcept;
    [[nodiscard]] int link(const ulc_link_address& peer, Nanos timeout, ulc_request* request);
    [[nodiscard]] int unlink(std::uint16_t peer, ulc_request* request);
    [[nodiscard]] int next_peer(std::uint16_t& peer) noexcept;
    [[nodiscard]] int job_state() const noexcept;
    [[nodiscard]] int leave() noexcept;
    [[nodiscard]] std::uint16_t rank() const noexcept { return rank_; }
    [[nodiscard]] std::uint16_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint32_t world() const noexcept { return world_; }
    [[nodiscard]] int peer_state(std::uint16_t rank) const noexcept;
    [[nodiscard]] Medium medium() const noexcept { return medium_; }
    /// Returns the engine's text when the job failed; may be empty.
    [[nodiscard]] const std::string& job_text() const noexcept { return job_text_; }

    // --- peers of this node; as the functions of near/ulc_near.h
    [[nodiscard]] int near_prepare(const NearMemory& memory);
    [[nodiscard]] int near_peer(std::uint16_t peer) noexcept;
    [[nodiscard]] int near_processes(std::uint16_t peer, abi::NearRows& out) noexcept;

    // --- messages; tags may be any, what users may say is checked in api.cc
    /// `flags`: of ulc_send_flag.
    [[nodiscard]] int send(std::uint16_t to, std::uint64_t tag, const Pieces& payload,
                           unsigned flags, ulc_request* request);
    [[nodiscard]] int multicast(std::uint32_t group, std::uint64_t subset, std::uint64_t tag,
                                const Pieces& payload, unsigned flags, ulc_request* request);
    [[nodiscard]] int set_rendezvous(std::uint64_t from, std::uint64_t held_max) noexcept;
    /// Sends announced messages without a request for them, because this side asks and answers no
    /// more.
    void push_announced() noexcept { outbox_.push_announced(rank_); }
    /// Returns the bytes of memory of the library that messages take.
    [[nodiscard]] std::uint64_t memory_held() const noexcept {
        return inbox_.arrivals().shares().used();
    }
    /// Returns the number of control messages of other ranks' libulc that were malformed or came
    /// too late, and were dropped.
    [[nodiscard]] std::uint64_t words_dropped() const noexcept {
        return words_dropped_ + inbox_.malformed() + (near_ != nullptr ? near_->malformed() : 0);
    }
    [[nodiscard]] int receive(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                              const Pieces& buffer, ulc_request* request);
    [[nodiscard]] int receive_many(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                                   ulc_part_giver give, ulc_request* request);
    [[nodiscard]] int probe(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                            ulc_status* status) noexcept;
    /// Returns and sets the same as ulc_probe_head().
    [[nodiscard]] int probe_head(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                                 void* head, std::size_t* octets, ulc_status* status) noexcept;
    [[nodiscard]] int claim(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                            Arrival** message, ulc_status* status) noexcept;
    [[nodiscard]] int receive_claimed(Arrival* message, const Pieces& buffer,
                                      ulc_request* request) noexcept;
    [[nodiscard]] int discard(Arrival* message) noexcept;
    [[nodiscard]] int cancel(ulc_request* request) noexcept;
    /// Performs ulc_move_payload().
    [[nodiscard]] int move_payload(ulc_request* request, unsigned char* copy,
                                   std::uint64_t octets) noexcept;
    /// Performs ulc_abandon().
    [[nodiscard]] int abandon_receive(ulc_request* request) noexcept;
    /// Puts the request into the list of those that are done, at once or when it is done. Returns
    /// false if it is collected already.
    [[nodiscard]] bool collect(Request& request) noexcept;
    /// Takes out of that list the request that was done first; nullptr: it is empty.
    [[nodiscard]] Request* next_done() noexcept { return collector_.ended.pop_front(); }
    [[nodiscard]] int take(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                           const void** view, ulc_status* status) noexcept;
    void release(const void* view) noexcept { inbox_.release(view); }
    [[nodiscard]] int lend_frames(bool lend) noexcept {
        if (ended_ != 0) return ended_;
        if (hooks_.lend_frames == nullptr) return ULC_ERR_UNSUPPORTED;
        return hooks_.lend_frames(hooks_.context, lend);
    }
    /// Finds the tag of the first message that such a receive would take. Errors: AGAIN (none).
    [[nodiscard]] int peek(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                           std::uint64_t* found) noexcept;
    [[nodiscard]] bool checks_collectives() const noexcept { return checks_collectives_; }
    /// kNever: collectives ask no member.
    [[nodiscard]] Nanos collective_patience() const noexcept { return collective_patience_; }
    /// Like client::ask() about an operation of the group.
    [[nodiscard]] bool ask_about(std::uint16_t rank, std::uint32_t group, std::uint32_t number,
                                 const Agreement& mine) noexcept;
    [[nodiscard]] bool offloads_collectives() const noexcept { return offloads_collectives_; }
    /// Returns the number of completions taken, free running.
    [[nodiscard]] std::uint32_t completions_taken() const noexcept {
        return completions_.consumed();
    }
    [[nodiscard]] TxArena& arena() noexcept { return outbox_.arena(); }
    [[nodiscard]] Offloads& offloads() noexcept { return offloads_; }

    /// Returns the placer for an engine of this process, which may write anywhere: it places
    /// messages that begin. Valid while this object lives.
    [[nodiscard]] abi::Placer placer() noexcept;
    /// Tells whether a round needs the placer. Without it the engine may take a quiet round.
    [[nodiscard]] bool needs_placer() const noexcept { return inbox_.may_place(); }

    // --- groups
    /// `key`: nullptr, or as ulc_group_create_keyed().
    [[nodiscard]] int group_create(const std::uint16_t* ranks, std::uint16_t count,
                                   const std::uint64_t* key, ulc_request* request);
    [[nodiscard]] int group_free(std::uint32_t group);
    /// Performs ulc_set_hold(), whose arguments were validated except for the ranks.
    [[nodiscard]] int set_hold(std::int64_t limit, std::uint32_t flags,
                               std::span<const std::uint16_t> keep);
    [[nodiscard]] const Group* group(std::uint32_t handle) const noexcept {
        return groups_.find(handle);
    }
    [[nodiscard]] Group* group(std::uint32_t handle) noexcept { return groups_.find(handle); }

    // --- progress
    /// Performs ulc_poll(). No system call, no blocking.
    int poll();
    /// Returns how many polls in succession have found nothing; see ulc_empty_polls().
    [[nodiscard]] unsigned empty_polls() const noexcept { return empty_polls_; }
    /// Calls poll() in the middle of another call: the caller's next poll() reports these events
    /// too.
    void poll_aside() { events_aside_ += std::max(poll(), 0); }
    /// Announces to the engine for which sources this endpoint waits (URTP §3.1). wait() and long
    /// empty polling do it themselves; a driver without wait(), as the simulator, calls it when the
    /// application has no work left.
    void announce_awaited() noexcept;
    [[nodiscard]] const abi::Region& region() const noexcept { return region_; }
    /// Returns the number of records submitted, free running.
    [[nodiscard]] std::uint32_t published() const noexcept { return submitter_.published(); }
    /// Returns whether an engine in this process has submissions to take, or, after a poll, frames
    /// to send.
    [[nodiscard]] bool engine_has_work(bool polled) const noexcept {
        return submitter_.published() != taken_by_engine_ || (polled && engine_owes_);
    }
    [[nodiscard]] bool has_near_receivers() const noexcept {
        return near_ != nullptr && near_->has_receivers();
    }
    /// Returns whether a poll has something to report.
    [[nodiscard]] bool has_news() const noexcept {
        return events_aside_ > 0 || has_come() || watch_.closed() != 0;
    }
    /// Ends the endpoint if its engine closed it, and gave nothing that was not taken.
    void end_if_closed();
    /// Ends the endpoint if its engine closed it or is gone, by the kernel's word.
    void end_with_engine();
    /// Ends the endpoint if its engine is gone, unless that was looked at less than `apart` ago.
    void look_at_engine(Nanos now, Nanos apart);
    /// Ends the endpoint, and with it all that is pending.
    void end(int error);
    /// Returns OK if a job or links are formed, else why nothing can be sent.
    [[nodiscard]] int may_communicate() const noexcept;
    /// True if the engine has copied everything sent, and nothing waits for space.
    [[nodiscard]] bool all_sent() const noexcept { return outbox_.idle(); }
    /// True if no send waits for space in ring or arena.
    [[nodiscard]] bool all_submitted() const noexcept { return outbox_.all_submitted(); }
    /// Returns, after leaving, ULC_OK if everything was acknowledged, else why not.
    [[nodiscard]] int left_error() const noexcept { return left_error_; }
    [[nodiscard]] const Hooks& hooks() const noexcept { return hooks_; }
    /// Ends the endpoint with ULC_ERR_CLOSED in a child of fork(). Touches nothing else of it:
    /// another thread of the parent may have been in the middle of a call.
    void abandon() noexcept;
    /// Returns 0, or minus the error that ended the endpoint.
    [[nodiscard]] int ended() const noexcept { return -ended_; }

private:
    [[nodiscard]] int open_links(std::uint16_t links, abi::OpenLinksRequest& request);
    enum class State : std::uint8_t { kIdle, kForming, kFormed, kFailed, kLeaving, kClosed };
    static constexpr unsigned kPollRecordsMax = 256;

    [[nodiscard]] bool dispatch(const abi::CompletionRecord& record);
    [[nodiscard]] bool may_place(const abi::Beginning& message) const noexcept;
    [[nodiscard]] Inbox::Taken on_message(const abi::CompletionRecord& record);
    [[nodiscard]] Inbox::Taken on_word(const abi::CompletionRecord& record);
    /// Sends the Asks and Holds that are due.
    void answer_announced() noexcept;
    /// Tells the engine of which senders it shall take other messages.
    void note_sources() noexcept;
    [[nodiscard]] bool say(std::uint16_t to, std::uint64_t tag, const void* word,
                           std::size_t octets) noexcept;
    [[nodiscard]] bool answer_own(Arrival& arrival) noexcept;
    [[nodiscard]] int announce_to_self(const SendArgs& args, ulc_request* request) noexcept;
    void on_formed(const abi::CompletionRecord& record);
    [[nodiscard]] bool on_links_open(const abi::CompletionRecord& record);
    [[nodiscard]] bool on_link_record(const abi::CompletionRecord& record);
    [[nodiscard]] int may_link() const noexcept;
    [[nodiscard]] std::uint16_t per_node_of(const abi::CompletionRecord& record) const noexcept;
    void on_job_failed(const abi::CompletionRecord& record);
    void on_peer_gone(std::uint16_t rank, int error, Nanos absence);
    void on_fault(const abi::CompletionRecord& record);
    [[nodiscard]] bool run_engine();
    [[nodiscard]] bool has_more_to_do() const noexcept;
    /// True if the engine gave something that was not taken.
    [[nodiscard]] bool has_come() const noexcept {
        return completions_.ready() || outbox_.has_done();
    }
    [[nodiscard]] int take_sends_done();
    [[nodiscard]] int poll_all(int events, bool moved);
    [[nodiscard]] int on_idle_poll();
    void push_leave() noexcept;
    [[nodiscard]] int may_receive(std::uint16_t from) const noexcept;
    [[nodiscard]] int may_look(std::uint16_t from, int& none) const noexcept;
    [[nodiscard]] int send_by_near(std::uint16_t to, std::uint64_t tag, const Pieces& payload,
                                   unsigned flags, ulc_request* request);
    [[nodiscard]] int send_by_engine(std::uint16_t to, std::uint64_t tag, const Pieces& payload,
                                     unsigned flags, ulc_request* request);
    [[nodiscard]] int send_to_self(const SendArgs& args, ulc_request* request);
    /// Gives the inbox the messages that the peer wrote to its ring. Returns false if there is no
    /// memory for a message.
    [[nodiscard]] bool drain_near(std::uint16_t peer) noexcept {
        return near_ == nullptr || peer >= size_ || near_->drain(peer);
    }
    void answer_near() noexcept;
    void ask_near() noexcept;
    [[nodiscard]] bool on_near_record(const abi::CompletionRecord& record) noexcept;

    abi::Region region_;
    Hooks hooks_;
    abi::CompletionConsumer completions_;
    Submitter submitter_;
    Outbox outbox_;
    Inbox inbox_;
    Groups groups_;
    Offloads offloads_;
    EngineWatch watch_;
    std::unique_ptr<LinkTable> links_;  ///< while it is open for links
    std::unique_ptr<Near> near_;        ///< nullptr: all messages go through the engine
    Collector collector_;

    State state_ = State::kIdle;
    bool leave_pushed_ = false;
    std::uint64_t words_dropped_ = 0;
    int events_aside_ = 0;
    std::uint32_t source_note_ = 0;  ///< the last abi::SourceNote
    bool checks_collectives_ = true;
    Nanos collective_patience_ = kNever;
    bool offloads_collectives_ = false;
    int ended_ = 0;  ///< ULC_ERR_… that ended the endpoint
    int job_error_ = ULC_ERR_NOT_FORMED;
    int left_error_ = ULC_OK;
    std::uint32_t join_block_ = TxArena::kNone;
    Recall recall_;
    std::uint32_t world_ = 0;
    std::uint16_t rank_ = ULC_RANK_ANY;
    std::uint16_t size_ = 0;
    std::uint16_t medium_said_ = 0;
    Medium medium_ = Medium::kSwitch;
    /// State of each rank: 0, PEER_LEFT, PEER_DIED; INVALID: no peer is linked there.
    std::vector<std::uint8_t> peer_errors_;
    std::uint32_t empty_polls_ = 0;
    std::uint32_t taken_by_engine_ =
        0;                      ///< records published when an embedded engine had its last round
    bool engine_owes_ = false;  ///< the last round left frames pending
    std::string job_text_;
};

}  // namespace ulc::client

/// The C type is the class, so that no call forwards, with what its caller's thread does.
struct ulc_endpoint final : ulc::client::Endpoint {
    using Endpoint::Endpoint;
    ulc::client::Waiter waiter{*this};
    ulc::client::Interrupts interrupts{*this};
};

namespace ulc::client {

/// Makes an endpoint over a mapped, validated region. nullptr: out of memory (hooks.close is not
/// called then).
[[nodiscard]] std::unique_ptr<ulc_endpoint> make_endpoint(const abi::Region& region,
                                                          const Hooks& hooks,
                                                          const Limits& limits = {}) noexcept;

}  // namespace ulc::client
