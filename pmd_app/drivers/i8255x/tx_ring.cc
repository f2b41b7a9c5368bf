// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/i8255x/tx_ring.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::i8255x {

TxRing::TxRing(std::span<CommandBlock> blocks, std::uint32_t bus_address)
    : blocks_(blocks),
      bus_address_(bus_address),
      records_(std::make_unique<Record[]>(blocks.size())) {
    ULC_CHECK(blocks.size() >= 2 && bus_address % nic::kLongword == 0);
    reset();
}

/// A block that the chip would reach by mistake is a "no operation" at which it suspends.
void TxRing::reset() noexcept {
    for (std::uint32_t i = 0; i < count(); ++i) {
        blocks_[i].link = little_endian(bus_of(after(i, 1)));
        store(blocks_[i].command, cb::kNop | cb::kSuspend);
        store(blocks_[i].status, 0);
    }
    oldest_ = next_ = pending_ = 0;
}

std::uint32_t TxRing::after(std::uint32_t index, std::uint32_t steps) const noexcept {
    const std::uint32_t sum = index + steps;
    return sum >= count() ? sum - count() : sum;
}

/// Hands over the block at `next_`, whose body is filled: its command with S, then the block before
/// it without S.
void TxRing::give(std::uint16_t command, const Record& record) noexcept {
    records_[next_] = record;
    CommandBlock& block = blocks_[next_];
    CommandBlock& before = blocks_[after(next_, count() - 1)];
    store(block.status, 0);
    store(block.command, static_cast<std::uint16_t>(command | cb::kSuspend));
    const auto last = static_cast<std::uint16_t>(load(before.command) & ~cb::kSuspend);
    store(before.command, last);
    next_ = after(next_, 1);
    ++pending_;
}

bool TxRing::post(std::span<const TxSegment> segments, void* frame, std::uint8_t tries) noexcept {
    ULC_CHECK(!segments.empty() && segments.size() <= kSegmentsMax);
    if (room() == 0) return false;
    auto& body = blocks_[next_].body.transmit;
    body.buffers = little_endian(bus_of(next_) + kBuffersOffset);
    body.byte_count = 0;
    body.threshold = threshold_;
    body.number = static_cast<std::uint8_t>(segments.size());
    for (std::size_t i = 0; i < segments.size(); ++i) {
        ULC_CHECK(segments[i].octets > 0 && segments[i].octets <= nic::kBufferOctetsMax);
        body.buffer[i] = {.address = little_endian(segments[i].bus_address),
                          .size = little_endian(segments[i].octets)};
    }
    give(cb::kTransmit | cb::kFlexible,
         {.frame = frame, .tries = tries, .success = TxResult::kSent});
    return true;
}

bool TxRing::post_command(std::uint16_t command, std::span<const std::uint8_t> bytes,
                          bool is_last) noexcept {
    ULC_CHECK(bytes.size() <= sizeof(CommandBlock::body.bytes));
    if (room() == 0) return false;
    std::ranges::copy(bytes, blocks_[next_].body.bytes.begin());
    give(
        command,
        {.frame = nullptr, .tries = 0, .success = is_last ? TxResult::kSetup : TxResult::kCommand});
    return true;
}

/// The 82557 clears OK for a frame that it did not send, whatever the cause; later chips report OK
/// before the frame leaves (SDM, "Transmit command"). A command that failed is not in force: its
/// report is withheld, and the caller's wait for it ends by its bound.
void TxRing::take_oldest(TxDone& done, std::uint16_t status) noexcept {
    const Record& record = records_[oldest_];
    done = {
        .frame = record.frame, .result = record.success, .collisions = 0, .tries = record.tries};
    const bool is_frame = record.success == TxResult::kSent;
    if ((status & cb::kOk) == 0)
        done.result = is_frame ? TxResult::kCollisions : TxResult::kCommand;
    else if (is_frame && (status & cb::kUnderrun) != 0)
        done.result = TxResult::kSentLate;
    oldest_ = after(oldest_, 1);
    --pending_;
}

bool TxRing::reap(TxDone& done) noexcept {
    if (pending_ == 0) return false;
    const std::uint16_t status = load(blocks_[oldest_].status);
    if ((status & cb::kComplete) == 0) return false;
    take_oldest(done, status);
    return true;
}

bool TxRing::drop(TxDone& done) noexcept {
    if (pending_ == 0) return false;
    const std::uint16_t status = load(blocks_[oldest_].status);
    take_oldest(done, (status & cb::kComplete) != 0 ? status : 0);
    return true;
}

bool TxRing::done_at(std::uint32_t offset) noexcept {
    if (offset < room()) return true;
    return (load(blocks_[after(next_, offset + 1)].status) & cb::kComplete) != 0;
}

}  // namespace ulc::i8255x
