// SPDX-License-Identifier: BSD-3-Clause
// ulc ping: round trips between rank 0 and every other rank of a job.
//
// Rank 0 sends (kPing, n), and the other rank answers (kPong, n) with the same bytes. One message
// is under way at a time. The other ranks echo until rank 0 sends kDone. A time runs from the send
// call to the receipt, by the application's clock.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/run/job_link.h"

namespace ulc::tools {
namespace {

constexpr std::uint64_t kPing = 1;
constexpr std::uint64_t kPong = 2;
constexpr std::uint64_t kDone = 3;

struct PingOptions {
    JobOptions job;
    unsigned count = 1000;
    unsigned warm_up = 100;
    std::size_t octets = 8;
    bool json = false;
};

struct PingResult {
    unsigned rank = 0;
    std::vector<double> microseconds;  ///< round trips, sorted
    unsigned wrong = 0;                ///< answers with other octets than sent

    [[nodiscard]] double quantile(double q) const {
        const auto last = static_cast<double>(microseconds.size() - 1);
        return microseconds[static_cast<std::size_t>(std::lround(q * last))];
    }
};

/// Round trips with one rank. Returns an error of ulc.h.
int measure(JobLink& link, const PingOptions& options, std::uint16_t to, PingResult* result) {
    std::vector<unsigned char> out(options.octets);
    std::vector<unsigned char> in(options.octets);
    result->microseconds.reserve(options.count);
    for (unsigned n = 0; n < options.warm_up + options.count; ++n) {
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = static_cast<unsigned char>(n + i);
        ulc_status status{};
        const auto begin = std::chrono::steady_clock::now();
        if (const int error = link.send(to, kPing, out); error != ULC_OK) return error;
        if (const int error = link.receive(to, kPong, in, &status, link.timeout_seconds());
            error != ULC_OK) {
            return error;
        }
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begin;
        if (in != out || status.length != out.size()) ++result->wrong;
        if (n >= options.warm_up) result->microseconds.push_back(took.count());
    }
    std::sort(result->microseconds.begin(), result->microseconds.end());
    return link.send(to, kDone, {});
}

/// Answers rank 0 until it is done.
int echo(JobLink& link, const PingOptions& options) {
    // While rank 0 is busy with the others this one waits: allow for all of them.
    const double patience = link.timeout_seconds() * link.size();
    std::vector<unsigned char> buffer(options.octets);
    for (;;) {
        ulc_status status{};
        int error = link.receive(0, 0, buffer, &status, patience);
        if (error != ULC_OK) return error;
        if (status.tag == kDone) return ULC_OK;
        buffer.resize(static_cast<std::size_t>(status.length));
        if (error = link.send(0, kPong, buffer); error != ULC_OK) return error;
        buffer.resize(options.octets);
    }
}

void print_table(const std::vector<PingResult>& results, const PingOptions& options) {
    fmt::print("{} round trips of {} octets from rank 0, µs:\n", options.count, options.octets);
    fmt::print("{:>6} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "rank", "min", "median", "p99",
               "p99.99", "max");
    for (const auto& r : results) {
        fmt::print("{:>6} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}{}\n", r.rank,
                   r.quantile(0), r.quantile(0.5), r.quantile(0.99), r.quantile(0.9999),
                   r.quantile(1), r.wrong == 0 ? "" : fmt::format("   {} ANSWERS WRONG", r.wrong));
    }
}

void print_json(const std::vector<PingResult>& results, const PingOptions& options) {
    nlohmann::json out{{"count", options.count}, {"octets", options.octets}, {"unit", "us"}};
    for (const auto& r : results) {
        out["peers"].push_back({{"rank", r.rank},
                                {"min", r.quantile(0)},
                                {"median", r.quantile(0.5)},
                                {"p99", r.quantile(0.99)},
                                {"p99.99", r.quantile(0.9999)},
                                {"max", r.quantile(1)},
                                {"wrong", r.wrong}});
    }
    fmt::print("{}\n", out.dump(2));
}

/// Rank 0: all others in turn.
int measure_all(JobLink& link, const PingOptions& options) {
    std::vector<PingResult> results;
    unsigned wrong = 0;
    for (std::uint16_t to = 1; to < link.size(); ++to) {
        PingResult result{.rank = to};
        if (link.failed(fmt::format("rank {} does not answer", to),
                        measure(link, options, to, &result)))
            return 1;
        wrong += result.wrong;
        results.push_back(std::move(result));
    }
    options.json ? print_json(results, options) : print_table(results, options);
    return wrong == 0 ? 0 : 1;
}

int ping(const PingOptions& options) {
    JobLink link("ulc ping", options.job);
    if (!link.join()) return 1;
    const int code = link.rank() == 0
                         ? measure_all(link, options)
                         : static_cast<int>(link.failed("rank 0 went silent", echo(link, options)));
    return link.leave() ? code : 1;
}

}  // namespace

void add_ping_command(Command& app, int* exit_code) {
    auto options = std::make_shared<PingOptions>();
    auto command =
        app.add_subcommand("ping", "Round-trip times from rank 0 of a job to every other rank");
    command.add_option("-c,--count", options->count, "Round trips with each rank (1000)")
        .range(1U, 100'000'000U);
    command
        .add_option("-s,--octets", options->octets,
                    "Octets of each message, the same for all ranks (8)")
        .range(1U, 1U << 24);
    command.add_flag("--json", options->json, "Print JSON");
    add_job_options(command, options->job);
    command.footer(
        "On this machine:  ulc run -n 2 ulc ping\n"
        "Between two nodes, with ulc-engine on each:\n"
        "  first:   ulc ping --job ping --rank 0 --size 2\n"
        "  second:  ulc ping --job ping --rank 1 --size 2");
    command.callback([options, exit_code] { *exit_code = ping(*options); });
}

}  // namespace ulc::tools
