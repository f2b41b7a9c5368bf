// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/machine_pair.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/programs/message_programs.h"

namespace ulc::sim {
namespace {

constexpr Nanos kLimit = 60 * kSecond;

ClusterConfig cluster_of(const MachinePair& pair) {
    ClusterConfig config;
    config.seed = config.net.seed = pair.seed;
    config.net.ports = static_cast<std::uint16_t>(2 * pair.threads);
    config.net.threads = pair.threads;
    config.net.steering = pair.steering;
    config.net.medium = MediumKind::kDirect;
    config.net.bits_per_second = pair.bits_per_second;
    config.net.segments = 16384;
    config.sizes = {256, 256, 4U << 20, 4U << 20};
    HostCosts host = *host_preset(pair.host);
    host.rx_ring_frames = pair.ring_frames;
    config.hosts = {host};
    return config;
}

/// Everything that only grows, at one moment.
struct Moment {
    Nanos at = 0;
    std::vector<Nanos> busy;
    std::vector<NicStats> nics;

    explicit Moment(SimCluster& cluster) : at(cluster.now()) {
        for (std::uint16_t station = 0; station < cluster.nodes(); ++station) {
            busy.push_back(cluster.busy(station));
            nics.push_back(cluster.net().stats(station));
        }
    }
};

class Run {
public:
    explicit Run(const MachinePair& pair) : pair_(pair), cluster_(cluster_of(pair)) {}

    MachineFigures run() {
        MachineFigures figures;
        const std::uint16_t sources =
            pair_.traffic == ThreadTraffic::kMulticast ? 1 : pair_.streams;
        const auto ranks = static_cast<std::uint16_t>(sources + pair_.streams);
        const auto place = [&](std::size_t rank) { return station_of(rank, sources); };
        if (!cluster_.form(ranks, place)) {
            figures.error = "the job did not form";
            return figures;
        }
        log_.sent_at.resize(ranks);
        log_.octets_by_source.resize(ranks);
        for (Rank rank = 0; rank < ranks; ++rank)
            programs_.push_back(program_of(rank, sources));
        const std::uint64_t expected = pair_.count * pair_.streams;
        std::unique_ptr<Moment> begun;
        std::unique_ptr<Moment> ended;
        log_.on_delivery = [&] {
            if (log_.messages == expected / 10) begun = std::make_unique<Moment>(cluster_);
            if (log_.messages == expected / 10 * 9) ended = std::make_unique<Moment>(cluster_);
        };
        for (Rank rank = 0; rank < ranks; ++rank)
            cluster_.set_program(rank, programs_[rank].get());
        const bool in_time =
            cluster_.run(kLimit, [&] { return log_.messages == expected || !log_.error.empty(); });
        figures.error = in_time ? log_.error : "the messages did not come in time";
        const Moment last(cluster_);
        for (const NicStats& nic : last.nics) {
            figures.overruns += nic.overruns;
            figures.handed_over += nic.handed_over;
        }
        figures.repairs =
            cluster_.count(Counter::repair_unicast) + cluster_.count(Counter::repair_multicast);
        for (Rank rank = 0; rank < ranks; ++rank)
            cluster_.set_program(rank, nullptr);
        if (figures.error.empty()) note(*begun, *ended, expected / 10 * 8, figures);
        return figures;
    }

private:
    [[nodiscard]] std::uint16_t station_of(std::size_t rank, std::uint16_t sources) const {
        const std::uint16_t threads = pair_.threads;
        if (rank < sources) return static_cast<std::uint16_t>(rank % threads);
        const std::size_t n = rank - sources;
        if (pair_.traffic == ThreadTraffic::kOtherThread)
            return static_cast<std::uint16_t>((n + 1) % threads);
        return static_cast<std::uint16_t>(threads + n % threads);
    }

    [[nodiscard]] std::unique_ptr<Program> program_of(Rank rank, std::uint16_t sources) {
        RingClient& client = cluster_.client(rank);
        if (rank >= sources) return std::make_unique<Receiver>(client, rank, pair_.octets, log_);
        const std::uint32_t stream = pair_.traffic == ThreadTraffic::kMulticast
                                         ? client.world
                                         : std::uint32_t{rank} + sources;
        return std::make_unique<StreamProgram>(client, rank, stream, pair_.octets, pair_.count,
                                               log_);
    }

    void note(const Moment& begun, const Moment& ended, std::uint64_t deliveries,
              MachineFigures& figures) const {
        const auto elapsed = static_cast<double>(ended.at - begun.at);
        const bool is_multicast = pair_.traffic == ThreadTraffic::kMulticast;
        const double messages =
            static_cast<double>(deliveries) / (is_multicast ? pair_.streams : 1);
        figures.messages = messages * 1e9 / elapsed;
        for (std::size_t station = 0; station < begun.busy.size(); ++station) {
            MachineShare& share = station < pair_.threads ? figures.first : figures.second;
            const auto busy = static_cast<double>(ended.busy[station] - begun.busy[station]);
            figures.busiest = std::max(figures.busiest, busy / elapsed);
            share.busy_ns += busy / messages;
            const NicStats& from = begun.nics[station];
            const NicStats& to = ended.nics[station];
            share.frames += static_cast<double>(to.tx_frames - from.tx_frames) / messages;
            share.octets += static_cast<double>(to.tx_octets - from.tx_octets) / messages;
        }
    }

    MachinePair pair_;
    SimCluster cluster_;
    MessageLog log_;
    std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace

MachineFigures run_machine_pair(const MachinePair& pair) {
    ULC_CHECK(pair.threads > 0 && pair.count >= 10);
    return Run(pair).run();
}

}  // namespace ulc::sim
