// The engine's insides: its state, and the functions of each verb (engine.h draws the round). Only the engine's own
// files include this.
//
// What belongs to a wire is a Net, which knows nothing of other nets: its port, what waits for it, the jobs and groups that
// live on it. An endpoint names its net for life. Handles are of the whole engine, so whoever finds an endpoint by the handle
// in a frame also asks whether it is on the net that brought the frame; so nothing crosses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/region.h"
#include "base/counters.h"
#include "base/prng.h"
#include "endpoint/deliver.h"
#include "endpoint/offload.h"
#include "endpoint/send_queue.h"
#include "engine/accounts.h"
#include "engine/config.h"
#include "engine/fast/predictions.h"
#include "engine/group_table.h"
#include "engine/links.h"
#include "engine/multicast_filter.h"
#include "engine/tx.h"
#include "jobs/jobs.h"
#include "port/port.h"
#include "urtp/frame_share.h"
#include "urtp/transport.h"
#include "wire/parse.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

/// What an endpoint has to do in this round beyond a look at its submission ring.
enum Work : std::uint8_t {
    kWorkDeliver = 0x01,   ///< packets may be ready
    kWorkSend = 0x02,      ///< the send queue may move
    kWorkTransmit = 0x04,  ///< the member may have frames
    kWorkSettle = 0x08,    ///< the member was touched: events, timer
    kWorkControl = 0x10,   ///< completions of control records, gone peers, leaving
};

enum class EndpointState : std::uint8_t {
    kReserved,   ///< has a handle, no memory yet
    kOpen,       ///< serves its client
    kLeaving,    ///< the client said kLeave: sends are drained, receives go on
    kLingering,  ///< the client is gone; its data are not acknowledged yet
    kLeft,       ///< has left its job
    kClosed,     ///< done; waits for detach()
};

/// An event for the client's error handler.
struct Fault {
    Err error = Err::kOk;
    Rank rank = 0;
    std::uint64_t packets = 0;  ///< or milliseconds
    GroupHandle group = 0;      ///< the latest that a member held up
    void fields(state::Archive& archive);
};

struct Net;

/// Frames that a round takes from a port at most.
inline constexpr std::uint16_t kRxBurst = 32;

/// One client. The first cache lines are what an idle round reads.
struct Endpoint {
    // --- read in every round
    abi::SubmissionConsumer submissions;
    Nanos timer = kNever;
    std::uint8_t work = 0;
    EndpointState state = EndpointState::kReserved;
    bool taking = false;     ///< records are taken (open, leaving, left)
    bool reachable = false;  ///< the region may be touched
    bool notified = false;   ///< its client may sleep or compute: the state is looked at
    bool local_only =
        true;  ///< every rank of the job lives on this node: the NIC ring does not matter
    bool forgets = false;   ///< a transmission makes room in the member's window (profile detect)
    bool detached = false;  ///< the owner has let go of it
    std::unique_ptr<urtp::Transport> member;  ///< set once the job formed
    Net* net;

    abi::CompletionProducer completions;
    std::uint32_t woken_at =
        0;  ///< completions.produced() when its client's sleep was last looked at
    std::uint32_t index = 0;
    EndpointId handle = 0;
    Interrupt interrupt;  ///< upcall of its client; none: it has asked for none, or is gone
    abi::Region region;
    SendQueue sends;
    std::unique_ptr<Deliverer> deliverer;
    std::unique_ptr<Offloads> offloads;  ///< from its first schedule on

    // --- control
    JobId job = kNoJob;
    std::unique_ptr<EndpointLinks> links;  ///< while it is open for links
    GroupHandle world = 0;
    Err closed = Err::kOk;
    Nanos linger_until = kNever;
    wire::LeaveReason leave_reason = wire::LeaveReason::kLeft;
    std::vector<NodeIndex> nodes;       ///< by rank, for liveness
    std::vector<std::uint8_t> gone;     ///< by rank: GoneState
    std::vector<Rank> gone_unreported;  ///< their completions are to be written
    std::vector<Fault> faults;          ///< to be reported; at most one for each rank and error
    std::vector<GroupHandle> groups;
    std::vector<GroupHandle> removing;  ///< kRemoveGroup waits for their streams to drain
    std::uint16_t per_node = 1;         ///< the most ranks of the job on one node
    Medium medium = Medium::kSwitch;
    bool formed_unreported = false;
    bool left_unreported = false;
    bool failed_unreported = false;
    Err left_status = Err::kOk;
    Err failed_error = Err::kOk;
    std::string failed_text;

    // --- what it is charged for
    std::uint32_t errors = 0;         ///< bad records and schedules not judged yet (drain.cc)
    std::uint32_t errors_lately = 0;  ///< in the second that ends at errors_until
    Nanos errors_until = 0;
    User* user;
    std::uint64_t octets = 0;                     ///< size of its region
    std::optional<urtp::FrameShare> send_frames;  ///< while there is a member, which counts here
    std::optional<urtp::FrameShare> receive_frames;

    Endpoint(Net& its_net, User& its_user, std::uint32_t pending_sends)
        : net(&its_net), sends(pending_sends), user(&its_user) {}
    ~Endpoint() { end_member(); }
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    /// Writes or reads what stands in no other place, once `member` and `region` are there.
    void fields(state::Archive& archive);
    /// True if it is of a job, or open for links.
    [[nodiscard]] bool in_use() const noexcept { return job != kNoJob || links != nullptr; }
    void end_member() noexcept {
        member.reset();
        send_frames.reset();
        receive_frames.reset();
    }
};

enum GoneState : std::uint8_t { kHere = 0, kGoneLeft = 1, kGoneDied = 2 };

/// One wire and what lives on it. Its address is kept by its jobs and endpoints.
struct Net {
    Net(const EngineConfig& config, const Port& port, std::uint32_t index, Prng& prng,
        Counters& counters);
    Net(const Net&) = delete;
    Net& operator=(const Net&) = delete;

    Port port;
    urtp::Departures departures;
    Transmitter transmitter;
    GroupTable groups;
    MulticastFilter filter;
    Jobs jobs;
    std::uint32_t index;
    std::uint32_t send_frames_all;     ///< total of send_frames
    std::uint32_t receive_frames_all;  ///< total of receive_frames
    /// Frames to send from; some are kept for control.
    urtp::FrameBudget send_frames;
    /// Received frames that members may hold. A quarter is kept: a node whose memory is full of
    /// packets that wait for others must still receive those.
    urtp::FrameBudget receive_frames;
    std::uint16_t came = 0;  ///< frames in `burst` that receive() has not taken
    Segment* burst[kRxBurst] = {};
    Endpoint* landing = nullptr;  ///< whose messages' payloads may land (landing.cc); nullptr: none
    Nanos link_due = 0;           ///< when to look at the link again
    bool link_is_up = true;
    Nanos missed_due = 0;      ///< when to ask the port what it missed
    std::uint64_t missed = 0;  ///< what it said
    PortCosts costs;           ///< those that are counted
    Predictions predictions;
    Nanos heard_else = 0;  ///< NextFrame::heard of nodes that are not watched

    void fields(state::Archive& archive);
    /// Payloads may land: frames are taken one by one.
    [[nodiscard]] bool lands() const noexcept {
        return landing != nullptr && port.rx_landing != nullptr;
    }
};

/// The place of a client's next submission, at which quiet rounds look.
struct Look {
    abi::NextSlot next;
    Endpoint* endpoint;
};

struct Core {
    Core(const EngineConfig& config, std::span<const Port> ports);
    ~Core();

    EngineConfig config;
    std::unique_ptr<Counters> own_counters;
    Counters& counters;
    Prng prng;
    Accounts accounts;
    std::vector<std::unique_ptr<Net>> nets;
    std::vector<std::unique_ptr<Endpoint>> table;  ///< by handle index
    std::vector<std::uint32_t> generations;        ///< by handle index: the next one
    std::uint32_t next_index = 0;                  ///< the first that reserve() looks at
    std::vector<Endpoint*> active;                 ///< admitted and not gone
    std::vector<Rank> ranks_scratch;
    std::vector<std::uint8_t> seen_scratch;
    JobEvent job_event;           ///< run_jobs() keeps it, so that no round clears its text
    std::uint32_t turn = 0;       ///< round robin over `active`; free running
    std::uint32_t user_turn = 0;  ///< round robin over the users: who transmits first
    Nanos now = 0;                ///< time of this round
    std::uint32_t beats = 0;      ///< calls of Engine::beat()
    bool moved = true;            ///< in this round, or since: the next one is due at once
    /// Rounds before this time only look (round.cc); 0: the next one is general.
    Nanos quiet_until = 0;
    std::uint32_t still_rounds = 0;  ///< general rounds in a row in which nothing moved
    std::vector<Look> looks;         ///< one for each client that may submit; valid in quiet
    Look* looks_from = nullptr;      ///< the next quiet round looks from here …
    Look* looks_to = nullptr;        ///< … to before this one
    /// Still rounds after which rounds look at some clients in turn; before, at all.
    std::uint32_t looks_turn_after = UINT32_MAX;
    bool stopping = false;

    void fields(state::Archive& archive);
    /// Ends all predictions, since a general step may have changed what they stand for.
    void forget_predictions() noexcept {
        for (const auto& net : nets)
            net->predictions.forget_all();
    }
    [[nodiscard]] Endpoint* find(Handle handle) const noexcept {
        const std::uint32_t index = handle & kHandleIndexMask;
        if (index >= table.size()) return nullptr;
        Endpoint* endpoint = table[index].get();
        return endpoint != nullptr && endpoint->handle == handle ? endpoint : nullptr;
    }
    [[nodiscard]] SendContext send_context(Endpoint& e) noexcept {
        return {.member = e.member.get(),
                .pool = e.net->port.pool,
                .region = e.region,
                .cq = e.completions,
                .counters = counters,
                .mtu = e.net->port.info.mtu,
                .client_gone = e.state == EndpointState::kLingering,
                .gathers = e.net->port.info.gathers && !config.crc ? &e.net->transmitter : nullptr,
                .offloads = e.offloads.get(),
                .frames = e.send_frames ? &*e.send_frames : nullptr};
    }
};

// --- demux.cc
/// Frames of the net's port, at most a burst. True: there were some.
bool receive(Core& core, Net& net, Nanos now);
/// A parsed frame to the endpoint or group of this net that its handle names, except to `from`. Takes over one reference.
void to_members(Core& core, Net& net, const wire::FrameView& view, Segment* segment,
                const Endpoint* from, Nanos now);

/// One frame: parsed, and to whom it names.
void take_frame(Core& core, Net& net, Segment* segment, Nanos now);

// --- round.cc
/// A round with all its steps, for the frames in Net::came as well. True: something moved.
bool poll_general(Core& core, Nanos now);
/// The next quiet round looks at the submissions of all clients.
inline void look_at_all(Core& core) noexcept {
    core.looks_from = core.looks.data();
    core.looks_to = core.looks_from + core.looks.size();
}
/// Puts off timers that are due for nothing, in quiet that ends now. True: it goes on.
bool prolong_quiet(Core& core, Nanos now);
/// The rest of a round whose submissions and frames were taken.
void finish_round(Core& core, Nanos now);

// --- fast/quiet.cc
/// The fast path of a received frame: a short message that its transport predicted goes from the
/// frame into the completion ring. Takes over the reference. False: nothing was changed;
/// take_frame() decides.
bool take_short_frame(Core& core, Net& net, Segment& segment, Nanos now);
/// Gives a short message to the endpoint of this node that it is for, without a frame. Returns the
/// endpoint; nullptr: it is for none, or not next; nothing was changed.
Endpoint* pass_short(Core& core, Endpoint& from, const urtp::ShortMessage& message, Nanos now);

// --- fast/predictions.cc
/// Fails the process if a prediction is kept although a condition that it stands for is not met. To
/// be called in quiet only: a general step that is not over may have changed them.
void check_predictions(const Core& core);

// --- landing.cc
/// As receive(), while net.landing is somebody: payloads of the message that is arriving go straight from the wire to where its receiver
/// wants them.
bool receive_landing(Core& core, Net& net, Nanos now);
/// Whether the endpoint's messages may land has changed, or may have.
inline void update_landing(Endpoint& endpoint) noexcept {
    Endpoint*& landing = endpoint.net->landing;
    if (endpoint.deliverer->placing()) {
        landing = &endpoint;
    } else if (landing == &endpoint) {
        landing = nullptr;
    }
}

// --- clients.cc
/// What its member has ready, to the client. True: moved.
bool deliver(Core& core, Endpoint& endpoint, Nanos now);
bool serve(Core& core, Endpoint& endpoint, Nanos now);
/// Deliveries, wake-up, timer. True: moved.
bool settle(Core& core, Endpoint& endpoint, Nanos now);
/// Wakes a client that sleeps and interrupts one that computes, after completions.
void notify_client(Core& core, Endpoint& endpoint);
/// The engine ends the endpoint because of what its client wrote.
void close_corrupt(Core& core, Endpoint& endpoint, Nanos now);
/// No client any more: what it received is dropped, what it sent goes on.
void linger(Core& core, Endpoint& endpoint, wire::LeaveReason reason, Nanos now);
/// Takes the endpoint out of job, groups and table.
void remove(Core& core, Endpoint& endpoint);

// --- drain.cc
/// Counts a record that the client should not have written.
inline void bad_record(Core& core, Endpoint& endpoint) noexcept {
    core.counters.add(Counter::client_bad_record);
    ++endpoint.errors;
}
/// Submission records → sends, control. True: took some.
bool drain(Core& core, Endpoint& endpoint, Nanos now);
/// True if drain() would take a record now. False while records wait for a client that does not
/// take its completions, or for sends that wait for the transport.
[[nodiscard]] bool may_take(Endpoint& endpoint) noexcept;

// --- control.cc
/// Timers and events of the net's jobs, due by Jobs::next_look(). True: moved.
bool run_jobs(Core& core, Net& net, Nanos now);
/// What the endpoint's control has to report or to end. True: moved.
bool control(Core& core, Endpoint& endpoint, Nanos now);
/// kJoinJob, kAddGroup, kRemoveGroup, kLeave. The record was judged for shape only. False: corrupt.
bool control_record(Core& core, Endpoint& endpoint, const abi::SubmissionRecord& record, Nanos now);
/// Something that a client asked for in a record; its completion, for which there is room. nullptr: there is none.
[[nodiscard]] abi::CompletionRecord* claim(Endpoint& endpoint, abi::CompletionKind kind);
void publish(Core& core, Endpoint& endpoint);
/// The transport or the jobs say that a rank is gone.
void peer_gone(Core& core, Endpoint& endpoint, Rank rank, GoneState how, Nanos now);
/// Something went wrong that no request tells.
void fault(Endpoint& endpoint, Err error, Rank rank, std::uint32_t packets, GroupHandle group = 0);
/// Tells the client that it gets no job, or no links.
void fail_job(Endpoint& endpoint, Err error, std::string_view text);
/// Shares `total` frames; at most half of them are guaranteed to endpoints.
[[nodiscard]] urtp::FrameBudget budget_of(const EngineConfig& config, std::uint32_t total);
/// Makes the endpoint's transport. config: rank, first number, world and profile are set.
void begin_transport(Core& core, Endpoint& endpoint, urtp::TransportConfig config,
                     std::span<const urtp::Peer> roster);
/// Ends the endpoint's membership of its job, or its links, told to its peers.
void leave_job(Core& core, Endpoint& endpoint, Nanos now);
/// Its schedules are forgotten: nobody is to be told.
void drop_offloads(Endpoint& endpoint) noexcept;

// --- links.cc
/// kOpenLinks, kLink, kUnlink; as control_record().
bool link_record(Core& core, Endpoint& endpoint, const abi::SubmissionRecord& record, Nanos now);
/// Takes the events of the net's handshakes. True: there were some.
bool take_link_events(Core& core, Net& net, Nanos now);
/// Writes the reports about links, in order, while the completion ring has space. True: moved.
bool report_links(Core& core, Endpoint& endpoint);
/// Goes on with slots that become vacant. True: moved.
bool control_links(Core& core, Endpoint& endpoint, Nanos now);
/// True if messages may go to the client, because all reports about peers have gone.
bool may_deliver_links(Core& core, Endpoint& endpoint, Nanos now);
/// True if control_links() or report_links() is not done.
[[nodiscard]] bool links_wait(const Endpoint& endpoint) noexcept;

// --- groups.cc
/// kAddGroup, kRemoveGroup, kListenGroup, kUseAddress; as control_record().
bool group_record(Core& core, Endpoint& endpoint, const abi::SubmissionRecord& record, Nanos now);
/// The endpoint's job has formed: how many ranks share a node, and the address of its world group, to which all nodes listen.
void place_world(Core& core, Endpoint& endpoint, LocalGroup& world);
/// Removes groups whose streams have drained. True: some.
bool remove_groups(Core& core, Endpoint& endpoint);
/// The endpoint is a member of nothing any more.
void leave_groups(Core& core, Endpoint& endpoint) noexcept;

// --- tx.cc
/// Frames of jobs and members to the ports and to endpoints of this node. members: some endpoint has kWorkTransmit. True: moved.
bool transmit(Core& core, bool members, Nanos now);

}  // namespace ulc::engine
