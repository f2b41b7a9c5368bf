// SPDX-License-Identifier: BSD-3-Clause
// Molecular dynamics of a polarizable fluid on all ranks of a job (GAMMA §6.4). Each rank computes
// what acts on its share of the molecules; positions and dipoles go to all ranks, once a step and
// once an iteration of the dipoles:
//
//   md      each rank sends its part to each other, all at once, as the original over PVM
//   token   the same, one rank after another
//   gamma   each rank broadcasts its part, by the shipped allgather (the default)
//
// Checked against one process: every position, bit by bit.

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/apps/md/fluid.h"
#include "bench/apps/ranks.h"
#include "tools/shared/command_line.h"

namespace {

using namespace ulc::bench;
using ulc::md::Conditions;
using ulc::md::Fluid;
using ulc::md::Vector;

enum class Way { kMd, kToken, kGamma };
const std::map<std::string, Way> kWays{
    {"md", Way::kMd}, {"token", Way::kToken}, {"gamma", Way::kGamma}};

constexpr std::uint64_t kPart = 1;  ///< tags
constexpr std::uint64_t kToken = 2;

struct Options : RunOptions {
    Conditions conditions;
    unsigned steps = 10;
    Way way = Way::kGamma;
};

class Exchange {
public:
    Exchange(Job& job, const Options& options) : job_(job), way_(options.way) {
        const std::size_t all = options.conditions.molecules;
        for (std::size_t rank = 0; rank <= job.size(); ++rank)
            first_.push_back(all * rank / job.size());
        for (std::size_t rank = 0; rank < job.size(); ++rank)
            octets_.push_back((first_[rank + 1] - first_[rank]) * sizeof(Vector));
    }

    [[nodiscard]] std::size_t first() const { return first_[job_.rank()]; }
    [[nodiscard]] std::size_t end() const { return first_[job_.rank() + 1U]; }

    void run(std::vector<Vector>& all) {
        if (job_.alone()) return;
        if (way_ == Way::kGamma) return job_.allgather_in_place(all.data(), octets_.data());
        std::vector<ulc_request> requests(2UL * job_.size());
        std::size_t posted = 0;
        for (std::uint16_t from = 0; from < job_.size(); ++from)
            if (from != job_.rank())
                require(ulc_receive(job_.endpoint(), from, kPart, UINT64_MAX, &all[first_[from]],
                                    octets_[from], &requests[posted++]),
                        "receive");
        if (way_ == Way::kToken) take_token();
        for (std::uint16_t n = 1; n < job_.size(); ++n)
            require(ulc_send(job_.endpoint(),
                             static_cast<std::uint16_t>((job_.rank() + n) % job_.size()), kPart,
                             &all[first()], octets_[job_.rank()], &requests[posted++]),
                    "send");
        if (way_ == Way::kToken) hand_on_token();
        for (std::size_t n = 0; n < posted; ++n)
            require(ulc_wait_for(job_.endpoint(), &requests[n], nullptr, ULC_WAIT_FOREVER),
                    "exchange");
    }

private:
    void take_token() {
        ulc_request request;
        if (job_.rank() == 0) return;
        require(ulc_receive(job_.endpoint(), static_cast<std::uint16_t>(job_.rank() - 1), kToken,
                            UINT64_MAX, nullptr, 0, &request),
                "token");
        require(ulc_wait_for(job_.endpoint(), &request, nullptr, ULC_WAIT_FOREVER), "token");
    }
    void hand_on_token() {
        ulc_request request;
        if (job_.rank() + 1U == job_.size()) return;
        require(ulc_send(job_.endpoint(), static_cast<std::uint16_t>(job_.rank() + 1), kToken,
                         nullptr, 0, &request),
                "token");
        require(ulc_wait_for(job_.endpoint(), &request, nullptr, ULC_WAIT_FOREVER), "token");
    }

    Job& job_;
    Way way_;
    std::vector<std::size_t> first_;   ///< molecule of each rank, and their number
    std::vector<std::size_t> octets_;  ///< length of each rank's part
};

/// A run from the start. Its result is in `positions`.
Times timed_run(Job& job, const Options& options, std::vector<Vector>& positions) {
    Exchange exchange(job, options);
    Stopwatch* running = nullptr;
    Fluid fluid(options.conditions, exchange.first(), exchange.end(),
                [&](std::vector<Vector>& all) {
                    const auto bring = [&] { exchange.run(all); };
                    if (running == nullptr) return bring();
                    running->communicate(bring);
                });
    job.barrier();
    Stopwatch watch;
    running = &watch;
    for (unsigned step = 0; step < options.steps; ++step)
        fluid.step();
    Times times = watch.stop();
    times.whole /= options.steps;
    times.communicate /= options.steps;
    positions = fluid.positions();
    return slowest(job, times);
}

/// Compares with the same computed alone. Called by rank 0.
int check(const Options& options, const Times& ours, const std::vector<Vector>& positions) {
    Fluid alone(options.conditions, 0, options.conditions.molecules, [](std::vector<Vector>&) {});
    const double before = alone.potential() + alone.kinetic();
    const std::uint64_t first = alone.iterations();
    Stopwatch watch;
    for (unsigned step = 0; step < options.steps; ++step)
        alone.step();
    const double one = watch.stop().whole / options.steps;
    std::printf("one process: %.3f ms a step; speed-up %.2f\n", one * 1e3, one / ours.whole);
    std::printf("dipoles: %.1f iterations a step; energy: %.4f, at first %.4f\n",
                static_cast<double>(alone.iterations() - first) / options.steps,
                alone.potential() + alone.kinetic(), before);
    for (std::size_t n = 0; n < positions.size(); ++n) {
        if (positions[n] == alone.positions()[n]) continue;
        std::fprintf(stderr, "WRONG: molecule %zu is elsewhere than on one process\n", n);
        return 1;
    }
    std::printf("check: ok, all %zu positions agree bit by bit\n", positions.size());
    return 0;
}

int run(Job& job, const Options& options) {
    std::vector<Vector> positions;
    std::vector<Times> runs;
    job.emulate_broadcast(options.unicast);
    for (unsigned i = 0; i < options.repeat; ++i)
        runs.push_back(timed_run(job, options, positions));
    return conclude(job, std::move(runs), [&](const Times& times) {
        const char* const way = options.way == Way::kMd      ? "messages, all at once"
                                : options.way == Way::kToken ? "messages, one rank after another"
                                                             : options.broadcast();
        std::printf("md: %zu molecules, %u steps, %u rank%s, %s\n", options.conditions.molecules,
                    options.steps, unsigned{job.size()}, job.size() == 1 ? "" : "s", way);
        print_times("a step", times, options.repeat);
        return check(options, times, positions);
    });
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    ulc::tools::CommandLine app(
        "Molecular dynamics of a polarizable fluid on all ranks of a job (GAMMA §6.4).\n"
        "On 4 ranks: ulc run -n 4 ulc-md -n 4000");
    app.add_option("-n,--molecules", options.conditions.molecules)
        .range(64U, 100'000U)
        .capture_default_str();
    app.add_option("-s,--steps", options.steps).range(1U, 1'000'000U).capture_default_str();
    std::string way = "gamma";
    app.add_option("--way", way, "how the ranks exchange positions and dipoles")
        .one_of({"md", "token", "gamma"})
        .capture_default_str();
    app.add_option("--seed", options.conditions.seed, "of the start").capture_default_str();
    add_options(app, options);
    if (const auto status = app.parse(argc, argv)) return *status;
    options.way = kWays.at(way);
    return run_in_job("ulc-md", [&](Job& job) { return run(job, options); });
}
