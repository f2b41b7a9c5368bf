// SPDX-License-Identifier: BSD-3-Clause
// Tests both rings with the register model as their chip: order, wrap at every size, errors by
// name, and descriptors that never come back.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>

#include "drivers/tulip/chip.h"
#include "drivers/tulip/rx_ring.h"
#include "drivers/tulip/setup_frame.h"
#include "drivers/tulip/tx_ring.h"
#include "tests/unit/nic/rings.h"
#include "tests/unit/tulip/model.h"

namespace ulc::tulip {
namespace {

constexpr std::uint32_t kTxList = kArenaBus;
constexpr std::uint32_t kRxList = kArenaBus + 0x2000;
constexpr std::uint32_t kFrames = kArenaBus + 0x4000;
constexpr std::uint32_t kBufferOctets = 1536;

/// A running chip, with rings of `size` descriptors, and frames made from a number.
struct Rig {
    explicit Rig(std::uint32_t size)
        : model(0x4000 + (size + 8) * kBufferOctets),
          tx({reinterpret_cast<Descriptor*>(model.at(kTxList)), size}),
          rx({reinterpret_cast<Descriptor*>(model.at(kRxList)), size}, kBufferOctets) {
        EXPECT_EQ(chip.reset({}), Fault::kNone);
        for (std::uint32_t i = 0; i < size; ++i)
            rx.arm(i, buffer(i));
        chip.set_lists(kTxList, kRxList);
        chip.start_transmit();
        chip.start_receive();
    }

    /// Returns the i-th receive buffer; its owner is its place in memory.
    RxBuffer buffer(std::uint32_t i) {
        const std::uint32_t bus = kFrames + i * kBufferOctets;
        return {.owner = model.at(bus), .bus_address = bus};
    }

    /// Sends `segments` parts of 20 bytes that hold `number`; returns false if the ring has no
    /// space.
    bool send(std::uint32_t number, std::size_t segments = 1, std::uint8_t tries = 0) {
        return nic::post_numbered(model, tx, kTxList + 0x1000, number, segments, tries);
    }

    bool deliver(std::uint8_t number, std::uint32_t status = 0, std::size_t octets = 60) {
        const std::vector<std::byte> frame(octets, std::byte{number});
        return model.deliver(frame, status);
    }

    TulipModel model;
    Chip chip{model, Model::k21143};
    TxRing tx;
    RxRing rx;
};

TEST(TulipTxRing, sends_in_order_across_the_wrap_at_every_size) {
    nic::expect_order_across_the_wrap<Rig>(
        [](const Rig& rig, std::size_t segments) { return rig.tx.room() < (segments + 1) / 2; });
}

TEST(TulipTxRing, joins_the_segments_of_a_frame) {
    nic::expect_joined_parts<Rig>(5);  // two buffers a descriptor (GAMMA 7.1)
}

TEST(TulipTxRing, never_shows_the_front_of_a_frame_alone) {
    // The model reads the ring between any two stores, at each OWN, as the chip may.
    Rig rig(8);
    ASSERT_TRUE(rig.send(1, 6));
    auto* d = reinterpret_cast<Descriptor*>(rig.model.at(kTxList));
    EXPECT_NE(d[0].status & kOwn, 0U);
    EXPECT_EQ(d[0].control & (tdes1::kFS | tdes1::kLS), tdes1::kFS);
    EXPECT_EQ(d[1].control & (tdes1::kFS | tdes1::kLS), 0U);
    EXPECT_EQ(d[2].control & (tdes1::kFS | tdes1::kLS), tdes1::kLS);
    TxDone done{};
    d[0].status = 0;  // the chip is at the second descriptor
    EXPECT_FALSE(rig.tx.reap(done)) << "the frame is done with its last descriptor, not its first";
    for (std::uint32_t free = 0; free < 5; ++free)
        EXPECT_TRUE(rig.tx.done_at(free)) << "free ones are done";
    EXPECT_TRUE(rig.tx.done_at(5)) << "the frame's first, which the chip returned";
    EXPECT_FALSE(rig.tx.done_at(6));
    EXPECT_FALSE(rig.tx.done_at(7));
}

TEST(TulipTxRing, names_what_became_of_a_frame) {
    const std::pair<std::uint32_t, TxResult> cases[] = {
        {0, TxResult::kSent},
        {tdes0::kDE, TxResult::kSent},
        {tdes0::kES | tdes0::kEC | tdes0::kCCMask << tdes0::kCCShift, TxResult::kCollisions},
        {tdes0::kES | tdes0::kLC, TxResult::kCollisions},
        {tdes0::kES | tdes0::kUF, TxResult::kUnderflow},
        {tdes0::kES | tdes0::kNC, TxResult::kNoCarrier},
        {tdes0::kES | tdes0::kLO, TxResult::kNoCarrier},
        {tdes0::kES | tdes0::kTO, TxResult::kJabber},
    };
    nic::expect_results<Rig>(
        cases, [](std::uint32_t status) { return (status >> tdes0::kCCShift) & tdes0::kCCMask; });
}

TEST(TulipTxRing, keeps_what_the_chip_does_not_return_until_it_is_dropped) {
    nic::expect_kept_until_dropped<Rig>([](Rig& rig) {
        rig.tx.reset();
        rig.chip.set_lists(kTxList, kRxList);
    });
}

TEST(TulipTxRing, carries_setup_frames_among_the_others) {
    Rig rig(4);
    ASSERT_TRUE(rig.send(1));
    ASSERT_TRUE(rig.tx.post_setup(kTxList + 0x1000, true));
    ASSERT_TRUE(rig.send(2));
    rig.chip.demand_transmit();
    EXPECT_EQ(rig.model.setup.size(), kSetupFrameOctets);
    EXPECT_NE(rig.model.setup_control & tdes1::kFT0, 0U);
    EXPECT_EQ(rig.model.setup_control & (tdes1::kFS | tdes1::kLS), 0U) << "HRM: both clear";
    TxDone done{};
    ASSERT_TRUE(rig.tx.reap(done));
    ASSERT_TRUE(rig.tx.reap(done));
    EXPECT_EQ(done.result, TxResult::kSetup);
    EXPECT_EQ(done.frame, nullptr);
    ASSERT_TRUE(rig.tx.reap(done));
    EXPECT_EQ(done.result, TxResult::kSent);
}

TEST(TulipRxRing, takes_in_order_across_the_wrap_at_every_size) {
    for (std::uint32_t size = 2; size <= 33; ++size) {
        Rig rig(size);
        std::uint32_t spare = size;  // the buffer that is not in the ring
        std::uint8_t sent = 0;
        std::uint8_t taken = 0;
        for (int round = 0; round < 5; ++round) {
            while (rig.deliver(sent))
                ++sent;
            EXPECT_EQ(static_cast<std::uint8_t>(sent - taken), size % 256) << "the ring is whole";
            EXPECT_TRUE(rig.rx.done_at(size - 1));
            RxFrame frame{};
            while (rig.rx.peek(frame) == RxVerdict::kFrame) {
                ASSERT_EQ(frame.octets, 60U);
                ASSERT_EQ(*static_cast<std::byte*>(frame.owner), std::byte{taken++});
                rig.rx.replace(rig.buffer(spare));
                const auto at = static_cast<std::byte*>(frame.owner) - rig.model.at(kFrames);
                spare = static_cast<std::uint32_t>(at) / kBufferOctets;
            }
            ASSERT_EQ(taken, sent);
            EXPECT_FALSE(rig.rx.done_at(0));
        }
    }
}

TEST(TulipRxRing, names_each_bad_frame_and_goes_on) {
    const std::pair<std::uint32_t, RxVerdict> cases[] = {
        {rdes0::kES | rdes0::kCE, RxVerdict::kCrc},
        {rdes0::kES | rdes0::kCE | rdes0::kDB, RxVerdict::kCrc},
        {rdes0::kES | rdes0::kRE, RxVerdict::kCrc},
        {rdes0::kES | rdes0::kRF | rdes0::kCE, RxVerdict::kRunt},
        {rdes0::kES | rdes0::kCS, RxVerdict::kRunt},
        {rdes0::kES | rdes0::kOF, RxVerdict::kOverflow},
        {rdes0::kES | rdes0::kRW, RxVerdict::kTooLong},
        {rdes0::kES, RxVerdict::kMalformed},
    };
    Rig rig(4);
    RxFrame frame{};
    for (const auto& [status, expected] : cases) {
        ASSERT_TRUE(rig.deliver(1, status));
        EXPECT_EQ(rig.rx.peek(frame), expected) << std::hex << status;
        rig.rx.recycle();
        ASSERT_TRUE(rig.deliver(2, rdes0::kDB));  // a dribble with a good CRC is a good frame
        ASSERT_EQ(rig.rx.peek(frame), RxVerdict::kFrame);
        EXPECT_EQ(*static_cast<std::byte*>(frame.owner), std::byte{2});
        rig.rx.recycle();
    }
}

TEST(TulipRxRing, believes_no_length_of_the_chip) {
    Rig rig(4);
    RxFrame frame{};
    for (std::uint32_t length = 0; length <= rdes0::kFLMask; ++length) {
        rig.model.deliver_raw(rdes0::kFS | rdes0::kLS | length << rdes0::kFLShift);
        const bool possible = length >= 18 && length <= kBufferOctets;
        ASSERT_EQ(rig.rx.peek(frame), possible ? RxVerdict::kFrame : RxVerdict::kMalformed);
        rig.rx.recycle();
    }
}

TEST(TulipRxRing, counts_a_frame_of_many_buffers_once) {
    Rig rig(4);
    rig.model.deliver_raw(rdes0::kFS);
    rig.model.deliver_raw(0);
    rig.model.deliver_raw(rdes0::kLS | 5000U << rdes0::kFLShift);
    RxFrame frame{};
    const RxVerdict expected[] = {RxVerdict::kTooLong, RxVerdict::kRest, RxVerdict::kRest};
    for (const RxVerdict verdict : expected) {
        EXPECT_EQ(rig.rx.peek(frame), verdict);
        rig.rx.recycle();
    }
    EXPECT_EQ(rig.rx.peek(frame), RxVerdict::kEmpty);
}

TEST(TulipRxRing, is_whole_again_after_a_reset_of_the_chip) {
    Rig rig(4);
    ASSERT_TRUE(rig.deliver(1));
    ASSERT_TRUE(rig.deliver(2));
    RxFrame frame{};
    ASSERT_EQ(rig.rx.peek(frame), RxVerdict::kFrame);
    rig.rx.recycle();
    ASSERT_EQ(rig.chip.reset({}), Fault::kNone);
    rig.rx.rearm_all();
    rig.chip.set_lists(kTxList, kRxList);
    rig.chip.start_receive();
    EXPECT_EQ(rig.rx.peek(frame), RxVerdict::kEmpty) << "what was there before the reset is gone";
    for (std::uint8_t i = 0; i < 4; ++i)
        ASSERT_TRUE(rig.deliver(static_cast<std::uint8_t>(10 + i)));
    ASSERT_FALSE(rig.deliver(14));
    for (std::uint8_t i = 0; i < 4; ++i) {
        ASSERT_EQ(rig.rx.peek(frame), RxVerdict::kFrame);
        EXPECT_EQ(*static_cast<std::byte*>(frame.owner), std::byte(10 + i));
        rig.rx.recycle();
    }
}

}  // namespace
}  // namespace ulc::tulip
