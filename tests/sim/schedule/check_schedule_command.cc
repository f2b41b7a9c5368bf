// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/schedule/check_schedule_command.h"

#include <cstdio>
#include <memory>

#include "tools/shared/command_line.h"

namespace ulc::sim {

void add_check_schedule_command(tools::Command& app, int* exit_code) {
    auto options = std::make_shared<CheckScheduleOptions>();
    auto command = app.add_subcommand(
        "check-schedule", "Prove collective schedules right, or show the first bad step");
    command.add_option("file", options->file,
                       "A schedule as text (tests/sim/schedule/text.h); none: every algorithm "
                       "that ships");
    auto algorithm = command.add_option("--algorithm", options->algorithm,
                                        "One algorithm, as in allgather/ring");
    command.add_option("--ranks", options->ranks, "Every number of ranks from 1 to this (17)")
        .range(1, 256);
    command.add_option("--octets", options->octets, "Of a broadcast, or of one block (5000)")
        .range(0, 65536);
    command.add_option("--segment", options->segment, "Octets of a segment (600)").range(1, 65536);
    command
        .add_option("--concurrent", options->concurrent,
                    "k of allgather/concurrent and barrier/chain (3)")
        .range(1, 1024);
    command.add_option("--root", options->root, "Of a broadcast, modulo the ranks (0)");
    command.add_option("--buffers", options->buffers,
                       "The k of k-buffer correct: more messages than this at one receiver are "
                       "an error (any number)");
    command
        .add_flag("--print", options->print,
                  "Write the schedule of --algorithm at --ranks ranks as text, to start one from")
        .needs(algorithm);
    command.callback([options, exit_code] {
        std::string out;
        std::string errors;
        *exit_code = check_schedule(*options, out, errors);
        std::fputs(out.c_str(), stdout);
        std::fputs(errors.c_str(), stderr);
    });
}

}  // namespace ulc::sim
