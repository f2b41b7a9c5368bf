// SPDX-License-Identifier: BSD-3-Clause
// Records of the two rings. A record is two cache lines, and a payload of up to 40 bytes is in the
// first. Its mark is stored last (release) and read first (acquire), so a record needs no shared
// producer index: the consumer of slot i knows the mark of the next lap.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/units.h"

namespace ulc::abi {

/// Returns the mark of the record with free-running number n: never 0, so zeroed memory holds no
/// record. `slots`: a power of two, at least 2.
[[nodiscard]] constexpr std::uint32_t mark_of(std::uint32_t n, std::uint32_t slots) noexcept {
    return (n >> std::countr_zero(slots)) + 1;  // n / slots, without a division
}

// Between the first and the last chunk of a message a client submits nothing that shares a
// destination with it: the engine would hold that back until the last chunk, and a full ring of
// such records would keep the last chunk from being read. kSubmitInline means a whole message, with
// or without kSubmitFirst and kSubmitLast.

enum class SubmitKind : std::uint8_t {
    kSend = 1,         ///< stream: destination rank or group handle
    kJoinJob = 3,      ///< body.block: offset/length of a JoinRequest in the tx arena
    kAddGroup = 4,     ///< stream: group handle; body.block: array of u16 ranks in the tx arena
    kRemoveGroup = 5,  ///< stream: group handle
    kExpect = 6,       ///< stream: the one rank that a pending receive names
    kLeave = 7,        ///< no more submissions; engine drains, then completes kLeft
    kOffload =
        8,  ///< stream: group; tag: of its messages; body.block: an OffloadRequest in the tx arena
    kCancelOffload = 9,  ///< cookie of a kOffload, which then ends with kClosed
    kListenGroup = 10,   ///< stream: group; cookie: the multicast address that it must share
    /// stream: group; cookie: its multicast address, to which all members listen; 0: broadcast
    kUseAddress = 11,
    kOpenLinks = 12,  ///< body.block: an OpenLinksRequest in the tx arena
    kLink = 13,       ///< inline_octets: a LinkCall
    kUnlink = 14,     ///< stream: slot of the peer; behind all messages sent to it
    /// tag: ns for which a member may hold up multicasts, not 0; stream: 0 or kHoldExcludes;
    /// inline_octets: u16 ranks that are never excluded.
    kHold = 15,
    kNear = 16,  ///< stream: a rank, or the slot of a link; answered by kNear
};

enum SubmitFlag : std::uint8_t {
    kSubmitInline = 0x01,  ///< payload in body.inline_octets, else in body.block
    kSubmitHasTag = 0x02,
    kSubmitHasSubset =
        0x04,             ///< `subset` valid (not with inline: such a send goes through the arena)
    kSubmitFirst = 0x08,  ///< first chunk of a message; block.message_length is its whole length
    kSubmitLast = 0x10,   ///< last chunk
    kSubmitNotify =
        0x20,  ///< say when it is done: payload copied, block reusable. Implied for arena payloads
    kSubmitNotifyAcked = 0x40,  ///< done only when every destination has it in order
    /// A whole message at block.address, which the engine may read until it is done.
    /// Reach::kProcess only
    kSubmitDirect = 0x80,
};

inline constexpr std::size_t kRecordOctets = 2 * kCacheLine;
/// Longest payload inside a record. A longer one is in an arena, and its sender hears when it was
/// copied.
inline constexpr std::size_t kInlineOctetsMax = kRecordOctets - 24;
/// Flag of kHold: a member that holds up multicasts for longer is excluded.
inline constexpr std::uint32_t kHoldExcludes = 1;

struct Block {
    std::uint32_t offset;  ///< in the arena that the kind implies; kSubmitDirect: number of pieces
    std::uint32_t length;
    std::uint64_t message_length;  ///< whole message, over all chunks
    std::uint64_t subset;          ///< bit i: index i of the group
    std::uint64_t message_offset;  ///< completions: offset of this chunk in the message
    std::uint64_t address;  ///< kSubmitDirect: the payload, or with offset > 0 its list of Pieces
};
static_assert(sizeof(Block) <= kInlineOctetsMax);

struct alignas(kCacheLine) SubmissionRecord {
    std::uint32_t mark;
    SubmitKind kind;
    std::uint8_t flags;
    std::uint16_t inline_length;
    std::uint32_t stream;
    /// Returned: of sends in dq, of kGroupReady and kGroupFailed in tag.
    std::uint32_t cookie;
    std::uint64_t tag;
    union {
        unsigned char inline_octets[kInlineOctetsMax];
        Block block;
    } body;
};
static_assert(sizeof(SubmissionRecord) == kRecordOctets);

enum class CompletionKind : std::uint8_t {
    kMessage = 1,  ///< (a chunk of) a message: source, stream, tag
    /// stream: world group handle; source: own rank; block.length: size, message_length: maximum of
    /// ranks on one node, message_offset: the Medium.
    kJobFormed = 3,
    /// Status: Err; EndpointControl::failure says why. In a formed job: it has ended for this
    /// client, which has no other use for the endpoint.
    kJobFailed = 4,
    kGroupReady = 5,   ///< stream: the group is registered here; tag: cookie; inline: GroupOffers
    kGroupFailed = 6,  ///< the same; status
    kPeerLeft = 7,     ///< source; tag: milliseconds for which the engine was stopped before, or 0
    kPeerDied = 8,     ///< the same
    kGroupListens = 12,  ///< stream; tag: cookie of kListenGroup; status
    /// status: the fault; source: the peer; tag: packets, messages or ms; stream: the group
    /// that it held up, else 0.
    kFault = 10,
    /// stream: cookie; status; kMismatch: source and tag of the message that differs.
    /// kCompleteInline: it was begun; inline_octets: u16 ranks, each the source of one message that
    /// the client got itself. Else it was refused.
    kOffloadDone = 11,
    /// stream: number of slots; inline_octets: the endpoint's address. A refusal is kJobFailed.
    kLinksOpen = 13,
    kLinked = 14,  ///< source: slot of a new peer; stream: 1 if no kLink asked for it
    /// Tag: cookie of a kLink; status; source: slot of the peer, reported by kLinked
    kLinkDone = 15,
    kUnlinked = 16,  ///< source: the slot is vacant, and means the next peer
    /// source: the rank or slot of a kNear; status: kOk, with NearRows inline, if its process uses
    /// this engine. In the order of the records, so before kUnlinked of that slot.
    kNear = 17,
    /// last record: everything acknowledged (status kOk), or kTimeout; then tag: bytes of messages
    /// that were not, source: the rank to which most packets were not; 0xffff: it has none
    kLeft = 9,
};

enum CompletionFlag : std::uint8_t {
    kCompleteInline = 0x01,
    kCompleteHasTag = 0x02,
    kCompleteFirst = 0x08,
    kCompleteLast = 0x10,
    /// The block is its source's way through a full arena: the client must give it back at once,
    /// whichever receive waits for the message. A client that keeps it waits without end for the
    /// next message of that source.
    kCompleteReserve = 0x20,
    /// The whole message (with kCompleteLast) is at the place that the client chose
    /// (abi/placement.h); block.message_length. Reach::kProcess only.
    kCompletePlaced = 0x40,
    /// The payload of the whole message is at block.address, in a frame that is the client's until
    /// it gives the block back, which is otherwise empty. Reach::kProcess only.
    kCompleteFrame = 0x80,
};

struct alignas(kCacheLine) CompletionRecord {
    std::uint32_t mark;
    CompletionKind kind;
    std::uint8_t flags;
    std::uint16_t inline_length;
    std::uint16_t source;
    std::int16_t status;   ///< Err as a number
    std::uint32_t stream;  ///< kMessage: own rank or group handle
    std::uint64_t tag;
    union {
        unsigned char inline_octets[kInlineOctetsMax];
        Block block;
    } body;
};
static_assert(sizeof(CompletionRecord) == kRecordOctets);

/// Writes the fields before the tag of a kMessage, except the mark, in two stores.
inline void write_message_head(CompletionRecord& out, std::uint8_t flags,
                               std::uint16_t inline_length, std::uint16_t source,
                               std::uint32_t stream) noexcept {
    struct What {
        CompletionKind kind;
        std::uint8_t flags;
        std::uint16_t inline_length;
    };
    struct Whose {
        std::uint16_t source;
        std::int16_t status;
        std::uint32_t stream;
    };
    constexpr std::size_t kWhat = offsetof(CompletionRecord, kind);
    constexpr std::size_t kWhose = offsetof(CompletionRecord, source);
    static_assert(kWhat + sizeof(What) == kWhose &&
                  kWhose + sizeof(Whose) == offsetof(CompletionRecord, tag));
    std::uint32_t what;
    std::uint64_t whose;
    if constexpr (std::endian::native == std::endian::little) {  // bit_cast would copy in pieces
        what = static_cast<std::uint32_t>(CompletionKind::kMessage) | std::uint32_t{flags} << 8U |
               std::uint32_t{inline_length} << 16U;
        whose = source | std::uint64_t{stream} << 32U;
    } else {
        what = std::bit_cast<std::uint32_t>(What{CompletionKind::kMessage, flags, inline_length});
        whose = std::bit_cast<std::uint64_t>(Whose{source, 0, stream});
    }
    auto* octets = reinterpret_cast<unsigned char*>(&out);
    std::memcpy(octets + kWhat, &what, sizeof what);
    std::memcpy(octets + kWhose, &whose, sizeof whose);
}

/// Inline in kGroupReady: what the engine knows of the group's nodes, and the multicast addresses
/// to which this one can listen (base/address_plan.h).
struct GroupOffers {
    std::uint8_t has_room;  ///< 1: it listens to the group's own address, which is offers[0]
    std::uint8_t count;
    std::uint16_t per_node;   ///< maximum of the group's ranks on one node
    std::uint32_t offers[9];  ///< AddressOffer::packed()
};
static_assert(sizeof(GroupOffers) <= kInlineOctetsMax);

/// The process of a client, as the kernel named it to the engine when it attached. Numbers count in
/// the engine's namespaces.
struct ProcessRow {
    std::uint32_t pid;  ///< 0: not visible to the engine
    std::uint32_t uid;
    std::uint64_t
        start_ticks;  ///< field 22 of /proc/PID/stat: clock ticks after boot; 0: not known
};

/// Inline in kNear: the client's own process, and that of the peer.
struct NearRows {
    ProcessRow self;
    ProcessRow peer;
};
static_assert(sizeof(NearRows) <= kInlineOctetsMax);

inline constexpr std::size_t kJobNameOctetsMax = 64;
inline constexpr std::size_t kProfileOctetsMax = 32;

/// In the tx arena, named by a kJoinJob record.
struct JoinRequest {
    char name[kJobNameOctetsMax];  ///< not necessarily terminated
    std::uint16_t name_length;
    std::uint16_t rank;
    std::uint16_t size;
    std::uint16_t medium;      ///< 0: as the engine's port reports, else 1 + a Medium
    unsigned char nonce[16];   ///< zeros: none given
    std::uint64_t timeout_ns;  ///< 0: the engine's default
    /// Profile of the transport; the rest is zero; all zero: the engine's default
    char profile[kProfileOctetsMax];
    /// Silence of its node after which a peer counts as dead, if longer than the engine's
    std::uint64_t patience_ns;
};
static_assert(sizeof(JoinRequest) == 136);

/// In the tx arena, named by a kOpenLinks record.
struct OpenLinksRequest {
    unsigned char key[16];            ///< random, from a source for secrets; with a name its secret
    char profile[kProfileOctetsMax];  ///< as in JoinRequest
    std::uint16_t links;              ///< maximum number of peers
    unsigned char name[14];           ///< under which others find the endpoint; zeros: they cannot
};
static_assert(sizeof(OpenLinksRequest) == 64);

inline constexpr std::size_t kAddressOctets = 32;

/// In the place of an address: the endpoint that is open under that name, wherever it is.
struct NamedAddress {
    static constexpr unsigned char kVersion = 3;  ///< the wire's
    static constexpr unsigned char kMark = 1;
    unsigned char version = kVersion;
    unsigned char mark = kMark;
    unsigned char name[14];    ///< as in OpenLinksRequest
    unsigned char secret[16];  ///< not 0
};
static_assert(sizeof(NamedAddress) == kAddressOctets);

/// Inline in a kLink record.
struct LinkCall {
    unsigned char address[kAddressOctets];
    std::uint64_t timeout_ns;  ///< 0: the engine's default
};
static_assert(sizeof(LinkCall) <= kInlineOctetsMax);

}  // namespace ulc::abi
