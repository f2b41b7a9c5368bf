// SPDX-License-Identifier: BSD-3-Clause
// port.h over an RDMA port: one UD queue pair, whose payloads are our frames (docs/PROTOCOL.md,
// "ULC over UD"). Registered frames go out and come in without a copy. No DPDK and no thread.
//
//   tx()          a chain of work requests with one doorbell; the last of a chain and every 16th
//                 are signalled, so that no frame stays pending without a report
//   tx_pending()  polls the send completions; each retires all frames before it
//   rx()          polls the receive completions, then posts free buffers in batches
//   link_up()     reads the device's events, resets a queue pair that failed, joins groups
//
// A frame for a node that was not heard of yet goes to the broadcast group, as a switch floods;
// its receivers drop what is not for them. No frame is delivered whose MAC does not follow from
// the GID and queue pair of which the device says that they sent it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "port/port.h"
#include "verbs/device.h"

namespace ulc::verbs {

struct CmLibrary;
struct Library;

struct PortOptions {
    DeviceSpec device;
    std::uint16_t mtu = 0;  ///< octets after the Ethernet header; 0: what the device carries
    std::uint16_t ether_type = 0x88B5;
    std::uint32_t segments = 4096;  ///< frames that senders may hold, and receivers
    std::uint32_t send_frames = 1024;
    std::uint32_t receive_frames = 1024;
    const CmLibrary* manager = nullptr;  ///< nullptr: librdmacm itself, where it is needed
    /// Gets a sentence when the device's state changes; called on the engine's thread.
    void (*report)(const std::string& line) = nullptr;
};

struct Counts {
    std::uint64_t frames_sent = 0;
    std::uint64_t doorbells = 0;     ///< chains posted; on Soft-RoCE each is a system call
    std::uint64_t refusals = 0;      ///< chains of which the device did not take all
    std::uint64_t copied_bytes = 0;  ///< into work requests (inline) and tails into frames
    std::uint64_t flooded = 0;       ///< frames to nodes not heard of, sent to all
    std::uint64_t no_handle = 0;     ///< frames dropped because no address handle could be made
    std::uint64_t peers_learnt = 0;
    std::uint64_t bad_completions = 0;     ///< completions that name no request of ours
    std::uint64_t failed_completions = 0;  ///< with an error status
    std::uint64_t too_short = 0;           ///< received: shorter than headers
    std::uint64_t too_long = 0;            ///< received: longer than a buffer
    std::uint64_t forged = 0;         ///< received: the MAC is not that of the sending queue pair
    std::uint64_t other_station = 0;  ///< received: for another node
    std::uint64_t own_echo = 0;       ///< received: sent by this node
    std::uint64_t resets = 0;         ///< resets of the queue pair
    std::uint64_t join_failures = 0;  ///< joins of groups that failed, with a connection manager
    std::uint64_t groups_lost = 0;    ///< memberships that ended unasked
};

class VerbsPort {
public:
    /// Opens the device and joins the broadcast group. library: nullptr for libibverbs itself.
    /// Errors: those of Adapter::open(), kUnsupported (no libibverbs, no multicast). Not for the
    /// hot path.
    static Err open(const PortOptions& options, const Library* library,
                    std::unique_ptr<VerbsPort>& out, std::string& why);
    virtual ~VerbsPort() = default;

    /// Valid while this object lives; copies are fine.
    [[nodiscard]] virtual const Port& port() const noexcept = 0;
    /// "verbs rxe0"
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual const Counts& counts() const noexcept = 0;
};

}  // namespace ulc::verbs
