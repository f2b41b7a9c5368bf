// SPDX-License-Identifier: BSD-3-Clause
// ulc switch: becomes ulc-switch, which links DPDK, so that this program need not.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/programs.h"

namespace ulc::tools {
namespace {

int become_switch(const std::vector<std::string>& arguments) {
    const std::string program = find_program("ulc-switch", "pmd_app/switch", "ULC_SWITCH_PATH");
    if (program.empty()) {
        fmt::print(stderr,
                   "ulc switch: the program ulc-switch is not there; build it, or name it in "
                   "ULC_SWITCH_PATH\n");
        return 127;
    }
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (auto& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    fmt::print(stderr, "ulc switch: cannot start {}: {}\n", program, std::strerror(errno));
    return 126;
}

}  // namespace

void add_switch_command(Command& app, int* exit_code) {
    auto command =
        app.add_subcommand("switch", "A learning switch between local nodes, with seeded faults");
    command.prefix_command();
    command.drop_help();  // --help is the switch's own
    command.callback([command, exit_code] { *exit_code = become_switch(command.remaining()); });
}

}  // namespace ulc::tools
