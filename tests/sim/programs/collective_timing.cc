// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/collective_timing.h"

#include <algorithm>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/collective_actor.h"
#include "wire/parse.h"

namespace ulc::sim {
namespace {

constexpr Nanos kLimit = 60 * kSecond;
/// Pause after an operation, for delayed acknowledgements.
constexpr Nanos kQuiet = 20 * kMillisecond;
constexpr unsigned kWarmUps = 2;
constexpr Nanos kLookAgain = 100 * kMicrosecond;

/// Counts the frames that leave the hosts.
class WireCount : public Tap {
public:
    explicit WireCount(std::uint16_t ether_type) : ether_type_(ether_type) {}
    void on_frame(std::uint16_t, bool outbound, const std::vector<std::byte>& frame,
                  Nanos) override {
        if (!outbound) return;
        ++frames;
        octets += std::max(frame.size(), wire::kFrameOctetsMin) + 4;
        wire::FrameView view;
        if (wire::parse(frame.data(), frame.size(), ether_type_, view) != Counter::kCount) return;
        const bool data =
            view.type == wire::FrameType::kData || view.type == wire::FrameType::kMcast;
        if (data) payload += view.length;
    }
    std::uint64_t frames = 0;
    std::uint64_t octets = 0;
    std::uint64_t payload = 0;

private:
    std::uint16_t ether_type_;
};

/// Runs one operation at all ranks. Returns false if it was late, failed or wrong.
bool run_once(LibCluster& lib, const Operation& operation, std::uint64_t seed) {
    const std::vector<Operation> program{operation};
    std::vector<CollectiveActor> actors;
    actors.reserve(lib.ranks());
    for (std::uint16_t rank = 0; rank < lib.ranks(); ++rank)
        actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), program, seed);
    std::vector<bool> begun(lib.ranks(), false);
    std::vector<Nanos> looked(lib.ranks(), 0);
    const auto all_ended = [&] {
        return std::ranges::all_of(actors, [](const CollectiveActor& a) { return a.ended(); });
    };
    // Polls now and then without an event, as a test needs that stopped at its bound of local work.
    const bool in_time = lib.run(kLimit, all_ended, [&](std::uint16_t rank, Nanos now) {
        if (!begun[rank]) looked[rank] = now;
        if (!begun[rank] || lib.events(rank) != 0 || now >= looked[rank] + kLookAgain) {
            actors[rank].run_until_waiting();
            looked[rank] = now;
        }
        begun[rank] = true;
        return actors[rank].ended() ? kNever : looked[rank] + kLookAgain;
    });
    return in_time && std::ranges::all_of(actors, [](const CollectiveActor& a) {
               return a.done() && a.wrong().empty();
           });
}

}  // namespace

ClusterConfig fast_ethernet(std::uint16_t nodes) {
    ClusterConfig config;
    config.net.ports = nodes;
    config.net.bits_per_second = 100'000'000;
    return config;
}

CollectiveTiming time_collective(const ClusterConfig& config, const Operation& operation,
                                 unsigned rounds, std::uint16_t ranks,
                                 std::optional<ulc::Medium> medium) {
    CollectiveTiming timing;
    client::Limits limits;
    if (medium) limits.medium = static_cast<std::uint16_t>(1 + static_cast<unsigned>(*medium));
    LibCluster lib(config, ranks, [&](std::uint16_t) { return limits; });
    if (!lib.form()) return timing;
    WireCount count(config.engine.ether_type);
    Nanos spent = 0;
    for (unsigned round = 0; round < kWarmUps + rounds; ++round) {
        if (round == kWarmUps) lib.cluster().net().set_tap(&count);
        Operation one = operation;
        one.root = static_cast<std::uint16_t>((operation.root + round) % lib.ranks());
        const Nanos begun = lib.cluster().now();
        if (!run_once(lib, one, round)) return timing;
        if (round >= kWarmUps) {
            const Nanos took = lib.cluster().now() - begun;
            spent += took;
            timing.each_us.push_back(static_cast<double>(took) / static_cast<double>(kMicrosecond));
        }
        const Nanos quiet = lib.cluster().now() + kQuiet;
        static_cast<void>(lib.run(
            kQuiet, [&] { return lib.cluster().now() >= quiet; },
            [](std::uint16_t, Nanos) { return kNever; }));
    }
    lib.cluster().net().set_tap(nullptr);
    const double operations = rounds;
    timing.ok = true;
    timing.us = static_cast<double>(spent) / operations / static_cast<double>(kMicrosecond);
    timing.wire_frames = static_cast<double>(count.frames) / operations;
    timing.wire_octets = static_cast<double>(count.octets) / operations;
    timing.payload_octets = static_cast<double>(count.payload) / operations;
    return timing;
}

}  // namespace ulc::sim
