// SPDX-License-Identifier: BSD-3-Clause
// The C entries of ulc_near.h.
#include "client/endpoint.h"
#include "client/near/ulc_near.h"

namespace {

/// Returns why there is no Near: whatever else, peers cannot be named before ulc_near_prepare().
int why_none(const ulc_endpoint& ep) {
    const int error = ep.membership().may_communicate();
    return error != ULC_OK ? error : int{ULC_ERR_INVALID};
}

}  // namespace

extern "C" {

int ulc_near_prepare(ulc_endpoint* ep) {
    if (ep == nullptr) return ULC_ERR_INVALID;
    return ep->messages().prepare_near(ulc::client::kernel_memory());
}

int ulc_near_peer(ulc_endpoint* ep, uint16_t peer) {
    if (ep == nullptr) return ULC_ERR_INVALID;
    ulc::client::Near* near = ep->messages().near();
    return near == nullptr ? why_none(*ep) : near->name(peer);
}

int ulc_near_processes(ulc_endpoint* ep, uint16_t peer, ulc_near_process* self,
                       ulc_near_process* other) {
    if (ep == nullptr || self == nullptr || other == nullptr) return ULC_ERR_INVALID;
    ulc::abi::NearRows rows;
    ulc::client::Near* near = ep->messages().near();
    const int error = near == nullptr ? why_none(*ep) : near->processes(peer, rows);
    if (error != ULC_OK) return error;
    *self = {rows.self.start_ticks, rows.self.pid};
    *other = {rows.peer.start_ticks, rows.peer.pid};
    return ULC_OK;
}
}
