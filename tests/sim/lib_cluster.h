// Real libulc endpoints on the simulated cluster: the objects behind ulc.h, on real engines, in virtual time. Tests
// call start and test functions of ulc.h and coll.h only; nothing blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "client/endpoint.h"
#include "sim_cluster.h"

namespace ulc::sim {

class LibCluster {
public:
    /// One rank a node; config.net.ports ranks.
    explicit LibCluster(const ClusterConfig& config);
    ~LibCluster();

    /// Runs until all ranks are formed. False: they did not within `limit`.
    bool form(Nanos limit = 5 * kSecond);
    [[nodiscard]] std::uint16_t ranks() const noexcept {
        return static_cast<std::uint16_t>(endpoints_.size());
    }
    [[nodiscard]] ulc_endpoint* endpoint(std::uint16_t rank) { return endpoints_[rank].get(); }
    [[nodiscard]] SimCluster& cluster() noexcept { return cluster_; }

    /// Steps until done() or the limit; application(rank) is called once a step for every rank that lives, after
    /// its poll. True: done.
    bool run(Nanos limit, const std::function<bool()>& done,
             const std::function<void(std::uint16_t rank)>& application);
    /// What the rank's last poll took: 0 means that ulc_wait() would still wait.
    [[nodiscard]] int events(std::uint16_t rank) const { return events_[rank]; }
    /// The rank's process is gone at once.
    void kill(std::uint16_t rank);
    /// As SimCluster::shut_down().
    std::uint32_t shut_down();

private:
    SimCluster cluster_;
    std::vector<std::unique_ptr<ulc_endpoint>> endpoints_;
    std::vector<int> events_;
};

}  // namespace ulc::sim
