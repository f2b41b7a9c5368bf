// SPDX-License-Identifier: BSD-3-Clause
// Table: MPI over GAMMA, over U-Net and over Linux TCP, from its parts (GAMMA §7.3.3, U-Net MPI
// §6).
//
// A ping-pong of the shipped objects on the paper's host, to which one part after the other is
// added. Three switches add parts:
//
//   host      a cost is charged where an object acts: a frame, a byte, an acknowledgement, a match
//   profile   `detect` sends no acknowledgements; `credit`, `gbn` and TCP do, so their cost begins
//             there
//   library   a client on the rings matches nothing; libulc matches each message, so that cost
//             begins there
//
// So no total is a cost of a host. presets.cc names the source of each part. For GAMMA's host these
// are GAMMA's earlier version and U-Net MPI, by the processor's clock, and not 14.3 or 17.7 µs:
// GAMMA's figures are predictions. U-Net MPI's and MPICH's are inputs, since a part of each host is
// the rest of the paper's total.
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tests/sim/cluster/experiment.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/tables/claims/judge.h"
#include "tests/sim/tables/list.h"
#include "tests/sim/tables/measure.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kAnnounceFrom = 30'001;  ///< GAMMA §7.3.2: eager to 30,000 bytes
constexpr std::size_t kHalfPowerMax = 8192;
constexpr const char* kTcp = "tcp";  ///< use_linux_tcp(), no profile
/// GAMMA §7.3.3 measured MPICH on a Pentium II 350; the host in presets.cc is one of 300 MHz.
constexpr double kMpichSpeed = 350.0 / 300;

enum class Library : std::uint8_t { kRings, kLibulc };

/// One part: what it adds to the host, and how the ping-pong runs from there on.
struct Part {
    const char* name;
    void (*add)(HostCosts& host, const HostCosts& whole);
    const char* profile;
    Library library;
    double paper_sum;  ///< µs until here; not a number: the paper does not say
};

struct System {
    const char* host;
    MediumKind medium;
    std::size_t octets;
    std::span<const Part> parts;
    double speed = 1;  ///< speed of its processor against the preset's
};

const double kNotSaid = std::nan("");

void add_nothing(HostCosts& /*host*/, const HostCosts& /*whole*/) {}
void add_bus(HostCosts& host, const HostCosts& whole) {
    host.bus_octet = whole.bus_octet;
    host.bus_setup = whole.bus_setup;
    host.send_threshold = whole.send_threshold;
}
void add_copies(HostCosts& host, const HostCosts& whole) {
    host.send_octet = whole.send_octet;
    host.receive_octet = whole.receive_octet;
}
void add_driver(HostCosts& host, const HostCosts& whole) {
    host.send_frame = whole.send_frame;
    host.receive_frame = whole.receive_frame;
}
/// The kernel's way in and out: system calls, TCP, driver, interrupts.
void add_kernel(HostCosts& host, const HostCosts& whole) {
    add_driver(host, whole);
    host.submit = whole.submit;
    host.complete = whole.complete;
    host.notice = whole.notice;
    host.interrupt_latency = whole.interrupt_latency;
    host.interrupt_cost = whole.interrupt_cost;
}
void add_acknowledgements(HostCosts& host, const HostCosts& whole) {
    host.acknowledge = whole.acknowledge;
}
void add_matching(HostCosts& host, const HostCosts& whole) { host.match = whole.match; }

const Part kGammaParts[] = {
    {"line and hub [detect, rings]", add_nothing, "detect", Library::kRings, kNotSaid},
    {"bus and NIC [detect, rings]", add_bus, "detect", Library::kRings, kNotSaid},
    {"copy on the way in [detect, rings]", add_copies, "detect", Library::kRings, kNotSaid},
    {"system call and driver [detect, rings]", add_driver, "detect", Library::kRings, kNotSaid},
    {"flow control [credit, rings]", add_acknowledgements, "credit", Library::kRings, 14.3},
    {"MPI's queues [credit, libulc]", add_matching, "credit", Library::kLibulc, 17.7},
};

const Part kUnetParts[] = {
    {"line [detect, rings]", add_nothing, "detect", Library::kRings, kNotSaid},
    {"bus and NIC [detect, rings]", add_bus, "detect", Library::kRings, kNotSaid},
    {"copies, one out and two in [detect, rings]", add_copies, "detect", Library::kRings, kNotSaid},
    {"trap and handler [detect, rings]", add_driver, "detect", Library::kRings, 21},
    {"reliability [gbn, rings]", add_acknowledgements, "gbn", Library::kRings, 24.5},
    {"MPI's queues [gbn, libulc]", add_matching, "gbn", Library::kLibulc, 32},
};

const Part kMpichParts[] = {
    {"line and hub [tcp, rings]", add_nothing, kTcp, Library::kRings, kNotSaid},
    {"bus and NIC [tcp, rings]", add_bus, kTcp, Library::kRings, kNotSaid},
    {"copies and checksums [tcp, rings]", add_copies, kTcp, Library::kRings, kNotSaid},
    {"the kernel's TCP [tcp, rings]", add_kernel, kTcp, Library::kRings, kNotSaid},
    {"MPICH's queues [tcp, libulc]", add_matching, kTcp, Library::kLibulc, 131.2},
};

const System kGamma{"gamma-21143", MediumKind::kHub, 0, kGammaParts};
const System kUnet{"unet-mpi", MediumKind::kDirect, 4, kUnetParts};
const System kMpich{"mpich-tcp-pii300", MediumKind::kHub, 0, kMpichParts, kMpichSpeed};

/// libulc's ping-pong, with the rendezvous from where GAMMA's MPI has it.
PingPongBench bench_of(const ClusterConfig& config) {
    PingPongBench bench(config);
    for (std::uint16_t rank = 0; rank < bench.lib().ranks(); ++rank)
        ULC_CHECK(ulc_set_rendezvous(bench.lib().endpoint(rank), kAnnounceFrom, UINT64_MAX) ==
                  ULC_OK);
    return bench;
}

double us_of(const Measured& measured) { return measured.ok ? measured.us : std::nan(""); }

double one_way(const System& system, const ClusterConfig& config, Library library,
               unsigned rounds) {
    if (library == Library::kLibulc) return us_of(bench_of(config).one_way(system.octets, rounds));
    Experiment experiment;
    experiment.cluster = config;
    experiment.traffic = {
        .kind = TrafficKind::kPingPong, .octets = system.octets, .count = rounds, .warm_up = 8};
    const Figures figures = run_experiment(experiment);
    return figures.error.empty()
               ? static_cast<double>(figures.latency_percentile(50)) / kMicrosecond
               : std::nan("");
}

HostCosts whole_of(const System& system) {
    const auto preset = host_preset(system.host);
    ULC_CHECK(preset.has_value());
    return *preset;
}

/// Adds a grid of the parts. Returns the sums, µs.
std::vector<double> add_parts(Table& table, const System& system, const std::string& title,
                              const TableOptions& options) {
    const HostCosts whole = whole_of(system);
    HostCosts host;
    host.name = whole.name;
    host.round = whole.round;
    host.tx_ring_frames = whole.tx_ring_frames;
    host.speed = whole.speed * system.speed;
    Grid grid{title, "µs", {"adds", "sum", "paper's sum"}, {}, 1};
    std::vector<double> sums;
    for (const Part& part : system.parts) {
        part.add(host, whole);
        const bool tcp = std::string_view(part.profile) == kTcp;
        ClusterConfig config =
            pair_of(host, tcp ? "urtp" : part.profile, system.medium, options.seed);
        if (tcp) use_linux_tcp(config);
        const double sum = one_way(system, config, part.library, options.quick ? 8 : 200);
        const double before = sums.empty() ? 0 : sums.back();
        grid.rows.push_back({part.name, {sum - before, sum, part.paper_sum}});
        sums.push_back(sum);
    }
    table.grids.push_back(std::move(grid));
    return sums;
}

/// Adds a figure from which a cost of the host was set.
void add_input(Table& table, const char* what, double paper, double ours, const char* note) {
    table.figures.push_back({what, "µs", paper, ours, note, FigureKind::kInput});
}

void add_gamma(Table& table, const TableOptions& options) {
    const std::vector<double> sums =
        add_parts(table, kGamma, "GAMMA with a DEC 21143 and MPI/GAMMA, 0 B, one way", options);
    add_near(table, {"GAMMA with flow control, one way", "µs", 14.3, sums[4], "§7.3.3"});
    add_near(table, {"MPI/GAMMA, one way", "µs", 17.7, sums[5], "§7.3.3"});

    constexpr unsigned kRounds = 20;
    constexpr std::size_t kLarge = 512U << 10;
    PingPongBench bench =
        bench_of(pair_of(whole_of(kGamma), "credit", kGamma.medium, options.seed));
    const auto speed = [&](std::size_t octets, unsigned n) {
        const Measured time = bench.one_way(octets, n);
        return time.ok ? megabytes_per_second(octets, time.us) : std::nan("");
    };
    table.figures.push_back({"MPI/GAMMA, 1500 B", "MB/s", {}, speed(1500, kRounds), ""});
    const double asymptotic = speed(kLarge, 4);
    add_near(table, {"MPI/GAMMA, asymptotic", "MB/s", 11.3, asymptotic, "§7.3.3, on a hub"});
    add_near(table,
             {"MPI/GAMMA, half-power", "B", 250.0,
              static_cast<double>(half_power_point(bench, asymptotic, kHalfPowerMax, kRounds)),
              "§7.3.3"});
}

void add_unet(Table& table, const TableOptions& options) {
    const std::vector<double> sums = add_parts(table, kUnet, "U-Net MPI, 4 B, one way", options);
    add_input(table, "raw U-Net, one way", 21, sums[3], "U-Net MPI §6: 32 less 11");
    add_input(table, "its reliability", 3.5, sums[4] - sums[3], "§6.2: 3–4");
    add_input(table, "its queues", 7.5, sums[5] - sums[4], "§6.2: 7–8");
    add_input(table, "U-Net MPI, one way", 32, sums[5], "§6.2");
}

/// The paper does not divide its 131.2 µs, so the total here is an input. Table `applications`
/// predicts from the same host.
void add_mpich(Table& table, const TableOptions& options) {
    const std::vector<double> sums =
        add_parts(table, kMpich, "MPICH over Linux TCP, Pentium II 350, 0 B, one way", options);
    add_input(table, "MPICH over TCP, one way", 131.2, sums.back(), "§7.3.3, figure 7.1");
}

}  // namespace

Table mpi_hosts(const TableOptions& options) {
    Table table;
    table.name = "mpi-hosts";
    table.title = "MPI over GAMMA, U-Net and Linux TCP, from its parts: ping-pong on 100base-T";
    table.method =
        "Half a round trip. [profile, library]: what runs from that part on. rings: a client of "
        "the engine without libulc; libulc: matching, eager to 30,000 bytes, then rendezvous.";
    add_gamma(table, options);
    add_unet(table, options);
    add_mpich(table, options);
    return table;
}

}  // namespace ulc::sim
