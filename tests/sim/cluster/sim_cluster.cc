// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/cluster/sim_cluster.h"

#include <algorithm>

#include "base/check.h"
#include "base/state/archive.h"
#include "tests/sim/trace/recorder.h"

namespace ulc::sim {
namespace {

/// An engine that wants its next round at once and moved nothing waits for its port or for memory.
/// Frames sent or received wake it. This bound is for conditions that no event announces.
constexpr Nanos kPatience = 100 * kMicrosecond;
/// Clusters up to this number of nodes check the invariants of a node after each of its turns;
/// larger ones once in that number of turns.
constexpr std::size_t kCheckedNodes = 8;
constexpr Nanos kIdleStep = kMillisecond;  ///< step of run() when nothing is due

/// Returns the net with the segments that the cluster's rows and columns have.
NetConfig net_of(const ClusterConfig& config) {
    NetConfig net = config.net;
    if (config.mesh_columns == 0) return net;
    ULC_CHECK(config.links == 2);
    const auto rows = static_cast<std::uint16_t>(net.ports / 2 / config.mesh_columns);
    ULC_CHECK(net.ports == 2 * rows * config.mesh_columns);
    for (std::uint16_t node = 0; node < net.ports / 2; ++node) {
        net.vlans.push_back(node / config.mesh_columns);
        net.vlans.push_back(static_cast<std::uint16_t>(rows + node % config.mesh_columns));
    }
    return net;
}

}  // namespace

SimCluster::SimCluster(const ClusterConfig& config)
    : config_(config),
      net_(net_of(config), config.hosts),
      nodes_(config.net.ports / config.links),
      upgrade_prng_(config.seed) {
    if (config_.recorder != nullptr) net_.set_tap(config_.recorder);
    net_.listen([this](std::uint16_t port, bool arrived, Nanos at) { on_net(port, arrived, at); });
    for (Node& node : nodes_) {
        node.index = static_cast<std::uint16_t>(&node - nodes_.data());
        node.processor = std::make_unique<SharedProcessor>(nic_of(node).costs().sharing,
                                                           config.seed + 77 * node.index);
        for (std::uint16_t link = links_of(node.index); link < config_.links; ++link)
            pull(node.index, link);
        start_engine(node);
    }
}

void SimCluster::start_engine(Node& node) {
    if (config_.recorder != nullptr && node.counters != nullptr)
        config_.recorder->note_counters(node.index, *node.counters);  // of the engine before
    node.counters = std::make_unique<Counters>();
    node.engine = make_engine(node);
    wake(node, 0);
}

std::unique_ptr<engine::Engine> SimCluster::make_engine(Node& node) {
    engine::EngineConfig engine = config_.engine;
    const std::uint64_t seed = config_.seed * 1000 + node.index + 1'000'000'007ULL * node.starts++;
    engine.seed = seed;
    engine.counters = node.counters.get();
    engine.quiet_after = 1;  // quiet rounds, too, although no simulated engine spins
    engine.wake_context = &wakes_;
    engine.wake = [](void* context, engine::EndpointId, std::atomic<std::uint32_t>*) {
        ++*static_cast<std::uint64_t*>(context);
    };
    Port port =
        links_of(node.index) > 1 ? port_of_links(node, seed + 1) : net_.port(port_of(node.index));
    if (node.index < config_.taps.size()) port.tap = config_.taps[node.index];
    return std::make_unique<engine::Engine>(engine, std::span<const Port>(&port, 1));
}

/// Returns the one port that several links of a node are.
Port SimCluster::port_of_links(Node& node, std::uint64_t seed) {
    std::vector<Port> links;
    for (std::uint16_t link = 0; link < links_of(node.index); ++link)
        links.push_back(net_.port(port_of(node.index, link)));
    if (config_.stated_bits_per_second != ClusterConfig::kTrueSpeed)
        for (Port& link : links)
            link.info.link_bits_per_second = config_.stated_bits_per_second;
    if (config_.mesh_columns != 0) {
        const port::MeshPlace place{
            static_cast<std::uint16_t>(node.index / config_.mesh_columns + 1),
            static_cast<std::uint16_t>(node.index % config_.mesh_columns + 1)};
        if (node.mesh == nullptr)
            node.mesh = std::make_unique<port::MeshPort>(
                links[0], links[1], port::MeshConfig{config_.engine.ether_type, seed, place});
        return node.mesh->table();
    }
    if (node.bond == nullptr)
        node.bond = std::make_unique<port::BondPort>(
            links, port::BondConfig{config_.engine.ether_type, seed});
    return node.bond->table();
}

SimCluster::~SimCluster() {
    if (config_.recorder != nullptr) record_ends(*config_.recorder);
    for (Node& node : nodes_)
        node.engine.reset();
    net_.drop_all();
}

void SimCluster::record_ends(Recorder& recorder) const {
    for (const Node& node : nodes_)
        recorder.note_counters(node.index, *node.counters);
    for (std::size_t n = 0; n < clients_.size(); ++n) {
        if (clients_[n].client != nullptr)
            recorder.note_end("completions of client " + std::to_string(n),
                              clients_[n].client->digest);
    }
    recorder.note_end("wakes", wakes_);
    recorder.note_end("turns", turns_);
    recorder.note_end("nanoseconds", static_cast<std::uint64_t>(now()));
}

// ---------------------------------------------------------------- clients

std::size_t SimCluster::add_client(std::uint16_t node, engine::UserId uid) {
    Client client;
    client.node = node;
    client.memory = std::make_unique<RegionMemory>(config_.sizes);
    client.layout = client.memory->layout();
    const bool second = (clients_.size() + config_.seed) % 2 == 0;
    const bool embedded =
        config_.embedded == Embedded::kAll || (config_.embedded == Embedded::kHalf && second);
    const abi::Reach reach = embedded ? abi::Reach::kProcess : abi::Reach::kRegion;
    engine::Engine& engine = *nodes_[node].engine;
    const auto pid = static_cast<std::uint32_t>(clients_.size() + 1);
    const auto id = engine.reserve(0, {uid, client.layout.region_octets, pid, kStartTicks + pid});
    ULC_CHECK(id.ok());
    client.endpoint = id.value();
    abi::initialise_control(client.memory->base(), client.layout, client.endpoint, 0);
    ULC_CHECK(engine.admit(client.endpoint, client.memory->base(), client.layout, reach) ==
              Err::kOk);
    client.client =
        std::make_unique<RingClient>(client.memory->base(), client.memory->layout(), reach);
    clients_.push_back(std::move(client));
    nodes_[node].clients.push_back(clients_.size() - 1);
    return clients_.size() - 1;
}

void SimCluster::set_program(std::size_t client, Program* program) {
    clients_[client].program = program;
    clients_[client].act_at = program == nullptr ? kNever : now();
    touch(clients_[client].node);
}

bool SimCluster::form(std::size_t ranks, const std::function<std::uint16_t(std::size_t)>& place,
                      Nanos limit, std::string name, Nanos patience) {
    const std::size_t first = clients_.size();
    if (name.empty()) name = "job" + std::to_string(first);
    for (std::size_t n = 0; n < ranks; ++n)
        add_client(place(n));
    for (std::size_t n = 0; n < ranks; ++n) {
        if (!client(first + n).join(name, static_cast<Rank>(n), static_cast<std::uint16_t>(ranks),
                                    config_.nonce, patience))
            return false;
        touch(clients_[first + n].node);
    }
    // A client is formed when its completion says so. The client takes the completion when it is
    // there, at no cost.
    std::size_t formed = 0;
    const auto all_formed = [&] {
        while (formed < ranks) {
            RingClient& one = client(first + formed);
            if (!one.formed()) one.poll();
            if (!one.formed()) return false;
            ++formed;
        }
        return true;
    };
    return run(limit, all_formed);
}

void SimCluster::kill_client(std::size_t index) {
    Client& client = clients_[index];
    if (client.gone) return;
    client.gone = true;
    client.program = nullptr;
    nodes_[client.node].engine->detach(client.endpoint, engine::DetachReason::kDied, now());
    client.client.reset();
    touch(client.node);
}

void SimCluster::close_client(std::size_t index) {
    Client& client = clients_[index];
    if (client.gone) return;
    client.gone = true;
    client.program = nullptr;
    nodes_[client.node].engine->detach(client.endpoint, engine::DetachReason::kClosed, now());
    touch(client.node);
}

void SimCluster::pause_client(std::size_t index, Nanos until) {
    Client& client = clients_[index];
    client.paused_until = std::max(client.paused_until, until);
    client.act_at = std::min(client.act_at, until);  // it has missed the events of that time
    wake(nodes_[client.node], until);
}

void SimCluster::pause_node(std::uint16_t node, Nanos until) {
    nodes_[node].paused_until = std::max(nodes_[node].paused_until, until);
    wake(nodes_[node], until);
}

void SimCluster::kill_node(std::uint16_t node) {
    for (std::uint16_t link = 0; link < links_of(node); ++link)
        net_.faults().unplug(port_of(node, link));
    nodes_[node].engine.reset();
    for (const std::size_t index : nodes_[node].clients) {
        clients_[index].gone = true;
        clients_[index].program = nullptr;
    }
}

void SimCluster::start_node(std::uint16_t node) {
    ULC_CHECK(nodes_[node].engine == nullptr);
    nodes_[node].clients.clear();
    for (std::uint16_t link = 0; link < links_of(node); ++link)
        pull(node, link, false);
    start_engine(nodes_[node]);
}

engine::Mapping SimCluster::mapping_of(engine::EndpointId endpoint) const {
    for (const std::size_t index : nodes_[upgrading_].clients) {
        const Client& client = clients_[index];
        if (client.endpoint != endpoint) continue;
        return {client.memory != nullptr ? client.memory->base() : nullptr, client.layout, {}};
    }
    return {};
}

state::Image SimCluster::export_node(std::uint16_t index) const {
    state::Exporter exporter;
    nodes_[index].engine->export_state(exporter);
    return exporter.ok() ? exporter.finish() : state::Image{};
}

std::unique_ptr<engine::Engine> SimCluster::import_node(std::uint16_t index,
                                                        const state::Image& image,
                                                        std::string& why) {
    std::unique_ptr<engine::Engine> next = make_engine(nodes_[index]);
    state::Importer importer(image.octets, image.frames);
    upgrading_ = index;
    const auto find = [](void* cluster, engine::EndpointId endpoint) {
        return static_cast<SimCluster*>(cluster)->mapping_of(endpoint);
    };
    next->import_state(importer, {find, this});
    if (importer.finish()) return next;
    why = importer.why();
    return nullptr;
}

void SimCluster::replace_engine(std::uint16_t index, std::unique_ptr<engine::Engine> next) {
    nodes_[index].engine = std::move(next);
}

bool SimCluster::upgrade_node(std::uint16_t index) {
    const state::Image image = export_node(index);
    if (image.octets.empty()) return false;
    std::unique_ptr<engine::Engine> next = import_node(index, image, upgrade_error_);
    if (next == nullptr) return false;
    state::Exporter again;
    next->export_state(again);
    const state::Image second = again.finish();
    const auto same_frame = [](const state::FrameName& a, const state::FrameName& b) {
        return a.frame == b.frame;
    };
    if (second.octets != image.octets ||
        !std::ranges::equal(second.frames, image.frames, same_frame)) {
        const auto [at, other] = std::ranges::mismatch(second.octets, image.octets);
        upgrade_error_ = "what was imported is exported otherwise, from octet " +
                         std::to_string(at - second.octets.begin()) + " of " +
                         std::to_string(image.octets.size());
        return false;
    }
    replace_engine(index, std::move(next));
    ++upgrades_;
    return true;
}

void SimCluster::pull(std::uint16_t node, std::uint16_t link, bool pulled) {
    net_.faults().unplug(port_of(node, link), pulled);
    net_.nic(port_of(node, link)).plugged = !pulled;
}

void SimCluster::set_speed(std::uint16_t node, double speed) {
    for (std::uint16_t link = 0; link < config_.links; ++link) {
        Nic& nic = net_.nic(port_of(node, link));
        nic.cpu().set_speed(nic.costs().speed * speed);
    }
}

// ---------------------------------------------------------------- time

void SimCluster::at(Nanos time, std::function<void()> what) {
    timed_.push(std::max(time, now()), std::move(what));
}

void SimCluster::wake(Node& node, Nanos at) {
    at = std::max(at, now());
    if (at >= node.wake_at) return;
    node.wake_at = at;
    // The deadline of an engine is read again after each of its turns.
    if (node.queued.insert(at).second) wake_queue_.push(at, node.index);
}

// Returns when an idle host notices a frame that has been in its memory since `arrived`.
Nanos SimCluster::noticed(const Node& node, Nanos arrived) const {
    const HostCosts& costs = nic_of(node).costs();
    if (costs.notice == Notice::kInterrupt) return arrived + costs.interrupt_latency;
    if (costs.poll_period == 0) return arrived;
    const Nanos idle = arrived - node.free_at;
    return node.free_at + (idle + costs.poll_period - 1) / costs.poll_period * costs.poll_period;
}

void SimCluster::on_net(std::uint16_t port, bool arrived, Nanos at) {
    Node& node = nodes_[port / config_.links];
    if (node.engine == nullptr) return;
    if (arrived && at >= node.free_at) {
        wake(node, noticed(node, at));
        return;
    }
    wake(node, std::max(at, node.free_at));
}

Nanos SimCluster::next_event() const {
    return std::min({net_.next_event(), wake_queue_.next(), timed_.next()});
}

// Runs everything that is due: timed events, then turns in the order in which they were requested.
void SimCluster::run_due() {
    while (timed_.next() <= now())
        timed_.pop()();
    while (wake_queue_.next() <= now()) {
        const Nanos due = wake_queue_.next();
        Node& node = nodes_[wake_queue_.pop()];
        node.queued.erase(due);
        if (node.wake_at != due) continue;  // an earlier one took its place
        node.wake_at = kNever;
        turn(node);
    }
}

void SimCluster::step(const std::function<void()>& tick) {
    if (tick) {
        tick();
        for (Node& node : nodes_)
            if (node.engine != nullptr) wake(node, std::max(now(), node.free_at));
        run_due();
    }
    const Nanos next = next_event();
    net_.advance(next == kNever ? now() + kIdleStep : next);
    run_due();
}

bool SimCluster::run(Nanos limit, const std::function<bool()>& done,
                     const std::function<void()>& tick) {
    const Nanos end = now() + limit;
    at(end, [] {});  // so that no step goes beyond it
    while (!done()) {
        if (now() >= end) return false;
        step(tick);
    }
    return true;
}

// ---------------------------------------------------------------- a turn

void SimCluster::turn(Node& node) {
    if (node.engine == nullptr) return;
    const Nanos now = net_.now();
    const Nanos may_from = std::max({node.free_at, node.paused_until, node.processor->next(now)});
    if (may_from > now) {
        wake(node, may_from);
        return;
    }
    ++turns_;
    for (std::uint16_t link = 0; link < config_.links; ++link)
        net_.begin_turn(port_of(node.index, link));
    Cpu& cpu = nic_of(node).cpu();
    const HostCosts& costs = nic_of(node).costs();
    const bool acted = run_clients(node, now);
    const bool moved = run_engine(node, now);
    if (config_.upgrade_every != 0 && upgrade_prng_.below(config_.upgrade_every) == 0)
        (void)upgrade_node(node.index);
    if (moved) cpu.charge(static_cast<double>(costs.round));
    Nanos spent = 0;
    for (std::uint16_t link = 0; link < config_.links; ++link)
        spent += net_.nic(port_of(node.index, link)).cpu().spent();
    if (moved) spent = std::max<Nanos>(spent, 1);
    node.busy += spent;
    node.free_at = now + spent;
    wake(node, moved || acted ? std::max(node.free_at, now + 1) : next_of(node, now));
}

// Runs the clients with news. Returns true if at least one acted.
bool SimCluster::run_clients(Node& node, Nanos now) {
    bool acted = false;
    for (const std::size_t index : node.clients) {
        if (clients_[index].program == nullptr) continue;
        if (node.news) clients_[index].act_at = now;
        if (clients_[index].act_at > now || clients_[index].paused_until > now) continue;
        const Nanos next = clients_[index].program->act(now);
        clients_[index].act_at = std::max(next, now + 1);
        acted = true;
    }
    node.news = false;
    return acted;
}

// Runs one round, and charges its cost beyond the frames, which the NIC has charged.
bool SimCluster::run_engine(Node& node, Nanos now) {
    const Counters& counters = node.engine->counters();
    Nic& nic = nic_of(node);
    const HostCosts& costs = nic.costs();
    const std::uint64_t submissions = counters.get(Counter::submissions);
    const std::uint64_t completions = counters.get(Counter::completions);
    const std::uint64_t loopback = counters.get(Counter::loopback_frames);
    nic.begin_round(counters, node.free_at < now);
    const bool moved = node.engine->poll(now);
    nic.end_round();
    const bool samples = nodes_.size() <= kCheckedNodes || turns_ % kCheckedNodes == 0;
    if (moved && checks_engines_ && samples) node.engine->check_invariants();
    const std::uint64_t taken = counters.get(Counter::submissions) - submissions;
    const std::uint64_t written = counters.get(Counter::completions) - completions;
    const std::uint64_t looped = counters.get(Counter::loopback_frames) - loopback;
    nic.cpu().charge(static_cast<double>(written > 0 ? costs.wake : 0) +
                     static_cast<double>(costs.complete) * static_cast<double>(written) +
                     static_cast<double>(costs.send_frame + costs.receive_frame) *
                         static_cast<double>(looped));
    node.news = taken + written > 0;
    return moved;
}

// Returns when a node that moved nothing has work again.
Nanos SimCluster::next_of(Node& node, Nanos now) {
    Nanos next = node.engine->next_deadline();
    if (next <= now) next = now + kPatience;
    for (const std::size_t index : node.clients) {
        const Client& client = clients_[index];
        if (client.program != nullptr)
            next = std::min(next, std::max(client.act_at, client.paused_until));
    }
    Nanos arrival = kNever;
    for (std::uint16_t link = 0; link < config_.links; ++link)
        arrival = std::min(arrival, net_.nic(port_of(node.index, link)).next_rx());
    if (arrival == kNever) return next;
    return std::min(next, std::max(noticed(node, std::max(arrival, now)), now + 1));
}

// ---------------------------------------------------------------- ends

std::uint32_t SimCluster::shut_down() {
    for (std::size_t n = 0; n < clients_.size(); ++n)
        close_client(n);
    const auto drained = [&] {
        return std::ranges::all_of(nodes_, [](const Node& node) {
            return node.engine == nullptr || node.engine->drained();
        });
    };
    (void)run(30 * kSecond, drained);
    for (Node& node : nodes_)
        node.engine.reset();
    for (Node& node : nodes_) {  // frames that wait in them go back to the net
        node.bond.reset();
        node.mesh.reset();
    }
    net_.drop_all();
    std::uint32_t out = 0;
    for (std::uint16_t port = 0; port < net_.ports(); ++port)
        out += net_.segments_out(port);
    return out;
}

std::uint64_t SimCluster::count(Counter counter) const {
    std::uint64_t sum = 0;
    for (const Node& node : nodes_)
        if (node.engine != nullptr) sum += node.engine->counters().get(counter);
    return sum;
}

}  // namespace ulc::sim
