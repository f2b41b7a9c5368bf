// SPDX-License-Identifier: BSD-3-Clause
// Bodies of LINK frames (docs/PROTOCOL.md §13): two endpoints of no common job become peers.
// Version 0, as JOB and NODE: engines of different versions must be able to tell each other so.
//
//   LinkBody, then by kind
//     REQUEST     LinkProfile, attributes of the node, JobTag
//                                           caller to the endpoint of an address
//     ACCEPT      attributes, JobTag        the answer; repeated when the REQUEST is
//     CONFIRM                               "I hold this link": ends the handshake, or asks later
//     REFUSE                                says why there is no link
//     UNLINK                                its sender leaves, or died
//     UNLINKED                              there is no such link here
//     WHERE       JobTag                    to all: where is the endpoint of that name?
//     HERE        JobTag                    the answer: it is mine
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/endian.h"
#include "base/error.h"
#include "wire/ids.h"
#include "wire/job.h"
#include "wire/job_key.h"

namespace ulc::wire {

enum class LinkKind : std::uint8_t {
    kRequest = 1,
    kAccept = 2,
    kConfirm = 3,
    kRefuse = 4,
    kUnlink = 5,
    kUnlinked = 6,
    kWhere = 7,
    kHere = 8,
};

/// Names a link at one of its ends: 64 random bits. 0: none.
using LinkId = std::uint64_t;

/// The secret in an endpoint's address.
using LinkKey = Nonce;

struct LinkBody {
    LinkKind kind;
    std::uint8_t reason;   ///< REFUSE: an Err; UNLINK: a LeaveReason; else 0
    std::uint8_t version;  ///< version of the protocol that the sender speaks
    std::uint8_t reserved;
    Be32 incarnation;  ///< incarnation of the sender's engine
    Be64 ours;    ///< the sender's name of the link, or WHERE's id; 0 in REFUSE, UNLINKED and HERE
    Be64 theirs;  ///< the receiver's; 0 in REQUEST, and in an UNLINKED that is a hint; WHERE:
                  ///< lookup_of() the key
    Be32 from;    ///< endpoint of the sender
    Be32 to;      ///< endpoint of the receiver; 0 in a hint and in WHERE
    Be16 slot;    ///< REQUEST, ACCEPT: the sender's for the receiver; hint: that a frame named
    Be16 attribute_octets;  ///< REQUEST, ACCEPT: 0 … kAttributeOctetsMax
    Be32 first_seq;  ///< REQUEST, ACCEPT: first number of what the receiver sends to the sender
};
static_assert(sizeof(LinkBody) == 40 && alignof(LinkBody) == 1);

using LinkProfile = std::array<char, kProfileOctets>;
inline constexpr std::size_t kLinkOctetsMax =
    sizeof(LinkBody) + sizeof(LinkProfile) + kAttributeOctetsMax + sizeof(JobTag);

/// A LINK body that passed every check of its kind, in host order.
struct LinkView {
    LinkKind kind{};
    std::uint8_t version = 0;
    Err refused = Err::kOk;  ///< kRefuse
    LeaveReason left{};      ///< kUnlink
    std::uint32_t incarnation = 0;
    LinkId ours = 0;
    LinkId theirs = 0;
    Handle from = 0;
    Handle to = 0;
    Rank slot = 0;
    Seq first_seq;
    std::string_view profile;           ///< kRequest
    NodeAttributes attributes;          ///< kRequest, kAccept: of the sender's node
    std::span<const std::byte> tagged;  ///< the octets that the tag covers
    const JobTag* tag = nullptr;        ///< kRequest, kAccept, kWhere, kHere
};

/// False: malformed (count drop_link). Checks ranges and lengths, never state.
[[nodiscard]] bool parse_link(const std::byte* body, std::size_t octets, LinkView& out) noexcept;

/// Writes a body at `body`, which has kLinkOctetsMax; returns its octets. profile: of a REQUEST.
/// key: of the endpoint that REQUEST and WHERE are for, and that ACCEPT and HERE come from.
/// attributes: of REQUEST and ACCEPT; link.attribute_octets is set by them.
[[nodiscard]] std::size_t put_link(std::byte* body, LinkBody link, std::string_view profile,
                                   const LinkKey& key, const Mac& source,
                                   std::span<const std::byte> attributes = {}) noexcept;

/// True if the tag of a body from `source` was made with that endpoint's key.
[[nodiscard]] bool proves_key(const LinkView& view, const Mac& source, const LinkKey& key) noexcept;

// ---------------------------------------------------------------- addresses

/// Names an endpoint that is open for links, and proves that its owner gave the address away.
/// These octets are a ulc_link_address.
struct LinkAddress {
    std::uint8_t version = kProtocolVersion;
    std::uint8_t reserved = 0;
    Mac mac;
    Be32 handle;
    Be32 incarnation;
    LinkKey key;
};
static_assert(sizeof(LinkAddress) == 32 && alignof(LinkAddress) == 1);

/// Names an endpoint wherever it is: who knows name and secret finds it, and may link to it. These
/// octets are a ulc_link_address too; octet 1 tells the two apart.
struct LinkName {
    static constexpr std::uint8_t kMark = 1;
    std::uint8_t version = kProtocolVersion;
    std::uint8_t mark = kMark;
    std::array<std::uint8_t, 14> name{};
    LinkKey secret;
};
static_assert(sizeof(LinkName) == sizeof(LinkAddress) && alignof(LinkName) == 1);
static_assert(offsetof(LinkName, mark) == offsetof(LinkAddress, reserved));

/// True if the octets of an address are a name.
[[nodiscard]] inline bool is_name(const LinkAddress& address) noexcept {
    return address.reserved == LinkName::kMark;
}

/// kOk, kVersion (of another protocol version), or kInvalid.
[[nodiscard]] Err judge_address(const LinkAddress& address) noexcept;
[[nodiscard]] Err judge_name(const LinkName& name) noexcept;

/// The key of the endpoint that is open under that name.
[[nodiscard]] LinkKey key_of(const LinkName& name) noexcept;
/// Says in WHERE which endpoint is meant, without saying its key. Not 0.
[[nodiscard]] LinkId lookup_of(const LinkKey& key) noexcept;

}  // namespace ulc::wire
