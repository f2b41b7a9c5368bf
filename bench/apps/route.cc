// SPDX-License-Identifier: BSD-3-Clause
// A router of standard-cell circuits on shared memory, after LocusRoute (SPLASH; Express §5.2).
// The processes take wires from one heap of work. Each takes a wire's old route out of the shared
// cost array, finds the cheapest of its routes there, and adds it.
//
// Costs are read without a lock, as LocusRoute does; each change of a cost is one instruction, so
// none is lost. Checked: each wire joins its pins, and the cost array is the sum of the routes.

#include <atomic>
#include <cstdio>
#include <vector>

#include "bench/apps/dsm/memory.h"
#include "bench/apps/ranks.h"
#include "bench/apps/router/circuit.h"
#include "tools/shared/command_line.h"

namespace {

using namespace ulc::router;

constexpr double kPolledInPaper = 83;  ///< % of the messages, Express table 4
constexpr std::size_t kPage = 4096;
constexpr unsigned kHeapLock = 0;
constexpr unsigned kRoundsMax = kPage / sizeof(std::uint32_t);

struct Options {
    unsigned wires = 1266;
    unsigned rounds = 3;
    std::uint64_t seed = 1;
    bool polls_only = false;
    bool copies = false;
    Size size;
};

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// Memory that the processes share. Each part begins with a page.
struct Board {
    std::uint32_t* next;  ///< first wire that is not taken, by round
    std::int32_t* costs;  ///< by channel and column
    Route* routes;        ///< by wire

    static std::size_t size(const Options& options) {
        return kPage + whole_pages(options.size.points() * sizeof(std::int32_t)) +
               whole_pages(options.wires * sizeof(Route));
    }
    Board(void* memory, const Options& options) {
        auto* const at = static_cast<unsigned char*>(memory);
        next = static_cast<std::uint32_t*>(memory);
        costs = reinterpret_cast<std::int32_t*>(at + kPage);
        routes = reinterpret_cast<Route*>(
            at + kPage + whole_pages(options.size.points() * sizeof(std::int32_t)));
    }
};

class Router {
public:
    Router(const Options& options, const Board& board, const std::vector<Wire>& wires)
        : size_(options.size),
          board_(board),
          wires_(wires),
          copied_(options.copies ? options.size.points() : 0) {}

    void route(std::size_t number) {
        const Wire& wire = wires_[number];
        Route& route = board_.routes[number];
        if (route[0].kind != Bend::kNone) change(wire, route, -1);
        if (!copied_.empty())
            each_point_around(size_, wire, [&](const Point& point) {
                copied_[index(point)] = at(point).load(kRelaxed);
            });
        const Route best = best_route(size_, wire, [&](const Point& point) {
            return copied_.empty() ? at(point).load(kRelaxed) : copied_[index(point)];
        });
        change(wire, best, 1);
        route = best;
    }

private:
    static constexpr auto kRelaxed = std::memory_order_relaxed;

    [[nodiscard]] std::size_t index(const Point& point) const {
        return static_cast<std::size_t>(point.channel) * static_cast<std::size_t>(size_.columns) +
               static_cast<std::size_t>(point.column);
    }
    std::atomic_ref<std::int32_t> at(const Point& point) {
        return std::atomic_ref(board_.costs[index(point)]);
    }
    void change(const Wire& wire, const Route& route, std::int32_t by) {
        walk(wire, route, [&](const Point& point) { at(point).fetch_add(by, kRelaxed); });
    }

    Size size_;
    Board board_;
    const std::vector<Wire>& wires_;
    std::vector<std::int32_t> copied_;  ///< costs around a wire; empty: they are read in place
};

/// Routes the wires that the heap gives to this process. Returns how many these were.
unsigned work(Router& router, const Board& board, const Options& options, unsigned round) {
    for (unsigned done = 0;; ++done) {
        ulc::dsm::lock(kHeapLock);
        const std::uint32_t wire = board.next[round]++;
        ulc::dsm::unlock(kHeapLock);
        if (wire >= options.wires) return done;
        router.route(wire);
    }
}

/// Routes all in one process, in order. Returns the seconds, and the tracks in `needed`.
double alone(const Options& options, const std::vector<Wire>& wires, std::int64_t& needed) {
    std::vector<std::uint64_t> memory(Board::size(options) / sizeof(std::uint64_t));
    const Board board(memory.data(), options);
    Router router(options, board, wires);
    const ulc::bench::Stopwatch watch;
    for (unsigned round = 0; round < options.rounds; ++round)
        for (std::size_t wire = 0; wire < wires.size(); ++wire)
            router.route(wire);
    const double seconds = watch.stop().whole;
    needed = tracks(options.size, sum_of(options.size, wires, board.routes));
    return seconds;
}

int check(const Board& board, const Options& options, const std::vector<Wire>& wires) {
    for (std::size_t n = 0; n < wires.size(); ++n) {
        if (is_connected(options.size, wires[n], board.routes[n])) continue;
        std::fprintf(stderr, "WRONG: the route of wire %zu does not join its pins\n", n);
        return 1;
    }
    const auto sum = sum_of(options.size, wires, board.routes);
    for (std::size_t n = 0; n < sum.size(); ++n) {
        if (sum[n] == board.costs[n]) continue;
        std::fprintf(stderr, "WRONG: point %zu has cost %d, its routes add up to %d\n", n,
                     board.costs[n], sum[n]);
        return 1;
    }
    std::printf("check: ok, %zu wires are connected; all %zu costs are the sums of the routes\n",
                wires.size(), sum.size());
    return 0;
}

int report(const Board& board, const ulc::dsm::Report& all, const Options& options,
           const std::vector<Wire>& wires) {
    std::int64_t tracks_alone = 0;
    const double one = alone(options, wires, tracks_alone);
    const std::int64_t needed = tracks(options.size, sum_of(options.size, wires, board.routes));
    std::printf("route: %u wires, %d channels of %d columns, %u rounds, %u processes%s\n",
                options.wires, options.size.channels, options.size.columns, options.rounds,
                ulc::dsm::processes(), options.polls_only ? ", by polling only" : "");
    std::printf("time: %.2f ms; one process: %.2f ms; speed-up %.2f\n", all.seconds * 1e3,
                one * 1e3, one / all.seconds);
    std::printf("tracks: %lld; one process: %lld\n", static_cast<long long>(needed),
                static_cast<long long>(tracks_alone));
    ulc::dsm::print(all.counts, "a wire", double{1} * options.wires * options.rounds,
                    kPolledInPaper);
    return check(board, options, wires);
}

int run(const Options& options) {
    const std::size_t bytes = Board::size(options);
    void* const memory = ulc::dsm::start(bytes + ulc::dsm::kReportBytes);
    if (memory == nullptr) return 1;
    if (options.polls_only) ulc::dsm::poll_only();
    const Board board(memory, options);
    const auto wires = random_circuit(options.size, options.wires, options.seed);
    Router router(options, board, wires);
    const auto all =
        ulc::dsm::measure(static_cast<char*>(memory) + bytes, options.rounds,
                          [&](unsigned round) { work(router, board, options, round); });
    if (!all) return 1;
    const int status = ulc::dsm::process() == 0 ? report(board, *all, options, wires) : 0;
    return ulc::dsm::stop() ? status : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    ulc::tools::CommandLine app(
        "Routes a random circuit on distributed shared memory by libexpress (Express §5.2).\n"
        "On 4 processes: ulc run -n 4 ulc-route");
    app.add_option("--wires", options.wires).range(1U, 1'000'000U).capture_default_str();
    app.add_option("--rounds", options.rounds, "each routes all wires again")
        .range(1U, kRoundsMax)
        .capture_default_str();
    app.add_option("--channels", options.size.channels).range(1, 1'000).capture_default_str();
    app.add_option("--columns", options.size.columns).range(1, 60'000).capture_default_str();
    app.add_option("--seed", options.seed, "of the circuit").capture_default_str();
    app.add_flag("--copy", options.copies,
                 "copies the costs around a wire, and looks for its route in the copy");
    app.add_flag("--polls-only", options.polls_only, "messages interrupt no thread (table 5)");
    if (const auto status = app.parse(argc, argv)) return *status;
    return run(options);
}
