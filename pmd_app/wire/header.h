// SPDX-License-Identifier: BSD-3-Clause
// ULC frames, byte by byte. docs/PROTOCOL.md is the specification; the structs below are laid over
// wire bytes, so every member has alignment 1 and every size is asserted.
//
//  Ethernet (14)  | ULC header (14)                                   | extensions | payload
//  dst src type   | ver:4 type:4 | flags | length | handle | rank | seq | by flags |
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/endian.h"
#include "wire/ids.h"

namespace ulc::wire {

inline constexpr std::uint16_t kEtherTypeDefault = 0x88B5;  ///< IEEE 802 local experimental 1
inline constexpr std::uint16_t kMtuMin = 576;  ///< smallest payload of a frame: job frames need it
inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::uint8_t kVersionFrozen = 0;  ///< job and node control: layout never changes

enum class FrameType : std::uint8_t {
    kData = 1,   ///< unicast data; handle: the receiver's endpoint
    kMcast = 2,  ///< group data; handle: the group
    kAck = 3,    ///< 1 … kAckEntriesMax AckEntry; handle: the data source's endpoint
    kReq = 4,    ///< one ReqBody and its bitmap; handle: the data source's endpoint
    /// "acknowledge now"; seq: next number unsent; body: ProbeBody; handle: endpoint or group
    kProbe = 5,
    kJob = 6,   ///< forming and leaving jobs (wire/job.h); version 0
    kNode = 7,  ///< engine to engine: ping, pong, gone (wire/job.h); version 0
    // Types of profiles other than the default (docs/PROTOCOL.md §10, §11).
    kFlow = 8,     ///< space requested, granted or refused: FlowBody; handle: endpoint or group
    kCounted = 9,  ///< group data of the pcode profiles: kMcast with a global counter
    kStatus = 10,  ///< pcode: StatusBody and the position of each source; handle: group
    kNack = 11,    ///< pcode: NackBody; handle: the source's endpoint, or the group
    kLink = 12,    ///< links of endpoints of no common job (wire/link.h); version 0
    // 13 is FORWARD (wire/forward.h), which has another header, and which ports alone take.
};

/// Flags of kData, kMcast and kCounted. Extensions follow the header in this order; kCounted has
/// Be32 global before them.
enum Flag : std::uint8_t {
    kFlagFirst = 0x80,  ///< first packet of a message
    kFlagLast = 0x40,   ///< last packet of a message
    kFlagAck = 0x20,    ///< AckEntry follows (kData only)
    kFlagAfter = 0x10,  ///< u8 count (1 … 4) and that number of AfterEntry follow
    kFlagSubset =
        0x08,         ///< Be64 bitmap of target ranks' indices in the group follows (kMcast only)
    kFlagTag = 0x04,  ///< Be64 user tag follows (first packet only)
    kFlagAckNow = 0x02,  ///< receiver acknowledges at once
    kFlagCrc = 0x01,     ///< Be32 CRC32C of everything from the ULC header on ends the payload
};
// A first packet that is not also last carries Be64 message length in octets after the tag.

struct EthernetHeader {
    Mac destination;
    Mac source;
    Be16 type;
};
static_assert(sizeof(EthernetHeader) == 14);

struct Header {
    std::uint8_t version_type;  ///< version << 4 | FrameType
    std::uint8_t flags;
    /// Octets after extensions (payload, or body of a control frame); padding is not counted
    Be16 length;
    Be32 handle;
    Be16 rank;  ///< rank of the sender of this frame, in its job
    Be32 seq;
};
static_assert(sizeof(Header) == 14 && alignof(Header) == 1);
static_assert(offsetof(Header, seq) == 10);

/// Acknowledges a stream: everything before `next` is in delivery order at the acknowledger.
struct AckEntry {
    Be32 stream;    ///< StreamId by the data source's naming
    Be32 next;      ///< first number not yet in order
    Be16 credit;    ///< numbers next … next+credit-1 may be sent
    Be16 delay_us;  ///< from arrival of next-1 to this frame, saturating
};
static_assert(sizeof(AckEntry) == 12);

/// One predecessor that is not yet acknowledged: deliver only after `stream` delivered `seq`.
struct AfterEntry {
    Be32 stream;
    Be32 seq;
};
static_assert(sizeof(AfterEntry) == 8);

/// Asks for the numbers whose bit is zero: bit i (least significant first in octet i/8) stands for
/// ack.next+i. It is one if that number arrived, was just requested, or is not known to be sent.
struct ReqBody {
    AckEntry ack;
    Be16
        bitmap_octets;  ///< 0 … kReqBitmapOctetsMax; 0: asks for ack.next alone (a pending receive)
};
static_assert(sizeof(ReqBody) == 14);

struct ProbeBody {
    Be32 stream;
};
static_assert(sizeof(ProbeBody) == 4);

enum class FlowKind : std::uint8_t {
    kReserve = 1,  ///< source to receivers: is there space for these numbers?
    kGrant = 2,    ///< receiver to source: there is, reserved for them
    /// Receiver to source: there was none, they are lost (Express: negative acknowledgement)
    kRefuse = 3,
};

/// Numbers first … first+count-1 of a stream, and whether its receiver has space (profiles
/// conservative, optimistic).
struct FlowBody {
    Be32 stream;  ///< by the data source's naming
    Be32 first;
    Be16 count;  ///< ≥ 1
    FlowKind kind;
    /// GRANT: this number of packets before `first` are not in order; kLacksUnknown: more. Else
    /// 0
    std::uint8_t lacks;
};
static_assert(sizeof(FlowBody) == 12 && alignof(FlowBody) == 1);
inline constexpr std::uint8_t kLacksUnknown = 0xff;

/// Position of the sender of this frame in one group (PCODE §5.5): its global counter, and by
/// source the first personal count that it has not in order. Its own is the first that it has not
/// sent.
struct StatusBody {
    Be32 global;
    Be16 first;  ///< group index of the first Be32 that follows
    Be16 count;  ///< 1 … kStatusEntriesMax
    std::uint8_t flags;
    std::uint8_t reserved[3];
};
static_assert(sizeof(StatusBody) == 12 && alignof(StatusBody) == 1);

inline constexpr std::uint8_t kStatusWanted = 0x01;  ///< each member must answer with its own
inline constexpr std::size_t kStatusEntriesMax = 256;

enum class NackKind : std::uint8_t {
    kRequest = 1,   ///< a pending receive waits: personal counts
    kPersonal = 2,  ///< a gap in the personal counts of one source
    kGlobal = 3,    ///< a gap in the global counters; their sources are not known
    kNamed = 4,     ///< P0's request, to all: the member that it names resends
};

/// Requests retransmission of messages (PCODE §3, §5.3, §5.7).
struct NackBody {
    Be32 group;
    Be32 from;
    Be32 to;  ///< one past the last; == from: all from there on
    NackKind kind;
    std::uint8_t reserved;
    Be16 target;  ///< kNamed: index of the source in the group
};
static_assert(sizeof(NackBody) == 16 && alignof(NackBody) == 1);

inline constexpr std::size_t kAfterEntriesMax = 4;
inline constexpr std::size_t kAckEntriesMax = 16;
inline constexpr std::size_t kReqBitmapOctetsMax = 128;
inline constexpr std::size_t kFrameOctetsMin = 60;  ///< without FCS; shorter frames are padded
inline constexpr std::size_t kHeadOctets = sizeof(EthernetHeader) + sizeof(Header);
/// Worst case of all extensions of a data packet.
inline constexpr std::size_t kExtensionOctetsMax =
    sizeof(AckEntry) + 1 + kAfterEntriesMax * sizeof(AfterEntry) + 8 + 8 + 8 + 4 + 4;
/// A data packet's headers are no longer.
inline constexpr std::size_t kFrontOctetsMax = kHeadOctets + kExtensionOctetsMax;

}  // namespace ulc::wire
