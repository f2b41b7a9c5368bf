// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/library.h"

#include "verbs/finder.h"

namespace ulc::verbs {
namespace {

constexpr LibraryNeed kNeed = {.by = "verbs devices need",
                               .packages = "libibverbs1 ibverbs-providers",
                               .a_package = "libibverbs1 of rdma-core 15 or later"};

}  // namespace

Err load(Library& out, std::string& why, const char* file) {
    Finder finder(file);
    finder.find(out.get_device_list, "ibv_get_device_list");
    finder.find(out.free_device_list, "ibv_free_device_list");
    finder.find(out.get_device_name, "ibv_get_device_name");
    finder.find(out.open_device, "ibv_open_device");
    finder.find(out.close_device, "ibv_close_device");
    finder.find(out.query_device, "ibv_query_device");
    finder.find(out.query_port, "ibv_query_port");
    finder.find(out.query_gid, "ibv_query_gid");
    finder.find_if_there(out.query_gid_ex, "_ibv_query_gid_ex");
    finder.find(out.query_pkey, "ibv_query_pkey");
    finder.find(out.alloc_pd, "ibv_alloc_pd");
    finder.find(out.dealloc_pd, "ibv_dealloc_pd");
    finder.find(out.reg_mr, "ibv_reg_mr");
    finder.find(out.dereg_mr, "ibv_dereg_mr");
    finder.find(out.create_cq, "ibv_create_cq");
    finder.find(out.destroy_cq, "ibv_destroy_cq");
    finder.find(out.create_qp, "ibv_create_qp");
    finder.find(out.modify_qp, "ibv_modify_qp");
    finder.find(out.destroy_qp, "ibv_destroy_qp");
    finder.find(out.create_ah, "ibv_create_ah");
    finder.find(out.destroy_ah, "ibv_destroy_ah");
    finder.find(out.attach_mcast, "ibv_attach_mcast");
    finder.find(out.detach_mcast, "ibv_detach_mcast");
    finder.find(out.get_async_event, "ibv_get_async_event");
    finder.find(out.ack_async_event, "ibv_ack_async_event");
    if (const Err e = finder.result(kNeed, why); e != Err::kOk) return e;
    out.join_ip_group = join_ip_group;
    out.post_send = [](ibv_qp* qp, ibv_send_wr* chain, ibv_send_wr** bad) {
        return ibv_post_send(qp, chain, bad);
    };
    out.post_recv = [](ibv_qp* qp, ibv_recv_wr* chain, ibv_recv_wr** bad) {
        return ibv_post_recv(qp, chain, bad);
    };
    out.poll_cq = [](ibv_cq* cq, int entries, ibv_wc* wcs) {
        return ibv_poll_cq(cq, entries, wcs);
    };
    // Registered memory stays the parent's in a child of fork(). Kernels from 5.12 on see to it
    // alone; where neither can, only programs that fork are at risk.
    int (*fork_init)() = nullptr;
    finder.find_if_there(fork_init, "ibv_fork_init");
    if (fork_init != nullptr) static_cast<void>(fork_init());
    return Err::kOk;
}

}  // namespace ulc::verbs
