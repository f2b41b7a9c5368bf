// What PCODE keeps of one group at one member, beside the streams' own numbers (which are its personal counters: pcv[q] is
// one less than `next` of the stream from q). Made with the group; which file holds which verb:
//
//   multicast.cc   may a message be sent, and the counter it carries        (PCODE fig. 4, §5.1, §5.2)
//   handle.cc      a message arrived                                        (fig. 3, §5.1, §5.4)
//   status.cc      STATUS and PROGRESS, sent and taken                      (§4, §5.2, §5.5)
//   nack.cc        the three kinds of NACK, sent and taken; timers          (fig. 5, §5.3, §5.7)
//   tables.cc      the words p0, p1 and pcode
#pragma once

#include <cstdint>

#include "base/units.h"
#include "urtp/profiles/pcode/global_counter.h"
#include "urtp/profiles/pcode/nack_timer.h"
#include "urtp/timers.h"

namespace ulc::urtp::pcode {

/// Unanswered NACKs for a gap in the global counters after which it is skipped: its message's sender is gone.
inline constexpr std::uint32_t kGlobalNacksMax = 8;

struct GroupState {
    GroupState(std::uint32_t members, std::uint32_t own, std::uint32_t range)
        : global(members, own, range) {}

    GlobalCounter global;
    NackTimer gap;             ///< in the global counters
    Nanos status_at = kNever;  ///< an answer to a member that wants one, spread
    Nanos progress_at =
        kNever;  ///< asks the others for theirs, while the flow window holds us back
    std::uint16_t status_from = 0;  ///< member from which the STATUS under way goes on
    bool status_due = false;
    bool status_wanted = false;  ///< the one due asks the others for theirs
    bool nack_due = false;       ///< for the gap
    Timer timer;
};

}  // namespace ulc::urtp::pcode
