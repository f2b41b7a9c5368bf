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
#include "endpoint/frame_loans.h"
#include "engine/accounts.h"
#include "engine/clients/endpoint.h"
#include "engine/clients/endpoint_table.h"
#include "engine/config.h"
#include "engine/fast/quiet.h"
#include "engine/fast/verdicts.h"
#include "engine/groups/group_table.h"
#include "engine/groups/multicast_filter.h"
#include "engine/interface_watch.h"
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

/// The frames of a net's port, and who gets them.
class NetFrames {
public:
    NetFrames(const Port& port, const AccountLimits& limits);

    /// Frames from which to send; some are reserved for control.
    [[nodiscard]] urtp::FrameBudget& send() noexcept { return send_; }
    /// Received frames that members may hold. A quarter is reserved: a node whose memory is full of
    /// packets that wait for others must still receive those.
    [[nodiscard]] urtp::FrameBudget& receive() noexcept { return receive_; }
    /// Lets a client of this process borrow frames of the quarter that members may not hold.
    void lend_to(endpoint::FrameLoans& loans, const SegmentPool& pool) {
        loans.allow(pool, to_lend_);
    }
    void fields(state::Archive& archive);

private:
    std::uint32_t send_all_;     ///< total of send_
    std::uint32_t receive_all_;  ///< total of receive_
    urtp::FrameBudget send_;
    urtp::FrameBudget receive_;
    std::uint32_t to_lend_;  ///< frames that clients may still borrow
};

/// One wire and everything on it. Its jobs and endpoints keep its address.
class Net {
public:
    Net(const EngineConfig& config, const Port& port, std::uint32_t index, seal::Tokens& tokens,
        Counters& counters);
    Net(const Net&) = delete;
    Net& operator=(const Net&) = delete;

    // --- its parts
    [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
    [[nodiscard]] const Port& port() const noexcept { return port_; }
    [[nodiscard]] InterfaceWatch& watch() noexcept { return watch_; }
    [[nodiscard]] const InterfaceWatch& watch() const noexcept { return watch_; }
    [[nodiscard]] urtp::Departures& departures() noexcept { return departures_; }
    [[nodiscard]] urtp::Arrivals& arrivals() noexcept { return arrivals_; }
    [[nodiscard]] Transmitter& transmitter() noexcept { return transmitter_; }
    [[nodiscard]] const Transmitter& transmitter() const noexcept { return transmitter_; }
    [[nodiscard]] GroupTable& groups() noexcept { return groups_; }
    [[nodiscard]] MulticastFilter& filter() noexcept { return filter_; }
    [[nodiscard]] Jobs& jobs() noexcept { return jobs_; }
    [[nodiscard]] const Jobs& jobs() const noexcept { return jobs_; }
    [[nodiscard]] NetFrames& frames() noexcept { return frames_; }
    [[nodiscard]] Verdicts& verdicts() noexcept { return verdicts_; }
    /// Returns where FrameVerdict::heard of a node is noted.
    [[nodiscard]] Nanos* place_of_heard(NodeIndex node) noexcept {
        Nanos* const watched = jobs_.place_of_heard(node);
        return watched != nullptr ? watched : &heard_else_;
    }

    // --- its port
    /// Puts a BondPort around a port of one link, which sends to all links of a node then.
    void wrap_port();
    /// Makes the interface's address that of the port.
    void take_address() { port_.info.mac = port_.take_address(port_.context); }
    /// Counts the port's costs and losses since the last time.
    void count(Counters& counters, Nanos now) { counts_.look(port_, counters, now); }
    /// Returns the most by which frames of one sender among these nodes overtake each other.
    /// has_bonds: a node among them may have several links.
    [[nodiscard]] Nanos reorder_wait(std::span<const urtp::Peer> roster, bool has_bonds) const;
    /// Takes the frames that have come, at most kRxBurst, into burst(). Returns their number.
    [[nodiscard]] std::uint16_t take_burst() noexcept {
        return port_.rx(port_.context, burst_, kRxBurst);
    }
    [[nodiscard]] Segment* const* burst() const noexcept { return burst_; }
    /// Tells the tap of the port, if there is one, of frames that came.
    void show_received(Segment* const* frames, std::uint16_t n) const noexcept {
        if (port_.tap != nullptr) [[unlikely]]
            port_.tap->on_received(port_.tap->context, frames, n);
    }

    // --- payloads that land (landing.cc)
    /// Endpoint whose messages' payloads may land; nullptr: none.
    [[nodiscard]] Endpoint* landing() const noexcept { return landing_; }
    void set_landing(Endpoint& endpoint, bool lands) noexcept {
        if (lands) {
            landing_ = &endpoint;
        } else if (landing_ == &endpoint) {
            landing_ = nullptr;
        }
    }
    /// True if payloads may land: frames are taken one by one.
    [[nodiscard]] bool lands() const noexcept {
        return landing_ != nullptr && port_.rx_landing != nullptr;
    }

    /// Begins with no job, under the port's present address: the net has neither jobs nor links.
    void begin_jobs(const EngineConfig& config, seal::Tokens& tokens, Counters& counters) noexcept;
    void fields(state::Archive& archive);

private:
    Port port_;
    std::unique_ptr<port::BondPort> bond_;  ///< around the port, from the first LINKS on
    urtp::Departures departures_;
    urtp::Arrivals arrivals_;
    Transmitter transmitter_;
    GroupTable groups_;
    MulticastFilter filter_;
    Jobs jobs_;
    std::uint32_t index_;
    std::uint16_t ether_type_;
    NetFrames frames_;
    Segment* burst_[kRxBurst] = {};
    Endpoint* landing_ = nullptr;
    InterfaceWatch watch_;
    port::PortCounts counts_;
    Verdicts verdicts_;
    Nanos heard_else_ = 0;  ///< FrameVerdict::heard of nodes that are not watched
};

/// The rounds of an engine: their time, their turns, and whether the engine stops.
class Rounds {
public:
    void begin(Nanos now) noexcept { now_ = now; }
    /// Time of this round.
    [[nodiscard]] Nanos now() const noexcept { return now_; }
    /// Lets the next round begin with another endpoint.
    void pass_turn() noexcept { ++turn_; }
    /// Returns which of these endpoints transmits first in this round.
    [[nodiscard]] std::size_t first_of(std::size_t endpoints) const noexcept {
        return endpoints == 0 ? 0 : turn_ % endpoints;
    }
    /// Returns which of these users transmits first, each time the next one.
    [[nodiscard]] std::size_t next_of(std::size_t users) noexcept { return user_turn_++ % users; }
    /// Returns the number of calls.
    std::uint32_t beat() noexcept { return ++beats_; }
    /// True if a schedule was carried out at the end of the last general round.
    [[nodiscard]] bool is_offloading() const noexcept { return offloading_; }
    void set_offloading(bool offloading) noexcept { offloading_ = offloading; }
    [[nodiscard]] bool is_stopping() const noexcept { return stopping_; }
    void stop() noexcept { stopping_ = true; }
    void fields(state::Archive& archive);

private:
    std::uint32_t turn_ = 0;       ///< round robin over the active endpoints; free running
    std::uint32_t user_turn_ = 0;  ///< round robin over the users
    Nanos now_ = 0;
    std::uint32_t beats_ = 0;
    bool offloading_ = false;
    bool stopping_ = false;
};

class Core {
public:
    Core(const EngineConfig& config, std::span<const Port> ports);
    ~Core();

    [[nodiscard]] const EngineConfig& config() const noexcept { return config_; }
    [[nodiscard]] Counters& counters() const noexcept { return counters_; }
    [[nodiscard]] bool owns_counters() const noexcept { return own_counters_ != nullptr; }
    [[nodiscard]] seal::Tokens& tokens() noexcept { return tokens_; }
    [[nodiscard]] Accounts& accounts() noexcept { return accounts_; }
    [[nodiscard]] const Accounts& accounts() const noexcept { return accounts_; }
    [[nodiscard]] const std::vector<std::unique_ptr<Net>>& nets() const noexcept { return nets_; }
    [[nodiscard]] EndpointTable& table() noexcept { return table_; }
    [[nodiscard]] const EndpointTable& table() const noexcept { return table_; }
    [[nodiscard]] Quiet& quiet() noexcept { return quiet_; }
    [[nodiscard]] Rounds& rounds() noexcept { return rounds_; }
    /// The event that run_jobs() handles, kept so that no round clears its text.
    [[nodiscard]] JobEvent& job_event() noexcept { return job_event_; }
    [[nodiscard]] Endpoint* find(EndpointId handle) const noexcept { return table_.find(handle); }

    /// Ends all kept verdicts: a step has changed, or is to change, what they stand for.
    void end_verdicts() noexcept { ++verdicts_epoch_; }
    [[nodiscard]] std::uint64_t verdicts_epoch() const noexcept { return verdicts_epoch_; }
    template <typename Verdict>
    [[nodiscard]] bool holds(const Verdict& verdict) const noexcept {
        return kKeepsVerdicts && verdict.epoch == verdicts_epoch_;
    }
    [[nodiscard]] endpoint::SendContext send_context(Endpoint& e) noexcept {
        const Port& port = e.net().port();
        return {.member = e.member(),
                .pool = port.pool,
                .region = e.region(),
                .outlet = *e.outlet(),
                .counters = counters_,
                .mtu = e.member() != nullptr ? e.member()->mtu() : port.info.mtu,
                .client_gone = e.life().is_lingering(),
                .gathers = port.info.gathers && !config_.crc ? &e.net().transmitter() : nullptr,
                .offloads = e.offloads(),
                .frames = e.send_frames()};
    }
    void fields(state::Archive& archive);

private:
    EngineConfig config_;
    std::unique_ptr<Counters> own_counters_;
    Counters& counters_;
    seal::Tokens tokens_;
    Accounts accounts_;
    std::vector<std::unique_ptr<Net>> nets_;
    EndpointTable table_;  ///< behind the nets, to end before them
    Quiet quiet_;
    JobEvent job_event_;
    Rounds rounds_;
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
/// Receives while Net::landing() is set: payloads of the message that is arriving go straight from
/// the wire to the place that its receiver named.
bool receive_landing(Core& core, Net& net, Nanos now);
/// Notes that the answer whether the endpoint's messages may land has changed, or may have.
inline void update_landing(Endpoint& endpoint) noexcept {
    endpoint.net().set_landing(endpoint, endpoint.outlet()->placing());
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
    core.counters().add(Counter::client_bad_record);
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
