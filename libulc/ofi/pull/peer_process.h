// SPDX-License-Identifier: BSD-3-Clause
// The process of a peer, from whose memory messages are read. The engine names it (ulc_near.h).
#pragma once

#include <sys/uio.h>

#include <cstddef>

#include "client/near/ulc_near.h"

namespace ulc::ofi {

class PeerProcess {
public:
    PeerProcess() = default;
    ~PeerProcess();
    PeerProcess(const PeerProcess&) = delete;
    PeerProcess& operator=(const PeerProcess&) = delete;

    /// Called once. Returns false if the process has ended, its number now means another one, or
    /// the kernel has no descriptor for it.
    [[nodiscard]] bool open(const ulc_near_process& process) noexcept;

    /// Reads like process_vm_readv(). Returns false if the kernel refuses, if it gives fewer than
    /// `bytes` bytes, or if the process may have ended before they were read.
    [[nodiscard]] bool read(const iovec* local, unsigned locals, const iovec* remote,
                            unsigned remotes, std::size_t bytes) const noexcept;

private:
    pid_t pid_ = 0;
    int pidfd_ = -1;
};

}  // namespace ulc::ofi
