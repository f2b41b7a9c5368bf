// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/i8255x/rx_ring.h"

#include "base/check.h"

namespace ulc::i8255x {
namespace {

RxVerdict error_of(std::uint16_t status) noexcept {
    if ((status & rfd::kOverrun) != 0) return RxVerdict::kOverflow;
    if ((status & rfd::kNoSpace) != 0) return RxVerdict::kTooLong;
    if ((status & (rfd::kShort | rfd::kCollision)) != 0) return RxVerdict::kRunt;
    if ((status & (rfd::kCrc | rfd::kAlignment | rfd::kPhyError)) != 0) return RxVerdict::kCrc;
    return RxVerdict::kMalformed;
}

}  // namespace

RxRing::RxRing(std::uint32_t places, std::uint32_t buffer_octets)
    : places_(std::make_unique<Place[]>(places)), size_(places), buffer_octets_(buffer_octets) {
    ULC_CHECK(places >= 2);
    ULC_CHECK(buffer_octets > 0 && buffer_octets <= nic::kReceiveBufferOctetsMax &&
              buffer_octets % nic::kLongword == 0);
}

std::uint32_t RxRing::after(std::uint32_t index, std::uint32_t steps) const noexcept {
    const std::uint32_t sum = index + steps;
    return sum >= size_ ? sum - size_ : sum;
}

bool RxRing::is_done(std::uint32_t index) const noexcept {
    return (load(places_[index].buffer.descriptor->status) & rfd::kComplete) != 0;
}

/// Fills the descriptor of a place that the chip does not see. Its own link, and that of the place
/// before it, lead on; a link that changes under the chip's eyes belongs to the tail, which it does
/// not follow.
void RxRing::prepare(std::uint32_t index) noexcept {
    ReceiveDescriptor& d = *places_[index].buffer.descriptor;
    const Place& next = places_[after(index, 1)];
    const Place& before = places_[after(index, size_ - 1)];
    d.link = little_endian(next.buffer.bus_address);
    d.reserved = 0xffff'ffff;
    d.count = 0;
    d.size = little_endian(static_cast<std::uint16_t>(buffer_octets_));
    store(d.command, 0);
    store(d.status, 0);
    std::atomic_ref<std::uint32_t>(before.buffer.descriptor->link)
        .store(little_endian(places_[index].buffer.bus_address), std::memory_order_release);
    places_[index].was_tail = false;
}

void RxRing::arm(std::uint32_t index, RxBuffer buffer) noexcept {
    ULC_CHECK(index < size_ && buffer.bus_address % nic::kLongword == 0);
    places_[index].buffer = buffer;
}

void RxRing::rearm_all() noexcept {
    for (std::uint32_t i = 0; i < size_; ++i)
        prepare(i);
    oldest_ = batch_ = 0;
    tail_ = size_ - 1;
    places_[tail_].was_tail = true;
    store(places_[tail_].buffer.descriptor->command, rfd::kEndOfList);
    may_have_stopped_ = false;
}

RxVerdict RxRing::peek(RxFrame& frame, bool is_settled) noexcept {
    ReceiveDescriptor& d = *places_[oldest_].buffer.descriptor;
    const std::uint16_t status = load(d.status);
    if ((status & rfd::kComplete) == 0) return RxVerdict::kEmpty;
    if ((status & rfd::kOk) == 0) return error_of(status);
    const std::uint16_t count = load(d.count);
    constexpr std::uint16_t kSettled = rfd::kEof | rfd::kFilled;
    if (!is_settled && (count & kSettled) != kSettled) return RxVerdict::kUnsettled;
    const std::uint32_t octets = count & rfd::kCountMask;
    if (octets < nic::kHeaderOctets || octets > buffer_octets_) return RxVerdict::kMalformed;
    frame = {.owner = places_[oldest_].buffer.owner, .octets = octets};
    return RxVerdict::kFrame;
}

/// Hides the batch's end behind EL first, and then lets the chip go past the old tail.
void RxRing::move_tail() noexcept {
    if (batch_ == 0) return;
    const std::uint32_t newest = after(tail_, batch_);
    store(places_[newest].buffer.descriptor->command, rfd::kEndOfList);
    places_[newest].was_tail = true;
    store(places_[tail_].buffer.descriptor->command, 0);
    // The chip that filled the old tail saw EL there.
    if (is_done(tail_)) may_have_stopped_ = true;
    tail_ = newest;
    batch_ = 0;
}

/// The oldest place becomes the newest.
void RxRing::give_back() noexcept {
    if (places_[oldest_].was_tail) may_have_stopped_ = true;
    prepare(oldest_);
    oldest_ = after(oldest_, 1);
    ++batch_;
    if (batch_ * 4 >= size_) move_tail();
}

void RxRing::replace(RxBuffer fresh) noexcept {
    arm(oldest_, fresh);
    give_back();
}

void RxRing::recycle() noexcept { give_back(); }

std::uint32_t RxRing::restart() noexcept {
    move_tail();
    for (std::uint32_t i = 0; i < size_; ++i) {
        const std::uint32_t index = after(oldest_, i);
        if (is_done(index)) continue;
        may_have_stopped_ = false;
        return places_[index].buffer.bus_address;
    }
    return 0;
}

bool RxRing::done_at(std::uint32_t offset) noexcept {
    return offset < size_ && is_done(after(oldest_, offset));
}

}  // namespace ulc::i8255x
