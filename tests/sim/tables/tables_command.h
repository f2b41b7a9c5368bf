// `ulc-sim tables`: the papers' tables, ours beside them.
#pragma once

namespace CLI {
class App;
}

namespace ulc::sim {

/// Adds the sub-command; when asked for, it sets *exit_code.
void add_tables_command(CLI::App& app, int* exit_code);

}  // namespace ulc::sim
