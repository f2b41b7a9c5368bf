// SPDX-License-Identifier: BSD-3-Clause
// Rows of the table `policies` for short messages: a stream of 20 bytes by profile, with and
// without packing (docs/protocol/MESSAGES.md §6.7).
#include "tests/sim/tables/short_messages.h"

#include <cmath>
#include <cstdio>

#include "base/check.h"
#include "tests/sim/cluster/experiment.h"
#include "tests/sim/host/presets.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kOctets = 20;

struct Stream {
    double millions = std::nan("");  ///< messages a second
    double frames = std::nan("");    ///< sent by all nodes for a message
};

Stream run(const char* profile, std::uint64_t bits_per_second, const TableOptions& options) {
    Experiment e;
    e.cluster.net.ports = 2;
    e.cluster.net.bits_per_second = bits_per_second;
    e.cluster.net.latency = 2 * kMicrosecond;
    e.cluster.net.seed = options.seed;
    e.cluster.seed = options.seed;
    e.cluster.sizes = {256, 512, 256U << 10, 256U << 10};
    e.cluster.engine.profile = profile;
    const auto preset = host_preset("own-machine");
    ULC_CHECK(preset.has_value());
    e.cluster.hosts = {*preset};
    e.traffic = {.kind = TrafficKind::kStream, .octets = kOctets, .count = 5'000, .warm_up = 256};
    const Figures f = run_experiment(e);
    if (!f.error.empty()) return {};
    const auto messages = static_cast<double>(f.messages);
    return {messages / static_cast<double>(f.elapsed) * 1e3,
            static_cast<double>(f.tx_frames) / messages};
}

}  // namespace

void add_short_messages(Table& table, const TableOptions& options) {
    Grid grid{"one stream of 20 B on a switch, by rate",
              "M messages/s; frames a message",
              {"100 Mb/s", "frames", "1 Gb/s", "frames"},
              {},
              3};
    for (const char* profile : {"urtp", "urtp+pack", "gbn", "gbn+pack", "credit", "credit+pack",
                                "optimistic", "optimistic+pack"}) {
        const Stream slow = run(profile, 100'000'000, options);
        const Stream fast = run(profile, 1'000'000'000, options);
        grid.rows.push_back({profile, {slow.millions, slow.frames, fast.millions, fast.frames}});
    }
    const double gain = grid.rows[1].values[0] / grid.rows[0].values[0];
    char text[40];
    std::snprintf(text, sizeof text, "%.1f times as many", gain);
    table.shapes.push_back(
        {"messages of 20 B at 100 Mb/s: packing carries at least 2.5 times as many", text,
         gain >= 2.5});
    table.grids.push_back(std::move(grid));
}

}  // namespace ulc::sim
