// State of a rank as the roster has it.
#pragma once

#include "base/state/containers.h"
#include "urtp/types.h"

namespace ulc::urtp {

inline void fields(state::Archive& archive, Peer& peer) {
    archive.values(peer.mac, peer.handle, peer.incarnation);
}

}  // namespace ulc::urtp
