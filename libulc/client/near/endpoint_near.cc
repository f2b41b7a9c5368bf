// SPDX-License-Identifier: BSD-3-Clause
// The entries of ulc_near.h, and what an endpoint says to its peers about their rings.
#include <new>

#include "client/endpoint.h"
#include "client/near/ulc_near.h"

namespace ulc::client {

int Endpoint::near_prepare(const NearMemory& memory) {
    if (ended_ != 0) return ended_;
    if (state_ != State::kIdle || near_ != nullptr) return ULC_ERR_INVALID;
    // Such an engine puts messages into receives, past the order that is kept here.
    if (region_.reaches_process()) return ULC_ERR_UNSUPPORTED;
    near_.reset(new (std::nothrow) Near(inbox_, memory));
    offloads_collectives_ = false;  // neither side counts what an engine sends for itself
    return near_ != nullptr ? ULC_OK : ULC_ERR_NO_MEMORY;
}

int Endpoint::near_peer(std::uint16_t peer) noexcept {
    if (const int error = may_communicate(); error != ULC_OK) return error;
    if (near_ == nullptr || peer >= size_ || peer_errors_[peer] == ULC_ERR_INVALID)
        return ULC_ERR_INVALID;
    if (peer != rank_ && peer_errors_[peer] == 0) near_->name(peer);
    return ULC_OK;
}

void Endpoint::answer_near() noexcept {
    if (state_ != State::kFormed) return;
    near_->each_offer([this](std::uint16_t peer, const NearOffer& offer) {
        return say(peer, kTagNear, &offer, sizeof offer);
    });
}

}  // namespace ulc::client

extern "C" {

int ulc_near_prepare(ulc_endpoint* ep) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->near_prepare(ulc::client::kernel_memory());
}

int ulc_near_peer(ulc_endpoint* ep, uint16_t peer) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->near_peer(peer);
}
}
