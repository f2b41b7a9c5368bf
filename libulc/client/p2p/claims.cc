// SPDX-License-Identifier: BSD-3-Clause
// Looks at, takes, claims and discards messages that have arrived and met no receive.
#include "base/check.h"
#include "client/p2p/inbox.h"

namespace ulc::client {

Arrival* Inbox::probe(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                      ulc_status* status) noexcept {
    Arrival* arrival = matcher_.find_unexpected(from, tag, mask);
    if (arrival == nullptr) return nullptr;
    *status = {};
    status->source = arrival->source;
    status->group = group_of(arrival->stream);
    status->tag = arrival->tag;
    status->length = arrival->length;
    return arrival;
}

Arrival* Inbox::claim(std::uint16_t from, std::uint64_t tag, std::uint64_t mask,
                      ulc_status* status) noexcept {
    Arrival* arrival = probe(from, tag, mask, status);
    if (arrival == nullptr) return nullptr;
    matcher_.remove_unexpected(*arrival);
    claimed_.push_back(*arrival);
    arrival->claimed = true;
    return arrival;
}

void Inbox::receive_claimed(Request& request, Arrival& arrival) noexcept {
    claimed_.remove(arrival);
    arrival.claimed = false;
    give(arrival, request);
}

void Inbox::discard(Arrival& arrival) noexcept {
    claimed_.remove(arrival);
    arrival.claimed = false;
    throw_away(arrival);
}

// Nothing of the message is wanted any more. Its parts on their way are taken and forgotten.
void Inbox::throw_away(Arrival& arrival) noexcept {
    arrival.discarded = true;
    arrival.request = nullptr;
    if (arrival.announced && !arrival.asked) arrivals_.ask(arrival, 0);
    if (arrival.ask_due) arrival.wanted = 0;
    const bool more = arrival.announced && arrival.received < arrival.wanted;
    if (arrival.listed != Listed::kOpen && !more) {
        arrivals_.retire(arrival);
        return;
    }
    arrivals_.drop_data(arrival);
    arrivals_.shares().judge_if_stopped(arrival.source);
}

int Inbox::abandon(Request& request) noexcept {
    Arrival* arrival = arrivals_.find_matched(request);
    ULC_CHECK(arrival != nullptr);
    const bool has_place = arrival->placed && arrival->listed == Listed::kOpen;
    const int forgotten = has_place ? forgetter_.forget(*arrival) : int{ULC_ERR_AGAIN};
    if (forgotten == ULC_ERR_TIMEOUT) return forgotten;
    if (forgotten == ULC_OK) {
        arrival->received = arrival->until;  // the engine drops the rest, and says nothing of it
        arrival->placed = false;
        arrival->discarded = true;
        arrival->request = nullptr;
        part_ended(*arrival);
    } else {
        throw_away(*arrival);
    }
    request.done(ULC_ERR_CLOSED);
    return ULC_OK;
}

int Inbox::take(std::uint16_t from, std::uint64_t tag, std::uint64_t mask, const void** view,
                ulc_status* status) noexcept {
    Arrival* arrival = probe(from, tag, mask, status);
    if (arrival == nullptr) return ULC_ERR_AGAIN;
    // The rest comes into memory of the library; a sender may wait for the Ask alone.
    if (arrival->announced && !arrival->asked) arrivals_.ask(*arrival, arrival->length);
    if (!arrival->whole) {
        arrivals_.await(*arrival);
        const std::uint64_t limit = arrivals_.shares().limit();
        return arrival->length > limit / 2 ? ULC_ERR_LIMIT : ULC_ERR_AGAIN;
    }
    matcher_.remove_unexpected(*arrival);
    taken_.push_back(*arrival);
    *view = arrival->data;
    return ULC_OK;
}

void Inbox::release(const void* view) noexcept {
    for (Arrival* arrival = taken_.front(); arrival != nullptr;
         arrival = AllArrivals::next(*arrival)) {
        if (arrival->data != view) continue;
        taken_.remove(*arrival);
        arrivals_.retire(*arrival);
        return;
    }
}

}  // namespace ulc::client
