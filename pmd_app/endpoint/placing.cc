// SPDX-License-Identifier: BSD-3-Clause
// Messages that go to the place that a client of this process named for them (abi/placement.h).
#include <cstring>

#include "endpoint/outlet.h"

namespace ulc::endpoint {

namespace {

/// Bytes of the shortest message that waits for its receive. The copies of a shorter one cost less
/// than the rounds.
constexpr std::uint64_t kWaitsMin = 32768;
/// The client may use the first of them for another endpoint.
constexpr std::uint8_t kRoundsForReceive = 2;

}  // namespace

// One count serves all sources, so messages that wait together go on together.
bool Outlet::waits_for_receive(Rank rank, const urtp::ReadyPacket& packet, Nanos now) {
    if (!packet.first() || packet.last() || packet.message_length < kWaitsMin ||
        !region_.reaches_process())
        return false;
    if ((offloads_ != nullptr && packet.has_tag() && is_operation(packet.tag)) ||
        (placer_ != nullptr && placer_->find(placer_->context, beginning_of(rank, packet)))) {
        rounds_waited_ = 0;
        return false;
    }
    if (now != waited_in_) {
        waited_in_ = now;
        rounds_waited_ = rounds_waited_ > kRoundsForReceive ? 1 : rounds_waited_ + 1;
    }
    return rounds_waited_ <= kRoundsForReceive;
}

std::byte* Outlet::next_place(Rank rank, const urtp::ReadyPacket& packet) const {
    const bool known = rank < index_.size() && index_[rank] != 0;
    if (known && is_stopped(rank)) return nullptr;
    const Source* source = known ? &sources_[index_[rank] - 1U] : nullptr;
    const bool open = source != nullptr && source->open;
    if (packet.first()) {
        const bool schedules = offloads_ != nullptr && packet.has_tag() && is_operation(packet.tag);
        const abi::Beginning message = beginning_of(rank, packet);
        const bool is_list = packs_ && packet.last();
        if (open || schedules || is_list || placer_ == nullptr || message.length < abi::kPlacedMin)
            return nullptr;
        const abi::Place place = placer_->find(placer_->context, message);
        return place ? place.contiguous(0, packet.length) : nullptr;
    }
    const bool goes_on = open && source->place && continues(*source, packet);
    return goes_on ? source->place.contiguous(source->done, packet.length) : nullptr;
}

bool Outlet::forget_place(Rank rank, const abi::Place& place) noexcept {
    if (rank >= index_.size() || index_[rank] == 0) return false;
    Source& source = sources_[index_[rank] - 1U];
    if (!source.open || !source.place || source.place != place) return false;
    leave_place(source);
    source.forgotten = true;
    return true;
}

std::byte* Outlet::place_of_part(Rank rank, std::uint32_t octets) const {
    const Source& source = sources_[index_[rank] - 1U];
    const bool goes_on = source.place && octets > 0 && octets < source.length - source.done;
    return goes_on ? source.place.contiguous(source.done, octets) : nullptr;
}

void Outlet::put_placed(Source& source, std::span<const std::byte> payload) {
    const auto octets = static_cast<std::uint32_t>(payload.size());
    std::byte* to = source.place.contiguous(source.done, octets);
    if (to == nullptr) {
        source.place.write(source.done, payload.data(), octets);
    } else if (payload.data() != to) {  // else it landed
        std::memcpy(to, payload.data(), octets);
    }
    source.done += octets;
}

// The client has made it the message of a receive. It gets one more completion, when the message is
// whole or broken.
bool Outlet::deliver_placed(Rank rank, Source& source, const urtp::ReadyPacket& packet) {
    if (packet.last() && completions_.room() == 0) return false;
    put_placed(source, {packet.payload, packet.length});
    if (!packet.last()) return true;
    complete(*completions_.claim(), rank, {.stream = source.stream, .tag = source.tag},
             {abi::kCompletePlaced | abi::kCompleteLast, {0, 0, source.length, 0, 0, 0}});
    source.open = false;
    leave_place(source);
    counters_.add(Counter::completions);
    counters_.add(Counter::messages_received);
    counters_.add(Counter::messages_placed);
    return true;
}

}  // namespace ulc::endpoint
