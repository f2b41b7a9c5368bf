// SPDX-License-Identifier: BSD-3-Clause
// The submissions of one client. Short messages whose stream has no window wait in the ring, so
// that they take no way into the send queue and out of it. They wait there only while all records
// behind them are such messages of the same stream: a record that may go must not wait for them. A
// ring that they fill, and that a retry leaves as it was, goes to the send queue: its client may
// have a record that may go.
#pragma once

#include <cstdint>

#include "abi/slot_ring.h"
#include "endpoint/short_record.h"

namespace ulc::endpoint {

class Inlet {
public:
    Inlet() = default;
    explicit Inlet(const abi::SubmissionConsumer& ring) noexcept : ring_(ring) {}

    /// Returns the place of the next record behind those that wait.
    [[nodiscard]] abi::NextSlot next() const noexcept {
        return waits_ ? ring_.next(checked()) : ring_.next();
    }
    /// True if a record has come behind those that wait. None has if they fill the ring, whatever
    /// their client wrote there meanwhile.
    [[nodiscard]] bool ready() const noexcept {
        return (!waits_ || checked() < ring_.slots()) && next().has_come();
    }
    /// True if no record is in the ring.
    [[nodiscard]] bool empty() const noexcept { return !ring_.ready(); }
    /// Returns the first record, which has come. Its client may change it at any time.
    [[nodiscard]] const abi::SubmissionRecord& peek() const noexcept { return ring_.peek(); }
    /// Frees the slot of peek(). None waits.
    void pop() noexcept { ring_.pop(); }
    /// Copies the first record, which has come, and frees its slot. None waits.
    void take(abi::SubmissionRecord& out) noexcept { static_cast<void>(ring_.take(out)); }
    /// Returns the number of records taken, free running.
    [[nodiscard]] std::uint32_t consumed() const noexcept { return ring_.consumed(); }

    /// Leaves the first record in the ring, a short message to that stream, and those that have
    /// come behind it. Returns false if they may not wait; then none does.
    [[nodiscard]] bool wait(StreamId stream) noexcept {
        if (stream != stream_ || static_cast<std::int32_t>(until_ - consumed()) < 0)
            until_ = consumed();
        stream_ = stream;
        if (!wait_on()) return false;
        if (is_full() && waited_at_ == consumed()) waits_ = false;
        waited_at_ = consumed();
        return waits_;
    }
    /// Leaves the records that have come since in the ring, as wait(). Looks at kLooks of them; the
    /// others are ready().
    [[nodiscard]] bool wait_on() noexcept {
        waits_ = true;
        for (std::uint32_t n = 0; n < kLooks && ready(); ++n, ++until_) {
            if (ShortRecord(ring_.peek(checked())).is_message_to(stream_)) continue;
            waits_ = false;
            return false;
        }
        return true;
    }
    /// True if more than three quarters of the ring wait: the client may see no free slot.
    [[nodiscard]] bool is_full() const noexcept {
        return waits_ && checked() > ring_.slots() - ring_.slots() / 4;
    }
    /// True if records wait for the window of stream().
    [[nodiscard]] bool waits() const noexcept { return waits_; }
    [[nodiscard]] StreamId stream() const noexcept { return stream_; }
    /// Tries the waiting records again: the first one is next().
    void retry() noexcept { waits_ = false; }

    /// Writes or reads the ring's cursors. After that none waits.
    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(ring_);
        if (!archive.importing()) return;
        waits_ = false;
        until_ = consumed();
    }

    static constexpr std::uint32_t kLooks = 64;  ///< bounds the work of a round

private:
    /// Returns how many records at the front of the ring are messages to stream().
    [[nodiscard]] std::uint32_t checked() const noexcept { return until_ - consumed(); }

    abi::SubmissionConsumer ring_;
    std::uint32_t until_ = 0;               ///< the first that was not looked at, as consumed()
    std::uint32_t waited_at_ = UINT32_MAX;  ///< the first that wait() left, as consumed()
    StreamId stream_ = 0;                   ///< stream of those before until_
    bool waits_ = false;
};

}  // namespace ulc::endpoint
