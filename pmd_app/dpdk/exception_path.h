// IP keeps working on a NIC that the engine owns: frames that are not ours go to a TAP interface of the NIC's address, and
// what the kernel sends there goes out (DESIGN.md decision 14; GAMMA §4.2).
//
// Only the port's thread calls this. Its work is bounded in each call, and what the kernel sends waits while the port has
// frames of ours under way, so that they are not stuck behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <rte_mbuf.h>

#include "base/error.h"

namespace ulc::dpdk {

struct ExceptionCounts {
    std::uint64_t to_kernel = 0;    ///< frames
    std::uint64_t from_kernel = 0;  ///< frames
    std::uint64_t lost = 0;         ///< frames that the interface or the NIC had no room for
};

class ExceptionPath {
public:
    /// Makes the interface "ulc<number>" with the address and MTU of `nic` and brings it up; `pool`: where frames of the
    /// kernel go. Errors (why: what to do): kPermission (no CAP_NET_ADMIN or /dev/net/tun), kSystem.
    static Err open(std::uint16_t nic, unsigned number, std::uint16_t mtu, std::uint16_t ether_type,
                    rte_mempool* pool, std::unique_ptr<ExceptionPath>& out, std::string& why);
    ~ExceptionPath();
    ExceptionPath(const ExceptionPath&) = delete;
    ExceptionPath& operator=(const ExceptionPath&) = delete;

    /// Of `count` frames from the NIC, keeps ours in order and gives the others to the kernel. Returns how many are kept.
    std::uint16_t take(rte_mbuf** frames, std::uint16_t count) noexcept;

    /// Whether it is time to look for frames of the kernel: once in a number of rounds of the port.
    [[nodiscard]] bool due() noexcept;

    /// Sends a few frames of the kernel, if any, when few of `nic_pending` frames are under way. Returns how many the NIC
    /// took. One system call when there are some, else none.
    std::uint16_t serve(std::uint32_t nic_pending) noexcept;

    [[nodiscard]] const ExceptionCounts& counts() const noexcept { return counts_; }
    [[nodiscard]] const std::string& interface() const noexcept { return interface_; }

private:
    ExceptionPath() = default;

    std::string device_;     ///< DPDK's name of the TAP
    std::string interface_;  ///< the kernel's
    std::uint16_t nic_ = 0;
    std::uint16_t tap_ = 0;
    bool open_ = false;
    std::uint16_t ether_type_ = 0;  ///< ours, as it lies in a frame
    std::uint32_t calls_ = 0;
    ExceptionCounts counts_;
};

}  // namespace ulc::dpdk
