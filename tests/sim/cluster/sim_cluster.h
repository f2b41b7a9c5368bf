// SPDX-License-Identifier: BSD-3-Clause
// Runs a cluster in one thread: N real engines on a simulated net, clients on their rings, virtual
// time. Everything follows from the seed.
//
// Time goes from event to event, never in steps. A node acts (its *turn*) when one of these is due;
// no other node acts:
//   its frame is in memory and was noticed    its engine's timer        its client's own time
//   the NIC has sent a frame       its processor is free again after a turn that moved something
// A turn is: the clients with news, then one round of the engine. Its work costs processor time
// (host/costs.h), and the node's next turn begins no earlier than that. Frames leave at the moment
// of the turn at which the processor had reached them. A turn that moved something lasts at least
// HostCosts::round, so time always advances.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/prng.h"
#include "base/state/archive.h"
#include "engine/engine.h"
#include "port/bond_port.h"
#include "port/mesh_port.h"
#include "tests/sim/cluster/program.h"
#include "tests/sim/cluster/ring_client.h"
#include "tests/sim/cluster/sim_net.h"
#include "tests/sim/media/event_queue.h"

namespace ulc::sim {

class Recorder;

/// Clients in their engine's process (abi::Reach::kProcess). kHalf: every second one, beginning
/// with the first or the second by the seed.
enum class Embedded : std::uint8_t { kNone, kHalf, kAll };

struct ClusterConfig {
    NetConfig net;
    /// Costs by node; fewer: the last one (or the ideal host) for the others
    std::vector<HostCosts> hosts;
    /// Links of each node, which are ports of the net one behind the other. net.ports counts all.
    std::uint16_t links = 1;
    /// Speed that the links of nodes with several say that they have; kTrueSpeed: their own.
    std::uint64_t stated_bits_per_second = kTrueSpeed;
    static constexpr std::uint64_t kTrueSpeed = UINT64_MAX;
    /// Nodes from this one on use their first link alone.
    std::uint16_t bonded_nodes = UINT16_MAX;
    /// Columns of a mesh (port/mesh_port.h): node n is in row n / columns and in column
    /// n % columns, and has 2 links. 0: there is no mesh.
    std::uint16_t mesh_columns = 0;
    engine::EngineConfig engine;
    abi::RegionSizes sizes{64, 64, 256U << 10, 256U << 10};
    std::uint64_t seed = 1;
    Embedded embedded = Embedded::kNone;
    std::uint8_t nonce = 0;  ///< given to jobs as a launcher does; 0: by hand
    /// Taps of the nodes' ports, by node; fewer: none for the others. They outlive the cluster.
    std::vector<const PortTap*> taps;
    Recorder* recorder = nullptr;  ///< records the run until the cluster ends; outlives it
    /// Mean number of a node's turns until its engine is replaced by a new one that takes its
    /// state; 0: it is not.
    std::uint64_t upgrade_every = 0;
};

class SimCluster {
public:
    explicit SimCluster(const ClusterConfig& config);
    SimCluster(const SimCluster&) = delete;
    SimCluster& operator=(const SimCluster&) = delete;
    ~SimCluster();

    // --- clients
    /// Adds a client on that node's engine; indices count up over the cluster.
    std::size_t add_client(std::uint16_t node, engine::UserId uid = 0);
    /// Client n is process n + 1, which started at this time and n + 1 ticks.
    static constexpr std::uint64_t kStartTicks = 1000;
    /// Runs `program` on the client from this call on; nullptr: none. The program must outlive the
    /// client or be removed.
    void set_program(std::size_t client, Program* program);
    /// Adds new clients on nodes given by `place`, as ranks of one job, and runs until it is
    /// formed. Returns false if it did not form. `name`: that of the job; empty: a different one
    /// each time. `patience`: of all ranks, as JoinRequest has it.
    bool form(std::size_t ranks, const std::function<std::uint16_t(std::size_t)>& place,
              Nanos limit = 5 * kSecond, std::string name = {}, Nanos patience = 0);
    [[nodiscard]] RingClient& client(std::size_t index) { return *clients_[index].client; }
    [[nodiscard]] engine::EndpointId endpoint(std::size_t index) const {
        return clients_[index].endpoint;
    }
    [[nodiscard]] std::uint16_t node_of(std::size_t client) const { return clients_[client].node; }
    [[nodiscard]] bool gone(std::size_t client) const { return clients_[client].gone; }
    [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }

    /// Stops the checks of whole engines after each turn: an engine has a state that no correct one
    /// exported.
    void check_no_engines() noexcept { checks_engines_ = false; }

    // --- time
    [[nodiscard]] Nanos now() const noexcept { return net_.now(); }
    /// Runs to the next event, and performs all that is due then. With a tick: first the tick, in
    /// which a test may do anything to any client (so every node polls its clients), then all that
    /// is due, then the next event.
    void step(const std::function<void()>& tick = {});
    /// Steps until done() or the limit. Returns true if done.
    bool run(Nanos limit, const std::function<bool()>& done,
             const std::function<void()>& tick = {});
    /// Calls `what` at that time, before the nodes act.
    void at(Nanos time, std::function<void()> what);
    /// Makes the node poll its clients (one of them submitted from outside a program).
    void touch(std::uint16_t node) { wake(nodes_[node], now()); }

    // --- events
    /// Ends the client's process: by kill -9, its memory is lost at once; if closed, in order.
    void kill_client(std::size_t index);
    void close_client(std::size_t index);
    /// Makes the client compute until then: its program does not act.
    void pause_client(std::size_t index, Nanos until);
    /// Stops scheduling on the node until then; its NIC continues.
    void pause_node(std::uint16_t node, Nanos until);
    /// Removes the node's engine with all of its clients.
    void kill_node(std::uint16_t node);
    /// Starts an engine on a node that was killed, at the same port of the wire.
    void start_node(std::uint16_t node);
    /// Replaces the node's engine by a new one that takes its state. False: something is in the way
    /// of an upgrade, or upgrade_error() says that it is broken.
    bool upgrade_node(std::uint16_t node);
    /// Exports the state of the node's engine. No bytes: something is in the way.
    [[nodiscard]] state::Image export_node(std::uint16_t node) const;
    /// Returns a new engine for the node that took this state. nullptr: refused; `why` says why.
    [[nodiscard]] std::unique_ptr<engine::Engine> import_node(std::uint16_t node,
                                                              const state::Image& image,
                                                              std::string& why);
    /// Ends the node's engine and gives the node another one.
    void replace_engine(std::uint16_t node, std::unique_ptr<engine::Engine> next);
    /// Charges the node's processor for work of its client, within that client's act().
    void charge(std::uint16_t node, Nanos work) noexcept {
        nic_of(nodes_[node]).cpu().charge(static_cast<double>(work));
    }
    [[nodiscard]] const HostCosts& costs(std::uint16_t node) const noexcept {
        return nic_of(nodes_[node]).costs();
    }
    /// Sets the speed of the node's processor to `speed` times its preset.
    void set_speed(std::uint16_t node, double speed);
    /// Pulls or plugs in a cable of the node, which its engine sees.
    void pull(std::uint16_t node, std::uint16_t link, bool pulled = true);

    // --- what is there
    [[nodiscard]] engine::Engine& engine(std::uint16_t node) { return *nodes_[node].engine; }
    [[nodiscard]] bool alive(std::uint16_t node) const { return nodes_[node].engine != nullptr; }
    [[nodiscard]] SimNet& net() noexcept { return net_; }
    [[nodiscard]] std::uint16_t nodes() const noexcept {
        return static_cast<std::uint16_t>(nodes_.size());
    }
    [[nodiscard]] std::uint64_t count(Counter counter) const;
    [[nodiscard]] std::uint64_t wakes() const noexcept { return wakes_; }
    [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }
    [[nodiscard]] std::uint64_t upgrades() const noexcept { return upgrades_; }
    /// Says why an upgrade failed; empty: none did.
    [[nodiscard]] const std::string& upgrade_error() const noexcept { return upgrade_error_; }
    /// Returns the processor time that the node has spent.
    [[nodiscard]] Nanos busy(std::uint16_t node) const { return nodes_[node].busy; }

    /// Detaches all endpoints and destroys the engines: every segment must be back in its pool.
    /// Returns how many are not.
    std::uint32_t shut_down();

private:
    struct Client {
        std::unique_ptr<RegionMemory> memory;  ///< nullptr: its process was killed
        abi::RegionLayout layout{};
        std::unique_ptr<RingClient> client;
        Program* program = nullptr;
        engine::EndpointId endpoint = 0;
        Nanos act_at = kNever;
        Nanos paused_until = 0;
        std::uint16_t node = 0;
        bool gone = false;
    };
    struct Node {
        std::unique_ptr<port::BondPort> bond;  ///< where nodes have several links
        std::unique_ptr<port::MeshPort> mesh;  ///< in a mesh
        std::unique_ptr<Counters> counters;    ///< outlive the engine
        std::unique_ptr<engine::Engine> engine;
        std::vector<std::size_t> clients;
        Nanos wake_at = kNever;            ///< its next turn
        std::unordered_set<Nanos> queued;  ///< times at which the wake queue has it; not iterated
        Nanos free_at = 0;                 ///< the processor
        Nanos paused_until = 0;
        std::unique_ptr<SharedProcessor> processor;
        Nanos busy = 0;
        std::uint16_t index = 0;
        std::uint16_t starts = 0;  ///< number of engines that it had
        bool news = false;  ///< for clients: the last round wrote completions or took records
    };
    [[nodiscard]] std::uint16_t port_of(std::uint16_t node, std::uint16_t link = 0) const {
        return static_cast<std::uint16_t>(node * config_.links + link);
    }
    [[nodiscard]] std::uint16_t links_of(std::uint16_t node) const {
        return node < config_.bonded_nodes ? config_.links : std::uint16_t{1};
    }
    [[nodiscard]] Nic& nic_of(const Node& node) { return net_.nic(port_of(node.index)); }
    [[nodiscard]] const Nic& nic_of(const Node& node) const {
        return net_.nic(port_of(node.index));
    }
    void start_engine(Node& node);
    [[nodiscard]] Port port_of_links(Node& node, std::uint64_t seed);
    [[nodiscard]] std::unique_ptr<engine::Engine> make_engine(Node& node);
    [[nodiscard]] engine::Mapping mapping_of(engine::EndpointId endpoint) const;
    void record_ends(Recorder& recorder) const;
    void wake(Node& node, Nanos at);
    void on_net(std::uint16_t port, bool arrived, Nanos at);
    [[nodiscard]] Nanos noticed(const Node& node, Nanos arrived) const;
    [[nodiscard]] Nanos next_event() const;
    void run_due();
    void turn(Node& node);
    bool run_clients(Node& node, Nanos now);
    bool run_engine(Node& node, Nanos now);
    [[nodiscard]] Nanos next_of(Node& node, Nanos now);

    ClusterConfig config_;
    SimNet net_;
    std::vector<Node> nodes_;
    std::vector<Client> clients_;
    EventQueue<std::uint16_t> wake_queue_;  ///< nodes; only an entry at the node's wake_at counts
    EventQueue<std::function<void()>> timed_;
    std::uint64_t wakes_ = 0;
    std::uint64_t turns_ = 0;
    bool checks_engines_ = true;
    Prng upgrade_prng_;
    std::uint64_t upgrades_ = 0;
    std::uint16_t upgrading_ = 0;  ///< the node whose mappings are asked for
    std::string upgrade_error_;
};

}  // namespace ulc::sim
