// SPDX-License-Identifier: BSD-3-Clause
// Converts bytes to a checked view, or to the reason of a refusal. Never reads outside [frame,
// frame+octets).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/counters.h"
#include "wire/header.h"

namespace ulc::wire {

/// A frame that passed every check of docs/PROTOCOL.md §2. Values are copied out and in host order;
/// pointers are inside the frame and are valid as long as it is.
struct FrameView {
    Mac destination;
    Mac source;
    FrameType type{};
    std::uint8_t flags = 0;
    Rank rank = 0;
    std::uint32_t handle = 0;
    Seq seq;
    /// Payload without CRC, or the control body; a landed payload is elsewhere (port.h)
    const std::byte* body = nullptr;
    std::uint16_t length = 0;  ///< octets of body
    // kData, kMcast, kCounted
    const AckEntry* ack = nullptr;  ///< kFlagAck
    const AfterEntry* after = nullptr;
    std::uint8_t after_count = 0;
    std::uint64_t subset = 0;
    std::uint64_t tag = 0;
    /// Length of the message of a first packet; == length when also last
    std::uint64_t message_length = 0;
    std::uint32_t global = 0;  ///< kCounted

    bool operator==(const FrameView&) const = default;
};

/// Takes the tag of VLAN 0, which has a priority alone, out of a frame that parse() dropped by
/// drop_vlan. Returns its octets then; 0: it is of another VLAN.
[[nodiscard]] std::size_t remove_priority_tag(std::byte* frame, std::size_t octets,
                                              std::uint16_t ether_type) noexcept;

/// True if parse() decides about a packet with payload by its first kFrontOctetsMax octets alone,
/// whatever follows. `octets`: those that are there.
[[nodiscard]] bool is_judged_by_front(const std::byte* frame, std::size_t octets) noexcept;

/// Returns kCount if parsed, else the drop_* counter that says why not. `must_have_crc`: a frame
/// without a CRC, flagged in data and behind the body of control, is dropped like one with a wrong
/// one. Cost: no branch beyond the checks, no allocation; CRC only when flagged or required.
[[nodiscard]] Counter parse(const std::byte* frame, std::size_t octets, std::uint16_t ether_type,
                            FrameView& out, bool must_have_crc = false) noexcept;

}  // namespace ulc::wire
