// SPDX-License-Identifier: BSD-3-Clause
// Bodies of JOB and NODE frames (docs/PROTOCOL.md §7, §8). Version 0: their layout never changes,
// since engines of different versions must be able to tell each other so. They stand after the ULC
// header; handle, rank, seq and flags of that header are 0.
//
// JOB:   JobHead (kind, name, nonce), then by kind
//   JOIN        JoinBody, claims × JoinClaim,        broadcast: these ranks are here
//               attributes of the node
//   ROSTER      RosterBody, attributes of the job,   broadcast: a part of the ranks' addresses
//               entries × RosterEntry, attributes of their nodes
//               padding
//   ROSTER_ACK  RosterAckBody, bitmap of parts held, padding: to the publisher
//   COMMIT      CommitBody                           broadcast: all hold it, the job has formed
//   REJECT      RejectBody                           a claim, or the whole forming job, failed
//   BYE         ByeBody                              broadcast: a rank left, died or withdrew
//         then, of a job with a key (of a launcher): JobTag
// NODE:  NodeBody: PING, PONG, GONE, EXPELLED, ECHO_REQUEST, ECHO_REPLY, LINKS_REQUEST; LINKS and
//        LINKS_REPLY, with 1 … kNodeLinksMax × LinkEntry, in the latter behind a number
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/endian.h"
#include "wire/header.h"
#include "wire/ids.h"
#include "wire/node_address.h"
#include "wire/node_attributes.h"

namespace ulc::wire {

struct Nonce {
    std::array<std::uint8_t, 16> octets{};
    friend constexpr bool operator==(const Nonce&, const Nonce&) = default;
    [[nodiscard]] constexpr bool zero() const noexcept { return *this == Nonce{}; }
};
static_assert(sizeof(Nonce) == 16);

/// Stands behind the body of a JOB frame of a job that has a key (wire/job_key.h).
struct JobTag {
    std::array<std::uint8_t, 16> octets{};
};
static_assert(sizeof(JobTag) == 16 && alignof(JobTag) == 1);

/// Version of all that engines of one job say to each other, offered in JOIN. 2: NODE bodies that
/// ask, jobs with a key. 3: attributes of nodes, a job's MTU.
inline constexpr std::uint8_t kProtocolVersion = 3;
/// The first version with keys, and with attributes.
inline constexpr std::uint8_t kVersionOfKeys = 2;
inline constexpr std::uint8_t kVersionOfAttributes = 3;

inline constexpr std::size_t kJobNameOctets = 64;
inline constexpr std::size_t kProfileOctets = 32;
inline constexpr std::size_t kJoinClaimsMax = 128;  ///< in one frame
inline constexpr std::size_t kRosterBitmapOctetsMax = 128;
/// Roster parts of one job; also bounds the ranks of a job of a small MTU.
inline constexpr std::size_t kRosterPartsMax = kRosterBitmapOctetsMax * 8;

enum class JobKind : std::uint8_t {
    kJoin = 1,
    kRoster = 2,
    kRosterAck = 3,
    kReject = 4,
    kBye = 5,
    kCommit = 6
};
enum class NodeKind : std::uint8_t {
    kPing = 1,
    kPong = 2,
    kGone = 3,
    kExpelled = 4,
    kLinks = 5,
    kEchoRequest = 6,
    kEchoReply = 7,
    kLinksRequest = 8,  ///< "which are your addresses?"
    kLinksReply = 9
};

/// The way in which a rank ended. kLeft: in order. kDied: its process did, or its data were given
/// up. kExcluded (in EXPELLED only): it held up a group, and its relation with the sender is over.
enum class LeaveReason : std::uint8_t { kLeft = 1, kDied = 2, kExcluded = 3 };

/// JobHead::flags. The nonce was not given by a launcher: zeros in JOIN, rank 0's own in what the
/// publisher sends. Jobs by hand and jobs of a launcher never meet, even under one name.
inline constexpr std::uint8_t kJobByHand = 0x01;
/// A JOIN that claims nothing any more: the engine of rank 0 says who it is before it sends REJECT.
inline constexpr std::uint8_t kJobIntroduces = 0x02;

struct JobHead {
    JobKind kind{};
    std::uint8_t flags = 0;
    std::uint8_t name_octets = 0;  ///< 1 … 64; the rest of name is zero
    std::uint8_t reserved = 0;
    std::array<char, kJobNameOctets> name{};
    Nonce nonce;  ///< by hand: as kJobByHand says; else the job's id, job_id_of(nonce)
};
static_assert(sizeof(JobHead) == 84 && alignof(JobHead) == 1);

struct JoinClaim {
    Be16 rank;
    Be32 handle;
};
static_assert(sizeof(JoinClaim) == 6);

struct JoinBody {
    Be16 size;
    std::uint8_t version_min;
    std::uint8_t version_max;
    Be32 incarnation;
    Be16 claims;  ///< 1 … kJoinClaimsMax
    /// Behind the claims: 0 … kAttributeOctetsMax. Without any, JOIN has the layout of version 2.
    Be16 attribute_octets;
    /// The transport profile that these ranks will use: lower-case letters, digits, '-' and '+';
    /// the rest is zero. It must be the publisher's, to the letter.
    std::array<char, kProfileOctets> profile;
};
static_assert(sizeof(JoinBody) == 44);

struct RosterEntry {
    Mac mac;
    Be32 handle;
    Be32 incarnation;
    /// Octets of its node's attributes, which stand behind all entries. 0 at all but the least
    /// rank of a node.
    std::uint8_t attribute_octets;
};
static_assert(sizeof(RosterEntry) == 15);

struct RosterBody {
    Be32 roster;  ///< names this roster among those of its publisher
    Be32 world;   ///< group handle of all ranks
    Be32 first_seq;
    Be16 size;
    Be16 part;
    Be16 parts;  ///< 1 … kRosterPartsMax
    Be16 first_rank;
    Be16 entries;  ///< ≥ 1; ranks first_rank … first_rank+entries-1
    std::uint8_t version;
    std::uint8_t medium;  ///< medium that joins the nodes, as rank 0 has it (base/medium.h)
    Be16 mtu;             ///< least MTU of the nodes: ≥ kMtuMin
    std::uint8_t attribute_octets;  ///< before the entries: ≤ kJobAttributeOctetsMax
    std::uint8_t reserved;
    Be16 padding;  ///< zeros at the end, up to the MTU of the job
};
static_assert(sizeof(RosterBody) == 30);

enum class RosterAckState : std::uint8_t {
    kPartial = 1,  ///< the bitmap says which parts are here
    kHolds = 2,    ///< all parts are here
    kFormed = 3,   ///< COMMIT has come (or no rank here waits for it any more)
    kRefused = 4,  ///< the world handle is in use here: choose another
};

struct RosterAckBody {
    Be32 roster;
    Be16 parts;  ///< kFormed: 1, else as in ROSTER
    RosterAckState state;
    /// kPartial: ceil(parts/8); bit i%8 (least significant first) of octet i/8: part i is here.
    /// Else 0.
    std::uint8_t bitmap_octets;
    Be16 padding;  ///< kHolds: as in RosterBody; else 0
};
static_assert(sizeof(RosterAckBody) == 10);

struct CommitBody {
    Be32 roster;
    Be32 reserved;
};
static_assert(sizeof(CommitBody) == 8);

enum class RejectScope : std::uint8_t {
    kClaim = 1,  ///< the one claim (rank, handle)
    kJob = 2,    ///< every claim of the job that has not formed
};

struct RejectBody {
    /// An Err of the job family: kJobSize, kRankTaken, kTwoRosters, kVersion, kProfile, kLimit
    Be32 error;
    RejectScope scope;
    std::uint8_t reserved;
    Be16 rank;    ///< over which the claimants disagree
    Be32 handle;  ///< kClaim: whose. Two engines of one MAC: the sender's incarnation
    Mac first;
    Mac second;
};
static_assert(sizeof(RejectBody) == 24);

struct ByeBody {
    Be16 rank;
    LeaveReason reason;
    std::uint8_t reserved;
    Be32 handle;
};
static_assert(sizeof(ByeBody) == 8);

/// Carries up to two questions (PING), or one answer: GONE or EXPELLED if so, else PONG. An answer
/// repeats the PING's token. GONE and EXPELLED with token 0 answer no PING: they are hints, and
/// their receiver asks.
struct NodeBody {
    NodeKind kind;
    LeaveReason reason;  ///< kGone; kExpelled: kExcluded or 0; else 0
    Be16 reserved;
    Be32 incarnation;  ///< incarnation of the engine that sends this
    Be64 token;
    /// kPing: "do you hold this endpoint of mine for dead?" kGone: the unknown handle.
    Be32 ours;
    /// kPing: "is this endpoint of yours there?" kExpelled: the endpoint that is held for dead.
    Be32 theirs;
};
static_assert(sizeof(NodeBody) == 24 && alignof(NodeBody) == 1);
inline constexpr std::uint64_t kNoToken = 0;

/// One link of the node that sends LINKS or LINKS_REPLY.
struct LinkEntry {
    Mac mac;
    Be16 segment;   ///< as in NodeAddress
    Be32 megabits;  ///< as in NodeAddress
};
static_assert(sizeof(LinkEntry) == 12 && alignof(LinkEntry) == 1);

/// A JOB body that passed every check of its kind. Pointers lie inside the frame; only those of
/// `kind` are set.
struct JobBodyView {
    JobKind kind{};
    bool by_hand = false;
    bool introduces = false;
    /// True for a launcher's JOIN of protocol version 1: no tag, and the nonce itself in `nonce`.
    bool old = false;
    std::string_view name;
    Nonce nonce;
    std::span<const std::byte> tagged;  ///< the octets that the tag covers
    const JobTag* tag = nullptr;        ///< nullptr: a job without a key
    const JoinBody* join = nullptr;
    std::string_view profile;  ///< kJoin
    std::span<const JoinClaim> claims;
    NodeAttributes attributes;  ///< kJoin
    /// kJoin: as they came. kRoster: of all entries, in their order.
    std::span<const std::byte> attribute_octets;
    const RosterBody* roster = nullptr;
    std::span<const RosterEntry> entries;
    const RosterAckBody* ack = nullptr;
    std::span<const std::byte> ack_bitmap;
    const RejectBody* reject = nullptr;
    const ByeBody* bye = nullptr;
    const CommitBody* commit = nullptr;
};

/// A NODE body that passed every check, in host order.
struct NodeView {
    NodeKind kind{};
    LeaveReason reason{};
    std::uint32_t incarnation = 0;
    std::uint64_t token = kNoToken;
    Handle ours = 0;
    Handle theirs = 0;
    std::span<const LinkEntry> links;  ///< kLinks, kLinksReply; inside the frame
    std::uint64_t number = 0;          ///< kLinks, kLinksReply: of the announcement
};

/// 1 … 64 octets, none a control character (names are printed).
[[nodiscard]] bool is_job_name(std::string_view name) noexcept;

/// 1 … 32 octets of the letters that JoinBody::profile allows.
[[nodiscard]] bool is_profile(std::string_view profile) noexcept;
/// Returns `profile`, which is_profile(), as it stands in a body.
[[nodiscard]] std::array<char, kProfileOctets> profile_field(std::string_view profile) noexcept;

/// False: malformed (count drop_job). Checks ranges and lengths, never state.
[[nodiscard]] bool parse_job(const std::byte* body, std::size_t octets, JobBodyView& out) noexcept;
[[nodiscard]] bool parse_node(const std::byte* body, std::size_t octets, NodeView& out) noexcept;

// Builders write a body (put it at kHeadOctets of a frame, then wire::build_control()) and return
// its octets. name: 1 … 64 octets.
[[nodiscard]] JobHead job_head(JobKind kind, std::string_view name, const Nonce& nonce,
                               bool by_hand, std::uint8_t flags = 0) noexcept;
[[nodiscard]] std::size_t put_join(std::byte* body, const JobHead& head, const JoinBody& join,
                                   std::span<const JoinClaim> claims,
                                   std::span<const std::byte> attributes = {}) noexcept;
/// attributes: of all entries, in their order.
[[nodiscard]] std::size_t put_roster(std::byte* body, const JobHead& head, const RosterBody& roster,
                                     std::span<const RosterEntry> entries,
                                     std::span<const std::byte> attributes = {}) noexcept;
[[nodiscard]] std::size_t put_roster_ack(std::byte* body, const JobHead& head,
                                         const RosterAckBody& ack,
                                         std::span<const std::byte> bitmap) noexcept;
[[nodiscard]] std::size_t put_reject(std::byte* body, const JobHead& head,
                                     const RejectBody& reject) noexcept;
[[nodiscard]] std::size_t put_bye(std::byte* body, const JobHead& head,
                                  const ByeBody& bye) noexcept;
[[nodiscard]] std::size_t put_commit(std::byte* body, const JobHead& head,
                                     const CommitBody& commit) noexcept;
[[nodiscard]] std::size_t put_node(std::byte* body, const NodeBody& node) noexcept;
/// node: of kind kLinks, whose token is the number. links: 1 … kNodeLinksMax.
[[nodiscard]] std::size_t put_links(std::byte* body, const NodeBody& node,
                                    std::span<const NodeAddress> links) noexcept;
/// node: of kind kLinksReply. number: of the last announcement; 0: none was made.
[[nodiscard]] std::size_t put_links_reply(std::byte* body, const NodeBody& node,
                                          std::uint64_t number,
                                          std::span<const NodeAddress> links) noexcept;

/// Claims in one JOIN with that number of attribute octets. JOIN is sent before the nodes know each
/// other's MTU, so it is no longer than kMtuMin.
[[nodiscard]] constexpr std::size_t join_claims_max(std::size_t attribute_octets) noexcept {
    const std::size_t fit = (kMtuMin - sizeof(Header) - sizeof(JobHead) - sizeof(JoinBody) -
                             sizeof(JobTag) - sizeof(Be32) - attribute_octets) /
                            sizeof(JoinClaim);
    return fit < kJoinClaimsMax ? fit : kJoinClaimsMax;
}
static_assert(join_claims_max(0) == 69 && join_claims_max(kAttributeOctetsMax) == 26);

/// Octets of entries and their attributes in one roster part at that MTU.
[[nodiscard]] constexpr std::size_t roster_part_octets(std::size_t mtu,
                                                       std::size_t job_attribute_octets) noexcept {
    return mtu - sizeof(Header) - sizeof(JobHead) - sizeof(RosterBody) - job_attribute_octets -
           sizeof(JobTag) - sizeof(Be32);  // Be32: a CRC
}
static_assert(roster_part_octets(1500, 0) / sizeof(RosterEntry) == 90);
static_assert(roster_part_octets(kMtuMin, kJobAttributeOctetsMax) >=
                  sizeof(RosterEntry) + kAttributeOctetsMax,
              "each node fits into a part");
/// Four addresses of 18 octets, a key's salt and what a node says of itself otherwise.
inline constexpr std::size_t kAttributeOctetsUsual = 128;
static_assert(roster_part_octets(1500, kJobAttributeOctetsMax) /
                      (sizeof(RosterEntry) + kAttributeOctetsUsual) * kRosterPartsMax >=
                  8192,
              "a job of as many nodes as an engine admits ranks (JobsConfig::ranks_max) fits");

}  // namespace ulc::wire
