// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/scenario/scenario_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/sim/host/presets.h"
#include "urtp/policy.h"

namespace ulc::sim {
namespace {

/// The fault of a file; ends the reading. Not thrown out of this file.
struct Mistake : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One table of the file: returns its keys, and at its end knows those that were never read.
class Table {
public:
    Table(const std::string& file, std::string name, const toml::table& table)
        : file_(file), name_(std::move(name)), table_(table) {}

    [[noreturn]] void fail(const toml::node* at, std::string_view key,
                           const std::string& what) const {
        const auto line = at != nullptr ? at->source().begin.line : table_.source().begin.line;
        std::string place = name_;
        if (!key.empty()) place += (name_.empty() ? "" : ".") + std::string(key);
        throw Mistake(file_ + ":" + std::to_string(line) + ": " + place + ": " + what);
    }
    [[nodiscard]] const toml::node* find(std::string_view key) {
        asked_.emplace(key);
        return table_.get(key);
    }
    /// Reads a number in minimum … maximum, times unit. Returns false if the key is missing.
    template <typename T>
    bool number(std::string_view key, T& out, double minimum, double maximum, double unit = 1) {
        const toml::node* node = find(key);
        if (node == nullptr) return false;
        if (!node->is_number()) fail(node, key, "must be a number");
        const double value = *node->value<double>();
        if (!(value >= minimum && value <= maximum)) {
            std::ostringstream what;
            what << "must be from " << minimum << " to " << maximum << ", and is " << value;
            fail(node, key, what.str());
        }
        if constexpr (std::is_floating_point_v<T>) {
            out = value * unit;
        } else {
            if (unit == 1 && value != static_cast<double>(static_cast<std::int64_t>(value)))
                fail(node, key, "must be a whole number");
            out = static_cast<T>(std::llround(value * unit));
        }
        return true;
    }
    void micros(std::string_view key, Nanos& out, double maximum_us) {
        number(key, out, 0, maximum_us, 1e3);
    }
    bool text(std::string_view key, std::string& out) {
        const toml::node* node = find(key);
        if (node == nullptr) return false;
        if (!node->is_string()) fail(node, key, "must be a text in quotes");
        out = *node->value<std::string>();
        return true;
    }
    void flag(std::string_view key, bool& out) {
        const toml::node* node = find(key);
        if (node == nullptr) return;
        if (!node->is_boolean()) fail(node, key, "must be true or false");
        out = *node->value<bool>();
    }
    template <typename T, std::size_t N>
    bool choice(std::string_view key, T& out,
                const std::array<std::pair<std::string_view, T>, N>& choices) {
        std::string word;
        if (!text(key, word)) return false;
        std::string names;
        for (const auto& [name, value] : choices) {
            if (name == word) {
                out = value;
                return true;
            }
            names += (names.empty() ? "" : ", ") + std::string(name);
        }
        fail(table_.get(key), key, "must be one of " + names + ", and is \"" + word + "\"");
    }
    void no_other_keys() const {
        for (const auto& [key, node] : table_) {
            if (asked_.contains(key.str())) continue;
            std::string known;
            for (const std::string& name : asked_)
                known += (known.empty() ? "" : ", ") + name;
            fail(&node, key.str(), "is not a key here; there are " + known);
        }
    }
    /// Returns the table under that key, or an empty one.
    [[nodiscard]] Table table(std::string_view key) {
        static const toml::table kEmpty;
        const toml::node* node = find(key);
        if (node == nullptr) return {file_, std::string(key), kEmpty};
        if (!node->is_table()) fail(node, key, "must be a table: [" + std::string(key) + "]");
        return {file_, std::string(key), *node->as_table()};
    }
    [[nodiscard]] const std::string& file() const noexcept { return file_; }

private:
    const std::string& file_;
    std::string name_;
    const toml::table& table_;
    std::set<std::string, std::less<>> asked_;
};

constexpr double kMicrosMax = 600e6;

void read_medium(Table t, NetConfig& net) {
    t.number("nodes", net.ports, 1, 4096);
    t.choice("kind", net.medium,
             std::array<std::pair<std::string_view, MediumKind>, 4>{
                 {{"switch", MediumKind::kSwitch},
                  {"cut-through", MediumKind::kCutThrough},
                  {"direct", MediumKind::kDirect},
                  {"hub", MediumKind::kHub}}});
    t.number("rate_mbps", net.bits_per_second, 1, 1e6, 1e6);
    if (const toml::node* node = t.find("port_rates_mbps"); node != nullptr) {
        const toml::array* rates = node->as_array();
        if (rates == nullptr) t.fail(node, "port_rates_mbps", "must be a list of numbers");
        for (const toml::node& one : *rates) {
            const auto rate = one.value<double>();
            if (!rate || *rate < 1 || *rate > 1e6)
                t.fail(&one, "port_rates_mbps", "each must be a number from 1 to 1000000");
            net.port_bits_per_second.push_back(static_cast<std::uint64_t>(*rate * 1e6));
        }
    }
    t.number("mtu", net.mtu, 576, 9216);
    t.micros("latency_us", net.latency, kMicrosMax);
    t.number("cable_ns", net.cable, 0, 1e9);
    t.number("buffer_octets", net.buffer_octets, 0, 1e12);
    t.number("shared_octets", net.shared_octets, 0, 1e12);
    t.number("segments", net.segments, 64, 1 << 20);
    const std::string problem = problem_of(net);
    if (!problem.empty()) t.fail(nullptr, "", problem);
    t.no_other_keys();
}

void read_faults(Table t, FaultRates& faults) {
    t.number("loss", faults.loss, 0, 1);
    t.number("duplicate", faults.duplicate, 0, 1);
    t.number("reorder", faults.reorder, 0, 1);
    t.micros("reorder_delay_us", faults.reorder_delay, kMicrosMax);
    t.number("corrupt", faults.corrupt, 0, 1);
    t.number("burst_enter", faults.burst.enter, 0, 1);
    t.number("burst_leave", faults.burst.leave, 0, 1);
    t.number("burst_loss", faults.burst.loss, 0, 1);
    t.no_other_keys();
}

HostCosts preset_of(const Table& t, const toml::node& node, std::string_view key) {
    const auto name = node.value<std::string>();
    const auto preset = name ? host_preset(*name) : std::nullopt;
    if (!preset) t.fail(&node, key, "must name a host: " + host_preset_names());
    return *preset;
}

void read_host(Table t, std::vector<HostCosts>& hosts) {
    hosts.assign(1, {});
    if (const toml::node* node = t.find("preset"); node != nullptr) {
        if (const toml::array* names = node->as_array(); names != nullptr) {
            hosts.clear();
            for (const toml::node& name : *names)
                hosts.push_back(preset_of(t, name, "preset"));
            if (hosts.empty()) t.fail(node, "preset", "names no host");
        } else {
            hosts[0] = preset_of(t, *node, "preset");
        }
    }
    for (HostCosts& host : hosts) {
        t.number("round_ns", host.round, 1, 1e9);
        t.number("send_frame_ns", host.send_frame, 0, 1e9);
        t.number("send_octet_ns", host.send_octet, 0, 1e6);
        t.number("receive_frame_ns", host.receive_frame, 0, 1e9);
        t.number("receive_octet_ns", host.receive_octet, 0, 1e6);
        t.number("submit_ns", host.submit, 0, 1e9);
        t.number("complete_ns", host.complete, 0, 1e9);
        t.number("wake_ns", host.wake, 0, 1e9);
        t.number("speed", host.speed, 1e-4, 1e4);
        t.choice("notice", host.notice,
                 std::array<std::pair<std::string_view, Notice>, 2>{
                     {{"poll", Notice::kPoll}, {"interrupt", Notice::kInterrupt}}});
        t.number("poll_period_ns", host.poll_period, 0, 1e9);
        t.number("interrupt_latency_ns", host.interrupt_latency, 0, 1e9);
        t.number("interrupt_cost_ns", host.interrupt_cost, 0, 1e9);
        t.number("bus_octet_ns", host.bus_octet, 0, 1e6);
        t.number("bus_setup_ns", host.bus_setup, 0, 1e9);
        t.flag("bus_by_processor", host.bus_by_processor);
        t.number("send_threshold", host.send_threshold, 0, 9216);
        t.number("receive_threshold", host.receive_threshold, 0, 9216);
        t.number("nic_ns", host.nic, 0, 1e9);
        t.number("tx_ring_frames", host.tx_ring_frames, 1, 32768);
        t.number("rx_ring_frames", host.rx_ring_frames, 1, 32768);
    }
    t.no_other_keys();
}

void read_engine(Table t, engine::EngineConfig& engine) {
    urtp::Params& p = engine.params;
    if (t.text("profile", engine.profile)) {
        urtp::Policy policy;
        urtp::Params params;
        if (urtp::resolve(engine.profile, policy, params) != Err::kOk)
            t.fail(t.find("profile"), "profile", "is no profile that the transport knows");
    }
    if (t.number("window", p.window, 32, 16384) && (p.window & (p.window - 1)) != 0)
        t.fail(t.find("window"), "window", "must be a power of two");
    t.number("ack_window", p.ack_window, 1, 1024);
    t.micros("ack_delay_us", p.ack_delay, kMicrosMax);
    t.micros("ack_delay_max_us", p.ack_delay_max, kMicrosMax);
    t.micros("reorder_wait_us", p.reorder_wait, kMicrosMax);
    t.micros("req_spread_us", p.req_spread, kMicrosMax);
    t.micros("repair_gather_us", p.repair_gather, kMicrosMax);
    t.micros("min_req_gap_us", p.min_req_gap, kMicrosMax);
    t.micros("min_recv_wait_us", p.min_recv_wait, kMicrosMax);
    t.micros("max_recv_wait_us", p.max_recv_wait, kMicrosMax);
    t.micros("initial_rtt_us", p.initial_rtt, kMicrosMax);
    t.micros("min_send_wait_us", p.min_send_wait, kMicrosMax);
    t.micros("max_send_wait_us", p.max_send_wait, kMicrosMax);
    t.micros("peer_dead_us", p.peer_dead, kMicrosMax);
    t.micros("node_dead_us", engine.jobs.liveness.node_dead, kMicrosMax);
    t.number("rx_pool", p.rx_pool_packets, 16, 65536);
    t.flag("request_on_receive", p.request_on_receive);
    t.flag("crc", engine.crc);
    t.no_other_keys();
}

void read_region(Table t, abi::RegionSizes& sizes) {
    const auto power = [&t](std::string_view key, std::uint32_t& out) {
        if (t.number(key, out, 8, 65536) && (out & (out - 1)) != 0)
            t.fail(t.find(key), key, "must be a power of two");
    };
    power("submission_slots", sizes.sq_slots);
    power("completion_slots", sizes.cq_slots);
    t.number("tx_arena", sizes.tx_arena_octets, abi::kArenaOctetsMin, 1 << 30);
    t.number("rx_arena", sizes.rx_arena_octets, abi::kArenaOctetsMin, 1 << 30);
    t.no_other_keys();
}

void read_traffic(Table t, Experiment& experiment) {
    ExperimentTraffic& traffic = experiment.traffic;
    t.choice("kind", traffic.kind,
             std::array<std::pair<std::string_view, TrafficKind>, 5>{
                 {{"stream", TrafficKind::kStream},
                  {"ping-pong", TrafficKind::kPingPong},
                  {"multicast", TrafficKind::kMulticast},
                  {"incast", TrafficKind::kIncast},
                  {"collective", TrafficKind::kCollective}}});
    t.number("ranks", experiment.ranks, 2, 65534);
    t.number("octets", traffic.octets, 0, 1 << 30);
    t.number("count", traffic.count, 1, 1e9);
    t.number("warm_up", traffic.warm_up, 0, 1e9);
    t.choice("collective", traffic.collective,
             std::array<std::pair<std::string_view, CollectiveKind>, 11>{
                 {{"barrier", CollectiveKind::kBarrier},
                  {"broadcast", CollectiveKind::kBroadcast},
                  {"allgather", CollectiveKind::kAllgather},
                  {"gather", CollectiveKind::kGather},
                  {"scatter", CollectiveKind::kScatter},
                  {"alltoall", CollectiveKind::kAlltoall},
                  {"reduce", CollectiveKind::kReduce},
                  {"allreduce", CollectiveKind::kAllreduce},
                  {"reduce_scatter", CollectiveKind::kReduceScatter},
                  {"scan", CollectiveKind::kScan},
                  {"exscan", CollectiveKind::kExscan}}});
    t.text("algorithm", traffic.algorithm);
    t.flag("rotate_root", traffic.rotate_root);
    t.number("limit_s", experiment.limit, 0.001, 1e6, 1e9);
    const unsigned ranks = experiment.ranks != 0 ? experiment.ranks : experiment.cluster.net.ports;
    if (ranks < 2) t.fail(nullptr, "ranks", "there must be two ranks at least");
    t.no_other_keys();
}

ScenarioEvent read_event(Table t, const Experiment& experiment) {
    ScenarioEvent event;
    const unsigned nodes = experiment.cluster.net.ports;
    const unsigned ranks = experiment.ranks != 0 ? experiment.ranks : nodes;
    const bool known = t.choice("kind", event.kind,
                                std::array<std::pair<std::string_view, EventKind>, 7>{
                                    {{"partition", EventKind::kPartition},
                                     {"unplug", EventKind::kUnplug},
                                     {"slow-node", EventKind::kSlowNode},
                                     {"pause-node", EventKind::kPauseNode},
                                     {"pause-client", EventKind::kPauseClient},
                                     {"kill-client", EventKind::kKillClient},
                                     {"kill-node", EventKind::kKillNode}}});
    if (!known) t.fail(nullptr, "kind", "must be there: what happens");
    t.number("at_us", event.at, 0, kMicrosMax, 1e3);
    t.number("lasts_us", event.lasts, 0, kMicrosMax, 1e3);
    switch (event.kind) {
        case EventKind::kPartition: {
            const toml::node* node = t.find("nodes");
            const toml::array* list = node != nullptr ? node->as_array() : nullptr;
            if (list == nullptr) t.fail(node, "nodes", "must be a list of the nodes to cut off");
            for (const toml::node& one : *list) {
                const auto index = one.value<std::int64_t>();
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
                if (!index || *index < 0 || *index >= std::min(nodes, 64U))
#else
                if (!index)
#endif
                    t.fail(&one, "nodes",
                           "each must be a node from 0 to " +
                               std::to_string(std::min(nodes, 64U) - 1));
                event.index |= 1ULL << *index;
            }
            break;
        }
        case EventKind::kPauseClient:
        case EventKind::kKillClient:
            if (!t.number("rank", event.index, 0, ranks - 1.0))
                t.fail(nullptr, "rank", "must be there: whom it befalls");
            break;
        case EventKind::kSlowNode:
            t.number("speed", event.speed, 1e-4, 1e4);
            [[fallthrough]];
        case EventKind::kUnplug:
        case EventKind::kPauseNode:
        case EventKind::kKillNode:
            if (!t.number("node", event.index, 0, nodes - 1.0))
                t.fail(nullptr, "node", "must be there: whom it befalls");
            break;
    }
    t.no_other_keys();
    return event;
}

void read_events(Table& top, Experiment& experiment) {
    const toml::node* node = top.find("event");
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) top.fail(node, "event", "must be tables: [[event]]");
    for (const toml::node& one : *list) {
        const toml::table* table = one.as_table();
        if (table == nullptr) top.fail(&one, "event", "must be tables: [[event]]");
        experiment.events.push_back(read_event({top.file(), "event", *table}, experiment));
    }
}

/// `name`: begins each message. `parse`: returns the file's tables, or throws the objection of
/// TOML.
template <typename Parse>
std::string read(const std::string& name, Parse parse, std::uint64_t seed, Scenario& out) {
    try {
        const toml::table file = parse();
        Table top(name, "", file);
        ClusterConfig& cluster = out.experiment.cluster;
        cluster.sizes = {256, 512, 1U << 20, 2U << 20};  // as the daemon's defaults
        top.text("name", out.name);
        top.number("seed", out.seed, 1, 9e15);
        if (seed != 0) out.seed = seed;
        cluster.seed = cluster.net.seed = out.seed;
        read_medium(top.table("medium"), cluster.net);
        read_faults(top.table("faults"), cluster.net.faults);
        read_host(top.table("host"), cluster.hosts);
        read_engine(top.table("engine"), cluster.engine);
        read_region(top.table("region"), cluster.sizes);
        read_traffic(top.table("traffic"), out.experiment);
        read_events(top, out.experiment);
        top.no_other_keys();
        return {};
    } catch (const toml::parse_error& error) {
        return name + ":" + std::to_string(error.source().begin.line) + ": " +
               std::string(error.description()) + "; correct what TOML cannot read";
    } catch (const Mistake& mistake) {
        return mistake.what();
    }
}

}  // namespace

std::string read_scenario(const std::string& path, std::uint64_t seed, Scenario& out) {
    return read(
        path, [&] { return toml::parse_file(path); }, seed, out);
}

std::string read_scenario_text(const std::string& name, std::string_view text, std::uint64_t seed,
                               Scenario& out) {
    return read(
        name, [&] { return toml::parse(text, name); }, seed, out);
}

}  // namespace ulc::sim
