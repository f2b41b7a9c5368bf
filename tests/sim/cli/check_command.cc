// SPDX-License-Identifier: BSD-3-Clause
// ulc-sim check: runs hundreds of random scenarios in worker processes, so that a scenario that
// breaks an invariant ends its worker and not the check. The course of a scenario depends only on
// its seed.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <commit.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "base/check.h"
#include "base/progress.h"
#include "tests/sim/check/busy_run.h"
#include "tests/sim/check/check_run.h"
#include "tests/sim/check/liveness_run.h"
#include "tests/sim/cli/commands.h"
#include "tests/sim/trace/recorder.h"

namespace ulc::sim {
namespace {

/// The state of a worker, which its parent reads in shared memory.
struct Work {
    std::atomic<std::uint64_t> seed{0};  ///< the seed in progress
    std::atomic<std::uint64_t> next{0};  ///< number of this worker's seeds that are done
    std::uint64_t deliveries = 0;
    std::int64_t virtual_time = 0;
    std::uint64_t turns = 0;
    std::uint64_t failures = 0;
};

std::string program_path() {
    char path[4096] = {};
    const ssize_t octets = readlink("/proc/self/exe", path, sizeof path - 1);
    return octets > 0 ? std::string(path, static_cast<std::size_t>(octets)) : "ulc-sim";
}

/// recorder: nullptr: none.
CheckResult run_seed(const CheckOptions& options, std::uint64_t seed, Recorder* recorder) {
    if (options.busy) return run_busy(busy_scenario(seed), recorder);
    if (options.liveness) return run_liveness(liveness_scenario(seed), recorder);
    RandomScenario scenario = random_scenario(seed);
    scenario.cluster.recorder = recorder;
    return run_check(scenario);
}

std::string describe(const CheckOptions& options, std::uint64_t seed) {
    if (options.busy) return busy_scenario(seed).describe();
    if (options.liveness) return liveness_scenario(seed).describe();
    return random_scenario(seed).describe();
}

void report(const CheckOptions& options, std::uint64_t seed, const std::string& error) {
    // A line of progress may be there.
    const bool on_terminal = isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
    std::string text = std::string(on_terminal ? "\r\033[K" : "") + "seed " + std::to_string(seed) +
                       " FAILED: " + error + "\n" + describe(options, seed) +
                       "  commit " ULC_SIM_COMMIT "; replay: " + program_path() + " check " +
                       (options.busy       ? "--busy "
                        : options.liveness ? "--liveness "
                                           : "") +
                       "--first " + std::to_string(seed) + " --seeds 1\n";
    // One write, so that the workers' lines do not mix
    (void)!write(STDOUT_FILENO, text.data(), text.size());
}

// Runs seeds first + worker, + jobs, … from the position noted in progress.
void work(const CheckOptions& options, unsigned worker, Work& progress) {
    for (std::uint64_t n = progress.next.load(); worker + n * options.jobs < options.seeds; ++n) {
        const std::uint64_t seed = options.first + worker + n * options.jobs;
        progress.seed.store(seed);
        Recorder recorder;
        const CheckResult result = run_seed(options, seed, options.verbose ? &recorder : nullptr);
        progress.deliveries += result.deliveries;
        progress.virtual_time += result.virtual_time;
        progress.turns += result.turns;
        progress.next.store(n + 1);
        if (!result.error.empty()) {
            ++progress.failures;
            report(options, seed, result.error);
        } else if (options.verbose) {
            std::printf("seed %llu: %llu deliveries, %.3f s, %llu turns, digest %016llx\n",
                        static_cast<unsigned long long>(seed),
                        static_cast<unsigned long long>(result.deliveries),
                        static_cast<double>(result.virtual_time) / 1e9,
                        static_cast<unsigned long long>(result.turns),
                        static_cast<unsigned long long>(recorder.digest()));
            std::fflush(stdout);
        }
    }
}

pid_t start(const CheckOptions& options, unsigned worker, Work& progress) {
    std::fflush(stdout);
    const pid_t child = fork();
    ULC_CHECK(child >= 0);
    if (child != 0) return child;
    work(options, worker, progress);
    std::fflush(stdout);
    std::exit(0);  // with the leak check of a sanitizer
}

// Waits until a worker ends, and shows the progress of all on a terminal meanwhile.
pid_t wait_for_one(const CheckOptions& options, const Work* work, Progress& shown, int& status) {
    constexpr useconds_t kApart = 200'000;
    while (shown.is_shown()) {
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended != 0) return ended;
        std::uint64_t done = 0;
        for (unsigned worker = 0; worker < options.jobs; ++worker)
            done += work[worker].next.load();
        shown.show(done, options.seeds, "scenarios");
        usleep(kApart);
    }
    return waitpid(-1, &status, 0);
}

// Reaps the workers. A worker that exited normally is done. A worker that crashed has found a fault
// in the seed that it ran, and another one continues.
void attend(const CheckOptions& options, std::vector<pid_t>& workers, Work* progress) {
    Progress shown(stderr, !options.verbose && isatty(STDERR_FILENO) != 0);
    std::size_t alive = workers.size();
    while (alive > 0) {
        int status = 0;
        const pid_t ended = wait_for_one(options, progress, shown, status);
        ULC_CHECK(ended > 0);
        const auto found = std::ranges::find(workers, ended);
        if (found == workers.end()) continue;
        const auto worker = static_cast<unsigned>(found - workers.begin());
        Work& its = progress[worker];
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            --alive;
            continue;
        }
        ++its.failures;
        report(options, its.seed.load(),
               WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                   : "ended with status " + std::to_string(WEXITSTATUS(status)));
        if (worker + its.next.load() * options.jobs >= options.seeds) {  // at its end: leaks
            --alive;
            continue;
        }
        its.next.fetch_add(1);
        *found = start(options, worker, its);
    }
}

}  // namespace

int check_command(const CheckOptions& wanted) {
    CheckOptions options = wanted;
    options.jobs = std::max(1U, options.jobs);
    const std::size_t octets = sizeof(Work) * options.jobs;
    void* shared = mmap(nullptr, octets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ULC_CHECK(shared != MAP_FAILED);
    auto* progress = new (shared) Work[options.jobs];
    const auto begin = std::chrono::steady_clock::now();
    std::vector<pid_t> workers;
    for (unsigned worker = 0; worker < options.jobs; ++worker)
        workers.push_back(start(options, worker, progress[worker]));
    attend(options, workers, progress);
    Work sum;
    for (unsigned worker = 0; worker < options.jobs; ++worker) {
        sum.deliveries += progress[worker].deliveries;
        sum.virtual_time += progress[worker].virtual_time;
        sum.turns += progress[worker].turns;
        sum.failures += progress[worker].failures;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf(
        "%llu scenarios (seeds %llu to %llu), %llu failed; %llu deliveries, %.1f virtual s, "
        "%llu turns in %.1f s; commit %s\n",
        static_cast<unsigned long long>(options.seeds),
        static_cast<unsigned long long>(options.first),
        static_cast<unsigned long long>(options.first + options.seeds - 1),
        static_cast<unsigned long long>(sum.failures),
        static_cast<unsigned long long>(sum.deliveries),
        static_cast<double>(sum.virtual_time) / 1e9, static_cast<unsigned long long>(sum.turns),
        took.count(), ULC_SIM_COMMIT);
    munmap(shared, octets);
    return sum.failures == 0 && options.seeds > 0 ? 0 : 1;
}

}  // namespace ulc::sim
