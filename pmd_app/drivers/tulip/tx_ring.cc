// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/tulip/tx_ring.h"

#include "base/check.h"
#include "drivers/tulip/setup_frame.h"

namespace ulc::tulip {
namespace {

TxResult result_of(std::uint32_t status, bool setup) noexcept {
    if (setup) return TxResult::kSetup;
    if ((status & tdes0::kES) == 0) return TxResult::kSent;
    if ((status & tdes0::kUF) != 0) return TxResult::kUnderflow;
    if ((status & (tdes0::kEC | tdes0::kLC)) != 0) return TxResult::kCollisions;
    if ((status & (tdes0::kNC | tdes0::kLO)) != 0) return TxResult::kNoCarrier;
    return TxResult::kJabber;
}

}  // namespace

TxRing::TxRing(std::span<Descriptor> descriptors)
    : descriptors_(descriptors),
      records_(std::make_unique<Record[]>(descriptors.size())),
      free_(size()) {
    ULC_CHECK(descriptors.size() >= 2);
    reset();
}

void TxRing::reset() noexcept {
    for (Descriptor& d : descriptors_)
        take_back(d);
    oldest_ = next_ = pending_ = 0;
    free_ = size();
}

std::uint32_t TxRing::after(std::uint32_t index, std::uint32_t steps) const noexcept {
    const std::uint32_t sum = index + steps;
    return sum >= size() ? sum - size() : sum;
}

/// All but the status, which gives it away.
void TxRing::fill(std::uint32_t index, std::uint32_t control, const TxSegment& first,
                  const TxSegment* second) noexcept {
    ULC_CHECK(first.octets > 0 && first.octets <= kBufferOctetsMax);
    control |= first.octets;
    if (index == size() - 1) control |= tdes1::kTER;
    Descriptor& d = descriptors_[index];
    d.buffer1 = little_endian(first.bus_address);
    d.buffer2 = 0;
    if (second != nullptr) {
        ULC_CHECK(second->octets > 0 && second->octets <= kBufferOctetsMax);
        control |= second->octets << tdes1::kTBS2Shift;
        d.buffer2 = little_endian(second->bus_address);
    }
    d.control = little_endian(control);
}

bool TxRing::post(std::span<const TxSegment> segments, void* frame, std::uint8_t tries) noexcept {
    ULC_CHECK(!segments.empty());
    const auto needed = static_cast<std::uint32_t>((segments.size() + 1) / 2);
    if (needed > free_) return false;
    for (std::uint32_t i = 0; i < needed; ++i) {
        const std::uint32_t control =
            (i == 0 ? tdes1::kFS : 0) | (i == needed - 1 ? tdes1::kLS | tdes1::kIC : 0);
        const bool two = i * 2 + 1 < segments.size();
        fill(after(next_, i), control, segments[i * 2], two ? &segments[i * 2 + 1] : nullptr);
    }
    records_[next_] = {
        .frame = frame, .last = after(next_, needed - 1), .tries = tries, .setup = false};
    for (std::uint32_t i = needed; i-- > 0;)
        give(descriptors_[after(next_, i)]);
    next_ = after(next_, needed);
    free_ -= needed;
    ++pending_;
    return true;
}

bool TxRing::post_setup(std::uint32_t bus_address, bool hash) noexcept {
    if (free_ == 0) return false;
    const TxSegment frame{bus_address, kSetupFrameOctets};
    fill(next_, tdes1::kSET | tdes1::kIC | (hash ? tdes1::kFT0 : 0), frame, nullptr);
    records_[next_] = {.frame = nullptr, .last = next_, .tries = 0, .setup = true};
    give(descriptors_[next_]);
    next_ = after(next_, 1);
    --free_;
    ++pending_;
    return true;
}

void TxRing::take_oldest(TxDone& done, std::uint32_t status) noexcept {
    const Record& record = records_[oldest_];
    done = {.frame = record.frame,
            .result = result_of(status, record.setup),
            .collisions = static_cast<std::uint8_t>((status >> tdes0::kCCShift) & tdes0::kCCMask),
            .tries = record.tries};
    const std::uint32_t end = after(record.last, 1);
    const std::uint32_t used = end > oldest_ ? end - oldest_ : end + size() - oldest_;
    oldest_ = end;
    free_ += used;
    --pending_;
}

bool TxRing::reap(TxDone& done) noexcept {
    if (pending_ == 0) return false;
    // The chip closes descriptors in order: with the last one, all of the frame are the host's.
    const std::uint32_t status = status_of(descriptors_[records_[oldest_].last]);
    if ((status & kOwn) != 0) return false;
    take_oldest(done, status);
    return true;
}

bool TxRing::drop(TxDone& done) noexcept {
    if (pending_ == 0) return false;
    const std::uint32_t first = oldest_;
    const std::uint32_t status = status_of(descriptors_[records_[oldest_].last]);
    take_oldest(done, (status & kOwn) != 0 ? tdes0::kES | tdes0::kTO : status);
    for (std::uint32_t i = first; i != oldest_; i = after(i, 1))
        take_back(descriptors_[i]);
    return true;
}

bool TxRing::done_at(std::uint32_t offset) noexcept {
    if (offset < free_) return true;
    return (status_of(descriptors_[after(next_, offset)]) & kOwn) == 0;
}

}  // namespace ulc::tulip
