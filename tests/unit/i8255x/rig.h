// SPDX-License-Identifier: BSD-3-Clause
// Both rings of the 8255x driver on the register model, for the tests of the pure files.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "drivers/i8255x/chip.h"
#include "drivers/i8255x/filter.h"
#include "tests/unit/i8255x/model.h"
#include "tests/unit/nic/rings.h"

namespace ulc::i8255x {

inline constexpr std::uint32_t kBlocks = kArenaBus;
inline constexpr std::uint32_t kParts = kArenaBus + 0x2000;
inline constexpr std::uint32_t kDump = kArenaBus + 0x3000;
inline constexpr std::uint32_t kFrames = kArenaBus + 0x4000;
inline constexpr std::uint32_t kBufferOctets = 1536;
inline constexpr std::uint32_t kPlaceOctets = kBufferOctets + sizeof(ReceiveDescriptor);

/// A running chip, with rings of `size`, and frames made from a number.
struct Rig {
    explicit Rig(std::uint32_t size)
        : model(0x4000 + (size + 8) * kPlaceOctets),
          tx({reinterpret_cast<CommandBlock*>(model.at(kBlocks)), size + 1}, kBlocks),
          rx(size, kBufferOctets) {
        for (std::uint32_t i = 0; i < size; ++i)
            rx.arm(i, buffer(i));
        run();
    }

    void run() {
        EXPECT_EQ(chip.reset(), Fault::kNone);
        tx.reset();
        rx.rearm_all();
        EXPECT_EQ(chip.set_up(*reinterpret_cast<Statistics*>(model.at(kDump)), kDump),
                  Fault::kNone);
        EXPECT_TRUE(tx.post_command(cb::kConfigure, configuration_of({}, {}), true));
        EXPECT_EQ(chip.start_transmit(tx), Fault::kNone);
        EXPECT_EQ(chip.start_receive(rx), Fault::kNone);
        TxDone done{};
        EXPECT_TRUE(tx.reap(done) || model.faults.dma_dead);
    }

    RxBuffer buffer(std::uint32_t i) {
        const std::uint32_t bus = kFrames + i * kPlaceOctets;
        auto* descriptor = reinterpret_cast<ReceiveDescriptor*>(model.at(bus));
        return {.owner = descriptor + 1, .descriptor = descriptor, .bus_address = bus};
    }

    /// Posts `segments` parts of 20 bytes that hold `number`; returns false if the ring is full.
    bool send(std::uint32_t number, std::size_t segments = 1, std::uint8_t tries = 0) {
        return nic::post_numbered(model, tx, kParts, number, segments, tries);
    }

    bool deliver(std::uint8_t number, std::uint16_t status = 0, std::size_t octets = 60) {
        const std::vector<std::byte> frame(octets, std::byte{number});
        return model.deliver(frame, status);
    }

    /// Returns the first byte of the next frame, and recycles its place; -1 if there is none.
    int take() {
        RxFrame frame{};
        if (rx.peek(frame, false) != RxVerdict::kFrame) return -1;
        const int number = static_cast<int>(*static_cast<std::byte*>(frame.owner));
        rx.recycle();
        if (rx.may_have_stopped()) chip.resume_receive(rx);
        return number;
    }

    I8255xModel model;
    Chip chip{model};
    TxRing tx;
    RxRing rx;
};

}  // namespace ulc::i8255x
