// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/tulip/rx_ring.h"

#include "base/check.h"

namespace ulc::tulip {
namespace {

constexpr std::uint32_t kCrcOctets = 4;

RxVerdict error_of(std::uint32_t status) noexcept {
    if ((status & rdes0::kOF) != 0) return RxVerdict::kOverflow;
    if ((status & (rdes0::kRF | rdes0::kCS)) != 0) return RxVerdict::kRunt;
    if ((status & (rdes0::kCE | rdes0::kRE)) != 0) return RxVerdict::kCrc;
    if ((status & (rdes0::kRW | rdes0::kDE)) != 0) return RxVerdict::kTooLong;
    return RxVerdict::kMalformed;
}

}  // namespace

RxRing::RxRing(std::span<Descriptor> descriptors, std::uint32_t buffer_octets)
    : descriptors_(descriptors),
      owners_(std::make_unique<void*[]>(descriptors.size())),
      buffer_octets_(buffer_octets) {
    ULC_CHECK(descriptors.size() >= 2);
    ULC_CHECK(buffer_octets > 0 && buffer_octets <= kReceiveBufferOctetsMax &&
              buffer_octets % kLongword == 0);
    for (Descriptor& d : descriptors_)
        take_back(d);
}

/// Gives a place to the chip again. The address stays; size and OWN are set again.
void RxRing::give_place(std::uint32_t index) noexcept {
    Descriptor& d = descriptors_[index];
    d.control = little_endian(buffer_octets_ | (index == size() - 1 ? rdes1::kRER : 0));
    give(d);
}

void RxRing::arm(std::uint32_t index, RxBuffer buffer) noexcept {
    ULC_CHECK(index < size() && buffer.bus_address % kLongword == 0);
    owners_[index] = buffer.owner;
    descriptors_[index].buffer1 = little_endian(buffer.bus_address);
    descriptors_[index].buffer2 = 0;
    give_place(index);
}

void RxRing::rearm_all() noexcept {
    for (std::uint32_t i = 0; i < size(); ++i)
        give_place(i);
    oldest_ = 0;
}

RxVerdict RxRing::peek(RxFrame& frame) noexcept {
    const std::uint32_t status = status_of(descriptors_[oldest_]);
    if ((status & kOwn) != 0) return RxVerdict::kEmpty;
    if ((status & rdes0::kFS) == 0) return RxVerdict::kRest;
    if ((status & rdes0::kLS) == 0) return RxVerdict::kTooLong;
    if ((status & rdes0::kES) != 0) return error_of(status);
    const std::uint32_t length = (status >> rdes0::kFLShift) & rdes0::kFLMask;
    if (length < nic::kHeaderOctets + kCrcOctets || length > buffer_octets_)
        return RxVerdict::kMalformed;
    frame = {.owner = owners_[oldest_], .octets = length - kCrcOctets};
    return RxVerdict::kFrame;
}

void RxRing::advance() noexcept { oldest_ = oldest_ + 1 == size() ? 0 : oldest_ + 1; }

void RxRing::replace(RxBuffer fresh) noexcept {
    arm(oldest_, fresh);
    advance();
}

void RxRing::recycle() noexcept {
    give_place(oldest_);
    advance();
}

bool RxRing::done_at(std::uint32_t offset) noexcept {
    if (offset >= size()) return false;
    const std::uint32_t index = (oldest_ + offset) % size();
    return (status_of(descriptors_[index]) & kOwn) == 0;
}

}  // namespace ulc::tulip
