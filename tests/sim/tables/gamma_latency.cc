// SPDX-License-Identifier: BSD-3-Clause
// Table 1: what GAMMA won step by step (§4.5.6–8), Linux TCP (§3.2.1), and its table 3.1 with our
// row.
//
// Our transport, the shipped objects, runs on the host that each version of GAMMA was. The rows
// differ by what GAMMA changed (programmed I/O, DMA, early send and receive, polling), as
// host/presets.cc holds it. GAMMA itself is not reliable. Ours is, with its header of 14 octets,
// acknowledgements and copies, so ours is the price of that on its host.
//
// The hosts have their costs from the latencies, the two throughputs of 0.1 and 0.2 and the copy's
// 24 %: those are inputs. Predictions are the other throughputs and the half-power points.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/claims/judge.h"
#include "tests/sim/tables/list.h"
#include "tests/sim/tables/measure.h"

namespace ulc::sim {
namespace {

constexpr double kIdealLatency = 7;  ///< µs, GAMMA §4.5.8
constexpr std::size_t kHalfPowerMax = 8192;
constexpr double kNear = 0.15;       ///< share by which a prediction may be off
constexpr const char* kTcp = "tcp";  ///< use_linux_tcp(), no profile

/// A figure that the paper states for a system.
struct Stated {
    std::optional<double> value = {};
    FigureKind kind = FigureKind::kPrediction;
};
Stated said(double value) { return {value, FigureKind::kPrediction}; }
/// The system's host has its costs from this figure (host/presets.cc).
Stated input(double value) { return {value, FigureKind::kInput}; }

/// A paper's figures of a system. MB/s are 10⁶ octets a second; half-power points octets.
struct Claim {
    const char* host;  ///< preset
    const char* profile;
    MediumKind medium;
    const char* what;
    Stated latency;
    Stated at_1500;
    Stated asymptotic;
    Stated half_power;
    const char* note;
};

const Claim kLadder[] = {
    {"gamma-0.1",
     "urtp",
     MediumKind::kDirect,
     "GAMMA 0.1, programmed I/O",
     input(33.5),
     {},
     input(9.9),
     {},
     "§4.5.6"},
    {"gamma-0.2", "urtp", MediumKind::kDirect, "GAMMA 0.2, DMA", input(23.5), input(6.6),
     said(12.1), said(670), "§4.5.6–7"},
    {"gamma-0.3",
     "urtp",
     MediumKind::kDirect,
     "GAMMA 0.3, early",
     input(16.8),
     said(10.9),
     {},
     said(192),
     "§4.5.7; early send and receive"},
    {"gamma-0.4",
     "urtp",
     MediumKind::kDirect,
     "GAMMA 0.4, polling",
     input(12.7),
     {},
     said(12.2),
     {},
     "§4.5.8"},
};

/// Run as TCP of the time did, and with the default profile.
const Claim kOthers[] = {
    {"linux-tcp-pii300",
     kTcp,
     MediumKind::kHub,
     "Linux 2.0.29 TCP, 3c905, PII 300",
     input(77.4),
     {},
     said(10.8),
     said(1750),
     "§3.2.1; ours at the kernel's cost for each frame"},
    {"linux-tcp-pii300-waits",
     kTcp,
     MediumKind::kHub,
     "the same, DMA by the processor",
     {},
     {},
     {},
     {},
     "§3.2.1: less; figure 3.1 has no numbers"},
    {"linux-tcp-p133",
     kTcp,
     MediumKind::kHub,
     "Linux 2.0.29 TCP, 3c595, P133",
     input(113.8),
     {},
     input(6.6),
     {},
     "table 3.1"},
};

/// GAMMA's table 3.1, but for what stands above: µs, MB/s.
struct Platform {
    const char* name;
    double latency;
    double throughput;
};
constexpr Platform kPlatforms[] = {
    {"Fast Sockets, Myrinet", 57.8, 32.9},
    {"PARMA² sockets, 100base-T", 74.0, 6.6},
    {"Net* raw, 100base-T", 23.3, 12.1},
    {"Oxford BSP, 100base-T", 29, 11.7},
    {"Pupa, 100base-T", 198.0, 7.8},
    {"Sender-based protocols, FDDI", 23.5, 10.2},
    {"SSAM, ATM", 30.0, 5.6},
    {"U-Net/FE, 100base-T", 30.0, 12.1},
    {"M-VIA, 100base-T", 23, 11.9},
    {"BIP, Myrinet", 4.3, 126},
    {"HPAM, FDDI", 14.5, 12},
    {"FM 2.x, Myrinet", 11.0, 77},
    {"U-Net/ATM", 44.5, 15},
    {"CM-5 CMAML (10–15 µs)", 12.5, 8.5},
    {"SP2 MPL", 44.8, 34.9},
    {"T3D PVMFAST", 30.0, 25.1},
};

struct Ours {
    double latency = 0;
    double at_1500 = 0;
    double asymptotic = 0;
    double half_power = 0;
    Curve curve;
};

Ours measure(const char* host, const char* profile, MediumKind medium,
             const TableOptions& options) {
    const unsigned rounds = options.quick ? 8 : 50;
    const std::size_t large = options.quick ? 64U << 10 : 512U << 10;
    const auto preset = host_preset(host);
    ULC_CHECK(preset.has_value());
    const bool tcp = std::string_view(profile) == kTcp;
    ClusterConfig config = pair_of(*preset, tcp ? "urtp" : profile, medium, options.seed);
    if (tcp) use_linux_tcp(config);
    PingPongBench bench(config);
    const auto time = [&](std::size_t octets, unsigned n) {
        const Measured measured = bench.one_way(octets, n);
        return measured.ok ? measured.us : std::nan("");
    };
    Ours ours;
    ours.curve.name = std::string("ours on ") + host;
    ours.latency = time(0, rounds);
    ours.at_1500 = megabytes_per_second(1500, time(1500, rounds));
    ours.asymptotic = megabytes_per_second(large, time(large, 4));
    ours.half_power = static_cast<double>(
        half_power_point(bench, ours.asymptotic, kHalfPowerMax, options.quick ? 4 : 20));
    for (std::size_t octets = 4; octets <= large; octets *= options.quick ? 16 : 2)
        ours.curve.points.emplace_back(octets, megabytes_per_second(octets, time(octets, 8)));
    return ours;
}

/// Adds a system's figures. is_prediction: ours is the system named, so its predictions are claims.
void add(Table& table, const Claim& claim, const Ours& ours, bool is_prediction) {
    const std::string what = std::string(claim.what) + " [" + claim.profile + "]";
    const auto add = [&](const char* which, const char* unit, const Stated& stated, double value,
                         const char* note) {
        Figure figure{what + which, unit, stated.value, value, note, stated.kind};
        if (is_prediction && stated.value && stated.kind == FigureKind::kPrediction)
            add_near(table, std::move(figure), kNear);
        else
            table.figures.push_back(std::move(figure));
    };
    add(", one way", "µs", claim.latency, ours.latency, claim.note);
    add(", 1500 B", "MB/s", claim.at_1500, ours.at_1500, "");
    add(", asymptotic", "MB/s", claim.asymptotic, ours.asymptotic, "");
    add(", half-power", "B", claim.half_power, ours.half_power, "");
}

/// Returns what the default profile does.
Ours add_with_default(Table& table, const Claim& claim, const TableOptions& options) {
    add(table, claim, measure(claim.host, claim.profile, claim.medium, options), true);
    Claim with_default = claim;
    with_default.profile = "urtp";
    with_default.note = "";
    Ours ours = measure(claim.host, "urtp", claim.medium, options);
    add(table, with_default, ours, false);
    return ours;
}

/// The wire alone: frames of 1500 octets, 38 more on the line for each, and 7 µs for the shortest
/// message (§4.5.8, curve 4).
Curve ideal_curve(std::size_t octets_max) {
    Curve curve{"100base-T with 7 µs", {}, true};
    for (std::size_t octets = 4; octets <= octets_max; octets *= 2) {
        const std::size_t frames = (octets + 1499) / 1500;
        const auto line = static_cast<double>(octets + frames * 38);
        const double us = kIdealLatency + std::max(line - 84, 0.0) * 0.08;
        curve.points.emplace_back(octets, static_cast<double>(octets) / us);
    }
    return curve;
}

std::string list_of(std::span<const double> values, const char* unit) {
    std::string text;
    for (const double value : values) {
        std::array<char, 32> one{};
        std::snprintf(one.data(), one.size(), "%s%.1f", text.empty() ? "" : ", ", value);
        text += one.data();
    }
    return text + " " + unit;
}

std::string list_of(const std::array<Ours, 4>& ladder, double Ours::*value, const char* unit) {
    std::array<double, 4> values{};
    for (std::size_t n = 0; n < ladder.size(); ++n)
        values[n] = ladder[n].*value;
    return list_of(values, unit);
}

std::string percent(double share) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %%", share * 100);
    return text.data();
}

/// Claims about predictions alone: the four latencies and the copy are inputs.
void add_shapes(Table& table, const std::array<Ours, 4>& ladder) {
    table.shapes.push_back(
        {"early send and receive bring the half-power point to under a third "
         "(670 to 192 B)",
         list_of(ladder, &Ours::half_power, "B"), ladder[2].half_power < ladder[1].half_power / 3});
    const double polling = ladder[3].at_1500 / ladder[2].at_1500 - 1;
    table.shapes.push_back({"polling changes 1500 B by less than 5 % (§4.5.8)", percent(polling),
                            std::abs(polling) < 0.05});
}

}  // namespace

Table gamma_latency(const TableOptions& options) {
    Table table;
    table.name = "gamma-latency";
    table.title = "GAMMA's ladder and its neighbours: ping-pong on 100base-T";
    table.method =
        "Half a round trip of libulc endpoints, two hosts by preset, on a cable (those of §3.2.1 "
        "on a hub). Paper: the named system. Ours: our transport on its host, [profile].";
    Picture picture{"gamma-latency",
                    "Ping-pong throughput on GAMMA's hosts",
                    "message, octets",
                    "MB/s",
                    true,
                    false,
                    {}};
    std::array<Ours, 4> ladder;
    for (std::size_t n = 0; n < ladder.size(); ++n) {
        ladder[n] = measure(kLadder[n].host, kLadder[n].profile, kLadder[n].medium, options);
        add(table, kLadder[n], ladder[n], true);
        picture.curves.push_back(ladder[n].curve);
    }
    // GAMMA's own protocol detects losses and repairs none.
    for (Claim claim : {kLadder[2], kLadder[3]}) {
        claim.profile = "detect";
        claim.note = "§4.5.5";
        add(table, claim, measure(claim.host, claim.profile, claim.medium, options), true);
    }
    const Ours copy = measure("gamma-0.2-copy", "urtp", MediumKind::kDirect, options);
    table.figures.push_back({"GAMMA 0.2 and a copy, loss of the line", "%", 24.0,
                             (ladder[1].asymptotic - copy.asymptotic) / 12.5 * 100, "§4.5.6",
                             FigureKind::kInput});
    picture.curves.push_back(copy.curve);
    const Ours ideal = measure("ideal", "urtp", MediumKind::kDirect, options);
    table.figures.push_back({"ideal, one way", "µs", kIdealLatency, ideal.latency,
                             "§4.5.8 assumes 7 µs; our ideal host has the wire alone"});
    table.figures.push_back({"ideal, half-power", "B", {}, ideal.half_power, "budget: 96 B"});
    std::vector<double> linux_tcp;  // MB/s at 1500 B
    for (const Claim& claim : kOthers) {
        const Ours ours = add_with_default(table, claim, options);
        if (std::string_view(claim.host).starts_with("linux-tcp"))
            linux_tcp.push_back(ours.at_1500);
    }
    table.shapes.push_back(
        {"a driver that waits for transfers lowers TCP's throughput, a slower processor more "
         "(figure 3.1)",
         list_of(linux_tcp, "MB/s"), std::ranges::is_sorted(linux_tcp, std::greater{})});
    for (const Platform& platform : kPlatforms) {
        table.figures.push_back({platform.name, "µs", platform.latency, {}, "table 3.1"});
        table.figures.push_back({"", "MB/s", platform.throughput, {}, ""});
    }
    table.figures.push_back({"ULC, 100base-T, GAMMA's P133", "µs", {}, ladder[3].latency, ""});
    table.figures.push_back({"", "MB/s", {}, ladder[3].asymptotic, ""});
    add_shapes(table, ladder);
    picture.curves.push_back(ideal.curve);
    picture.curves.push_back(ideal_curve(512U << 10));
    table.pictures.push_back(std::move(picture));
    return table;
}

}  // namespace ulc::sim
