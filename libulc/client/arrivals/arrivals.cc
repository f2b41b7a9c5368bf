// SPDX-License-Identifier: BSD-3-Clause
#include "client/arrivals/arrivals.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/check.h"

namespace ulc::client {

Arrivals::~Arrivals() {
    for (const auto& slab : slabs_)
        for (std::size_t i = 0; i < kSlabArrivals; ++i)
            if (slab[i].storage == Storage::kHeap) std::free(slab[i].data);
}

bool Arrivals::begin_job(std::uint16_t ranks) noexcept {
    try {
        sources_.assign(ranks, Source{});
    } catch (const std::bad_alloc&) {
        return false;
    }
    return shares_.begin_job(ranks);
}

const unsigned char* Arrivals::payload_of(const abi::CompletionRecord& record,
                                          std::uint32_t& length,
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

// ---------------------------------------------------------------- memory

Arrival* Arrivals::create(std::uint16_t source, std::uint32_t stream, std::uint64_t tag) noexcept {
    if (free_.empty()) {
        const std::uint64_t octets = kSlabArrivals * sizeof(Arrival);
        if (!slabs_.empty() && shares_.used() + octets > shares_.limit()) return nullptr;
        try {
            slabs_.push_back(std::make_unique<Arrival[]>(kSlabArrivals));
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        for (std::size_t i = 0; i < kSlabArrivals; ++i)
            free_.push_back(slabs_.back()[i]);
        shares_.take_always(octets);
    }
    Arrival* arrival = free_.pop_front();
    *arrival = Arrival{};
    arrival->source = source;
    arrival->stream = stream;
    arrival->tag = tag;
    arrival->storage = Storage::kNone;
    shares_.charge(source, 0, sizeof(Arrival));
    return arrival;
}

void Arrivals::drop_data(Arrival& arrival) noexcept {
    if (arrival.storage == Storage::kHeap) {
        std::free(arrival.data);
        shares_.give_back(arrival.heap_capacity);
        if (!arrival.awaited) shares_.charge(arrival.source, arrival.heap_capacity, 0);
    } else if (arrival.storage == Storage::kArena) {
        arena_held_ -= static_cast<std::uint32_t>(arrival.length);
        give_back(arrival.arena_offset);
    }
    arrival.storage = Storage::kNone;
    arrival.data = nullptr;
    arrival.heap_capacity = 0;
    shares_.uncount(arrival);
}

void Arrivals::drop(Arrival& arrival) noexcept {
    drop_data(arrival);
    arrival.storage = Storage::kFree;
    shares_.charge(arrival.source, sizeof(Arrival), 0);
    free_.push_back(arrival);
    shares_.judge_if_stopped(arrival.source);
}

bool Arrivals::reserve(Arrival& arrival, std::uint64_t octets) noexcept {
    if (arrival.storage == Storage::kHeap && octets <= arrival.heap_capacity) return true;
    const std::uint64_t before = arrival.storage == Storage::kHeap ? arrival.heap_capacity : 0;
    const std::uint64_t wanted = std::min(std::max(octets, before * 2), arrival.length);
    const std::uint64_t capacity = std::max<std::uint64_t>(std::max(octets, wanted), 1);
    if (!shares_.resize(before, capacity)) return false;
    void* data = std::realloc(before == 0 ? nullptr : arrival.data, capacity);
    if (data == nullptr) {
        shares_.give_back(capacity - before);
        return false;
    }
    arrival.data = static_cast<unsigned char*>(data);
    arrival.heap_capacity = capacity;
    arrival.storage = Storage::kHeap;
    if (!arrival.awaited) shares_.charge(arrival.source, before, capacity);
    return true;
}

bool Arrivals::keep_block(Arrival& arrival, std::uint32_t block,
                          const unsigned char* payload) noexcept {
    const auto length = static_cast<std::uint32_t>(arrival.length);
    if (arena_held_ + length > region_.layout().rx_arena_octets / 2) return false;
    arrival.storage = Storage::kArena;
    arrival.arena_offset = block;
    arrival.data = const_cast<unsigned char*>(payload);  // only read
    arena_held_ += length;
    return true;
}

Taken Arrivals::swallow(const abi::CompletionRecord& record, std::uint32_t length,
                        std::uint32_t block) noexcept {
    if (!has(record, abi::kCompleteLast)) {
        Arrival* arrival = create(record.source, record.stream, record.tag);
        if (arrival == nullptr) return Taken::kStalled;
        arrival->length = total_of(record);
        arrival->until = arrival->length;
        arrival->received = length;
        arrival->discarded = true;
        move_to(*arrival, Listed::kOpen);
    }
    ++malformed_;
    give_back(block);
    return Taken::kYes;
}

void Arrivals::await(Arrival& arrival) noexcept {
    if (arrival.awaited) return;
    shares_.charge(arrival.source, arrival.heap_capacity, 0);
    arrival.awaited = true;
    shares_.judge_if_stopped(arrival.source);
}

void Arrivals::retire(Arrival& arrival) noexcept {
    move_to(arrival, Listed::kNot);
    arrival.request = nullptr;
    if (!arrival.ask_due) {
        drop(arrival);
        return;
    }
    arrival.retired = true;
    drop_data(arrival);
}

// ---------------------------------------------------------------- lists

void Arrivals::move_to(Arrival& arrival, Listed where) noexcept {
    if (arrival.listed != Listed::kNot) list(arrival.source, arrival.listed).remove(arrival);
    if (arrival.listed == Listed::kAsked) --asked_;
    if (where == Listed::kAsked) ++asked_;
    arrival.listed = where;
    if (where != Listed::kNot) list(arrival.source, where).push_back(arrival);
}

Arrival* Arrivals::find_open(std::uint16_t source, std::uint32_t stream) const noexcept {
    for (Arrival* a = sources_[source].open.front(); a != nullptr; a = OpenArrivals::next(*a))
        if (a->stream == stream) return a;
    return nullptr;
}

Arrival* Arrivals::find_announced(std::uint16_t source, std::uint32_t id) noexcept {
    for (const Listed which : {Listed::kAsked, Listed::kAnnounced})
        for (Arrival* a = first(source, which); a != nullptr; a = OpenArrivals::next(*a))
            if (a->id == id) return a;
    return nullptr;
}

Arrival* Arrivals::find_rest_place(const abi::Beginning& message) noexcept {
    if (group_of(message.stream) != 0) return nullptr;
    Arrival* arrival = find_announced(message.source, static_cast<std::uint32_t>(message.tag));
    if (arrival == nullptr || arrival->request == nullptr || !fits_rest(*arrival, message.length))
        return nullptr;
    return arrival->request->capacity >= arrival->received + message.length ? arrival : nullptr;
}

Arrival* Arrivals::find_matched(const Request& request) noexcept {
    for (const Listed which : {Listed::kOpen, Listed::kAsked, Listed::kAnnounced})
        for (Arrival* a = first(request.source, which); a != nullptr; a = OpenArrivals::next(*a))
            if (a->request == &request) return a;
    return nullptr;
}

bool Arrivals::has_wanted(std::uint16_t source) const noexcept {
    for (const Arrival* a = sources_[source].open.front(); a != nullptr; a = OpenArrivals::next(*a))
        if (a->request != nullptr || a->awaited || a->discarded) return true;
    return false;
}

// ---------------------------------------------------------------- Asks

void Arrivals::ask(Arrival& arrival, std::uint64_t up_to) noexcept {
    arrival.wanted = up_to;
    arrival.asked = true;
    arrival.ask_due = true;
    to_ask_.push_back(arrival);
    if (arrival.listed == Listed::kAnnounced) move_to(arrival, Listed::kAsked);
}

void Arrivals::on_asked(Arrival& arrival) noexcept {
    to_ask_.remove(arrival);
    arrival.ask_due = false;
    if (arrival.retired) drop(arrival);
}

// ---------------------------------------------------------------- invariants

void Arrivals::check_invariants() const {
    std::vector<std::uint64_t> memory(sources_.size());
    std::uint64_t used = slabs_.size() * kSlabArrivals * sizeof(Arrival);
    std::uint64_t listed_asked = 0;
    std::uint64_t arena = 0;
    std::size_t free = 0;
    for (const Arrival* a = free_.front(); a != nullptr; a = AllArrivals::next(*a))
        ++free;
    std::size_t in_use = 0;
    for (std::size_t n = 0; n < slabs_.size() * kSlabArrivals; ++n) {
        const Arrival& arrival = slabs_[n / kSlabArrivals][n % kSlabArrivals];
        if (arrival.storage == Storage::kFree) continue;
        ++in_use;
        ULC_CHECK(arrival.source < sources_.size());
        ULC_CHECK(arrival.received <= arrival.length);
        ULC_CHECK((arrival.storage == Storage::kHeap) == (arrival.heap_capacity > 0));
        ULC_CHECK(!arrival.retired || (arrival.ask_due && arrival.listed == Listed::kNot));
        memory[arrival.source] += sizeof(Arrival) + (arrival.awaited ? 0 : arrival.heap_capacity);
        used += arrival.heap_capacity;
        listed_asked += arrival.listed == Listed::kAsked ? 1 : 0;
        arena += arrival.storage == Storage::kArena ? arrival.length : 0;
    }
    ULC_CHECK(free + in_use == slabs_.size() * kSlabArrivals);
    ULC_CHECK(used == shares_.used());
    ULC_CHECK(listed_asked == asked_);
    ULC_CHECK(arena == arena_held_);
    shares_.check_invariants(memory);
}

}  // namespace ulc::client
