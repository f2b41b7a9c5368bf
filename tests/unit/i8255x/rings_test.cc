// SPDX-License-Identifier: BSD-3-Clause
// Tests both rings of the 8255x driver with the register model as their chip: order, wrap at every
// size, suspend and resume, the end of the list, errors by name, and blocks that never come back.
#include <utility>

#include "tests/unit/i8255x/rig.h"

namespace ulc::i8255x {
namespace {

TEST(I8255xTxRing, sends_in_order_across_the_wrap_at_every_size) {
    nic::expect_order_across_the_wrap<Rig>(
        [](const Rig& rig, std::size_t) { return rig.tx.room() == 0; });
}

TEST(I8255xTxRing, suspends_behind_the_newest_block_and_nowhere_else) {
    Rig rig(8);
    for (std::uint32_t i = 0; i < 5; ++i)
        ASSERT_TRUE(rig.send(i));
    auto* blocks = reinterpret_cast<CommandBlock*>(rig.model.at(kBlocks));
    for (std::uint32_t i = 0; i <= 4; ++i)  // block 0 was the configuration
        EXPECT_EQ(blocks[i].command & cb::kSuspend, 0) << "block " << i;
    EXPECT_NE(blocks[5].command & cb::kSuspend, 0);
    rig.chip.demand_transmit();
    EXPECT_EQ(rig.model.cu(), scb::Cu::kSuspended);
    const std::uint64_t executed = rig.model.executed;
    EXPECT_EQ(executed, 6U);
    rig.chip.demand_transmit();
    EXPECT_EQ(rig.model.executed, executed) << "a resume without a new block does nothing";
    EXPECT_EQ(rig.model.sent.size(), 5U);
}

TEST(I8255xTxRing, joins_the_parts_of_a_frame) {
    nic::expect_joined_parts<Rig>(7);  // one block a frame, whatever its parts
}

TEST(I8255xTxRing, gives_each_frame_the_threshold_of_its_time) {
    Rig rig(4);
    rig.tx.set_threshold(16);
    ASSERT_TRUE(rig.send(1));
    rig.tx.set_threshold(0xe0);
    ASSERT_TRUE(rig.send(2));
    rig.chip.demand_transmit();
    EXPECT_EQ(rig.model.thresholds, (std::vector<std::uint8_t>{16, 0xe0}));
}

TEST(I8255xTxRing, names_what_became_of_a_frame) {
    const std::pair<std::uint16_t, TxResult> cases[] = {
        {cb::kOk, TxResult::kSent},
        {cb::kOk | cb::kUnderrun, TxResult::kSentLate},
        {0, TxResult::kCollisions},
        {cb::kUnderrun, TxResult::kCollisions},
    };
    nic::expect_results<Rig>(cases, [](std::uint16_t) { return 0; });
}

TEST(I8255xTxRing, keeps_what_the_chip_does_not_return_until_it_is_dropped) {
    nic::expect_kept_until_dropped<Rig>([](Rig& rig) { rig.run(); });
}

TEST(I8255xTxRing, tells_which_blocks_are_done) {
    Rig rig(4);
    for (std::uint32_t i = 0; i < 4; ++i)
        EXPECT_TRUE(rig.tx.done_at(i)) << "free ones are done";
    ASSERT_TRUE(rig.send(1));
    EXPECT_TRUE(rig.tx.done_at(2));
    EXPECT_FALSE(rig.tx.done_at(3));
    rig.chip.demand_transmit();
    EXPECT_TRUE(rig.tx.done_at(3));
}

TEST(I8255xTxRing, carries_the_filter_among_the_frames) {
    Rig rig(8);
    const MacAddress group{0x01, 0, 0x5e, 0, 0, 7};
    const MacAddress own{2, 0, 0, 0, 0, 9};
    ASSERT_TRUE(rig.send(1));
    ASSERT_TRUE(post_filter(rig.tx, {.own = own, .multicasts = {&group, 1}, .reception = {}}, {}));
    ASSERT_TRUE(rig.send(2));
    rig.chip.demand_transmit();
    EXPECT_EQ(rig.model.own, own);
    ASSERT_EQ(rig.model.multicasts.size(), 1U);
    EXPECT_EQ(rig.model.multicasts[0], group);
    const TxResult expected[] = {TxResult::kSent, TxResult::kCommand, TxResult::kCommand,
                                 TxResult::kSetup, TxResult::kSent};
    for (const TxResult result : expected) {
        TxDone done{};
        ASSERT_TRUE(rig.tx.reap(done));
        EXPECT_EQ(done.result, result);
        EXPECT_EQ(done.frame == nullptr, result != TxResult::kSent);
    }
}

TEST(I8255xTxRing, does_not_report_a_filter_that_failed) {
    Rig rig(8);
    rig.model.faults.commands_fail = true;
    ASSERT_TRUE(post_filter(rig.tx, {}, {}));
    rig.chip.demand_transmit();
    TxDone done{};
    for (std::uint32_t i = 0; i < kFilterBlocks; ++i) {
        ASSERT_TRUE(rig.tx.reap(done));
        EXPECT_EQ(done.result, TxResult::kCommand);
    }
}

TEST(I8255xRxRing, takes_in_order_across_the_wrap_at_every_size) {
    for (std::uint32_t size = 2; size <= 33; ++size) {
        Rig rig(size);
        std::uint32_t spare = size;  // the buffer that is not in the ring
        std::uint8_t sent = 0;
        std::uint8_t taken = 0;
        for (int round = 0; round < 8; ++round) {
            const std::uint8_t before = sent;
            while (rig.deliver(sent))
                ++sent;
            EXPECT_EQ(static_cast<std::uint8_t>(sent - before), size) << "the ring is whole";
            EXPECT_EQ(rig.model.ru(), scb::Ru::kNoResources);
            EXPECT_TRUE(rig.rx.done_at(size - 1));
            RxFrame frame{};
            while (rig.rx.peek(frame, false) == RxVerdict::kFrame) {
                ASSERT_EQ(frame.octets, 60U);
                ASSERT_EQ(*static_cast<std::byte*>(frame.owner), std::byte{taken++});
                rig.rx.replace(rig.buffer(spare));
                const auto at = static_cast<std::byte*>(frame.owner) - rig.model.at(kFrames);
                spare = static_cast<std::uint32_t>(at) / kPlaceOctets;
            }
            ASSERT_EQ(taken, sent);
            EXPECT_FALSE(rig.rx.done_at(0));
            ASSERT_TRUE(rig.rx.may_have_stopped());
            rig.chip.resume_receive(rig.rx);
            EXPECT_FALSE(rig.rx.may_have_stopped());
        }
    }
}

/// A stream whose reader stays close behind needs no restart, and asks the chip at most four times
/// a round.
TEST(I8255xRxRing, goes_round_without_a_stop_if_the_reader_keeps_up) {
    for (const std::uint32_t size : {4U, 5U, 16U, 33U}) {
        Rig rig(size);
        const std::uint64_t starts = rig.model.receive_starts;
        std::uint64_t asked = 0;
        constexpr int kFramesSent = 2000;
        for (int i = 0; i < kFramesSent; ++i) {
            ASSERT_TRUE(rig.deliver(static_cast<std::uint8_t>(i)));
            RxFrame frame{};
            ASSERT_EQ(rig.rx.peek(frame, false), RxVerdict::kFrame);
            ASSERT_EQ(*static_cast<std::byte*>(frame.owner), std::byte(i));
            rig.rx.recycle();
            if (!rig.rx.may_have_stopped()) continue;
            ++asked;
            rig.chip.resume_receive(rig.rx);
        }
        EXPECT_EQ(rig.model.receive_starts, starts);
        EXPECT_LE(asked, kFramesSent / (size / 4) + 1);
    }
}

/// The chip may have read the end of the list before the driver moved it.
TEST(I8255xRxRing, restarts_a_chip_that_saw_the_end_too_early) {
    for (std::uint32_t size = 2; size <= 33; ++size) {
        Rig rig(size);
        rig.model.faults.prefetches_end = true;
        std::uint8_t sent = 0;
        std::uint8_t taken = 0;
        std::uint32_t lost = 0;
        for (int round = 0; round < 400; ++round) {
            for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(round) % size; ++i)
                if (rig.deliver(sent))
                    ++sent;
                else
                    ++lost;
            for (int number = rig.take(); number >= 0; number = rig.take())
                ASSERT_EQ(number, taken++);
            ASSERT_EQ(taken, sent) << "ring of " << size;
            ASSERT_EQ(rig.model.ru(), scb::Ru::kReady) << "ring of " << size;
        }
        EXPECT_TRUE(size < 8 || lost <= 400U * size / 8) << "ring of " << size << ": " << lost;
    }
}

TEST(I8255xRxRing, restarts_in_the_middle_of_what_was_not_read_yet) {
    Rig rig(16);
    std::uint8_t sent = 0;
    while (rig.deliver(sent))
        ++sent;
    for (int i = 0; i < 4; ++i)  // the chip gets a quarter of the ring back
        ASSERT_EQ(rig.take(), i);
    EXPECT_EQ(rig.model.ru(), scb::Ru::kReady) << "before the rest was read";
    for (int i = 0; i < 4; ++i)
        ASSERT_TRUE(rig.deliver(sent++));
    EXPECT_FALSE(rig.deliver(99));
    for (int i = 4; i < 20; ++i)
        ASSERT_EQ(rig.take(), i);
    EXPECT_EQ(rig.take(), -1);
}

TEST(I8255xRxRing, names_each_bad_frame_and_goes_on) {
    const std::pair<std::uint16_t, RxVerdict> cases[] = {
        {rfd::kCrc, RxVerdict::kCrc},         {rfd::kCrc | rfd::kAlignment, RxVerdict::kCrc},
        {rfd::kPhyError, RxVerdict::kCrc},    {rfd::kShort | rfd::kCrc, RxVerdict::kRunt},
        {rfd::kCollision, RxVerdict::kRunt},  {rfd::kOverrun, RxVerdict::kOverflow},
        {rfd::kNoSpace, RxVerdict::kTooLong}, {1U << 2, RxVerdict::kMalformed},
    };
    Rig rig(4);
    RxFrame frame{};
    std::uint8_t number = 0;
    for (const auto& [status, expected] : cases) {
        ASSERT_TRUE(rig.deliver(1, status));
        EXPECT_EQ(rig.rx.peek(frame, false), expected) << std::hex << status;
        rig.rx.recycle();
        ASSERT_TRUE(rig.deliver(++number));
        EXPECT_EQ(rig.take(), number);
    }
    ASSERT_TRUE(rig.deliver(1, 0, kBufferOctets + 1));
    EXPECT_EQ(rig.rx.peek(frame, false), RxVerdict::kTooLong);
}

TEST(I8255xRxRing, believes_no_length_of_the_chip) {
    Rig rig(4);
    RxFrame frame{};
    for (std::uint32_t length = 0; length <= rfd::kCountMask; ++length) {
        rig.model.deliver_raw(rfd::kOk,
                              static_cast<std::uint16_t>(length | rfd::kEof | rfd::kFilled));
        const bool possible = length >= 14 && length <= kBufferOctets;
        ASSERT_EQ(rig.rx.peek(frame, false), possible ? RxVerdict::kFrame : RxVerdict::kMalformed);
        rig.rx.recycle();
        rig.chip.resume_receive(rig.rx);
    }
}

TEST(I8255xRxRing, takes_no_content_that_may_not_be_there_yet) {
    Rig rig(4);
    rig.model.faults.late_content = true;
    ASSERT_TRUE(rig.deliver(5));
    RxFrame frame{};
    ASSERT_EQ(rig.rx.peek(frame, false), RxVerdict::kUnsettled);
    (void)rig.model.read32(Reg::kScb);
    ASSERT_EQ(rig.rx.peek(frame, true), RxVerdict::kFrame);
    EXPECT_EQ(frame.octets, 60U);
    EXPECT_EQ(*static_cast<std::byte*>(frame.owner), std::byte{5});
    rig.rx.recycle();
    ASSERT_TRUE(rig.deliver(1, rfd::kCrc));
    EXPECT_EQ(rig.rx.peek(frame, false), RxVerdict::kCrc) << "nothing of it is read";
}

TEST(I8255xRxRing, is_whole_again_after_a_reset_of_the_chip) {
    Rig rig(4);
    ASSERT_TRUE(rig.deliver(1));
    ASSERT_TRUE(rig.deliver(2));
    EXPECT_EQ(rig.take(), 1);
    rig.run();
    EXPECT_EQ(rig.take(), -1) << "what was there before the reset is gone";
    for (std::uint8_t i = 0; i < 4; ++i)
        ASSERT_TRUE(rig.deliver(static_cast<std::uint8_t>(10 + i)));
    ASSERT_FALSE(rig.deliver(14));
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(rig.take(), 10 + i);
}

}  // namespace
}  // namespace ulc::i8255x
