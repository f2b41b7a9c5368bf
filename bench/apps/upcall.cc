// SPDX-License-Identifier: BSD-3-Clause
// Upcalls against polling on Express Messages [Express §5.1, figure 2], on two processes.
//
// Latency: half a round trip by message size, once with both main threads waiting (the library
// polls), once with threads that compute (each message interrupts one).
// Cost: a loop computes while messages arrive at a rate. It calls the library after every N units,
// or never, so that messages interrupt it. Its cost is its thread's processor time beyond that of
// the same loop without calls and messages; the delay of a message is from its send to its handler.
//
// Both are the best of some runs, as the paper's figure is; delays are of all runs.
//
//   ulc run -n 2 --embedded ulc-bench-upcall
//
// Invariant: each handler checks nothing but counts; the end of a part compares the counts.
#include <express.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "tools/shared/command_line.h"

namespace {

using ulc::monotonic_now;
using ulc::Nanos;

constexpr double kPaperMicroseconds = 27;  ///< an upcall instead of a poll, Express §5.1
constexpr unsigned kWarmUp = 20;
constexpr unsigned kNever = 0;  ///< the loop never calls the library: messages interrupt it

struct Options {
    std::vector<std::size_t> sizes{8, 100, 101, 500, 1000, 2000, 4000};
    std::vector<unsigned> every{1, 10, 100, 1000};
    std::vector<unsigned> rates{0, 1000, 4000, 16000};
    unsigned rounds = 1000;
    unsigned units = 100'000;
    unsigned repeat = 5;
    bool one_computes = false;
};

/// State that handlers and threads of this process share; both run on one kernel thread.
struct Shared {
    std::atomic<unsigned> left{0};  ///< round trips that are still to come
    std::atomic<bool> is_stopped{false};
    std::vector<Nanos> delays;  ///< from the send to the handler; capacity is reserved
    std::uint64_t sent_by_peer = 0;
    express_mutex mutex{};
    express_condition changed{};
} shared;

bool is_first() { return express_process() == 0; }
constexpr std::uint16_t kFirst = 0, kSecond = 1;

void send_bytes(std::uint16_t to, const void* bytes, std::size_t used, std::size_t size,
                express_handler handler) {
    void* const message = express_alloc(size);
    if (message == nullptr || express_send(to, std::memcpy(message, bytes, used), handler) != 0) {
        std::fprintf(stderr, "upcall: a message could not be sent; see what the other said\n");
        std::_Exit(1);
    }
}

void synchronise() {
    if (express_sync() == ULC_OK) return;
    std::fprintf(stderr, "upcall: the other process has gone; see what it said\n");
    std::_Exit(1);
}

/// One unit of computing: about a microsecond without a call.
std::uint64_t compute_unit(std::uint64_t value) {
    for (unsigned step = 0; step < 1000; ++step)
        value = value * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return value;
}
volatile std::uint64_t result;  ///< keeps the units from being optimised away

// ---------------------------------------------------------------- latency

void on_ball(std::uint16_t source, const void* message, std::size_t length) {
    const unsigned left = shared.left.load(std::memory_order_relaxed) - 1;
    // The first process has sent the first ball, and sends none for the last.
    if (!is_first() || left > 0) send_bytes(source, message, length, length, on_ball);
    shared.left.store(left, std::memory_order_relaxed);
    if (left > 0) return;
    express_lock(&shared.mutex);
    express_signal(&shared.changed);
    express_unlock(&shared.mutex);
}

void wait_for_balls(bool computes) {
    while (computes && shared.left.load(std::memory_order_relaxed) > 0)
        result = compute_unit(result);
    express_lock(&shared.mutex);
    while (shared.left.load(std::memory_order_relaxed) > 0)
        express_wait(&shared.changed, &shared.mutex);
    express_unlock(&shared.mutex);
}

/// Returns half of a round trip in nanoseconds, the mean of `rounds`.
double bounce(std::size_t bytes, unsigned rounds, bool computes) {
    shared.left.store(rounds, std::memory_order_relaxed);
    synchronise();
    const Nanos begun = monotonic_now();
    const std::vector<unsigned char> ball(bytes, 1);
    if (is_first()) send_bytes(kSecond, ball.data(), bytes, bytes, on_ball);
    wait_for_balls(computes);
    const Nanos taken = monotonic_now() - begun;
    synchronise();
    return static_cast<double>(taken) / rounds / 2;
}

/// Returns the value below which `share` of the values are. There must be one.
double quantile(std::vector<double> values, double share) {
    const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size()));
    const auto place =
        values.begin() + static_cast<std::ptrdiff_t>(std::min(at, values.size() - 1));
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

/// Returns false if no message interrupted the threads that computed.
bool print_latency(const Options& options) {
    if (is_first())
        std::printf(
            "latency: half a round trip, us; best of %u runs of %u round trips\n"
            "   bytes   polling    upcall  difference%s\n",
            options.repeat, options.rounds,
            options.one_computes ? " (one upcall a round trip)" : "");
    const bool computes = !options.one_computes || is_first();
    std::vector<double> differences;
    bool has_interrupted = true;
    for (const std::size_t bytes : options.sizes) {
        std::vector<double> polling, upcall;
        static_cast<void>(bounce(bytes, kWarmUp, false));
        for (unsigned n = 0; n < options.repeat; ++n) {
            polling.push_back(bounce(bytes, options.rounds, false));
            const unsigned long before = express_handled(1);
            upcall.push_back(bounce(bytes, options.rounds, computes));
            has_interrupted = has_interrupted && (!computes || express_handled(1) > before);
        }
        const double a = std::ranges::min(polling) / 1000, b = std::ranges::min(upcall) / 1000;
        differences.push_back(b - a);
        if (is_first()) std::printf("%8zu%10.2f%10.2f%12.2f\n", bytes, a, b, b - a);
    }
    if (is_first())
        std::printf("an upcall instead of a poll: %.1f us, median of the sizes (paper: %.0f)\n",
                    quantile(differences, 0.5), kPaperMicroseconds);
    return has_interrupted;
}

// ---------------------------------------------------------------- cost

void on_stamp(std::uint16_t /*source*/, const void* message, std::size_t /*length*/) {
    Nanos sent = 0;
    std::memcpy(&sent, message, sizeof sent);
    if (shared.delays.size() < shared.delays.capacity())
        shared.delays.push_back(monotonic_now() - sent);
}

void on_stop(std::uint16_t /*source*/, const void* /*message*/, std::size_t /*length*/) {
    shared.is_stopped.store(true, std::memory_order_relaxed);
}

void on_count(std::uint16_t /*source*/, const void* message, std::size_t /*length*/) {
    std::memcpy(&shared.sent_by_peer, message, sizeof shared.sent_by_peer);
}

/// The second process: sends `rate` messages a second until the first one has computed.
void send_at(unsigned rate) {
    std::uint64_t sent = 0;
    const Nanos period = rate == 0 ? ulc::kMillisecond : ulc::kSecond / rate;
    for (Nanos next = monotonic_now(); !shared.is_stopped.load(std::memory_order_relaxed);
         next += period) {
        const Nanos left = next - monotonic_now();
        if (left > 0) express_sleep(left);
        if (rate == 0) continue;
        const Nanos stamp = monotonic_now();
        send_bytes(kFirst, &stamp, sizeof stamp, sizeof stamp, on_stamp);
        ++sent;
    }
    send_bytes(kFirst, &sent, sizeof sent, sizeof sent, on_count);
}

Nanos processor_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * ulc::kSecond + time.tv_nsec;
}

/// One run of the loop.
struct Run {
    double processor = 0;  ///< ns of the thread that computes
    double wall = 0;       ///< ns
    std::vector<Nanos> delays;
};

void compute(const Options& options, unsigned every) {
    std::uint64_t value = result;
    unsigned until_call = every;
    for (unsigned unit = 0; unit < options.units; ++unit) {
        value = compute_unit(value);
        if (every == kNever || --until_call > 0) continue;
        static_cast<void>(express_yield());
        until_call = every;
    }
    result = value;
}

/// Both processes. Returns nothing if a message was lost, or came in another way than `every` says.
std::optional<Run> run(const Options& options, unsigned every, unsigned rate) {
    shared.delays.clear();
    shared.sent_by_peer = 0;
    shared.is_stopped.store(false, std::memory_order_relaxed);
    synchronise();
    Run own;
    if (!is_first()) {
        send_at(rate);
        synchronise();
        return own;
    }
    express_let_interrupt(every == kNever ? 1 : 0);
    const bool other_way = every != kNever;
    const unsigned long before = express_handled(other_way ? 1 : 0);
    const Nanos begun = monotonic_now();
    const Nanos begun_processor = processor_time();
    compute(options, every);
    own.processor = static_cast<double>(processor_time() - begun_processor);
    own.wall = static_cast<double>(monotonic_now() - begun);
    own.delays = shared.delays;
    const bool came_as_asked = express_handled(other_way ? 1 : 0) == before;
    express_let_interrupt(1);
    send_bytes(kSecond, &begun, sizeof begun, sizeof begun, on_stop);
    synchronise();
    if (came_as_asked && shared.delays.size() == shared.sent_by_peer) return own;
    std::fprintf(stderr, "WRONG: %zu of %llu messages were handled%s\n", shared.delays.size(),
                 static_cast<unsigned long long>(shared.sent_by_peer),
                 came_as_asked ? "" : ", some in the other way");
    return std::nullopt;
}

/// The runs of one way at one rate.
struct Point {
    double processor = std::numeric_limits<double>::infinity();  ///< ns, the least of a run
    std::vector<double> delays;                                  ///< us
    double handled = 0, wall = 0;
    unsigned runs = 0;

    void add(const Run& run) {
        processor = std::min(processor, run.processor);
        for (const Nanos delay : run.delays)
            delays.push_back(static_cast<double>(delay) / 1000);
        handled += static_cast<double>(run.delays.size());
        wall += run.wall;
        ++runs;
    }
    /// alone: processor time of the loop without calls and messages.
    void print(unsigned every, unsigned rate, double alone) const {
        char way[32] = "upcall";
        if (every != kNever) std::snprintf(way, sizeof way, "every %u", every);
        std::printf("%8u%10.0f  %-14s%9.2f", rate, handled / wall * 1e9, way,
                    (processor / alone - 1) * 100);
        if (delays.empty())
            std::printf("%12s%12s%12s\n", "-", "-", "-");
        else
            std::printf("%12.2f%12.1f%12.1f\n", (processor - alone) / 1000 / (handled / runs),
                        quantile(delays, 0.5), quantile(delays, 0.99));
    }
};

/// Prints each way at each rate. Returns false if a message was lost or came in another way.
bool print_cost(const Options& options) {
    shared.delays.reserve(2'000'000);
    std::vector<unsigned> ways = options.every;
    ways.push_back(kNever);
    if (is_first())
        std::printf(
            "cost: a loop of %u units, processor time; best of %u runs; delays of all\n"
            " asked/s     had/s  way            slower %%  us/message    delay us        "
            "99 %%\n",
            options.units, options.repeat);
    double alone = std::numeric_limits<double>::infinity();
    std::vector<std::vector<Point>> points(options.rates.size(), std::vector<Point>(ways.size()));
    for (unsigned n = 0; n < options.repeat; ++n) {
        // The runs of a turn follow each other, so that a disturbance affects all.
        for (std::size_t rate = 0; rate < options.rates.size(); ++rate) {
            const auto without = run(options, kNever, 0);
            if (!without) return false;
            alone = std::min(alone, without->processor);
            for (std::size_t way = 0; way < ways.size(); ++way) {
                const auto one = run(options, ways[way], options.rates[rate]);
                if (!one) return false;
                points[rate][way].add(*one);
            }
        }
    }
    for (std::size_t rate = 0; rate < options.rates.size() && is_first(); ++rate)
        for (std::size_t way = 0; way < ways.size(); ++way)
            points[rate][way].print(ways[way], options.rates[rate], alone);
    if (is_first()) std::printf("a unit: %.3f us\n", alone / 1000 / options.units);
    return true;
}

int run_all(const Options& options) {
    const express_handler handlers[] = {on_ball, on_stamp, on_stop, on_count};
    if (express_init(handlers, std::size(handlers)) != ULC_OK) return 1;
    if (express_processes() != 2) {
        std::fprintf(stderr,
                     "upcall: this program runs on 2 processes, not %d; start it with: "
                     "ulc run -n 2 ulc-bench-upcall\n",
                     express_processes());
        return 1;
    }
    bool is_right = true;
    if (options.rounds > 0) is_right = print_latency(options);
    if (!is_right) std::fprintf(stderr, "WRONG: no message interrupted a thread that computed\n");
    if (options.units > 0) is_right = print_cost(options) && is_right;
    if (is_right && is_first())
        std::printf("check: ok, every message was handled once, and in the way that was asked\n");
    return express_exit() == ULC_OK && is_right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    ulc::tools::CommandLine app(
        "Measures upcalls against polling on libexpress (Express figure 2).\n"
        "On two processes: ulc run -n 2 --embedded ulc-bench-upcall");
    app.add_option("--bytes", options.sizes, "sizes of messages, for the latency")
        .delimiter(',')
        .range(1, EXPRESS_MESSAGE_MAX)
        .capture_default_str();
    app.add_option("--rounds", options.rounds, "round trips of a run; 0: no latency")
        .range(0U, 1'000'000U)
        .capture_default_str();
    app.add_flag("--one-computes", options.one_computes,
                 "upcalls at one process only; the other one polls");
    app.add_option("--every", options.every, "units of computing between two polls")
        .delimiter(',')
        .range(1U, 1'000'000'000U)
        .capture_default_str();
    app.add_option("--rates", options.rates, "messages a second")
        .delimiter(',')
        .range(0U, 100'000U)
        .capture_default_str();
    app.add_option("--units", options.units, "units of the loop; 0: no cost")
        .range(0U, 10'000'000U)
        .capture_default_str();
    app.add_option("--repeat", options.repeat, "runs of each kind")
        .range(1U, 1'000U)
        .capture_default_str();
    if (const auto status = app.parse(argc, argv)) return *status;
    return run_all(options);
}
