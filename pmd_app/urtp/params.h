// Every constant of the transport, as a named parameter. URTP's names in the comments.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace ulc::urtp {

struct Params {
    std::uint32_t window =
        256;  ///< packets a stream may have unacknowledged; power of two (WINDOW)
    std::uint32_t ack_every = 16;  ///< unicast packets per acknowledgement (AckWindow)
    Nanos ack_delay =
        200 * kMicrosecond;  ///< an acknowledgement waits at most this long for company
    Nanos reorder_wait = 0;  ///< a gap waits this long before the first REQ (REQDelay, in time)
    Nanos req_spread =
        10 * kMicrosecond;  ///< first REQ for a group packet: random delay below this
    Nanos repair_gather =
        10 * kMicrosecond;  ///< a group repair waits this long for further requests
    Nanos min_req_gap =
        50 *
        kMicrosecond;  ///< REQ for a packet sent less than this ago is ignored (MinReqGap, δ); at most srtt/2
    Nanos min_recv_wait =
        100 * kMicrosecond;  ///< first repetition of a REQ, at least srtt (MinRecvWait)
    Nanos max_recv_wait = 100 * kMillisecond;  ///< longest wait between REQs (MaxRecvWait)
    Nanos initial_rtt = 500 * kMicrosecond;
    Nanos min_probe_wait = 100 * kMicrosecond;
    Nanos max_probe_wait = 100 * kMillisecond;
    Nanos probe_slot =
        2 * kMicrosecond;  ///< a group's probe is answered within members × this, at random
    Nanos peer_dead = 2 * kSecond;  ///< unanswered probes for this long: the peer is dead
    std::uint32_t rx_pool_packets =
        1024;  ///< held packets of all sources of one endpoint, beyond one reserved each
    bool request_on_receive = true;  ///< arm a REQ for a pending receive that names one source
};

}  // namespace ulc::urtp
