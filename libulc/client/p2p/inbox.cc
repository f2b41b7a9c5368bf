// SPDX-License-Identifier: BSD-3-Clause
#include "client/p2p/inbox.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/check.h"
#include "client/p2p/parts.h"

namespace ulc::client {
namespace {

/// Bytes of a message of the endpoint to itself that are shown before it is copied.
constexpr std::size_t kHeadOctets = 64;

/// Returns the receive into whose buffer the engine may write the message; nullptr: none.
Request* find_receive(Matcher& matcher, const abi::Beginning& message) noexcept {
    Request* request = matcher.find_posted(message.source, message.tag);
    if (request != nullptr && request->many) return nullptr;
    return request != nullptr && request->capacity >= message.length ? request : nullptr;
}

std::uint64_t tag_of(const abi::CompletionRecord& record) noexcept {
    return has(record, abi::kCompleteHasTag) ? record.tag : 0;
}

}  // namespace

Inbox::Taken Inbox::on_message(const abi::CompletionRecord& record) noexcept {
    if (record.source >= matcher_.ranks()) return Taken::kCorrupt;
    matcher_.heard(record.source);
    if (record.status != 0) return on_broken(record);
    if (has(record, abi::kCompletePlaced)) return on_placed(record);
    std::uint32_t length = 0;
    std::uint32_t block = kNoBlock;
    const unsigned char* payload = arrivals_.payload_of(record, length, block);
    if (payload == nullptr) return Taken::kCorrupt;
    if (!has(record, abi::kCompleteFirst)) return on_next(record, payload, length, block);
    if (has(record, abi::kCompleteLast)) return on_whole(record, payload, length, block);
    return on_first(record, payload, length, block);
}

Inbox::Taken Inbox::on_whole(const abi::CompletionRecord& record, const unsigned char* payload,
                             std::uint32_t length, std::uint32_t block) noexcept {
    const std::uint64_t tag = tag_of(record);
    if (Request* request =
            match(matcher_, {record.source, record.stream, tag, length, payload, length})) {
        copy_into(*request, 0, payload, length);
        describe(*request, record.source, record.stream, tag);
        finish(*request, length, handler_);
        arrivals_.give_back(block);
        return Taken::kYes;
    }
    Arrival* arrival = arrivals_.create(record.source, record.stream, tag);
    if (arrival == nullptr) return Taken::kStalled;
    arrival->length = length;
    arrival->received = length;
    arrival->whole = true;
    if (block == kNoBlock) {
        arrival->storage = Storage::kInline;
        arrival->data = arrival->inline_octets;
        std::memcpy(arrival->data, payload, length);
    } else if (!has(record, abi::kCompleteReserve) &&
               arrivals_.keep_block(*arrival, block, payload)) {
        // it waits there
    } else if (arrivals_.reserve(*arrival, length)) {
        std::memcpy(arrival->data, payload, length);
        arrivals_.give_back(block);
    } else {
        arrivals_.drop(*arrival);
        return Taken::kStalled;
    }
    arrivals_.shares().count(*arrival, length);
    add_unexpected(*arrival);
    return Taken::kYes;
}

Inbox::Taken Inbox::on_first(const abi::CompletionRecord& record, const unsigned char* payload,
                             std::uint32_t length, std::uint32_t block) noexcept {
    const std::uint64_t total =
        has(record, abi::kCompleteInline) ? length : record.body.block.message_length;
    if (total <= length || arrivals_.find_open(record.source, record.stream) != nullptr)
        return Taken::kCorrupt;
    Arrival* arrival = arrivals_.create(record.source, record.stream, tag_of(record));
    if (arrival == nullptr) return Taken::kStalled;
    arrival->length = total;
    arrival->until = total;
    if (Request* request =
            match(matcher_, {record.source, record.stream, arrival->tag, total, payload, length}))
        join(*arrival, *request);
    if (!append(*arrival, payload, length)) {  // only without a request: nothing is lost
        arrivals_.drop(*arrival);
        return Taken::kStalled;
    }
    arrivals_.give_back(block);
    arrivals_.move_to(*arrival, Listed::kOpen);
    if (arrival->request == nullptr) add_unexpected(*arrival);
    return Taken::kYes;
}

Inbox::Taken Inbox::on_next(const abi::CompletionRecord& record, const unsigned char* payload,
                            std::uint32_t length, std::uint32_t block) noexcept {
    Arrival* arrival = arrivals_.find_open(record.source, record.stream);
    const bool last = has(record, abi::kCompleteLast);
    if (arrival == nullptr || arrival->placed || length > arrival->until - arrival->received)
        return Taken::kCorrupt;
    if (last != (arrival->received + length == arrival->until)) return Taken::kCorrupt;
    if (!append(*arrival, payload, length)) return Taken::kStalled;
    arrivals_.give_back(block);
    if (!last) return Taken::kYes;
    part_ended(*arrival);
    return Taken::kYes;
}

abi::Place Inbox::find_place(const abi::Beginning& message) noexcept {
    if (message.source >= matcher_.ranks()) return {};
    if (is_rest(message.tag)) {
        const Arrival* arrival = arrivals_.find_rest_place(message);
        return arrival == nullptr ? abi::Place{} : place_of(*arrival->request, arrival->received);
    }
    const Request* request = find_receive(matcher_, message);
    return request == nullptr ? abi::Place{} : place_of(*request, 0);
}

abi::Place Inbox::place(const abi::Beginning& message) noexcept {
    if (message.source >= matcher_.ranks()) return {};
    Arrival* arrival = nullptr;
    if (is_rest(message.tag)) {
        arrival = arrivals_.find_rest_place(message);
        if (arrival == nullptr) return {};
    } else {
        Request* request = find_receive(matcher_, message);
        if (request == nullptr) return {};
        arrival = arrivals_.create(message.source, message.stream, message.tag);
        if (arrival == nullptr) return {};
        matcher_.unpost(*request);
        join(*arrival, *request);
        arrival->length = message.length;
    }
    arrival->until = arrival->received + message.length;
    arrival->placed = true;
    arrivals_.move_to(*arrival, Listed::kOpen);
    return place_of(*arrival->request, arrival->received);
}

// Handles a message that the engine has put at the place named by place().
Inbox::Taken Inbox::on_placed(const abi::CompletionRecord& record) noexcept {
    Arrival* arrival = arrivals_.find_open(record.source, record.stream);
    if (arrival == nullptr || !arrival->placed || !has(record, abi::kCompleteLast) ||
        record.body.block.message_length != arrival->until - arrival->received)
        return Taken::kCorrupt;
    arrival->received = arrival->until;
    part_ended(*arrival);
    return Taken::kYes;
}

// Handles a message that the source aborted: the engine reports it with an empty last chunk that
// has a status.
Inbox::Taken Inbox::on_broken(const abi::CompletionRecord& record) noexcept {
    Arrival* arrival = arrivals_.find_open(record.source, record.stream);
    if (arrival == nullptr) return Taken::kYes;
    arrivals_.move_to(*arrival, Listed::kNot);
    break_off(*arrival, record.status);
    return Taken::kYes;
}

// Ends a message, which is in no list of its source, and of which nothing more comes. A claimed one
// waits for its receive. A sender that waits for an Ask gets one, for nothing.
void Inbox::break_off(Arrival& arrival, int error) noexcept {
    if (arrival.announced && !arrival.asked) arrivals_.ask(arrival, 0);
    if (arrival.claimed) {
        arrival.whole = true;
        arrival.error = error;
        return;
    }
    if (arrival.request != nullptr) arrival.request->done(error);
    if (arrival.unexpected) matcher_.remove_unexpected(arrival);
    arrivals_.retire(arrival);
}

// Notes that the message that came in chunks, or was written by the engine, has ended.
void Inbox::part_ended(Arrival& arrival) noexcept {
    if (arrival.announced) {
        announced_part_ended(arrival);
        return;
    }
    arrivals_.move_to(arrival, Listed::kNot);
    arrival.whole = true;
    if (arrival.request != nullptr) finish(*arrival.request, arrival.length, handler_);
    if (arrival.request != nullptr || arrival.discarded) arrivals_.drop(arrival);
}

// A message that nothing has matched takes memory, also if it has no bytes.
void Inbox::add_unexpected(Arrival& arrival) noexcept {
    matcher_.add_unexpected(arrival);
    arrivals_.shares().judge(arrival.source);
}

bool Inbox::append(Arrival& arrival, const unsigned char* payload, std::uint32_t length) noexcept {
    if (arrival.request != nullptr) {
        copy_into(*arrival.request, arrival.received, payload, length);
    } else if (!arrival.discarded) {
        if (!arrivals_.reserve(arrival, arrival.received + length)) return false;
        std::memcpy(arrival.data + arrival.received, payload, length);
        arrivals_.shares().count(arrival, length);
    }
    arrival.received += length;
    return true;
}

bool Inbox::deliver(std::uint16_t source, std::uint64_t tag, const Pieces& payload,
                    Counts counts) noexcept {
    const std::uint64_t length = payload.length;
    Request whole{};
    whole.lies_in(payload);
    unsigned char head[kHeadOctets];
    const std::uint64_t octets = std::min<std::uint64_t>(length, sizeof head);
    if (octets > 0) whole.read(0, head, octets);
    if (Request* request = match(matcher_, {source, source, tag, length, head, octets})) {
        // This copy decided the match, so these bytes are not read again.
        copy_into(*request, 0, head, octets);
        std::uint64_t at = octets;
        const auto take = [&](const unsigned char* from, std::uint64_t bytes) {
            copy_into(*request, at, from, bytes);
            at += bytes;
        };
        if (payload.list != nullptr) {
            each_part(payload.list, payload.count, octets, length - octets, take);
        } else if (length > octets) {
            take(static_cast<const unsigned char*>(payload.base) + octets, length - octets);
        }
        describe(*request, source, 0, tag);
        finish(*request, length, handler_);
        return true;
    }
    Arrival* arrival = arrivals_.create(source, source, tag);
    if (arrival == nullptr) return false;
    arrival->length = length;
    if (length <= abi::kInlineOctetsMax) {
        arrival->storage = Storage::kInline;
        arrival->data = arrival->inline_octets;
    } else if (!arrivals_.reserve(*arrival, length)) {
        arrivals_.drop(*arrival);
        return false;
    }
    if (length > 0) whole.read(0, arrival->data, length);
    arrival->received = length;
    arrival->whole = true;
    if (counts == Counts::kNo) {
        matcher_.add_unexpected(*arrival);
        return true;
    }
    arrivals_.shares().count(*arrival, length);
    add_unexpected(*arrival);
    return true;
}

// ---------------------------------------------------------------- the application's side

void Inbox::receive(Request& request, int gone) noexcept {
    Arrival* arrival = matcher_.find_unexpected(request.from, request.tag, request.mask);
    if (arrival == nullptr) {
        if (gone != ULC_OK) {
            request.source = request.from;
            request.done(gone);
        } else {
            request.state = RequestState::kPosted;
            matcher_.post(request);
        }
        return;
    }
    matcher_.remove_unexpected(*arrival);
    give(*arrival, request);
}

// Gives the message, which is in lists of its source only, to the receive.
void Inbox::give(Arrival& arrival, Request& request) noexcept {
    copy_into(request, 0, arrival.data, arrival.received);
    join(arrival, request);
    if (arrival.announced && arrival.error == 0) {
        give_announced(arrival, request);
        return;
    }
    if (!arrival.whole) {
        arrivals_.drop_data(arrival);  // the rest goes straight to the buffer
        arrivals_.shares().judge_if_stopped(arrival.source);
        return;
    }
    if (arrival.error != 0) {
        request.done(arrival.error);
    } else {
        finish(request, arrival.length, handler_);
    }
    arrivals_.retire(arrival);
}

bool Inbox::cancel(Request& request) noexcept {
    if (request.state != RequestState::kPosted) return false;
    matcher_.unpost(request);
    request.done(ULC_ERR_CLOSED);
    return true;
}

// ---------------------------------------------------------------- ends

void Inbox::drop_open(std::uint16_t source, int error) noexcept {
    for (const Listed which : {Listed::kOpen, Listed::kAnnounced, Listed::kAsked}) {
        while (Arrival* arrival = arrivals_.first(source, which)) {
            // Its engine has left the place, but may not have reported that.
            if (arrival->placed && which == Listed::kOpen && arrival->request != nullptr)
                static_cast<void>(forgetter_.forget(*arrival));
            arrivals_.move_to(*arrival, Listed::kNot);
            break_off(*arrival, error);
        }
    }
}

void Inbox::peer_gone(std::uint16_t source, int error) noexcept {
    drop_open(source, error);
    while (Request* request = matcher_.take_posted(source)) {
        request->source = source;
        request->done(error);
    }
}

void Inbox::forget(std::uint16_t source) noexcept {
    peer_gone(source, ULC_ERR_CLOSED);
    while (Arrival* arrival = matcher_.first_unexpected(source)) {
        matcher_.remove_unexpected(*arrival);
        arrivals_.retire(*arrival);
    }
    arrivals_.shares().forget(source);
}

void Inbox::fail_all(int error) noexcept {
    for (std::uint16_t source = 0; source < matcher_.ranks(); ++source)
        peer_gone(source, error);
    while (Request* request = matcher_.take_posted(kAnySource))
        request->done(error);
}

void Inbox::check_invariants() const {
    arrivals_.check_invariants();
    for (const AllArrivals* list : {&taken_, &claimed_})
        for (const Arrival* a = list->front(); a != nullptr; a = AllArrivals::next(*a))
            ULC_CHECK(!a->unexpected && a->claimed == (list == &claimed_));
}

}  // namespace ulc::client
