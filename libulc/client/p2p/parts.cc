// SPDX-License-Identifier: BSD-3-Clause
// Receives of many messages: each message goes into a part, a request that the caller chooses when
// the message begins.
#include "client/p2p/parts.h"

#include "client/p2p/inbox.h"

namespace ulc::client {

Request& next_part(Request& many, const Beginning& message, bool& last) noexcept {
    ulc_status status{};
    status.source = message.source;
    status.group = group_of(message.stream);
    status.tag = message.tag;
    status.length = message.length;
    ulc_part given{};
    many.give(Request::memory_of(many), &status, message.head,
              static_cast<std::size_t>(message.octets), &given);
    last = given.last != 0;
    Request& part = Request::begin(given.request, RequestState::kPosted);
    Pieces buffer;
    if (!Pieces::of(given.pieces, given.count, buffer)) buffer = {};
    part.lies_in(buffer);
    part.from = many.from;
    part.collector = many.collector;
    return part;
}

Request* match(Matcher& matcher, const Beginning& message) noexcept {
    Request* request = matcher.match_posted(message.source, message.tag);
    if (request == nullptr || !request->many) return request;
    bool last = false;
    Request& part = next_part(*request, message, last);
    if (last) {
        matcher.unpost(*request);
        request->done(ULC_OK);
    }
    return &part;
}

void finish(Request& request, std::uint64_t length, const ErrorHandler& handler) noexcept {
    request.length = length;
    const bool cut = length > request.capacity;
    request.done(cut ? ULC_ERR_TRUNCATED : ULC_OK);
    if (cut) handler.report(ULC_ERR_TRUNCATED, request.source, length);
}

void Inbox::receive_many(Request& many, int gone) noexcept {
    while (Arrival* arrival = matcher_.find_unexpected(many.from, many.tag, many.mask)) {
        bool last = false;
        const std::uint64_t there = arrival->data != nullptr ? arrival->received : 0;
        Request& part = next_part(
            many,
            {arrival->source, arrival->stream, arrival->tag, arrival->length, arrival->data, there},
            last);
        matcher_.remove_unexpected(*arrival);
        if (last) many.done(ULC_OK);
        give(*arrival, part);
        if (last) return;
    }
    if (gone == ULC_OK)
        matcher_.post(many);
    else
        many.done(gone);
}

}  // namespace ulc::client
