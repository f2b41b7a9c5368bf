// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/latency.h"

#include <algorithm>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {
namespace {

constexpr Nanos kPause = 500 * kMicrosecond;  ///< between trials, so that each finds the net idle

ClusterConfig config_of(const std::string& profile, std::uint16_t ports) {
    ClusterConfig config;
    config.net.ports = ports;
    config.net.bits_per_second = 1'000'000'000;
    config.net.latency = 2 * kMicrosecond;
    config.engine.profile = profile;
    return config;
}

std::uint16_t own_node(std::size_t rank) { return static_cast<std::uint16_t>(rank); }

/// Returns each message that comes; begins `left` exchanges.
class Player : public Program {
public:
    Player(RingClient& client, Rank peer, std::size_t octets, unsigned serves)
        : left(serves), client_(client), peer_(peer), payload_(octets, std::byte{1}) {}
    Nanos act(Nanos) override {
        client_.poll();
        client_.sends_done.clear();
        if (!begun_ && left > 0) (void)client_.send(unicast_to(peer_), 1, payload_);
        begun_ = true;
        for (std::size_t n = client_.messages.size(); n > 0; --n) {
            ++got;
            if (left == 0 || --left > 0) (void)client_.send(unicast_to(peer_), 1, payload_);
        }
        client_.messages.clear();
        return kNever;
    }
    unsigned got = 0;
    unsigned left;  ///< 0 from the start: answers without end

private:
    RingClient& client_;
    Rank peer_;
    std::vector<std::byte> payload_;
    bool begun_ = false;
};

}  // namespace

Nanos measure_ping_pong(const std::string& profile, std::size_t octets, unsigned exchanges) {
    SimCluster cluster(config_of(profile, 2));
    if (!cluster.form(2, own_node)) return 0;
    Player server(cluster.client(1), 0, octets, 0);
    Player client(cluster.client(0), 1, octets, exchanges);
    cluster.set_program(1, &server);
    cluster.set_program(0, &client);
    const Nanos start = cluster.now();
    cluster.touch(0);
    cluster.touch(1);
    if (!cluster.run(10 * kSecond, [&] { return client.got == exchanges; })) return 0;
    const Nanos whole = cluster.now() - start;
    cluster.set_program(0, nullptr);
    cluster.set_program(1, nullptr);
    return cluster.shut_down() == 0 ? whole / (2 * static_cast<Nanos>(exchanges)) : 0;
}

Nanos measure_multicast_repair(const std::string& profile, std::uint16_t receivers, unsigned trials,
                               MediumKind medium) {
    ClusterConfig config = config_of(profile, static_cast<std::uint16_t>(receivers + 1));
    config.net.medium = medium;
    if (medium == MediumKind::kHub) config.net.bits_per_second = 100'000'000;
    SimCluster cluster(config);
    if (!cluster.form(receivers + 1U, own_node)) return 0;
    const std::vector<std::byte> payload(1000, std::byte{1});
    RingClient& source = cluster.client(0);
    RingClient& loser = cluster.client(receivers);
    const auto poll = [&] {
        for (std::uint16_t rank = 0; rank <= receivers; ++rank)
            cluster.client(rank).poll();
    };
    Nanos longest = 0;
    for (unsigned trial = 0; trial < trials; ++trial) {
        for (std::uint16_t rank = 0; rank <= receivers; ++rank)
            cluster.client(rank).messages.clear();
        cluster.net().faults().lose_next(0, receivers, 1);
        if (!source.send(source.world, 1, payload) || !source.send(source.world, 1, payload))
            return 0;
        // The second one has come everywhere else when the last of the others has both.
        const std::uint64_t frames = cluster.net().stats(receivers).rx_frames;
        const bool seen = cluster.run(
            kSecond, [&] { return cluster.net().stats(receivers).rx_frames > frames; }, poll);
        const Nanos from = cluster.now();
        if (!seen || !cluster.run(
                         kSecond, [&] { return loser.messages.size() == 2; }, poll))
            return 0;
        longest = std::max(longest, cluster.now() - from);
        (void)cluster.run(
            kPause, [] { return false; }, poll);
    }
    return cluster.shut_down() == 0 ? longest : 0;
}

}  // namespace ulc::sim
