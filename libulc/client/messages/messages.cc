// SPDX-License-Identifier: BSD-3-Clause
#include "client/messages/messages.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ulc::client {

Messages::Messages(const abi::Region& region, const Hooks& hooks, Submitter& submitter,
                   const Membership& membership, Groups& groups, std::uint64_t memory) noexcept
    : region_(region),
      submitter_(submitter),
      membership_(membership),
      groups_(groups),
      outbox_(region, submitter),
      inbox_(region, settings_.handler, memory, {hooks.forget_place, hooks.context}),
      notes_(region, submitter, membership, inbox_),
      control_(membership, outbox_, inbox_, groups) {}

int Messages::set_rendezvous(std::uint64_t from, std::uint64_t held_max) noexcept {
    if (membership_.ended() != 0) return membership_.ended();
    settings_.announce_from = from;
    settings_.held_max = held_max;
    outbox_.announcements().set_from(from);
    inbox_.arrivals().shares().set_held_max(held_max);
    return ULC_OK;
}

int Messages::prepare_near(const NearMemory& memory) {
    if (membership_.ended() != 0) return membership_.ended();
    if (!membership_.is_idle() || near_ != nullptr) return ULC_ERR_INVALID;
    // Such an engine puts messages into receives, past the order that is kept here.
    if (region_.reaches_process()) return ULC_ERR_UNSUPPORTED;
    near_.reset(new (std::nothrow) Near(inbox_, submitter_, membership_, memory));
    return near_ != nullptr ? ULC_OK : ULC_ERR_NO_MEMORY;
}

// ---------------------------------------------------------------- sends

int Messages::send(std::uint16_t to, std::uint64_t tag, const Pieces& payload, unsigned flags,
                   ulc_request* request) {
    if (const int error = membership_.may_communicate(); error != ULC_OK) return error;
    if (to >= membership_.size()) return ULC_ERR_INVALID;
    if (membership_.peer_error(to) != 0) return membership_.peer_error(to);
    if (near_ != nullptr && to != membership_.rank()) [[unlikely]]
        return send_by_near(to, tag, payload, flags, request);
    return send_by_engine(to, tag, payload, flags, request);
}

/// Sends by the peer's ring if that takes the message, else through the engine.
int Messages::send_by_near(std::uint16_t to, std::uint64_t tag, const Pieces& payload,
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

[[gnu::always_inline]] inline int Messages::send_by_engine(std::uint16_t to, std::uint64_t tag,
                                                           const Pieces& payload, unsigned flags,
                                                           ulc_request* request) {
    if (flags == 0 && to != membership_.rank() && outbox_.send_short(to, tag, payload, request))
        return ULC_OK;
    SendArgs args;
    args.stream = to;
    args.tag = tag;
    args.payload = payload;
    args.delivered = (flags & ULC_SEND_DELIVERED) != 0;
    args.matched = (flags & ULC_SEND_MATCHED) != 0;
    if (to == membership_.rank()) return send_to_self(args, request);
    return outbox_.send(args, request);
}

int Messages::send_to_self(const SendArgs& args, ulc_request* request) {
    if (outbox_.announcements().include(args)) return control_.announce_to_self(args, request);
    if (!inbox_.deliver(membership_.rank(), args.tag, args.payload, Inbox::Counts::kNo))
        return ULC_ERR_NO_MEMORY;
    if (request != nullptr) Request::begin(request, RequestState::kQueued).done(ULC_OK);
    return ULC_OK;
}

int Messages::multicast(std::uint32_t handle, std::uint64_t subset, std::uint64_t tag,
                        const Pieces& payload, unsigned flags, ulc_request* request) {
    if (const int error = membership_.may_communicate(); error != ULC_OK) return error;
    const Group* group = groups_.find(handle);
    if (group == nullptr) return ULC_ERR_INVALID;
    const std::size_t members = group->ranks.size();
    SendArgs args;
    args.stream = handle;
    args.tag = tag;
    args.payload = payload;
    args.delivered = (flags & ULC_SEND_DELIVERED) != 0;
    bool received = members > 1;
    if (subset != ULC_SUBSET_ALL) {
        if (members > 64 || (members < 64 && (subset >> members) != 0)) return ULC_ERR_INVALID;
        args.subset = subset & ~(std::uint64_t{1} << group->own_index);
        args.has_subset = true;
        received = args.subset != 0;
    }
    if (received && flags == 0 && !args.has_subset &&
        outbox_.send_short(handle, tag, payload, request))
        return ULC_OK;
    if (received) return outbox_.send(args, request);
    if (request != nullptr) Request::begin(request, RequestState::kQueued).done(ULC_OK);
    return ULC_OK;
}

int Messages::may_receive(std::uint16_t from) const noexcept {
    if (membership_.ended() != 0) return membership_.ended();
    if (membership_.size() == 0) return ULC_ERR_NOT_FORMED;
    if (from == kAnySource) return ULC_OK;
    return membership_.knows(from) ? int{ULC_OK} : int{ULC_ERR_INVALID};
}

// ---------------------------------------------------------------- receives

/// Returns why a source sends nothing more; ULC_OK: it may.
int Messages::gone(std::uint16_t from) const noexcept {
    return from == kAnySource ? 0 : membership_.peer_error(from);
}

Request& Messages::begin_receive(ulc_request* memory, std::uint16_t from, std::uint64_t tag,
                                 std::uint64_t mask) noexcept {
    Request& request = Request::begin(memory, RequestState::kPosted);
    request.from = from;
    request.source = from;
    request.tag = tag;
    request.mask = mask;
    return request;
}

int Messages::receive(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                      const Pieces& buffer, ulc_request* memory) {
    if (const int error = may_receive(from); error != ULC_OK) return error;
    if (memory == nullptr) return ULC_ERR_INVALID;
    Request& request = begin_receive(memory, from, tag, mask);
    request.lies_in(buffer);
    inbox_.receive(request, gone(from));
    answer_asks();
    return ULC_OK;
}

int Messages::receive_many(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                           ulc_part_giver give, ulc_request* memory) {
    if (const int error = may_receive(from); error != ULC_OK) return error;
    if (memory == nullptr || give == nullptr) return ULC_ERR_INVALID;
    Request& request = begin_receive(memory, from, tag, mask);
    request.many = true;
    request.give = give;
    request.collector = &collector_;
    inbox_.receive_many(request, gone(from));
    answer_asks();
    return ULC_OK;
}

int Messages::cancel(ulc_request* memory) noexcept {
    Request& request = Request::of(memory);
    // The request of a cancelled receive belongs to the caller: next_done() must not return it.
    Collector* const collector = std::exchange(request.collector, nullptr);
    if (inbox_.cancel(request)) return ULC_OK;
    request.collector = collector;
    return ULC_ERR_AGAIN;
}

int Messages::move_payload(ulc_request* memory, unsigned char* copy,
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

int Messages::abandon(ulc_request* memory) noexcept {
    Request& request = Request::of(memory);
    if (request.state == RequestState::kDone) return ULC_ERR_AGAIN;
    if (request.state == RequestState::kPosted) return cancel(memory);
    if (request.state != RequestState::kArriving) return ULC_ERR_INVALID;
    auto* const collector = std::exchange(request.collector, nullptr);  // as in cancel()
    if (const int error = inbox_.abandon(request); error != ULC_OK) {
        request.collector = collector;
        return error;
    }
    answer_asks();
    return ULC_OK;
}

// Returns whether a look at the arrived messages is allowed. `none`: the result if nothing has
// arrived.
int Messages::may_look(std::uint16_t from, int& none) const noexcept {
    if (membership_.size() == 0)
        return membership_.ended() != 0 ? membership_.ended() : ULC_ERR_NOT_FORMED;
    if (from != kAnySource && from >= membership_.size()) return ULC_ERR_INVALID;
    none = ULC_ERR_AGAIN;
    if (membership_.ended() != 0) {
        none = membership_.ended();
    } else if (gone(from) != 0) {
        none = gone(from);
    }
    return ULC_OK;
}

int Messages::take(std::uint16_t from, std::uint64_t tag, std::uint64_t mask, const void** view,
                   ulc_status* status) noexcept {
    int none = 0;
    if (const int error = may_look(from, none); error != ULC_OK) return error;
    const int result = inbox_.take(from, tag, mask, view, status);
    answer_asks();
    return result == ULC_ERR_AGAIN ? none : result;
}

int Messages::probe(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                    ulc_status* status) noexcept {
    int none = 0;
    if (const int error = may_look(from, none); error != ULC_OK) return error;
    return inbox_.probe(from, tag, mask, status) != nullptr ? ULC_OK : none;
}

int Messages::probe_head(std::uint16_t from, std::uint64_t tag, std::uint64_t mask, void* head,
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

int Messages::claim(std::uint16_t from, std::uint64_t tag, std::uint64_t mask, Arrival** message,
                    ulc_status* status) noexcept {
    int none = 0;
    if (const int error = may_look(from, none); error != ULC_OK) return error;
    *message = inbox_.claim(from, tag, mask, status);
    return *message != nullptr ? ULC_OK : none;
}

int Messages::receive_claimed(Arrival* message, const Pieces& buffer,
                              ulc_request* memory) noexcept {
    if (membership_.ended() != 0) return membership_.ended();
    if (message == nullptr || memory == nullptr || !message->claimed) return ULC_ERR_INVALID;
    Request& request = Request::begin(memory, RequestState::kPosted);
    request.from = message->source;
    request.mask = UINT64_MAX;
    request.lies_in(buffer);
    inbox_.receive_claimed(request, *message);
    answer_asks();
    return ULC_OK;
}

int Messages::discard(Arrival* message) noexcept {
    if (message == nullptr || !message->claimed) return ULC_ERR_INVALID;
    inbox_.discard(*message);
    answer_asks();
    return ULC_OK;
}

int Messages::peek(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                   std::uint64_t* found) noexcept {
    if (from >= membership_.size()) return ULC_ERR_INVALID;
    const Arrival* arrival = inbox_.matcher().find_unexpected(from, tag, mask);
    if (arrival == nullptr) return ULC_ERR_AGAIN;
    *found = arrival->tag;
    return ULC_OK;
}

// ---------------------------------------------------------------- poll

Inbox::Taken Messages::on_message(const abi::CompletionRecord& record) {
    const bool controls = has(record, abi::kCompleteHasTag) && is_of_libulc(record.tag);
    const Inbox::Taken taken =
        controls ? control_.on_message(record, near_.get()) : inbox_.on_message(record);
    const bool counts = !controls || record.tag == kTagAnnouncement;
    if (near_ != nullptr && counts && taken == Inbox::Taken::kYes &&
        has(record, abi::kCompleteFirst) && group_of(record.stream) == 0)
        near_->arrived(record.source);
    return taken;
}

unsigned Messages::answer(bool* stalled) noexcept {
    unsigned events = 0;
    if (near_ != nullptr) [[unlikely]]
        events = near_->drain_all(stalled);
    if (inbox_.owes_answers()) [[unlikely]]
        control_.answer();
    if (inbox_.arrivals().shares().has_intakes()) [[unlikely]]
        notes_.note_intake();
    if (near_ != nullptr && membership_.is_formed()) [[unlikely]] {
        near_->ask();
        near_->each_offer([this](std::uint16_t peer, const NearOffer& offer) {
            return control_.send(peer, kTagNear, &offer, sizeof offer);
        });
    }
    return events;
}

// ---------------------------------------------------------------- transitions

bool Messages::begin_job() {
    if (near_ != nullptr) near_->begin_job(membership_.size());
    return inbox_.begin_job(membership_.size()) && outbox_.begin_job(membership_.size());
}

void Messages::peer_gone(std::uint16_t rank, int error) {
    if (near_ != nullptr) near_->forget(rank);
    const unsigned failed = outbox_.peer_gone(rank, error);
    if (failed > 0) settings_.handler.report(error, rank, failed);
    inbox_.peer_gone(rank, error);
}

void Messages::forget(std::uint16_t rank) {
    static_cast<void>(outbox_.peer_gone(rank, ULC_ERR_CLOSED));
    inbox_.forget(rank);
    if (near_ != nullptr) near_->forget(rank);
}

void Messages::fail_all(int error) noexcept {
    outbox_.fail_all(error);
    inbox_.fail_all(error);
}

void Messages::check_invariants() const {
    outbox_.check_invariants();
    inbox_.check_invariants();
    if (near_ != nullptr) near_->check_invariants();
}

}  // namespace ulc::client
