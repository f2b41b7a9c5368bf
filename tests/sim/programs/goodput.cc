// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/goodput.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {
namespace {

/// Keeps its stream busy.
class Source : public Program {
public:
    Source(RingClient& client, std::uint32_t stream, std::size_t octets)
        : client_(client), stream_(stream), payload_(octets, std::byte{0x5a}) {}
    Nanos act(Nanos) override {
        client_.poll();
        client_.messages.clear();
        client_.sends_done.clear();
        while (client_.send(stream_, 1, payload_)) {
        }
        return kNever;
    }

private:
    RingClient& client_;
    std::uint32_t stream_;
    std::vector<std::byte> payload_;
};

/// Counts what it gets, by source.
class Sink : public Program {
public:
    Sink(RingClient& client, std::size_t ranks) : octets(ranks), client_(client) {}
    Nanos act(Nanos) override {
        client_.poll();
        for (const Message& message : client_.messages)
            octets[message.source] += message.payload.size();
        client_.messages.clear();
        return kNever;
    }
    std::vector<std::uint64_t> octets;

private:
    RingClient& client_;
};

struct Counts {
    std::uint64_t control = 0;
    std::uint64_t sent = 0;
    std::uint64_t repaired = 0;
};

Counts counts_of(const SimCluster& cluster) {
    return {cluster.count(Counter::ack_sent) + cluster.count(Counter::req_sent) +
                cluster.count(Counter::probe_sent),
            cluster.count(Counter::data_sent),
            cluster.count(Counter::repair_unicast) + cluster.count(Counter::repair_multicast)};
}

double jain_of(const std::vector<double>& x) {
    const double sum = std::accumulate(x.begin(), x.end(), 0.0);
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    return squares == 0 ? 0 : sum * sum / (static_cast<double>(x.size()) * squares);
}

ClusterConfig config_of(const GoodputCase& c, std::uint16_t ranks) {
    ClusterConfig config;
    config.seed = c.seed;
    config.net.seed = c.seed;
    config.links = c.links;
    config.net.ports = static_cast<std::uint16_t>(ranks * c.links);
    for (std::uint16_t rank = 0; rank < ranks; ++rank)
        config.net.port_bits_per_second.insert(config.net.port_bits_per_second.end(),
                                               c.link_rates.begin(), c.link_rates.end());
    config.net.bits_per_second = c.bits_per_second;
    config.stated_bits_per_second = c.stated_bits_per_second;
    config.net.learns = c.learns;
    config.hosts.resize(1);
    config.hosts[0].gather = c.gather;
    config.hosts[0].sharing = c.sharing;
    config.net.sharing = c.sharing;
    config.net.host_bits_per_second = c.host_bits_per_second;
    config.net.latency = c.latency;
    config.net.buffer_octets = c.buffer_octets;
    config.engine.profile = c.profile;
    const auto arena = static_cast<std::uint32_t>(
        std::max<std::size_t>(256U << 10, 32 * ((c.message_octets + 4095) & ~4095UL)));
    config.sizes = {64, 512, arena, 4U << 20};
    return config;
}

}  // namespace

double multicast_transmissions(double p, unsigned n) {
    double sum = 0;
    double lost = 1;  // pᵏ
    for (int k = 0; k < 1000 && lost > 1e-15; ++k, lost *= p)
        sum += 1 - std::pow(1 - lost, n);
    return sum;
}

GoodputResult measure_goodput(const GoodputCase& c) {
    const bool multicast = c.receivers > 0;
    const auto ranks = static_cast<std::uint16_t>(1 + (multicast ? c.receivers : c.senders));
    SimCluster cluster(config_of(c, ranks));
    GoodputResult result;
    result.formed =
        cluster.form(ranks, [](std::size_t n) { return static_cast<std::uint16_t>(n); });
    if (!result.formed) return result;
    cluster.net().faults().set({.loss = c.loss});
    std::vector<std::unique_ptr<Source>> sources;
    std::vector<std::unique_ptr<Sink>> sinks;
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        RingClient& client = cluster.client(rank);
        if ((rank == 0) == multicast) {
            sources.push_back(std::make_unique<Source>(
                client, multicast || c.all_multicast ? client.world : unicast_to(0),
                c.message_octets));
            cluster.set_program(rank, sources.back().get());
        } else {
            sinks.push_back(std::make_unique<Sink>(client, ranks));
            cluster.set_program(rank, sinks.back().get());
        }
        cluster.touch(rank);
    }
    const auto never = [] { return false; };
    (void)cluster.run(c.warm_up, never);
    std::vector<std::vector<std::uint64_t>> before;
    before.reserve(sinks.size());
    for (const auto& sink : sinks)
        before.push_back(sink->octets);
    const Counts then = counts_of(cluster);
    const Nanos start = cluster.now();
    (void)cluster.run(c.span, never);
    const auto seconds = static_cast<double>(cluster.now() - start) / kSecond;
    const double wire = static_cast<double>(c.bits_per_second) / 8 * kPayloadShare * seconds;
    double least = 1e300;
    std::vector<double> by_sender;
    for (std::size_t i = 0; i < sinks.size(); ++i) {
        double got = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const auto octets = static_cast<double>(sinks[i]->octets[rank] - before[i][rank]);
            got += octets;
            if (!multicast && rank > 0) by_sender.push_back(octets);
        }
        least = std::min(least, got);
    }
    result.share = least / wire;
    if (!multicast) result.jain = jain_of(by_sender);
    const Counts now = counts_of(cluster);
    const auto sent = static_cast<double>(std::max<std::uint64_t>(1, now.sent - then.sent));
    result.control = static_cast<double>(now.control - then.control) / sent;
    result.repeated = static_cast<double>(now.repaired - then.repaired) / sent;
    for (const auto& [name, value] : cluster.net().medium_report()) {
        if (name.find("overflow") != std::string::npos) result.dropped += value;
        if (name == "flooded") result.flooded = value;
    }
    for (std::uint16_t rank = 0; rank < ranks; ++rank)
        cluster.set_program(rank, nullptr);
    cluster.net().faults().set({});
    result.leaked = cluster.shut_down();
    return result;
}

}  // namespace ulc::sim
