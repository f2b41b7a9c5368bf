// SPDX-License-Identifier: BSD-3-Clause
// The records of jobs that an engine keeps: the private half of jobs/jobs.h, shared by its parts.
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

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bounded.h"
#include "jobs/job_index.h"
#include "jobs/jobs.h"
#include "seal/tokens.h"
#include "wire/job_key.h"

namespace ulc::jobs {

/// Nodes that said that they have rank 0, of one forming job; a later one replaces the earliest.
inline constexpr std::size_t kRank0Max = 4;
/// Number of ended jobs whose keys are kept, so that a late COMMIT can be answered.
inline constexpr std::size_t kEndedJobsMax = 64;
/// Greatest number of REJECTs that answer one JOIN, so that little comes back for little.
inline constexpr std::size_t kRejectsPerJoin = 2;
/// Rounds in which a long frame is sent to engines that hold the roster, until it counts as lost.
inline constexpr std::uint8_t kPaddedRounds = 6;
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

    [[nodiscard]] LocalRank* local(Rank rank) noexcept;
    [[nodiscard]] LocalRank* local_endpoint(Handle endpoint) noexcept;
    [[nodiscard]] bool has_rank_0() noexcept { return local(0) != nullptr; }
    [[nodiscard]] bool heard_rank0(const Mac& mac) const noexcept;
    void note_rank0(const Mac& mac) noexcept;
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
    void fields(state::Archive& archive);
};

struct PendingReject {
    Mac to;
    JobId job = kNoJob;  ///< the frame carries its name and nonce
    wire::RejectBody body;
    bool introduced = false;  ///< its receiver knows its sender
    bool old = false;         ///< to an engine of protocol version 1
    void fields(state::Archive& archive);
};

/// The acknowledgement of a COMMIT for which no local rank waits.
struct CommitAnswer {
    Mac to;
    std::string name;
    wire::Nonce nonce;
    bool by_hand = false;
    std::uint32_t roster = 0;
    wire::JobKey key;
    void fields(state::Archive& archive);
};

/// Returns whether the frame is of the job: the same name, and one nonce of a launcher or none.
[[nodiscard]] bool same_key(const JobRecord& record, const wire::JobBodyView& view);

struct Jobs::Impl {
    Impl(const JobsConfig& config_in, Counters& counters_in, Liveness& liveness_in,
         const NodeAddresses& addresses_in, Links& links_in);

    JobsConfig config;
    wire::NodeAttributes attributes;  ///< attributes of this node
    Counters& counters;
    Liveness& liveness;
    const NodeAddresses& addresses;
    Links& links;
    seal::Tokens tokens;
    std::vector<std::unique_ptr<JobRecord>> records;
    JobIndex index;               ///< finds `records` and `ended_jobs`
    Nanos hurry_full_at = 0;      ///< when all early repeats of JOINs are there again
    std::deque<JobEvent> events;  ///< kFormed and kFailed: at most one each a local endpoint
    FixedVector<PendingReject, kAnswersMax> rejects;
    FixedVector<CommitAnswer, kAnswersMax> commit_answers;
    RateLimit commit_limit;
    std::vector<EndedJob> ended_jobs;  ///< a ring
    std::size_t ended_next = 0;
    JobId last_id = kNoJob;
    std::uint32_t last_roster;  ///< number of this engine's last roster; later ones are higher
    Nanos timer = kNever;
    std::size_t rejects_left = 0;  ///< to answer the JOIN that is being judged
    bool tx_hint = false;
    bool gone_hint = false;     ///< with_gone() has one
    std::uint64_t visited = 0;  ///< records that were visited for no frame about them

    // --- records (jobs.cc)
    [[nodiscard]] JobRecord* find(JobId id) noexcept;
    /// Returns whether an answer for the job is to be sent, or awaited.
    [[nodiscard]] bool answers(const JobRecord& record) const;
    /// Returns whether the job has ended, and its record only repeats BYEs that were sent.
    [[nodiscard]] bool only_repeats_byes(const JobRecord& record) const;
    /// Returns the records that may be of the frame's job: compare by same_key().
    [[nodiscard]] std::span<JobRecord* const> records_of(
        const wire::JobBodyView& view) const noexcept {
        return index.find(view.by_hand, view.name, view.nonce);
    }
    void forget(const JobRecord& record);
    /// Removes the records for which `which` is true.
    template <typename Which>
    void remove_records(const Which& which) {
        for (const auto& record : records)
            if (which(record)) index.remove(*record);
        std::erase_if(records, which);
    }
    void remove_local(JobRecord& record, std::size_t at);
    [[nodiscard]] bool finished(const JobRecord& record, Nanos now) const;
    void forget_finished(Nanos now);
    void consider_times(const JobRecord& record) noexcept;
    void recompute_timer() noexcept;
    /// Looks, after a frame about these records, which of their work is due or over.
    void settle(std::span<JobRecord* const> touched, Nanos now);
    void changed() noexcept;  ///< after every entry: something may be due
    [[nodiscard]] JobRecord* with_gone() const noexcept;
    void on_timer(Nanos now);
    void on_job_frame(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// Returns the key of the launcher's job of that id; nullptr: none here.
    [[nodiscard]] const wire::JobKey* key_of(const wire::Nonce& id) const noexcept;
    /// True: the frame is of a job that is known here and, if that has a key, was made with it.
    [[nodiscard]] bool authentic(const wire::JobBodyView& view, const Mac& source);
    void remember_key(const JobRecord& record);
    void on_bye(const wire::JobBodyView& view, const Mac& source, Nanos now);
    void leave(JobRecord& record, Handle endpoint, wire::LeaveReason reason, Nanos now);
    void peer_gone(JobRecord& record, Rank rank, JobEventKind kind, Nanos now);
    [[nodiscard]] Nanos jitter(const JobRecord& record) noexcept;

    // --- what liveness finds out (verdicts.cc)
    void on_verdict(const NodeVerdict& verdict, Nanos now);
    void on_hint(const NodeVerdict& verdict, Nanos now);
    [[nodiscard]] std::vector<JobRecord*> records_of(const NodeVerdict& verdict);
    void end_ranks(JobRecord& record, const NodeVerdict& verdict, Nanos now);
    /// The endpoint here, alone, ends its relation with the ranks of that node.
    void excluded(JobRecord& record, Handle endpoint, const Mac& by);
    void exclude(JobRecord& record, Rank rank, Nanos now);
    void remind_excluded(const NodeVerdict& asked, Nanos now);
    void answer_question(const NodeVerdict& asked, Nanos now);
    /// Gives a PING without a question one about a pair of endpoints of the two nodes, in turn.
    void choose_question(const Mac& mac, wire::NodeBody& ping);
    void node_died(JobRecord& record, const Mac& mac, Rank counted, Nanos now);

    // --- claims and conflicts (forming.cc)
    [[nodiscard]] Result<JobId> join(const JoinRequest& request, Nanos now);
    [[nodiscard]] bool has_record_for(std::uint32_t user);
    [[nodiscard]] Err admit(const JoinRequest& request, JobRecord*& forming);
    void become_publisher(JobRecord& record, Handle rank0);
    void note_rank0(JobRecord& record, const Mac& source, Nanos now);
    void stop_publishing(JobRecord& record);
    void on_join(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// A claim that an older job of that key explains (its roster was lost, or it was rejected).
    /// True: dealt with.
    [[nodiscard]] bool known_claim(JobRecord& record, const wire::JobBodyView& view,
                                   const wire::JoinClaim& claim, const Mac& source, Nanos now);
    [[nodiscard]] bool claim_of_formed(JobRecord& record, const wire::JobBodyView& view,
                                       const wire::JoinClaim& claim, const Mac& source);
    [[nodiscard]] bool claim_of_failed(JobRecord& record, const wire::JoinClaim& claim,
                                       const Mac& source, Nanos now);
    void new_claim(JobRecord& record, const wire::JobBodyView& view, const wire::JoinClaim& claim,
                   const Mac& source, Nanos now);
    void reject_claim(const JobRecord& record, const Mac& to, const wire::JoinClaim& claim,
                      Err error, const Mac& first);
    void on_reject(const wire::JobBodyView& view, const Mac& source, Nanos now);
    void on_introduction(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// Takes a JOB frame that has our MAC address and is of another engine: a job that forms fails.
    void on_twin(const wire::JobBodyView& view, Nanos now);  // twins.cc
    /// Refuses a JOIN of protocol version 1 with the nonce of a job of ours, and fails the job.
    void refuse_old(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// Every local claim of the record fails; a publisher keeps the record as a tombstone.
    /// Two engines have one MAC address: what the record knows of them.
    [[nodiscard]] std::string twins_text(const JobRecord& record, const Mac& mac) const;
    void fail_job(JobRecord& record, Err error, Rank rank, const Mac& first, const Mac& second,
                  Nanos now);
    /// Sends a REJECT to every claimant, once; one that misses it receives it when it claims again.
    void announce_failure(const JobRecord& record);
    void fail_local(JobRecord& record, const LocalRank& local, Err error, const Mac& first,
                    const Mac& second, const std::string& why);
    void fail_with(JobRecord& record, Err error, const std::string& why, const Mac& first,
                   const Mac& second);
    void check_deadlines(JobRecord& record, Nanos now);

    // --- rosters (roster.cc)
    void try_complete(JobRecord& record, Nanos now);
    /// True if claims of one MAC address name two incarnations: waits to see which of them live,
    /// fails the job if both do, and drops claims that are not repeated.
    [[nodiscard]] bool has_twins(JobRecord& record, Nanos now);  // twins.cc
    [[nodiscard]] GroupHandle choose_world(const JobRecord& record) noexcept;
    [[nodiscard]] bool world_in_use(GroupHandle world) const noexcept;
    void watch_publisher(JobRecord& record, Nanos now);
    void drop_assembly(JobRecord& record) noexcept;
    /// The publisher of a roster that is held here sends no COMMIT any more: fails a launcher's
    /// job, which has no other rank 0. One by hand awaits another.
    void publisher_gone(JobRecord& record, Err error);
    /// The roster stands in `record`: local ranks are formed.
    void form(JobRecord& record, Nanos now);
    void publish_round(JobRecord& record, Nanos now);
    /// Collects again after a claim has changed. Engines that hold the old roster replace it by the
    /// next one.
    void retract_roster(JobRecord& record);
    /// Claims of an engine that neither repeats them nor acknowledges.
    void drop_claims(JobRecord& record, const Mac& mac, Handle handle);
    // roster_parts.cc
    /// Sets the values of the job that its nodes' attributes decide.
    void settle_attributes(JobRecord& record);
    /// Cuts the roster into parts that each node of the job can take. False: too many.
    [[nodiscard]] bool cut_parts(JobRecord& record);
    /// Attributes of this node in that job.
    [[nodiscard]] wire::NodeAttributes attributes_in(const JobRecord& record) const noexcept;
    /// Attributes of the node of that rank of a job that is published here.
    [[nodiscard]] wire::AttributeOctets attributes_of(const JobRecord& record, Rank rank) const;
    /// Makes a roster of shorter frames, since long ones do not reach all engines.
    void shorten(JobRecord& record, Nanos now);
    void start_rounds(JobRecord& record, PublisherStage stage, std::uint16_t parts, Nanos now);
    void commit(JobRecord& record, Nanos now);
    void acknowledged(JobRecord& record, const Mac& engine, Nanos now);
    void finish_roster(JobRecord& record, Nanos now);
    [[nodiscard]] std::vector<Mac> bonded_of(const JobRecord& record) const;
    [[nodiscard]] bool waits_for_proofs(std::span<const Mac> bonded, Nanos until, Nanos now) const;
    void on_roster(const wire::JobBodyView& view, const Mac& source, Nanos now);
    [[nodiscard]] bool take_part(JobRecord& record, const wire::JobBodyView& view,
                                 const Mac& source, Nanos now);
    void on_commit(const wire::JobBodyView& view, const Mac& source, Nanos now);
    /// Somebody publishes a roster with a rank of ours that another publisher has already.
    void reject_publisher(const JobRecord& record, const Mac& publisher, const Mac& other);
    void on_roster_ack(const wire::JobBodyView& view, const Mac& source, Nanos now);

    // --- frames out (job_frames.cc): each writes a body at `body` and returns its octets; 0: none
    // due
    [[nodiscard]] std::size_t next_tx(std::byte* frame, Nanos now);
    /// Completes a NODE frame whose body stands at kHeadOctets. Returns its octets.
    [[nodiscard]] std::size_t complete_node(std::byte* frame, const Mac& to,
                                            std::size_t octets) const noexcept;
    [[nodiscard]] std::size_t put_reject(std::byte* body, Mac& to);
    [[nodiscard]] std::size_t put_introduction(const JobRecord& record, std::byte* body) const;
    [[nodiscard]] std::size_t put_claims(const JobRecord& record, std::byte* body,
                                         std::span<const wire::JoinClaim> claims,
                                         std::uint8_t flags,
                                         std::span<const std::byte> its_attributes) const;
    /// A claim in the layout of version 2, so that an older engine refuses it in words.
    [[nodiscard]] std::size_t put_join_old(JobRecord& record, std::byte* body, Mac& to) const;
    /// Appends the tag of a job with a key; returns all octets.
    [[nodiscard]] std::size_t tagged(bool by_hand, const wire::JobKey& key, std::byte* body,
                                     std::size_t octets) const noexcept;
    [[nodiscard]] std::size_t put_commit_answer(std::byte* body, Mac& to);
    /// pads: up to the MTU of the job.
    [[nodiscard]] std::size_t put_roster(const JobRecord& record, std::size_t part, bool pads,
                                         std::byte* body);
    /// Octets that make a JOB frame of that record as long as a packet may be.
    [[nodiscard]] std::uint16_t padding_of(const JobRecord& record, std::uint16_t mtu,
                                           std::size_t octets) const noexcept;
    [[nodiscard]] std::size_t put_bye(JobRecord& record, std::byte* body, Nanos now);
    void make_join_due(JobRecord& record, Nanos now);
    [[nodiscard]] bool may_hurry(Nanos now) noexcept;
    [[nodiscard]] std::size_t put_join(JobRecord& record, std::byte* body, Mac& to, Nanos now);
    [[nodiscard]] std::size_t put_ack(JobRecord& record, std::byte* body, Mac& to);
    [[nodiscard]] std::size_t put_part(JobRecord& record, std::byte* body, Mac& to, Nanos now);
    void fields(state::Archive& archive);
};

}  // namespace ulc::jobs
