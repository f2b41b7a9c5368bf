// SPDX-License-Identifier: BSD-3-Clause
// ulc doctor: names what keeps ULC from running here, and the command that repairs it.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "abi/attach.h"
#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/doctor/doctor.h"
#include "tools/ulc/doctor/report.h"
#include "tools/ulc/programs.h"
#include "tools/ulc/run/mpi_host.h"

namespace ulc::tools {
namespace {

struct DoctorOptions {
    JobOptions job;
    bool net = false;
    bool mpi = false;
    bool json = false;
    std::string report;
};

void print_json(const Findings& findings) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& f : findings) {
        out.push_back(
            {{"level", word_of(f.level)}, {"topic", f.topic}, {"text", f.text}, {"fix", f.fix}});
    }
    fmt::print("{}\n", out.dump(2));
}

Findings look_at_host(const std::string& engine) {
    Findings findings;
    check_cores("", findings);
    check_memory("", findings);
    check_hugepages("", findings);
    check_udp("", findings);
    check_iommu("", findings);
    check_nics("", findings);
    check_interfaces("", findings);
    check_programs(findings);
    if (engine.starts_with("embedded:")) return findings;
    check_socket(engine, findings);
    check_engine_frames(engine, findings);
    return findings;
}

int doctor(const DoctorOptions& options) {
    std::string engine =
        options.job.engine.empty() ? environment_of("ULC_ENGINE") : options.job.engine;
    if (engine.empty()) engine = abi::kDefaultSocketPath;
    Findings findings;
    bool complete = true;
    if (options.net) {
        complete = check_net(options.job, findings);
        const bool is_reporting = !findings.empty();
        // The pings are short, so a path that takes no long frames is seen in the counters alone.
        if (!engine.starts_with("embedded:")) check_engine_frames(engine, findings);
        if (!is_reporting)
            std::erase_if(findings, [](const Finding& f) { return f.level == Level::kOk; });
        if (findings.empty()) return complete ? 0 : 1;
    } else if (options.mpi) {
        check_mpi(findings);
        if (!engine.starts_with("embedded:")) check_socket(engine, findings);
    } else {
        findings = look_at_host(engine);
    }
    if (!options.report.empty()) {
        const std::string error =
            write_report(options.report, report_text("", options.job.engine, findings));
        if (error.empty()) {
            fmt::print("{} has what a bug report needs; read it before you pass it on\n",
                       options.report);
        } else {
            fmt::print(stderr, "ulc doctor: {}\n", error);
        }
        return error.empty() ? 0 : 1;
    }
    options.json ? print_json(findings) : fmt::print("{}", text_of(findings));
    const auto count = [&](Level level) {
        return std::count_if(findings.begin(), findings.end(),
                             [&](const Finding& f) { return f.level == level; });
    };
    if (!options.json) {
        fmt::print("{} ok, {} to look at, {} that prevent work\n", count(Level::kOk),
                   count(Level::kWarn), count(Level::kFail));
    }
    return count(Level::kFail) > 0 || !complete ? 1 : 0;
}

}  // namespace

void add_doctor_command(Command& app, int* exit_code) {
    auto options = std::make_shared<DoctorOptions>();
    auto command = app.add_subcommand(
        "doctor", "Look for what keeps ULC from running, with the commands that repair it");
    const auto net = command.add_flag(
        "--net", options->net,
        "As a rank of a job: do broadcast, unicast and multicast reach the others?");
    command.add_flag("--mpi", options->mpi,
                     "The MPIs of this machine, and the parts of ULC that each one loads");
    auto json = command.add_flag("--json", options->json, "Print JSON");
    command
        .add_option("--report", options->report,
                    "Write a new file with what a bug report needs, without secrets: findings, "
                    "devices, environment, configuration, counters and log")
        .excludes(json)
        .excludes(net);
    add_job_options(command, options->job);
    command.footer(
        "Exit status 1 if something prevents work. Changes nothing.\n"
        "Between nodes, on each:  ulc doctor --net --job check --rank 0|1|… --size NODES\n"
        "On this machine:         ulc run -n 4 --nodes 4 ulc doctor --net");
    command.callback([options, exit_code] { *exit_code = doctor(*options); });
}

}  // namespace ulc::tools
