// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tables/measure.h"

#include <coll.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/sim/cluster/experiment.h"
#include "tests/sim/host/presets.h"

namespace ulc::sim {
namespace {

constexpr Nanos kLimit = 60 * kSecond;
constexpr unsigned kWarmUps = 4;
constexpr std::uint64_t kTag = 1;

}  // namespace

// ---------------------------------------------------------------- ping-pong

ClusterConfig pair_of(const HostCosts& host, const char* profile, MediumKind medium,
                      std::uint64_t seed) {
    ClusterConfig config;
    config.net.ports = 2;
    config.net.medium = medium;
    config.net.repeater = kGammaRepeater;
    config.net.bits_per_second = kFastEthernet;
    config.net.seed = seed;
    config.seed = seed;
    config.sizes = {64, 64, 1U << 20, 1U << 20};
    config.engine.profile = profile;
    config.hosts = {host};
    return config;
}

void use_tcp(ClusterConfig& config, Nanos clock) {
    config.engine.profile = "gbn+block";
    config.engine.params.ack_window = 2;
    config.engine.params.min_send_wait = clock;
}

void use_linux_tcp(ClusterConfig& config) {
    use_tcp(config, 200 * kMillisecond);
    config.engine.params.window = 32;
}

/// One rank's half of the exchange.
struct PingPongBench::Side {
    ulc_endpoint* ep = nullptr;
    bool serves = false;  ///< sends first
    unsigned rounds = 0;  ///< to play
    unsigned received = 0;
    unsigned sent = 0;
    bool posted = false;
    bool failed = false;
    ulc_request receive{};
    /// Sends that are not yet acknowledged; a slot is used again when its send is done.
    std::array<ulc_request, 32> sends{};
    std::array<bool, 32> sending{};
    std::vector<unsigned char> out;
    std::vector<unsigned char> in;
    Nanos begun = 0;
    Nanos ended = 0;

    [[nodiscard]] std::uint16_t peer() const { return serves ? 1 : 0; }
    [[nodiscard]] bool done() const { return received == rounds && sent == rounds; }
    [[nodiscard]] bool may_send() const { return sent < received + (serves ? 1U : 0U); }
};

PingPongBench::PingPongBench(const ClusterConfig& config)
    : lib_(std::make_unique<LibCluster>(config)), formed_(lib_->form()) {}

// Continues as far as it can without waiting, like a program that calls blocking forms.
Nanos PingPongBench::act(Side& side, Nanos now) {
    while (!side.done() && !side.failed) {
        if (!side.posted && side.received < side.rounds) {
            side.posted = true;
            side.failed = ulc_receive(side.ep, side.peer(), kTag, UINT64_MAX, side.in.data(),
                                      side.in.size(), &side.receive) != ULC_OK;
        }
        if (side.may_send() && side.sent < side.rounds) {
            const std::size_t slot = side.sent % side.sends.size();
            if (side.sending[slot] &&
                ulc_test(side.ep, &side.sends[slot], nullptr) == ULC_ERR_AGAIN)
                return kNever;
            const int error = ulc_send(side.ep, side.peer(), kTag, side.out.data(), side.out.size(),
                                       &side.sends[slot]);
            if (error == ULC_ERR_AGAIN) return kNever;
            side.sending[slot] = true;
            side.failed = side.failed || error != ULC_OK;
            if (side.sent == kWarmUps) side.begun = now;
            ++side.sent;
            continue;
        }
        if (!side.posted) return kNever;
        ulc_status status{};
        if (ulc_test(side.ep, &side.receive, &status) == ULC_ERR_AGAIN) return kNever;
        side.failed = side.failed || status.error != ULC_OK || status.length != side.in.size() ||
                      side.in != side.out;
        side.posted = false;
        ++side.received;
        side.ended = now;
    }
    return kNever;
}

Measured PingPongBench::one_way(std::size_t octets, unsigned rounds) {
    if (!formed_) return {};
    std::array<Side, 2> sides;
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
        Side& side = sides[rank];
        side.ep = lib_->endpoint(rank);
        side.serves = rank == 0;
        side.rounds = rounds + kWarmUps;
        side.in.resize(octets);
        side.out.resize(octets);
        for (std::size_t i = 0; i < octets; ++i)
            side.out[i] = static_cast<unsigned char>(i * 7 + i / 251);
    }
    const auto over = [&] {
        return (sides[0].done() && sides[1].done()) || sides[0].failed || sides[1].failed;
    };
    const auto application = [&](std::uint16_t rank, Nanos now) { return act(sides[rank], now); };
    const bool in_time = lib_->run(kLimit, over, application);
    // Pending acknowledgements end before the memory of their requests does.
    const auto all_sent = [&] {
        bool all = true;
        for (Side& side : sides) {
            for (std::size_t slot = 0; slot < side.sends.size(); ++slot) {
                if (side.sending[slot] &&
                    ulc_test(side.ep, &side.sends[slot], nullptr) != ULC_ERR_AGAIN)
                    side.sending[slot] = false;
                all = all && !side.sending[slot];
            }
        }
        return all;
    };
    const bool quiet = lib_->run(kLimit, all_sent, [](std::uint16_t, Nanos) { return kNever; });
    const bool ok = in_time && quiet && !sides[0].failed && !sides[1].failed;
    const auto span = static_cast<double>(sides[0].ended - sides[0].begun);
    return {ok, span / rounds / 2 / static_cast<double>(kMicrosecond)};
}

std::size_t half_power_point(PingPongBench& bench, double asymptotic, std::size_t octets_max,
                             unsigned rounds) {
    std::size_t below = 0;
    std::size_t reached = octets_max + 1;
    while (reached - below > 1) {
        const std::size_t octets = (below + reached) / 2;
        const Measured time = bench.one_way(octets, rounds);
        if (time.ok && megabytes_per_second(octets, time.us) >= asymptotic / 2) {
            reached = octets;
        } else {
            below = octets;
        }
    }
    return reached > octets_max ? 0 : reached;
}

// ---------------------------------------------------------------- barriers

Measured barrier_time(const ClusterConfig& config, const std::string& algorithm, unsigned trials) {
    struct Rank {
        ulc_coll* running = nullptr;
        unsigned done = 0;
        bool failed = false;
    };
    const char* name = algorithm.empty() ? nullptr : algorithm.c_str();
    LibCluster lib(config);
    if (!lib.form()) return {};
    std::vector<Rank> ranks(lib.ranks());
    std::vector<Nanos> times;
    Nanos begun = 0;
    const auto application = [&](std::uint16_t index, Nanos now) {
        Rank& rank = ranks[index];
        ulc_endpoint* ep = lib.endpoint(index);
        while (rank.done < 2 * trials && !rank.failed) {
            if (rank.running == nullptr) {
                if (index == 0 && rank.done % 2 == 1) begun = now;
                rank.failed = ulc_barrier_start(ep, ulc_world(ep), name, &rank.running) != ULC_OK;
                continue;
            }
            const int state = ulc_coll_test(ep, rank.running);
            if (state == ULC_ERR_AGAIN) return kNever;
            rank.running = nullptr;
            rank.failed = state != ULC_OK;
            if (index == 0 && rank.done % 2 == 1) times.push_back(now - begun);
            ++rank.done;
        }
        return kNever;
    };
    const auto over = [&] {
        return std::all_of(ranks.begin(), ranks.end(), [&](const Rank& rank) {
            return rank.failed || rank.done == 2 * trials;
        });
    };
    const bool in_time = lib.run(kLimit, over, application);
    const bool failed =
        std::any_of(ranks.begin(), ranks.end(), [](const Rank& rank) { return rank.failed; });
    if (!in_time || failed || times.size() < 5) return {};
    times.erase(times.begin(), times.begin() + 2);
    std::sort(times.begin(), times.end());
    times.resize(times.size() - 2);
    const auto sum = static_cast<double>(std::accumulate(times.begin(), times.end(), Nanos{0}));
    return {true, sum / static_cast<double>(times.size()) / static_cast<double>(kMicrosecond)};
}

Measured barrier_median(ClusterConfig config, const std::string& algorithm, unsigned trials,
                        unsigned runs) {
    ULC_CHECK(runs % 2 == 1);
    std::vector<Measured> all;
    for (unsigned run = 0; run < runs; ++run, ++config.seed, ++config.net.seed) {
        all.push_back(barrier_time(config, algorithm, trials));
        if (!all.back().ok) return all.back();
    }
    std::ranges::nth_element(all, all.begin() + runs / 2, {}, &Measured::us);
    return all[runs / 2];
}

}  // namespace ulc::sim
