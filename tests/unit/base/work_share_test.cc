// SPDX-License-Identifier: BSD-3-Clause
// The exception path's share of the engine's time, in virtual time. It has a fixed part of the time
// while ULC's own frames come, all of it while none come, and a smaller part of a processor that it
// shares.
#include "dpdk/kernel/work_share.h"

#include <gtest/gtest.h>

namespace ulc::dpdk {
namespace {

constexpr Nanos kShare = WorkShare::kOfThread;
constexpr double kPart = 1.0 / kShare;

struct Thread {
    WorkShare share{kShare};
    Nanos now = kSecond;
    std::uint64_t served = 0;

    /// Rounds of 16 us, each with a frame of ours if `ours`; work of `cost` wherever it is allowed.
    void run(Nanos span, bool ours, Nanos cost) {
        for (const Nanos end = now + span; now < end; now += 16 * kMicrosecond) {
            if (ours) share.on_ours(now);
            if (!share.may_work(now)) continue;
            ++served;
            now += cost;
            share.on_work(now, cost);
        }
    }
};

TEST(WorkShare, takes_its_part_of_the_time_while_frames_of_ours_come) {
    for (const Nanos cost : {Nanos{500}, 5 * kMicrosecond, 50 * kMicrosecond, 400 * kMicrosecond}) {
        Thread thread;
        thread.run(kSecond, true, cost);
        const double part =
            static_cast<double>(thread.share.worked()) / static_cast<double>(thread.share.busy());
        EXPECT_LE(part, 1.02 * kPart) << cost;
        if (cost > kMicrosecond) {
            EXPECT_GE(part, 0.9 * kPart) << "and all of it is used; " << cost;
        }
    }
}

TEST(WorkShare, of_a_wire_is_kept_by_frames_that_take_longer_than_the_looks) {
    for (const Nanos frame : {Nanos{6'720}, Nanos{123'040}, Nanos{1'230'400}}) {
        WorkShare wire{WorkShare::kOfWire};
        constexpr double kWirePart = 1.0 / WorkShare::kOfWire;
        Nanos now = kSecond;
        for (; now < 3 * kSecond; now += 16 * kMicrosecond) {
            wire.on_ours(now);
            if (wire.may_work(now)) wire.on_work(now, frame);
        }
        const double part = static_cast<double>(wire.worked()) / (2.0 * kSecond);
        EXPECT_LE(part, 1.02 * kWirePart) << frame;
        EXPECT_GE(part, 0.98 * kWirePart) << "and all of it is used; " << frame;
    }
}

TEST(WorkShare, is_all_the_time_while_nothing_of_ours_comes) {
    Thread thread;
    thread.run(kSecond, false, 100 * kMicrosecond);
    EXPECT_GE(thread.served, kSecond / (116 * kMicrosecond));
    EXPECT_EQ(thread.share.worked(), 0) << "what costs ours nothing is not counted";
}

TEST(WorkShare, saves_little_for_later) {
    Thread thread;
    thread.run(kSecond, true, 0);
    const Nanos before = thread.share.worked();
    thread.run(2 * kMillisecond, true, 10 * kMicrosecond);
    EXPECT_LE(thread.share.worked() - before,
              WorkShare::kSavedMax + 2 * kMillisecond / kShare + 10 * kMicrosecond);
}

TEST(WorkShare, stays_under_a_twentieth_of_what_the_thread_has_of_a_processor_that_it_shares) {
    Thread thread;
    Nanos own = 0;
    for (int slice = 0; slice < 100; ++slice) {
        thread.run(4 * kMillisecond, true, 10 * kMicrosecond);
        own += 4 * kMillisecond;
        thread.now += 20 * kMillisecond;  // another thread's
    }
    EXPECT_LE(thread.share.worked() * 20, own);
    EXPECT_GE(thread.share.worked() * 2 * kShare, own) << "nor does it starve";
}

TEST(WorkShare, begins_anew_when_ours_come_again) {
    Thread thread;
    thread.run(kSecond, false, 100 * kMicrosecond);
    thread.run(kSecond, true, 100 * kMicrosecond);
    EXPECT_LE(thread.share.worked() * kShare,
              thread.share.busy() + kShare * (WorkShare::kSavedMax + 100 * kMicrosecond));
}

TEST(WorkShare, short_pauses_of_ours_save_nothing) {
    constexpr Nanos kCost = 30 * kMicrosecond;
    constexpr int kBursts = 100;
    Thread thread;
    for (int burst = 0; burst < kBursts; ++burst) {
        thread.run(4 * kMillisecond, true, kCost);
        thread.run(WorkShare::kQuietAfter + 500 * kMicrosecond, false, kCost);
    }
    EXPECT_LE(thread.share.worked(), thread.share.busy() / kShare + kBursts * kCost)
        << "more than one look at the begin of each burst";
    EXPECT_GE(thread.share.worked() * 2 * kShare, thread.share.busy()) << "nor does it starve";
}

TEST(WorkShare, a_slice_of_another_thread_is_no_pause_of_ours) {
    constexpr Nanos kCost = 30 * kMicrosecond;
    constexpr int kSlices = 100;
    Thread thread;
    for (int slice = 0; slice < kSlices; ++slice) {
        thread.run(3 * kMillisecond, true, kCost);
        thread.now += 4 * kMillisecond;
        thread.run(100 * kMicrosecond, false, kCost);  // ours come a little later
    }
    EXPECT_LE(static_cast<Nanos>(thread.served) * kCost * 45, kSlices * 3 * kMillisecond);
}

TEST(LookPace, prefers_rounds_without_frames_of_ours) {
    LookPace pace;
    int looks = 0;
    int disturbed = 0;
    for (int round = 0; round < 10'000; ++round) {
        const bool ours = round % 5 != 0;
        if (!pace.due(ours)) continue;
        ++looks;
        disturbed += ours ? 1 : 0;
    }
    EXPECT_EQ(disturbed, 0);
    EXPECT_GE(looks, 10'000 / 20);
}

TEST(LookPace, looks_also_if_each_round_brings_ours) {
    LookPace pace;
    int looks = 0;
    for (int round = 0; round < 3'200; ++round)
        looks += pace.due(true) ? 1 : 0;
    EXPECT_EQ(looks, 100);
}

TEST(WorkShare, a_long_gap_is_a_pause) {
    Thread thread;
    thread.run(10 * kMillisecond, true, 100 * kMicrosecond);
    thread.now += WorkShare::kPauseSure;
    EXPECT_TRUE(thread.share.may_work(thread.now));
    EXPECT_FALSE(thread.share.ours_come(thread.now));
}

}  // namespace
}  // namespace ulc::dpdk
