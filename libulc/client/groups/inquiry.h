// Who has waited long for a collective operation asks the members that it waits for what they gave to it. Where members disagree in what
// makes one wait for another (the root, the operation, the algorithm), nobody may have sent anything whose tag would tell.
//
//   waiting for longer than the patience, then twice as long, …   Inquiry{group, number, what I gave} ─▶ each member awaited
//   hears one about an operation that began here, with other arguments    the operation fails here, if it runs; Inquiry{answer} ─▶
//   hears one about an operation that did not begin here                  nothing: it is late, and no error
//
// Some member that waits for another one disagrees with it: else all had the same schedule, in which no circle waits. So it is enough
// to ask whom one waits for. 24 octets, big-endian, by unicast with a tag of libulc's own.
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
    Be32 number;  ///< of the group's operation
    Be32 signature;
    Be32 arguments;
    Be32 algorithm;
    Be32 answer;  ///< 1: to an inquiry, and not answered
};
static_assert(sizeof(Inquiry) == 24);

/// False: no room now.
[[nodiscard]] bool ask(Outbox& outbox, std::uint16_t rank, std::uint32_t group,
                       std::uint32_t number, const Agreement& mine) noexcept;

/// An inquiry of `source`. False: malformed.
[[nodiscard]] bool hear_inquiry(Groups& groups, Outbox& outbox, std::uint16_t source,
                                std::span<const unsigned char> octets) noexcept;

}  // namespace ulc::client
