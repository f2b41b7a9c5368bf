// SPDX-License-Identifier: BSD-3-Clause
// Random traffic of every kind on a cluster whose first clients form one job, checked by the
// oracle: unicast, world, additional groups and subsets; inline, one packet, many packets, chunks;
// readers that lag. Each rank is a separate program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {

struct TrafficConfig {
    unsigned messages = 300;           ///< messages of each rank
    std::size_t length_max = 100'000;  ///< maximum length of a message, which is rare
    Nanos read_gap = 0;                ///< mean time between two polls of a reader; 0: at once
    Nanos think = 0;                   ///< mean time between two messages of a rank; 0: full speed
    bool own_groups = true;
    bool repairs = true;  ///< false: the profile does not retransmit, and lost messages are not due
};

class Traffic {
public:
    Traffic(SimCluster& cluster, std::size_t ranks, const TrafficConfig& config,
            std::uint64_t seed);
    Traffic(const Traffic&) = delete;
    Traffic& operator=(const Traffic&) = delete;
    ~Traffic();  ///< removes its programs from the clients

    /// Registers a few groups at all members and waits until each is ready. Returns false if one
    /// failed.
    bool make_groups(Nanos limit = kSecond);
    /// Lets the programs run from this call on.
    void start();
    /// Calls start(), then runs until everything has arrived. Returns an empty string if all is
    /// correct.
    std::string run(Nanos limit);

    /// Notes that the rank takes no further part; nothing to or from it is due.
    void dead(Rank rank);
    /// Returns true if all messages were sent and have arrived, or a fault was found.
    [[nodiscard]] bool finished() const;
    [[nodiscard]] const std::string& error() const noexcept { return error_; }
    [[nodiscard]] Oracle& oracle() noexcept { return oracle_; }
    /// Lets each live rank send one more message, to all.
    void farewell();
    /// Returns, for a report, the messages that have not arrived.
    [[nodiscard]] std::string due() const;
    [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_; }

private:
    class Actor : public Program {
    public:
        Actor(Traffic& traffic, Rank rank) : traffic_(traffic), rank_(rank) {}
        Nanos act(Nanos now) override { return traffic_.act(rank_, now); }

    private:
        Traffic& traffic_;
        Rank rank_;
    };
    struct State {
        std::unique_ptr<Actor> actor;
        unsigned sent = 0;
        bool dead = false;
        Nanos read_at = 0;
        Nanos send_at = 0;
        // The message being made; kept until the ring has space for it.
        bool planned = false;
        std::uint64_t number = 0;
        std::uint32_t stream = 0;
        std::uint64_t subset = 0;
        std::size_t length = 0;
        std::size_t offset = 0;  ///< in chunks
        std::vector<Rank> to;
    };

    [[nodiscard]] bool all_sent() const;
    Nanos act(Rank rank, Nanos now);
    void poll(Rank rank);
    void plan(Rank rank, State& s);
    void plan_subset(Rank rank, State& s, const std::vector<Rank>& members);
    bool submit(Rank rank);
    [[nodiscard]] bool is_dead(Rank rank) const { return state_[rank].dead; }
    [[nodiscard]] Nanos around(Nanos mean);

    SimCluster& cluster_;
    TrafficConfig config_;
    Prng prng_;
    Rank ranks_;
    bool anyone_dead_ = false;
    bool farewell_ = false;
    std::vector<Rank> world_;
    std::vector<std::pair<GroupHandle, std::vector<Rank>>> groups_;
    std::vector<State> state_;
    Oracle oracle_;
    std::uint64_t delivered_ = 0;
    std::string error_;
};

}  // namespace ulc::sim
