// SPDX-License-Identifier: BSD-3-Clause
// ulc stat: the counters of a running engine; with --watch what they gain each second.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "abi/attach.h"
#include "base/coarse_clock.h"
#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/watch/counter_page.h"
#include "tools/ulc/watch/handlers.h"
#include "tools/ulc/watch/prometheus.h"
#include "tools/ulc/watch/streams.h"

namespace ulc::tools {
namespace {

struct StatOptions {
    std::string socket;
    bool watch = false;
    bool all = false;
    bool json = false;
    bool prometheus = false;
    bool streams = false;
    double interval_seconds = 1;
    unsigned count = 0;  ///< samples of --watch; 0: until the engine ends
};

void print_json(const CounterPage& page, const std::vector<std::uint64_t>& values) {
    nlohmann::json out{{"engine_pid", page.engine_pid()},
                       {"endpoints", page.endpoints()},
                       {"ports", page.ports()}};
    for (std::size_t i = 0; i < values.size(); ++i)
        out["counters"][page.names()[i]] = values[i];
    out["long_handlers"] = nlohmann::json::array();
    for (const RunningHandler& handler : long_handlers(page.rows(), coarse_milliseconds()))
        out["long_handlers"].push_back({{"endpoint", handler.endpoint},
                                        {"pid", handler.pid},
                                        {"kind", word_of(handler.kind)},
                                        {"number", handler.number},
                                        {"seconds", handler.ms / 1000.0}});
    fmt::print("{}\n", out.dump());
    std::fflush(stdout);
}

void print_table(const CounterPage& page, const std::vector<std::uint64_t>& values, bool all) {
    fmt::print("engine {}: {} endpoint{}, ports {}\n", page.engine_pid(), page.endpoints(),
               page.endpoints() == 1 ? "" : "s", page.ports().empty() ? "none" : page.ports());
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] == 0 && !all) continue;
        const CounterInfo info = info_of(page.names()[i]);
        fmt::print("{:>24} {:>18} {:<9} {}\n", page.names()[i], values[i], info.unit, info.help);
    }
    if (!all) fmt::print("(counters at 0 are left out; --all shows them)\n");
    for (const RunningHandler& handler : long_handlers(page.rows(), coarse_milliseconds()))
        fmt::print("{}\n", sentence_of(handler));
}

void print_gain(const CounterPage& page, const std::vector<std::uint64_t>& before,
                const std::vector<std::uint64_t>& now, double seconds) {
    const std::time_t t = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&t, &local);
    fmt::print("{:02}:{:02}:{:02}  {} endpoints, gained per second:\n", local.tm_hour, local.tm_min,
               local.tm_sec, page.endpoints());
    bool any = false;
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (now[i] == before[i]) continue;
        any = true;
        fmt::print("{:>24} {:>14.0f} {}\n", page.names()[i],
                   static_cast<double>(now[i] - before[i]) / seconds,
                   info_of(page.names()[i]).unit);
    }
    if (!any) fmt::print("{:>24}\n", "nothing");
    std::fflush(stdout);
}

int watch(const CounterPage& page, const StatOptions& options) {
    auto before = page.values();
    auto then = std::chrono::steady_clock::now();
    for (unsigned n = 0; options.count == 0 || n < options.count; ++n) {
        std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_seconds));
        const auto values = page.values();
        const auto now = std::chrono::steady_clock::now();
        if (options.json) {
            print_json(page, values);
        } else {
            print_gain(page, before, values, std::chrono::duration<double>(now - then).count());
        }
        if (!page.engine_lives()) {
            fmt::print(stderr, "ulc stat: the engine has ended\n");
            return 0;
        }
        before = values;
        then = now;
    }
    return 0;
}

int show_streams(const std::string& socket, bool json) {
    StreamPage page;
    std::string error;
    if (!read_streams(socket, &page, &error)) {
        fmt::print(stderr, "ulc stat: {}\n", error);
        return 1;
    }
    fmt::print("{}", json ? streams_json(page) : streams_text(page));
    return 0;
}

int stat(const StatOptions& options) {
    CounterPage page;
    std::string error;
    const std::string socket = counter_socket(options.socket, &error);
    if (options.streams && !socket.empty()) return show_streams(socket, options.json);
    if (socket.empty() || !page.open(socket, &error)) {
        fmt::print(stderr, "ulc stat: {}\n", error);
        return 1;
    }
    if (options.watch) return watch(page, options);
    if (options.prometheus) {
        fmt::print("{}", prometheus_text(socket, page));
        return 0;
    }
    options.json ? print_json(page, page.values()) : print_table(page, page.values(), options.all);
    return 0;
}

}  // namespace

void add_stat_command(Command& app, int* exit_code) {
    auto options = std::make_shared<StatOptions>();
    auto command = app.add_subcommand("stat", "Counters of a running engine");
    command.add_option(
        "socket", options->socket,
        fmt::format("The engine's socket (ULC_ENGINE, else {})", abi::kDefaultSocketPath));
    auto watches = command.add_flag("-w,--watch", options->watch,
                                    "Show what the counters gain, until Ctrl-C or the engine ends");
    command
        .add_option("--interval", options->interval_seconds, "Time between lines of --watch (1s)")
        .time(kSecond, 50 * kMillisecond, 3600 * kSecond);
    command.add_option("--count", options->count,
                       "End --watch after that number of samples (never)");
    command.add_flag("-a,--all", options->all, "Also the counters that are 0");
    auto json = command.add_flag("--json", options->json, "Print JSON, one object a line");
    auto prometheus = command.add_flag(
        "--prometheus", options->prometheus,
        "Print the text format of Prometheus, as for node_exporter's textfile collector");
    prometheus.excludes(json);
    command
        .add_flag("--streams", options->streams,
                  "For each peer of this user's endpoints: repairs, requests, round-trip time and "
                  "unacknowledged packets")
        .excludes(watches)
        .excludes(prometheus);
    command.footer("During a run: ulc run --keep --verbose … shows the sockets of its engines");
    command.callback([options, exit_code] { *exit_code = stat(*options); });
}

}  // namespace ulc::tools
