// SPDX-License-Identifier: BSD-3-Clause
// libibverbs as a table of functions. The port calls nothing else of it, so a test can script it.
//
// load() opens the library at run time: an engine on other wires starts where it is missing. The
// alternative, a plug-in of ours that links it, would need a second file to install and to find.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"
#include "verbs/address.h"

namespace ulc::verbs {

/// Returns the number in an enumeration that a device filled in, which may be none of its names.
template <typename Enumeration>
[[nodiscard]] std::uint32_t number_of(const Enumeration& told) noexcept {
    std::uint32_t number = 0;
    static_assert(sizeof number == sizeof told);
    std::memcpy(&number, &told, sizeof number);
    return number;
}

/// Functions as of ibv_*(3); those of the hot path are inline there, and end in the provider.
struct Library {
    ibv_device** (*get_device_list)(int* count) = nullptr;
    void (*free_device_list)(ibv_device** list) = nullptr;
    const char* (*get_device_name)(ibv_device* device) = nullptr;
    ibv_context* (*open_device)(ibv_device* device) = nullptr;
    int (*close_device)(ibv_context* context) = nullptr;
    int (*query_device)(ibv_context* context, ibv_device_attr* out) = nullptr;
    int (*query_port)(ibv_context* context, std::uint8_t port, ibv_port_attr* out) = nullptr;
    int (*query_gid)(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) = nullptr;
    /// Symbol version 1.11; nullptr: GIDs are of an unknown type.
    int (*query_gid_ex)(ibv_context* context, std::uint32_t port, std::uint32_t index,
                        ibv_gid_entry* out, std::uint32_t flags, std::size_t octets) = nullptr;
    int (*query_pkey)(ibv_context* context, std::uint8_t port, int index, __be16* out) = nullptr;
    ibv_pd* (*alloc_pd)(ibv_context* context) = nullptr;
    int (*dealloc_pd)(ibv_pd* pd) = nullptr;
    ibv_mr* (*reg_mr)(ibv_pd* pd, void* memory, std::size_t octets, int access) = nullptr;
    int (*dereg_mr)(ibv_mr* mr) = nullptr;
    ibv_cq* (*create_cq)(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                         int vector) = nullptr;
    int (*destroy_cq)(ibv_cq* cq) = nullptr;
    ibv_qp* (*create_qp)(ibv_pd* pd, ibv_qp_init_attr* attributes) = nullptr;
    int (*modify_qp)(ibv_qp* qp, ibv_qp_attr* attributes, int mask) = nullptr;
    int (*destroy_qp)(ibv_qp* qp) = nullptr;
    ibv_ah* (*create_ah)(ibv_pd* pd, ibv_ah_attr* attributes) = nullptr;
    int (*destroy_ah)(ibv_ah* ah) = nullptr;
    int (*attach_mcast)(ibv_qp* qp, const ibv_gid* group, std::uint16_t lid) = nullptr;
    int (*detach_mcast)(ibv_qp* qp, const ibv_gid* group, std::uint16_t lid) = nullptr;
    int (*get_async_event)(ibv_context* context, ibv_async_event* out) = nullptr;
    void (*ack_async_event)(ibv_async_event* event) = nullptr;
    /// Not of libibverbs: the kernel's membership of a group, by a socket that close() ends.
    int (*join_ip_group)(const Gid& group, bool v4, const Gid& own,
                         std::uint32_t interface) = nullptr;
    // --- the hot path
    int (*post_send)(ibv_qp* qp, ibv_send_wr* chain, ibv_send_wr** bad) = nullptr;
    int (*post_recv)(ibv_qp* qp, ibv_recv_wr* chain, ibv_recv_wr** bad) = nullptr;
    int (*poll_cq)(ibv_cq* cq, int entries, ibv_wc* out) = nullptr;
};

/// Joins by IGMP or MLD. Returns a socket for each group: the kernel limits the memberships of a
/// socket, by default to 20. -1: failed, errno says why.
[[nodiscard]] int join_ip_group(const Gid& group, bool v4, const Gid& own, std::uint32_t interface);

/// Opens libibverbs and fills the table; the library stays open. Errors: kUnsupported, and `why`
/// names the package to install.
Err load(Library& out, std::string& why, const char* file = "libibverbs.so.1");

}  // namespace ulc::verbs
