// SPDX-License-Identifier: BSD-3-Clause
// One engine, one thread that holds both endpoints, for budgets of docs/benchmarks/METHOD.md: the
// cost of the path through the engine, on two nets whose wires are joined, and on one net without a
// wire. It starts the programs that it needs:
//
//   daemon/two_nets_joined     app → rings → ulc-engine → memif → ulc-engine → rings → app
//   daemon/no_wire             app → rings → ulc-engine → rings → app
//   embedded/…                 the same with the engine in this thread: no hand-over between cores
//   embedded/two_nets_shm      the wire is shared memory instead of memif
//   embedded/two_nets_udp      the wire is UDP over the loopback interface, open; …_sealed: sealed
//   kernel/udp/polled/veth     the reference: polled UDP between two processes (root; else over
//                              loopback)
//
// The daemon is ULC_ENGINE_PATH, else the one of this build, else ulc-engine on the PATH; the
// library likewise. Times of one run compare; with --benchmark_repetitions=N
// --benchmark_enable_random_interleaving=true also under load.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ulc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/common/job.h"
#include "bench/common/pair.h"
#include "reference/echo_peer.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

constexpr int kRoundTrips = 500;
/// Under callgrind the engines' time passes slower by this factor, so that neither its own slowness
/// nor a pause of a second makes a timer end.
constexpr unsigned kSlowTime = 200;
constexpr auto kSettled = std::chrono::milliseconds(25);  ///< engine's time: an ACCEPT comes for 10

/// Returns whether this run is one of two under callgrind.
bool is_counted() { return std::getenv("ULC_BENCH_ITERATIONS") != nullptr; }

/// Iterations of kRoundTrips each; from the environment, so that two runs under callgrind differ in
/// their messages alone (docs/benchmarks/COSTS.md).
int iterations() {
    const char* count = std::getenv("ULC_BENCH_ITERATIONS");
    return count != nullptr ? std::atoi(count) : 20;
}
constexpr int kStartSeconds = 10;

/// The scratch folder with sockets, removed at the end.
class Scratch {
public:
    Scratch() {
        char path[] = "/tmp/ulc-bench-XXXXXX";
        if (mkdtemp(path) != nullptr) path_ = path;
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] std::string operator/(const char* name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// The two ends of one memif link as devices.
std::vector<std::string> both_ends(const std::string& wire) {
    const std::string link = ",id=0,socket=" + wire;
    return {"net_memif,role=server" + link, "joined:net_memif,role=client" + link};
}

/// Returns a UDP port of the loopback interface that is free.
std::string free_port() {
    const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t octets = sizeof at;
    auto* const any = reinterpret_cast<sockaddr*>(&at);
    const bool bound = bind(socket, any, sizeof at) == 0 && getsockname(socket, any, &octets) == 0;
    require(bound ? ULC_OK : ULC_ERR_SYSTEM, "find a free UDP port");
    close(socket);
    return std::to_string(ntohs(at.sin_port));
}

/// An engine on two UDP sockets that know each other. seal: "open", or "key=FILE".
std::string on_udp(const std::string& seal) {
    const std::string port = free_port();
    const std::string device = "udp,addr=127.0.0.1," + seal;
    return "embedded:" + device + ",port=" + port + ";joined:" + device + ",peer=127.0.0.1:" + port;
}

/// Writes a key file. Returns its name.
std::string key_file(const std::string& path) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string key(32, 'k');
    require(write(file, key.data(), key.size()) == 32 ? ULC_OK : ULC_ERR_SYSTEM, "write a key");
    close(file);
    return path;
}

/// A file of this build's pmd_app/main; empty: this program is an installed one.
std::string of_this_build(const char* name) {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    const auto path = self.parent_path().parent_path() / "pmd_app/main" / name;
    return access(path.c_str(), R_OK) == 0 ? path.string() : "";
}

std::string daemon_path() {
    if (const char* given = std::getenv("ULC_ENGINE_PATH")) return given;
    const std::string built = of_this_build("ulc-engine");
    return built.empty() ? "ulc-engine" : built;
}

/// ulc-engine on both ends of a wire. Its log is shown only if it does not start.
class Daemon {
public:
    Daemon(const std::string& wire, std::string socket, const std::string& log)
        : socket_(std::move(socket)) {
        const std::string path = daemon_path();
        const auto devices = both_ends(wire);
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int out = open(log.c_str(), O_WRONLY | O_CREAT, 0600);
            dup2(out, STDOUT_FILENO);
            dup2(out, STDERR_FILENO);
            execlp(path.c_str(), path.c_str(), "--device", devices[0].c_str(), "--device",
                   devices[1].c_str(), "--socket", socket_.c_str(), "--hugepages", "never",
                   static_cast<char*>(nullptr));
            std::perror(path.c_str());
            _exit(127);
        }
        const auto limit = Clock::now() + std::chrono::seconds(kStartSeconds);
        while (access(socket_.c_str(), F_OK) != 0 && Clock::now() < limit)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        if (access(socket_.c_str(), F_OK) == 0) return;
        std::fprintf(stderr, "%s did not start; its log:\n", path.c_str());
        std::ignore = std::system(("cat " + log + " >&2").c_str());
        std::exit(1);
    }
    ~Daemon() {
        kill(pid_, SIGTERM);
        waitpid(pid_, nullptr, 0);
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

private:
    std::string socket_;
    pid_t pid_ = -1;
};

/// Keeps this thread, and the processes that it starts later, to the first or the last of the CPUs
/// that it had at first: a core for each poller. With one CPU nothing changes.
void stay_on(bool last) {
    static const auto all = [] {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        std::ignore = sched_getaffinity(0, sizeof cpus, &cpus);
        return cpus;
    }();
    if (CPU_COUNT(&all) < 2) return;
    int chosen = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE && (chosen < 0 || last); ++cpu)
        if (CPU_ISSET(cpu, &all)) chosen = cpu;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    std::ignore = sched_setaffinity(0, sizeof one, &one);
}

void udp(benchmark::State& state, EchoPeer* peer) {
    const auto octets = static_cast<std::uint32_t>(state.range(0));
    const int socket = peer->connect_echo(Protocol::kUdp, Waiting::kPolled, octets);
    if (socket < 0) return state.SkipWithError("cannot connect to the echo process");
    std::vector<unsigned char> out(octets);
    for (std::size_t i = 0; i < octets; ++i)
        out[i] = pattern(i);
    std::vector<unsigned char> in(octets);
    for (auto _ : state) {
        const auto start = Clock::now();
        bool right = true;
        for (int i = 0; i < kRoundTrips && right; ++i)
            right = send_all(socket, out.data(), octets, Waiting::kPolled) &&
                    receive_datagram(socket, in.data(), octets, Waiting::kPolled) ==
                        static_cast<ssize_t>(octets);
        const std::chrono::duration<double> spent = Clock::now() - start;
        state.SetIterationTime(spent.count() / (2.0 * kRoundTrips));
        if (right && in == out) continue;
        state.SkipWithError("an echo was lost or wrong");
        break;
    }
    peer->disconnect(socket, Protocol::kUdp);
}

const std::vector<std::int64_t> kShort = {8, 64, 1024};

template <typename Body>
void add(const std::string& name, const std::vector<std::int64_t>& octets, Body body) {
    auto* const added = benchmark::RegisterBenchmark(name.c_str(), body)
                            ->Iterations(iterations())
                            ->UseManualTime()
                            ->Unit(benchmark::kMicrosecond);
    for (const std::int64_t each : octets)
        added->Arg(each);
}

void add_pair(const std::string& name, const std::string& a, const std::string& b,
              const std::vector<std::int64_t>& octets = kShort) {
    add(name + "/one_thread/one_way", octets, [a, b](benchmark::State& state) {
        Pair pair(a.c_str(), b.c_str());
        if (is_counted()) pair.settle(kSettled * kSlowTime);
        one_way(state, pair);
    });
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    stay_on(true);
    // Before there are threads: the reference's process, and a network namespace for it.
    const Link link = enter_private_namespace() ? Link::kVeth : Link::kLoopback;
    std::string why;
    const auto peer = EchoPeer::start(link, why);
    if (peer == nullptr) std::fprintf(stderr, "note: no reference: %s\n", why.c_str());
    const Scratch scratch;
    const std::string socket = scratch / "engine.sock";
    const Daemon daemon(scratch / "wire", socket, scratch / "log");
    stay_on(false);
    const auto devices = both_ends(scratch / "inner_wire");
    const std::string inner = "embedded:" + devices[0] + ";" + devices[1];
    if (const std::string library = of_this_build("libulc-engine.so.0"); !library.empty())
        setenv("ULC_ENGINE_LIB", library.c_str(), 0);
    std::string options = "--hugepages never";
    if (is_counted()) options += " --slow-time " + std::to_string(kSlowTime);
    setenv("ULC_ENGINE_OPTIONS", options.c_str(), 0);
    // Keeps the embedded engines from case to case, so that their links stay up.
    ulc_endpoint* anchor = nullptr;
    require(ulc_open(inner.c_str(), &anchor), "open an embedded engine");
    const std::string station = "shm,path=" + (scratch / "inner_shm") + ",stations=2,station=";
    const std::string on_shm = "embedded:" + station + "0;joined:" + station + "1";
    ulc_endpoint* shm_anchor = nullptr;
    require(ulc_open(on_shm.c_str(), &shm_anchor), "open an embedded engine on shared memory");

    const std::string on_open = on_udp("open");
    const std::string on_sealed = on_udp("key=" + key_file(scratch / "key"));
    ulc_endpoint* open_anchor = nullptr;
    ulc_endpoint* sealed_anchor = nullptr;
    require(ulc_open(on_open.c_str(), &open_anchor), "open an embedded engine on UDP");
    require(ulc_open(on_sealed.c_str(), &sealed_anchor), "open an embedded engine on sealed UDP");

    add_pair("daemon/two_nets_joined", socket, socket + "#joined");
    add_pair("daemon/no_wire", socket, socket);
    add_pair("embedded/two_nets_joined", inner, inner + "#joined");
    add_pair("embedded/two_nets_shm", on_shm, on_shm + "#joined");
    add_pair("embedded/two_nets_udp", on_open, on_open + "#joined", {8, 65536});
    add_pair("embedded/two_nets_udp_sealed", on_sealed, on_sealed + "#joined", {8, 65536});
    add_pair("embedded/no_wire", inner, inner);
    if (peer != nullptr)
        add(std::string("kernel/udp/polled/") + name_of(link) + "/one_way", kShort,
            [&](benchmark::State& state) { udp(state, peer.get()); });
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    ulc_close(sealed_anchor);
    ulc_close(open_anchor);
    ulc_close(shm_anchor);
    ulc_close(anchor);
    return 0;
}
