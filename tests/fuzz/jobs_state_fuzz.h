// SPDX-License-Identifier: BSD-3-Clause
// The script language of jobs_state_fuzz: a sequence of operations on one engine's Jobs, so that
// the fuzzer mutates the frames of other engines and their times. Each operation is one byte (value
// modulo kOps) and its arguments.
#pragma once

#include <cstdint>

#include "wire/ids.h"
#include "wire/link.h"

namespace ulc::fuzz {

enum class Op : std::uint8_t {
    kJob,      ///< u8 sender, u16 length (little-endian), that number of bytes: body of a JOB frame
    kNode,     ///< the same for a NODE frame
    kAdvance,  ///< u8 n: time advances by 2^(n % 36) ns
    kJoin,     ///< u8 rank, u8 size, u8 nonce: local endpoint kEndpoint + rank joins job "j"
    kLeave,    ///< u8 rank, u8 reason
    kUnknown,  ///< u8 sender, u8 handle: a frame came for an unknown handle
    /// U8 nonce, then as kJob: the job's id is written into the body, and its tag behind it
    kTagged,
    /// Takes the arguments of kJob, for a LINK frame. A tag in it is corrected, and an id below 16
    /// in HERE becomes that of the last WHERE.
    kLink,
    kCall,     ///< u8 sender, u8 handle: kLinkEndpoint calls that endpoint there
    kUnlink,   ///< u8 slot of kLinkEndpoint
    kExclude,  ///< u8 rank here, u8 rank: it held up a group of that one
    kFind,     ///< u8 n: kLinkEndpoint looks for kLinkName, for 2^(n % 36) ns
};
inline constexpr unsigned kOps = 12;

inline constexpr Mac kOwnMac{{2, 0, 0, 0, 0, 0}};
inline constexpr Mac sender_mac(std::uint8_t sender) { return Mac{{2, 0, 0, 0, 1, sender}}; }
inline constexpr std::uint32_t kOwnIncarnation = 1000;
inline constexpr Handle kEndpoint = 100;
inline constexpr Handle kLinkEndpoint = 1000;  ///< open for links
/// Its key, and that of each endpoint that it calls.
inline constexpr wire::LinkKey kLinkKey{{9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6}};

/// The name that kLinkEndpoint looks for. It is published under its key itself.
inline constexpr wire::LinkName kLinkName{.name = {'n'}, .secret = kLinkKey};

}  // namespace ulc::fuzz
