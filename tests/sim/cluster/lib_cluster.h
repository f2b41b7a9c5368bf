// SPDX-License-Identifier: BSD-3-Clause
// Runs real libulc endpoints on the simulated cluster: the objects behind ulc.h, on real engines,
// in virtual time. Programs call only the start and test functions of ulc.h and coll.h; nothing
// blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "client/endpoint.h"
#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {

class LibCluster {
public:
    /// `ranks`: on the nodes in turn; 0: one a node. `limits`: those of every endpoint, by its
    /// rank.
    explicit LibCluster(const ClusterConfig& config, std::uint16_t ranks = 0,
                        const std::function<client::Limits(std::uint16_t)>& limits = nullptr);
    ~LibCluster();

    /// Runs until all ranks are formed. Returns false if they did not form within `limit`.
    bool form(Nanos limit = 5 * kSecond);
    [[nodiscard]] std::uint16_t ranks() const noexcept {
        return static_cast<std::uint16_t>(endpoints_.size());
    }
    [[nodiscard]] ulc_endpoint* endpoint(std::uint16_t rank) { return endpoints_[rank].get(); }
    [[nodiscard]] SimCluster& cluster() noexcept { return cluster_; }

    /// The actions of a rank after its poll. Returns the time at which it must be called again,
    /// like Program::act().
    using Application = std::function<Nanos(std::uint16_t rank, Nanos now)>;
    /// Runs the application on every live rank, until done() or the limit. Returns true if done.
    bool run(Nanos limit, const std::function<bool()>& done, Application application);
    /// Returns the result of the rank's last poll: 0 means that ulc_wait() would still wait.
    [[nodiscard]] int events(std::uint16_t rank) const { return events_[rank]; }
    /// Ends the rank's process at once.
    void kill(std::uint16_t rank);
    /// Shuts down like SimCluster::shut_down().
    std::uint32_t shut_down();

private:
    class Rank : public Program {
    public:
        Rank(LibCluster& lib, std::uint16_t rank) : lib_(lib), rank_(rank) {}
        Nanos act(Nanos now) override { return lib_.act(rank_, now); }

    private:
        LibCluster& lib_;
        std::uint16_t rank_;
    };
    Nanos act(std::uint16_t rank, Nanos now);
    void charge_matches(std::uint16_t node);

    /// An endpoint's way to its engine: the context of its hooks.
    struct Link {
        SimCluster* cluster;
        std::uint16_t node;
        std::size_t index;  ///< number of its client
    };

    SimCluster cluster_;
    std::vector<Link> links_;
    std::vector<std::unique_ptr<ulc_endpoint>> endpoints_;
    std::vector<abi::Placer> placers_;  ///< by rank, of those in their engine's process
    std::vector<std::unique_ptr<Rank>> programs_;
    std::vector<int> events_;
    std::vector<std::uint64_t> matched_;  ///< by node: messages whose matching was charged
    Application application_;
};

}  // namespace ulc::sim
