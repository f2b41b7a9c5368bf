// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include "verbs/join/membership.h"

namespace ulc::verbs {

std::string advice_for_join(int error, bool infiniband) {
    if (!infiniband)
        return "; see that its network interface is up and has multicast: sudo ip link set "
               "INTERFACE multicast on   ('rdma link' shows which)";
    switch (error) {
        case ETIMEDOUT:
        case EAGAIN:
            return "; the subnet manager does not answer: see that one runs, on a switch or by: "
                   "sudo systemctl start opensm   ('sminfo' asks it)";
        case EADDRNOTAVAIL:
        case ENODEV:
            return "; the port's IPoIB interface is not up: sudo ip link set INTERFACE up   "
                   "('ip link' shows which)";
        case EINVAL:
        case EACCES:
        case EPERM:
            return "; the subnet manager refused: its log says why, as a partition or an MTU that "
                   "does not fit";
        default:
            return "; 'ibstat' shows the state of the port";
    }
}

}  // namespace ulc::verbs
