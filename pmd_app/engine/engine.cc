// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "endpoint/offload.h"
#include "engine/core.h"

namespace ulc::engine {
namespace {

constexpr Nanos kClientPatience = kMillisecond;  ///< between looks at a client whose ring is full
/// Tickets of departures wrap soon after the start, so that each run of an engine crosses the wrap.
constexpr std::uint32_t kFirstTicket = 0U - 1024U;

jobs::JobsConfig jobs_config(const EngineConfig& config, const Port& port, seal::Tokens& tokens,
                             GroupTable* groups) {
    jobs::JobsConfig jobs = config.jobs;
    jobs.mac = port.info.mac;
    jobs.mtu = port.info.mtu;
    jobs.mtu_sure = port.info.mtu_sure;
    jobs.ether_type = config.ether_type;
    jobs.crc = config.crc;
    jobs.user_share = config.accounts.user_share;
    jobs.incarnation = static_cast<std::uint32_t>(tokens.next()) | 1U;
    jobs.seed = tokens.next_seed();
    jobs.group_in_use = [](void* context, GroupHandle handle) {
        return static_cast<GroupTable*>(context)->find(handle) != nullptr;
    };
    jobs.group_context = groups;
    return jobs;
}

// When the endpoint wants its next round.
Nanos deadline_of(const Endpoint& endpoint, Nanos now) {
    Nanos deadline = endpoint.timer();
    const bool waits_for_client = endpoint.outlet() != nullptr && endpoint.outlet()->blocked();
    if (endpoint.has(Work::kDeliver) && !waits_for_client) return 0;
    if (endpoint.has(Work::kSend | Work::kTransmit | Work::kSettle)) return 0;
    const bool offload_waits = endpoint.offloads() != nullptr && endpoint.offloads()->retry();
    // No doorbell announces a free slot of the completion ring.
    const bool records_wait =
        endpoint.life().has_memory() && (endpoint.inlet().ready() || endpoint.inlet().is_full());
    if (waits_for_client || records_wait || endpoint.sends().retry() || offload_waits ||
        endpoint.has(Work::kControl))
        deadline = std::min(deadline, now + kClientPatience);
    return deadline;
}

// The same of a net's jobs, and of what its port has not taken.
Nanos deadline_of(const Net& net) { return net.transmitter().kept() ? 0 : net.jobs().next_look(); }

// When the engine's next round is due, after one in which nothing moved.
Nanos deadline_of(const Core& core, Nanos now) {
    Nanos deadline = kNever;
    for (const auto& net : core.nets())
        deadline = std::min(deadline, deadline_of(*net));
    for (const Endpoint* endpoint : core.table().active())
        deadline = std::min(deadline, deadline_of(*endpoint, now));
    return deadline;
}

/// Returns the port under its present address, which may have changed since its table was made.
Port at_present(Port port) {
    if (port.addresses != nullptr) {
        port.info.mac = port.addresses(port.context)[0].mac;
    } else if (port.interface != nullptr) {
        if (const InterfaceState* state = port.interface(port.context); state != nullptr)
            port.info.mac = state->own;
    }
    return port;
}

}  // namespace

NetFrames::NetFrames(const Port& port, const AccountLimits& limits)
    : send_all_(port.pool.available(port.pool.context)),
      receive_all_(port.info.rx_frames == 0 ? UINT32_MAX
                                            : port.info.rx_frames - port.info.rx_frames / 4),
      send_(send_all_, limits.frames_kept, limits.frames_alpha),
      receive_(receive_all_, limits.frames_kept, limits.frames_alpha),
      to_lend_(endpoint::FrameLoans::bound(port.info.rx_frames)) {}

Net::Net(const EngineConfig& config, const Port& port, std::uint32_t index, seal::Tokens& tokens,
         Counters& counters)
    : port_(at_present(port)),
      departures_{.next = kFirstTicket, .left = kFirstTicket},
      transmitter_(port, departures_, counters),
      groups_(config.groups_max, config.endpoints_max),
      filter_(port.info.multicast_filters),
      jobs_(jobs_config(config, port_, tokens, &groups_), counters),
      index_(index),
      ether_type_(config.ether_type),
      frames_(port, config.accounts),
      watch_(port_.info) {}

void Net::begin_jobs(const EngineConfig& config, seal::Tokens& tokens,
                     Counters& counters) noexcept {
    std::destroy_at(&jobs_);
    std::construct_at(&jobs_, jobs_config(config, port_, tokens, &groups_), counters);
}

void Net::wrap_port() {
    bond_ = std::make_unique<port::BondPort>(std::span<const Port>(&port_, 1),
                                             port::BondConfig{ether_type_, jobs_.secret()});
    const PortTap* const tap = port_.tap;
    port_ = bond_->table();
    port_.tap = tap;
    transmitter_.replace_port(port_);
}

Nanos Net::reorder_wait(std::span<const urtp::Peer> roster, bool has_bonds) const {
    if (port_.reorder_wait == nullptr) return 0;
    // A node that the job knows to have several links may not have confirmed their speeds yet.
    std::uint32_t slowest = has_bonds ? kMegabitsUnknown : 0;
    for (const urtp::Peer& peer : roster) {
        const std::uint32_t speed = jobs_.slowest_link(peer.mac);
        if (speed != 0) slowest = slowest == 0 ? speed : std::min(slowest, speed);
    }
    return port_.reorder_wait(port_.context, slowest);
}

/// A port of one link gets a BondPort around it when a job or a proof says that a node has several,
/// so that nets without one pay nothing. A CRC covers the address of the sender, so with CRCs no
/// address is replaced.
void expect_bonds(const Core& core, Net& net) {
    if (!core.config().crc && net.port().set_addresses == nullptr) net.wrap_port();
}

bool take_addresses(Core& core, Net& net) {
    bool any = false;
    AddressChange change;
    while (net.jobs().next_address_change(change)) {
        any = true;
        if (change.addresses.size() > 1 && change.proved) expect_bonds(core, net);
        if (core.config().crc || net.port().set_addresses == nullptr) continue;
        net.port().set_addresses(net.port().context, change.addresses, change.proved);
    }
    return any;
}

namespace {

std::vector<std::unique_ptr<Net>> make_nets(const EngineConfig& config, std::span<const Port> ports,
                                            seal::Tokens& tokens, Counters& counters) {
    ULC_CHECK(!ports.empty() && ports.size() <= kNetsMax);
    std::vector<std::unique_ptr<Net>> nets;
    for (const Port& port : ports)
        nets.push_back(std::make_unique<Net>(config, port, static_cast<std::uint32_t>(nets.size()),
                                             tokens, counters));
    return nets;
}

}  // namespace

Core::Core(const EngineConfig& config, std::span<const Port> ports)
    : config_(config),
      own_counters_(config.counters == nullptr ? std::make_unique<Counters>() : nullptr),
      counters_(config.counters == nullptr ? *own_counters_ : *config.counters),
      tokens_(config.seed),
      accounts_(config.accounts, config.endpoints_max, config.groups_max,
                static_cast<std::uint32_t>(ports.size())),
      nets_(make_nets(config_, ports, tokens_, counters_)),
      table_(config.endpoints_max, tokens_) {}

Core::~Core() {
    for (auto& net : nets_)
        net->transmitter().drop_all();
}

Engine::Engine(const EngineConfig& config, std::span<const Port> ports)
    : core_(std::make_unique<Core>(config, ports)) {}

Engine::~Engine() = default;

Result<EndpointId> Engine::reserve(std::uint32_t net, const Claimant& claimant, std::string* why) {
    if (net >= core_->nets().size()) return Err::kInvalid;
    if (core_->rounds().is_stopping()) return Err::kClosed;
    std::string refusal;
    User* user = core_->accounts().enter(claimant, refusal);
    if (user == nullptr) {
        core_->counters().add(Counter::refused_attaches);
        if (why != nullptr) *why = refusal;
        return Err::kLimit;
    }
    const EndpointId id = core_->table().next_handle();
    ULC_CHECK(id != 0);  // enter() counts the places of the table
    core_->table().put(std::make_unique<Endpoint>(*core_->nets()[net], *user, claimant, id,
                                                  core_->config().pending_sends));
    return id;
}

Err Engine::admit(EndpointId id, void* region, const abi::RegionLayout& layout, abi::Reach reach) {
    Endpoint* endpoint = core_->find(id);
    if (endpoint == nullptr || !endpoint->life().is_reserved() || region == nullptr)
        return Err::kInvalid;
    if (abi::validate_layout(layout, layout.region_octets) != Err::kOk) return Err::kInvalid;
    endpoint->map(abi::Region(region, layout, reach), core_->counters(), {},
                  core_->config().wake != nullptr);
    endpoint->life().open();
    core_->table().admit(*endpoint);
    core_->quiet().reserve(core_->table().active().size());
    core_->quiet().leave();
    core_->counters().add(Counter::clients_attached);
    return Err::kOk;
}

Result<EndpointId> Engine::attach(void* region, const abi::RegionLayout& layout, std::uint32_t net,
                                  std::uint32_t engine_pid, abi::Reach reach, UserId uid) {
    const Result<EndpointId> id = reserve(net, {uid, layout.region_octets});
    if (!id.ok()) return id.error();
    if (abi::validate_layout(layout, layout.region_octets) != Err::kOk) {
        detach(id.value(), DetachReason::kClosed, 0);
        return Err::kInvalid;
    }
    abi::initialise_control(region, layout, id.value(), engine_pid);
    const Err error = admit(id.value(), region, layout, reach);
    if (error != Err::kOk) return error;
    return id;
}

void Engine::set_placer(EndpointId id, const abi::Placer* placer) noexcept {
    Endpoint* endpoint = core_->find(id);
    if (endpoint == nullptr || !endpoint->life().has_memory() ||
        endpoint->outlet()->placer() == placer)
        return;
    ULC_CHECK(endpoint->region().reaches_process());
    endpoint->outlet()->set_placer(placer);
    update_landing(*endpoint);
    if (endpoint->net().lands()) core_->quiet().leave();
}

bool Engine::forget_place(EndpointId id, Rank source, const abi::Place& place) noexcept {
    Endpoint* endpoint = core_->find(id);
    if (endpoint == nullptr || !endpoint->life().has_memory()) return false;
    if (!endpoint->outlet()->forget_place(source, place)) return false;
    core_->end_verdicts();
    update_landing(*endpoint);
    return true;
}

void Engine::lend_frames(EndpointId id, bool lend) {
    Endpoint* endpoint = core_->find(id);
    if (endpoint == nullptr || !endpoint->life().has_memory()) return;
    ULC_CHECK(endpoint->region().reaches_process());
    endpoint::FrameLoans& loans = endpoint->outlet()->loans();
    if (lend) {
        endpoint->net().frames().lend_to(loans, endpoint->net().port().pool);
    } else {
        loans.forbid();
    }
}

void Engine::set_interrupt(EndpointId id, const Interrupt& interrupt) noexcept {
    Endpoint* endpoint = core_->find(id);
    if (endpoint == nullptr || !endpoint->life().has_memory() || endpoint->life().is_detached())
        return;
    endpoint->set_interrupt(interrupt, core_->config().wake != nullptr);
}

void Engine::detach(EndpointId id, DetachReason reason, Nanos now) {
    Endpoint* endpoint = core_->find(id);
    if (endpoint == nullptr || endpoint->life().is_detached()) return;
    if (endpoint->life().is_reserved()) {
        remove(*core_, *endpoint);
        return;
    }
    const bool died = reason == DetachReason::kDied;
    if (endpoint->life().closed() == Err::kOk)
        core_->counters().add(died ? Counter::clients_died : Counter::clients_closed);
    endpoint->life().detach();
    endpoint->set_interrupt({}, core_->config().wake != nullptr);
    // Such a client's sends may point to what has gone with it.
    if (died && endpoint->region().reaches_process()) leave_memory(*endpoint);
    linger(*core_, *endpoint, died ? wire::LeaveReason::kDied : wire::LeaveReason::kLeft, now);
    core_->quiet().note(true);
    core_->quiet().leave();
    if (endpoint->life().is_closed()) remove(*core_, *endpoint);
}

bool Engine::detached(EndpointId id) const noexcept { return core_->find(id) == nullptr; }

Err Engine::closed(EndpointId id) const noexcept {
    const Endpoint* endpoint = core_->find(id);
    return endpoint == nullptr ? Err::kOk : endpoint->life().closed();
}

std::uint32_t Engine::endpoints() const noexcept {
    return static_cast<std::uint32_t>(core_->table().active().size());
}

bool Engine::owes(EndpointId id) const noexcept {
    if (core_->quiet().is_on()) return false;  // no endpoint has work
    const Endpoint* endpoint = core_->find(id);
    return endpoint != nullptr && endpoint->has(Work::kTransmit);
}

Nanos Engine::next_deadline() const noexcept {
    return core_->quiet().has_moved() ? 0 : deadline_of(*core_, core_->rounds().now());
}

bool Engine::prepare_sleep() {
    for (Endpoint* endpoint : core_->table().active()) {
        if (endpoint->life().has_memory()) abi::engine_going_to_sleep(endpoint->region().control());
    }
    abi::sleep_fence();
    for (Endpoint* endpoint : core_->table().active()) {
        if (may_take(*endpoint)) {
            awake();
            return false;
        }
    }
    return true;
}

void Engine::awake() {
    core_->quiet().leave();  // the round after a sleep looks at all endpoints
    for (Endpoint* endpoint : core_->table().active()) {
        if (endpoint->life().has_memory()) abi::engine_awake(endpoint->region().control());
    }
}

void Engine::beat() noexcept {
    const std::uint32_t beats = core_->rounds().beat();
    for (Endpoint* endpoint : core_->table().active()) {
        if (endpoint->life().has_memory() && !endpoint->life().is_detached())
            endpoint->region().control().engine_beats.store(beats, std::memory_order_relaxed);
    }
}

bool Engine::offloading() const noexcept { return core_->rounds().is_offloading(); }

Result<AddressId> Engine::group_address(std::uint32_t net, GroupHandle group) const {
    ULC_CHECK(net < core_->nets().size());
    const LocalGroup* local = core_->nets()[net]->groups().find(group);
    if (local == nullptr) return Err::kInvalid;
    return local->address;
}

void Engine::stop_accepting() noexcept { core_->rounds().stop(); }

bool Engine::drained() const noexcept {
    return core_->table().active().empty() &&
           std::ranges::all_of(core_->nets(), [](const auto& net) {
               return net->jobs().drained() && !net->transmitter().kept();
           });
}

void Engine::check_invariants() const {
    for (const Endpoint* endpoint : core_->table().active())
        endpoint->check_invariants();
    for (const auto& net : core_->nets()) {
        net->jobs().check_invariants();
        net->transmitter().check_invariants();
    }
    if (!core_->quiet().is_on()) return;
    check_verdicts(*core_);
    for (const Look& look : core_->quiet().all_looks())
        ULC_CHECK(look.next == look.endpoint->inlet().next());
}

void Engine::check_imported() const {
    for (const Endpoint* endpoint : core_->table().active())
        if (endpoint->member() != nullptr) endpoint->member()->check_invariants();
    for (const auto& net : core_->nets())
        std::as_const(net->jobs()).links().check_invariants();
    if (core_->quiet().is_on()) check_verdicts(*core_);
}

Counters& Engine::counters() noexcept { return core_->counters(); }
const Counters& Engine::counters() const noexcept { return core_->counters(); }

}  // namespace ulc::engine
