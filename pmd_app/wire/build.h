// SPDX-License-Identifier: BSD-3-Clause
// Writes frames: the inverse of wire/parse.h. Every function writes into memory that the caller
// owns, returns the octets of the frame (padded with zeros to 60), and cannot fail: sizes are the
// caller's, so they are checked as invariants. Values are taken in host order.
//
// Data frames: put the payload at payload_offset(), then call build_data(), which leaves it in
// place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/header.h"

namespace ulc::wire {

/// Ethernet and ULC header fields of any frame. kJob and kNode: handle, rank and seq stay 0.
struct FrameHead {
    Mac destination;
    Mac source;
    std::uint16_t ether_type = kEtherTypeDefault;
    FrameType type{};
    std::uint8_t flags = 0;
    std::uint32_t handle = 0;
    Rank rank = 0;
    Seq seq;
    bool crc = false;  ///< control frames: a CRC32C behind the body (data frames: kFlagCrc)
};

/// Values of the extensions that FrameHead::flags announces; the others are ignored.
struct Extensions {
    AckEntry ack{};                        ///< kFlagAck
    AfterEntry after[kAfterEntriesMax]{};  ///< kFlagAfter
    std::uint8_t after_count = 0;
    std::uint64_t subset = 0;          ///< kFlagSubset
    std::uint64_t tag = 0;             ///< kFlagTag
    std::uint64_t message_length = 0;  ///< kFlagFirst without kFlagLast
    std::uint32_t global = 0;          ///< kCounted
};

/// Returns the octets between the ULC header and the payload. `counted`: those of a kCounted frame.
[[nodiscard]] constexpr std::size_t extension_octets(std::uint8_t flags, std::size_t after_count,
                                                     bool counted = false) noexcept {
    std::size_t octets = counted ? sizeof(Be32) : 0;
    if ((flags & kFlagAck) != 0) octets += sizeof(AckEntry);
    if ((flags & kFlagAfter) != 0) octets += 1 + after_count * sizeof(AfterEntry);
    if ((flags & kFlagSubset) != 0) octets += sizeof(Be64);
    if ((flags & kFlagTag) != 0) octets += sizeof(Be64);
    if ((flags & (kFlagFirst | kFlagLast)) == kFlagFirst) octets += sizeof(Be64);
    return octets;
}

/// Returns where the payload starts, from the Ethernet header on.
[[nodiscard]] constexpr std::size_t payload_offset(std::uint8_t flags, std::size_t after_count,
                                                   bool counted = false) noexcept {
    return kHeadOctets + extension_octets(flags, after_count, counted);
}

/// Returns the payload octets that fit in a frame of `mtu` octets after the Ethernet header. mtu ≥
/// 128. `extensions`: extension_octets().
[[nodiscard]] constexpr std::size_t payload_max(std::uint8_t flags, std::size_t extensions,
                                                std::size_t mtu) noexcept {
    return mtu - sizeof(Header) - extensions - ((flags & kFlagCrc) != 0 ? sizeof(Be32) : 0);
}

/// The beginning of the frames of one stream; flags, length and seq belong to each frame.
struct Head {
    EthernetHeader ethernet;
    Header header;
};
static_assert(sizeof(Head) == kHeadOctets && alignof(Head) == 1);

[[nodiscard]] constexpr std::uint8_t version_type(FrameType type) noexcept {
    const bool frozen =
        type == FrameType::kJob || type == FrameType::kNode || type == FrameType::kLink;
    return static_cast<std::uint8_t>((frozen ? kVersionFrozen : kVersion) << 4U |
                                     static_cast<unsigned>(type));
}

[[nodiscard]] Head make_head(const FrameHead& head) noexcept;

/// Builds kData, kMcast and kCounted: headers and extensions before a payload that is at
/// payload_offset(), CRC if flagged, padding. `frame`: at least max(60, payload_offset +
/// payload_octets + 4 with CRC) octets.
[[nodiscard]] std::size_t build_data(std::byte* frame, const Head& head, std::uint8_t flags,
                                     Seq seq, const Extensions& extensions,
                                     std::size_t payload_octets) noexcept;
[[nodiscard]] std::size_t build_data(std::byte* frame, const FrameHead& head,
                                     const Extensions& extensions,
                                     std::size_t payload_octets) noexcept;

/// Builds kAck: 1 … kAckEntriesMax entries. `frame`: at least kHeadOctets + 16 × 12 octets, or the
/// size of the entries (≥ 60).
[[nodiscard]] std::size_t build_ack(std::byte* frame, const FrameHead& head,
                                    std::span<const AckEntry> entries) noexcept;

/// Builds kReq. `bitmap`: at most kReqBitmapOctetsMax octets.
[[nodiscard]] std::size_t build_req(std::byte* frame, const FrameHead& head, const AckEntry& ack,
                                    std::span<const std::byte> bitmap) noexcept;

/// Builds kProbe; head.seq is the first number not sent yet.
[[nodiscard]] std::size_t build_probe(std::byte* frame, const FrameHead& head,
                                      StreamId stream) noexcept;

/// Builds kFlow.
[[nodiscard]] std::size_t build_flow(std::byte* frame, const FrameHead& head,
                                     const FlowBody& body) noexcept;

/// Builds kStatus. `next`: body.count of them.
[[nodiscard]] std::size_t build_status(std::byte* frame, const FrameHead& head,
                                       const StatusBody& body, std::span<const Be32> next) noexcept;

/// Builds kNack.
[[nodiscard]] std::size_t build_nack(std::byte* frame, const FrameHead& head,
                                     const NackBody& body) noexcept;

/// Builds any control frame whose body is at kHeadOctets already (kJob and kNode: wire/job.h writes
/// it there). With head.crc the frame needs four octets more.
[[nodiscard]] std::size_t build_control(std::byte* frame, const FrameHead& head,
                                        std::size_t body_octets) noexcept;

/// Overwrites the destination: a retransmission of a group packet to one member repeats all else
/// byte for byte.
inline void set_destination(std::byte* frame, const Mac& destination) noexcept {
    reinterpret_cast<EthernetHeader*>(frame)->destination = destination;
}

}  // namespace ulc::wire
