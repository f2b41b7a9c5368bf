// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/check/busy_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>

#include "base/prng.h"
#include "tests/sim/check/talker.h"
#include "tests/sim/cluster/events.h"

namespace ulc::sim {
namespace {

constexpr Nanos kBusyFor = 30 * kSecond;
constexpr Nanos kAwayMin = 100 * kMillisecond;
constexpr Nanos kAwayMax = 8 * kSecond;
constexpr Nanos kRunsMin = 20 * kMillisecond;  ///< between two absences
constexpr Nanos kRunsMax = 3 * kSecond;
constexpr Nanos kPatience = 15 * kSecond;        ///< as coll/mpi and libulc-fi.so give their jobs
constexpr Nanos kNoticed = 2500 * kMillisecond;  ///< node_dead, and a sweep
constexpr Nanos kPatienceMax = 60 * kSecond;     ///< N-50
constexpr Nanos kFormLimit = 60 * kSecond;

using Talkers = std::vector<std::unique_ptr<Talker>>;

/// Returns a length between the two, each factor as likely as its inverse.
Nanos draw(Prng& prng, Nanos least, Nanos most) {
    const double power = static_cast<double>(prng.below(1U << 20)) / (1U << 20);
    const double ratio = static_cast<double>(most) / static_cast<double>(least);
    return static_cast<Nanos>(static_cast<double>(least) * std::pow(ratio, power));
}

/// Starts the talkers of the ranks that begin with client `first`.
Talkers start(SimCluster& cluster, const BusyScenario& scenario, std::size_t first,
              std::uint16_t ranks) {
    Talkers talkers;
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        talkers.push_back(std::make_unique<Talker>(cluster, first, rank, ranks, scenario.think,
                                                   scenario.talkative,
                                                   scenario.seed * 1000 + first + rank));
        cluster.set_program(first + rank, talkers.back().get());
    }
    return talkers;
}

/// Returns the first death of a rank whose node lives; empty: there is none.
std::string false_death(const SimCluster& cluster, const Talkers& talkers, Nanos from) {
    for (const auto& talker : talkers) {
        for (const auto& [dead, at] : talker->died_at) {
            if (cluster.gone(talkers[dead]->index())) continue;
            return "a false death after " + std::to_string((at - from) / kMillisecond) +
                   " ms: node " + std::to_string(cluster.node_of(talker->index())) + " gave up " +
                   std::to_string(cluster.node_of(talkers[dead]->index()));
        }
    }
    return {};
}

/// Returns the first living rank that heard of the death of rank 0 too late; empty: none did.
std::string late_death(const SimCluster& cluster, const Talkers& talkers, Nanos cut, Nanos limit) {
    for (std::size_t rank = 1; rank < talkers.size(); ++rank) {
        const auto at = talkers[rank]->died_at.find(0);
        const std::string who = "node " + std::to_string(cluster.node_of(talkers[rank]->index()));
        if (at == talkers[rank]->died_at.end()) return who + " never heard of the dead node";
        if (at->second - cut > limit)
            return who + " heard of the dead node after " +
                   std::to_string((at->second - cut) / kMillisecond) + " ms";
    }
    return {};
}

std::string check(SimCluster& cluster, const BusyScenario& scenario, CheckResult& result) {
    const auto own = [](std::size_t rank) { return static_cast<std::uint16_t>(rank); };
    if (!cluster.form(scenario.nodes, own, kFormLimit, "patient", kPatience))
        return "the job did not form";
    if (scenario.prompt > 0 && !cluster.form(scenario.prompt, own, kFormLimit, "prompt"))
        return "the job without patience did not form";
    cluster.net().faults().set({.loss = scenario.loss});
    const Talkers patient = start(cluster, scenario, 0, scenario.nodes);
    const Talkers prompt = start(cluster, scenario, scenario.nodes, scenario.prompt);
    const Nanos from = cluster.now();
    const Nanos cut = from + scenario.cut_at;
    for (const Absence& one : scenario.absences)
        cluster.at(from + one.at,
                   [&cluster, one] { cluster.pause_node(one.node, cluster.now() + one.lasts); });
    if (scenario.prompt > 0) cluster.at(cut, [&cluster] { cluster.kill_node(0); });
    const auto never = [] { return false; };
    (void)cluster.run(kBusyFor + kAwayMax, never);
    for (const Talkers* job : {&patient, &prompt})
        for (const auto& talker : *job)
            talker->fall_silent();
    // A death of node 0 in the patient job may take until then.
    (void)cluster.run(scenario.prompt > 0 ? kPatienceMax : kPatience, never);
    std::string error;
    const auto note = [&error](const std::string& found) {
        if (error.empty()) error = found;
    };
    for (const Talkers* job : {&patient, &prompt}) {
        note(false_death(cluster, *job, from));
        note(unfinished(cluster, *job));
        for (const auto& talker : *job) {
            for (const std::uint64_t got : talker->received)
                result.deliveries += got;
            cluster.set_program(talker->index(), nullptr);
        }
    }
    if (scenario.prompt > 0) {
        note(late_death(cluster, prompt, cut, kNoticed));
        note(late_death(cluster, patient, cut, kPatienceMax + kAwayMax));
    }
    result.virtual_time = cluster.now();
    result.turns = cluster.turns();
    if (!error.empty()) return error;
    heal(cluster);
    const std::uint32_t out = cluster.shut_down();
    return out == 0 ? "" : std::to_string(out) + " segments leaked";
}

}  // namespace

BusyScenario busy_scenario(std::uint64_t seed) {
    Prng prng(seed ^ 0xb0510adULL);
    BusyScenario s;
    s.seed = seed;
    const auto busy = static_cast<std::uint16_t>(2 + prng.below(4));
    s.prompt = prng.chance(0.5) ? static_cast<std::uint16_t>(2 + prng.below(2)) : std::uint16_t{0};
    s.nodes = static_cast<std::uint16_t>(busy + s.prompt);
    s.cut_at = 2 * kSecond + static_cast<Nanos>(prng.below(kBusyFor / 2));
    static constexpr double kLoss[] = {0, 0.01, 0.05};
    s.loss = kLoss[prng.below(3)];
    s.think = kMillisecond * static_cast<Nanos>(20 + prng.below(500));
    static constexpr double kTalkative[] = {0, 0.5, 1};
    s.talkative = kTalkative[prng.below(3)];
    for (std::uint16_t node = s.prompt; node < s.nodes; ++node) {
        for (Nanos at = draw(prng, kRunsMin, kRunsMax); at < kBusyFor;) {
            const Nanos lasts = draw(prng, kAwayMin, kAwayMax);
            s.absences.push_back({node, at, lasts});
            at += lasts + draw(prng, kRunsMin, kRunsMax);
        }
    }
    return s;
}

std::string BusyScenario::describe() const {
    std::ostringstream out;
    out << "  busy: " << nodes << " nodes, loss " << loss << ", a message in "
        << think / kMicrosecond << " us of " << talkative << " of the ranks; ";
    if (prompt > 0)
        out << prompt << " prompt nodes, of which node 0 dies at " << cut_at / kMicrosecond
            << " us";
    else
        out << "none prompt";
    for (const Absence& one : absences)
        out << "\n  at " << one.at / kMicrosecond << " us: node " << one.node << " is away for "
            << one.lasts / kMicrosecond << " us";
    out << '\n';
    return out.str();
}

CheckResult run_busy(const BusyScenario& scenario, Recorder* recorder) {
    ClusterConfig config;
    config.recorder = recorder;
    config.seed = config.net.seed = scenario.seed;
    config.net.ports = scenario.nodes;
    SimCluster cluster(config);
    CheckResult result;
    result.error = check(cluster, scenario, result);
    return result;
}

}  // namespace ulc::sim
