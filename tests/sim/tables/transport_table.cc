// SPDX-License-Identifier: BSD-3-Clause
// Prints each profile's use of a wire, as Markdown (docs/benchmarks/CONGESTION.md).
//   transport_table PROFILE…             incast, random loss and multicast, for each
//   transport_table seeds A-B PROFILE…   the random cases: median and worst of those seeds
//   transport_table latency PROFILE…     one way of short and long messages, and the
//                                        retransmission of a lost multicast
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/programs/goodput.h"
#include "tests/sim/programs/latency.h"

namespace {

using namespace ulc::sim;

void row(const char* name, const GoodputCase& c, double of) {
    const GoodputResult r = measure_goodput(c);
    std::printf("| %s | %s | %.1f %% | %.3f | %.2f | %.3f | %llu |\n", c.profile.c_str(), name,
                100 * r.share / of, r.jain, r.control, r.repeated,
                static_cast<unsigned long long>(r.dropped));
    std::fflush(stdout);
}

std::string rate_of(std::uint64_t bits) {
    return bits >= 1'000'000'000 ? std::to_string(bits / 1'000'000'000) + " Gb/s"
                                 : std::to_string(bits / 1'000'000) + " Mb/s";
}

/// Median and worst of the results of several seeds.
struct Spread {
    std::vector<double> values;
    bool more_is_worse = false;

    [[nodiscard]] std::pair<double, double> figures() {
        std::sort(values.begin(), values.end());
        return {values[values.size() / 2], more_is_worse ? values.back() : values.front()};
    }
};

struct Seeds {
    std::uint64_t first = 1;
    std::uint64_t last = 1;
};

/// Parses "11-20".
Seeds seeds_of(const std::string& text) {
    Seeds seeds;
    const std::size_t dash = text.find('-');
    seeds.first = std::stoull(text);
    seeds.last = dash == std::string::npos ? seeds.first : std::stoull(text.substr(dash + 1));
    return seeds;
}

void seeds_row(const std::string& name, GoodputCase c, const Seeds& seeds) {
    Spread share;
    Spread jain;
    Spread control{{}, true};
    Spread repeated{{}, true};
    for (c.seed = seeds.first; c.seed <= seeds.last; ++c.seed) {
        const GoodputResult r = measure_goodput(c);
        share.values.push_back(100 * r.share);
        jain.values.push_back(r.jain);
        control.values.push_back(r.control);
        repeated.values.push_back(100 * r.repeated);
    }
    const auto [share_median, share_worst] = share.figures();
    const auto [jain_median, jain_worst] = jain.figures();
    const auto [control_median, control_worst] = control.figures();
    const auto [repeated_median, repeated_worst] = repeated.figures();
    std::printf("| %s | %s | %.1f, %.1f %% | %.3f, %.3f | %.2f, %.2f | %.1f, %.1f %% |\n",
                c.profile.c_str(), name.c_str(), share_median, share_worst, jain_median, jain_worst,
                control_median, control_worst, repeated_median, repeated_worst);
    std::fflush(stdout);
}

void seeds_table(const Seeds& seeds, const std::vector<std::string>& profiles) {
    std::printf(
        "| profile | case | share: median, worst | Jain | control | repairs |\n"
        "| --- | --- | --- | --- | --- | --- |\n");
    for (const std::string& profile : profiles) {
        for (const std::uint64_t rate : {100'000'000ULL, 1'000'000'000ULL, 10'000'000'000ULL}) {
            GoodputCase c;
            c.profile = profile;
            c.bits_per_second = rate;
            c.buffer_octets = 65536;
            c.warm_up = 20'000'000'000'000'000LL / static_cast<ulc::Nanos>(rate);
            c.span = 3 * c.warm_up + 20 * ulc::kMillisecond;
            c.senders = 16;
            seeds_row("16 to one, 64 KiB at " + rate_of(rate), c, seeds);
            c.senders = 7;
            c.all_multicast = true;
            seeds_row("7 multicast to 8, 64 KiB at " + rate_of(rate), c, seeds);
        }
    }
}

void latency_table(const std::vector<std::string>& profiles) {
    std::printf(
        "| profile | 8 B | 1 KB | 16 KB | 60 KB | multicast repair, 15 receivers |\n"
        "| --- | --- | --- | --- | --- | --- |\n");
    const auto us = [](ulc::Nanos nanos) { return static_cast<double>(nanos) / 1000; };
    for (const std::string& profile : profiles) {
        std::printf("| %s |", profile.c_str());
        for (const std::size_t octets : {8UL, 1000UL, 16000UL, 60000UL})
            std::printf(" %.1f µs |", us(measure_ping_pong(profile, octets, 200)));
        std::printf(" ≤ %.1f µs |\n", us(measure_multicast_repair(profile, 15, 40)));
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> profiles(argv + 1, argv + argc);
    if (!profiles.empty() && profiles[0] == "latency") {
        profiles.erase(profiles.begin());
        latency_table(profiles);
        return 0;
    }
    if (profiles.size() >= 2 && profiles[0] == "seeds") {
        const Seeds seeds = seeds_of(profiles[1]);
        profiles.erase(profiles.begin(), profiles.begin() + 2);
        if (profiles.empty()) profiles = {"urtp"};
        seeds_table(seeds, profiles);
        return 0;
    }
    if (profiles.empty()) profiles = {"urtp"};
    std::printf(
        "| profile | case | share | Jain | control | repairs | dropped |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (const std::string& profile : profiles) {
        for (const std::uint64_t rate : {100'000'000ULL, 1'000'000'000ULL, 10'000'000'000ULL}) {
            GoodputCase c;
            c.profile = profile;
            c.bits_per_second = rate;
            c.warm_up = 20'000'000'000'000'000LL / static_cast<ulc::Nanos>(rate);
            c.span = 3 * c.warm_up + 20 * ulc::kMillisecond;
            const std::string at = " at " + rate_of(rate);
            row(("one stream" + at).c_str(), c, 1);
            for (const std::uint16_t senders : {4, 16, 64}) {
                GoodputCase incast = c;
                incast.senders = senders;
                incast.buffer_octets = 65536;
                row((std::to_string(senders) + " to one, 64 KiB" + at).c_str(), incast, 1);
            }
            GoodputCase all = c;
            all.senders = 7;
            all.all_multicast = true;
            all.span = c.warm_up;
            all.buffer_octets = 65536;
            row(("7 multicast to 8, 64 KiB" + at).c_str(), all, 1);
            for (const double loss : {1e-3, 1e-2}) {
                GoodputCase lossy = c;
                lossy.loss = loss;
                char name[64];
                std::snprintf(name, sizeof name, "loss %g%s", loss, at.c_str());
                row(name, lossy, 1 - loss);
                lossy.receivers = 16;
                std::snprintf(name, sizeof name, "multicast to 16, loss %g%s", loss, at.c_str());
                row(name, lossy, 1 / multicast_transmissions(loss, 16));
            }
        }
    }
    return 0;
}
