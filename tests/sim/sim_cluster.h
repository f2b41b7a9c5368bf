// A cluster in one thread: N real engines on a simulated net, clients on their rings, virtual time. Everything follows
// from the seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "ring_client.h"
#include "sim_net.h"

namespace ulc::sim {

struct ClusterConfig {
    NetConfig net;
    engine::EngineConfig engine;
    abi::RegionSizes sizes{64, 64, 256U << 10, 256U << 10};
    std::uint64_t seed = 1;
};

class SimCluster {
public:
    explicit SimCluster(const ClusterConfig& config);
    ~SimCluster();

    /// A client on that node's engine; indices count up over the cluster.
    std::size_t add_client(std::uint16_t node);
    /// Clients 0 … n-1 on nodes given by place, as ranks of one job; runs until formed. False: did not form.
    bool form(std::size_t ranks, const std::function<std::uint16_t(std::size_t)>& place,
              Nanos limit = 5 * kSecond);

    [[nodiscard]] RingClient& client(std::size_t index) { return *clients_[index].client; }
    [[nodiscard]] engine::Engine& engine(std::uint16_t node) { return *engines_[node]; }
    [[nodiscard]] SimNet& net() noexcept { return net_; }
    [[nodiscard]] Nanos now() const noexcept { return net_.now(); }
    [[nodiscard]] engine::EndpointId endpoint(std::size_t index) const {
        return clients_[index].endpoint;
    }
    [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }

    /// The client's process ends: by kill -9, its memory is gone at once; closed: in order.
    void kill_client(std::size_t index);
    void close_client(std::size_t index);
    /// The node's engine vanishes with all of its clients.
    void kill_node(std::uint16_t node);

    /// All engines until none moves, then the clock to the next event. tick is called once before.
    void step(const std::function<void()>& tick = {});
    /// Steps until done() or the limit. True: done.
    bool run(Nanos limit, const std::function<bool()>& done,
             const std::function<void()>& tick = {});

    /// All endpoints detached, engines destroyed: every segment must be home. Returns how many are not.
    std::uint32_t shut_down();
    [[nodiscard]] std::uint64_t count(Counter counter) const;
    [[nodiscard]] std::uint64_t wakes() const noexcept { return wakes_; }

private:
    struct Client {
        std::unique_ptr<RegionMemory> memory;
        std::unique_ptr<RingClient> client;
        engine::EndpointId endpoint = 0;
        std::uint16_t node = 0;
        bool gone = false;
    };
    ClusterConfig config_;
    SimNet net_;
    std::vector<std::unique_ptr<engine::Engine>> engines_;
    std::vector<Client> clients_;
    std::uint64_t wakes_ = 0;
};

}  // namespace ulc::sim
