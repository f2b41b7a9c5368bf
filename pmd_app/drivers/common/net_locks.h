// SPDX-License-Identifier: BSD-3-Clause
// Guards for the spin locks of a port.
#pragma once

#include <rte_spinlock.h>

namespace ulc::nic {

class Hold {
public:
    explicit Hold(rte_spinlock_t& lock) noexcept : lock_(lock) { rte_spinlock_lock(&lock_); }
    ~Hold() { rte_spinlock_unlock(&lock_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

private:
    rte_spinlock_t& lock_;
};

/// The control plane's hold on both queues: transmit first, as all who wait do.
class Standstill {
public:
    Standstill(rte_spinlock_t& tx, rte_spinlock_t& rx) noexcept : tx_(tx), rx_(rx) {}

private:
    Hold tx_;
    Hold rx_;
};

/// Holds a lock if it was free.
class TryLock {
public:
    explicit TryLock(rte_spinlock_t& lock) noexcept
        : lock_(rte_spinlock_trylock(&lock) != 0 ? &lock : nullptr) {}
    ~TryLock() {
        if (lock_ != nullptr) rte_spinlock_unlock(lock_);
    }
    TryLock(const TryLock&) = delete;
    TryLock& operator=(const TryLock&) = delete;
    explicit operator bool() const noexcept { return lock_ != nullptr; }

private:
    rte_spinlock_t* lock_;
};

}  // namespace ulc::nic
