// SPDX-License-Identifier: BSD-3-Clause
// The entries for links: who may call, and what becomes of a peer's messages; the table is links.h.
#include <algorithm>
#include <cstring>
#include <new>

#include "client/endpoint.h"

namespace ulc::client {

int Endpoint::open_links(std::uint16_t links, const unsigned char* key) {
    abi::OpenLinksRequest request{};
    std::memcpy(request.key, key, sizeof request.key);
    const int error = open_links(links, request);
    if (error == ULC_OK) recall_.name = {};
    return error;
}

int Endpoint::open_links_as(std::uint16_t links, const ulc_link_address& name) {
    abi::NamedAddress named;
    static_assert(sizeof named == sizeof name.bytes);
    std::memcpy(&named, name.bytes, sizeof named);
    const unsigned char none[sizeof named.name] = {};
    if (named.mark != named.kMark || std::memcmp(named.name, none, sizeof none) == 0)
        return ULC_ERR_INVALID;
    abi::OpenLinksRequest request{};
    std::memcpy(request.key, named.secret, sizeof request.key);
    std::memcpy(request.name, named.name, sizeof request.name);
    const int error = open_links(links, request);
    if (error == ULC_OK) recall_.name = name;
    return error;
}

int Endpoint::open_links(std::uint16_t links, abi::OpenLinksRequest& request) {
    if (ended_ != 0) return ended_;
    if (state_ != State::kIdle && state_ != State::kFailed) return ULC_ERR_INVALID;
    if (links == 0 || links >= ULC_RANK_ANY) return ULC_ERR_INVALID;
    if (const int error = seal(nullptr); error != ULC_OK) return error;
    const std::uint32_t block = outbox_.arena().allocate(sizeof(abi::OpenLinksRequest));
    if (block == TxArena::kNone) return ULC_ERR_AGAIN;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kOpenLinks);
    if (record == nullptr) {
        outbox_.arena().free(block);
        return ULC_ERR_AGAIN;
    }
    std::memcpy(request.profile, recall_.profile.data(), recall_.profile.size());
    request.links = links;
    std::memcpy(outbox_.arena().at(block), &request, sizeof request);
    record->body.block = {block, sizeof request, sizeof request, 0, 0, 0};
    submitter_.publish();
    recall_.links = links;
    join_block_ = block;
    job_error_ = ULC_ERR_AGAIN;
    job_text_.clear();
    state_ = State::kForming;
    return ULC_OK;
}

bool Endpoint::on_links_open(const abi::CompletionRecord& record) {
    outbox_.arena().free(join_block_);
    join_block_ = TxArena::kNone;
    const std::uint32_t size = record.stream;
    if (size == 0 || size >= ULC_RANK_ANY) return false;
    rank_ = ULC_RANK_ANY;
    size_ = static_cast<std::uint16_t>(size);
    try {
        peer_errors_.assign(size, ULC_ERR_INVALID);
        links_ = std::make_unique<LinkTable>(submitter_, size_, record.body.inline_octets);
        if (near_ != nullptr) near_->begin_job(size_);
    } catch (const std::bad_alloc&) {
        end(ULC_ERR_NO_MEMORY);
        return true;
    }
    if (!inbox_.begin_job(size_) || !outbox_.begin_job(size_)) {
        end(ULC_ERR_NO_MEMORY);
        return true;
    }
    state_ = State::kFormed;
    return true;
}

bool Endpoint::on_link_record(const abi::CompletionRecord& record) {
    const std::uint16_t peer = record.source;
    switch (record.kind) {
        case abi::CompletionKind::kLinked:
            if (!links_->on_linked(peer, record.stream != 0)) return false;
            peer_errors_[peer] = 0;
            return true;
        case abi::CompletionKind::kLinkDone:
            return links_->on_link_done(static_cast<std::uint32_t>(record.tag), peer,
                                        record.status);
        case abi::CompletionKind::kUnlinked:
            if (!links_->on_unlinked(peer)) return false;
            // The number may mean another peer from now on.
            static_cast<void>(outbox_.peer_gone(peer, ULC_ERR_CLOSED));
            inbox_.forget(peer);
            if (near_ != nullptr) near_->forget(peer);
            return true;
        default:
            return false;
    }
}

int Endpoint::may_link() const noexcept {
    if (ended_ != 0) return ended_;
    if (links_ == nullptr) return ULC_ERR_NOT_FORMED;
    return state_ == State::kLeaving ? ULC_ERR_CLOSED : ULC_OK;
}

int Endpoint::address(ulc_link_address& out) const noexcept {
    if (links_ == nullptr) return job_state() == ULC_OK ? ULC_ERR_INVALID : job_state();
    out = links_->address();
    return ULC_OK;
}

int Endpoint::link(const ulc_link_address& peer, Nanos timeout, ulc_request* request) {
    if (const int error = may_link(); error != ULC_OK) return error;
    return links_->link(peer, timeout, request);
}

int Endpoint::unlink(std::uint16_t peer, ulc_request* request) {
    if (const int error = may_link(); error != ULC_OK) return error;
    if (peer >= size_ || peer_errors_[peer] == ULC_ERR_INVALID) return ULC_ERR_INVALID;
    if (!outbox_.all_submitted_to(peer)) return ULC_ERR_AGAIN;
    if (const int error = links_->unlink(peer, request); error != ULC_OK) return error;
    // No send or receive names it any more, and none that waits could end.
    peer_errors_[peer] = ULC_ERR_INVALID;
    static_cast<void>(outbox_.peer_gone(peer, ULC_ERR_CLOSED));
    inbox_.peer_gone(peer, ULC_ERR_CLOSED);
    return ULC_OK;
}

int Endpoint::next_peer(std::uint16_t& peer) noexcept {
    if (const int error = may_link(); error != ULC_OK) return error;
    return links_->next_peer(peer) ? ULC_OK : ULC_ERR_AGAIN;
}

}  // namespace ulc::client
