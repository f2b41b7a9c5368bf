// SPDX-License-Identifier: BSD-3-Clause
#include "client/p2p/inbox.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ulc::client {
namespace {

bool has(const abi::CompletionRecord& record, abi::CompletionFlag flag) noexcept {
    return (record.flags & flag) != 0;
}

/// Bytes of a message of the endpoint to itself that are shown before it is copied.
constexpr std::size_t kHeadOctets = 64;

std::uint64_t tag_of(const abi::CompletionRecord& record) noexcept {
    return has(record, abi::kCompleteHasTag) ? record.tag : 0;
}

}  // namespace

Inbox::Inbox(const abi::Region& region, std::uint64_t memory_octets) noexcept
    : region_(region), releases_(region.release_producer()), memory_limit_(memory_octets) {}

// Requests of callers may be gone by now: only our own are touched.
Inbox::~Inbox() {
    for (std::uint16_t source = 0; source < matcher_.ranks(); ++source)
        for (const Listed which : {Listed::kOpen, Listed::kAnnounced, Listed::kAsked})
            while (Arrival* arrival = matcher_.list(source, which).pop_front())
                if (!arrival->unexpected && !arrival->claimed && arrival->storage == Storage::kHeap)
                    std::free(arrival->data);
    while (Arrival* arrival = matcher_.first_unexpected()) {
        matcher_.remove_unexpected(*arrival);
        if (arrival->storage == Storage::kHeap) std::free(arrival->data);
    }
    for (AllArrivals* list : {&taken_, &claimed_})
        while (Arrival* arrival = list->pop_front())
            if (arrival->storage == Storage::kHeap) std::free(arrival->data);
}

bool Inbox::begin_job(std::uint16_t ranks) noexcept {
    try {
        senders_.assign(ranks, Sender{});
        to_hold_.reserve(ranks);
        to_note_.reserve(ranks);
        stopped_.clear();
        stopped_.reserve(ranks);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return matcher_.begin_job(ranks);
}

// ---------------------------------------------------------------- memory

// Returns a node for a message, or nullptr when memory or the limit is used up.
Arrival* Inbox::new_arrival(std::uint16_t source, std::uint32_t stream,
                            std::uint64_t tag) noexcept {
    if (free_.empty()) {
        const std::uint64_t octets = kSlabArrivals * sizeof(Arrival);
        if (!slabs_.empty() && memory_used_ + octets > memory_limit_) return nullptr;
        auto* slab = new (std::nothrow) Arrival[kSlabArrivals];
        if (slab == nullptr) return nullptr;
        std::unique_ptr<Arrival[]> owned(slab);
        try {
            slabs_.push_back(std::move(owned));
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        for (std::size_t i = 0; i < kSlabArrivals; ++i) {
            slab[i] = Arrival{};
            free_.push_back(slab[i]);
        }
        memory_used_ += octets;
    }
    Arrival* arrival = free_.pop_front();
    *arrival = Arrival{};
    arrival->source = source;
    arrival->stream = stream;
    arrival->tag = tag;
    arrival->storage = Storage::kNone;
    senders_[source].memory += sizeof(Arrival);
    return arrival;
}

// Releases the data that the node holds.
void Inbox::drop_data(Arrival& arrival) noexcept {
    if (arrival.storage == Storage::kHeap) {
        std::free(arrival.data);
        memory_used_ -= arrival.heap_capacity;
        charge(arrival, arrival.heap_capacity, 0);
    } else if (arrival.storage == Storage::kArena) {
        arena_held_ -= static_cast<std::uint32_t>(arrival.length);
        give_back(arrival.arena_offset);
    }
    arrival.storage = Storage::kNone;
    arrival.data = nullptr;
    arrival.heap_capacity = 0;
    uncount(arrival);
}

// Releases the node and its data. It must be in no list.
void Inbox::drop_arrival(Arrival& arrival) noexcept {
    drop_data(arrival);
    senders_[arrival.source].memory -= sizeof(Arrival);
    free_.push_back(arrival);
    judge_if_stopped(arrival.source);
}

// Makes the copy able to hold `octets`; it at least doubles. Returns false for lack of memory, or
// at the limit.
bool Inbox::reserve_heap(Arrival& arrival, std::uint64_t octets) noexcept {
    if (arrival.storage == Storage::kHeap && octets <= arrival.heap_capacity) return true;
    const std::uint64_t before = arrival.storage == Storage::kHeap ? arrival.heap_capacity : 0;
    const std::uint64_t wanted = std::min(std::max(octets, before * 2), arrival.length);
    const std::uint64_t capacity = std::max<std::uint64_t>(std::max(octets, wanted), 1);
    if (memory_used_ - before + capacity > memory_limit_) return false;
    void* data = std::realloc(before == 0 ? nullptr : arrival.data, capacity);
    if (data == nullptr) return false;
    arrival.data = static_cast<unsigned char*>(data);
    arrival.heap_capacity = capacity;
    arrival.storage = Storage::kHeap;
    memory_used_ = memory_used_ - before + capacity;
    charge(arrival, before, capacity);
    return true;
}

// ---------------------------------------------------------------- arrival

const unsigned char* Inbox::payload_of(const abi::CompletionRecord& record, std::uint32_t& length,
                                       std::uint32_t& block) const noexcept {
    if (has(record, abi::kCompleteInline)) {
        length = record.inline_length;
        block = kNoBlock;
        return length <= abi::kInlineOctetsMax ? record.body.inline_octets : nullptr;
    }
    length = record.body.block.length;
    block = record.body.block.offset;
    if (block % kCacheLine != 0) return nullptr;
    if (has(record, abi::kCompleteFrame)) [[unlikely]]
        return region_.reaches_process()
                   ? reinterpret_cast<const unsigned char*>(record.body.block.address)
                   : nullptr;
    return reinterpret_cast<const unsigned char*>(region_.rx(block, std::max(length, 4U)));
}

Inbox::Taken Inbox::on_message(const abi::CompletionRecord& record) noexcept {
    if (record.source >= matcher_.ranks()) return Taken::kCorrupt;
    matcher_.heard(record.source);
    if (record.status != 0) return on_broken(record);
    if (has(record, abi::kCompletePlaced)) return on_placed(record);
    std::uint32_t length = 0;
    std::uint32_t block = kNoBlock;
    const unsigned char* payload = payload_of(record, length, block);
    if (payload == nullptr) return Taken::kCorrupt;
    if (!has(record, abi::kCompleteFirst)) return on_next(record, payload, length, block);
    if (has(record, abi::kCompleteLast)) return on_whole(record, payload, length, block);
    return on_first(record, payload, length, block);
}

void Inbox::finish(Request& request, std::uint64_t length) noexcept {
    request.length = length;
    const bool cut = length > request.capacity;
    request.done(cut ? ULC_ERR_TRUNCATED : ULC_OK);
    if (cut) report(ULC_ERR_TRUNCATED, request.source, length);
}

// Returns the request that takes the message, out of its list; nullptr: none is posted.
Request* Inbox::match(const Beginning& message) noexcept {
    Request* request = matcher_.match_posted(message.source, message.tag);
    const bool many = request != nullptr && request->many;
    return many ? &posted_part(*request, message) : request;
}

Inbox::Taken Inbox::on_whole(const abi::CompletionRecord& record, const unsigned char* payload,
                             std::uint32_t length, std::uint32_t block) noexcept {
    const std::uint64_t tag = tag_of(record);
    if (Request* request = match({record.source, record.stream, tag, length, payload, length})) {
        copy_into(*request, 0, payload, length);
        describe(*request, record.source, record.stream, tag);
        finish(*request, length);
        if (block != kNoBlock) give_back(block);
        return Taken::kYes;
    }
    Arrival* arrival = new_arrival(record.source, record.stream, tag);
    if (arrival == nullptr) return Taken::kStalled;
    arrival->length = length;
    arrival->received = length;
    arrival->whole = true;
    if (block == kNoBlock) {
        arrival->storage = Storage::kInline;
        arrival->data = arrival->inline_octets;
        std::memcpy(arrival->data, payload, length);
    } else if (!has(record, abi::kCompleteReserve) &&
               arena_held_ + length <= region_.layout().rx_arena_octets / 2) {
        arrival->storage = Storage::kArena;
        arrival->arena_offset = block;
        arrival->data = const_cast<unsigned char*>(payload);  // only read
        arena_held_ += length;
    } else if (reserve_heap(*arrival, length)) {
        std::memcpy(arrival->data, payload, length);
        give_back(block);
    } else {
        drop_arrival(*arrival);
        return Taken::kStalled;
    }
    count(*arrival, length);
    add_unexpected(*arrival);
    return Taken::kYes;
}

Inbox::Taken Inbox::on_first(const abi::CompletionRecord& record, const unsigned char* payload,
                             std::uint32_t length, std::uint32_t block) noexcept {
    const std::uint64_t total =
        has(record, abi::kCompleteInline) ? length : record.body.block.message_length;
    if (total <= length || find_open(record) != nullptr) return Taken::kCorrupt;
    Arrival* arrival = new_arrival(record.source, record.stream, tag_of(record));
    if (arrival == nullptr) return Taken::kStalled;
    arrival->length = total;
    arrival->until = total;
    if (Request* request =
            match({record.source, record.stream, arrival->tag, total, payload, length}))
        join(*arrival, *request);
    if (!append(*arrival, payload, length)) {  // only without a request: nothing is lost
        drop_arrival(*arrival);
        return Taken::kStalled;
    }
    if (block != kNoBlock) give_back(block);
    move_to(*arrival, Listed::kOpen);
    if (arrival->request == nullptr) add_unexpected(*arrival);
    return Taken::kYes;
}

Inbox::Taken Inbox::on_next(const abi::CompletionRecord& record, const unsigned char* payload,
                            std::uint32_t length, std::uint32_t block) noexcept {
    Arrival* arrival = find_open(record);
    const bool last = has(record, abi::kCompleteLast);
    if (arrival == nullptr || arrival->placed || length > arrival->until - arrival->received)
        return Taken::kCorrupt;
    if (last != (arrival->received + length == arrival->until)) return Taken::kCorrupt;
    if (!append(*arrival, payload, length)) return Taken::kStalled;
    if (block != kNoBlock) give_back(block);
    if (!last) return Taken::kYes;
    part_ended(*arrival);
    return Taken::kYes;
}

Request* Inbox::find_receive(const abi::Beginning& message) noexcept {
    Request* request = matcher_.find_posted(message.source, message.tag);
    if (request != nullptr && request->many) return nullptr;
    return request != nullptr && request->capacity >= message.length ? request : nullptr;
}

abi::Place Inbox::find_place(const abi::Beginning& message) noexcept {
    if (message.source >= matcher_.ranks()) return {};
    if (is_rest(message.tag)) {
        const Arrival* arrival = find_rest_place(message);
        return arrival == nullptr ? abi::Place{} : place_of(*arrival->request, arrival->received);
    }
    const Request* request = find_receive(message);
    return request == nullptr ? abi::Place{} : place_of(*request, 0);
}

abi::Place Inbox::place(const abi::Beginning& message) noexcept {
    if (message.source >= matcher_.ranks()) return {};
    Arrival* arrival = nullptr;
    if (is_rest(message.tag)) {
        arrival = find_rest_place(message);
        if (arrival == nullptr) return {};
    } else {
        Request* request = find_receive(message);
        if (request == nullptr) return {};
        arrival = new_arrival(message.source, message.stream, message.tag);
        if (arrival == nullptr) return {};
        matcher_.unpost(*request);
        join(*arrival, *request);
        arrival->length = message.length;
    }
    arrival->until = arrival->received + message.length;
    arrival->placed = true;
    move_to(*arrival, Listed::kOpen);
    return place_of(*arrival->request, arrival->received);
}

// Handles a message that the engine has put at the place named by place().
Inbox::Taken Inbox::on_placed(const abi::CompletionRecord& record) noexcept {
    Arrival* arrival = find_open(record);
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
    Arrival* arrival = find_open(record);
    if (arrival == nullptr) return Taken::kYes;
    move_to(*arrival, Listed::kNot);
    break_off(*arrival, record.status);
    return Taken::kYes;
}

// Ends a message, which is in no list of its source, and of which nothing more comes. A claimed one
// waits for its receive. A sender that waits for an Ask gets one, for nothing.
void Inbox::break_off(Arrival& arrival, int error) noexcept {
    if (arrival.announced && !arrival.asked) ask(arrival, 0);
    if (arrival.claimed) {
        arrival.whole = true;
        arrival.error = error;
        return;
    }
    if (arrival.request != nullptr) arrival.request->done(error);
    if (arrival.unexpected) matcher_.remove_unexpected(arrival);
    retire(arrival);
}

// Notes that the message that came in chunks, or was written by the engine, has ended.
void Inbox::part_ended(Arrival& arrival) noexcept {
    if (arrival.announced) {
        announced_part_ended(arrival);
        return;
    }
    move_to(arrival, Listed::kNot);
    arrival.whole = true;
    if (arrival.request != nullptr) finish(*arrival.request, arrival.length);
    if (arrival.request != nullptr || arrival.discarded) drop_arrival(arrival);
}

// Takes the message out of the list of its source that it is in, and puts it into another.
void Inbox::move_to(Arrival& arrival, Listed where) noexcept {
    if (arrival.listed != Listed::kNot)
        matcher_.list(arrival.source, arrival.listed).remove(arrival);
    if (arrival.listed == Listed::kAsked) --asked_;
    if (where == Listed::kAsked) ++asked_;
    arrival.listed = where;
    if (where != Listed::kNot) matcher_.list(arrival.source, where).push_back(arrival);
}

bool Inbox::append(Arrival& arrival, const unsigned char* payload, std::uint32_t length) noexcept {
    if (arrival.request != nullptr) {
        copy_into(*arrival.request, arrival.received, payload, length);
    } else if (!arrival.discarded) {
        if (!reserve_heap(arrival, arrival.received + length)) return false;
        std::memcpy(arrival.data + arrival.received, payload, length);
        count(arrival, length);
    }
    arrival.received += length;
    return true;
}

Arrival* Inbox::find_open(const abi::CompletionRecord& record) noexcept {
    for (Arrival* a = matcher_.open(record.source).front(); a != nullptr;
         a = OpenArrivals::next(*a))
        if (a->stream == record.stream) return a;
    return nullptr;
}

bool Inbox::deliver(std::uint16_t source, std::uint64_t tag, const Pieces& payload,
                    Counts counts) noexcept {
    const std::uint64_t length = payload.length;
    Request whole{};
    whole.lies_in(payload);
    unsigned char head[kHeadOctets];
    const std::uint64_t octets = std::min<std::uint64_t>(length, sizeof head);
    if (octets > 0) whole.read(0, head, octets);
    if (Request* request = match({source, source, tag, length, head, octets})) {
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
        finish(*request, length);
        return true;
    }
    Arrival* arrival = new_arrival(source, source, tag);
    if (arrival == nullptr) return false;
    arrival->length = length;
    if (length <= abi::kInlineOctetsMax) {
        arrival->storage = Storage::kInline;
        arrival->data = arrival->inline_octets;
    } else if (!reserve_heap(*arrival, length)) {
        drop_arrival(*arrival);
        return false;
    }
    if (length > 0) whole.read(0, arrival->data, length);
    arrival->received = length;
    arrival->whole = true;
    if (counts == Counts::kNo) {
        matcher_.add_unexpected(*arrival);
        return true;
    }
    count(*arrival, length);
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
        drop_data(arrival);  // the rest goes straight to the buffer
        judge_if_stopped(arrival.source);
        return;
    }
    if (arrival.error != 0) {
        request.done(arrival.error);
    } else {
        finish(request, arrival.length);
    }
    retire(arrival);
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
        while (Arrival* arrival = matcher_.list(source, which).front()) {
            // Its engine has left the place, but may not have reported that.
            if (arrival->placed && which == Listed::kOpen && arrival->request != nullptr)
                static_cast<void>(forget_place(*arrival));
            move_to(*arrival, Listed::kNot);
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
        retire(*arrival);
    }
    senders_[source].told = false;  // the next one has not been asked to hold
}

void Inbox::fail_all(int error) noexcept {
    for (std::uint16_t source = 0; source < matcher_.ranks(); ++source)
        peer_gone(source, error);
    while (Request* request = matcher_.take_posted(kAnySource))
        request->done(error);
}

}  // namespace ulc::client
