// SPDX-License-Identifier: BSD-3-Clause
// The records of jobs that an engine keeps. JobTable owns them; the other parts of jobs/jobs.h
// change them as a job forms and ends.
//
//          every engine holds the roster (publisher), COMMIT (others)
//   kForming ────────────────────────────────────────────────────▶ kFormed
//      │ conflict decided here (publisher)                            │ last local rank left
//      ▼                                                              ▼
//   kFailed: a tombstone that still rejects its claimants          kEnding
//      │ failed_life                                                  │ BYEs sent,
//      ▼                                                              ▼ COMMIT acknowledged
//   forgotten                                                      forgotten
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bounded.h"
#include "jobs/jobs.h"
#include "wire/job_key.h"

namespace ulc::jobs {

/// Nodes that said that they have rank 0, of one forming job; a later one replaces the earliest.
inline constexpr std::size_t kRank0Max = 4;
/// A job waits at most that long for the proofs of its nodes' links, and looks after each step.
inline constexpr Nanos kProofsMax = 50 * kMillisecond;
inline constexpr Nanos kProofStep = kMillisecond;

enum class JobPhase : std::uint8_t { kForming, kFormed, kEnding, kFailed };

/// A rank claimed by an endpoint of this engine.
struct LocalRank {
    Rank rank = 0;
    Handle endpoint = 0;
    Nanos deadline = kNever;
    void fields(state::Archive& archive);
};

/// A rank claimed by another engine, as the publisher knows it. handle 0: not claimed yet.
struct RemoteClaim {
    Mac mac;
    Handle handle = 0;
    std::uint32_t incarnation = 0;
    Nanos heard = 0;
    std::vector<std::uint8_t> attributes;  ///< as JOIN had them: ROSTER repeats them
    void fields(state::Archive& archive);
};

struct RosterEngine {
    Mac mac;
    bool acknowledged = false;
    bool reported = false;  ///< sent an incomplete ROSTER_ACK since the last round
    bool holds = false;     ///< holds all parts; whether long frames pass is not known yet
    void fields(state::Archive& archive);
};

/// The step that the publisher repeats in rounds until every engine has acknowledged it.
enum class PublisherStage : std::uint8_t { kCollecting, kRoster, kCommit };

/// The publisher, at the engine of rank 0: collects claims, sends the roster, then notifies all
/// engines that all have it.
struct Publisher {
    PublisherStage stage = PublisherStage::kCollecting;
    std::vector<RemoteClaim> claims;  ///< by rank; emptied when formed; kFailed: whom to tell
    std::uint32_t claimed = 0;        ///< how many of them are set
    Handle rank0 = 0;                 ///< endpoint of rank 0, with which REJECT is introduced
    std::uint8_t version_min = 0;     ///< common to all claims so far
    std::uint8_t version_max = 0xff;
    Nanos twins_since = kNever;             ///< claims of one MAC address name two incarnations
    FixedVector<RemoteClaim, 16> culprits;  ///< kFailed: claims that were too many

    std::uint32_t roster = 0;
    std::uint32_t salt = 0;        ///< salt of the world handle
    std::uint16_t parts = 0;       ///< kCommit: 1
    std::vector<Rank> part_first;  ///< kRoster: first rank of each part, and the size
    std::vector<bool> leads;       ///< kRoster, by rank: the least one of its node
    /// kRoster: one more part is sent, the first one with padding up to the job's MTU: an engine
    /// acknowledges once a frame of that length has passed in both directions.
    bool pads = false;
    std::uint8_t padded_rounds = 0;     ///< since each engine held all parts
    std::vector<RosterEngine> engines;  ///< sorted by MAC; without this one
    std::size_t waiting = 0;            ///< engines that have not acknowledged
    std::vector<bool> due;              ///< parts to send in this round
    std::size_t due_count = 0;
    std::vector<bool> missing;  ///< parts that incomplete acknowledgements lack
    Nanos round_at = kNever;
    Nanos proofs_until = 0;  ///< kRoster: COMMIT waits for proofs of links until then
    Nanos wait = 0;

    /// Returns the engine of that node; nullptr: it has no rank, or is this one.
    [[nodiscard]] RosterEngine* engine_of(const Mac& mac) noexcept;
    /// Notes that an engine need not be awaited in this stage. Returns whether it is the last one.
    bool acknowledge(const Mac& mac) noexcept;
    void check_invariants() const;
    void fields(state::Archive& archive);
};

/// A roster being put together, then held, elsewhere than at the publisher; after forming: what to
/// acknowledge.
struct Assembly {
    Mac publisher;
    wire::Nonce nonce;
    std::uint32_t roster = 0;
    std::uint16_t parts = 0;
    std::uint32_t filled = 0;
    Nanos heard = 0;  ///< from its publisher, about this roster
    bool complete = false;
    bool refused = false;  ///< its world handle is in use here
    bool watched = false;  ///< the node of its publisher is watched for it
    GroupHandle world = 0;
    std::uint32_t first_seq = 0;
    std::uint8_t version = 0;
    Medium medium = Medium::kSwitch;
    std::uint16_t mtu = wire::kMtuMin;
    bool has_bonds = false;     ///< a node has several links
    Nanos patience = 0;         ///< longest of the nodes'
    std::uint16_t padding = 0;  ///< padding of an acknowledgement; 0: no padded part came
    bool ours = false;  ///< a part named one of our claims: no other roster may replace this one
    std::vector<urtp::Peer>
        peers;                ///< by rank; handle 0: not yet. Moved to the record when complete
    std::vector<Mac> bonded;  ///< nodes that say they have several links
    Nanos proofs_until = 0;   ///< complete: ROSTER_ACK waits for proofs of these until then
    std::vector<bool> held;   ///< parts
    Nanos ack_at = kNever;
    bool ack_due = false;
    bool padded_ack_due = false;
    void fields(state::Archive& archive);
};

struct Bye {
    Rank rank = 0;
    Handle handle = 0;
    wire::LeaveReason reason{};
    std::uint8_t left = 0;  ///< repetitions
    Nanos at = 0;
    Nanos wait = 0;
    void fields(state::Archive& archive);
};

/// The endpoint here is excluded by the node.
struct Exclusion {
    Handle endpoint = 0;
    Mac by;
    bool operator==(const Exclusion&) const = default;
    void fields(state::Archive& archive);
};

struct JobRecord {
    JobId id = kNoJob;
    std::uint32_t user = 0;  ///< begun by this user, here
    std::string name;
    wire::Nonce nonce;  ///< by hand: zeros until known; of a launcher: the job's id
    bool by_hand = false;
    wire::Nonce secret;  ///< a launcher's nonce, which is never sent
    wire::JobKey key;    ///< made of `secret`
    std::uint16_t size = 0;
    std::string profile;
    Nanos patience = 0;  ///< with a silent node: the longest of its ranks here, later of all
    JobPhase phase = JobPhase::kForming;
    std::vector<LocalRank> locals;  ///< those that have neither left nor failed
    std::vector<Bye> byes;

    // forming
    std::unique_ptr<Publisher> publisher;
    std::unique_ptr<Assembly> assembly;
    Nanos begins_at = 0;  ///< no claim is sent before
    Nanos join_at = kNever;
    Nanos join_wait = 0;
    bool join_due = false;
    std::size_t join_cursor = 0;
    /// The node of rank 0, if it has an older version and awaits a claim that it can read.
    Mac join_old;
    Mac rank0;                 ///< latest node heard to have it; zeros: none
    bool rank0_ended = false;  ///< the one at `rank0`, after its roster came
    FixedVector<Mac, kRank0Max> rank0_heard;
    std::size_t rank0_next = 0;  ///< the one to be replaced
    std::uint32_t twin = 0;  ///< incarnation of another engine that has this node's MAC; 0: none
    Nanos twin_heard = 0;    ///< when it was first heard
    std::uint8_t early_joins = 0;  ///< claims repeated at once because a rank 0 was heard

    // formed
    std::vector<urtp::Peer> roster;
    std::vector<Rank> by_mac;            ///< ranks of other nodes, sorted by MAC, then rank
    std::vector<bool> gone;              ///< by rank
    std::vector<Rank> excluded;          ///< gone because they held up a group
    std::vector<Exclusion> excluded_by;  ///< ranks here, each at one node
    std::vector<std::pair<Rank, JobEventKind>> gone_events;
    std::size_t gone_reported = 0;
    GroupHandle world = 0;
    Seq first_seq;
    std::uint8_t version = 0;
    Medium medium = Medium::kSwitch;    ///< medium of the local rank 0, else of the roster
    std::uint16_t mtu = wire::kMtuMin;  ///< least one of its nodes
    bool has_bonds = false;             ///< a node has several links

    // failed
    Err error = Err::kOk;
    Rank conflict_rank = 0;
    Mac first;
    Mac second;
    Nanos failed_at = 0;

    // --- forming
    [[nodiscard]] LocalRank* local(Rank rank) noexcept;
    [[nodiscard]] LocalRank* local_endpoint(Handle endpoint) noexcept;
    [[nodiscard]] bool has_rank_0() noexcept { return local(0) != nullptr; }
    [[nodiscard]] bool heard_rank0(const Mac& mac) const noexcept;
    void note_rank0(const Mac& mac) noexcept;
    /// Collects again after a claim has changed. Engines that hold the old roster replace it by the
    /// next one.
    void retract_roster();
    /// Rank 0 ended before the job formed. The next rank 0 hears the claims again.
    void stop_publishing();
    /// Drops claims of an engine that neither repeats them nor acknowledges. handle 0: all of them.
    void drop_claims(const Mac& mac, Handle handle);
    /// Returns whether a publisher awaits an answer, or is to get one.
    [[nodiscard]] bool awaits_answer() const noexcept;

    // --- formed
    /// Begins the life of a job whose roster stands in `roster`, with own: the MAC of this node.
    void begin(const Mac& own);
    /// True if its local ranks have not heard of each end.
    [[nodiscard]] bool has_unreported() const noexcept {
        return !locals.empty() && phase == JobPhase::kFormed && gone_reported != gone_events.size();
    }
    /// True if that node may say that this forming job has failed.
    [[nodiscard]] bool may_reject(const Mac& mac) const noexcept;
    /// Ranks of a formed job at that node, which is not this one.
    [[nodiscard]] std::span<const Rank> ranks_at(const Mac& mac) const noexcept;
    /// The reason with which EXPELLED names a rank that is gone.
    [[nodiscard]] wire::LeaveReason expelled_as(Rank rank) const noexcept;
    /// The endpoint here knows that it is excluded by that node.
    [[nodiscard]] bool is_excluded(Handle endpoint, const Mac& by) const noexcept;
    /// Its living rank there with that handle, or any for handle 0; kNoRank: none.
    [[nodiscard]] Rank living_at(const Mac& mac, Handle handle) const noexcept;

    /// Returns the earliest time at which the record has work; kNever: none. failed_life: for how
    /// long a failed job is kept.
    [[nodiscard]] Nanos next_time(Nanos failed_life) const noexcept;
    void check_invariants() const;
    void fields(state::Archive& archive);
};

/// Returns whether the frame is of the job: the same name, and one nonce of a launcher or none.
[[nodiscard]] bool same_key(const JobRecord& record, const wire::JobBodyView& view);

}  // namespace ulc::jobs
