// SPDX-License-Identifier: BSD-3-Clause
// Keeps IP working on a NIC that the engine owns: frames that are not ours go to a TAP interface
// with the NIC's address, and the frames that the kernel sends there go out (decision D14; GAMMA
// §4.2).
//
// Only the port's thread calls this. While frames of ours come, all of it (system calls, and the
// kernel's work in them) gets a share of the thread's time that keeps it under a twentieth
// (work_share.h). Frames for the kernel wait in a queue, and are dropped when it is full, which TCP
// takes for congestion. The kernel's frames also get at most such a share of the wire's time, if
// the link's speed is known: on a slow wire a frame costs far more wire time than thread time. They
// also wait while the port has frames of ours in flight, so that ours are not delayed behind them.
// Time is that of the time stamp counter: each look is charged, also one that finds nothing, and no
// reading is a system call.
//
//   NIC ─▶ take() ─ ours ─▶ engine
//             └ others ─▶ queue ─▶ serve(): a few at a time, if there is credit ─▶ TAP
//   NIC ◀──────────────────────── serve() ◀─ TAP, if the wire has credit too
//
// Credit is a share of the time that passes, minus the cost of serve().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <rte_mbuf.h>

#include "base/error.h"
#include "base/units.h"
#include "dpdk/kernel/work_share.h"

namespace ulc::dpdk {

struct ExceptionCounts {
    std::uint64_t to_kernel = 0;    ///< frames
    std::uint64_t from_kernel = 0;  ///< frames
    std::uint64_t lost = 0;         ///< frames that the interface or the NIC had no space for
};

class ExceptionPath {
public:
    /// Makes the interface "ulc<number>" with the address and MTU of `nic` and brings it up.
    /// `pool`: for frames of the kernel. Its signals interrupt neither the calling thread nor one
    /// that this creates afterwards. Errors (`why`: the advice): kPermission (no CAP_NET_ADMIN or
    /// /dev/net/tun), kSystem.
    static Err open(std::uint16_t nic, unsigned number, std::uint16_t mtu, std::uint16_t ether_type,
                    rte_mempool* pool, std::unique_ptr<ExceptionPath>& out, std::string& why);
    ~ExceptionPath();
    ExceptionPath(const ExceptionPath&) = delete;
    ExceptionPath& operator=(const ExceptionPath&) = delete;

    /// Keeps our frames among `count` frames from the NIC in order and queues the others for the
    /// kernel. Returns how many are kept.
    std::uint16_t take(rte_mbuf** frames, std::uint16_t count) noexcept;

    /// Notes that frames of ours were sent.
    void on_sent() noexcept { ours_now_ = ours_came_ = true; }

    /// Sets the link's speed, as ethdev reports it; the wire's time is not shared if that is
    /// unknown.
    void on_link(std::uint32_t mbits_per_second) noexcept { mbits_ = mbits_per_second; }

    /// Call it once in each round of the port. Returns true if it is time to serve: preferably in a
    /// round whose take() kept no frame, behind one that sent none.
    [[nodiscard]] bool due() noexcept { return pace_.due(std::exchange(ours_now_, false)); }

    /// Gives, if its share of time allows, a few queued frames to the kernel, and sends a few of
    /// the kernel's when few of `nic_pending` frames are in flight. Returns how many the NIC took.
    /// A few system calls when there are frames, else none.
    std::uint16_t serve(std::uint32_t nic_pending) noexcept;

    [[nodiscard]] const ExceptionCounts& counts() const noexcept { return counts_; }
    [[nodiscard]] const WorkShare& thread_share() const noexcept { return thread_share_; }
    [[nodiscard]] const WorkShare& wire_share() const noexcept { return wire_share_; }
    [[nodiscard]] const std::string& interface() const noexcept { return interface_; }

private:
    static constexpr std::uint32_t kQueueFrames = 256;  ///< power of two

    ExceptionPath() = default;
    void to_kernel(std::uint16_t frames) noexcept;
    std::uint16_t from_kernel(Nanos now, std::uint16_t frames) noexcept;
    [[nodiscard]] Nanos tsc_now() const noexcept;
    [[nodiscard]] Nanos wire_time(std::uint32_t octets) const noexcept;

    std::string device_;     ///< DPDK's name of the TAP
    std::string interface_;  ///< the kernel's
    std::uint16_t nic_ = 0;
    std::uint16_t tap_ = 0;
    bool open_ = false;
    std::uint16_t ether_type_ = 0;  ///< ours, in wire byte order
    LookPace pace_;
    std::uint32_t queue_first_ = 0;
    std::uint32_t queue_end_ = 0;
    rte_mbuf* queue_[kQueueFrames];  ///< for the kernel
    bool ours_came_ = false;         ///< or went, since the last serve()
    bool ours_now_ = false;          ///< the same since the last due()
    double nanos_per_tick_ = 0;
    std::uint32_t mbits_ = 0;
    WorkShare thread_share_{WorkShare::kOfThread};
    WorkShare wire_share_{WorkShare::kOfWire};
    ExceptionCounts counts_;
};

}  // namespace ulc::dpdk
