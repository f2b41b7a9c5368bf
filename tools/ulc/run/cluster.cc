// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/run/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/medium.h"
#include "base/text/quantity.h"
#include "tools/ulc/programs.h"
#include "tools/ulc/run/bridge_wire.h"

namespace ulc::tools {
namespace {

constexpr const char* kBondName = "wire:";  ///< net of all links of a node
constexpr unsigned kUdpPort = 30791;  // below those that the kernel gives out, and not RoCE's 4791
constexpr std::array kNamespaceWires{kWireBridge, kWireRouted};

std::string memif(const char* role, const std::string& id, const std::string& socket,
                  unsigned number = 0) {
    return fmt::format("net_memif{},role={},id={},socket={},socket-abstract=no", number, role, id,
                       socket);
}

/// The socket of the switch for the nodes' links of this number.
std::string switch_socket(const std::string& directory, unsigned link) {
    const std::string number = link == 0 ? "" : fmt::format("-{}", link);
    return fmt::format("{}/switch{}.memif", directory, number);
}

/// The socket of the switch for a row (0) or a column (1) of a mesh.
std::string mesh_socket(const std::string& directory, unsigned line, unsigned number) {
    return fmt::format("{}/{}{}.memif", directory, line == 0 ? "row" : "column", number);
}

/// A link of node k of a mesh, to its row (0) or its column (1).
std::string device_in_mesh(const ClusterOptions& options, unsigned node, unsigned link,
                           const std::string& directory) {
    const unsigned row = node / options.mesh_columns;
    const unsigned column = node % options.mesh_columns;
    return memif("client", std::to_string(link == 0 ? column : row),
                 mesh_socket(directory, link, link == 0 ? row : column), link);
}

/// The first octets of the addresses of this run's nodes on the loopback interface. Runs at one
/// time have different ones.
std::string loopback_of_run() {
    const auto run = static_cast<unsigned>(::getpid());
    return fmt::format("127.{}.{}.", 1 + run / 256 % 255, run % 256);
}

/// A link of node k ("%n": to be filled in by libulc): a device that its engine opens.
std::string device_of_node(const ClusterOptions& options, const std::string& node, unsigned link,
                           const std::string& directory) {
    if (options.wire == kWireShm)
        return fmt::format("shm,path={}/wire,station={},stations={}", directory, node,
                           options.nodes);
    const std::string key = options.needs_key() ? ",key=" + key_file_of(directory) : "";
    if (options.is_routed())
        return fmt::format("udp,addr={0},port={2},peer={1}:{2}{3}",
                           address_of_node(true, static_cast<unsigned>(std::stoul(node))),
                           address_of_node(true, 0), kUdpPort, key);
    if (options.has_namespaces()) return fmt::format("net_af_packet,iface=eth{}", link);
    if (options.wire == kWireUdp)
        return fmt::format("udp,addr={0}{1},port={2},peer={0}0:{2}{3}", loopback_of_run(), node,
                           kUdpPort, key);
    if (options.has_mesh())
        return device_in_mesh(options, static_cast<unsigned>(std::stoul(node)), link, directory);
    if (options.has_switch()) return memif("client", node, switch_socket(directory, link), link);
    return memif(node == "0" ? "server" : "client", "0", directory + "/wire.memif");
}

/// All links of node k.
std::vector<std::string> devices_of_node(const ClusterOptions& options, const std::string& node,
                                         const std::string& directory) {
    std::vector<std::string> devices;
    for (unsigned link = 0; link < options.links; ++link)
        devices.push_back((options.links > 1 ? kBondName : "") +
                          device_of_node(options, node, link, directory));
    return devices;
}

/// Reads the rate behind the name of a bridge or router. Returns a sentence if it is wrong, else
/// nothing.
std::string complete_namespaces(ClusterOptions& options, std::string_view name) {
    const std::string rate = options.wire.substr(name.size());
    options.wire = name;
    if (!rate.empty()) {
        if (rate[0] != ':')
            return fmt::format("--wire {0}{1} is none; write {0}, or {0}:100mbit", name, rate);
        std::uint64_t given = 0;
        if (const auto wrong = read_rate(rate.substr(1), kRateMin, kRateMax, given); !wrong.empty())
            return fmt::format("--wire {}{}: {}", name, rate, wrong);
        if (options.bits_per_second > 0 && options.bits_per_second != given)
            return fmt::format("--wire {}{} and --rate {} differ; leave one out", name, rate,
                               text_of_rate(options.bits_per_second));
        options.bits_per_second = given;
    }
    if (options.has_faults())
        return fmt::format(
            "--wire {} loses, repeats, reorders and delays nothing; use --wire memif for faults",
            name);
    if (options.one_command && options.embedded)
        return "the processes of one launcher share its node's interface; leave --embedded out, or "
               "use ulc run";
    if (options.queue_octets == 0) options.queue_octets = kQueueOctets;
    if (options.is_routed() && options.links > 1)
        return "a node of --wire routed has one link; leave --links out";
    if (options.mtu == 0) options.mtu = kMtuEthernet;
    return "";
}

/// Reads the rows and columns behind the name of a mesh. Returns a sentence if they are wrong, else
/// nothing.
std::string complete_mesh(ClusterOptions& options) {
    const std::string_view size = std::string_view(options.wire).substr(kWireMesh.size());
    const std::size_t times = size.find('x');
    const bool split = size.starts_with(':') && times != std::string_view::npos;
    const auto number = [](std::string_view text) {
        unsigned value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc{} && end == text.data() + text.size() ? value : 0;
    };
    const unsigned rows = split ? number(size.substr(1, times - 1)) : 0;
    const unsigned columns = split ? number(size.substr(times + 1)) : 0;
    if (rows < 2 || columns < 2 || rows > kNodesMax || rows * columns > kNodesMax)
        return fmt::format(
            "--wire {}: a mesh has at least 2 rows and 2 columns, and at most {} nodes, as in "
            "mesh:2x3",
            options.wire, kNodesMax);
    if (options.links > 1) return "a node of a mesh has two links already; leave --links out";
    if (options.one_command && options.embedded)
        return "the option of an engine says its place in a mesh; leave --embedded out, or use ulc "
               "run";
    if (options.embedded && options.ranks != rows * columns)
        return fmt::format("--embedded with --wire {} needs -n {}", options.wire, rows * columns);
    if (options.nodes != 0 && options.nodes != rows * columns)
        return fmt::format("--wire {} has {} nodes; leave --nodes out", options.wire,
                           rows * columns);
    options.wire = kWireMesh;
    options.mesh_rows = rows;
    options.mesh_columns = columns;
    options.nodes = rows * columns;
    options.links = 2;
    if (options.mtu == 0) options.mtu = kMtuEthernet;
    return "";
}

/// Counts the cores that this process may use.
unsigned cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return static_cast<unsigned>(CPU_COUNT(&set));
}

/// A switch whose ports are on one socket. `number`: of those of this run.
ChildSpec switch_process(const ClusterOptions& options, const ClusterPrograms& programs,
                         unsigned ports, const std::string& socket, unsigned number = 0) {
    ChildSpec spec{.name = "switch"};
    spec.argv = {programs.ether_switch};
    const auto add = [&](const char* option, const std::string& value) {
        spec.argv.insert(spec.argv.end(), {option, value});
    };
    add("--ports", std::to_string(ports));
    add("--socket", socket);
    add("--mtu", std::to_string(options.mtu));
    add("--seed", std::to_string(options.seed + number));
    const auto fault = [&](const char* option, double value) {
        if (value > 0) add(option, fmt::format("{}", value));
    };
    fault("--loss", options.loss);
    fault("--dup", options.duplicate);
    fault("--reorder", options.reorder);
    fault("--delay", options.delay_us);
    if (options.bits_per_second > 0) add("--rate", std::to_string(options.bits_per_second));
    return spec;
}

/// The switch that joins all links of all nodes.
ChildSpec one_switch(const ClusterOptions& options, const ClusterPrograms& programs,
                     const std::string& directory) {
    ChildSpec spec = switch_process(options, programs, options.nodes, switch_socket(directory, 0));
    for (unsigned link = 1; link < options.links; ++link)
        for (unsigned node = 0; node < options.nodes; ++node)
            spec.argv.insert(spec.argv.end(), {"--device", memif("server", std::to_string(node),
                                                                 switch_socket(directory, link),
                                                                 link * options.nodes + node)});
    return spec;
}

/// The switches of a mesh: one for each row and each column.
std::vector<ChildSpec> mesh_switches(const ClusterOptions& options, const ClusterPrograms& programs,
                                     const std::string& directory) {
    std::vector<ChildSpec> switches;
    for (const unsigned line : {0U, 1U}) {
        const unsigned lines = line == 0 ? options.mesh_rows : options.mesh_columns;
        for (unsigned number = 0; number < lines; ++number) {
            ChildSpec spec = switch_process(options, programs, options.nodes / lines,
                                            mesh_socket(directory, line, number),
                                            static_cast<unsigned>(switches.size()));
            spec.name = fmt::format("switch of {} {}", line == 0 ? "row" : "column", number + 1);
            switches.push_back(std::move(spec));
        }
    }
    return switches;
}

/// Returns the option that tells an engine of a mesh its place; empty: there is no mesh.
std::vector<std::string> place_option(const ClusterOptions& options, unsigned node) {
    if (!options.has_mesh()) return {};
    return {fmt::format("--mesh={},{}", node / options.mesh_columns + 1,
                        node % options.mesh_columns + 1)};
}

/// Returns the options of each engine: the user's, and defaults for those that the user does not
/// give. `more`: the user's from the environment. Long frames and more than two links come with
/// half the number of segments.
std::vector<std::string> engine_options(const ClusterOptions& options, const std::string& more) {
    const std::string given = fmt::format(" {} {}", fmt::join(options.engine_options, " "), more);
    const auto says = [&](const char* option) { return given.find(option) != std::string::npos; };
    std::vector<std::string> words;
    const unsigned around = options.is_routed() ? kUdpOctets : 0;
    if (!says(" --mtu")) words.push_back(fmt::format("--mtu={}", options.mtu - around));
    const bool costly = options.mtu > kMtuEthernet || options.links > 2;
    if (costly && !says(" --segments") && !says(" --memory")) words.emplace_back("--segments=2048");
    words.insert(words.end(), options.engine_options.begin(), options.engine_options.end());
    return words;
}

ChildSpec engine_process(const ClusterOptions& options, const ClusterPrograms& programs,
                         unsigned node, const std::string& directory) {
    ChildSpec spec{.name = fmt::format("engine {}", node)};
    spec.argv = {programs.engine, "--socket", fmt::format("{}/engine-{}.sock", directory, node)};
    for (const std::string& device : devices_of_node(options, std::to_string(node), directory))
        spec.argv.insert(spec.argv.end(), {"--device", device});
    const std::vector<std::string> more = engine_options(options, "");
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    const std::vector<std::string> place = place_option(options, node);
    spec.argv.insert(spec.argv.end(), place.begin(), place.end());
    return spec;
}

/// The medium that algorithms are chosen for, unless the user says it. Each engine polls, and so
/// does each rank that waits.
Medium medium_of(const ClusterOptions& options) {
    const unsigned ranks = options.one_command ? options.nodes : options.ranks;  // at least
    const unsigned pollers = ranks + (options.embedded ? 0 : options.nodes);
    if (options.bits_per_second > 0) return Medium::kSwitch;
    return pollers > cores() ? Medium::kCrowded : Medium::kMachine;
}

/// The name of the engine of a node, "%n" for the one that libulc chooses.
std::string engine_of_node(const ClusterOptions& options, const std::string& node,
                           const std::string& directory) {
    return options.embedded ? fmt::format("embedded:{}",
                                          fmt::join(devices_of_node(options, node, directory), ";"))
                            : fmt::format("{}/engine-{}.sock", directory, node);
}

ChildSpec rank_process(const ClusterOptions& options, const ClusterPrograms& programs,
                       const std::string& engine, unsigned rank) {
    ChildSpec spec{.name = fmt::format("rank {}", rank), .argv = options.application};
    if (options.one_command) {
        spec.name = options.application[0];
        spec.environment = {"ULC_ENGINE=" + engine, fmt::format("ULC_NODES={}", options.nodes)};
    } else {
        spec.environment = {
            "ULC_ENGINE=" + engine, "ULC_JOB=" + options.job, fmt::format("ULC_RANK={}", rank),
            fmt::format("ULC_SIZE={}", options.ranks), "ULC_NONCE=" + options.nonce};
    }
    if (environment_of("ULC_MEDIUM").empty())
        spec.environment.push_back(fmt::format("ULC_MEDIUM={}", name_of(medium_of(options))));
    if (options.embedded) {
        const std::string own = environment_of("ULC_ENGINE_OPTIONS");
        spec.environment.push_back(fmt::format("ULC_ENGINE_OPTIONS={} {} {}",
                                               fmt::join(engine_options(options, own), " "),
                                               fmt::join(place_option(options, rank), " "), own));
    }
    if (!programs.library_path.empty())
        spec.environment.push_back("LD_LIBRARY_PATH=" + programs.library_path);
    if (rank == 0) spec.stdin_from = StdinFrom::kParent;
    return spec;
}

}  // namespace

std::string key_file_of(const std::string& directory) { return directory + "/key"; }

std::string complete(ClusterOptions& options) {
    if (options.ranks < 1 || options.ranks > kRanksMax) {
        return fmt::format("-n must be 1 to {}, not {}", kRanksMax, options.ranks);
    }
    if (options.wire.starts_with(kWireMesh)) {
        if (std::string wrong = complete_mesh(options); !wrong.empty()) return wrong;
        if (!options.one_command && options.ranks < options.nodes)
            return fmt::format("-n {} would leave nodes of the mesh without ranks; use at least {}",
                               options.ranks, options.nodes);
    }
    if (options.one_command) {
        if (options.nodes < 1) return "say how many nodes, for example --nodes 4";
    } else if (options.embedded) {
        if (options.nodes != 0 && options.nodes != options.ranks) {
            return "with --embedded each rank is its own node; leave --nodes out";
        }
        options.nodes = options.ranks;
    }
    if (options.nodes == 0) options.nodes = std::min(options.ranks, 2U);
    if (options.nodes > kNodesMax) {
        return fmt::format(
            "{} nodes are more than a wire of one machine joins ({}); use fewer --nodes",
            options.nodes, kNodesMax);
    }
    if (options.wire.empty()) options.wire = options.needs_switch() ? kWireMemif : kWireShm;
    const auto named = std::ranges::find_if(
        kNamespaceWires, [&](std::string_view name) { return options.wire.starts_with(name); });
    if (named != kNamespaceWires.end()) {
        if (std::string wrong = complete_namespaces(options, *named); !wrong.empty()) return wrong;
    } else if (options.wire != kWireShm && options.wire != kWireMemif && options.wire != kWireUdp &&
               !options.has_mesh()) {
        return fmt::format(
            "--wire {} is none; it is shm, memif, udp, bridge[:RATE], routed[:RATE] or mesh:RxC",
            options.wire);
    } else if (options.queue_octets > 0) {
        return "--queue is of a port of a bridge or router; add --wire bridge:RATE";
    }
    if (options.wire == kWireShm && options.needs_switch())
        return options.links > 1
                   ? "a wire of shared memory has one link a node; leave --wire out"
                   : "a wire of shared memory loses, delays and slows nothing; leave --wire out";
    if (options.wire == kWireUdp && options.needs_switch())
        return "UDP on one machine loses, delays and slows nothing, and has one link a node; use "
               "--wire memif";
    for (const std::string& option : options.engine_options) {
        if (option == "--mtu" || option.starts_with("--mtu="))
            return "--mtu is the wire's, for all that is on it; write it before the program, "
                   "without --engine-option";
    }
    if (options.mtu == 0) options.mtu = options.needs_switch() ? kMtuEthernet : kMtuOwnWire;
    if (options.nodes > options.ranks && !options.one_command) {
        return fmt::format("--nodes {} would leave nodes without ranks; use at most --nodes {}",
                           options.nodes, options.ranks);
    }
    if (options.has_switch() && options.nodes * options.links > kSwitchPortsMax)
        return fmt::format("{} nodes of {} links are more than a switch has ports ({}); use fewer",
                           options.nodes, options.links, kSwitchPortsMax);
    if (options.nodes == 1 && options.needs_switch()) {
        return "with one node nothing crosses a wire, so there is nothing to lose or to slow; add "
               "--nodes 2";
    }
    return "";
}

ClusterPlan make_plan(const ClusterOptions& options, const ClusterPrograms& programs,
                      const std::string& directory) {
    ClusterPlan plan{.nodes = options.nodes};
    if (options.has_switch()) {
        plan.infrastructure.push_back(one_switch(options, programs, directory));
    } else if (options.has_mesh()) {
        plan.infrastructure = mesh_switches(options, programs, directory);
    }
    if (!options.embedded) {
        for (unsigned node = 0; node < plan.nodes; ++node) {
            plan.infrastructure.push_back(engine_process(options, programs, node, directory));
        }
    }
    for (unsigned rank = 0; rank < options.ranks; ++rank) {
        const unsigned node = rank % plan.nodes;
        const std::string engine =
            engine_of_node(options, options.one_command ? "%n" : std::to_string(node), directory);
        plan.ranks.push_back(rank_process(options, programs, engine, rank));
        plan.node_of_rank.push_back(node);
    }
    return plan;
}

}  // namespace ulc::tools
