// SPDX-License-Identifier: BSD-3-Clause
// One node's engine: endpoints of its clients on one side, ports on the other. Sans-IO: no clock,
// socket, thread or DPDK here. Time is an argument, ports are port.h, the shared memory of an
// endpoint is passed in mapped. The daemon, the embedded library and the simulator run this same
// object.
//
// A round (poll):
//   serve     each endpoint with work: deliver, take submissions, send,
//             timers                                                        clients.cc, drain.cc
//   transmit  frames of the members, in turn, as far as the NIC ring is short; those for
//             this node go to its endpoints directly                        tx.cc
//   receive   frames of the ports → parse, early drop → members, jobs       demux.cc
//   control   jobs: timers, formed, peers that left or died                 control.cc
//   settle    deliver what came; wake clients; check timers again           clients.cc
// When nothing is due, a round only checks for frames and submissions (round.cc).
//
// Sending comes first because a client that answers the last round's delivery has submitted by now:
// polling the port before would add an empty poll to every round trip.
//
// Nets are separate: jobs, groups and node identity belong to one net, and so does an endpoint. Two
// endpoints on two nets meet only if something outside joins the wires.
//
// Threads: all calls of one engine from one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "abi/endpoint_region.h"
#include "abi/endpoint_row.h"
#include "abi/placement.h"
#include "base/address_plan.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/config.h"
#include "port/port.h"

namespace ulc::state {
class Exporter;
class Importer;
}  // namespace ulc::state

namespace ulc::engine {

class Core;  // core.h

enum class DetachReason : std::uint8_t {
    kClosed,  ///< in order
    kDied,    ///< the client is dead: its peers hear so
};

/// Memory and interrupt of a client, which their owner keeps while the engine is replaced.
struct Mapping {
    void* region = nullptr;
    abi::RegionLayout layout;
    Interrupt interrupt;
};

/// Finds the mapping of an endpoint.
struct Regions {
    Mapping (*find)(void* context, EndpointId endpoint) = nullptr;
    void* context = nullptr;
};

class Engine {
public:
    /// `ports`: one per net, index = net; 1 … kNetsMax. The engine is another node on each. Errors
    /// are broken invariants (see options.def for limits).
    Engine(const EngineConfig& config, std::span<const Port> ports);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // --- clients
    /// Returns a handle for a region that the caller then makes by abi::initialise_control(), on
    /// the account of its user. Errors: kLimit (AccountLimits; `why`, if not nullptr: which, and
    /// the advice), kInvalid (no such net), kClosed (stopping).
    [[nodiscard]] Result<EndpointId> reserve(std::uint32_t net, const Claimant& claimant = {},
                                             std::string* why = nullptr);
    /// Admits the reserved endpoint, whose rings are then served. `region`: layout.region_octets of
    /// memory with an initialised control page, mapped until detached().
    /// `layout`: trusted (the maker's own). `reach`: the memory that its records may name; kProcess
    /// only for clients of this process. Errors: kInvalid (not reserved, or an inconsistent
    /// layout).
    Err admit(EndpointId endpoint, void* region, const abi::RegionLayout& layout,
              abi::Reach reach = abi::Reach::kRegion);
    /// Reserves, initialises the control page and admits: for a caller that trusts its client
    /// (embedded, simulator).
    [[nodiscard]] Result<EndpointId> attach(void* region, const abi::RegionLayout& layout,
                                            std::uint32_t net, std::uint32_t engine_pid = 0,
                                            abi::Reach reach = abi::Reach::kRegion, UserId uid = 0);
    /// Ends a client. The endpoint lingers until all that it submitted is acknowledged, at most
    /// linger_max or linger_died, then notifies its peers. Also withdraws a reservation. Unknown
    /// endpoints are ignored.
    void detach(EndpointId endpoint, DetachReason reason, Nanos now);
    /// True if the endpoint is detached and nothing of it is left: its region may be unmapped. Also
    /// true of an endpoint never known.
    [[nodiscard]] bool detached(EndpointId endpoint) const noexcept;
    /// Returns why the engine closed the endpoint by itself (kCorrupt); kOk while it did not. Then
    /// the caller must call detach().
    [[nodiscard]] Err closed(EndpointId endpoint) const noexcept;
    [[nodiscard]] std::uint32_t endpoints() const noexcept;
    /// Writes one row for each admitted endpoint, without the process id, as far as there is space.
    /// Returns the number of rows. O(endpoints · ranks).
    std::size_t take_figures(std::span<abi::EndpointRow> out) const;
    /// Writes one row for each peer of the user's endpoints, without the process id, as far as
    /// there is space. Returns the number of rows that there are. of: nullptr: all users. Allocates
    /// 4 bytes a rank. O(endpoints · ranks).
    std::size_t take_streams(std::span<abi::StreamRow> out, const UserId* of) const;

    /// Sets the placer that is asked where messages to this endpoint go; nullptr: none. The
    /// endpoint was admitted with Reach::kProcess. Unknown endpoints are ignored.
    void set_placer(EndpointId endpoint, const abi::Placer* placer) noexcept;

    /// Ends the use of a place that the placer named, as abi::EngineEntry::forget_place(). Returns
    /// true if a message was arriving there. The caller's thread has the engine.
    bool forget_place(EndpointId endpoint, Rank source, const abi::Place& place) noexcept;

    /// Lets the endpoint's client get messages of one packet as frames (endpoint/frame_loans.h), or
    /// not any more. Admitted with Reach::kProcess. Unknown endpoints are ignored.
    void lend_frames(EndpointId endpoint, bool lend);

    /// Sets how the client is interrupted while it computes, until detach(); no call: not at all.
    /// Unknown endpoints are ignored.
    void set_interrupt(EndpointId endpoint, const Interrupt& interrupt) noexcept;

    // --- time
    /// Runs one round. Returns true if something moved; call again at once.
    bool poll(Nanos now);
    /// True if the last round left frames of that endpoint pending.
    [[nodiscard]] bool owes(EndpointId endpoint) const noexcept;
    /// Returns when the next round is due if neither a frame nor a client comes first; 0: at once;
    /// kNever: no timer.
    [[nodiscard]] Nanos next_deadline() const noexcept;
    /// Announces a sleep to all clients and checks their rings once more. Returns false if there is
    /// work: do not sleep (awake() was done). After the sleep call awake().
    [[nodiscard]] bool prepare_sleep();
    void awake();
    /// Shows attached clients that the engine's thread runs. Called about once a millisecond.
    void beat() noexcept;

    /// True if it ran a schedule of some client at the end of its last general round.
    [[nodiscard]] bool offloading() const noexcept;

    /// Returns the address to which this node listens for a group (base/address_plan.h). kInvalid:
    /// none of its endpoints is a member.
    [[nodiscard]] Result<AddressId> group_address(std::uint32_t net, GroupHandle group) const;

    // --- ends
    /// Refuses new endpoints and jobs.
    void stop_accepting() noexcept;
    /// True if no endpoint is left and no peer has to be notified: the engine may end.
    [[nodiscard]] bool drained() const noexcept;

    // --- upgrade (docs/design/UPGRADE.md). Between two rounds only.
    /// Writes the state of the engine, which is not changed. Fails the exporter if something is in
    /// the way: a collective that the engine carries out, or a client of this process.
    void export_state(state::Exporter& exporter) const;
    /// Ends each client whose collective keeps export_state() from its work. Returns a sentence
    /// that names them.
    std::string evict(Nanos now);
    /// Takes the state of another engine over the same ports and the same counters. This one was
    /// just made, and has had no client. regions: asked for each endpoint that the state names. It
    /// is destroyed without a round if the importer fails. Frames: one reference for each name.
    void import_state(state::Importer& importer, const Regions& regions);

    /// Fails the process if an invariant is broken, between two rounds: of endpoints with all that
    /// they own, jobs, transmitters, and kept verdicts. O(what they hold).
    void check_invariants() const;
    /// The same of transports, links and kept verdicts alone: of all that an import of a state
    /// requires, whatever the state says.
    void check_imported() const;

    [[nodiscard]] Counters& counters() noexcept;
    [[nodiscard]] const Counters& counters() const noexcept;

private:
    friend struct Breaker;  // tests/unit/engine/invariants_test.cc

    std::unique_ptr<Core> core_;
};

}  // namespace ulc::engine
