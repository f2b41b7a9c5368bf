// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/check/check_run.h"

#include <algorithm>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"

namespace ulc::sim {
namespace {

constexpr Nanos kFormLimit = 60 * kSecond;
constexpr int kHealedPatiences = 30;        ///< for the remaining traffic, once the faults are over
constexpr Nanos kQuietLimit = 5 * kSecond;  ///< for the last acknowledgements
constexpr std::uint64_t kTurnsMax = 50'000'000;

std::string at(const SimCluster& cluster) {
    return " (at " + std::to_string(cluster.now() / kMicrosecond) + " us)";
}

// Marks the event's ranks dead in the oracle, then in the cluster.
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

// ---------------------------------------------------------------- the oracle beyond the messages

// Checks that no segment is held once nothing is in flight: data for a dead rank are released when
// its death is known.
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

// Runs until done. Returns an empty string if that was in time.
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
    plan_events(cluster, scenario.events,
                [&](const ScenarioEvent& event) { kill(cluster, traffic, scenario, event); });
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

void note_upgrades(const SimCluster& cluster, std::string& error, CheckResult& result) {
    result.upgrades = cluster.upgrades();
    if (error.empty() && !cluster.upgrade_error().empty())
        error = "upgrade: " + cluster.upgrade_error();
}

// Makes the group at every member. Returns ULC_OK, or the error of the first member that fails.
int make_group(LibCluster& lib, const std::vector<std::uint16_t>& ranks,
               std::vector<ulc_group>& handles) {
    std::vector<ulc_request> requests(lib.ranks());
    std::vector<int> states(lib.ranks(), ULC_OK);
    handles.assign(lib.ranks(), 0);
    for (const std::uint16_t rank : ranks)
        states[rank] =
            ulc_group_create(lib.endpoint(rank), ranks.data(),
                             static_cast<std::uint16_t>(ranks.size()), &requests[rank]) == ULC_OK
                ? ULC_ERR_AGAIN
                : ULC_ERR_LIMIT;
    const auto look = [&](std::uint16_t rank, Nanos) {
        ulc_status status{};
        if (states[rank] != ULC_ERR_AGAIN ||
            ulc_test(lib.endpoint(rank), &requests[rank], &status) != ULC_OK)
            return kNever;
        states[rank] = status.error;
        handles[rank] = status.group;
        return kNever;
    };
    const auto made = [&] { return std::ranges::count(states, ULC_ERR_AGAIN) == 0; };
    (void)lib.run(kFormLimit, made, look);
    const auto failed = std::ranges::find_if(states, [](int state) { return state != ULC_OK; });
    return failed == states.end() ? ULC_OK : *failed;
}

std::string check_collectives(const RandomScenario& scenario, CheckResult& result) {
    LibCluster lib(scenario.cluster, scenario.ranks, [&](std::uint16_t rank) {
        client::Limits limits;
        limits.offload = (scenario.seed + rank) % 3 == 0 ? 0 : 1;
        return limits;
    });
    SimCluster& cluster = lib.cluster();
    if (!lib.form(kFormLimit)) return "the job did not form";
    std::vector<std::vector<CollectiveActor>> actors(scenario.ranks);  // by rank
    for (const RandomScenario::GroupWork& work : scenario.work) {
        std::vector<ulc_group> handles;
        if (work.ranks.empty()) {
            for (std::uint16_t rank = 0; rank < scenario.ranks; ++rank)
                handles.push_back(ulc_world(lib.endpoint(rank)));
        } else if (const int error = make_group(lib, work.ranks, handles); error != ULC_OK) {
            return std::string("a group was not made: ") + ulc_error_text(error);
        }
        for (std::uint16_t rank = 0; rank < scenario.ranks; ++rank)
            if (handles[rank] != 0)
                actors[rank].emplace_back(lib.endpoint(rank), handles[rank], work.operations,
                                          scenario.seed * 100 + rank + handles[rank],
                                          scenario.overlap);
    }
    plan_events(cluster, scenario.events);
    const auto all_ended = [](const std::vector<CollectiveActor>& of_rank) {
        return std::ranges::all_of(of_rank, [](const CollectiveActor& a) { return a.ended(); });
    };
    const auto ended = [&] {
        return cluster.turns() > kTurnsMax || std::ranges::all_of(actors, all_ended);
    };
    const auto act = [&](std::uint16_t rank, Nanos now) {
        Nanos next = kNever;
        for (CollectiveActor& actor : actors[rank]) {
            if (scenario.blocking) actor.run_until_waiting();
            next = std::min(
                next, scenario.blocking && !actor.ended() ? now + kMillisecond : actor.step(now));
        }
        return next;
    };
    cluster.at(cluster.now() + scenario.faulty, [&cluster] { heal(cluster); });
    const bool in_time =
        lib.run(scenario.faulty + kHealedPatiences * scenario.patience, ended, act);
    std::string error;
    for (std::uint16_t rank = 0; rank < scenario.ranks; ++rank) {
        for (const CollectiveActor& actor : actors[rank]) {
            result.deliveries += actor.at();
            if (!error.empty() || (actor.done() && actor.wrong().empty())) continue;
            error =
                "rank " + std::to_string(rank) + ", " + std::to_string(actor.at()) +
                " operations done: " + (in_time ? ulc_error_text(actor.error()) : "not in time") +
                " " + actor.wrong() + at(cluster);
        }
    }
    result.virtual_time = cluster.now();
    result.turns = cluster.turns();
    note_upgrades(cluster, error, result);
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
    note_upgrades(cluster, result.error, result);
    return result;
}

}  // namespace ulc::sim
