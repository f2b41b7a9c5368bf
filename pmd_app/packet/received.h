// SPDX-License-Identifier: BSD-3-Clause
// A frame in the receive ring of a packet socket, and whether this node takes it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "port/port.h"

namespace ulc::packet {

struct Received {
    const std::byte* frame = nullptr;  ///< valid until PacketSocket::release_frame()
    std::uint32_t length = 0;
    bool truncated = false;
    /// The kernel says that it is for another host (PACKET_OTHERHOST).
    bool for_other_host = false;
};

/// Returns true if the frame is for the station `own`, and whole: at most `frame_max` bytes. Counts
/// it otherwise.
///
/// A socket that is bound to one EtherType never sees the tag of a VLAN: the kernel gives the frame
/// to the interface of that VLAN. Without such an interface it removes the tag and marks the frame
/// as one for another host, also if its address is the interface's or a group's. It ignores the tag
/// of VLAN 0, which has a priority alone. If the interface has another address than `own` by now, a
/// frame to `own` has this mark without a tag, too: `has_own` is false then.
[[nodiscard]] bool is_ours(const Received& got, const Mac& own, bool has_own,
                           std::uint32_t frame_max, PortDrops& drops) noexcept;

}  // namespace ulc::packet
