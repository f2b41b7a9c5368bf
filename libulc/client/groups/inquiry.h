// SPDX-License-Identifier: BSD-3-Clause
// A member that has waited long for a collective operation asks the members for which it waits for
// their arguments. If members disagree in an argument that makes one wait for another (the root,
// the operation, the algorithm), it is possible that no member has sent a message whose tag would
// show it.
//
//   waiting for longer than the patience,
//   then twice as long, …                     Inquiry{group, number, own arguments} ─▶ each member
//                                             awaited
//   hears one about an operation that began
//   here, with other arguments                the operation fails here, if it runs;
//                                             Inquiry{answer} ─▶
//   hears one about an operation that did
//   not begin here                            nothing: it is late, and no error
//
// Some member that waits for another one disagrees with it: otherwise all had the same schedule, in
// which no circle waits. So it suffices to ask the members for which one waits. 24 bytes,
// big-endian, by unicast with a separate tag of libulc.
#pragma once

#include <cstdint>
#include <span>

#include "base/endian.h"
#include "client/groups/groups.h"
#include "client/groups/operations.h"
#include "client/p2p/outbox.h"

namespace ulc::client {

struct Inquiry {
    Be32 group;
    Be32 number;  ///< number of the group's operation
    Be32 signature;
    Be32 arguments;
    Be32 algorithm;
    Be32 answer;  ///< 1: to an inquiry, and not answered
};
static_assert(sizeof(Inquiry) == 24);

/// Returns false if there is no space yet.
[[nodiscard]] bool ask(Outbox& outbox, std::uint16_t rank, std::uint32_t group,
                       std::uint32_t number, const Agreement& mine) noexcept;

/// Handles an inquiry of `source`. Returns false if it is malformed.
[[nodiscard]] bool hear_inquiry(Groups& groups, Outbox& outbox, std::uint16_t source,
                                std::span<const unsigned char> octets) noexcept;

}  // namespace ulc::client
