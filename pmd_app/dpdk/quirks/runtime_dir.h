// The EAL's run-time directory. The memif driver refuses to work without the EAL's multi-process channel,
// and that wants files in a directory (so --in-memory is out). We want no second process and nothing
// left behind: every process has a directory of its own, its files are unlinked as soon as the EAL has
// them open, the empty directory goes at exit, and directories of crashed processes are swept at start.
#pragma once

#include <string>

namespace ulc::dpdk {

/// The --file-prefix of this process, unique on the machine.
[[nodiscard]] std::string runtime_prefix();

/// Brackets rte_eal_init(): before it, chooses a private place when the user has no XDG_RUNTIME_DIR and is
/// not root; after it, puts the environment back, unlinks the EAL's files and sweeps what crashes left.
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
