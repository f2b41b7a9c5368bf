// ulc: one command for people. Parses the subcommand; each lives in its own ulc_<name>.cc.
#include <fmt/format.h>

#include "commands.h"

/// Exit status after a command line that cannot be understood, as of most commands.
constexpr int kUsage = 2;

int main(int argc, char** argv) {
    CLI::App app{"ulc: user-level communication for Ethernet clusters", "ulc"};
    app.set_version_flag("--version", ULC_VERSION);
    app.require_subcommand(1);
    app.failure_message(CLI::FailureMessage::simple);
    app.footer("Start with: ulc run -n 2 ulc ping    Trouble? ulc doctor");
    int exit_code = 0;
    ulc::tools::add_run_command(app, &exit_code);
    ulc::tools::add_switch_command(app, &exit_code);
    ulc::tools::add_stat_command(app, &exit_code);
    ulc::tools::add_ping_command(app, &exit_code);
    ulc::tools::add_tune_command(app, &exit_code);
    ulc::tools::add_doctor_command(app, &exit_code);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kUsage;
    }
    return exit_code;
}
