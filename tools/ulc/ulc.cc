// SPDX-License-Identifier: BSD-3-Clause
// ulc: one command for people. Parses the subcommand; each lives in its own ulc_<name>.cc.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"

/// Exit status after a command line that cannot be understood, as of most commands.
constexpr int kUsage = 2;

namespace {

/// CLI11 takes a "--" from a subcommand and hands what follows to no command; `ulc run` and
/// `ulc cluster` know it by another name.
std::vector<std::string> words_of(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && (words[0] == "run" || words[0] == "cluster")) {
        const auto mark = std::ranges::find(words, "--");
        if (mark != words.end()) *mark = ulc::tools::kProgramFollows;
    }
    return words;
}

}  // namespace

int main(int argc, char** argv) {
    ulc::tools::CommandLine app("ulc: user-level communication for Ethernet clusters", "ulc");
    app.set_version_flag(ULC_VERSION);
    app.require_subcommand();
    app.footer("Start with: ulc run -n 2 ulc ping    Trouble? ulc doctor");
    int exit_code = 0;
    ulc::tools::add_run_command(app, &exit_code);
    ulc::tools::add_cluster_command(app, &exit_code);
    ulc::tools::add_switch_command(app, &exit_code);
    ulc::tools::add_stat_command(app, &exit_code);
    ulc::tools::add_top_command(app, &exit_code);
    ulc::tools::add_exporter_command(app, &exit_code);
    ulc::tools::add_upgrade_command(app, &exit_code);
    ulc::tools::add_ping_command(app, &exit_code);
    ulc::tools::add_tune_command(app, &exit_code);
    ulc::tools::add_env_command(app, &exit_code);
    ulc::tools::add_trace_commands(app, &exit_code);
    ulc::tools::add_doctor_command(app, &exit_code);
    if (const auto status = app.parse(words_of(argc, argv))) return *status == 0 ? 0 : kUsage;
    return exit_code;
}
