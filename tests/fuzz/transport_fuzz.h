// SPDX-License-Identifier: BSD-3-Clause
// The script language of transport_fuzz: operations on one of the transports, whose number the
// operation's octet has too, and frames that were never sent.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "input.h"
#include "wire/build.h"

namespace ulc::fuzz {

/// Octet of an operation: WireOp + kWireOps × transport.
enum class WireOp : std::uint8_t {
    kSend,         ///< stream (1), flags (1), payload (1): first packet of a message
    kContinue,     ///< stream (1): next packet of its message
    kShort,        ///< to (1), tag (1): by the short way
    kTransmit,     ///< n (1): up to n frames of this transport go to the wire
    kArrive,       ///< fate (1), frame (1): one frame of the wire arrives
    kChanged,      ///< frame (1), changes (1), offset and value each: it arrives with other octets
    kOld,          ///< frame (1), to whom (1): one that was sent before arrives again
    kForged,       ///< forged_frame(), way (1)
    kTake,         ///< n (1): up to n packets are taken
    kExpect,       ///< source (1)
    kTime,         ///< n (1): time goes on by 2^(n % 36) ns
    kAddGroup,     ///< group (1), members (1)
    kRemoveGroup,  ///< group (1)
    kGone,         ///< peer (1), how (1)
    kPressure,     ///< which (1): want_segments, pull_tails, send_failed
};
inline constexpr unsigned kWireOps = 15;

inline constexpr GroupHandle kWorld = kGroupBit | 1U;
inline constexpr GroupHandle kGroup = kGroupBit | 2U;
inline constexpr unsigned kGroups = 3;

/// A rank up to 4, the world or a group, and seldom another number.
inline StreamId stream_of(std::uint8_t octet) {
    if (octet < 100) return octet % 5U;
    if (octet < 250) return kWorld + octet % (1 + kGroups);
    return octet % 2 == 0 ? UINT32_MAX : 0x7fffffffU;
}

/// A number near the ones that honest streams use, or far from them.
inline Seq seq_of(Input& in) {
    constexpr std::array<std::uint32_t, 4> kBases{100, UINT32_MAX - 3, 0, 1U << 31};
    const std::uint32_t base = kBases[in.octet() % kBases.size()];
    return Seq{base} + static_cast<std::uint32_t>(in.get<std::int8_t>());
}

inline wire::AckEntry ack_of(Input& in) {
    wire::AckEntry entry{};
    entry.stream = stream_of(in.octet());
    entry.next = seq_of(in).value;
    entry.credit = in.get<std::uint16_t>();
    entry.delay_us = in.octet();
    return entry;
}

inline std::vector<std::byte> data_frame(Input& in, wire::FrameHead head) {
    head.flags = in.octet();
    head.seq = seq_of(in);
    wire::Extensions extensions;
    if ((head.flags & wire::kFlagAck) != 0) extensions.ack = ack_of(in);
    if ((head.flags & wire::kFlagAfter) != 0) {
        extensions.after_count = 1 + in.below(wire::kAfterEntriesMax);
        for (auto& after : extensions.after)
            after = {stream_of(in.octet()), seq_of(in).value};
    }
    if ((head.flags & wire::kFlagSubset) != 0) extensions.subset = in.octet();
    extensions.message_length = in.get<std::uint32_t>();
    extensions.global = in.octet();
    std::vector<std::byte> frame(1024);
    frame.resize(wire::build_data(frame.data(), head, extensions, in.octet()));
    return frame;
}

/// A frame of any node, with ill-chosen values: kind (1), source (1), handle (1)
template <typename MacOf>
std::vector<std::byte> forged_frame(Input& in, const Mac& to, Handle handle, Rank nodes,
                                    MacOf mac_of) {
    wire::FrameHead head;
    head.type = static_cast<wire::FrameType>(1 + in.below(11));
    head.rank = in.below(nodes);
    head.source = mac_of(head.rank);
    head.destination = to;
    const StreamId named = stream_of(in.octet());
    head.handle = is_group(named) ? named : handle;
    switch (head.type) {
        case wire::FrameType::kData:
        case wire::FrameType::kMcast:
        case wire::FrameType::kCounted:
            return data_frame(in, head);
        default:
            break;
    }
    head.seq = seq_of(in);
    std::vector<std::byte> frame(1024);
    if (head.type == wire::FrameType::kAck || head.type == wire::FrameType::kReq) {
        std::array<wire::AckEntry, 4> entries{};
        for (auto& entry : entries)
            entry = ack_of(in);
        const auto bitmap = std::as_bytes(in.take(in.octet() % (wire::kReqBitmapOctetsMax + 1)));
        frame.resize(head.type == wire::FrameType::kAck
                         ? wire::build_ack(frame.data(), head, entries)
                         : wire::build_req(frame.data(), head, entries[0], bitmap));
        return frame;
    }
    // PROBE, FLOW, STATUS, NACK and others: a stream, and any octets behind it.
    const Be32 stream = stream_of(in.octet());
    std::memcpy(frame.data() + wire::kHeadOctets, &stream, sizeof stream);
    const auto body = in.take(in.octet());
    std::memcpy(frame.data() + wire::kHeadOctets + sizeof stream, body.data(), body.size());
    frame.resize(wire::build_control(frame.data(), head, sizeof stream + body.size()));
    return frame;
}

}  // namespace ulc::fuzz
