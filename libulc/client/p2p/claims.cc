// SPDX-License-Identifier: BSD-3-Clause
// Looks at, takes, claims and discards messages that have arrived and met no receive.
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
    arrival.discarded = true;
    if (arrival.announced && !arrival.asked) ask(arrival, 0);
    if (arrival.listed == Listed::kOpen) {
        drop_data(arrival);
    } else {
        retire(arrival);
    }
}

int Inbox::take(std::uint16_t from, std::uint64_t tag, std::uint64_t mask, const void** view,
                ulc_status* status) noexcept {
    Arrival* arrival = probe(from, tag, mask, status);
    if (arrival == nullptr) return ULC_ERR_AGAIN;
    // The rest comes into memory of the library; a sender may wait for the Ask alone.
    if (arrival->announced && !arrival->asked) ask(*arrival, arrival->length);
    if (!arrival->whole) return arrival->length > memory_limit_ / 2 ? ULC_ERR_LIMIT : ULC_ERR_AGAIN;
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
        retire(*arrival);
        return;
    }
}

}  // namespace ulc::client
