// SPDX-License-Identifier: BSD-3-Clause
// The EAL's run-time directory. The memif driver refuses to work without the EAL's multi-process
// channel, and that needs files in a directory (so --in-memory is not possible). We want no second
// process and nothing left behind: every process has a separate directory, its files are unlinked
// as soon as the EAL has them open, the empty directory is removed at exit, and directories of
// crashed processes are removed at start.
#pragma once

#include <string>

namespace ulc::dpdk {

/// Returns the --file-prefix of this process, unique on the machine.
[[nodiscard]] std::string runtime_prefix();

/// Brackets rte_eal_init(): before it, chooses a private place if the user has no XDG_RUNTIME_DIR
/// and is not root; after it, restores the environment, unlinks the EAL's files and removes the
/// directories of crashed processes.
class RuntimeDirectory {
public:
    RuntimeDirectory();
    ~RuntimeDirectory();
    RuntimeDirectory(const RuntimeDirectory&) = delete;
    RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;

private:
    bool variable_set_ = false;
};

/// Removes this process's directory; also runs at exit.
void remove_runtime_directory();

}  // namespace ulc::dpdk
