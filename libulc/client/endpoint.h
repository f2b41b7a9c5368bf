// SPDX-License-Identifier: BSD-3-Clause
// One endpoint: the non-blocking, context-free core behind ulc.h. It knows a mapped region and
// Hooks, and no socket, clock or thread; so the simulator drives the same object over private
// memory. Endpoint has the lifetime and the poll. The objects that it owns have the rest:
//
//   Membership    jobs/membership.h         join, leave, peers
//   Messages      messages/messages.h       send, receive; it owns
//     Outbox, Inbox                         p2p/outbox.h, p2p/inbox.h
//     ControlMessages, SourceNotes          what goes to the libraries of peers, and to the engine
//     Near                                  near/near.h: peers of this node
//   Groups        groups/groups.h           creation of groups
//   LinkTable     links/link_table.h        peers outside of a job
//   Offloads      collective/offloads.h     schedules that the engine runs
//   EngineWatch, EngineRounds               attach/: whether the engine lives; its rounds here
//   Waiter, Interrupts                      waits/: spin, yield, sleep; upcalls
//
// attach_client.h and embedded_client.h make regions. Unexpected arrivals and groups allocate;
// allocation failure is an error of the call, or stops the inbox (see there).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "abi/placement.h"
#include "abi/region.h"
#include "client/attach/engine_rounds.h"
#include "client/attach/engine_watch.h"
#include "client/collective/offloads.h"
#include "client/groups/groups.h"
#include "client/hooks.h"
#include "client/jobs/membership.h"
#include "client/links/link_table.h"
#include "client/messages/messages.h"
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

/// Settings of the collectives of an endpoint.
struct CollectiveSettings {
    bool checks = true;       ///< messages have a signature
    Nanos patience = kNever;  ///< kNever: collectives ask no member
    bool offloads = false;    ///< the engine may run them
};

class Endpoint {
public:
    Endpoint(const abi::Region& region, const Hooks& hooks, const Limits& limits);
    ~Endpoint();  ///< calls hooks.close
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    [[nodiscard]] const abi::Region& region() const noexcept { return region_; }
    [[nodiscard]] const Hooks& hooks() const noexcept { return hooks_; }
    [[nodiscard]] Membership& membership() noexcept { return membership_; }
    [[nodiscard]] const Membership& membership() const noexcept { return membership_; }
    [[nodiscard]] Messages& messages() noexcept { return messages_; }
    [[nodiscard]] const Messages& messages() const noexcept { return messages_; }
    [[nodiscard]] Groups& groups() noexcept { return groups_; }
    [[nodiscard]] const Groups& groups() const noexcept { return groups_; }
    [[nodiscard]] LinkTable& links() noexcept { return links_; }
    [[nodiscard]] const LinkTable& links() const noexcept { return links_; }
    [[nodiscard]] Offloads& offloads() noexcept { return offloads_; }
    [[nodiscard]] const EngineRounds& rounds() const noexcept { return rounds_; }
    [[nodiscard]] const CollectiveSettings& collectives() const noexcept { return collectives_; }

    // --- lifetime
    /// Repeats the settings of another endpoint. Called before this one joins.
    void prepare_as(const Endpoint& other);
    /// Performs ulc_leave().
    [[nodiscard]] int leave() noexcept;
    /// Ends the endpoint, and with it all that is pending.
    void end(int error);
    /// Ends the endpoint if its engine closed it, and gave nothing that was not taken.
    void end_if_closed();
    /// Ends the endpoint if its engine closed it or is gone, by the kernel's word.
    void end_with_engine();
    /// Ends the endpoint if its engine is gone, unless that was checked less than `apart` ago.
    void look_at_engine(Nanos now, Nanos apart);
    /// Ends the endpoint with ULC_ERR_CLOSED in a child of fork(). Touches nothing else of it:
    /// another thread of the parent may have been in the middle of a call.
    void abandon() noexcept { membership_.end(ULC_ERR_CLOSED); }
    /// Returns 0, or minus the error that ended the endpoint.
    [[nodiscard]] int ended() const noexcept { return -membership_.ended(); }

    // --- progress
    /// Performs ulc_poll(). No system call, no blocking.
    int poll();
    /// Returns how many polls in succession have found nothing; see ulc_empty_polls().
    [[nodiscard]] unsigned empty_polls() const noexcept { return empty_polls_; }
    /// Calls poll() in the middle of another call: the caller's next poll() reports these events
    /// too.
    void poll_aside() { events_aside_ += std::max(poll(), 0); }
    /// Returns whether a poll has something to report.
    [[nodiscard]] bool has_news() const noexcept {
        return events_aside_ > 0 || has_come() || watch_.closed() != 0;
    }
    /// Returns the number of records submitted, free running.
    [[nodiscard]] std::uint32_t published() const noexcept { return submitter_.published(); }
    /// Returns the number of completions taken, free running.
    [[nodiscard]] std::uint32_t completions_taken() const noexcept {
        return completions_.consumed();
    }
    /// Returns the placer for an engine of this process, which may write anywhere: it places
    /// messages that begin. Valid while this object lives.
    [[nodiscard]] abi::Placer placer() noexcept;
    /// Performs ulc_lend_frames().
    [[nodiscard]] int lend_frames(bool lend) noexcept;
    void check_invariants() const;

private:
    friend struct Breaker;
    static constexpr unsigned kPollRecordsMax = 256;

    [[nodiscard]] bool dispatch(const abi::CompletionRecord& record);
    [[nodiscard]] bool may_place(const abi::Beginning& message) const noexcept;
    [[nodiscard]] bool begin_job(const abi::CompletionRecord& record);
    [[nodiscard]] bool on_job_failed(const abi::CompletionRecord& record);
    void on_peer_gone(std::uint16_t rank, int error, Nanos absence);
    [[nodiscard]] bool has_more_to_do() const noexcept;
    /// True if the engine gave something that was not taken.
    [[nodiscard]] bool has_come() const noexcept {
        return completions_.ready() || messages_.outbox().has_done();
    }
    [[nodiscard]] int take_sends_done();
    [[nodiscard]] int poll_all(int events, bool moved);
    [[nodiscard]] int on_idle_poll();
    void submit_leave() noexcept;

    abi::Region region_;
    Hooks hooks_;
    abi::CompletionConsumer completions_;
    Submitter submitter_;
    EngineRounds rounds_;
    Messages messages_;
    Membership membership_;
    Groups groups_;
    LinkTable links_;
    Offloads offloads_;
    EngineWatch watch_;
    CollectiveSettings collectives_;
    int events_aside_ = 0;
    std::uint32_t empty_polls_ = 0;
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
