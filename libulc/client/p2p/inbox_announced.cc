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
#include "client/p2p/tags.h"

namespace ulc::client {
namespace {

bool has(const abi::CompletionRecord& record, abi::CompletionFlag flag) noexcept {
    return (record.flags & flag) != 0;
}

/// Bytes of the whole message that begins with this record.
std::uint64_t total_of(const abi::CompletionRecord& record) noexcept {
    return has(record, abi::kCompleteInline) ? record.inline_length
                                             : record.body.block.message_length;
}

}  // namespace

// ---------------------------------------------------------------- Asks

void Inbox::ask(Arrival& arrival, std::uint64_t up_to) noexcept {
    arrival.wanted = up_to;
    arrival.asked = true;
    arrival.ask_due = true;
    to_ask_.push_back(arrival);
    if (arrival.listed == Listed::kAnnounced) move_to(arrival, Listed::kAsked);
}

void Inbox::on_asked(Arrival& arrival) noexcept {
    to_ask_.remove(arrival);
    arrival.ask_due = false;
    if (arrival.retired) drop_arrival(arrival);
}

// Nothing more comes of the message, and nothing else needs it.
void Inbox::retire(Arrival& arrival) noexcept {
    move_to(arrival, Listed::kNot);
    arrival.request = nullptr;
    if (!arrival.ask_due) {
        drop_arrival(arrival);
        return;
    }
    arrival.retired = true;
    drop_data(arrival);
}

// ---------------------------------------------------------------- arrival

Inbox::Taken Inbox::on_announced(const abi::CompletionRecord& record) noexcept {
    if (record.source >= matcher_.ranks()) return Taken::kCorrupt;
    matcher_.heard(record.source);
    std::uint32_t length = 0;
    std::uint32_t block = kNoBlock;
    const unsigned char* payload = payload_of(record, length, block);
    if (payload == nullptr) return Taken::kCorrupt;
    if (!has(record, abi::kCompleteFirst)) return on_next(record, payload, length, block);
    if (find_open(record) != nullptr) return Taken::kCorrupt;
    if (has(record, abi::kCompleteLast) != (total_of(record) == length)) return Taken::kCorrupt;
    return record.tag == kTagAnnouncement ? on_announcement(record, payload, length, block)
                                          : on_rest(record, payload, length, block);
}

// A message that no correct libulc sends: its chunks are taken and forgotten.
Inbox::Taken Inbox::swallow(const abi::CompletionRecord& record, std::uint32_t length,
                            std::uint32_t block) noexcept {
    if (!has(record, abi::kCompleteLast)) {
        Arrival* arrival = new_arrival(record.source, record.stream, record.tag);
        if (arrival == nullptr) return Taken::kStalled;
        arrival->length = total_of(record);
        arrival->until = arrival->length;
        arrival->received = length;
        arrival->discarded = true;
        move_to(*arrival, Listed::kOpen);
    }
    ++malformed_;
    if (block != kNoBlock) give_back(block);
    return Taken::kYes;
}

Inbox::Taken Inbox::on_announcement(const abi::CompletionRecord& record,
                                    const unsigned char* payload, std::uint32_t length,
                                    std::uint32_t block) noexcept {
    Announcement head;
    if (length < sizeof head) return swallow(record, length, block);
    std::memcpy(&head, payload, sizeof head);
    const std::uint64_t first = head.first;
    const bool well_formed = group_of(record.stream) == 0 && head.tag < kUserTagsEnd &&
                             first <= kFirstOctetsMax && first <= head.length &&
                             total_of(record) == sizeof head + first;
    if (!well_formed) return swallow(record, length, block);
    Arrival* arrival = new_arrival(record.source, record.stream, head.tag);
    if (arrival == nullptr) return Taken::kStalled;
    arrival->length = head.length;
    arrival->until = first;
    arrival->id = head.id;
    arrival->announced = true;
    // Memory for the first part comes before matching, because a stalled record is offered again.
    const auto octets = static_cast<std::uint32_t>(length - sizeof head);
    const bool posted = matcher_.find_posted(record.source, head.tag) != nullptr;
    if (!posted && octets > 0 && !reserve_heap(*arrival, octets)) {
        drop_arrival(*arrival);
        return Taken::kStalled;
    }
    begin_announced(*arrival, payload + sizeof head, octets);
    if (octets > 0) static_cast<void>(append(*arrival, payload + sizeof head, octets));
    if (block != kNoBlock) give_back(block);
    if (has(record, abi::kCompleteLast)) {
        part_ended(*arrival);
    } else {
        move_to(*arrival, Listed::kOpen);
    }
    return Taken::kYes;
}

// Finds the receive of a message that was announced.
void Inbox::begin_announced(Arrival& arrival, const unsigned char* head,
                            std::uint64_t octets) noexcept {
    Request* request =
        match({arrival.source, arrival.stream, arrival.tag, arrival.length, head, octets});
    if (request == nullptr) {
        add_unexpected(arrival);
        return;
    }
    join(arrival, *request);
    ask(arrival, std::min(arrival.length, request->capacity));
}

void Inbox::announced_part_ended(Arrival& arrival) noexcept {
    const std::uint64_t wanted = arrival.request != nullptr ? arrival.wanted : arrival.length;
    const bool more = arrival.asked && !arrival.ask_due && arrival.received < arrival.wanted;
    if (arrival.discarded && more) {
        move_to(arrival, Listed::kAsked);  // the rest is on its way
    } else if (arrival.discarded) {
        retire(arrival);
    } else if (arrival.received < wanted) {
        move_to(arrival, arrival.asked ? Listed::kAsked : Listed::kAnnounced);
    } else {
        arrival.whole = true;
        move_to(arrival, Listed::kNot);
        if (arrival.request == nullptr) return;  // unexpected or claimed
        finish(*arrival.request, arrival.length);
        retire(arrival);
    }
}

// A receive takes a message that was announced, of which `received` bytes are in its buffer.
void Inbox::give_announced(Arrival& arrival, Request& request) noexcept {
    arrival.wanted = std::min(arrival.length, request.capacity);
    if (!arrival.asked) ask(arrival, arrival.wanted);
    if (arrival.listed == Listed::kOpen ||
        (arrival.listed == Listed::kAsked && arrival.received < arrival.wanted)) {
        drop_data(arrival);  // the rest goes straight to the buffer
        judge_if_stopped(arrival.source);
        return;
    }
    finish(request, arrival.length);
    retire(arrival);
}

Arrival* Inbox::find_announced(std::uint16_t source, std::uint32_t id) noexcept {
    for (const Listed which : {Listed::kAsked, Listed::kAnnounced})
        for (Arrival* a = matcher_.list(source, which).front(); a != nullptr;
             a = OpenArrivals::next(*a))
            if (a->id == id) return a;
    return nullptr;
}

// The rest goes to the end of what was asked for, or, if it came unasked, of the message.
bool Inbox::fits_rest(const Arrival& arrival, std::uint64_t octets) const noexcept {
    if (octets == 0 || octets > arrival.length - arrival.received) return false;
    const std::uint64_t end = arrival.received + octets;
    return end == arrival.length || (arrival.asked && end == arrival.wanted);
}

Arrival* Inbox::find_rest_place(const abi::Beginning& message) noexcept {
    if (group_of(message.stream) != 0) return nullptr;
    Arrival* arrival = find_announced(message.source, static_cast<std::uint32_t>(message.tag));
    if (arrival == nullptr || arrival->request == nullptr || !fits_rest(*arrival, message.length))
        return nullptr;
    return arrival->request->capacity >= arrival->received + message.length ? arrival : nullptr;
}

Inbox::Taken Inbox::on_rest(const abi::CompletionRecord& record, const unsigned char* payload,
                            std::uint32_t length, std::uint32_t block) noexcept {
    Arrival* arrival = group_of(record.stream) != 0
                           ? nullptr
                           : find_announced(record.source, static_cast<std::uint32_t>(record.tag));
    if (arrival == nullptr || !fits_rest(*arrival, total_of(record)))
        return swallow(record, length, block);
    const std::uint64_t until = arrival->received + total_of(record);
    if (!append(*arrival, payload, length)) return Taken::kStalled;
    if (block != kNoBlock) give_back(block);
    arrival->asked = true;  // if it came unasked, nothing is left to ask for
    arrival->until = until;
    if (has(record, abi::kCompleteLast)) {
        part_ended(*arrival);
    } else {
        move_to(*arrival, Listed::kOpen);
    }
    return Taken::kYes;
}

// ---------------------------------------------------------------- messages to oneself

bool Inbox::announce_local(std::uint16_t self, std::uint64_t tag, std::uint64_t length,
                           std::uint32_t id) noexcept {
    Arrival* arrival = new_arrival(self, self, tag);
    if (arrival == nullptr) return false;
    arrival->length = length;
    arrival->id = id;
    arrival->announced = true;
    begin_announced(*arrival, nullptr, 0);
    if (!arrival->retired) {
        arrival->whole = length == 0;
        move_to(*arrival, arrival->asked ? Listed::kAsked : Listed::kAnnounced);
    }
    return true;
}

bool Inbox::finish_local(Arrival& arrival, const Pieces& payload) noexcept {
    if (arrival.retired) return true;
    if (arrival.request == nullptr && !reserve_heap(arrival, payload.length)) return false;
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
