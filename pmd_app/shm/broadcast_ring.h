// SPDX-License-Identifier: BSD-3-Clause
// One station's transmitter on a wire of shared memory: a ring of bytes that only this station
// writes and every other station reads. A frame is there once, however many receivers it has, as on
// a cable.
//
//   floor                 slowest reader            tail
//     |                        |                      |
//   --+------------------------+----------------------+---------------     positions: bytes since
//     | [len|frame····][len|frame··][skip···][len|frame]                   the wire was made, 64
//   --+------------------------+----------------------+---------------     bits, never wrap;
//                                                                          place in the ring:
//                                                                          position mod octets
//
// A record is four bytes of length and the frame, padded to a cache line, so that a least frame of
// Ethernet takes one line and a writer never touches a line that is being read. Records do not
// wrap: the rest before the end is skipped.
//
// The writer stays behind the slowest reader that listens (back-pressure: put() returns false), so
// nothing is lost as long as readers read. The owner may overtake a reader that does not
// (overrun()): it raises `floor`, below which nothing is promised. A reader copies a frame out
// first and reads the floor after that; below it the copy is worthless, and the reader continues at
// the tail. So a stopped process costs its peers a bounded wait, and itself the missed frames.
//
// Memory order:
//   A  writer: store(tail, release)      with   reader: load(tail, acquire)
//      the records before tail are whole
//   B  reader: store(cursor, release)    with   writer: load(cursor, acquire)
//      it reads no more of the records before
//   C  writer: store(floor), fence(release), overwrites
//      with   reader: copies, fence(acquire), load(floor)
//      a reader that copied any new byte sees the floor that was raised before it
//
// Trust: peers' processes are other machines as far as their frames go. An impossible length is not
// followed: the reader counts it and continues at the tail, which it bounds too.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/units.h"

namespace ulc::shm {

inline constexpr unsigned kStationsMax = 64;
inline constexpr std::uint32_t kRingOctetsMin = 1U << 16;
inline constexpr std::uint32_t kRingOctetsMax = 1U << 26;
inline constexpr std::uint64_t kAbsent = UINT64_MAX;  ///< cursor of a reader that does not listen
inline constexpr std::uint32_t kSkip = UINT32_MAX;    ///< length of the skipped rest before the end
inline constexpr std::uint32_t kLengthOctets = sizeof(std::uint32_t);

/// A word with its cache line to itself.
struct alignas(kCacheLine) Line {
    std::atomic<std::uint64_t> value;
};

/// The part of shared memory that one station writes. Zeroed memory is a ring that was never
/// written.
struct RingHead {
    Line tail;
    Line floor;
};

[[nodiscard]] constexpr bool ring_octets_valid(std::uint32_t octets) noexcept {
    return octets >= kRingOctetsMin && octets <= kRingOctetsMax && (octets & (octets - 1)) == 0;
}

/// Returns the bytes that a frame takes.
[[nodiscard]] constexpr std::uint64_t record_octets(std::uint32_t frame_octets) noexcept {
    return (std::uint64_t{frame_octets} + kLengthOctets + kCacheLine - 1) / kCacheLine * kCacheLine;
}

/// The owner's half. One thread.
class RingWriter {
public:
    RingWriter() = default;
    /// `cursors`: those of each other station, its position in this ring.
    RingWriter(RingHead* head, std::byte* ring, std::uint32_t octets,
               std::span<Line* const> cursors) noexcept
        : head_(head), ring_(ring), octets_(octets), readers_(cursors.size()) {
        ULC_CHECK(ring_octets_valid(octets) && cursors.size() <= kStationsMax);
        std::ranges::copy(cursors, cursors_.begin());
        tail_ = head->tail.value.load(std::memory_order_relaxed);
        floor_ = head->floor.value.load(std::memory_order_relaxed);
        look();
    }

    /// Writes a frame of at most octets / 4, which write(std::byte* to) puts in its place. Returns
    /// false if the slowest reader has not freed space yet.
    template <typename Write>
    [[nodiscard]] bool put(std::uint32_t length, Write write) noexcept {
        const std::uint64_t need = record_octets(length);
        ULC_CHECK(need <= octets_ / 4);
        const std::uint64_t before_end = octets_ - offset(tail_);
        const std::uint64_t skipped = before_end < need ? before_end : 0;
        if (tail_ + skipped + need > limit_) {
            look();
            if (tail_ + skipped + need > limit_) return false;
        }
        if (overrun_) raise_floor(skipped + need);
        if (skipped != 0) {
            std::memcpy(ring_ + offset(tail_), &kSkip, sizeof kSkip);
            tail_ += skipped;
        }
        std::byte* record = ring_ + offset(tail_);
        std::memcpy(record, &length, sizeof length);
        write(record + kLengthOctets);
        tail_ += need;
        head_->tail.value.store(tail_, std::memory_order_release);  // A
        return true;
    }

    /// Returns the index of the slowest reader of those that count; readers(): none listens.
    [[nodiscard]] std::size_t slowest() const noexcept {
        std::size_t found = readers_;
        std::uint64_t least = kAbsent;
        for (std::size_t r = 0; r < readers_; ++r) {
            const std::uint64_t at = cursors_[r]->value.load(std::memory_order_relaxed);
            if (at < floor_ || at >= least) continue;
            least = at;
            found = r;
        }
        return found;
    }
    [[nodiscard]] std::size_t readers() const noexcept { return readers_; }

    /// Forgets a reader whose process has ended, unless another one has taken its place meanwhile,
    /// which begins elsewhere.
    void forget(std::size_t reader) noexcept {
        std::uint64_t at = cursors_[reader]->value.load(std::memory_order_relaxed);
        if (at + octets_ / 2 < tail_)
            cursors_[reader]->value.compare_exchange_strong(at, kAbsent, std::memory_order_relaxed);
    }

    /// Waits for that reader no longer, until it has caught up.
    void overrun(std::size_t reader) noexcept {
        const std::uint64_t at = cursors_[reader]->value.load(std::memory_order_acquire);
        if (at == kAbsent || at > tail_) return;
        floor_ = std::max(floor_, at + 1);
        head_->floor.value.store(floor_, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);  // C
        look();
    }

private:
    /// Returns the place of the record at that count: octets_ is a power of two.
    [[nodiscard]] std::uint64_t offset(std::uint64_t at) const noexcept {
        return at & (octets_ - 1);
    }
    /// Computes how far this writer may go. Readers behind the floor do not count.
    void look() noexcept {
        std::uint64_t least = tail_;
        overrun_ = false;
        for (std::size_t r = 0; r < readers_; ++r) {
            const std::uint64_t at = cursors_[r]->value.load(std::memory_order_acquire);  // B
            if (at < floor_) {
                overrun_ = true;
            } else {
                least = std::min(least, at);
            }
        }
        limit_ = least + octets_;
    }

    void raise_floor(std::uint64_t octets) noexcept {
        if (tail_ + octets <= floor_ + octets_) return;
        floor_ = tail_ + octets - octets_;
        head_->floor.value.store(floor_, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);  // C
    }

    RingHead* head_ = nullptr;
    std::byte* ring_ = nullptr;
    std::uint64_t octets_ = 0;
    std::size_t readers_ = 0;
    std::array<Line*, kStationsMax> cursors_{};
    std::uint64_t tail_ = 0;
    std::uint64_t floor_ = 0;
    std::uint64_t limit_ = 0;  ///< tail_ may go as far as this without another look()
    bool overrun_ = false;     ///< a reader is behind the floor
};

/// Another station's half. One thread.
class RingReader {
public:
    enum class Got : std::uint8_t {
        kNothing,
        kFrame,
        kMissed,  ///< the writer overtook it; continues at the tail
        kBroken,  ///< bytes that no correct writer leaves there; continues at the tail
    };

    RingReader() = default;
    /// `cursor`: this reader's for that ring. It listens after this.
    RingReader(const RingHead* head, const std::byte* ring, std::uint32_t octets,
               Line* cursor) noexcept
        : head_(head), ring_(ring), octets_(octets), cursor_(cursor) {
        ULC_CHECK(ring_octets_valid(octets));
        go_to_tail();
    }

    /// True if next() would return more than kNothing.
    [[nodiscard]] bool has_come() const noexcept { return at_ != tail_ || at_ != tail(); }

    /// Reads the next record. kFrame: frame() and length() describe it until done().
    [[nodiscard]] Got next() noexcept {
        if (at_ == tail_) {
            tail_ = tail();
            if (at_ == tail_) return Got::kNothing;
            if (tail_ - at_ > octets_) return lost();
        }
        if (length_at(at_) == kSkip) {
            if (offset(at_) == 0) return lost();  // no writer skips a whole ring
            const std::uint64_t skipped = octets_ - offset(at_);
            if (skipped >= tail_ - at_) return lost();  // a frame always follows
            at_ += skipped;
        }
        length_ = length_at(at_);
        const std::uint64_t need = record_octets(length_);
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
        if (offset(at_) + need > octets_ || need > tail_ - at_) return lost();
#else
        if (need > octets_) return lost();
#endif
        return Got::kFrame;
    }
    /// In shared memory, where its writer may still change it.
    [[nodiscard]] const std::byte* frame() const noexcept {
        return ring_ + offset(at_) + kLengthOctets;
    }
    [[nodiscard]] std::uint32_t length() const noexcept { return length_; }

    /// Ends a frame that was copied, or is not wanted. Returns false if the writer overtook and the
    /// copy is worthless; the reader continues at the tail.
    [[nodiscard]] bool done() noexcept {
        if (overtaken()) {
            go_to_tail();
            return false;
        }
        at_ += record_octets(length_);
        cursor_->value.store(at_, std::memory_order_release);  // B
        return true;
    }

    /// Ends the writer's wait for this reader.
    void leave() noexcept { cursor_->value.store(kAbsent, std::memory_order_release); }

private:
    /// Returns the place of the record at that count: octets_ is a power of two.
    [[nodiscard]] std::uint64_t offset(std::uint64_t at) const noexcept {
        return at & (octets_ - 1);
    }
    /// Records begin at cache lines, whatever a peer writes.
    [[nodiscard]] std::uint64_t tail() const noexcept {
        return head_->tail.value.load(std::memory_order_acquire) / kCacheLine * kCacheLine;  // A
    }
    void go_to_tail() noexcept {
        tail_ = tail();
        at_ = tail_;
        cursor_->value.store(at_, std::memory_order_release);  // B
    }
    [[nodiscard]] std::uint32_t length_at(std::uint64_t at) const noexcept {
        std::uint32_t length = 0;
        std::memcpy(&length, ring_ + offset(at), sizeof length);
        return length;
    }
    [[nodiscard]] bool overtaken() const noexcept {
        std::atomic_thread_fence(std::memory_order_acquire);  // C
        return head_->floor.value.load(std::memory_order_relaxed) > at_;
    }
    /// The tail is the only known boundary of records.
    Got lost() noexcept {
        const Got why = overtaken() ? Got::kMissed : Got::kBroken;
        go_to_tail();
        return why;
    }

    const RingHead* head_ = nullptr;
    const std::byte* ring_ = nullptr;
    std::uint64_t octets_ = 0;
    Line* cursor_ = nullptr;
    std::uint64_t at_ = 0;
    std::uint64_t tail_ = 0;  ///< as last seen
    std::uint32_t length_ = 0;
};

}  // namespace ulc::shm
