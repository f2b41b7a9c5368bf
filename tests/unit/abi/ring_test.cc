// SPDX-License-Identifier: BSD-3-Clause
// Tests of the rings: laps, wrap of the 32-bit counters, hostile cursors, and two threads that
// sleep, wake each other, and revoke the promise to poll at random instants. No record and no
// notification is lost.
#include "abi/slot_ring.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

#include "abi/region.h"
#include "base/prng.h"

namespace ulc::abi {
namespace {

constexpr std::uint32_t kSlots = 8;

struct Ring {
    explicit Ring(std::uint32_t start = 0) : consumed(start) {
        // Sets the ring as if every earlier lap had been written: the slot of record n has the mark
        // of n - slots.
        for (std::uint32_t i = 0; i < kSlots && start != 0; ++i)
            records[(start + i) & (kSlots - 1)].mark = mark_of(start + i - kSlots, kSlots);
        producer = SubmissionProducer(records, kSlots, &consumed, start);
        consumer = SubmissionConsumer(records, kSlots, &consumed, start);
    }
    SubmissionRecord records[kSlots]{};
    std::atomic<std::uint32_t> consumed;
    SubmissionProducer producer;
    SubmissionConsumer consumer;
};

SubmissionRecord numbered(std::uint64_t n) {
    SubmissionRecord record{};
    record.kind = SubmitKind::kSend;
    record.tag = n;
    record.body.block.message_length = ~n;
    return record;
}

void run_through(Ring& ring, std::uint64_t records) {
    Prng prng(records);
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    while (out < records) {
        for (auto burst = prng.below(kSlots + 2); burst > 0 && in < records; --burst)
            if (ring.producer.push(numbered(in))) ++in;
        ASSERT_LE(in - out, kSlots);
        for (auto burst = prng.below(kSlots + 2); burst > 0; --burst) {
            SubmissionRecord record;
            if (!ring.consumer.take(record)) break;
            ASSERT_EQ(record.tag, out);
            ASSERT_EQ(record.body.block.message_length, ~out);
            ++out;
        }
    }
    EXPECT_FALSE(ring.producer.corrupt());
}

TEST(SlotRing, an_empty_ring_of_zeroed_memory_holds_nothing) {
    Ring ring;
    SubmissionRecord record;
    EXPECT_FALSE(ring.consumer.take(record));
    EXPECT_EQ(ring.consumer.front(), nullptr);
}

TEST(SlotRing, keeps_order_over_many_laps) {
    Ring ring;
    run_through(ring, 10'000);
}

TEST(SlotRing, keeps_order_while_the_counters_wrap) {
    for (const std::uint32_t before : {1U, 7U, 8U, 9U, 100U}) {
        Ring ring(0U - before);
        run_through(ring, 1000);
    }
}

TEST(SlotRing, neighbouring_laps_never_share_a_mark) {
    for (const std::uint32_t slots : {8U, 256U, 65536U}) {
        for (const std::uint32_t n : {0U, 1U, slots, 0U - slots, 0U - 1U, 0x80000000U}) {
            EXPECT_NE(mark_of(n, slots), 0U);
            EXPECT_NE(mark_of(n, slots), mark_of(n - slots, slots));
        }
    }
}

TEST(SlotRing, a_full_ring_says_so_and_goes_on_after_lazy_publication) {
    Ring ring;
    for (std::uint32_t i = 0; i < kSlots; ++i)
        ASSERT_TRUE(ring.producer.push(numbered(i)));
    EXPECT_EQ(ring.producer.claim(), nullptr);
    EXPECT_EQ(ring.producer.room(3), 0U);
    SubmissionRecord record;
    ASSERT_TRUE(ring.consumer.take(record));
    EXPECT_EQ(ring.producer.room(), 0U) << "one of eight is not published yet";
    ASSERT_TRUE(ring.consumer.take(record));
    EXPECT_EQ(ring.producer.room(8), 2U);
    ring.consumer.publish_cursor();
    EXPECT_TRUE(ring.producer.push(numbered(8)));
}

TEST(SlotRing, a_cursor_that_moves_back_or_runs_ahead_is_corrupt) {
    for (const std::uint32_t bad : {0xffffffffU, 9U, 0x80000000U}) {
        Ring ring;
        for (std::uint32_t i = 0; i < kSlots; ++i)
            ASSERT_TRUE(ring.producer.push(numbered(i)));
        ring.consumed = bad;
        EXPECT_EQ(ring.producer.claim(), nullptr);
        EXPECT_TRUE(ring.producer.corrupt()) << bad;
    }
    Ring ring;
    for (std::uint32_t i = 0; i < kSlots; ++i)
        ASSERT_TRUE(ring.producer.push(numbered(i)));
    ring.consumed = 4;
    EXPECT_EQ(ring.producer.room(5), 4U);
    ring.consumed = 3;
    EXPECT_EQ(ring.producer.room(5), 0U);
    EXPECT_TRUE(ring.producer.corrupt());
}

TEST(SlotRing, what_is_taken_is_a_copy) {
    Ring ring;
    ASSERT_TRUE(ring.producer.push(numbered(1)));
    SubmissionRecord record;
    ASSERT_TRUE(ring.consumer.take(record));
    ring.records[0].tag = 99;
    EXPECT_EQ(record.tag, 1U);
}

// ---------------------------------------------------------------- two threads

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value) {
    // Bounded only so that a lost wake-up fails the test instead of hanging it.
    const timespec limit{20, 0};
    const auto status = syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
    if (status != 0 && errno == ETIMEDOUT) ADD_FAILURE() << "a wake-up was lost";
}

void futex_wake(std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

struct SharedEndpoint {
    SharedEndpoint() {
        layout = compute_layout({kSlots, kSlots, 4096, 4096}).value();
        memory = std::aligned_alloc(kPageOctets, layout.region_octets);
        std::memset(memory, 0, layout.region_octets);
        initialise_control(memory, layout, 1, 1);
        region = Region(memory, layout);
    }
    ~SharedEndpoint() { std::free(memory); }
    SharedEndpoint(const SharedEndpoint&) = delete;
    SharedEndpoint& operator=(const SharedEndpoint&) = delete;

    RegionLayout layout{};
    void* memory = nullptr;
    Region region;
    std::counting_semaphore<1 << 20> doorbell{0};  ///< stands for the socket
};

/// The engine's side: echoes every submission as a completion, and sleeps when there is none.
void echo(SharedEndpoint& shared, std::uint64_t records) {
    EndpointControl& control = shared.region.control();
    SubmissionConsumer in = shared.region.submission_consumer();
    CompletionProducer out = shared.region.completion_producer();
    for (std::uint64_t n = 0; n < records;) {
        if (!in.ready()) {
            engine_going_to_sleep(control);
            sleep_fence();
            if (!in.ready()) {
                if (!shared.doorbell.try_acquire_for(std::chrono::seconds(20))) {
                    ADD_FAILURE() << "a doorbell was lost";
                    return;
                }
            }
            engine_awake(control);
            continue;
        }
        if (out.room() == 0) {
            std::this_thread::yield();
            continue;
        }
        SubmissionRecord record;
        ASSERT_TRUE(in.take(record));
        ASSERT_EQ(record.tag, n++);
        CompletionRecord* slot = out.claim();
        slot->kind = CompletionKind::kMessage;
        slot->tag = record.tag;
        out.publish();
        if (client_to_notify(control) == ClientState::kAsleep) futex_wake(control.wake_sequence);
    }
}

/// The client's side: keeps up to `window` submissions pending.
void submit_and_check(SharedEndpoint& shared, std::uint64_t records, std::uint64_t window) {
    EndpointControl& control = shared.region.control();
    SubmissionProducer out = shared.region.submission_producer();
    CompletionConsumer in = shared.region.completion_consumer();
    std::uint64_t sent = 0;
    for (std::uint64_t received = 0; received < records;) {
        while (sent < records && sent - received < window && out.push(numbered(sent))) {
            ++sent;
            if (engine_needs_doorbell(control)) shared.doorbell.release();
        }
        if (const CompletionRecord* record = in.front()) {
            ASSERT_EQ(record->tag, received++);
            in.pop();
            continue;
        }
        const std::uint32_t sequence = client_going_to_sleep(control);
        if (!in.ready()) futex_wait(control.wake_sequence, sequence);
        client_polls(control);
    }
}

TEST(SlotRingThreads, both_sides_sleep_and_no_wake_up_is_lost) {
    for (const std::uint64_t window : {1U, 3U, 8U}) {
        SharedEndpoint shared;
        constexpr std::uint64_t kRecords = 20'000;
        std::thread engine([&] { echo(shared, kRecords); });
        submit_and_check(shared, kRecords, window);
        engine.join();
    }
}

/// The engine's side: publishes one record, notifies, and waits until it is taken, so that the next
/// notification cannot hide a lost one.
void publish_and_notify(SharedEndpoint& shared, const std::atomic<std::uint64_t>& taken,
                        const std::atomic<bool>& stop, std::counting_semaphore<1 << 20>& upcalls) {
    EndpointControl& control = shared.region.control();
    CompletionProducer out = shared.region.completion_producer();
    for (std::uint64_t n = 0; !stop.load(std::memory_order_relaxed);) {
        if (taken.load(std::memory_order_relaxed) != n || out.room() == 0) {
            std::this_thread::yield();
            continue;
        }
        CompletionRecord* slot = out.claim();
        slot->kind = CompletionKind::kMessage;
        slot->tag = n++;
        out.publish();
        switch (client_to_notify(control)) {
            case ClientState::kPolling:
                break;
            case ClientState::kAsleep:
                futex_wake(control.wake_sequence);
                break;
            case ClientState::kComputing:
                upcalls.release();
                break;
        }
    }
}

TEST(SlotRingThreads, no_record_is_lost_in_100000_random_revocations) {
    SharedEndpoint shared;
    EndpointControl& control = shared.region.control();
    CompletionConsumer in = shared.region.completion_consumer();
    std::atomic<std::uint64_t> taken{0};
    std::atomic<bool> stop{false};
    std::counting_semaphore<1 << 20> upcalls{0};  // stands for the signal
    std::thread engine([&] { publish_and_notify(shared, taken, stop, upcalls); });
    std::minstd_rand random(11);
    unsigned interrupts = 0;
    const auto take_all = [&] {
        for (; in.ready(); in.pop())
            ASSERT_EQ(in.front()->tag, taken.fetch_add(1, std::memory_order_relaxed));
    };
    for (int revocations = 0; revocations < 100'000 && !::testing::Test::HasFailure();) {
        take_all();
        if (random() % 4 == 0) {
            const std::uint32_t sequence = client_going_to_sleep(control);
            if (!in.ready()) futex_wait(control.wake_sequence, sequence);
            client_polls(control);
            continue;
        }
        ++revocations;
        client_going_to_compute(control);
        if (in.ready()) {
            client_polls(control);
            continue;
        }
        // Computes: only the upcall ends this. A late upcall of an earlier record does no harm.
        if (!upcalls.try_acquire_for(std::chrono::seconds(20))) {
            ADD_FAILURE() << "an upcall was lost after " << taken.load() << " records";
            break;
        }
        ++interrupts;
        client_polls(control);
    }
    stop.store(true, std::memory_order_relaxed);
    engine.join();
    EXPECT_GT(taken.load(), 10'000U);
    EXPECT_GT(interrupts, 1'000U);
}

TEST(SlotRingThreads, spinning_sides_hand_over_every_record) {
    SharedEndpoint shared;
    constexpr std::uint64_t kRecords = 200'000;
    std::thread engine([&] {
        SubmissionConsumer in = shared.region.submission_consumer();
        SubmissionRecord record;
        for (std::uint64_t n = 0; n < kRecords;) {
            if (in.take(record)) {
                ASSERT_EQ(record.tag, n);
                ASSERT_EQ(record.body.block.message_length, ~n);
                ++n;
            } else {
                std::this_thread::yield();
            }
        }
    });
    SubmissionProducer out = shared.region.submission_producer();
    for (std::uint64_t n = 0; n < kRecords;) {
        if (out.push(numbered(n))) {
            ++n;
        } else {
            std::this_thread::yield();
        }
    }
    engine.join();
}

}  // namespace
}  // namespace ulc::abi
