// SPDX-License-Identifier: BSD-3-Clause
// An endpoint that is open for links keeps here, next to its transport, the calls of its client and
// the slots on their way out. The handshake is jobs/links.h, and the reports to the client are in
// endpoint/reports.h. The slot of a peer takes the place of its rank.
//
//   client   kOpenLinks ─▶ kLinksOpen     kLink ─▶ [kLinked] kLinkDone     kUnlink ─▶ kUnlinked
//   wire     a peer has linked ─▶ kLinked      it is gone ─▶ kPeerLeft | kPeerDied
//
// After kUnlinked the slot is vacant. A slot whose peer is gone stays the client's until kUnlink,
// which is behind all that it sent to that peer. So no message for one peer goes to the next one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "wire/ids.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

struct EndpointLinks {
    struct Call {
        std::uint32_t cookie = 0;
        Rank slot = 0;
        void fields(state::Archive& archive);
    };
    enum class Slot : std::uint8_t {
        kVacant,
        kOpened,    ///< the transport has the peer, the client does not know it
        kTold,      ///< the client knows it
        kEnding,    ///< the client's kUnlink has come: what was sent is to be acknowledged
        kLeaving,   ///< the peer is to answer UNLINK
        kVacating,  ///< over: the transport lets go of what it has
    };
    struct Ending {
        Rank slot = 0;
        Nanos until = 0;
        void fields(state::Archive& archive);
    };

    std::vector<Slot> slots;
    std::vector<bool> was_told;  ///< the client knows the slot, and gets kUnlinked
    std::vector<Call> calls;
    std::vector<Rank> unconfirmed;  ///< kOpened
    std::vector<Ending> endings;
    std::vector<Rank> vacating;
    void fields(state::Archive& archive);
};

}  // namespace ulc::engine
