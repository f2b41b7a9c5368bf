// SPDX-License-Identifier: BSD-3-Clause
// Tests the ring of a wire of shared memory: frames are read complete and in order, and no writer
// that breaks the rules harms a reader.
#include "shm/broadcast_ring.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/prng.h"

namespace ulc::shm {
namespace {

using Got = RingReader::Got;

constexpr std::uint32_t kRing = kRingOctetsMin;

/// One writer and its readers, on memory of the test.
struct Wire {
    explicit Wire(std::size_t count) : cursors(count) {
        for (Line& cursor : cursors)
            cursor.value = kAbsent;
        std::vector<Line*> pointers;
        for (Line& cursor : cursors)
            pointers.push_back(&cursor);
        writer = RingWriter(&head, ring.data(), kRing, pointers);
    }
    [[nodiscard]] RingReader reader(std::size_t n) {
        return {&head, ring.data(), kRing, &cursors[n]};
    }

    RingHead head{};
    std::vector<std::byte> ring = std::vector<std::byte>(kRing);
    std::vector<Line> cursors;
    RingWriter writer;
};

/// Returns a frame of which each byte depends on the frame's number.
std::vector<std::byte> frame_of(std::uint32_t number, std::uint32_t length) {
    std::vector<std::byte> frame(length, static_cast<std::byte>(number * 7));
    std::memcpy(frame.data(), &number, sizeof number);
    return frame;
}

bool put(RingWriter& writer, std::uint32_t number, std::uint32_t length) {
    const auto frame = frame_of(number, length);
    return writer.put(length, [&](std::byte* to) { std::memcpy(to, frame.data(), length); });
}

/// Succeeds if the next frame is that one.
::testing::AssertionResult takes(RingReader& reader, std::uint32_t number, std::uint32_t length) {
    if (reader.next() != Got::kFrame) return ::testing::AssertionFailure() << "no frame";
    if (reader.length() != length)
        return ::testing::AssertionFailure() << reader.length() << " octets, not " << length;
    std::vector<std::byte> copy(reader.frame(), reader.frame() + length);
    if (!reader.done()) return ::testing::AssertionFailure() << "overtaken";
    if (copy != frame_of(number, length))
        return ::testing::AssertionFailure() << "other octets than those of frame " << number;
    return ::testing::AssertionSuccess();
}

std::uint32_t length_of(std::uint32_t number) { return 14 + number * 131 % 9000; }

TEST(BroadcastRing, each_reader_gets_each_frame_through_many_laps) {
    Wire wire(3);
    std::array readers{wire.reader(0), wire.reader(1), wire.reader(2)};
    for (std::uint32_t n = 0; n < 2000; ++n) {
        ASSERT_TRUE(put(wire.writer, n, length_of(n)));
        for (RingReader& reader : readers)
            ASSERT_TRUE(takes(reader, n, length_of(n))) << "frame " << n;
    }
    EXPECT_EQ(readers[0].next(), Got::kNothing);
}

TEST(BroadcastRing, a_full_ring_refuses_until_the_slowest_has_read) {
    Wire wire(2);
    RingReader fast = wire.reader(0);
    RingReader slow = wire.reader(1);
    std::uint32_t sent = 0;
    while (put(wire.writer, sent, 1200))
        ++sent;
    EXPECT_EQ(sent, kRing / record_octets(1200));
    for (std::uint32_t n = 0; n < sent; ++n)
        ASSERT_TRUE(takes(fast, n, 1200));
    EXPECT_FALSE(put(wire.writer, sent, 1200));
    EXPECT_EQ(wire.writer.slowest(), 1U);
    ASSERT_TRUE(takes(slow, 0, 1200));
    EXPECT_TRUE(put(wire.writer, sent, 1200)) << "what is left before the end is skipped";
    EXPECT_FALSE(put(wire.writer, sent, 1200));
    for (std::uint32_t n = 1; n <= sent; ++n)
        ASSERT_TRUE(takes(slow, n, 1200));
}

TEST(BroadcastRing, without_readers_nothing_is_waited_for) {
    Wire wire(2);
    for (std::uint32_t n = 0; n < 1000; ++n)
        ASSERT_TRUE(put(wire.writer, n, 9000));
    EXPECT_EQ(wire.writer.slowest(), wire.writer.readers());
}

TEST(BroadcastRing, who_comes_late_begins_with_what_is_written_then) {
    Wire wire(1);
    for (std::uint32_t n = 0; n < 100; ++n)
        ASSERT_TRUE(put(wire.writer, n, 5000));
    RingReader late = wire.reader(0);
    EXPECT_EQ(late.next(), Got::kNothing);
    for (std::uint32_t n = 100; n < 200; ++n) {
        ASSERT_TRUE(put(wire.writer, n, 5000));
        ASSERT_TRUE(takes(late, n, 5000));
    }
}

TEST(BroadcastRing, who_left_is_not_waited_for) {
    Wire wire(1);
    RingReader reader = wire.reader(0);
    while (put(wire.writer, 0, 9000)) {
    }
    reader.leave();
    EXPECT_TRUE(put(wire.writer, 1, 9000));
}

TEST(BroadcastRing, who_is_overrun_learns_it_and_goes_on_with_new_frames) {
    Wire wire(2);
    RingReader good = wire.reader(0);
    RingReader stopped = wire.reader(1);
    std::uint32_t sent = 0;
    const auto send_and_read = [&] {
        const bool went = put(wire.writer, sent, 2000);
        if (went) {
            EXPECT_TRUE(takes(good, sent++, 2000));
        }
        return went;
    };
    while (send_and_read()) {
    }
    wire.writer.overrun(1);
    for (int n = 0; n < 500; ++n)
        ASSERT_TRUE(send_and_read());
    EXPECT_EQ(stopped.next(), Got::kMissed);
    EXPECT_EQ(stopped.next(), Got::kNothing);
    // The reader counts again: the writer stops for it.
    while (send_and_read())
        ASSERT_LT(sent, 10'000U);
    EXPECT_EQ(wire.writer.slowest(), 1U);
}

TEST(BroadcastRing, a_copy_that_the_writer_overtook_is_worthless) {
    Wire wire(1);
    RingReader reader = wire.reader(0);
    while (put(wire.writer, 1, 2000)) {
    }
    ASSERT_EQ(reader.next(), Got::kFrame);  // it copies, slowly …
    wire.writer.overrun(0);
    ASSERT_TRUE(put(wire.writer, 2, 2000));
    EXPECT_FALSE(reader.done());
    ASSERT_TRUE(put(wire.writer, 3, 2000));
    EXPECT_TRUE(takes(reader, 3, 2000));
}

TEST(BroadcastRing, a_reader_whose_process_ended_is_forgotten_but_not_its_successor) {
    Wire wire(1);
    static_cast<void>(wire.reader(0));
    while (put(wire.writer, 0, 9000)) {
    }
    wire.writer.forget(0);
    EXPECT_EQ(wire.cursors[0].value, kAbsent);
    RingReader successor = wire.reader(0);
    wire.writer.forget(0);
    EXPECT_NE(wire.cursors[0].value, kAbsent);
    ASSERT_TRUE(put(wire.writer, 7, 9000));
    EXPECT_TRUE(takes(successor, 7, 9000));
}

// ---- bytes that no writer of ours leaves -------------------------------------------------------

TEST(BroadcastRing, a_length_that_cannot_be_is_not_followed) {
    for (const std::uint32_t length : {kRing, 0x7fffffffU, kSkip - 1, 3000U}) {
        Wire wire(1);
        RingReader reader = wire.reader(0);
        ASSERT_TRUE(put(wire.writer, 0, 1000));
        std::memcpy(wire.ring.data(), &length, sizeof length);
        EXPECT_EQ(reader.next(), Got::kBroken) << length;
        ASSERT_TRUE(put(wire.writer, 1, 1000));
        EXPECT_TRUE(takes(reader, 1, 1000));
    }
}

TEST(BroadcastRing, a_ring_of_skips_does_not_hold_a_reader_up) {
    Wire wire(1);
    RingReader reader = wire.reader(0);
    std::memcpy(wire.ring.data(), &kSkip, sizeof kSkip);
    wire.head.tail.value = kCacheLine;
    EXPECT_EQ(reader.next(), Got::kBroken);
    wire.head.tail.value = UINT64_MAX / 2;
    EXPECT_EQ(reader.next(), Got::kBroken);
    EXPECT_EQ(reader.next(), Got::kNothing);
}

TEST(BroadcastRing, a_skip_at_the_last_positions_does_not_lead_to_the_first_ones) {
    Wire wire(1);
    const std::uint64_t last = UINT64_MAX - kRing + 1;  // its last octet has the highest position
    wire.head.tail.value = last + kCacheLine;
    RingReader reader = wire.reader(0);
    std::memcpy(&wire.ring[kCacheLine], &kSkip, sizeof kSkip);
    wire.head.tail.value = last + 3 * kCacheLine;
    EXPECT_EQ(reader.next(), Got::kBroken);
    EXPECT_EQ(reader.next(), Got::kNothing);
}

TEST(BroadcastRing, random_octets_never_lead_a_reader_out_of_the_ring) {
    Prng random(11);
    for (int round = 0; round < 2000; ++round) {
        Wire wire(1);
        RingReader reader = wire.reader(0);
        for (std::size_t at = 0; at < kRing; at += kCacheLine) {
            const std::uint32_t length =
                random.below(4) == 0 ? kSkip : static_cast<std::uint32_t>(random.below(kRing));
            std::memcpy(&wire.ring[at], &length, sizeof length);
        }
        wire.head.tail.value = random.below(2 * kRing);
        for (int n = 0; n < 10; ++n) {
            if (reader.next() != Got::kFrame) continue;
            ASSERT_GE(reader.frame(), wire.ring.data());
            ASSERT_LE(reader.frame() + reader.length(), wire.ring.data() + kRing);
            std::vector<std::byte> copy(reader.frame(), reader.frame() + reader.length());
            ASSERT_TRUE(reader.done());
        }
    }
}

// ---- on threads ---------------------------------------------------------------------------------

TEST(BroadcastRing, threads_lose_and_tear_nothing) {
    constexpr std::uint32_t kFrames = 20'000;
    Wire wire(2);
    std::array readers{wire.reader(0), wire.reader(1)};
    std::array<std::uint32_t, 2> good{};
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < readers.size(); ++r) {
        threads.emplace_back([&, r] {
            for (std::uint32_t n = 0; n < kFrames;) {
                const Got got = readers[r].next();
                if (got == Got::kNothing) {
                    std::this_thread::yield();
                    continue;
                }
                const std::vector<std::byte> copy(readers[r].frame(),
                                                  readers[r].frame() + readers[r].length());
                if (got != Got::kFrame || !readers[r].done()) return;
                good[r] += copy == frame_of(n, length_of(n)) ? 1 : 0;
                ++n;
            }
        });
    }
    for (std::uint32_t n = 0; n < kFrames;) {
        if (put(wire.writer, n, length_of(n))) {
            ++n;
        } else {
            std::this_thread::yield();
        }
    }
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(good[0], kFrames);
    EXPECT_EQ(good[1], kFrames);
}

}  // namespace
}  // namespace ulc::shm
