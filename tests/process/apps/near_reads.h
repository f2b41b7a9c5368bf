// SPDX-License-Identifier: BSD-3-Clause
// Counts what the provider for libfabric reads of other processes' memory, and finds memory that it
// shares with them. For a program that is linked with export_dynamic.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace ulc::test {

inline int reads = 0;     ///< calls of process_vm_readv() that succeeded
inline int refusals = 0;  ///< others
inline int kill_at = 0;   ///< the read before which its process is killed; 0: none

/// True if this process maps memory for short messages.
inline bool has_ring() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("memfd:ulc-near") != std::string::npos) return true;
    return false;
}

}  // namespace ulc::test

/// The provider calls this one in place of the C library's.
extern "C" [[gnu::used]] inline ssize_t process_vm_readv(pid_t pid, const iovec* local,
                                                         unsigned long locals, const iovec* remote,
                                                         unsigned long remotes,
                                                         unsigned long flags) noexcept {
    using namespace ulc::test;
    if (kill_at != 0 && reads + 1 == kill_at) {
        ::kill(pid, SIGKILL);
        ::usleep(100'000);
    }
    const ssize_t got = ::syscall(SYS_process_vm_readv, pid, local, locals, remote, remotes, flags);
    ++(got > 0 ? reads : refusals);
    return got;
}
