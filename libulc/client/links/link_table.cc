// SPDX-License-Identifier: BSD-3-Clause
#include "client/links/link_table.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ulc::client {

static_assert(sizeof(ulc_link_address) == sizeof(abi::LinkCall::address));

LinkTable::LinkTable(Submitter& submitter, std::uint16_t links, const unsigned char* address)
    : submitter_(submitter), places_(links, Place::kVacant), ending_(links, nullptr) {
    std::memcpy(address_.bytes, address, sizeof address_.bytes);
}

int LinkTable::link(const ulc_link_address& peer, Nanos timeout, ulc_request* request) {
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
    if (peer >= places_.size() || places_[peer] != Place::kThere) return ULC_ERR_INVALID;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kUnlink);
    if (record == nullptr) return ULC_ERR_AGAIN;
    record->stream = peer;
    submitter_.publish();
    places_[peer] = Place::kEnding;
    if (request == nullptr) return ULC_OK;
    ending_[peer] = &Request::begin(request, RequestState::kForming);
    ending_[peer]->source = peer;
    return ULC_OK;
}

bool LinkTable::next_peer(std::uint16_t& peer) noexcept {
    while (!incoming_.empty()) {
        peer = incoming_.front();
        incoming_.pop_front();
        if (places_[peer] == Place::kThere) return true;
    }
    return false;
}

bool LinkTable::on_linked(std::uint16_t peer, bool incoming) {
    if (peer >= places_.size() || places_[peer] != Place::kVacant) return false;
    places_[peer] = Place::kThere;
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
    return true;
}

void LinkTable::fail_all(int error) noexcept {
    for (Request*& request : calls_)
        if (request != nullptr) std::exchange(request, nullptr)->done(error);
    for (Request*& request : ending_)
        if (request != nullptr) std::exchange(request, nullptr)->done(error);
}

}  // namespace ulc::client
