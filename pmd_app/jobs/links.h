// SPDX-License-Identifier: BSD-3-Clause
// Links of one engine's endpoints to endpoints of no common job (docs/PROTOCOL.md §13). Sans-IO:
// LINK frames and the time go in; frames and events are pulled.
//
//   kQueued ─▶ kCalling ──ACCEPT──▶ kUp ──UNLINK, death──▶ kGone ──release()──▶ vacant
//   REQUEST ─▶ kAnswered ──CONFIRM──▶ kUp
//                                     kUp ──unlink()──▶ kLeaving ──UNLINKED──▶ kFree ──▶ vacant
//
// Each end names a link by 64 random bits (its id) and by a slot of its endpoint. A frame counts if
// it has the id that its receiver chose. Only REQUEST has none; it proves the key of the endpoint's
// address instead. An end that is asked for a link that it does not hold says UNLINKED, so no end
// stays alone for long:
//
//   CONFIRM is repeated for one link of a node with each ping of the node, and after a hint.
//   An old REQUEST makes an ACCEPT, which its sender answers by UNLINKED.
//
// An endpoint that is published is found by its name: find() asks all nodes by WHERE, and the
// engine that has the endpoint answers HERE (links/link_names.h). The call follows.
//
// One link joins two endpoints, whichever calls. A node with links is watched as one with jobs
// (liveness.h). Limits: slots of each endpoint; kCallsMax calls of an endpoint at once; half of
// LivenessConfig::nodes_max for calls; kLookupsMax lookups of an endpoint; lookups_per_second of
// all; kLinkAnswersMax answers in the queue; answers_per_second.
// Engine thread only.
//
// Parts, each with its data: links/link_table.h (endpoints and slots), links/link_states.h (the
// states above), links/link_names.h (lookups), links/link_frames.h (frames).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "jobs/links/link_frames.h"
#include "jobs/links/link_names.h"
#include "jobs/links/link_states.h"
#include "jobs/links/link_table.h"
#include "jobs/links/link_types.h"
#include "jobs/liveness.h"
#include "wire/link.h"

namespace ulc::jobs {

class Links {
public:
    Links(const LinksConfig& config, Liveness& liveness, Counters& counters);
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;

    // --- local endpoints
    void set_attributes(const wire::NodeAttributes& attributes) noexcept {
        config_.attributes = attributes;
    }
    /// Opens an endpoint for links: slots 0 … slots-1. profile: as both ends have it.
    void open(Handle endpoint, const wire::LinkKey& key, std::uint16_t slots,
              std::string_view profile);
    /// Lets those who know the name of an open endpoint find it, from which its key was made.
    /// Requires !is_published(key).
    void publish(Handle endpoint);
    /// True if an endpoint here has that key, and is published.
    [[nodiscard]] bool is_published(const wire::LinkKey& key) const noexcept {
        return names_.is_published(key);
    }
    /// Tells the peers of an endpoint that it has ended, a bounded number of times.
    void close(Handle endpoint, wire::LeaveReason reason, Nanos now);
    [[nodiscard]] bool has(Handle endpoint) const noexcept;
    /// The profile of an endpoint that is open.
    [[nodiscard]] std::string_view profile(Handle endpoint) const noexcept;
    /// The address of an endpoint that is open.
    [[nodiscard]] wire::LinkAddress address(Handle endpoint) const noexcept;
    /// Starts a call; gives its slot, or that of a link to the peer that is there or coming.
    /// Errors: kInvalid, kVersion (the address), kLimit (no slot is vacant), kAgain (such a link is
    /// leaving).
    [[nodiscard]] Result<Rank> call(Handle endpoint, const wire::LinkAddress& address,
                                    Nanos deadline, Nanos now);
    /// Looks an endpoint up, and calls it. kOk: kCalled follows, with that cookie. Errors:
    /// kInvalid, kVersion (the name), kLimit (kLookupsMax).
    [[nodiscard]] Err find(Handle endpoint, const wire::LinkName& name, std::uint32_t cookie,
                           Nanos deadline, Nanos now);
    /// Ends a link that is up; kUnlinked follows.
    void unlink(Handle endpoint, Rank slot, Nanos now);
    /// Makes a slot vacant whose link is over.
    void release(Handle endpoint, Rank slot);
    /// A packet of the peer came in order: as good as CONFIRM.
    void confirm(Handle endpoint, Rank slot, Nanos now);
    /// The transport found out that the peer is dead.
    void peer_died(Handle endpoint, Rank slot, Nanos now);
    /// nullptr: no such endpoint or slot. Valid until the next call.
    [[nodiscard]] const LinkEnd* at(Handle endpoint, Rank slot) const noexcept;

    // --- frames and time
    void on_frame(const wire::LinkView& view, const Mac& source, Nanos now);
    /// A frame named a slot that its sender does not have: tells the sender so, at a limited rate.
    void unknown_slot(Handle endpoint, Rank slot, const Mac& source, Nanos now);
    /// Ends the links that a verdict about a node ends.
    void on_verdict(const NodeVerdict& verdict, Nanos now);
    /// A live link of an endpoint here to that endpoint there.
    [[nodiscard]] bool has_peer(const Mac& mac, Handle peer) const noexcept;
    /// Asks that node about one link, in turn, and has the ping ask about its endpoint. False:
    /// there is no link.
    bool question(const Mac& mac, wire::NodeBody& ping);
    [[nodiscard]] bool has_links(const Mac& mac) const { return table_.index().has_node(mac); }
    /// Writes a body, at most wire::kLinkOctetsMax; 0: none due.
    [[nodiscard]] std::size_t next_tx(std::byte* body, Mac& to);
    [[nodiscard]] bool has_tx() const noexcept { return frames_.has_tx(); }
    [[nodiscard]] Nanos next_timer() const noexcept { return ends_.next_timer(); }
    void on_timer(Nanos now);
    [[nodiscard]] bool poll_event(LinkEvent& out) { return ends_.poll_event(out); }
    [[nodiscard]] bool has_event() const noexcept { return ends_.has_event(); }
    /// No peer is to be told anything.
    [[nodiscard]] bool drained() const noexcept {
        return table_.closing() == 0 && !frames_.has_answer();
    }
    void check_invariants() const;
    /// Returns how many ends all searches have visited, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return table_.index().steps(); }
    void fields(state::Archive& archive);

private:
    /// Calls the endpoints that lookups have found.
    void look_again(Nanos now);
    /// Takes what endpoints here say to each other, after a change of one.
    void settle(Nanos now);
    void recompute_timer() noexcept;

    LinksConfig config_;
    Liveness& liveness_;
    LinkTable table_;    ///< endpoints and their slots
    LinkStates ends_;    ///< their states
    LinkNames names_;    ///< endpoints that are found by their names
    LinkFrames frames_;  ///< frames in and out
};

}  // namespace ulc::jobs
