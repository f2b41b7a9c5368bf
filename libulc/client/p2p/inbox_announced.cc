// SPDX-License-Identifier: BSD-3-Clause
// The receiver's part of announced messages (rendezvous.h): the states of an Arrival that is
// announced.
//
//   first part comes   listed kOpen             ──▶ kAnnounced, or kAsked if a receive has it
//   kAnnounced         unexpected or claimed    ──a receive, or take()──▶ kAsked, its Ask due
//   kAsked             waits for the rest       ──rest begins──▶ kOpen
//   rest comes         listed kOpen, or placed  ──▶ over
//
// A message whose receive is done, or that was discarded, stays until its Ask was sent (retired).
#include <algorithm>
#include <cstring>

#include "client/p2p/inbox.h"
#include "client/p2p/parts.h"
#include "client/p2p/tags.h"

namespace ulc::client {

// ---------------------------------------------------------------- arrival

Inbox::Taken Inbox::on_announced(const abi::CompletionRecord& record) noexcept {
    if (record.source >= matcher_.ranks()) return Taken::kCorrupt;
    matcher_.heard(record.source);
    std::uint32_t length = 0;
    std::uint32_t block = kNoBlock;
    const unsigned char* payload = arrivals_.payload_of(record, length, block);
    if (payload == nullptr) return Taken::kCorrupt;
    if (!has(record, abi::kCompleteFirst)) return on_next(record, payload, length, block);
    if (arrivals_.find_open(record.source, record.stream) != nullptr) return Taken::kCorrupt;
    if (has(record, abi::kCompleteLast) != (total_of(record) == length)) return Taken::kCorrupt;
    return record.tag == kTagAnnouncement ? on_announcement(record, payload, length, block)
                                          : on_rest(record, payload, length, block);
}

Inbox::Taken Inbox::on_announcement(const abi::CompletionRecord& record,
                                    const unsigned char* payload, std::uint32_t length,
                                    std::uint32_t block) noexcept {
    Announcement head;
    if (length < sizeof head) return arrivals_.swallow(record, length, block);
    std::memcpy(&head, payload, sizeof head);
    const std::uint64_t first = head.first;
    const bool well_formed = group_of(record.stream) == 0 && head.tag < kUserTagsEnd &&
                             first <= kFirstOctetsMax && first <= head.length &&
                             total_of(record) == sizeof head + first;
    if (!well_formed) return arrivals_.swallow(record, length, block);
    Arrival* arrival = arrivals_.create(record.source, record.stream, head.tag);
    if (arrival == nullptr) return Taken::kStalled;
    arrival->length = head.length;
    arrival->until = first;
    arrival->id = head.id;
    arrival->announced = true;
    // Memory for the first part comes before matching, because a stalled record is offered again.
    const auto octets = static_cast<std::uint32_t>(length - sizeof head);
    const bool posted = matcher_.find_posted(record.source, head.tag) != nullptr;
    if (!posted && octets > 0 && !arrivals_.reserve(*arrival, octets)) {
        arrivals_.drop(*arrival);
        return Taken::kStalled;
    }
    begin_announced(*arrival, payload + sizeof head, octets);
    if (octets > 0) static_cast<void>(append(*arrival, payload + sizeof head, octets));
    arrivals_.give_back(block);
    if (has(record, abi::kCompleteLast)) {
        part_ended(*arrival);
    } else {
        arrivals_.move_to(*arrival, Listed::kOpen);
    }
    return Taken::kYes;
}

// Finds the receive of a message that was announced.
void Inbox::begin_announced(Arrival& arrival, const unsigned char* head,
                            std::uint64_t octets) noexcept {
    Request* request = match(
        matcher_, {arrival.source, arrival.stream, arrival.tag, arrival.length, head, octets});
    if (request == nullptr) {
        add_unexpected(arrival);
        return;
    }
    join(arrival, *request);
    arrivals_.ask(arrival, std::min(arrival.length, request->capacity));
}

void Inbox::announced_part_ended(Arrival& arrival) noexcept {
    const std::uint64_t wanted = arrival.request != nullptr ? arrival.wanted : arrival.length;
    const bool more = arrival.asked && !arrival.ask_due && arrival.received < arrival.wanted;
    if (arrival.discarded && more) {
        arrivals_.move_to(arrival, Listed::kAsked);  // the rest is on its way
    } else if (arrival.discarded) {
        arrivals_.retire(arrival);
    } else if (arrival.received < wanted) {
        arrivals_.move_to(arrival, arrival.asked ? Listed::kAsked : Listed::kAnnounced);
    } else {
        arrival.whole = true;
        arrivals_.move_to(arrival, Listed::kNot);
        if (arrival.request == nullptr) return;  // unexpected or claimed
        finish(*arrival.request, arrival.length, handler_);
        arrivals_.retire(arrival);
    }
}

// A receive takes a message that was announced, of which `received` bytes are in its buffer.
void Inbox::give_announced(Arrival& arrival, Request& request) noexcept {
    arrival.wanted = std::min(arrival.length, request.capacity);
    if (!arrival.asked) arrivals_.ask(arrival, arrival.wanted);
    if (arrival.listed == Listed::kOpen ||
        (arrival.listed == Listed::kAsked && arrival.received < arrival.wanted)) {
        arrivals_.drop_data(arrival);  // the rest goes straight to the buffer
        arrivals_.shares().judge_if_stopped(arrival.source);
        return;
    }
    finish(request, arrival.length, handler_);
    arrivals_.retire(arrival);
}

Inbox::Taken Inbox::on_rest(const abi::CompletionRecord& record, const unsigned char* payload,
                            std::uint32_t length, std::uint32_t block) noexcept {
    Arrival* arrival =
        group_of(record.stream) != 0
            ? nullptr
            : arrivals_.find_announced(record.source, static_cast<std::uint32_t>(record.tag));
    if (arrival == nullptr || !fits_rest(*arrival, total_of(record)))
        return arrivals_.swallow(record, length, block);
    const std::uint64_t until = arrival->received + total_of(record);
    if (!append(*arrival, payload, length)) return Taken::kStalled;
    arrivals_.give_back(block);
    arrival->asked = true;  // if it came unasked, nothing is left to ask for
    arrival->until = until;
    if (has(record, abi::kCompleteLast)) {
        part_ended(*arrival);
    } else {
        arrivals_.move_to(*arrival, Listed::kOpen);
    }
    return Taken::kYes;
}

// ---------------------------------------------------------------- messages to oneself

bool Inbox::announce_local(std::uint16_t self, std::uint64_t tag, std::uint64_t length,
                           std::uint32_t id) noexcept {
    Arrival* arrival = arrivals_.create(self, self, tag);
    if (arrival == nullptr) return false;
    arrival->length = length;
    arrival->id = id;
    arrival->announced = true;
    begin_announced(*arrival, nullptr, 0);
    if (!arrival->retired) {
        arrival->whole = length == 0;
        arrivals_.move_to(*arrival, arrival->asked ? Listed::kAsked : Listed::kAnnounced);
    }
    return true;
}

bool Inbox::finish_local(Arrival& arrival, const Pieces& payload) noexcept {
    if (arrival.retired) return true;
    if (arrival.request == nullptr && !arrivals_.reserve(arrival, payload.length)) return false;
    const auto put = [&](const unsigned char* from, std::uint64_t octets) {
        if (arrival.request != nullptr) {
            copy_into(*arrival.request, arrival.received, from, octets);
        } else {
            std::memcpy(arrival.data + arrival.received, from, octets);
        }
        arrival.received += octets;
    };
    if (payload.list == nullptr) {
        put(payload.base, payload.length);
    } else {
        each_part(payload.list, payload.count, 0, payload.length, put);
    }
    part_ended(arrival);
    return true;
}

}  // namespace ulc::client
