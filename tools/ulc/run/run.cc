// SPDX-License-Identifier: BSD-3-Clause
// ulc run: a cluster on this machine, for as long as one application runs on it. ulc cluster: the
// same for a launcher as mpirun, which starts the processes itself.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/programs.h"
#include "tools/ulc/run/bridge_wire.h"
#include "tools/ulc/run/cluster.h"
#include "tools/ulc/run/hosts.h"
#include "tools/ulc/run/launch.h"
#include "tools/ulc/tune/files.h"
#include "wire/header.h"

namespace ulc::tools {
namespace {

constexpr Nanos kTimeMax = 365 * 24 * 3600 * kSecond;

struct RunOptions {
    ClusterOptions cluster;
    LaunchOptions launch;
    HostOptions hosts;  ///< file empty: all ranks are here
    bool keep = false;
};

int refuse(const std::string& text, int status) {
    fmt::print(stderr, "ulc run: {}\n", text);
    return status;
}

std::string random_nonce() {
    unsigned char bytes[16];
    if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return "";
    std::string text;
    for (const auto b : bytes)
        text += fmt::format("{:02x}", b);
    return text;
}

/// A private folder, 0700, with a path that the name of a device can hold: short enough for a unix
/// socket in it, and without marks. Empty on failure.
std::string make_run_directory() {
    constexpr std::size_t kRoomForNames = 32;  // "/engine-511.sock" and what the engine adds
    constexpr const char* kMarks = ",;% \t";   // have a meaning in names of devices and engines
    // Folders in memory first: the wire may lie in it.
    for (const std::string& base : {environment_of("XDG_RUNTIME_DIR"), std::string("/dev/shm"),
                                    environment_of("TMPDIR"), std::string("/tmp")}) {
        std::string path = base + "/ulc-run.XXXXXX";
        if (base.empty() || path.size() + kRoomForNames > sizeof(sockaddr_un::sun_path) ||
            path.find_first_of(kMarks) != std::string::npos)
            continue;
        if (::mkdtemp(path.data()) != nullptr) return path;
    }
    return "";
}

/// Writes a new key for the engines of this run, for this user alone. False: it cannot.
bool write_key(const std::string& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return false;
    const std::string key = random_nonce();
    const bool written =
        !key.empty() && ::write(file, key.data(), key.size()) == static_cast<ssize_t>(key.size());
    return ::close(file) == 0 && written;
}

std::string check_application(const std::vector<std::string>& application) {
    if (application.empty()) return "say which program to run; for an example see --help";
    return why_no_program(application[0]);
}

/// Fills in `programs`; returns what is missing, as a sentence.
std::string find_programs(const ClusterOptions& cluster, ClusterPrograms* programs) {
    programs->engine = find_program("ulc-engine", "pmd_app/main", "ULC_ENGINE_PATH");
    programs->ether_switch = find_program("ulc-switch", "pmd_app/switch", "ULC_SWITCH_PATH");
    const std::string build = "build it (tools/setup, then tools/quickstart), or name it in ";
    if (!cluster.embedded && programs->engine.empty()) {
        return "the program ulc-engine is not there; " + build + "ULC_ENGINE_PATH";
    }
    if ((cluster.has_switch() || cluster.has_mesh()) && programs->ether_switch.empty()) {
        return "the program ulc-switch is not there; " + build + "ULC_SWITCH_PATH";
    }
    if (cluster.embedded) {
        const std::string library = find_library("libulc-engine.so", "pmd_app/main");
        if (library.empty())
            return "--embedded needs libulc-engine.so; build it, or set LD_LIBRARY_PATH to its "
                   "folder";
        const std::string inherited = environment_of("LD_LIBRARY_PATH");
        programs->library_path = std::filesystem::path(library).parent_path().string();
        if (!inherited.empty()) programs->library_path += ":" + inherited;
    }
    return "";
}

/// Puts engines and ranks into their nodes' namespaces. They need no other infrastructure.
void place(ClusterPlan& plan, const BridgeWire& bridge, bool routed) {
    std::vector<std::string> addresses;
    for (unsigned node = 0; node < plan.nodes; ++node)
        addresses.push_back(address_of_node(routed, node));
    for (unsigned node = 0; node < plan.infrastructure.size(); ++node)
        plan.infrastructure[node].network = bridge.network(node);
    for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
        plan.ranks[rank].network = bridge.network(plan.node_of_rank[rank]);
        plan.ranks[rank].environment.push_back("ULC_RUN_NETWORKS=" + bridge.paths());
        plan.ranks[rank].environment.push_back(
            fmt::format("ULC_RUN_ADDRESSES={}", fmt::join(addresses, " ")));
    }
}

/// Runs ranks on other machines, whose engines run already.
int run_on_hosts(RunOptions& options) {
    ClusterOptions& cluster = options.cluster;
    if (cluster.application.empty()) return refuse(check_application(cluster.application), 2);
    std::vector<Host> hosts;
    if (const auto wrong = read_hosts(options.hosts.file, hosts); !wrong.empty())
        return refuse(wrong, 2);
    if (cluster.ranks == 0)
        for (const Host& host : hosts)
            cluster.ranks += host.slots;
    if (options.hosts.is_list()) {
        if (options.hosts.others)
            return refuse("--others needs engines that run; give --hosts a file", 2);
        ClusterPrograms programs;
        cluster.embedded = true;
        if (const auto missing = find_programs(cluster, &programs); !missing.empty())
            return refuse(missing, 127);
        options.hosts.library_path = programs.library_path;
    } else if (!cluster.engine_options.empty()) {
        return refuse("--engine-option is for engines inside the ranks; give --hosts a list", 2);
    }
    cluster.nonce = options.hosts.others ? environment_of("ULC_NONCE") : random_nonce();
    if (cluster.nonce.empty() && options.hosts.others)
        return refuse("--others needs the nonce of the job in ULC_NONCE; run without it", 2);
    if (cluster.nonce.empty()) return refuse("no random numbers", 1);
    // Names and ports show in lists of processes; the nonce does not.
    const std::string shown = random_nonce();
    if (shown.empty()) return refuse("no random numbers", 1);
    if (cluster.job.empty()) cluster.job = "ulc-run-" + shown.substr(0, 8);
    std::from_chars(shown.data() + 8, shown.data() + 14, options.hosts.port_drawn, 16);
    std::error_code error;
    const std::string folder = std::filesystem::current_path(error).string();
    ClusterPlan plan;
    if (const auto wrong = place_on_hosts(options.hosts, hosts, cluster, folder, plan);
        !wrong.empty())
        return refuse(wrong, 2);
    Children children("");
    return Launch(std::move(plan), options.launch, "", children).run();
}

int run(RunOptions& options) {
    if (!options.hosts.file.empty()) return run_on_hosts(options);
    if (options.cluster.ranks == 0) return refuse("say how many ranks, for example -n 4", 2);
    const auto& application = options.cluster.application;
    if (const auto wrong = check_application(application); !wrong.empty())
        return refuse(wrong, application.empty() ? 2 : 127);
    if (const auto wrong = complete(options.cluster); !wrong.empty()) return refuse(wrong, 2);
    if (const auto wrong = mistake_in_environment(); !wrong.empty())
        return refuse("ULC_COLL_TABLE: " + wrong, 2);
    ClusterPrograms programs;
    if (const auto missing = find_programs(options.cluster, &programs); !missing.empty())
        return refuse(missing, 127);
    if (options.cluster.nonce = random_nonce(); options.cluster.nonce.empty())
        return refuse("no random numbers", 1);
    BridgeWire bridge;
    if (options.cluster.has_namespaces()) {
        const BridgeOptions wanted{.nodes = options.cluster.nodes,
                                   .links = options.cluster.links,
                                   .routed = options.cluster.is_routed(),
                                   .bits_per_second = options.cluster.bits_per_second,
                                   .queue_octets = options.cluster.queue_octets,
                                   .mtu = options.cluster.mtu};
        if (const auto wrong = bridge.make(wanted); !wrong.empty()) return refuse(wrong, 1);
    }
    const std::string directory = make_run_directory();
    if (directory.empty()) {
        return refuse(
            fmt::format(
                "cannot make a run directory ({}); set XDG_RUNTIME_DIR to a writable folder with a "
                "short path without commas, semicolons, '%' and spaces",
                std::strerror(errno)),
            1);
    }
    if (options.cluster.job.empty()) {
        options.cluster.job = std::filesystem::path(directory).filename().string();
    }
    int status = 0;
    if (options.cluster.needs_key() && !write_key(key_file_of(directory))) {
        status = refuse(fmt::format("cannot write a key to {}", directory), 1);
    } else {
        Children children(options.keep ? "" : directory);
        ClusterPlan plan = make_plan(options.cluster, programs, directory);
        if (options.cluster.has_namespaces()) place(plan, bridge, options.cluster.is_routed());
        status = Launch(std::move(plan), options.launch, directory, children).run();
    }
    std::error_code ignored;
    if (options.keep) {
        fmt::print(stderr, "ulc run: kept {}\n", directory);
    } else {
        std::filesystem::remove_all(directory, ignored);
    }
    return status;
}

void add_wire_options(Command& command, ClusterOptions& cluster) {
    const std::string group =
        "Wire (a switch with links of that rate, which loses, repeats, reorders and delays frames; "
        "same seed, same choices)";
    command
        .add_option("--rate", cluster.bits_per_second,
                    "Speed of every link: 100mbit is Fast Ethernet (as fast as it goes)")
        .rate(kRateMin, kRateMax)
        .group(group);
    command.add_option("--loss", cluster.loss, "Probability that a frame is lost")
        .range(0.0, 1.0)
        .group(group);
    command.add_option("--dup", cluster.duplicate, "Probability that a frame is repeated")
        .range(0.0, 1.0)
        .group(group);
    command.add_option("--reorder", cluster.reorder, "Probability that a frame is overtaken")
        .range(0.0, 1.0)
        .group(group);
    command.add_option("--delay", cluster.delay_us, "Delay of every frame, as 50us")
        .time(kMicrosecond, 0, 10 * kSecond)
        .group(group);
    command.add_option("--seed", cluster.seed, "Seed of the choices (1)").group(group);
    command
        .add_option(
            "--wire", cluster.wire,
            "shm: shared memory, which imitates nothing; memif: DPDK's, with the switch "
            "between more than two nodes; udp: UDP sockets on the loopback interface; "
            "bridge[:RATE]: network namespaces on a bridge of the kernel, its ports shaped to the "
            "rate, as in bridge:100mbit; routed[:RATE]: the same behind a router, on UDP; "
            "mesh:RxC: nodes in R rows and C columns, a switch for each (shm if no other option "
            "of the wire is given)")
        .group(group);
    command
        .add_option("--links", cluster.links,
                    "Links of each node to the switch or the bridge, as one net (1)")
        .range(1U, kLinksMax)
        .group(group);
    command
        .add_option(
            "--queue", cluster.queue_octets,
            fmt::format("Octets that wait at a port of a bridge with a rate ({})", kQueueOctets))
        .range(kQueueOctetsMin, kQueueOctetsMax)
        .group(group);
    command
        .add_option(
            "--mtu", cluster.mtu,
            "Octets of a frame's payload (1500; 9000 if no other option of the wire is given)")
        .range(unsigned{wire::kMtuMin}, kMtuMax)
        .group(group);
}

void add_launch_options(Command& command, RunOptions& options) {
    command
        .add_option("--engine-option", options.cluster.engine_options,
                    "Option for every engine, as one word: --engine-option=--log-level=debug")
        .allow_extra_args(false);
    command
        .add_option("--timeout", options.launch.timeout_seconds,
                    "End everything after this time, as 90s or 5min, status 124")
        .time(kSecond, kMillisecond, kTimeMax, true);
    command.add_flag("--keep", options.keep, "Keep the run directory with sockets and logs");
    command.add_flag("-v,--verbose", options.launch.verbose,
                     "Show what is started and what the engines say");
}

void add_host_options(Command& command, HostOptions& hosts) {
    const std::string group = "Other machines (no rank reads standard input)";
    const Option file =
        command
            .add_option("--hosts", hosts.file,
                        "Start the ranks there by ssh: a,b,c, whose ranks have engines inside, "
                        "on UDP, or a file with a host a line, NAME [slots=K], where K ranks (1) "
                        "use the ulc-engine of their host")
            .group(group);
    for (const char* of_a_cluster_here :
         {"--nodes", "--embedded", "--rate", "--loss", "--dup", "--reorder", "--delay", "--seed",
          "--wire", "--links", "--queue", "--mtu", "--keep"})
        file.excludes(command.get_option(of_a_cluster_here));
    command
        .add_option("--export", hosts.exports,
                    "NAME=value, or NAME for its value here: environment of the ranks")
        .allow_extra_args(false)
        .needs(file)
        .group(group);
    command
        .add_flag("--others", hosts.others,
                  "Do not start rank 0: the caller is that rank of --job, and gives ULC_NONCE")
        .needs(file)
        .needs(command.get_option("--job"))
        .group(group);
    command.add_option("--ssh", hosts.ssh, fmt::format("Command before a host's name ({})", kSsh))
        .needs(file)
        .group(group);
}

void take_application(const Command& command, std::vector<std::string>& application) {
    application = command.remaining();
    if (!application.empty() && application[0] == kProgramFollows)
        application.erase(application.begin());
    std::ranges::replace(application, kProgramFollows, "--");  // one of the program's own
}

/// Runs what the command line of `command` says.
int run_command(const Command& command, RunOptions& options) {
    auto& application = options.cluster.application;
    take_application(command, application);
    if (!application.empty() && application[0].starts_with('-'))
        return refuse(command.no_such_option(application[0]) + " --help lists all", 2);
    return run(options);
}

}  // namespace

void add_run_command(Command& app, int* exit_code) {
    auto options = std::make_shared<RunOptions>();
    auto command =
        app.add_subcommand("run", "Run an application on a cluster made on this machine");
    command.prefix_command();
    command.add_option("-n,--ranks", options->cluster.ranks,
                       "Processes of the application (those for which --hosts has slots)");
    command.add_option(
        "--nodes", options->cluster.nodes,
        "Nodes, that is engines (2, or 1 for one rank); rank r runs on node r mod nodes");
    command.add_flag("--embedded", options->cluster.embedded,
                     "No engines: each rank is a node with its engine inside");
    add_wire_options(command, options->cluster);
    command.add_option("--job", options->cluster.job, "Name of the job (made up)");
    add_launch_options(command, *options);
    add_host_options(command, options->hosts);
    command
        .add_option("--grace", options->launch.grace_seconds,
                    "Time for the other ranks to end by themselves after one failed (5s)")
        .time(kSecond, 0, kTimeMax);
    command.add_flag("--label", options->launch.label, "Begin each line of output with its rank");
    command.footer(
        "Usage: ulc run -n RANKS [OPTIONS] PROGRAM [ARGUMENTS...]\n"
        "Exit status: the worst of the ranks that ended by themselves; 130 after Ctrl-C, 124 after "
        "--timeout, 1 if an\n"
        "engine failed. Ranks find their place in ULC_ENGINE, ULC_JOB, ULC_RANK, ULC_SIZE and "
        "ULC_NONCE. Standard input\n"
        "goes to rank 0.\n"
        "Examples: ulc run -n 2 ulc ping          ulc run -n 4 --nodes 4 --loss 0.01 ./app");
    command.callback(
        [options, command, exit_code] { *exit_code = run_command(command, *options); });
}

void add_cluster_command(Command& app, int* exit_code) {
    auto options = std::make_shared<RunOptions>();
    options->cluster.one_command = true;
    options->cluster.ranks = 1;
    auto command = app.add_subcommand(
        "cluster", "Run mpirun, mpiexec or srun on a cluster made on this machine");
    command.prefix_command();
    command
        .add_option("--nodes", options->cluster.nodes,
                    "Nodes, that is engines; rank r of the launcher uses node r mod nodes")
        .required();
    command.add_flag(
        "--embedded", options->cluster.embedded,
        "No engines: each process is a node with its engine inside, at most as many as nodes");
    add_wire_options(command, options->cluster);
    add_launch_options(command, *options);
    command.footer(
        "Usage: ulc cluster --nodes NODES [OPTIONS] -- mpirun -n RANKS PROGRAM [ARGUMENTS...]\n"
        "Exit status: the launcher's; 130 after Ctrl-C, 124 after --timeout, 1 if an engine "
        "failed. Processes find\n"
        "their engine in ULC_ENGINE and ULC_NODES, and their job by the launcher. Standard input "
        "goes to the launcher.\n"
        "Example: ulc cluster --nodes 4 --loss 0.01 -- mpirun -n 8 ./app");
    command.callback(
        [options, command, exit_code] { *exit_code = run_command(command, *options); });
}

}  // namespace ulc::tools
