// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/outlet.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "endpoint/offload.h"

namespace ulc::endpoint {
namespace {

constexpr std::uint32_t kChunkOctets = 16384;  ///< chunk of a message that does not get one block
constexpr unsigned kSourceBurstMax = 16;       ///< packets of one source before the next one's turn
constexpr unsigned kReclaimMax = 256;          ///< blocks; more than a run delivers

}  // namespace

Outlet::Outlet(const abi::Region& region, Counters& counters)
    : completions_(region.completion_producer()),
      ends_(region.send_done_producer()),
      counters_(counters),
      region_(region),
      releases_(region.release_consumer()),
      arena_(region.layout().rx_arena_octets) {}

abi::CompletionRecord* Outlet::claim_report(abi::CompletionKind kind) noexcept {
    abi::CompletionRecord* out = completions_.claim();
    if (out == nullptr) return nullptr;
    out->kind = kind;
    out->flags = 0;
    out->inline_length = 0;
    out->source = kNoRank;
    out->status = 0;
    out->stream = 0;
    out->tag = 0;
    return out;
}

void Outlet::begin_job(std::uint16_t ranks, std::uint16_t mtu, bool packs) {
    index_.assign(ranks, 0);
    sources_.clear();
    places_ = 0;
    reserves_.assign(1, {});
    mtu_ = mtu;
    packs_ = packs;
    if (std::uint64_t{ranks} * mtu_ <= arena_.octets() / 2) return;
    reserves_[0].block = arena_.reserve(mtu_, 0);
    reserves_[0].free = reserves_[0].block != RxArena::kNone;
}

// Returns 0 if reserves already have half of the arena.
std::uint16_t Outlet::make_reserve() {
    if (reserved_octets_ + mtu_ > arena_.octets() / 2) return 0;
    const auto index = static_cast<std::uint16_t>(reserves_.size());
    const std::uint32_t block = arena_.reserve(mtu_, index);
    if (block == RxArena::kNone) return 0;
    reserves_.push_back({block, true});
    reserved_octets_ += arena_.capacity(block);
    return index;
}

Outlet::Source& Outlet::source_of(Rank rank) {
    std::uint16_t& index = index_[rank];
    if (index == 0) {
        sources_.emplace_back();
        index = static_cast<std::uint16_t>(sources_.size());
        sources_.back().reserve = make_reserve();
    }
    return sources_[index - 1U];
}

[[gnu::flatten]] bool Outlet::run(urtp::Transport& member, unsigned budget, Nanos now) {
    const bool was_blocked = blocked_;
    bool moved = false;
    Rank first_blocked = kNoRank;
    blocked_ = false;
    unfinished_ = false;
    bool waits = false;  // some source has more, and is not stopped
    while (true) {
        const Rank rank = member.next_source();
        if (rank == kNoRank) break;
        if (rank == first_blocked || budget == 0) {  // every other source had its turn
            unfinished_ = waits || budget == 0;
            break;
        }
        if (is_stopped(rank)) [[unlikely]] {
            if (first_blocked == kNoRank) first_blocked = rank;
            continue;
        }
        urtp::ReadyPacket packet;
        bool more = true;
        for (unsigned n = 0; more && n < kSourceBurstMax && budget > 0; ++n) {
            if (!member.front(rank, packet)) break;
            if (waits_for_receive(rank, packet, now)) [[unlikely]] {
                waits = true;
                if (first_blocked == kNoRank) first_blocked = rank;
                break;
            }
            if (!deliver(rank, packet)) {
                blocked_ = true;
                waits = true;
                moved |= std::exchange(delivered_part_, false);
                if (first_blocked == kNoRank) first_blocked = rank;
                break;
            }
            more = member.pop(rank, now) && !is_stopped(rank);
            waits |= more && n + 1 == kSourceBurstMax;
            --budget;
            moved = true;
        }
        if (blocked_ && completions_.room() == 0) {  // no source can be served
            unfinished_ = true;
            break;
        }
    }
    if (blocked_ && !was_blocked) counters_.add(Counter::client_stalled);
    return moved;
}

bool Outlet::discard(urtp::Transport& member, unsigned budget, Nanos now) {
    bool moved = false;
    for (; budget > 0; --budget) {
        const Rank rank = member.next_source();
        if (rank == kNoRank) break;
        member.pop(rank, now);
        moved = true;
    }
    return moved;
}

bool Outlet::deliver(Rank rank, const urtp::ReadyPacket& packet) {
    Source& source = source_of(rank);
    const bool broken_off = packet.first() || (packet.after_loss && packet.stream == source.stream);
    if (source.open && broken_off && !abandon(rank, source)) return false;
    if (packet.first() && packet.last())
        return packs_ ? deliver_list(rank, source, packet) : deliver_whole(rank, source, packet);
    if (packet.first()) source.sink = sink_of(rank, packet);
    if (source.sink) {
        deliver_to_schedule(source, packet);
        return true;
    }
    if (packet.first()) {
        source.place = place_of(rank, packet);
        open_message(source, packet);
    } else if (source.open && source.forgotten && continues(source, packet)) [[unlikely]] {
        source.done += packet.length;
        source.open = !packet.last();
        return true;
    }
    if (!source.open) {
        counters_.add(Counter::drop_framing);
        return true;
    }
    if (!continues(source, packet) || packet.length == 0) {
        if (!abandon(rank, source)) return false;
        counters_.add(Counter::drop_framing);
        return true;
    }
    if (source.place) return deliver_placed(rank, source, packet);
    return append(rank, source, packet);
}

bool Outlet::deliver_whole(Rank rank, Source& source, const urtp::ReadyPacket& packet) {
    source.sink = sink_of(rank, packet);
    if (source.sink) {
        deliver_to_schedule(source, packet);
        return true;
    }
    abi::CompletionRecord* out = completions_.claim();
    if (out == nullptr) return false;
    source.place = place_of(rank, packet);
    if (source.place) {
        open_message(source, packet);
        return deliver_placed(rank, source, packet);
    }
    const Claim claim =
        packet.length <= abi::kInlineOctetsMax ? Claim{out} : claim_single(source, packet, *out);
    if (claim.out == nullptr) return false;
    deliver_to(claim, rank,
               {packet.stream, packet.length, packet.payload, packet.tag, packet.has_tag()},
               packet.segment);
    counters_.add(Counter::completions);
    counters_.add(Counter::messages_received);
    return true;
}

// Checks that a packet continues the open message: in its stream, and not beyond its length, which
// its last packet fills.
bool Outlet::continues(const Source& source, const urtp::ReadyPacket& packet) noexcept {
    const std::uint64_t after = source.done + source.filled + packet.length;
    return packet.stream == source.stream &&
           (packet.last() ? after == source.length : after < source.length);
}

Sink Outlet::sink_of(Rank rank, const urtp::ReadyPacket& packet) noexcept {
    if (offloads_ == nullptr || !packet.has_tag() || !is_operation(packet.tag)) return {};
    return offloads_->match(rank, packet.tag,
                            packet.last() ? packet.length : packet.message_length);
}

// The schedule decides whether the message may go to its memory; this only counts.
void Outlet::deliver_to_schedule(Source& source, const urtp::ReadyPacket& packet) {
    if (packet.first()) {
        source.open = true;
        source.length = packet.last() ? packet.length : packet.message_length;
        source.done = 0;
        source.filled = 0;
        source.stream = packet.stream;
    }
    const bool honest = continues(source, packet);
    if (honest) offloads_->write(source.sink, source.done, packet.payload, packet.length);
    source.done += packet.length;
    if (honest && !packet.last()) return;
    counters_.add(honest ? Counter::messages_received : Counter::drop_framing);
    offloads_->arrived(source.sink, !honest);
    source.sink = {};
    source.open = false;
}

abi::Beginning Outlet::beginning_of(Rank rank, const urtp::ReadyPacket& packet) const noexcept {
    return {.source = rank,
            .stream = packet.stream,
            .tag = packet.has_tag() ? packet.tag : 0,
            .length = packet.last() ? packet.length : packet.message_length,
            .taken_at_least = passed_at_};
}

abi::Place Outlet::place_of(Rank rank, const urtp::ReadyPacket& packet) {
    const abi::Beginning message = beginning_of(rank, packet);
    if (placer_ == nullptr || message.length < abi::kPlacedMin) return {};
    const abi::Place place = placer_->place(placer_->context, message);
    if (place) ++places_;
    return place;
}

void Outlet::leave_place(Source& source) noexcept {
    if (!source.place) return;
    source.place = {};
    --places_;
}

// Adds a block to a record that was claimed, for a message that it has no space for, of the common
// part only. Without a block, takes the record away. A message that the client may have named a
// place for goes there by the general path.
[[gnu::noinline]] void Outlet::claim_block(Claim& claim, std::uint32_t length,
                                           bool framed) noexcept {
    if (claim.out == nullptr) return;
    const bool may_be_placed = placer_ != nullptr && length >= abi::kPlacedMin;
    if (!may_be_placed && reclaim()) {
        claim.lends = framed && loans_.may_lend();
        claim.block = arena_.allocate(claim.lends ? 1 : length);
    }
    if (claim.block == RxArena::kNone) claim.out = nullptr;
}

// Delivers a message into its block.
[[gnu::noinline]] void Outlet::deliver_block(Rank rank, const urtp::ShortMessage& message,
                                             const Claim& claim, Segment* frame) noexcept {
    std::uint64_t address = 0;
    if (claim.lends) [[unlikely]] {
        loans_.lend(claim.block, *frame);
        address = reinterpret_cast<std::uintptr_t>(message.payload);
        counters_.add(Counter::frames_lent);
    } else {
        std::memcpy(region_.rx(claim.block, message.octets), message.payload, message.octets);
        counters_.add(Counter::rx_copied_bytes, message.octets);
    }
    const auto flags =
        static_cast<std::uint8_t>(kWhole | (claim.is_reserve ? abi::kCompleteReserve : 0) |
                                  (claim.lends ? abi::kCompleteFrame : 0));
    complete(*claim.out, rank, message,
             {flags, {claim.block, message.octets, message.octets, 0, 0, address}});
}

// A packet that carries several messages, or whose payload is not in its frame, is copied.
Claim Outlet::claim_single(Source& source, const urtp::ReadyPacket& packet,
                           abi::CompletionRecord& out) noexcept {
    const bool framed = packet.segment != nullptr && packet.segment->tail == nullptr && !packs_;
    Claim claim{&out};
    if (framed && loans_.may_lend()) claim.block = arena_.allocate(1);
    claim.lends = claim.block != RxArena::kNone;
    if (claim.lends) {
        loans_.hold(*packet.segment);
    } else {
        claim.block = allocate(source, packet.length, claim.is_reserve);
    }
    if (claim.block == RxArena::kNone) claim.out = nullptr;
    return claim;
}

void Outlet::open_message(Source& source, const urtp::ReadyPacket& packet) {
    source.open = true;
    source.length = packet.last() ? packet.length : packet.message_length;
    source.done = 0;
    source.filled = 0;
    source.tag = packet.tag;
    source.has_tag = packet.has_tag();
    source.stream = packet.stream;
    source.whole = false;
    source.forgotten = false;
    if (source.place) return;
    if (source.length == 0 || source.length > arena_.octets() / 2) return;
    const auto octets = static_cast<std::uint32_t>(source.length);
    source.block = arena_.allocate(octets);
    source.block_is_reserve = false;
    source.whole = source.block != RxArena::kNone;
    source.capacity = source.whole ? octets : 0;
}

bool Outlet::append(Rank rank, Source& source, const urtp::ReadyPacket& packet) {
    // The completions that this packet may need: its own, and one for the chunk before it.
    const bool overflows =
        source.block != RxArena::kNone && source.capacity - source.filled < packet.length;
    const std::uint32_t needed = (overflows ? 1U : 0U) + (packet.last() ? 1U : 0U);
    if (needed > 0 && completions_.room(needed) < needed) return false;
    if (overflows) {
        flush(rank, source, *completions_.claim(), false);
        counters_.add(Counter::completions);
    }
    if (source.block == RxArena::kNone && !next_chunk(source, packet.length)) return false;
    if (source.block_is_reserve && completions_.room() == 0) {  // it goes to the client at once
        give_back(source);
        return false;
    }
    put_in_block(source, {packet.payload, packet.length});
    if (!packet.last() && !source.block_is_reserve) return true;
    flush(rank, source, *completions_.claim(), packet.last());
    counters_.add(Counter::completions);
    if (!packet.last()) return true;
    source.open = false;
    counters_.add(Counter::messages_received);
    return true;
}

void Outlet::put_in_block(Source& source, std::span<const std::byte> payload) noexcept {
    std::memcpy(region_.rx(source.block, source.capacity) + source.filled, payload.data(),
                payload.size());
    counters_.add(Counter::rx_copied_bytes, payload.size());
    source.filled += static_cast<std::uint32_t>(payload.size());
}

bool Outlet::take_part(Rank rank, std::span<const std::byte> payload) noexcept {
    Source& source = sources_[index_[rank] - 1U];
    if (payload.empty() || payload.size() >= source.length - source.done - source.filled)
        return false;
    if (source.place) {
        put_placed(source, payload);
        return true;
    }
    if (source.capacity - source.filled < payload.size()) return false;
    put_in_block(source, payload);
    return true;
}

// Takes a block for the next chunk: of the usual size if possible, else for one packet.
bool Outlet::next_chunk(Source& source, std::uint32_t packet_octets) {
    const std::uint64_t rest = source.length - source.done;
    const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, kChunkOctets));
    source.block_is_reserve = false;
    source.block = arena_.allocate(std::max(wanted, packet_octets));
    if (source.block != RxArena::kNone) {
        source.capacity = std::max(wanted, packet_octets);
        return true;
    }
    source.block = allocate(source, packet_octets, source.block_is_reserve);
    source.capacity = packet_octets;
    return source.block != RxArena::kNone;
}

// Passes the block being filled to the client.
void Outlet::flush(Rank rank, Source& source, abi::CompletionRecord& out, bool last) noexcept {
    const auto flags = static_cast<std::uint8_t>(
        (source.done == 0 ? abi::kCompleteFirst : 0) | (last ? abi::kCompleteLast : 0) |
        (source.block_is_reserve ? abi::kCompleteReserve : 0));
    complete(out, rank, {source.stream, source.filled, nullptr, source.tag, source.has_tag},
             {flags, {source.block, source.filled, source.length, 0, source.done, 0}});
    source.done += source.filled;
    source.filled = 0;
    source.block = RxArena::kNone;
    source.block_is_reserve = false;
}

// Ends a message that its source aborted. The client gets an error if it has seen a part. Returns
// false if there is no slot.
bool Outlet::abandon(Rank rank, Source& source) {
    if (source.sink) {
        offloads_->arrived(source.sink, true);
        source.sink = {};
        source.open = false;
        return true;
    }
    if ((source.done > 0 && !source.forgotten) || source.place) {
        abi::CompletionRecord* out = completions_.claim();
        if (out == nullptr) return false;
        complete(*out, rank, {.stream = source.stream, .tag = source.tag},
                 {.flags = abi::kCompleteInline | abi::kCompleteLast, .status = Err::kCorrupt});
        counters_.add(Counter::completions);
    }
    give_back(source);
    leave_place(source);
    source.open = false;
    return true;
}

// Allocates from the common part, else from the reserve that the source may use.
std::uint32_t Outlet::allocate(Source& source, std::uint32_t octets, bool& is_reserve) {
    is_reserve = false;
    const std::uint32_t block = arena_.allocate(octets);
    Reserve& reserve = reserves_[source.reserve];
    if (block != RxArena::kNone || !reserve.free || octets > arena_.capacity(reserve.block))
        return block;
    reserve.free = false;
    is_reserve = true;
    return reserve.block;
}

// Takes back the block being filled, which the client has not seen.
void Outlet::give_back(Source& source) noexcept {
    if (source.block == RxArena::kNone) return;
    if (source.block_is_reserve) {
        reserves_[source.reserve].free = true;
    } else {
        arena_.free(source.block);
    }
    source.block = RxArena::kNone;
    source.block_is_reserve = false;
}

bool Outlet::take_back() noexcept {
    std::uint32_t offset = 0;
    for (unsigned n = 0; n < kReclaimMax && releases_.take(offset); ++n)
        if (!release(offset)) return false;
    return true;
}

bool Outlet::release(std::uint32_t offset) noexcept {
    std::uint16_t owner = RxArena::kNoOwner;
    switch (arena_.release(offset, owner)) {
        case RxArena::Release::kFreed:
            if (!loans_.empty()) [[unlikely]]
                loans_.take_back(offset);
            return true;
        case RxArena::Release::kReserve:
            ULC_CHECK(owner < reserves_.size());
            reserves_[owner].free = true;
            return true;
        case RxArena::Release::kBad:
            return false;
    }
    return false;
}

}  // namespace ulc::endpoint
