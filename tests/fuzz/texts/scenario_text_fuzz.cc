// SPDX-License-Identifier: BSD-3-Clause
// Any text as a scenario of the simulator. It is refused with a sentence that begins with the name
// of the file, or it names nodes, ranks and times that the simulator takes.
#include <algorithm>
#include <cmath>

#include "../input.h"
#include "base/check.h"
#include "tests/sim/scenario/scenario_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ulc;
    using namespace ulc::sim;
    fuzz::Input in(data, size);
    Scenario scenario;
    const std::string mistake = read_scenario_text("scenario", in.text(), 0, scenario);
    if (!mistake.empty()) {
        ULC_CHECK(mistake.starts_with("scenario:"));
        return 0;
    }
    const Experiment& experiment = scenario.experiment;
    const unsigned nodes = experiment.cluster.net.ports;
    const unsigned ranks = experiment.ranks != 0 ? experiment.ranks : nodes;
    ULC_CHECK(scenario.seed >= 1 && ranks >= 2);
    for (const ScenarioEvent& event : experiment.events) {
        ULC_CHECK(event.at >= 0 && event.lasts >= 0 && std::isfinite(event.speed));
        switch (event.kind) {
            case EventKind::kPartition:
                ULC_CHECK(nodes >= 64 || event.index >> nodes == 0);
                break;
            case EventKind::kPauseClient:
            case EventKind::kKillClient:
                ULC_CHECK(event.index < ranks);
                break;
            default:
                ULC_CHECK(event.index < nodes);
        }
    }
    return 0;
}
