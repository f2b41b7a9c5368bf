// SPDX-License-Identifier: BSD-3-Clause
// The demands on the transmit rings of both drivers, and frames made from a number. A rig is a
// chip's register model with its rings: `model`, `chip`, `tx`, and send(number, segments, tries).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "drivers/common/ring_types.h"

namespace ulc::nic {

/// Posts `segments` parts of 20 bytes that hold `number`, in the memory of the model from bus
/// address `parts` on; returns false if the ring has no space.
template <typename Model, typename TxRing>
[[nodiscard]] bool post_numbered(Model& model, TxRing& tx, std::uint32_t parts,
                                 std::uint32_t number, std::size_t segments, std::uint8_t tries) {
    std::vector<TxSegment> list;
    for (std::size_t i = 0; i < segments; ++i) {
        const std::uint32_t bus = parts + (number * 8 + static_cast<std::uint32_t>(i)) % 128 * 20;
        std::memset(model.at(bus), static_cast<int>(number + i), 20);
        list.push_back({bus, 20});
    }
    return tx.post(list, reinterpret_cast<void*>(std::uintptr_t{number} + 1), tries);
}
[[nodiscard]] inline std::uint32_t number_of(const TxDone& done) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(done.frame)) - 1;
}

/// Frames of one to four parts leave in order, at each size of the ring, many times around.
/// is_full(rig, segments): a frame of `segments` parts may be refused.
template <typename Rig, typename IsFull>
void expect_order_across_the_wrap(IsFull is_full) {
    for (std::uint32_t size = 2; size <= 33; ++size) {
        Rig rig(size);
        std::uint32_t posted = 0;
        std::uint32_t reported = 0;
        for (int round = 0; round < 40; ++round) {
            const std::size_t segments = 1 + static_cast<std::size_t>(round) % 4;
            while (rig.send(posted, segments))
                ++posted;
            ASSERT_TRUE(is_full(rig, segments)) << "refused though there was space";
            rig.chip.demand_transmit();
            TxDone done{};
            while (rig.tx.reap(done)) {
                ASSERT_EQ(number_of(done), reported++);
                ASSERT_EQ(done.result, TxResult::kSent);
            }
            ASSERT_EQ(reported, posted);
            ASSERT_EQ(rig.tx.room(), size);
        }
        ASSERT_GT(posted, size * 2) << "never wrapped";
        ASSERT_EQ(rig.model.sent.size(), posted);
    }
}

/// Five parts leave as one frame. free: descriptors of the ring of eight that it leaves.
template <typename Rig>
void expect_joined_parts(std::uint32_t free) {
    Rig rig(8);
    ASSERT_TRUE(rig.send(40, 5));
    EXPECT_EQ(rig.tx.room(), free);
    rig.chip.demand_transmit();
    ASSERT_EQ(rig.model.sent.size(), 1U);
    const std::vector<std::byte>& frame = rig.model.sent[0];
    ASSERT_EQ(frame.size(), 100U);
    for (std::size_t i = 0; i < frame.size(); ++i)
        EXPECT_EQ(frame[i], std::byte(40 + i / 20));
}

/// Each status of the chip gives its result. cases: pairs of both. collisions_of(status): those
/// before the frame was sent.
template <typename Rig, typename Cases, typename Collisions>
void expect_results(const Cases& cases, Collisions collisions_of) {
    Rig rig(4);
    for (const auto& [status, expected] : cases) {
        rig.model.faults.tx_status = status;
        rig.model.faults.tx_status_frames = 1;
        ASSERT_TRUE(rig.send(3, 1, 2));
        rig.chip.demand_transmit();
        TxDone done{};
        ASSERT_TRUE(rig.tx.reap(done));
        EXPECT_EQ(done.result, expected) << std::hex << status;
        EXPECT_EQ(done.collisions, collisions_of(status));
        EXPECT_EQ(done.tries, 2);
    }
}

/// A chip that reads no memory keeps its frames until they are dropped. restart(rig): makes chip
/// and rings work again.
template <typename Rig, typename Restart>
void expect_kept_until_dropped(Restart restart) {
    Rig rig(4);
    rig.model.faults.dma_dead = true;
    for (std::uint32_t i = 0; i < 4; ++i)
        ASSERT_TRUE(rig.send(i));
    EXPECT_FALSE(rig.send(4));
    rig.chip.demand_transmit();
    TxDone done{};
    EXPECT_FALSE(rig.tx.reap(done));
    EXPECT_FALSE(rig.tx.done_at(0));
    EXPECT_EQ(rig.tx.pending(), 4U);
    for (std::uint32_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(rig.tx.drop(done));
        EXPECT_EQ(number_of(done), i);
        EXPECT_NE(done.result, TxResult::kSent);
    }
    EXPECT_FALSE(rig.tx.drop(done));
    rig.model.faults.dma_dead = false;
    restart(rig);
    ASSERT_TRUE(rig.send(9));
    rig.chip.demand_transmit();
    ASSERT_TRUE(rig.tx.reap(done));
    EXPECT_EQ(number_of(done), 9U);
}

}  // namespace ulc::nic
