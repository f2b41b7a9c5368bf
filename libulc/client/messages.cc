// SPDX-License-Identifier: BSD-3-Clause
// The entries for messages, groups and arena memory: they check callers and arguments; outbox,
// inbox and groups do the work.
#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "client/endpoint.h"
#include "client/groups/inquiry.h"

namespace ulc::client {

int Endpoint::may_communicate() const noexcept {
    if (ended_ != 0) return ended_;
    if (state_ == State::kFormed) return ULC_OK;
    return state_ == State::kLeaving ? ULC_ERR_CLOSED : ULC_ERR_NOT_FORMED;
}

int Endpoint::send(std::uint16_t to, std::uint64_t tag, const Pieces& payload, unsigned flags,
                   ulc_request* request) {
    if (const int error = may_communicate(); error != ULC_OK) return error;
    if (to >= size_) return ULC_ERR_INVALID;
    if (peer_errors_[to] != 0) return peer_errors_[to];
    if (near_ != nullptr && to != rank_) [[unlikely]]
        return send_by_near(to, tag, payload, flags, request);
    return send_by_engine(to, tag, payload, flags, request);
}

/// Sends by the peer's ring if that takes the message, else through the engine.
int Endpoint::send_by_near(std::uint16_t to, std::uint64_t tag, const Pieces& payload,
                           unsigned flags, ulc_request* request) {
    SendArgs args;
    args.stream = to;
    args.tag = tag;
    args.payload = payload;
    if (flags == 0 && !outbox_.announcements().include(args) && near_->send(to, tag, payload)) {
        if (request != nullptr) Request::begin_done(request, to, tag, payload.length);
        return ULC_OK;
    }
    const int error = send_by_engine(to, tag, payload, flags, request);
    if (error == ULC_OK) near_->sent(to);
    return error;
}

[[gnu::always_inline]] inline int Endpoint::send_by_engine(std::uint16_t to, std::uint64_t tag,
                                                           const Pieces& payload, unsigned flags,
                                                           ulc_request* request) {
    if (flags == 0 && to != rank_ && outbox_.send_short(to, tag, payload, request)) return ULC_OK;
    SendArgs args;
    args.stream = to;
    args.tag = tag;
    args.payload = payload;
    args.delivered = (flags & ULC_SEND_DELIVERED) != 0;
    args.matched = (flags & ULC_SEND_MATCHED) != 0;
    if (to == rank_) return send_to_self(args, request);
    return outbox_.send(args, request);
}

int Endpoint::send_to_self(const SendArgs& args, ulc_request* request) {
    if (outbox_.announcements().include(args)) return announce_to_self(args, request);
    if (!inbox_.deliver(rank_, args.tag, args.payload, Inbox::Counts::kNo))
        return ULC_ERR_NO_MEMORY;
    if (request != nullptr) Request::begin(request, RequestState::kQueued).done(ULC_OK);
    return ULC_OK;
}

bool Endpoint::ask_about(std::uint16_t rank, std::uint32_t group, std::uint32_t number,
                         const Agreement& mine) noexcept {
    if (may_communicate() != ULC_OK || peer_errors_[rank] != 0)
        return true;  // it reports nothing more
    return ask(outbox_, rank, group, number, mine);
}

int Endpoint::multicast(std::uint32_t handle, std::uint64_t subset, std::uint64_t tag,
                        const Pieces& payload, unsigned flags, ulc_request* request) {
    if (const int error = may_communicate(); error != ULC_OK) return error;
    const Group* group = groups_.find(handle);
    if (group == nullptr) return ULC_ERR_INVALID;
    const std::size_t members = group->ranks.size();
    SendArgs args;
    args.stream = handle;
    args.tag = tag;
    args.payload = payload;
    args.delivered = (flags & ULC_SEND_DELIVERED) != 0;
    bool nobody = members == 1;
    if (subset != ULC_SUBSET_ALL) {
        if (members > 64 || (members < 64 && (subset >> members) != 0)) return ULC_ERR_INVALID;
        args.subset = subset & ~(std::uint64_t{1} << group->own_index);
        args.has_subset = true;
        nobody = args.subset == 0;
    }
    if (!nobody && flags == 0 && !args.has_subset &&
        outbox_.send_short(handle, tag, payload, request))
        return ULC_OK;
    if (!nobody) return outbox_.send(args, request);
    if (request != nullptr) Request::begin(request, RequestState::kQueued).done(ULC_OK);
    return ULC_OK;
}

int Endpoint::may_receive(std::uint16_t from) const noexcept {
    if (ended_ != 0) return ended_;
    if (size_ == 0) return ULC_ERR_NOT_FORMED;
    if (from == kAnySource) return ULC_OK;
    const bool known = from < size_ && peer_errors_[from] != ULC_ERR_INVALID;
    return known ? int{ULC_OK} : int{ULC_ERR_INVALID};
}

int Endpoint::receive(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                      const Pieces& buffer, ulc_request* memory) {
    if (const int error = may_receive(from); error != ULC_OK) return error;
    if (memory == nullptr) return ULC_ERR_INVALID;
    Request& request = Request::begin(memory, RequestState::kPosted);
    request.from = from;
    request.source = from;
    request.tag = tag;
    request.mask = mask;
    request.lies_in(buffer);
    inbox_.receive(request, from == kAnySource ? 0 : int{peer_errors_[from]});
    if (inbox_.arrivals().first_to_ask() != nullptr) answer_announced();
    return ULC_OK;
}

int Endpoint::receive_many(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                           ulc_part_giver give, ulc_request* memory) {
    if (const int error = may_receive(from); error != ULC_OK) return error;
    if (memory == nullptr || give == nullptr) return ULC_ERR_INVALID;
    Request& request = Request::begin(memory, RequestState::kPosted);
    request.from = from;
    request.source = from;
    request.tag = tag;
    request.mask = mask;
    request.many = true;
    request.give = give;
    request.collector = &collector_;
    inbox_.receive_many(request, from == kAnySource ? 0 : int{peer_errors_[from]});
    if (inbox_.arrivals().first_to_ask() != nullptr) answer_announced();
    return ULC_OK;
}

int Endpoint::cancel(ulc_request* memory) noexcept {
    Request& request = Request::of(memory);
    // The request of a cancelled receive belongs to the caller: next_done() must not return it.
    Collector* const collector = std::exchange(request.collector, nullptr);
    if (inbox_.cancel(request)) return ULC_OK;
    request.collector = collector;
    return ULC_ERR_AGAIN;
}

int Endpoint::move_payload(ulc_request* memory, unsigned char* copy,
                           std::uint64_t octets) noexcept {
    Request& request = Request::of(memory);
    switch (request.state) {
        case RequestState::kDone:
        case RequestState::kSubmitted:
            return ULC_ERR_AGAIN;
        case RequestState::kPosted:
        case RequestState::kArriving:
        case RequestState::kForming:
            return ULC_ERR_INVALID;
        case RequestState::kQueued:
        case RequestState::kAnnounced:
            break;
    }
    if (octets < request.capacity) return ULC_ERR_LIMIT;
    request.read(0, copy, request.capacity);
    request.lies_in(Pieces::one(copy, request.capacity));
    return ULC_OK;
}

int Endpoint::abandon_receive(ulc_request* memory) noexcept {
    Request& request = Request::of(memory);
    if (request.state == RequestState::kDone) return ULC_ERR_AGAIN;
    if (request.state == RequestState::kPosted) return cancel(memory);
    if (request.state != RequestState::kArriving) return ULC_ERR_INVALID;
    auto* const collector = std::exchange(request.collector, nullptr);  // as in cancel()
    if (const int error = inbox_.abandon(request); error != ULC_OK) {
        request.collector = collector;
        return error;
    }
    if (inbox_.arrivals().first_to_ask() != nullptr) answer_announced();
    return ULC_OK;
}

bool Endpoint::collect(Request& request) noexcept {
    if (request.collector != nullptr) return false;
    request.collector = &collector_;
    if (request.state == RequestState::kDone) request.tell_collector();
    return true;
}

// Returns whether a look at the arrived messages is allowed. `none`: the result if nothing has
// arrived.
int Endpoint::may_look(std::uint16_t from, int& none) const noexcept {
    if (size_ == 0) return ended_ != 0 ? ended_ : ULC_ERR_NOT_FORMED;
    if (from != kAnySource && from >= size_) return ULC_ERR_INVALID;
    none = ULC_ERR_AGAIN;
    if (ended_ != 0) {
        none = ended_;
    } else if (from != kAnySource && peer_errors_[from] != 0) {
        none = peer_errors_[from];
    }
    return ULC_OK;
}

int Endpoint::take(std::uint16_t from, std::uint64_t tag, std::uint64_t mask, const void** view,
                   ulc_status* status) noexcept {
    int none = 0;
    if (const int error = may_look(from, none); error != ULC_OK) return error;
    const int result = inbox_.take(from, tag, mask, view, status);
    if (inbox_.arrivals().first_to_ask() != nullptr) answer_announced();
    return result == ULC_ERR_AGAIN ? none : result;
}

int Endpoint::probe(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                    ulc_status* status) noexcept {
    int none = 0;
    if (const int error = may_look(from, none); error != ULC_OK) return error;
    return inbox_.probe(from, tag, mask, status) != nullptr ? ULC_OK : none;
}

int Endpoint::probe_head(std::uint16_t from, std::uint64_t tag, std::uint64_t mask, void* head,
                         std::size_t* octets, ulc_status* status) noexcept {
    int none = 0;
    if (const int error = may_look(from, none); error != ULC_OK) return error;
    const Arrival* arrival = inbox_.probe(from, tag, mask, status);
    if (arrival == nullptr) return none;
    // Copies of chunks grow from the message's start.
    const std::uint64_t there = arrival->data != nullptr ? arrival->received : 0;
    *octets = static_cast<std::size_t>(std::min<std::uint64_t>(*octets, there));
    if (*octets > 0) std::memcpy(head, arrival->data, *octets);
    return ULC_OK;
}

int Endpoint::claim(std::uint16_t from, std::uint64_t tag, std::uint64_t mask, Arrival** message,
                    ulc_status* status) noexcept {
    int none = 0;
    if (const int error = may_look(from, none); error != ULC_OK) return error;
    *message = inbox_.claim(from, tag, mask, status);
    return *message != nullptr ? ULC_OK : none;
}

int Endpoint::receive_claimed(Arrival* message, const Pieces& buffer,
                              ulc_request* memory) noexcept {
    if (ended_ != 0) return ended_;
    if (message == nullptr || memory == nullptr || !message->claimed) return ULC_ERR_INVALID;
    Request& request = Request::begin(memory, RequestState::kPosted);
    request.from = message->source;
    request.mask = UINT64_MAX;
    request.lies_in(buffer);
    inbox_.receive_claimed(request, *message);
    if (inbox_.arrivals().first_to_ask() != nullptr) answer_announced();
    return ULC_OK;
}

int Endpoint::discard(Arrival* message) noexcept {
    if (message == nullptr || !message->claimed) return ULC_ERR_INVALID;
    inbox_.discard(*message);
    if (inbox_.arrivals().first_to_ask() != nullptr) answer_announced();
    return ULC_OK;
}

int Endpoint::peek(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                   std::uint64_t* found) noexcept {
    if (from >= size_) return ULC_ERR_INVALID;
    const Arrival* arrival = inbox_.matcher().find_unexpected(from, tag, mask);
    if (arrival == nullptr) return ULC_ERR_AGAIN;
    *found = arrival->tag;
    return ULC_OK;
}

int Endpoint::group_create(const std::uint16_t* ranks, std::uint16_t count,
                           const std::uint64_t* key, ulc_request* request) {
    if (const int error = may_communicate(); error != ULC_OK) return error;
    if (ranks == nullptr || request == nullptr) return ULC_ERR_INVALID;
    for (std::uint16_t i = 0; i < count; ++i) {
        if (ranks[i] >= size_) return ULC_ERR_INVALID;
        if (peer_errors_[ranks[i]] != 0) return peer_errors_[ranks[i]];
    }
    try {
        return groups_.create({ranks, count}, key, request);
    } catch (const std::bad_alloc&) {
        return ULC_ERR_NO_MEMORY;
    }
}

int Endpoint::set_hold(std::int64_t limit, std::uint32_t flags,
                       std::span<const std::uint16_t> keep) {
    if (const int error = may_communicate(); error != ULC_OK) return error;
    for (const std::uint16_t rank : keep)
        if (rank >= size_) return ULC_ERR_INVALID;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kHold);
    if (record == nullptr) return ULC_ERR_AGAIN;
    record->flags = abi::kSubmitInline;
    record->tag = static_cast<std::uint64_t>(limit);
    record->stream = flags;
    record->inline_length = static_cast<std::uint16_t>(keep.size_bytes());
    if (!keep.empty()) std::memcpy(record->body.inline_octets, keep.data(), keep.size_bytes());
    submitter_.publish();
    return ULC_OK;
}

int Endpoint::group_free(std::uint32_t handle) {
    if (const int error = may_communicate(); error != ULC_OK) return error;
    return groups_.free(handle);
}

}  // namespace ulc::client
