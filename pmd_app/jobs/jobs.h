// SPDX-License-Identifier: BSD-3-Clause
// Jobs of one engine: forming, leaving, and the liveness of the nodes they span (PROTOCOL §7,
// §8; DECISIONS D12 and D13). Sans-IO: JOB and NODE frames and the time go in; frames and
// events are pulled.
//
//   local endpoint:  join() ─▶ … ─▶ event kFormed | kFailed;   leave() once, formed or not
//   each round:      on_frame() for every JOB and NODE frame, heard() for every other frame;
//                    then, if next_timer() ≤ now, on_timer(); then poll_event() until false;
//                    then next_tx() while the port accepts frames
//
// The engine of rank 0 is the job's *publisher*: it collects claims (JOIN), decides conflicts,
// sends the roster until every engine holds it, then COMMIT: no rank forms before all can. There is
// no other arbiter. Several local endpoints may be ranks of one job; their claims meet here without
// the wire. jobs_impl.h names the parts; dispatch.cc takes frames that came.
//
// Limits: JobsConfig says jobs_max, ranks_max, nodes_max; queues of answers are kAnswersMax long
// and drop the newest, because an asker asks again. Memory of a job: about 120 octets a rank
// of another node, and 100 more at its publisher while it forms. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/counters.h"
#include "base/error.h"
#include "base/medium.h"
#include "base/units.h"
#include "jobs/links.h"
#include "jobs/liveness.h"
#include "jobs/node_addresses.h"
#include "seal/tokens.h"
#include "urtp/transport.h"
#include "wire/ids.h"
#include "wire/job.h"
#include "wire/parse.h"

namespace ulc::jobs {

/// Names a job record of this engine; never reused within an engine life.
using JobId = std::uint32_t;
inline constexpr JobId kNoJob = 0;

struct JobsConfig {
    Mac mac;
    std::uint32_t incarnation = 1;  ///< random at engine start, not 0
    std::uint16_t mtu = 1500;
    /// Frames of this length pass every path. That of longer ones is tried while a job forms.
    std::uint16_t mtu_sure = 1500;
    std::uint16_t ether_type = wire::kEtherTypeDefault;
    bool crc = false;  ///< a CRC32C behind every frame
    seal::Seed seed;   ///< for nonces, tokens, ids, first numbers, world handles, tables
    std::uint8_t version_min = wire::kProtocolVersion;
    std::uint8_t version_max = wire::kProtocolVersion;

    Nanos join_wait_min = 200 * kMicrosecond;  ///< a claim is repeated after this, doubling
    Nanos join_wait_max = 50 * kMillisecond;
    Nanos roster_wait_min =
        1 * kMillisecond;  ///< unacknowledged roster parts are repeated after this, doubling
    Nanos roster_wait_max = 50 * kMillisecond;
    Nanos answer_slot =
        2 * kMicrosecond;             ///< answers to a broadcast are spread over job size × this
    Nanos claim_life = 1 * kSecond;   ///< a claim not repeated for so long may be taken over
    Nanos failed_life = 2 * kSecond;  ///< a failed job goes on rejecting its claimants for so long
    Nanos bye_wait = 5 * kMillisecond;  ///< between repeated BYEs, doubling
    std::uint8_t byes = 4;
    bool first_seq_fixed = false;  ///< tests of wrap-around choose the first number
    std::uint32_t first_seq = 0;

    std::uint16_t jobs_max = 64;     ///< job records, failed and ending ones included
    std::uint32_t user_share = 100;  ///< percent of the records that one user may hold (share.h)
    std::uint16_t ranks_max = 8192;  ///< ranks of one job
    LivenessConfig liveness;
    LinksConfig links;  ///< mac, incarnation and seed are set from this

    /// True if this engine has a group of that handle (of any job). May be null: none.
    bool (*group_in_use)(void* context, GroupHandle handle) = nullptr;
    void* group_context = nullptr;
};

struct JoinRequest {
    std::string_view name;  ///< 1 … 64 octets; copied
    wire::Nonce nonce;      ///< zeros: started by hand, rank 0's engine makes one
    Rank rank = 0;
    std::uint16_t size = 1;
    Handle endpoint = 0;      ///< the handle under which this endpoint receives
    std::uint32_t user = 0;   ///< on whose account a job is that this begins
    Nanos deadline = kNever;  ///< kFailed with kTimeout at this time
    Nanos patience = 0;       ///< with the nodes of its peers, if longer than liveness's node_dead
    Nanos begins_at = 0;      ///< a job that this begins sends nothing of itself before
    std::string_view profile =
        urtp::kDefaultProfile;        ///< profile of the transport (urtp/policy.h); copied
    Medium medium = Medium::kSwitch;  ///< medium of the job, if rank 0 says so
};

enum class JobEventKind : std::uint8_t {
    kFormed,  ///< endpoint: this local endpoint's job has formed; details by Jobs::job()
    /// endpoint: not formed, and why; the endpoint is no longer known here (no leave() needed)
    kFailed,
    /// rank: left in order. Once per job, for every local member other than `rank` itself
    kPeerLeft,
    kPeerDied,      ///< rank: died, or its engine did
    kPeerExcluded,  ///< rank: held up a group of a rank here for too long; else as kPeerDied
    kExcluded,  ///< endpoint: is excluded by the node `first`, and alone of this job's ranks here
    /// text: long frames do not pass to or from the node `first`, so the job sends shorter ones. At
    /// the engine of rank 0, of no endpoint
    kShortened,
};

struct JobEvent {
    JobEventKind kind{};
    JobId job = kNoJob;
    Handle endpoint = 0;
    Rank rank = kNoRank;  ///< own rank (kFormed, kFailed) or the peer's
    Err error = Err::kOk;
    Mac first;  ///< kFailed by conflict: both claimants; kExcluded: the node
    Mac second;
    std::string text;  ///< kFailed, kShortened: for the user; names ranks and nodes
    void fields(state::Archive& archive);
};

/// A formed job. Spans are valid until the job ends (last local leave()).
struct JobView {
    std::string_view name;
    wire::Nonce nonce;                   ///< the job's id, if a launcher started it
    std::span<const urtp::Peer> roster;  ///< by rank; own engine's ranks included
    GroupHandle world = 0;
    Seq first_seq;
    std::uint8_t version = wire::kProtocolVersion;
    std::string_view profile;  ///< the profile that all ranks use
    Medium medium = Medium::kSwitch;
    std::uint16_t mtu = wire::kMtuMin;  ///< least MTU of the nodes: no packet of the job is longer
    bool has_bonds = false;             ///< a node of the job has several links
    std::uint32_t user = 0;             ///< the user whose claim began the job here
    Nanos begins_at = 0;                ///< time from which that claim may send
};

class Jobs {
public:
    /// counters: outlives this.
    Jobs(const JobsConfig& config, Counters& counters);
    ~Jobs();
    Jobs(const Jobs&) = delete;
    Jobs& operator=(const Jobs&) = delete;

    // --- local endpoints
    /// Claims a rank. A job of size 1, or one whose ranks are all local, forms by the next
    /// poll_event(). Errors at once: kInvalid (name, rank, size, handle, profile), kLimit
    /// (ranks_max; jobs_max or the user's share of it), kRankTaken, kJobSize and kProfile (against
    /// endpoints of this engine), kTwoRosters (rank 0 of a job by hand whose rank 0 is here).
    [[nodiscard]] Result<JobId> join(const JoinRequest& request, Nanos now);
    /// The claim would belong to a job that forms here already, so join() would begin no job.
    [[nodiscard]] bool forming(const JoinRequest& request) const;
    /// The endpoint left (its data acknowledged or given up: the engine lingers before calling
    /// this) or died. Withdraws a claim that has not formed. Tells the peers, this engine's
    /// included. Unknown endpoints are ignored.
    void leave(JobId job, Handle endpoint, wire::LeaveReason reason, Nanos now);
    /// The formed job; false if unknown or not formed.
    [[nodiscard]] bool job(JobId job, JobView& out) const noexcept;

    /// Links of endpoints of no job. Whatever is called there may change next_look(), so that the
    /// next round looks.
    [[nodiscard]] Links& links() noexcept {
        next_look_ = 0;
        return links_;
    }
    [[nodiscard]] const Links& links() const noexcept { return links_; }

    // --- nodes with several links
    /// Takes this node's links, the first with its address (NodeAddresses::set_own).
    void set_links(std::span<const NodeAddress> links, Nanos now);
    /// The node takes and sends frames of that many bytes after the Ethernet header, at least
    /// wire::kMtuMin and at most JobsConfig::mtu, from now on. Jobs that have formed and links that
    /// are up keep theirs.
    void set_mtu(std::uint16_t mtu);
    /// Returns the speed of the slowest link of a node in Mb/s; 0: it has one link.
    [[nodiscard]] std::uint32_t slowest_link(const Mac& node) const noexcept {
        return addresses_.slowest_link(node);
    }
    /// Returns random bits that no other node knows, for the port's tables.
    [[nodiscard]] seal::Seed secret() const noexcept;
    /// Returns how many places of the tables of addresses all frames have looked at, for tests.
    [[nodiscard]] std::uint64_t address_steps() const noexcept { return addresses_.steps(); }
    /// The addresses of another node have changed. Call until false.
    [[nodiscard]] bool next_address_change(AddressChange& out) {
        return addresses_.has_change() && addresses_.next_change(out);
    }

    // --- frames
    /// A parsed frame of type kJob, kNode or kLink from another node. Malformed bodies are counted
    /// (drop_job, drop_link).
    void on_frame(const wire::FrameView& frame, Nanos now);
    /// Node of a MAC address of a formed roster, for heard(); kNoNode if none (own MAC, or not a
    /// peer). Look it up when a job forms and keep it: it stays valid while one of the engine's
    /// jobs has a live rank there, and is harmless later.
    [[nodiscard]] NodeIndex node_of(const Mac& mac) const noexcept { return liveness_.find(mac); }
    /// Any other frame came from that node. One store.
    void heard(NodeIndex node, Nanos now) noexcept { liveness_.heard(node, now); }
    [[nodiscard]] Nanos* place_of_heard(NodeIndex node) noexcept {
        return liveness_.place_of_heard(node);
    }
    /// Returns whether that node has been silent for as long as a death takes in that job.
    [[nodiscard]] bool is_silent(JobId job, NodeIndex node, Nanos now) const noexcept;
    /// Returns for how long this engine did not run lately, if the job's other nodes may have held
    /// it for dead meanwhile; else 0.
    [[nodiscard]] Nanos own_absence(JobId job, Nanos now) const noexcept;
    /// A frame came for an endpoint handle that is unknown here: tells its source, at a limited
    /// rate.
    void unknown_handle(const Mac& source, Handle handle, Nanos now) {
        liveness_.unknown_handle(source, handle, now);
        decide_next_look();
    }

    /// Ends all ranks of that rank's node in this job: the transport asked the rank without answer
    /// and heard nothing of its node.
    void peer_died(JobId job, Rank rank, Nanos now);
    /// Ends that rank alone in this job, for all ranks of this node: it held up a group of one of
    /// them. Notifies it, here or at its node.
    void exclude(JobId job, Rank rank, Nanos now);
    /// Tells the node of a rank that is gone here, and still sends, at a limited rate.
    void held_for_gone(JobId job, Rank rank, Nanos now);

    // --- outputs
    /// Writes the next frame, complete from the Ethernet header on. capacity ≥ 14 + mtu. 0: nothing
    /// now.
    [[nodiscard]] std::size_t next_tx(std::byte* frame, std::size_t capacity, Nanos now);
    [[nodiscard]] bool has_tx() const noexcept;
    [[nodiscard]] bool poll_event(JobEvent& out);
    [[nodiscard]] Nanos next_timer() const noexcept;  ///< kNever: none
    /// Returns when one of these three has something: 0 for now, else next_timer(). A round asks
    /// nothing else while jobs are quiet.
    [[nodiscard]] Nanos next_look() const noexcept { return next_look_; }
    /// Handles due timers. To be called after the frames of the round, so that an engine that was
    /// not scheduled for a while first reads the frames that have come.
    void on_timer(Nanos now);
    /// Notes that the round has looked: next_look() is right again.
    void looked() noexcept { decide_next_look(); }

    /// Returns how many places of its tables and records all calls have visited, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept;
    /// Nothing to send and no peer to be told any more: an engine that ends may go.
    [[nodiscard]] bool drained() const noexcept;

    /// Fails the process if a record, a publisher or a roster is broken, or if the next look comes
    /// too late. O(ranks of all jobs).
    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    friend struct Breaker;  // tests/unit/engine/invariants_test.cc

    struct Impl;
    void decide_next_look() noexcept;  ///< after whatever may change it

    void on_links(const wire::NodeView& view, const Mac& source, Nanos now);
    void on_node(const wire::NodeView& view, const Mac& source, Nanos now);

    Liveness liveness_;
    NodeAddresses addresses_;
    Links links_;
    std::unique_ptr<Impl> impl_;
    Nanos next_look_ = kNever;
};

}  // namespace ulc::jobs
