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
// engine that has the endpoint answers HERE (link_names.cc). The call follows.
//
// One link joins two endpoints, whichever calls. A node with links is watched as one with jobs
// (liveness.h). Limits: slots of each endpoint; kCallsMax calls of an endpoint at once; half of
// LivenessConfig::nodes_max for calls; kLookupsMax lookups of an endpoint; lookups_per_second of
// all; kLinkAnswersMax answers in the queue; answers_per_second.
// Engine thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bounded.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/growing_ring.h"
#include "base/units.h"
#include "jobs/liveness.h"
#include "seal/tokens.h"
#include "wire/link.h"

namespace ulc::jobs {

inline constexpr std::size_t kLinkAnswersMax = 64;
inline constexpr std::size_t kCallsMax = 64;
inline constexpr std::size_t kLookupsMax = 64;

struct LinksConfig {
    Mac mac;
    std::uint32_t incarnation = 1;
    wire::NodeAttributes attributes;  ///< set_attributes() changes them
    seal::Seed seed;
    Nanos request_wait_min = kMillisecond;  ///< a REQUEST is repeated after this, doubling
    Nanos request_wait_max = 50 * kMillisecond;
    Nanos accept_wait = 5 * kMillisecond;  ///< until an ACCEPT is repeated unasked
    std::uint8_t accept_repeats = 2;       ///< so that an answer is at most thrice its question
    Nanos unconfirmed_life = 4 * kSecond;
    Nanos unlink_wait_min = 5 * kMillisecond;
    Nanos unlink_wait_max = 100 * kMillisecond;
    std::uint8_t unlinks_max = 20;
    std::uint8_t unlinks_of_closed = 4;  ///< the same, if the endpoint has ended
    std::uint32_t answers_per_second = 1000;
    std::uint32_t lookups_per_second = 1000;  ///< WHERE, of all endpoints
};

enum class LinkEventKind : std::uint8_t {
    kOpened,     ///< the slot has a peer: its streams may begin
    kConfirmed,  ///< the peer is there; once, after kOpened
    kFailed,     ///< a call failed: error. The slot was never opened, and is vacant
    kDropped,    ///< an opened slot was not confirmed; release() it
    kPeerLeft,   ///< after kConfirmed; release() the slot
    kPeerDied,
    kUnlinked,  ///< the link that unlink() ended is over; release() the slot
    /// find() with that cookie became a call of that slot; or it failed: error, no slot
    kCalled,
};

struct LinkEvent {
    LinkEventKind kind{};
    Handle endpoint = 0;
    Rank slot = 0;
    Err error = Err::kOk;
    std::uint32_t cookie = 0;  ///< kCalled
    void fields(state::Archive& archive);
};

/// One end of a link, as its engine keeps it.
struct LinkEnd {
    enum class State : std::uint8_t {
        kVacant,
        kQueued,
        kCalling,
        kAnswered,
        kUp,
        kLeaving,
        kGone,
        kFree
    };
    State state = State::kVacant;
    bool due : 1 = false;  ///< in the queue of those that speak
    bool watched : 1 = false;
    bool waits : 1 = false;  ///< in the list of those with a time
    bool says_request : 1 = false;
    bool says_accept : 1 = false;
    bool says_confirm : 1 = false;
    bool says_unlink : 1 = false;
    wire::LeaveReason reason{};
    std::uint8_t left = 0;              ///< repetitions
    Rank self = kNoRank;                ///< the peer's slot for this endpoint
    std::uint16_t mtu = wire::kMtuMin;  ///< MTU of the peer's node
    Mac mac;
    Handle peer = 0;
    std::uint32_t incarnation = 0;
    Seq in;   ///< first number of what the peer sends
    Seq out;  ///< first number of what is sent to it
    wire::LinkId ours = 0;
    wire::LinkId theirs = 0;
    wire::LinkKey key;  ///< the peer's, of one that was called
    Nanos at = kNever;
    Nanos wait = 0;
    Nanos deadline = kNever;

    [[nodiscard]] bool speaks() const noexcept {
        return says_request || says_accept || says_confirm || says_unlink;
    }
    void say_nothing() noexcept { says_request = says_accept = says_confirm = says_unlink = false; }
    /// A frame about this link may come, and the link counts as that of its peer.
    [[nodiscard]] bool alive() const noexcept {
        return state != State::kVacant && state != State::kGone && state != State::kFree;
    }
    void fields(state::Archive& archive);
};

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
        return published_.contains(wire::lookup_of(key));
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
    [[nodiscard]] bool has_links(const Mac& mac) const { return nodes_.contains(mac); }
    /// Writes a body, at most wire::kLinkOctetsMax; 0: none due.
    [[nodiscard]] std::size_t next_tx(std::byte* body, Mac& to);
    [[nodiscard]] bool has_tx() const noexcept {
        return !due_.empty() || !answers_.empty() || lookups_due_ > 0;
    }
    [[nodiscard]] Nanos next_timer() const noexcept { return timer_; }
    void on_timer(Nanos now);
    [[nodiscard]] bool poll_event(LinkEvent& out);
    [[nodiscard]] bool has_event() const noexcept { return !events_.empty(); }
    /// No peer is to be told anything.
    [[nodiscard]] bool drained() const noexcept { return closing_ == 0 && answers_.empty(); }
    void check_invariants() const;
    /// Returns how many ends all searches have visited, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    void fields(state::Archive& archive);

private:
    using State = LinkEnd::State;
    struct Ends {
        Handle handle = 0;
        wire::LinkKey key;
        std::string profile;
        bool closed = false;
        bool published = false;
        std::size_t calls = 0;   ///< in kCalling
        std::size_t queued = 0;  ///< in kQueued
        std::size_t used = 0;    ///< not vacant
        std::size_t next = 0;    ///< the first slot that is looked at
        std::vector<LinkEnd> slots;
        void fields(state::Archive& archive);
    };
    /// Names an end; stays valid when the endpoint is forgotten.
    struct Ref {
        Handle endpoint = 0;
        Rank slot = 0;
        friend bool operator==(const Ref&, const Ref&) = default;
        void fields(state::Archive& archive);
    };
    /// A link to an endpoint of a node. A node's are in the order of peer, endpoint, beginning.
    struct NodeLink {
        Handle peer = 0;
        Ref ref;
    };
    using NodeLinks = std::vector<NodeLink>;
    static std::pair<Handle, Handle> place_of(const NodeLink& one) noexcept {
        return {one.peer, one.ref.endpoint};
    }
    struct Answer {
        Mac to;
        wire::LinkBody body;
        void fields(state::Archive& archive);
    };

    /// A call of an endpoint of which the place is not known yet.
    struct Lookup {
        Handle endpoint = 0;
        std::uint32_t cookie = 0;
        wire::LinkKey key;    ///< key of the endpoint that is looked for
        wire::LinkId id = 0;  ///< HERE repeats it
        bool due = false;     ///< WHERE is to be sent
        Nanos at = kNever;
        Nanos wait = 0;
        Nanos deadline = kNever;
        void fields(state::Archive& archive);
    };

    [[nodiscard]] Ends* ends_of(Handle endpoint) const noexcept;
    [[nodiscard]] LinkEnd* end_of(const Ref& ref) const noexcept;
    [[nodiscard]] std::size_t compose(GrowingRing<Ref>& due, std::byte* body, Mac& to);
    [[nodiscard]] Result<Rank> take_slot(Ends& ends, const Mac& mac, Handle peer,
                                         std::uint32_t incarnation);
    /// Returns the link of an endpoint here to that endpoint there; slot kNoRank: none.
    [[nodiscard]] Ref find(const Ends& ends, const Mac& mac, Handle peer) const noexcept;
    /// Returns the first link to that endpoint there of `endpoint`, or of one after it.
    [[nodiscard]] NodeLinks::const_iterator first_of(const NodeLinks& links, Handle peer,
                                                     Handle endpoint) const noexcept;
    void list(const Ref& ref);
    void unlist(const Ref& ref);
    [[nodiscard]] Result<Rank> queue_call(Ends& ends, const wire::LinkAddress& address,
                                          Nanos deadline);
    void start_calls(Ends& ends, Nanos now);
    [[nodiscard]] bool watch(LinkEnd& end, Nanos now);
    void unwatch(LinkEnd& end);
    /// Takes the end off its node: it is over for the peer.
    void detach(Ends& ends, Rank slot);
    void vacate(Ends& ends, Rank slot);
    void finish(Ends& ends, Rank slot, LinkEventKind how);
    void fail(Ends& ends, Rank slot, Err error, Nanos now);
    void end_by(Ends& ends, Rank slot, wire::LeaveReason reason, Nanos now);
    void confirmed(Ends& ends, Rank slot, Nanos now);
    void leave(Ends& ends, Rank slot, wire::LeaveReason reason, std::uint8_t repeats, Nanos now);
    void forget_if_over(Handle endpoint);

    void on_request(const wire::LinkView& view, const Mac& source, Nanos now);
    void on_accept(const wire::LinkView& view, const Mac& source, Ends& ends, const Ref& ref,
                   Nanos now);
    void on_confirm(const wire::LinkView& view, const Mac& source, Ends& ends, const Ref& ref,
                    Nanos now);
    void on_unlink(const wire::LinkView& view, Ends& ends, const Ref& ref, Nanos now);
    void on_unlinked(const wire::LinkView& view, Ends& ends, const Ref& ref, Nanos now);
    void on_hint(const wire::LinkView& view, const Mac& source, Nanos now);
    void take(const wire::LinkView& view, const Mac& source, Nanos now);

    void ask(Lookup& lookup, Nanos now);
    void look_again(Nanos now);
    void end_lookup(std::size_t at, Result<wire::LinkAddress> found, Nanos now);
    void withdraw(Ends& ends);
    [[nodiscard]] Ends* published_as(wire::LinkId name) const noexcept;
    void on_where(const wire::LinkView& view, const Mac& source, Nanos now);
    void on_here(const wire::LinkView& view, const Mac& source, Nanos now);
    [[nodiscard]] std::size_t put_where(std::byte* body, Mac& to);

    void speak(const Ref& ref, LinkEnd& end);
    void set_time(const Ref& ref, LinkEnd& end, Nanos at);
    void tick(Ends& ends, Rank slot, Nanos now);
    void queue_answer(const Answer& answer);
    void answer(const wire::LinkView& view, const Mac& to, wire::LinkKind kind, Err reason,
                Nanos now);
    [[nodiscard]] wire::LinkBody body_of(const Ends& ends, Rank slot, wire::LinkKind kind) const;
    [[nodiscard]] wire::LinkId new_id() noexcept;
    void push(LinkEventKind kind, Handle endpoint, Rank slot, Err error = Err::kOk);
    /// Takes what endpoints of this engine say to each other, which needs no wire.
    void settle_local(Nanos now);
    void recompute_timer() noexcept;
    [[nodiscard]] bool ends_are_listed() const;

    LinksConfig config_;
    Liveness& liveness_;
    Counters& counters_;
    seal::Tokens tokens_;
    std::unordered_map<Handle, std::unique_ptr<Ends>> endpoints_;
    std::map<Mac, NodeLinks> nodes_;  ///< ends that are alive, by the peer's node
    mutable std::uint64_t steps_ = 0;
    GrowingRing<Ref> due_;                       ///< ends that speak, in turn
    GrowingRing<Ref> local_due_;                 ///< the same, to peers of this engine
    GrowingRing<wire::LinkBody> local_answers_;  ///< to them
    std::vector<Ref> waiting_;
    GrowingRing<LinkEvent> events_;
    std::vector<Answer> answers_;  ///< at most kLinkAnswersMax
    RateLimit answers_limit_;
    std::unordered_map<wire::LinkId, Handle> published_;  ///< by lookup_of() their keys
    std::vector<Lookup> lookups_;
    std::size_t lookups_due_ = 0;
    RateLimit lookups_limit_;
    std::size_t closing_ = 0;  ///< endpoints that are closed and not forgotten
    std::uint64_t turn_ = 0;   ///< number of question() calls
    Nanos timer_ = kNever;
};

}  // namespace ulc::jobs
