// SPDX-License-Identifier: BSD-3-Clause
// The entries of ulc_near.h, what an endpoint asks its engine about its peers, and what it says to
// them about their rings.
#include <cstring>
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
    if (peer == rank_ || peer_errors_[peer] != 0) return ULC_OK;
    near_->name(peer);
    ask_near();
    return ULC_OK;
}

int Endpoint::near_processes(std::uint16_t peer, abi::NearRows& out) noexcept {
    if (const int error = near_peer(peer); error != ULC_OK) return error;
    bool asked = false;
    const abi::NearRows* rows = near_->rows_of(peer, asked);
    if (rows == nullptr) return asked ? ULC_ERR_AGAIN : ULC_ERR_UNSUPPORTED;
    out = *rows;
    return ULC_OK;
}

void Endpoint::ask_near() noexcept {
    near_->each_question([this](std::uint16_t peer) {
        abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kNear);
        if (record == nullptr) return false;
        record->stream = peer;
        submitter_.publish();
        return true;
    });
}

bool Endpoint::on_near_record(const abi::CompletionRecord& record) noexcept {
    if (near_ == nullptr || record.source >= size_) return false;
    abi::NearRows rows;
    const bool near = record.status == 0;
    if (near && record.inline_length != sizeof rows) return false;
    std::memcpy(&rows, record.body.inline_octets, sizeof rows);
    near_->on_rows(record.source, near ? &rows : nullptr);
    return true;
}

void Endpoint::answer_near() noexcept {
    if (state_ != State::kFormed) return;
    ask_near();
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

int ulc_near_processes(ulc_endpoint* ep, uint16_t peer, ulc_near_process* self,
                       ulc_near_process* other) {
    if (ep == nullptr || self == nullptr || other == nullptr) return ULC_ERR_INVALID;
    ulc::abi::NearRows rows;
    if (const int error = ep->near_processes(peer, rows); error != ULC_OK) return error;
    *self = {rows.self.start_ticks, rows.self.pid};
    *other = {rows.peer.start_ticks, rows.peer.pid};
    return ULC_OK;
}
}
