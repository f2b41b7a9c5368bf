// SPDX-License-Identifier: BSD-3-Clause
// The parts of librdmacm that hold memberships of multicast groups, as a table. Opened at run time,
// and only for a port that needs it (membership.h), so a test can script it.
#pragma once

#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace ulc::verbs {

/// Functions as of rdma_*(3). Those that fail return −1 and set errno.
struct CmLibrary {
    rdma_event_channel* (*create_event_channel)() = nullptr;
    void (*destroy_event_channel)(rdma_event_channel* channel) = nullptr;
    int (*create_id)(rdma_event_channel* channel, rdma_cm_id** out, void* user,
                     rdma_port_space space) = nullptr;
    int (*destroy_id)(rdma_cm_id* id) = nullptr;
    int (*bind_addr)(rdma_cm_id* id, sockaddr* address) = nullptr;
    int (*join_multicast)(rdma_cm_id* id, sockaddr* group, void* user) = nullptr;
    int (*leave_multicast)(rdma_cm_id* id, sockaddr* group) = nullptr;
    int (*get_cm_event)(rdma_event_channel* channel, rdma_cm_event** out) = nullptr;
    int (*ack_cm_event)(rdma_cm_event* event) = nullptr;
    // --- not of librdmacm
    /// Makes get_cm_event() fail with EAGAIN where it would wait. 0, or the error.
    int (*never_wait)(rdma_event_channel* channel) = nullptr;
    /// Waits until there is an event, but not longer than this.
    void (*wait)(rdma_event_channel* channel, int milliseconds) = nullptr;
    /// Returns the IP addresses of this machine, but for those of the loopback interface.
    std::vector<sockaddr_storage> (*addresses)() = nullptr;
};

/// Opens librdmacm and fills the table; the library stays open. Errors: kUnsupported, and `why`
/// names the package to install.
Err load(CmLibrary& out, std::string& why, const char* file = "librdmacm.so.1");

}  // namespace ulc::verbs
