// SPDX-License-Identifier: BSD-3-Clause
// The engine's internals: its state, and the functions of each verb (engine.h draws the round).
// Only the engine's own files include this.
//
// Everything that belongs to a wire is a Net, which knows nothing of other nets: its port, the
// frames that wait for it, its jobs and groups. An endpoint belongs to one net for life. Handles
// are unique in the engine, so a function that finds an endpoint by the handle in a frame also
// checks that it is on the net that brought the frame; so nothing crosses.
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
#include "engine/accounts.h"
#include "engine/clients/endpoint.h"
#include "engine/clients/endpoint_table.h"
#include "engine/config.h"
#include "engine/fast/quiet.h"
#include "engine/fast/verdicts.h"
#include "engine/groups/group_table.h"
#include "engine/groups/multicast_filter.h"
#include "engine/tx.h"
#include "jobs/jobs.h"
#include "port/bond_port.h"
#include "port/port.h"
#include "port/port_counts.h"
#include "urtp/arrivals.h"
#include "urtp/frame_share.h"
#include "urtp/transport.h"
#include "wire/parse.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

using jobs::AddressChange, jobs::JobEvent, jobs::JobEventKind, jobs::JobId, jobs::Jobs,
    jobs::JobView, jobs::JoinRequest, jobs::kNoJob, jobs::kNoNode, jobs::LinkEnd, jobs::LinkEvent,
    jobs::LinkEventKind, jobs::Links, jobs::NodeIndex;

/// Maximum of frames that a round takes from a port.
inline constexpr std::uint16_t kRxBurst = 32;
static_assert(kRxBurst <= kTapBurstMax);

/// Frames that an interface refuses while its MTU is below the port's (interface.cc).
struct Refusals {
    std::uint64_t counted = 0;  ///< PortDrops::unsendable at the last look
    Nanos since = kNever;       ///< the first look that found some
    Nanos last = 0;             ///< the latest one
};

/// One wire and everything on it. Its jobs and endpoints keep its address.
struct Net {
    Net(const EngineConfig& config, const Port& port, std::uint32_t index, seal::Tokens& tokens,
        Counters& counters);
    Net(const Net&) = delete;
    Net& operator=(const Net&) = delete;

    Port port;
    std::unique_ptr<port::BondPort> bond;  ///< around the port, from the first LINKS on
    urtp::Departures departures;
    urtp::Arrivals arrivals;
    Transmitter transmitter;
    GroupTable groups;
    MulticastFilter filter;
    Jobs jobs;
    std::uint32_t index;
    std::uint16_t ether_type;
    std::uint32_t send_frames_all;     ///< total of send_frames
    std::uint32_t receive_frames_all;  ///< total of receive_frames
    /// Frames from which to send; some are reserved for control.
    urtp::FrameBudget send_frames;
    /// Received frames that members may hold. A quarter is reserved: a node whose memory is full of
    /// packets that wait for others must still receive those.
    urtp::FrameBudget receive_frames;
    /// Received frames that clients of this process may still get (endpoint/frame_loans.h), of the
    /// quarter that members may not hold.
    std::uint32_t frames_to_lend;
    Segment* burst[kRxBurst] = {};
    /// Endpoint whose messages' payloads may land (landing.cc); nullptr: none
    Endpoint* landing = nullptr;
    Nanos link_due = 0;  ///< when to check the link again
    bool link_is_up = true;
    std::uint16_t mtu_usable;  ///< the least of the port's MTU and its interface's
    Refusals refusals;         ///< frames longer than that
    Mac mac_seen;              ///< address of the interface at the last look
    port::PortCounts counts;
    Verdicts verdicts;
    Nanos heard_else = 0;  ///< FrameVerdict::heard of nodes that are not watched

    void fields(state::Archive& archive);
    /// Puts a BondPort around a port of one link, which sends to all links of a node then.
    void wrap_port();
    /// Begins with no job, under the port's present address: the net has neither jobs nor links.
    void begin_jobs(const EngineConfig& config, seal::Tokens& tokens, Counters& counters) noexcept;
    /// Returns the most by which frames of one sender among these nodes overtake each other.
    /// has_bonds: a node among them may have several links.
    [[nodiscard]] Nanos reorder_wait(std::span<const urtp::Peer> roster, bool has_bonds) const;
    /// Tells the tap of the port, if there is one, of frames that came.
    void show_received(Segment* const* frames, std::uint16_t n) const noexcept {
        if (port.tap != nullptr) [[unlikely]]
            port.tap->on_received(port.tap->context, frames, n);
    }
    /// True if payloads may land: frames are taken one by one.
    [[nodiscard]] bool lands() const noexcept {
        return landing != nullptr && port.rx_landing != nullptr;
    }
};

struct Core {
    Core(const EngineConfig& config, std::span<const Port> ports);
    ~Core();

    EngineConfig config;
    std::unique_ptr<Counters> own_counters;
    Counters& counters;
    seal::Tokens tokens;
    Accounts accounts;
    std::vector<std::unique_ptr<Net>> nets;
    EndpointTable table;  ///< behind the nets, to end before them
    Quiet quiet;
    std::vector<Rank> ranks_scratch;
    std::vector<std::uint8_t> seen_scratch;
    JobEvent job_event;           ///< run_jobs() keeps it, so that no round clears its text
    std::uint32_t turn = 0;       ///< round robin over `active`; free running
    std::uint32_t user_turn = 0;  ///< round robin over the users: which transmits first
    Nanos now = 0;                ///< time of this round
    std::uint32_t beats = 0;      ///< calls of Engine::beat()
    bool offloading = false;      ///< at the end of the last general round
    bool stopping = false;

    void fields(state::Archive& archive);
    /// Ends all kept verdicts: a step has changed, or is to change, what they stand for.
    void end_verdicts() noexcept { ++verdicts_epoch_; }
    [[nodiscard]] std::uint64_t verdicts_epoch() const noexcept { return verdicts_epoch_; }
    template <typename Verdict>
    [[nodiscard]] bool holds(const Verdict& verdict) const noexcept {
        return kKeepsVerdicts && verdict.epoch == verdicts_epoch_;
    }
    [[nodiscard]] Endpoint* find(EndpointId handle) const noexcept { return table.find(handle); }
    [[nodiscard]] endpoint::SendContext send_context(Endpoint& e) noexcept {
        return {
            .member = e.member(),
            .pool = e.net().port.pool,
            .region = e.region(),
            .outlet = *e.outlet(),
            .counters = counters,
            .mtu = e.member() != nullptr ? e.member()->mtu() : e.net().port.info.mtu,
            .client_gone = e.life().is_lingering(),
            .gathers = e.net().port.info.gathers && !config.crc ? &e.net().transmitter : nullptr,
            .offloads = e.offloads(),
            .frames = e.send_frames()};
    }

private:
    std::uint64_t verdicts_epoch_ = Verdicts::kNever + 1;
};

// --- demux.cc
/// Takes frames of the net's port, at most a burst. Returns true if there were some.
bool receive(Core& core, Net& net, Nanos now);
/// Takes the first `count` frames of the net's burst. Kept verdicts hold. Returns false if some
/// took a general step, which ended all kept ones.
bool receive_burst(Core& core, Net& net, std::uint16_t count, Nanos now);
/// Passes a parsed frame to the endpoint or group of this net that its handle names, except to
/// `from`. Takes over one reference. Returns as take_frame().
Endpoint* to_members(Core& core, Net& net, const wire::FrameView& view, Segment* segment,
                     const Endpoint* from, Nanos now);

/// Takes a frame: by a verdict, or by the general steps, which end all kept ones. Returns the
/// endpoint that is to be settled; nullptr: the general steps have marked their work.
struct Received;  // fast/receive.h
Endpoint* take_one(Core& core, Net& net, Segment& segment, Received& received, Nanos now);

// --- round.cc
/// Runs a round with all its steps. Returns true if something moved.
bool poll_general(Core& core, Nanos now);
/// Defers timers that are due without work, in quiet that ends now. Returns true if it continues.
bool prolong_quiet(Core& core, Nanos now);
/// Runs the rest of a round whose submissions and frames were taken.
void finish_round(Core& core, Nanos now);

// --- interface.cc
/// Answers to changes of the interface under the net's port since the last look. Set: its entry.
void follow_interface(Core& core, Net& net, Nanos now);
/// Ends the endpoint's job if the rank's node answers although the job's long packets do not reach
/// it: a switch or router began to drop them.
void path_narrowed(Core& core, Endpoint& endpoint, Rank rank, Nanos now);

// --- fast/verdicts.cc
/// Fails the process if a verdict is kept although a condition that it stands for is not met. To be
/// called in quiet only: a general step that is not over may have changed them.
void check_verdicts(const Core& core);

// --- landing.cc
/// Receives while net.landing is set: payloads of the message that is arriving go straight from the
/// wire to the place that its receiver named.
bool receive_landing(Core& core, Net& net, Nanos now);
/// Notes that the answer whether the endpoint's messages may land has changed, or may have.
inline void update_landing(Endpoint& endpoint) noexcept {
    Endpoint*& landing = endpoint.net().landing;
    if (endpoint.outlet()->placing()) {
        landing = &endpoint;
    } else if (landing == &endpoint) {
        landing = nullptr;
    }
}

// --- clients.cc
/// Passes the packets that its member has ready to the client. Returns true if something moved.
bool deliver(Core& core, Endpoint& endpoint, Nanos now);
bool serve(Core& core, Endpoint& endpoint, Nanos now);
/// Delivers, wakes the client, sets the timer. Returns true if something moved.
bool settle(Core& core, Endpoint& endpoint, Nanos now);
/// Wakes a client that sleeps and interrupts one that computes, after completions.
void notify_client(Core& core, Endpoint& endpoint);
/// Ends the endpoint because of data that its client wrote.
void close_corrupt(Core& core, Endpoint& endpoint, Nanos now);
/// Ends a client, whose peers hear that it died. how: what the client hears.
void close_client(Core& core, Endpoint& endpoint, Err how, Nanos now);
/// Drops what waits to be sent: nothing of the client's memory is touched any more.
void leave_memory(Endpoint& endpoint);
/// Handles the end of a client: its received data are dropped, its sends continue.
void linger(Core& core, Endpoint& endpoint, wire::LeaveReason reason, Nanos now);
/// Takes the endpoint out of job, groups and table.
void remove(Core& core, Endpoint& endpoint);

// --- drain.cc
/// Counts a record that the client should not have written.
inline void bad_record(Core& core, Endpoint& endpoint) noexcept {
    core.counters.add(Counter::client_bad_record);
    endpoint.errors().note();
}
/// Takes submission records: sends, control. Returns true if it took some.
bool drain(Core& core, Endpoint& endpoint, Nanos now);
/// True if drain() would take a record now. False while records wait for a client that does not
/// take its completions, or for sends that wait for the transport.
[[nodiscard]] bool may_take(Endpoint& endpoint) noexcept;

// --- control.cc
/// Runs timers and events of the net's jobs, due by Jobs::next_look(). Returns true if something
/// moved.
bool run_jobs(Core& core, Net& net, Nanos now);
/// Writes the reports of the endpoint's control, and ends what must end. Returns true if something
/// moved.
bool control(Core& core, Endpoint& endpoint, Nanos now);
/// Handles kJoinJob, kAddGroup, kRemoveGroup, kLeave. The record was validated for shape only.
/// Returns false if it is corrupt.
bool control_record(Core& core, Endpoint& endpoint, const abi::SubmissionRecord& record, Nanos now);
/// Handles the report of the transport or the jobs that a rank is gone.
void peer_gone(Core& core, Endpoint& endpoint, Rank rank, GoneState how, Nanos now);
/// Records a fault that no request reports.
void fault(Endpoint& endpoint, Err error, Rank rank, std::uint32_t packets, GroupHandle group = 0);
/// Reports to the client that it gets no job, or no links.
void fail_job(Endpoint& endpoint, Err error, std::string_view text);
/// Writes the reports up to that stage while the completion ring has space. Returns true if
/// something moved.
bool write_reports(Core& core, Endpoint& endpoint, Reports::Stage last);
/// Makes the endpoint's transport. `config`: rank, first number, world and profile are set.
void begin_transport(Core& core, Endpoint& endpoint, urtp::TransportConfig config,
                     std::span<const urtp::Peer> roster);
/// Ends the endpoint's membership of its job, or its links, and notifies its peers.
void leave_job(Core& core, Endpoint& endpoint, wire::LeaveReason reason, Nanos now);

// --- engine.cc
/// Prepares the port for nodes with several links.
void expect_bonds(const Core& core, Net& net);
/// Passes changes of the addresses of other nodes to the port. True: there were some.
bool take_addresses(Core& core, Net& net);

// --- links.cc
/// Handles kOpenLinks, kLink, kUnlink; as control_record().
bool link_record(Core& core, Endpoint& endpoint, const abi::SubmissionRecord& record, Nanos now);
/// Takes the events of the net's handshakes. Returns true if there were some.
bool take_link_events(Core& core, Net& net, Nanos now);
/// Continues with slots that become vacant. Returns true if something moved.
bool control_links(Core& core, Endpoint& endpoint, Nanos now);
/// True if messages may go to the client, because all reports about peers have gone.
bool may_deliver_links(Core& core, Endpoint& endpoint, Nanos now);
/// Writes the completion of kLinksOpen.
void describe_links(const Endpoint& endpoint, abi::CompletionRecord& out);
/// True if control_links() is not done.
[[nodiscard]] bool links_wait(const Endpoint& endpoint) noexcept;

// --- near.cc
/// Handles kNear; as control_record(). The completion ring has a free slot.
bool near_record(Core& core, Endpoint& endpoint, const abi::SubmissionRecord& record);

// --- groups.cc
/// Handles kAddGroup, kRemoveGroup, kListenGroup, kUseAddress; as control_record().
bool group_record(Core& core, Endpoint& endpoint, const abi::SubmissionRecord& record, Nanos now);
/// Called when the endpoint's job has formed: notes how many ranks share a node, and the address of
/// its world group, to which all nodes listen.
void place_world(Core& core, Endpoint& endpoint, LocalGroup& world);
/// Removes groups whose streams have drained. Returns true if there were some.
bool remove_groups(Core& core, Endpoint& endpoint);
/// Ends the endpoint's membership of all groups.
void leave_groups(Core& core, Endpoint& endpoint) noexcept;

// --- tx.cc
/// Sends frames of jobs and members to the ports and to endpoints of this node. `members`: some
/// endpoint has Work::kTransmit. Returns true if something moved.
bool transmit(Core& core, bool members, Nanos now);

}  // namespace ulc::engine
