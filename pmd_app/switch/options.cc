// SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

#include "base/text/quantity.h"
#include "switch/program.h"

namespace ulc::ether_switch {
namespace {

constexpr unsigned kPortsMax = 64;
constexpr std::uint64_t kRateMax = 1'000'000'000'000;

/// Returns the conflict between the options, or nothing.
std::string check(const SwitchOptions& o) {
    if (o.ports == 0 && o.devices.empty()) {
        return "no ports; add --ports N --socket PATH, or --device for each port";
    }
    if (o.ports != 0 && o.socket.empty())
        return "--ports needs --socket PATH, the socket that stations connect to";
    if (o.socket.find(',') != std::string::npos)
        return "--socket " + o.socket + ": a comma ends a word of a device; name a path without";
    if (o.ports == 0 && !o.socket.empty())
        return "--socket needs --ports N, the number of stations";
    if (o.ports + o.devices.size() > kPortsMax) {
        return "more than " + std::to_string(kPortsMax) +
               " ports; start a second switch and join the two";
    }
    if (o.config.faults.reorder > 0 && o.config.faults.hold <= 0)
        return "--reorder needs --hold above 0";
    return {};
}

/// Accepts a time, and replaces it by nanoseconds.
CLI::Validator time_reader(const TimeBounds& bounds) {
    return {[bounds](std::string& text) { return replace_time(text, bounds); }, "TIME"};
}

/// Accepts a rate of a link, or 0, and replaces it by bits a second.
std::string replace_rate(std::string& text) {
    std::uint64_t rate = 0;
    std::string fault = text == "0" ? "" : read_rate(text, 1, kRateMax, rate);
    if (fault.empty()) text = std::to_string(rate);
    return fault;
}

void add_faults(CLI::App& app, FaultConfig& f) {
    const auto probability = CLI::Range(0.0, 1.0);
    const auto span = time_reader({kMicrosecond, 0, 10 * kSecond});
    const auto group = [](CLI::Option* option) {
        option->group("Faults, judged at each output for itself");
    };
    group(app.add_option("--loss", f.loss, "Probability that a frame is lost")->check(probability));
    group(app.add_option("--dup", f.duplicate, "Probability that a frame is sent twice")
              ->check(probability));
    group(app.add_option("--reorder", f.reorder,
                         "Probability that a frame is overtaken by later ones")
              ->check(probability));
    group(app.add_option("--delay", f.delay, "Delay of every frame, as 50us")->transform(span));
    group(app.add_option("--jitter", f.jitter, "More delay, random below this, as 50us")
              ->transform(span));
    group(app.add_option("--hold", f.hold,
                         "A reordered frame waits this long to twice this long [100us]")
              ->transform(span));
}

}  // namespace

std::vector<std::string> SwitchOptions::all_devices() const {
    std::vector<std::string> all;
    for (unsigned id = 0; id < ports; ++id) {
        all.push_back("net_memif,role=server,id=" + std::to_string(id) +
                      ",socket-abstract=no,socket=" + socket);
    }
    all.insert(all.end(), devices.begin(), devices.end());
    return all;
}

bool parse_switch_options(int argc, const char* const* argv, SwitchOptions& out, int& status) {
    CLI::App app("ulc-switch: a learning Ethernet switch between DPDK ports, with seeded faults");
    SwitchConfig& c = out.config;
    app.add_option("--ports", out.ports, "Number of memif ports; station k connects with id=k")
        ->check(CLI::Range(1U, kPortsMax));
    app.add_option("--socket", out.socket, "Unix socket of the memif ports");
    app.add_option("--device", out.devices,
                   "One more port: any DPDK device string; may be repeated")
        ->delimiter('\0')
        ->allow_extra_args(false);
    app.add_option("--mtu", out.mtu, "Octets after the Ethernet header [1500]")
        ->check(CLI::Range(0, 9216));
    app.add_option("--seed", c.seed, "Seed of the faults: same seed and frames, same faults [1]");
    add_faults(app, c.faults);
    app.add_option("--rate", c.rate, "Speed of every link, as 100mbit; 0: as fast as it goes [0]")
        ->transform(CLI::Validator(replace_rate, "RATE"));
    app.add_option("--buffer", c.buffer, "Octets that may wait at an output, with --rate [524288]");
    app.add_option("--queue", c.queue_frames_max, "Frames that may wait at an output [4096]")
        ->check(CLI::Range(64, 1 << 20));
    app.add_option("--age", c.age, "Time after which a silent station is forgotten [300s]")
        ->transform(time_reader({kSecond, kMillisecond, 1'000'000 * kSecond}));
    app.add_option("--ethertype", c.ether_type,
                   "EtherType whose frames are counted by kind [0x88B5]");
    app.add_option("--stats", out.stats_file,
                   "File for counters as JSON: on SIGUSR1 and at the end; - is stdout");
    app.add_option("--memory", out.memory_mb, "MiB for frames; 0: from the number of ports [0]");
    app.add_option("--eal", out.eal_args,
                   "One more argument for DPDK's EAL, for experts; may be repeated")
        ->delimiter('\0')
        ->allow_extra_args(false);
    app.set_version_flag("--version", ULC_VERSION);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& done) {
        status = app.exit(done);
        return false;
    } catch (const CLI::Error& error) {
        std::fprintf(stderr, "ulc-switch: %s; --help lists the options\n", error.what());
        status = 2;
        return false;
    }
    if (const std::string wrong = check(out); !wrong.empty()) {
        std::fprintf(stderr, "ulc-switch: %s\n", wrong.c_str());
        status = 2;
        return false;
    }
    return true;
}

std::string statistics_json(const Switch& ether_switch, const SwitchOptions& options) {
    nlohmann::ordered_json root;
    root["seed"] = options.config.seed;
    Switch::Row total{};
    const std::vector<std::string> devices = options.all_devices();
    for (std::size_t port = 0; port < ether_switch.ports(); ++port) {
        nlohmann::ordered_json row;
        row["device"] = devices[port];
        for (std::size_t i = 0; i < kSwitchCounterCount; ++i) {
            row[kSwitchCounterNames[i]] = ether_switch.counters(port)[i];
            total[i] += ether_switch.counters(port)[i];
        }
        root["ports"].push_back(std::move(row));
    }
    for (std::size_t i = 0; i < kSwitchCounterCount; ++i)
        root["total"][kSwitchCounterNames[i]] = total[i];
    return root.dump(2) + "\n";
}

}  // namespace ulc::ether_switch
