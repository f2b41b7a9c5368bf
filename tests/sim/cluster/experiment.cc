// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/cluster/experiment.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/message_programs.h"

namespace ulc::sim {
namespace {

constexpr Nanos kFormLimit = 60 * kSecond;
constexpr Nanos kLookAgain = kMillisecond;  ///< like ulc_coll_wait(), which checks for dead members

/// All monotonic counters at one moment.
struct Snapshot {
    explicit Snapshot(SimCluster& cluster) : at(cluster.now()), turns(cluster.turns()) {
        for (std::size_t id = 0; id < kCounterCount; ++id)
            counters.push_back(cluster.count(static_cast<Counter>(id)));
        for (std::uint16_t node = 0; node < cluster.nodes(); ++node) {
            const NicStats& nic = cluster.net().stats(node);
            tx_frames += nic.tx_frames;
            tx_octets += nic.tx_octets;
            overruns += nic.overruns;
            given_up += nic.given_up;
        }
    }
    Nanos at;
    std::uint64_t turns;
    std::vector<std::uint64_t> counters;
    std::uint64_t tx_frames = 0;
    std::uint64_t tx_octets = 0;
    std::uint64_t overruns = 0;
    std::uint64_t given_up = 0;
};

void note(SimCluster& cluster, const Snapshot& before, Figures& figures) {
    const Snapshot after(cluster);
    figures.elapsed = after.at - before.at;
    figures.turns = after.turns - before.turns;
    for (std::size_t id = 0; id < kCounterCount; ++id) {
        // The counters of an engine that died are lost with it.
        const std::uint64_t now = after.counters[id];
        figures.counters.push_back(now - std::min(now, before.counters[id]));
    }
    figures.tx_frames = after.tx_frames - before.tx_frames;
    figures.tx_octets = after.tx_octets - before.tx_octets;
    figures.overruns = after.overruns - before.overruns;
    figures.given_up = after.given_up - before.given_up;
    figures.medium = cluster.net().medium_report();
    std::ranges::sort(figures.latency);
}

std::uint16_t ranks_of(const Experiment& experiment) {
    return experiment.ranks == 0 ? experiment.cluster.net.ports : experiment.ranks;
}

/// Runs messages over the rings.
class MessageRun {
public:
    MessageRun(const Experiment& experiment, Figures& figures)
        : experiment_(experiment), figures_(figures), cluster_(experiment.cluster) {
        cluster_.net().set_tap(experiment.tap);
    }

    void run() {
        const std::uint16_t ranks = ranks_of(experiment_);
        const std::uint16_t nodes = experiment_.cluster.net.ports;
        const auto place = [nodes](std::size_t rank) {
            return static_cast<std::uint16_t>(rank % nodes);
        };
        if (!cluster_.form(ranks, place, kFormLimit)) {
            figures_.error = "the job did not form";
            figures_.counters.resize(kCounterCount);
            return;
        }
        figures_.form_time = cluster_.now();
        make_programs(ranks);
        plan_events(cluster_, experiment_.events);
        before_ = std::make_unique<Snapshot>(cluster_);
        log_.on_delivery = [this] { on_delivery(); };
        for (Rank rank = 0; rank < ranks; ++rank)
            cluster_.set_program(rank, programs_[rank].get());
        const bool in_time = cluster_.run(experiment_.limit, [this] {
            return log_.messages == expected_ || !log_.error.empty();
        });
        figures_.messages = log_.messages - warm_messages_;
        figures_.octets = log_.octets - warm_octets_;
        figures_.latency.assign(log_.latency.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                           warm_latencies_, log_.latency.size())),
                                log_.latency.end());
        if (figures_.octets_by_source.empty()) figures_.octets_by_source = log_.octets_by_source;
        note(cluster_, *before_, figures_);
        figures_.error = log_.error;
        if (figures_.error.empty() && !in_time)
            figures_.error = std::to_string(expected_ - log_.messages) + " of " +
                             std::to_string(expected_) + " messages did not arrive in time";
        for (Rank rank = 0; rank < ranks; ++rank)
            if (!cluster_.gone(rank)) cluster_.set_program(rank, nullptr);
    }

private:
    void make_programs(std::uint16_t ranks) {
        const ExperimentTraffic& t = experiment_.traffic;
        const std::uint64_t count = t.count + t.warm_up;
        log_.sent_at.resize(ranks);
        log_.octets_by_source.resize(ranks);
        std::uint64_t receivers = 1;
        for (Rank rank = 0; rank < ranks; ++rank) {
            RingClient& client = cluster_.client(rank);
            const auto stream = [&](std::uint32_t to) {
                programs_.push_back(
                    std::make_unique<StreamProgram>(client, rank, to, t.octets, count, log_));
            };
            switch (t.kind) {
                case TrafficKind::kStream:
                    if (rank == 0) stream(1);
                    break;
                case TrafficKind::kMulticast:
                    if (rank == 0) stream(client.world);
                    receivers = ranks - 1U;
                    break;
                case TrafficKind::kIncast:
                    if (rank != 0) stream(0);
                    receivers = ranks - 1U;
                    break;
                case TrafficKind::kPingPong:
                    if (rank < 2)
                        programs_.push_back(std::make_unique<PingPong>(
                            client, rank, static_cast<Rank>(1 - rank), t.octets, count, log_));
                    break;
                case TrafficKind::kCollective:
                    break;
            }
            if (programs_.size() == rank)
                programs_.push_back(std::make_unique<Receiver>(client, rank, t.octets, log_));
        }
        if (t.kind == TrafficKind::kMulticast) figures_.receivers = receivers;
        octets_each_ = count * t.octets;
        expected_ = count * receivers;
        warm_ = t.warm_up * receivers;
    }

    void on_delivery() {
        if (figures_.octets_by_source.empty() &&
            std::ranges::max(log_.octets_by_source) == octets_each_)
            figures_.octets_by_source = log_.octets_by_source;
        if (warm_ == 0 || log_.messages != warm_) return;
        before_ = std::make_unique<Snapshot>(cluster_);
        warm_messages_ = log_.messages;
        warm_octets_ = log_.octets;
        warm_latencies_ = log_.latency.size();
    }

    const Experiment& experiment_;
    Figures& figures_;
    SimCluster cluster_;
    MessageLog log_;
    std::vector<std::unique_ptr<Program>> programs_;
    std::unique_ptr<Snapshot> before_;
    std::uint64_t expected_ = 0;
    std::uint64_t octets_each_ = 0;
    std::uint64_t warm_ = 0;
    std::uint64_t warm_messages_ = 0;
    std::uint64_t warm_octets_ = 0;
    std::size_t warm_latencies_ = 0;
};

std::vector<Operation> operations_of(const Experiment& experiment) {
    const ExperimentTraffic& t = experiment.traffic;
    const std::uint16_t ranks = ranks_of(experiment);
    std::vector<Operation> operations;
    for (std::uint64_t n = 0; n < t.count + t.warm_up; ++n)
        operations.push_back({t.collective, t.algorithm, t.octets,
                              static_cast<std::uint16_t>(t.rotate_root ? n % ranks : 0), false});
    return operations;
}

/// Runs collectives over libulc.
void run_collectives(const Experiment& experiment, Figures& figures) {
    LibCluster lib(experiment.cluster, ranks_of(experiment));
    SimCluster& cluster = lib.cluster();
    cluster.net().set_tap(experiment.tap);
    if (!lib.form(kFormLimit)) {
        figures.error = "the job did not form";
        figures.counters.resize(kCounterCount);
        return;
    }
    figures.form_time = cluster.now();
    const std::vector<Operation> operations = operations_of(experiment);
    std::vector<CollectiveActor> actors;
    for (std::uint16_t rank = 0; rank < lib.ranks(); ++rank)
        actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), operations, rank);
    /// Times by operation: at the latest rank until this time
    std::vector<Nanos> ended_at(operations.size());
    std::vector<std::size_t> passed(actors.size());
    const std::uint64_t warm = experiment.traffic.warm_up;
    std::size_t warm_ranks = 0;
    auto before = std::make_unique<Snapshot>(cluster);
    plan_events(cluster, experiment.events);
    const auto act = [&](std::uint16_t rank, Nanos now) {
        actors[rank].run_until_waiting();
        for (std::size_t& n = passed[rank]; n < actors[rank].at(); ++n) {
            ended_at[n] = now;
            if (n + 1 == warm && ++warm_ranks == actors.size())
                before = std::make_unique<Snapshot>(cluster);
        }
        return actors[rank].ended() ? kNever : now + kLookAgain;
    };
    std::size_t ended = 0;  // at least this number of first ranks have ended
    const auto all_ended = [&] {
        while (ended < actors.size() && actors[ended].ended())
            ++ended;
        return ended == actors.size();
    };
    const bool in_time = lib.run(experiment.limit, all_ended, act);
    std::size_t done = operations.size();
    for (std::size_t rank = 0; rank < actors.size(); ++rank) {
        done = std::min(done, actors[rank].at());
        if (actors[rank].done() && actors[rank].wrong().empty()) continue;
        figures.error = "rank " + std::to_string(rank) + " at operation " +
                        std::to_string(actors[rank].at()) + ": " +
                        (in_time ? ulc_error_text(actors[rank].error()) : "not in time") + " " +
                        actors[rank].wrong();
    }
    for (std::size_t n = warm; n < done; ++n)
        figures.latency.push_back(ended_at[n] - (n == 0 ? figures.form_time : ended_at[n - 1]));
    figures.messages = done - std::min<std::size_t>(done, warm);
    figures.octets = figures.messages * experiment.traffic.octets;
    note(cluster, *before, figures);
}

}  // namespace

double Figures::goodput() const {
    return elapsed == 0 ? 0
                        : static_cast<double>(octets) * 1e9 / static_cast<double>(elapsed) /
                              static_cast<double>(receivers);
}

Nanos Figures::latency_percentile(double percent) const {
    if (latency.empty()) return 0;
    const double place = percent / 100 * static_cast<double>(latency.size());
    const auto index = static_cast<std::size_t>(std::max(place - 0.5, 0.0));
    return latency[std::min(index, latency.size() - 1)];
}

std::uint64_t Figures::repairs() const {
    return count(Counter::repair_unicast) + count(Counter::repair_multicast);
}

double Figures::control_per_data() const {
    const std::uint64_t control =
        count(Counter::ack_sent) + count(Counter::req_sent) + count(Counter::probe_sent);
    const std::uint64_t data = count(Counter::data_sent);
    return data == 0 ? 0 : static_cast<double>(control) / static_cast<double>(data);
}

double Figures::fairness() const {
    double sum = 0;
    double squares = 0;
    for (std::size_t rank = 1; rank < octets_by_source.size(); ++rank) {
        const auto octets_of = static_cast<double>(octets_by_source[rank]);
        sum += octets_of;
        squares += octets_of * octets_of;
    }
    const auto n = static_cast<double>(octets_by_source.size()) - 1;
    return squares == 0 ? 1 : sum * sum / (n * squares);
}

Figures run_experiment(const Experiment& experiment) {
    Figures figures;
    if (experiment.traffic.kind == TrafficKind::kCollective) {
        run_collectives(experiment, figures);
    } else {
        MessageRun(experiment, figures).run();
    }
    return figures;
}

}  // namespace ulc::sim
