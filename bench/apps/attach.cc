// SPDX-License-Identifier: BSD-3-Clause
// Costs of short jobs at a daemon's engine: an attach, jobs one by one, many ranks at once.
//
//   ulc run -n 1 ulc-bench-attach          or with ULC_ENGINE naming the socket of an engine
//
// An attach is an ulc_open() and an ulc_close() of a client alone. Its cost is the processor time
// of the engine's attach thread. The three short calls that this thread makes on the thread that
// moves frames are not in it, because polling hides them there. A job is two new processes that
// open an endpoint, join, exchange a message each way, and close. The ranks are processes that open
// one endpoint each when all of them are there.
//
// --judge: the exit status is 1 if a figure is above its limit. The machine has to be idle.
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ulc.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "tools/shared/command_line.h"

namespace {

using ulc::monotonic_now;
using ulc::Nanos;

constexpr double kMillisecond = 1e6;
constexpr double kSecond = 1e9;
constexpr std::int64_t kLimit = 60'000'000'000;  // ns, of a wait
constexpr std::uint64_t kTag = 1;
// Limits at the usual counts; those of other counts are in proportion.
constexpr double kAttachMost = 1 * kMillisecond;
constexpr double kJobMost = 15 * kSecond / 300;
constexpr double kRankMost = 2 * kSecond / 128;

struct Options {
    unsigned attaches = 200;
    unsigned jobs = 300;
    unsigned ranks = 128;
    bool judge = false;
};

void require(int error, const char* what) {
    if (error == ULC_OK) return;
    std::fprintf(stderr, "attach: %s: %s\n", what, ulc_last_error_text());
    std::_Exit(1);
}

ulc_endpoint* open_endpoint() {
    ulc_endpoint* endpoint = nullptr;
    require(ulc_open(nullptr, &endpoint), "open an endpoint");
    return endpoint;
}

/// Returns the process that listens at the socket of ULC_ENGINE; 0: there is none.
pid_t engine_process() {
    const char* path = std::getenv("ULC_ENGINE");  // NOLINT(concurrency-mt-unsafe): one thread
    if (path == nullptr) path = "/run/ulc/engine.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) return 0;
    std::memcpy(address.sun_path, path, std::strlen(path));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ucred peer{};
    socklen_t octets = sizeof peer;
    const bool found = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &octets) == 0;
    close(fd);
    return found ? peer.pid : 0;
}

/// Returns the file with the processor time of the engine's attach thread; empty: none was found.
std::string attach_thread(pid_t engine) {
    std::error_code error;
    const std::string tasks = "/proc/" + std::to_string(engine) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
        std::string name;
        if (std::getline(std::ifstream(task.path() / "comm"), name) && name == "ulc-attach")
            return task.path() / "schedstat";
    }
    return {};
}

/// Returns nanoseconds on a processor.
double processor_time(const std::string& file) {
    double spent = 0;
    std::ifstream(file) >> spent;
    return spent;
}

/// Prints a figure and its limit. Returns true if it is not above that.
bool print(const std::string& what, double value, double limit, double unit, const char* name) {
    const bool fits = value <= limit;
    std::printf("%-40s%10.3f %-3s at most %8.3f   %s\n", what.c_str(), value / unit, name,
                limit / unit, fits ? "ok" : "ABOVE");
    std::fflush(stdout);
    return fits;
}

/// Runs `body` in another process.
template <typename Body>
pid_t start(const Body& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    body();
    std::_Exit(0);
}

void wait_for(const std::vector<pid_t>& children, const char* what) {
    bool right = true;
    for (const pid_t child : children) {
        int status = 0;
        right = child > 0 && waitpid(child, &status, 0) == child && status == 0 && right;
    }
    if (right) return;
    std::fprintf(stderr, "attach: %s failed; the lines before say why\n", what);
    std::_Exit(1);
}

bool time_attaches(const Options& options, const std::string& thread) {
    ulc_close(open_endpoint());  // whatever is done once
    const double before = processor_time(thread);
    const Nanos begun = monotonic_now();
    for (unsigned n = 0; n < options.attaches; ++n)
        ulc_close(open_endpoint());
    const auto took = static_cast<double>(monotonic_now() - begun);
    const double each = (processor_time(thread) - before) / options.attaches;
    std::printf("%u attaches: %.3f ms each by the clock\n", options.attaches,
                took / options.attaches / kMillisecond);
    return print("engine time of an attach", each, kAttachMost, kMillisecond, "ms");
}

void run_rank(const std::string& job, std::uint16_t rank) {
    ulc_endpoint* endpoint = open_endpoint();
    require(ulc_join_wait(endpoint, job.c_str(), rank, 2, kLimit), "join a job");
    std::uint64_t in = 0;
    const std::uint64_t out = rank;
    const auto peer = static_cast<std::uint16_t>(1 - rank);
    ulc_request request;
    require(ulc_receive(endpoint, peer, kTag, UINT64_MAX, &in, sizeof in, &request), "receive");
    require(ulc_send(endpoint, peer, kTag, &out, sizeof out, nullptr), "send");
    ulc_status status{};
    require(ulc_wait_for(endpoint, &request, &status, kLimit), "wait for a message");
    require(status.error, "a message");
    ulc_close(endpoint);
    if (in == peer) return;
    std::fprintf(stderr, "attach: WRONG: a message has the number %llu\n",
                 static_cast<unsigned long long>(in));
    std::_Exit(1);
}

bool time_jobs(const Options& options) {
    const Nanos begun = monotonic_now();
    for (unsigned n = 0; n < options.jobs; ++n) {
        const std::string job = "short-" + std::to_string(getpid()) + "-" + std::to_string(n);
        std::vector<pid_t> ranks;
        for (const std::uint16_t rank : {0, 1})
            ranks.push_back(start([&] { run_rank(job, rank); }));
        wait_for(ranks, "a job");
    }
    const auto took = static_cast<double>(monotonic_now() - begun);
    return print(std::to_string(options.jobs) + " jobs of two ranks, one by one", took,
                 kJobMost * options.jobs, kSecond, "s");
}

bool time_ranks(const Options& options) {
    int ready[2], go[2], done[2], leave[2];
    for (int* ends : {ready, go, done, leave})
        if (pipe(ends) != 0) std::_Exit(1);
    const auto wait_for_end = [](const int* ends) {
        char octet = 0;
        close(ends[1]);
        while (read(ends[0], &octet, 1) > 0) {
        }
    };
    const auto take = [&](int from) {
        char octet = 0;
        for (unsigned n = 0; n < options.ranks; ++n)
            if (read(from, &octet, 1) != 1) return;  // a rank has ended; wait_for() says so
    };
    std::vector<pid_t> ranks;
    for (unsigned n = 0; n < options.ranks; ++n)
        ranks.push_back(start([&] {
            close(leave[1]);
            if (write(ready[1], "r", 1) != 1) std::_Exit(1);
            wait_for_end(go);
            ulc_endpoint* endpoint = open_endpoint();
            if (write(done[1], "d", 1) != 1) std::_Exit(1);
            wait_for_end(leave);
            ulc_close(endpoint);
        }));
    close(ready[1]);
    close(done[1]);
    take(ready[0]);
    const Nanos begun = monotonic_now();
    close(go[1]);
    take(done[0]);
    const auto took = static_cast<double>(monotonic_now() - begun);
    close(leave[1]);
    wait_for(ranks, "an attach");
    for (const int fd : {ready[0], go[0], done[0], leave[0]})
        close(fd);
    return print(std::to_string(options.ranks) + " ranks attach at once", took,
                 kRankMost * options.ranks, kSecond, "s");
}

int run_all(const Options& options) {
    const pid_t engine = engine_process();
    const std::string thread = attach_thread(engine);
    if (engine == 0 || thread.empty()) {
        std::fprintf(stderr,
                     "attach: no engine of this machine listens; start this program with: "
                     "ulc run -n 1 ulc-bench-attach\n");
        return 1;
    }
    unsetenv("ULC_NONCE");  // NOLINT(concurrency-mt-unsafe): that of the launcher's job
    bool fits = options.attaches == 0 || time_attaches(options, thread);
    fits = (options.jobs == 0 || time_jobs(options)) && fits;
    fits = (options.ranks == 0 || time_ranks(options)) && fits;
    std::printf("check: ok, every message was right\n");
    return options.judge && !fits ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    ulc::tools::CommandLine app(
        "Measures attaches, short jobs and many ranks at a daemon's engine.\n"
        "On an idle machine: ulc run -n 1 ulc-bench-attach --judge");
    app.add_option("--attaches", options.attaches, "attaches one by one; 0: none")
        .range(0U, 1'000'000U)
        .capture_default_str();
    app.add_option("--jobs", options.jobs, "jobs of two ranks, one by one; 0: none")
        .range(0U, 1'000'000U)
        .capture_default_str();
    app.add_option("--ranks", options.ranks, "ranks that attach at once; 0: none")
        .range(0U, 4'000U)
        .capture_default_str();
    app.add_flag("--judge", options.judge, "ends with status 1 if a figure is above its limit");
    if (const auto status = app.parse(argc, argv)) return *status;
    return run_all(options);
}
