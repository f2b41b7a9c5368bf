#include "tests/sim/check/check_run.h"

#include <algorithm>

#include "tests/sim/lib_cluster.h"

namespace ulc::sim {
namespace {

constexpr Nanos kFormLimit = 60 * kSecond;
constexpr int kHealedPatiences = 30;        ///< for the rest, when the faults are over
constexpr Nanos kQuietLimit = 5 * kSecond;  ///< for the last acknowledgements
constexpr std::uint64_t kTurnsMax = 50'000'000;

std::string at(const SimCluster& cluster) {
    return " (at " + std::to_string(cluster.now() / kMicrosecond) + " us)";
}

// ---------------------------------------------------------------- events

void begin(SimCluster& cluster, const ScenarioEvent& event, Nanos until) {
    const auto node = static_cast<std::uint16_t>(event.index);
    switch (event.kind) {
        case EventKind::kPartition: {
            std::vector<std::uint16_t> islands(std::max<std::uint16_t>(cluster.nodes(), 2));
            for (std::size_t port = 0; port < islands.size(); ++port)
                islands[port] = static_cast<std::uint16_t>(event.index >> port & 1U);
            cluster.net().faults().partition(islands);
            return;
        }
        case EventKind::kUnplug:
            cluster.net().faults().unplug(node);
            return;
        case EventKind::kSlowNode:
            cluster.set_speed(node, event.speed);
            return;
        case EventKind::kPauseNode:
            cluster.pause_node(node, until);
            return;
        case EventKind::kPauseClient:
            cluster.pause_client(event.index, until);
            return;
        case EventKind::kKillClient:
        case EventKind::kKillNode:
            return;  // by the caller, who knows the ranks
    }
}

void end(SimCluster& cluster, const ScenarioEvent& event) {
    const auto node = static_cast<std::uint16_t>(event.index);
    switch (event.kind) {
        case EventKind::kPartition:
            cluster.net().faults().partition(
                std::vector<std::uint16_t>(std::max<std::uint16_t>(cluster.nodes(), 2)));
            return;
        case EventKind::kUnplug:
            if (cluster.alive(node)) cluster.net().faults().unplug(node, false);
            return;
        case EventKind::kSlowNode:
            cluster.set_speed(node, 1);
            return;
        case EventKind::kPauseNode:
        case EventKind::kPauseClient:
        case EventKind::kKillClient:
        case EventKind::kKillNode:
            return;
    }
}

void kill(SimCluster& cluster, Traffic& traffic, const RandomScenario& scenario,
          const ScenarioEvent& event) {
    for (Rank rank = 0; rank < scenario.ranks; ++rank) {
        const bool dies = event.kind == EventKind::kKillClient
                              ? rank == event.index
                              : scenario.node_of(rank) == event.index;
        if (dies) traffic.dead(rank);
    }
    if (event.kind == EventKind::kKillClient) {
        cluster.kill_client(event.index);
    } else {
        cluster.kill_node(static_cast<std::uint16_t>(event.index));
    }
}

// Begins and ends of all events. traffic: of a run that may kill; else nullptr.
void plan_events(SimCluster& cluster, const RandomScenario& scenario, Traffic* traffic) {
    const Nanos start = cluster.now();
    for (const ScenarioEvent& event : scenario.events) {
        const Nanos until = start + event.at + event.lasts;
        const bool kills =
            event.kind == EventKind::kKillClient || event.kind == EventKind::kKillNode;
        if (kills) {
            cluster.at(start + event.at, [&cluster, &scenario, traffic, event] {
                kill(cluster, *traffic, scenario, event);
            });
            continue;
        }
        cluster.at(start + event.at, [&cluster, event, until] {
            const bool of_node =
                event.kind != EventKind::kPauseClient && event.kind != EventKind::kPartition;
            if (of_node && !cluster.alive(static_cast<std::uint16_t>(event.index))) return;
            begin(cluster, event, until);
        });
        cluster.at(until, [&cluster, event] { end(cluster, event); });
    }
}

void heal(SimCluster& cluster) {
    cluster.net().faults().heal(true);
    for (std::uint16_t node = 0; node < cluster.nodes(); ++node) {
        if (!cluster.alive(node)) continue;
        cluster.net().faults().unplug(node, false);
        cluster.set_speed(node, 1);
    }
}

// ---------------------------------------------------------------- the oracle beyond the messages

// When nothing is under way, nobody holds a segment: what was for the dead is let go of when their death is known.
std::string check_quiet(SimCluster& cluster, Nanos limit) {
    const auto held = [&] {
        std::uint64_t sum = 0;
        for (std::uint16_t node = 0; node < cluster.nodes(); ++node)
            if (cluster.alive(node)) sum += cluster.net().segments_out(node);
        return sum;
    };
    if (cluster.run(limit, [&] { return held() == 0; })) return {};
    return "segments are held when all is done: " + std::to_string(held()) + at(cluster);
}

std::string check_shut_down(SimCluster& cluster) {
    const std::uint32_t out = cluster.shut_down();
    return out == 0 ? "" : std::to_string(out) + " segments leaked";
}

// Runs until done. The empty string: in time.
template <typename Done>
std::string run_until(SimCluster& cluster, Nanos limit, const char* what, Done done) {
    bool busy = false;
    const bool in_time = cluster.run(limit, [&] {
        busy = cluster.turns() > kTurnsMax;
        return busy || done();
    });
    if (busy) return std::string(what) + ": more turns than any honest run takes" + at(cluster);
    if (!in_time)
        return std::string(what) + ": not within " + std::to_string(limit / kMillisecond) + " ms" +
               at(cluster);
    return {};
}

// ---------------------------------------------------------------- the two kinds of run

std::string check_traffic(SimCluster& cluster, const RandomScenario& scenario,
                          CheckResult& result) {
    const auto place = [&](std::size_t rank) { return scenario.node_of(rank); };
    if (!cluster.form(scenario.ranks, place, kFormLimit)) return "the job did not form";
    Traffic traffic(cluster, scenario.ranks, scenario.traffic, scenario.seed);
    if (!traffic.make_groups(kFormLimit)) return "groups were not made";
    plan_events(cluster, scenario, &traffic);
    traffic.start();
    const Nanos faulty_until = cluster.now() + scenario.faulty;
    (void)run_until(cluster, scenario.faulty, "under faults",
                    [&] { return traffic.finished() && cluster.now() >= faulty_until; });
    heal(cluster);
    std::string error = traffic.error();
    if (error.empty())
        error = run_until(cluster, kHealedPatiences * scenario.patience, "healed",
                          [&] { return traffic.finished(); });
    if (error.empty() && traffic.error().empty()) {
        traffic.farewell();
        error = run_until(cluster, kHealedPatiences * scenario.patience, "farewell",
                          [&] { return traffic.finished(); });
    }
    if (!traffic.error().empty())
        error = traffic.error() + at(cluster);
    else if (!error.empty())
        error += "; " + traffic.due();
    if (error.empty())
        error = check_quiet(cluster,
                            kQuietLimit + (scenario.somebody_dies() ? 3 : 0) * scenario.patience);
    if (error.empty()) error = check_shut_down(cluster);
    result.deliveries = traffic.delivered();
    return error;
}

std::string check_collectives(const RandomScenario& scenario, CheckResult& result) {
    LibCluster lib(scenario.cluster, scenario.ranks);
    SimCluster& cluster = lib.cluster();
    if (!lib.form(kFormLimit)) return "the job did not form";
    plan_events(cluster, scenario, nullptr);
    std::vector<CollectiveActor> actors;
    for (std::uint16_t rank = 0; rank < scenario.ranks; ++rank)
        actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), scenario.operations,
                            scenario.seed * 100 + rank);
    const auto ended = [&] {
        return cluster.turns() > kTurnsMax ||
               std::ranges::all_of(actors, [](const CollectiveActor& a) { return a.ended(); });
    };
    const auto act = [&](std::uint16_t rank, Nanos now) { return actors[rank].step(now); };
    cluster.at(cluster.now() + scenario.faulty, [&cluster] { heal(cluster); });
    const bool in_time =
        lib.run(scenario.faulty + kHealedPatiences * scenario.patience, ended, act);
    std::string error;
    for (std::uint16_t rank = 0; rank < scenario.ranks && error.empty(); ++rank) {
        const CollectiveActor& actor = actors[rank];
        result.deliveries += actor.at();
        if (actor.done() && actor.wrong().empty()) continue;
        error = "rank " + std::to_string(rank) + " at operation " + std::to_string(actor.at()) +
                ": " + (in_time ? ulc_error_text(actor.error()) : "not in time") + " " +
                actor.wrong() + at(cluster);
    }
    result.virtual_time = cluster.now();
    result.turns = cluster.turns();
    if (error.empty() && lib.shut_down() != 0) error = "segments leaked";
    return error;
}

}  // namespace

CheckResult run_check(const RandomScenario& scenario) {
    CheckResult result;
    if (scenario.collective) {
        result.error = check_collectives(scenario, result);
        return result;
    }
    SimCluster cluster(scenario.cluster);
    result.error = check_traffic(cluster, scenario, result);
    result.virtual_time = cluster.now();
    result.turns = cluster.turns();
    return result;
}

}  // namespace ulc::sim
