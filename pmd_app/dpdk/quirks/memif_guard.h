// SPDX-License-Identifier: BSD-3-Clause
// Corrects three weaknesses of DPDK's memif driver by redirecting its imports; it offers no hooks.
//
// 1. munmap: keeps a link's shared memory mapped while a burst function may still read it.
// The driver handles a disconnect on EAL's interrupt thread: it clears its "connected" flag and
// unmaps the rings, without asking whether a polling thread is inside rx_burst or tx_burst. One
// that was preempted there then reads unmapped memory: every peer that ends may crash this process
// when cores are shared. The guard's munmap waits until each poller has been seen outside a burst.
// Bursts that begin later see the cleared flag.
//
// 2. sendmsg: a peer that connects and hangs up before the driver has sent its greeting does not
// abort the process.
//
// 3. bind: the socket file belongs to its owner alone.
//
// Cost for the poller: two plain stores a burst. The order that matters is made by the rare side,
// with membarrier(2): either the poller's store of `inside` is seen there, or the poller sees the
// cleared flag.
#pragma once

#include <atomic>

namespace ulc::dpdk {

/// One port's mark, set by its polling thread.
class BurstMark {
public:
    BurstMark();  ///< registers it, at most kBurstMarksMax a process
    ~BurstMark();
    BurstMark(const BurstMark&) = delete;
    BurstMark& operator=(const BurstMark&) = delete;

    void enter() noexcept {
        inside_.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(
            std::memory_order_seq_cst);  // partner: membarrier in wait_outside_bursts
    }
    void leave() noexcept { inside_.store(false, std::memory_order_release); }
    [[nodiscard]] bool inside() const noexcept { return inside_.load(std::memory_order_acquire); }

private:
    std::atomic<bool> inside_{false};
};

/// Installs the guard once a process; after the memif driver is loaded, before its first device.
/// False: not possible here (a static DPDK, an unknown linkage); links work, with the weaknesses.
bool guard_memif();

}  // namespace ulc::dpdk
