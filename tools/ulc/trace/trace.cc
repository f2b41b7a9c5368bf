// SPDX-License-Identifier: BSD-3-Clause
// ulc trace and ulc dump: what an engine recorded (ulc-engine --trace FILE), as a timeline, as a
// summary, or as a capture.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/trace/collective.h"
#include "tools/ulc/trace/output.h"
#include "tools/ulc/trace/pcapng.h"
#include "tools/ulc/trace/timeline.h"
#include "tools/ulc/trace/trace_file.h"

namespace ulc::tools {
namespace {

struct TraceCommand {
    std::string file;
    std::vector<std::string> files;  ///< those of `ulc trace`
    bool collective = false;
    std::optional<std::int64_t> number;
    std::string out;
    bool follow = false;
};

volatile sig_atomic_t g_ends = 0;

int fail(const char* command, const std::string& error) {
    fmt::print(stderr, "ulc {}: {}\n", command, error);
    return 1;
}

/// Says on standard error which records are missing.
void report_gaps(const TraceFile& trace) {
    if (trace.skipped() != 0)
        fmt::print(stderr, "{} older records were overwritten; raise --trace-frames\n",
                   trace.skipped());
    if (trace.bad() != 0) fmt::print(stderr, "{} records are damaged and left out\n", trace.bad());
}

int dump(const TraceCommand& options) {
    TraceFile trace;
    Output out;
    std::string error;
    if (options.out == "-" && ::isatty(STDOUT_FILENO) == 1)
        return fail("dump", "a capture is no text; name a file with -o, or pipe it to tshark -r -");
    if (!trace.open(options.file, &error) || !out.open(options.out, &error))
        return fail("dump", error);
    struct sigaction action {};
    action.sa_handler = [](int) { g_ends = 1; };
    action.sa_flags = SA_RESTART;  // no write ends in its middle
    if (options.follow) {
        ::sigaction(SIGINT, &action, nullptr);
        ::sigaction(SIGTERM, &action, nullptr);
    }
    ::signal(SIGPIPE, SIG_IGN);
    if (!out.write(pcapng_head(trace), &error)) return fail("dump", error);
    std::vector<TimedRecord> records;
    for (bool last = false; !last;) {
        // Asked before the read: what comes after the answer is read by the next turn.
        last = !options.follow || g_ends != 0 || !trace.is_written();
        records.clear();
        trace.read(records);
        std::string blocks;
        for (const TimedRecord& record : records)
            blocks += pcapng_block(trace, record);
        if (!blocks.empty() && !out.write(blocks, &error)) return fail("dump", error);
        if (!last && records.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    report_gaps(trace);
    return 0;
}

void print_summary(const TraceFile& trace, const TraceSummary& summary) {
    fmt::print("engine {} ({}): {} frames in, {} out in {:.6f} s\n", trace.engine_pid(),
               trace.is_written() ? "writes this trace" : "has ended", summary.frames_in,
               summary.frames_out,
               static_cast<double>(summary.last - summary.first) / static_cast<double>(kSecond));
    fmt::print("sent again {}, requests in {}, out {}, gaps filled {}", summary.sent_again,
               summary.requests_in, summary.requests_out, summary.repaired);
    if (summary.repaired != 0)
        fmt::print(", the longest after {:.1f} µs",
                   static_cast<double>(summary.longest_repair) / kMicrosecond);
    fmt::print("\n");
    if (summary.unreadable != 0) fmt::print("not ULC's frames: {}\n", summary.unreadable);
    for (const auto& [name, count] : summary.events)
        fmt::print("{} {}\n", name, count);
}

int timeline(const TraceCommand& options) {
    TraceFile trace;
    std::string error;
    if (options.files.size() != 1)
        return fail("trace", "one file has one timeline; add --collective to look at several");
    if (!trace.open(options.files.front(), &error)) return fail("trace", error);
    Timeline made(trace);
    std::vector<TimedRecord> records;
    trace.read(records);
    for (const TimedRecord& record : records)
        made.add(record);
    if (options.out.empty()) {
        print_summary(trace, made.summary());
    } else {
        Output out;
        if (!out.open(options.out, &error) || !out.write(made.finish(), &error))
            return fail("trace", error);
    }
    report_gaps(trace);
    return 0;
}

/// Prints the critical path of the longest collective, or of the longest with a number.
int collective(const TraceCommand& options) {
    Collectives collectives;
    for (const std::string& file : options.files) {
        TraceFile trace;
        std::string error;
        if (!trace.open(file, &error)) return fail("trace", error);
        std::vector<TimedRecord> records;
        trace.read(records);
        collectives.add(trace.ether_type(), trace.realtime_ahead(), records);
        report_gaps(trace);
    }
    const std::vector<Collective> found = collectives.find();
    if (found.empty())
        return fail("trace",
                    "no frame of a collective was sent by one of these engines and received by "
                    "another; name the traces of all engines of the job");
    const auto one = std::find_if(found.begin(), found.end(), [&](const Collective& c) {
        return !options.number || c.number == *options.number;
    });
    if (one == found.end())
        return fail("trace", fmt::format("no collective {} is in the traces; --collective without "
                                         "--number shows the longest",
                                         *options.number));
    const Collective& middle = found[found.size() / 2];
    fmt::print("{} collectives, median {:.1f} µs (number {})\n{}", found.size(),
               static_cast<double>(middle.took) / kMicrosecond, middle.number,
               text_of(collectives, *one, options.files));
    return 0;
}

}  // namespace

void add_trace_commands(Command& app, int* exit_code) {
    auto options = std::make_shared<TraceCommand>();
    Command trace =
        app.add_subcommand("trace", "Show what an engine recorded (ulc-engine --trace FILE)");
    trace.add_option("file", options->files, "The engine's --trace FILE").required();
    auto output = trace.add_option(
        "-o,--output", options->out,
        "Write a timeline for Perfetto (ui.perfetto.dev) instead; -: standard output");
    auto path = trace.add_flag("--collective", options->collective,
                               "Show the longest collective in the traces of a job's engines: "
                               "who came late, what was repaired, its critical path");
    path.excludes(output);
    trace.add_option("--number", options->number, "Show the collective with this number")
        .needs(path);
    trace.callback([options, exit_code] {
        *exit_code = options->collective ? collective(*options) : timeline(*options);
    });

    auto capture = std::make_shared<TraceCommand>();
    capture->out = "-";
    Command command =
        app.add_subcommand("dump", "Write the recorded frames as a capture for Wireshark (pcapng)");
    command.add_option("file", capture->file, "The engine's --trace FILE").required();
    command.add_option("-o,--output", capture->out, "File to write (standard output)");
    command.add_flag("-f,--follow", capture->follow, "Go on until the engine ends, or Ctrl-C");
    command.callback([capture, exit_code] { *exit_code = dump(*capture); });
}

}  // namespace ulc::tools
