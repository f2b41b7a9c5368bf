// SPDX-License-Identifier: BSD-3-Clause
// Endpoints in a child of fork(). The child has copies of its parent's sockets and mappings: a
// socket that it keeps open would hide the end of its parent, and a write into the memory would
// spoil the parent's rings. So each attachment registers here, and the child closes and unmaps all
// of them before fork() returns.
//
// vfork() and posix_spawn() run no such handlers. Their children share the parent's memory until
// they run another program, and the sockets are closed by that.
#pragma once

namespace ulc::client {

/// One attachment: its part of the work in the child. Registers itself for its lifetime. Any
/// thread.
class ForkGuard {
public:
    using InChild = void (*)(void* context) noexcept;

    /// in_child: called in the child's only thread; other threads may have been anywhere. It may
    /// make system calls and write to memory of its context; it must not take locks or allocate.
    ForkGuard(InChild in_child, void* context);
    ~ForkGuard();
    ForkGuard(const ForkGuard&) = delete;
    ForkGuard& operator=(const ForkGuard&) = delete;

private:
    friend struct ForkGuards;
    InChild in_child_;
    void* context_;
    ForkGuard* next_ = nullptr;
    ForkGuard* before_ = nullptr;
};

}  // namespace ulc::client
