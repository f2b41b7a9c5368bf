// SPDX-License-Identifier: BSD-3-Clause
// ulc-sim run: one scenario, and its figures for people.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "tests/sim/cli/commands.h"
#include "tests/sim/scenario/scenario_file.h"
#include "tests/sim/trace/pcapng.h"

namespace ulc::sim {
namespace {

double micros(Nanos span) { return static_cast<double>(span) / 1e3; }

const char* name_of(MediumKind kind) {
    switch (kind) {
        case MediumKind::kSwitch:
            return "switch";
        case MediumKind::kCutThrough:
            return "cut-through switch";
        case MediumKind::kDirect:
            return "cable";
        case MediumKind::kHub:
            return "hub";
    }
    return "";
}

void print_traffic(const Experiment& experiment, const Figures& f) {
    const NetConfig& net = experiment.cluster.net;
    const double line = static_cast<double>(net.bits_per_second) / 8;
    fmt::print(
        "messages        {} delivered, {} octets, in {:.3f} ms after a forming of {:.3f} ms\n",
        f.messages, f.octets, micros(f.elapsed) / 1e3, micros(f.form_time) / 1e3);
    if (experiment.traffic.kind != TrafficKind::kCollective)
        fmt::print("goodput         {:.3f} MB/s at each receiver, {:.2f} % of one line\n",
                   f.goodput() / 1e6, 100 * f.goodput() / line);
    fmt::print("latency         median {:.2f} us, 90 % {:.2f}, 99 % {:.2f}, longest {:.2f}\n",
               micros(f.latency_percentile(50)), micros(f.latency_percentile(90)),
               micros(f.latency_percentile(99)), micros(f.latency_percentile(100)));
    if (experiment.traffic.kind == TrafficKind::kIncast)
        fmt::print("fairness        {:.4f} (Jain, when the first source had finished)\n",
                   f.fairness());
}

void print_transport(const Figures& f) {
    fmt::print("packets         {} first transmissions, {} repairs ({} to one, {} to a group)\n",
               f.count(Counter::data_sent), f.repairs(), f.count(Counter::repair_unicast),
               f.count(Counter::repair_multicast));
    fmt::print("control         {:.4f} packets a data packet: {} ACK, {} REQ, {} PROBE\n",
               f.control_per_data(), f.count(Counter::ack_sent), f.count(Counter::req_sent),
               f.count(Counter::probe_sent));
    fmt::print("frames          {} sent, {} octets; {} found a NIC full, {} given up\n",
               f.tx_frames, f.tx_octets, f.overruns, f.given_up);
    fmt::print("medium         ");
    for (const auto& [name, value] : f.medium)
        fmt::print(" {} {}", name, value);
    fmt::print("\ndropped        ");
    bool any = false;
    for (std::size_t id = 0; id < f.counters.size(); ++id) {
        if (!kCounterInfo[id].id.starts_with("drop_") || f.counters[id] == 0) continue;
        fmt::print(" {} {}", kCounterInfo[id].id.substr(5), f.counters[id]);
        any = true;
    }
    fmt::print("{}\nturns           {}\n", any ? "" : " nothing", f.turns);
}

}  // namespace

int run_command(const RunOptions& options) {
    Scenario scenario;
    const std::string mistake = read_scenario(options.scenario, options.seed, scenario);
    if (!mistake.empty()) {
        fmt::print(stderr, "ulc-sim: {}\n", mistake);
        return 2;
    }
    Experiment& experiment = scenario.experiment;
    std::unique_ptr<PcapngTrace> trace;
    if (!options.trace.empty()) {
        trace = PcapngTrace::open(options.trace, experiment.cluster.net.ports);
        if (trace == nullptr) {
            fmt::print(stderr, "ulc-sim: {}: cannot be written: {}; name another file by --trace\n",
                       options.trace, std::strerror(errno));
            return 2;
        }
        experiment.tap = trace.get();
    }
    fmt::print("scenario        {}, seed {}\n",
               scenario.name.empty() ? options.scenario : scenario.name, scenario.seed);
    const NetConfig& net = experiment.cluster.net;
    fmt::print("cluster         {} nodes on a {} of {} Mb/s, hosts {}\n", net.ports,
               name_of(net.medium), net.bits_per_second / 1'000'000,
               experiment.cluster.hosts.front().name);
    const Figures figures = run_experiment(experiment);
    print_traffic(experiment, figures);
    print_transport(figures);
    if (trace != nullptr && !trace->good()) {
        fmt::print(stderr, "ulc-sim: {}: not all of the trace could be written\n", options.trace);
        return 2;
    }
    if (figures.error.empty()) return 0;
    fmt::print("FAILED          {}\n", figures.error);
    return 1;
}

}  // namespace ulc::sim
