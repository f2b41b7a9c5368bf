// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/pull/peer_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/process_start.h"

namespace ulc::ofi {

PeerProcess::~PeerProcess() {
    if (pidfd_ >= 0) ::close(pidfd_);
}

bool PeerProcess::open(const ulc_near_process& process) noexcept {
    pid_ = static_cast<pid_t>(process.pid);
    pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    // The process had its number when the descriptor was made if it still has it.
    if (pidfd_ >= 0 && process_start_ticks(process.pid) == process.start_ticks) return true;
    if (pidfd_ >= 0) ::close(pidfd_);
    pidfd_ = -1;
    return false;
}

bool PeerProcess::read(const iovec* local, unsigned locals, const iovec* remote, unsigned remotes,
                       std::size_t bytes) const noexcept {
    if (pidfd_ < 0 ||
        ::process_vm_readv(pid_, local, locals, remote, remotes, 0) != static_cast<ssize_t>(bytes))
        return false;
    pollfd ended{pidfd_, POLLIN, 0};  // until then no other process gets its number
    return ::poll(&ended, 1, 0) == 0;
}

}  // namespace ulc::ofi
