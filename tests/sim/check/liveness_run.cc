// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/check/liveness_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>

#include "base/prng.h"
#include "tests/sim/check/talker.h"
#include "tests/sim/cluster/events.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr Nanos kIdle = 250 * kMillisecond;  ///< node_idle of the default configuration
constexpr Nanos kSlack = 100 * kMillisecond;
constexpr char kJob[] = "liveness";

void arm(SimCluster& cluster, const LivenessFault& fault, Nanos start) {
    cluster.at(start + fault.at, [&cluster, fault, start] {
        Faults& faults = cluster.net().faults();
        switch (fault.kind) {
            case LivenessFault::Kind::kPause:
                cluster.pause_node(fault.node, start + fault.at + fault.lasts);
                break;
            case LivenessFault::Kind::kOneWay:
                faults.cut(fault.node, fault.other, true);
                break;
            case LivenessFault::Kind::kUnplug:
                faults.unplug(fault.node);
                break;
            case LivenessFault::Kind::kRestart:
                if (!cluster.alive(fault.node)) break;  // another one is under way
                cluster.kill_node(fault.node);
                cluster.at(start + fault.at + fault.lasts,
                           [&cluster, fault] { cluster.start_node(fault.node); });
                break;
            case LivenessFault::Kind::kSplit: {
                std::vector<std::uint16_t> islands(cluster.nodes());
                for (std::size_t node = 0; node < islands.size(); ++node)
                    islands[node] = node <= fault.other ? 0 : 1;
                faults.partition(islands);
                break;
            }
        }
    });
}

std::string disagreement(const SimCluster& cluster,
                         const std::vector<std::unique_ptr<Talker>>& talkers,
                         const LivenessScenario& scenario, bool deaths_allowed) {
    for (std::size_t a = 0; a < talkers.size(); ++a) {
        if (cluster.gone(a)) continue;
        for (std::size_t b = 0; b < talkers.size(); ++b) {
            const bool dead = talkers[a]->holds_dead(b);
            if (cluster.gone(b)) {
                if (dead) continue;
                return pair_text(a, b) + ": the second was killed, and the first does not know";
            }
            if (dead && scenario.node_of(a) == scenario.node_of(b))
                return pair_text(a, b) + " share a node, and one holds the other for dead";
            if (dead != talkers[b]->holds_dead(a))
                return pair_text(a, b) + " disagree: only one holds the other for dead";
            if (dead && !deaths_allowed)
                return pair_text(a, b) + ": dead, after a pause that was too short for it";
        }
    }
    return {};
}

/// Lets all ranks leave and join again, then each send to all.
std::string join_again(SimCluster& cluster, const LivenessScenario& scenario) {
    heal(cluster);
    for (std::size_t rank = 0; rank < scenario.ranks; ++rank)
        cluster.close_client(rank);
    (void)cluster.run(2 * scenario.dead + kSlack, [] { return false; });
    const std::size_t first = cluster.size();
    const auto place = [&](std::size_t rank) { return scenario.node_of(rank); };
    if (!cluster.form(scenario.ranks, place, 60 * kSecond, kJob))
        return "the job did not form again after a restart";
    for (std::size_t rank = 0; rank < scenario.ranks; ++rank) {
        RingClient& client = cluster.client(first + rank);
        if (!client.send(client.world, 1, Oracle::payload(1, 100))) return "a send was refused";
        cluster.touch(cluster.node_of(first + rank));
    }
    const auto all_heard = [&] {
        for (std::size_t rank = 0; rank < scenario.ranks; ++rank) {
            RingClient& client = cluster.client(first + rank);
            client.poll();
            if (client.messages.size() + 1 < scenario.ranks) return false;
        }
        return true;
    };
    return cluster.run(60 * kSecond, all_heard) ? "" : "a message of the second job did not arrive";
}

std::string check(SimCluster& cluster, const LivenessScenario& scenario, CheckResult& result) {
    if (!cluster.form(
            scenario.ranks, [&](std::size_t rank) { return scenario.node_of(rank); }, 60 * kSecond,
            kJob))
        return "the job did not form";
    cluster.net().faults().set({.loss = scenario.loss});
    std::vector<std::unique_ptr<Talker>> talkers;
    for (std::size_t rank = 0; rank < scenario.ranks; ++rank) {
        talkers.push_back(std::make_unique<Talker>(cluster, 0, rank, scenario.ranks, scenario.think,
                                                   scenario.talkative,
                                                   scenario.seed * 1000 + rank));
        cluster.set_program(rank, talkers.back().get());
    }
    const Nanos start = cluster.now();
    Nanos edge = 0;
    bool deaths_allowed = false;
    bool restarts = false;
    Nanos paused = 0;
    Nanos away = 0;
    for (const LivenessFault& fault : scenario.faults) {
        arm(cluster, fault, start);
        edge = std::max(edge, fault.at + fault.lasts);
        away += fault.lasts;
        restarts |= fault.kind == LivenessFault::Kind::kRestart;
        // A node may have been silent for node_idle and a ping before it stops, and two pauses may
        // be one.
        const bool pause = fault.kind == LivenessFault::Kind::kPause;
        if (pause) paused += fault.lasts;
        if (!pause || paused + 2 * kIdle > scenario.dead) deaths_allowed = true;
    }
    const auto never = [] { return false; };
    // A node that was away is waited for up to four times as long (N-50).
    const Nanos patience = std::min(4 * away, 60 * kSecond);
    (void)cluster.run(edge + patience + 2 * scenario.dead + kSlack, never);
    std::string error = disagreement(cluster, talkers, scenario, deaths_allowed);
    for (const auto& talker : talkers)
        talker->fall_silent();
    if (error.empty()) {
        (void)cluster.run(2 * scenario.dead + kSlack, never);
        error = disagreement(cluster, talkers, scenario, deaths_allowed);
    }
    if (error.empty()) error = unfinished(cluster, talkers);
    for (std::size_t rank = 0; rank < scenario.ranks; ++rank) {
        for (const std::uint64_t got : talkers[rank]->received)
            result.deliveries += got;
        cluster.set_program(rank, nullptr);
    }
    if (error.empty() && restarts) error = join_again(cluster, scenario);
    result.virtual_time = cluster.now();
    result.turns = cluster.turns();
    if (!error.empty()) return error;
    heal(cluster);
    const std::uint32_t out = cluster.shut_down();
    return out == 0 ? "" : std::to_string(out) + " segments leaked";
}

}  // namespace

LivenessScenario liveness_scenario(std::uint64_t seed) {
    Prng prng(seed ^ 0x11fe11feULL);
    LivenessScenario s;
    s.seed = seed;
    s.nodes = static_cast<std::uint16_t>(2 + prng.below(4));
    s.ranks = static_cast<std::uint16_t>(s.nodes * (1 + prng.below(2)));
    static constexpr Nanos kDead[] = {600 * kMillisecond, kSecond, 2 * kSecond};
    s.dead = kDead[prng.below(3)];
    static constexpr double kLoss[] = {0, 0, 0.01, 0.05};
    s.loss = kLoss[prng.below(4)];
    s.think = s.dead / static_cast<Nanos>(4 + prng.below(60));
    static constexpr double kTalkative[] = {0, 0.5, 1};
    s.talkative = kTalkative[prng.below(3)];
    const std::uint64_t faults = 1 + prng.below(2);
    for (std::uint64_t n = 0; n < faults; ++n) {
        LivenessFault fault;
        fault.kind = static_cast<LivenessFault::Kind>(prng.below(2) == 0 ? 0 : prng.below(5));
        fault.at = static_cast<Nanos>(prng.below(static_cast<std::uint64_t>(s.dead)));
        fault.node = static_cast<std::uint16_t>(prng.below(s.nodes));
        fault.other =
            static_cast<std::uint16_t>((fault.node + 1 + prng.below(s.nodes - 1U)) % s.nodes);
        if (fault.kind == LivenessFault::Kind::kSplit)
            fault.other = static_cast<std::uint16_t>(prng.below(s.nodes - 1U));
        // 0.1 to 10 × dead, each factor as likely as its inverse.
        const double power = static_cast<double>(prng.below(1U << 20)) / (1U << 19) - 1;
        if (fault.kind == LivenessFault::Kind::kPause)
            fault.lasts = static_cast<Nanos>(static_cast<double>(s.dead) * std::pow(10, power));
        if (fault.kind == LivenessFault::Kind::kRestart)
            fault.lasts = kMillisecond +
                          static_cast<Nanos>(prng.below(2 * static_cast<std::uint64_t>(s.dead)));
        s.faults.push_back(fault);
    }
    return s;
}

std::string LivenessScenario::describe() const {
    static constexpr const char* kNames[] = {"pause", "one-way", "unplug", "restart", "split"};
    std::ostringstream out;
    out << "  liveness: " << nodes << " nodes, " << ranks << " ranks, dead after "
        << dead / kMillisecond << " ms, loss " << loss << ", a message in " << think / kMicrosecond
        << " us of " << talkative << " of the ranks";
    for (const LivenessFault& fault : faults)
        out << "\n  at " << fault.at / kMicrosecond
            << " us: " << kNames[static_cast<std::size_t>(fault.kind)] << " of node " << fault.node
            << ", other " << fault.other << ", for " << fault.lasts / kMicrosecond << " us";
    out << '\n';
    return out.str();
}

CheckResult run_liveness(const LivenessScenario& scenario, Recorder* recorder) {
    ClusterConfig config;
    config.recorder = recorder;
    config.seed = config.net.seed = scenario.seed;
    config.net.ports = scenario.nodes;
    config.engine.params.peer_dead = scenario.dead;
    config.engine.jobs.liveness.node_dead = scenario.dead;
    SimCluster cluster(config);
    CheckResult result;
    result.error = check(cluster, scenario, result);
    return result;
}

}  // namespace ulc::sim
