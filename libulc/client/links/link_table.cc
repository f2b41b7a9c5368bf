// SPDX-License-Identifier: BSD-3-Clause
#include "client/links/link_table.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"

namespace ulc::client {

static_assert(sizeof(ulc_link_address) == sizeof(abi::LinkCall::address));

void LinkTable::open(const unsigned char* address) {
    places_.assign(membership_.size(), Place::kVacant);
    ending_.assign(membership_.size(), nullptr);
    std::memcpy(address_.bytes, address, sizeof address_.bytes);
}

int LinkTable::may_link() const noexcept {
    if (membership_.ended() != 0) return membership_.ended();
    if (places_.empty()) return ULC_ERR_NOT_FORMED;
    return membership_.is_leaving() ? ULC_ERR_CLOSED : ULC_OK;
}

int LinkTable::address(ulc_link_address& out) const noexcept {
    if (places_.empty()) {
        const int state = membership_.job_state();
        return state == ULC_OK ? int{ULC_ERR_INVALID} : state;
    }
    out = address_;
    return ULC_OK;
}

int LinkTable::link(const ulc_link_address& peer, Nanos timeout, ulc_request* request) {
    if (const int error = may_link(); error != ULC_OK) return error;
    auto at = std::ranges::find(calls_, nullptr);
    if (at == calls_.end()) {
        try {
            calls_.push_back(nullptr);
        } catch (const std::bad_alloc&) {
            return ULC_ERR_NO_MEMORY;
        }
        at = calls_.end() - 1;
    }
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kLink);
    if (record == nullptr) return ULC_ERR_AGAIN;
    abi::LinkCall call{};
    std::memcpy(call.address, peer.bytes, sizeof call.address);
    call.timeout_ns = timeout > 0 && timeout != kNever ? static_cast<std::uint64_t>(timeout) : 0;
    std::memcpy(record->body.inline_octets, &call, sizeof call);
    record->flags = abi::kSubmitInline;
    record->inline_length = sizeof call;
    record->cookie = static_cast<std::uint32_t>(at - calls_.begin());
    submitter_.publish();
    *at = &Request::begin(request, RequestState::kForming);
    (*at)->source = ULC_RANK_ANY;
    return ULC_OK;
}

int LinkTable::unlink(std::uint16_t peer, ulc_request* request) {
    if (const int error = may_link(); error != ULC_OK) return error;
    if (!membership_.knows(peer)) return ULC_ERR_INVALID;
    if (!messages_.outbox().all_submitted_to(peer)) return ULC_ERR_AGAIN;
    if (!submitter_.submit(abi::SubmitKind::kUnlink, peer)) return ULC_ERR_AGAIN;
    places_[peer] = Place::kEnding;
    if (request != nullptr) {
        ending_[peer] = &Request::begin(request, RequestState::kForming);
        ending_[peer]->source = peer;
    }
    // No send or receive names it any more, and none that waits could end.
    membership_.set_peer_error(peer, ULC_ERR_INVALID);
    static_cast<void>(messages_.outbox().peer_gone(peer, ULC_ERR_CLOSED));
    messages_.inbox().peer_gone(peer, ULC_ERR_CLOSED);
    return ULC_OK;
}

int LinkTable::next_peer(std::uint16_t& peer) noexcept {
    if (const int error = may_link(); error != ULC_OK) return error;
    while (!incoming_.empty()) {
        peer = incoming_.front();
        incoming_.pop_front();
        if (places_[peer] == Place::kThere) return ULC_OK;
    }
    return ULC_ERR_AGAIN;
}

bool LinkTable::on_record(const abi::CompletionRecord& record) {
    switch (record.kind) {
        case abi::CompletionKind::kLinked:
            return on_linked(record.source, record.stream != 0);
        case abi::CompletionKind::kLinkDone:
            return on_link_done(static_cast<std::uint32_t>(record.tag), record.source,
                                record.status);
        case abi::CompletionKind::kUnlinked:
            return on_unlinked(record.source);
        default:
            return false;
    }
}

bool LinkTable::on_linked(std::uint16_t peer, bool incoming) {
    if (peer >= places_.size() || places_[peer] != Place::kVacant) return false;
    places_[peer] = Place::kThere;
    membership_.set_peer_error(peer, 0);
    if (incoming) incoming_.push_back(peer);
    return true;
}

bool LinkTable::on_link_done(std::uint32_t cookie, std::uint16_t peer, int status) {
    if (cookie >= calls_.size() || calls_[cookie] == nullptr) return false;
    if (status == 0 && (peer >= places_.size() || places_[peer] == Place::kVacant)) return false;
    Request* request = std::exchange(calls_[cookie], nullptr);
    if (status == 0) request->source = peer;
    request->done(status);
    return true;
}

bool LinkTable::on_unlinked(std::uint16_t peer) {
    if (peer >= places_.size() || places_[peer] != Place::kEnding) return false;
    places_[peer] = Place::kVacant;
    std::erase(incoming_, peer);
    if (Request* request = std::exchange(ending_[peer], nullptr); request != nullptr)
        request->done(ULC_OK);
    messages_.forget(peer);
    return true;
}

void LinkTable::fail_all(int error) noexcept {
    for (Request*& request : calls_)
        if (request != nullptr) std::exchange(request, nullptr)->done(error);
    for (Request*& request : ending_)
        if (request != nullptr) std::exchange(request, nullptr)->done(error);
}

void LinkTable::check_invariants() const {
    ULC_CHECK(ending_.size() == places_.size());
    const auto peers = static_cast<std::uint16_t>(places_.size());
    for (std::uint16_t peer = 0; peer < peers; ++peer) {
        ULC_CHECK(membership_.knows(peer) == (places_[peer] == Place::kThere));
        ULC_CHECK(ending_[peer] == nullptr || places_[peer] == Place::kEnding);
    }
}

}  // namespace ulc::client
