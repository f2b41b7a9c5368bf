// SPDX-License-Identifier: BSD-3-Clause
// The states of the ends of links (links.h): calls, confirmations, leaving, the times of each, and
// which ends have a frame to send. Used by Links for local endpoints and by LinkFrames for frames
// that came. Frames are pulled by take_due(), events by poll_event().
//
// Invariant: an end with a time is in the list of those that wait.
#pragma once

#include <cstdint>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/growing_ring.h"
#include "base/units.h"
#include "jobs/links/link_names.h"
#include "jobs/links/link_table.h"
#include "jobs/links/link_types.h"
#include "jobs/liveness.h"

namespace ulc::jobs {

class LinkStates {
public:
    /// All of them outlive this.
    LinkStates(const LinksConfig& config, LinkTable& table, const Liveness& liveness,
               Counters& counters);

    // --- calls
    /// Takes a slot for a call, or gives that of a link to the peer that is there or coming.
    /// Errors: those of Links::call().
    [[nodiscard]] Result<Rank> queue_call(LinkEndpoint& endpoint, const wire::LinkAddress& address,
                                          Nanos deadline);
    /// Begins calls that are queued, while the endpoint may have more.
    void start_calls(LinkEndpoint& endpoint, Nanos now);
    /// Ends a lookup by a call, or by its error. The event precedes those of the call.
    void call_found(const FoundEndpoint& found, Nanos now);

    // --- events of an end
    /// The peer calls: answers it from a slot that is new, or that of a call which has not begun.
    void answer_call(LinkEndpoint& endpoint, Rank slot, Nanos now);
    /// Takes the peer's side of the link from its REQUEST or ACCEPT.
    void take_peer(LinkEndpoint& endpoint, Rank slot, const wire::LinkView& view);
    /// The peer is there.
    void confirmed(LinkEndpoint& endpoint, Rank slot, Nanos now);
    /// A call fails. Its slot is vacant then.
    void fail(LinkEndpoint& endpoint, Rank slot, Err error, Nanos now);
    /// The peer left or died, or holds no such link.
    void end_by(LinkEndpoint& endpoint, Rank slot, wire::LeaveReason reason, Nanos now);
    /// Tells the peer that the link ends, at most `repeats` times and once.
    void leave(LinkEndpoint& endpoint, Rank slot, wire::LeaveReason reason, std::uint8_t repeats,
               Nanos now);
    /// Ends all links of an endpoint that ends itself.
    void close(LinkEndpoint& endpoint, wire::LeaveReason reason, Nanos now);
    /// Forgets an endpoint that is closed and has no link.
    void forget_if_over(Handle endpoint);
    /// Ends the links that a verdict about a node ends. False: verdicts of that kind end none.
    bool on_verdict(const NodeVerdict& verdict, Nanos now);
    /// Asks the node about one link, in turn, and has the ping ask about its endpoint. False: there
    /// is no link.
    [[nodiscard]] bool question(const Mac& node, wire::NodeBody& ping);

    // --- time
    /// Gives the end a time, at which on_timer() goes on with it.
    void set_time(const LinkRef& ref, LinkEnd& end, Nanos at);
    /// Handles the ends whose time has come.
    void on_timer(Nanos now);
    /// The timer may be early, for an end that has no time any more, until recompute_timer().
    [[nodiscard]] Nanos next_timer() const noexcept { return timer_; }
    /// other: the earliest time of anything else that on_timer() of Links does.
    void recompute_timer(Nanos other) noexcept;

    // --- frames and events
    /// Queues an end that has something to say.
    void speak(const LinkRef& ref, LinkEnd& end);
    /// Takes the next end with a frame to send, and says which; nullptr: none. local: to peers of
    /// this engine, else to others.
    [[nodiscard]] const LinkEnd* take_due(bool local, LinkRef& ref, wire::LinkKind& kind);
    [[nodiscard]] bool has_due(bool local) const noexcept {
        return !(local ? local_due_ : due_).empty();
    }
    [[nodiscard]] bool poll_event(LinkEvent& out);
    [[nodiscard]] bool has_event() const noexcept { return !events_.empty(); }

    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    /// Ends the link. Its slot is the endpoint's until release().
    void finish(LinkEndpoint& endpoint, Rank slot, LinkEventKind how);
    /// The end's time has come.
    void tick(LinkEndpoint& endpoint, Rank slot, Nanos now);
    void push(LinkEventKind kind, Handle endpoint, Rank slot, Err error = Err::kOk);
    /// Returns whether each end with a time is in the list of those that wait.
    [[nodiscard]] bool all_wait() const;

    const LinksConfig& config_;
    LinkTable& table_;
    const Liveness& liveness_;
    Counters& counters_;
    GrowingRing<LinkRef> due_;        ///< ends that speak, in turn
    GrowingRing<LinkRef> local_due_;  ///< the same, to peers of this engine
    std::vector<LinkRef> waiting_;    ///< ends with a time
    GrowingRing<LinkEvent> events_;
    Nanos timer_ = kNever;
};

}  // namespace ulc::jobs
