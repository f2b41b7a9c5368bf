// SPDX-License-Identifier: BSD-3-Clause
// Tests the driver's pure files against QEMU's model of the 21143, register by register and frame
// by frame, without a guest: the test is the machine's processor. Identity, PHY, filter, frames of
// every size both ways, many ring sizes, a full ring, stop and start.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "drivers/tulip/chip.h"
#include "drivers/tulip/rx_ring.h"
#include "drivers/tulip/setup_frame.h"
#include "drivers/tulip/srom.h"
#include "drivers/tulip/tx_ring.h"
#include "qtest_frames.h"

namespace ulc::tulip {
namespace {

using nic::Frame;
using nic::kOwn;
using nic::kPeer;
using nic::make_frame;
using nic::QtestMachine;

/// The chip of the machine.
class QtestBus final : public Bus {
public:
    explicit QtestBus(QtestMachine& machine) : machine_(machine) {}
    std::uint32_t read(Csr csr) noexcept override { return machine_.read32(offset_of(csr)); }
    void write(Csr csr, std::uint32_t value) noexcept override {
        machine_.write32(offset_of(csr), value);
    }
    void wait(Nanos span) noexcept override { QtestMachine::wait(span); }

private:
    QtestMachine& machine_;
};

constexpr std::uint32_t kTxList = 0x0020'0000;
constexpr std::uint32_t kRxList = 0x0021'0000;
constexpr std::uint32_t kSetup = 0x0022'0000;
constexpr std::uint32_t kBuffers = 0x0030'0000;
constexpr std::uint32_t kBufferOctets = 1536;

class TulipQtest : public testing::Test,
                   protected nic::DriverOnQtest<TulipQtest, QtestBus, Chip, TxRing, RxRing> {
    friend nic::DriverOnQtest<TulipQtest, QtestBus, Chip, TxRing, RxRing>;

protected:
    void SetUp() override {
        if (!QtestMachine::available()) GTEST_SKIP() << "QEMU is missing; run: tools/setup test";
        machine_ = std::make_unique<QtestMachine>("tulip", 1, nic::kOwnText);
        bus_ = std::make_unique<QtestBus>(*machine_);
        chip_ = std::make_unique<Chip>(*bus_, Model::k21143);
        ASSERT_EQ(chip_->reset({}), Fault::kNone);
    }

    /// Starts rings of `size`, with the filter in force, and both processes running.
    void run(std::uint32_t size, std::span<const MacAddress> multicasts = {}) {
        tx_ = std::make_unique<TxRing>(
            std::span(reinterpret_cast<Descriptor*>(machine_->at(kTxList)), size));
        rx_ = std::make_unique<RxRing>(
            std::span(reinterpret_cast<Descriptor*>(machine_->at(kRxList)), size), kBufferOctets);
        for (std::uint32_t i = 0; i < size; ++i) {
            const std::uint32_t bus = kBuffers + i * kBufferOctets;
            rx_->arm(i, {.owner = machine_->at(bus), .bus_address = bus});
        }
        chip_->set_lists(kTxList, kRxList);
        filter(multicasts);
        chip_->start_transmit();
        TxDone done{};
        ASSERT_TRUE(tx_->reap(done));
        EXPECT_EQ(done.result, TxResult::kSetup);
        chip_->start_receive();
    }

    void filter(std::span<const MacAddress> multicasts) {
        const std::span<std::byte, kSetupFrameOctets> frame(machine_->at(kSetup),
                                                            kSetupFrameOctets);
        const FilterKind kind = build_setup_frame(kOwn, multicasts, frame);
        ASSERT_TRUE(tx_->post_setup(kSetup, kind == FilterKind::kHash));
        chip_->demand_transmit();
    }

    RxVerdict peek(RxFrame& frame) { return rx_->peek(frame); }
    void give_back() {
        rx_->recycle();
        chip_->demand_receive();
    }
};

TEST_F(TulipQtest, is_known_by_its_ids_rom_and_phy) {
    EXPECT_EQ(machine_->vendor(), 0x1011);
    EXPECT_EQ(machine_->device(), 0x0019);
    RomImage image{};
    ASSERT_EQ(read_rom(*bus_, image), Fault::kNone);
    MacAddress address{};
    ASSERT_EQ(parse_address(image, address), Fault::kNone) << "its checksum is right";
    EXPECT_EQ(address, kOwn);
    ASSERT_EQ(chip_->set_up_phy(Media::kNegotiate), Fault::kNone);
    EXPECT_EQ(chip_->phy().address(), 1);
    const Link link = chip_->phy().link();
    ASSERT_EQ(chip_->apply(link), Fault::kNone);
    EXPECT_EQ(link, (Link{.up = true, .full_duplex = true, .mbit = 100}));
    EXPECT_EQ(chip_->check(), Fault::kNone);
}

TEST_F(TulipQtest, carries_frames_of_every_size_both_ways) {
    run(16);
    expect_every_size();
}

TEST_F(TulipQtest, filters_by_the_setup_frame) {
    const MacAddress broadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const MacAddress joined{0x01, 0x00, 0x5e, 0x01, 0x02, 0x03};
    const MacAddress foreign{0x01, 0x00, 0x5e, 0x01, 0x02, 0x04};
    run(8, std::span(&joined, 1));
    EXPECT_TRUE(passes(broadcast));
    EXPECT_TRUE(passes(joined));
    EXPECT_FALSE(passes(foreign));
    EXPECT_FALSE(passes(kPeer));
    chip_->set_reception({.promiscuous = false, .all_multicast = true});
    EXPECT_TRUE(passes(foreign));
    EXPECT_FALSE(passes(kPeer));
    chip_->set_reception({.promiscuous = true, .all_multicast = false});
    EXPECT_TRUE(passes(kPeer));
    chip_->set_reception({});
    filter(std::span(&foreign, 1));
    TxDone done{};
    ASSERT_TRUE(tx_->reap(done));
    EXPECT_TRUE(passes(foreign));
    EXPECT_FALSE(passes(joined));
}

TEST_F(TulipQtest, wraps_at_many_ring_sizes) {
    for (const std::uint32_t size : {2U, 3U, 7U, 64U}) {
        run(size);
        for (std::uint32_t i = 0; i < size * 2 + 3; ++i)
            ASSERT_NO_FATAL_FAILURE(expect_both_ways(60 + i, static_cast<std::uint8_t>(i)))
                << size << ", frame " << i;
        ASSERT_EQ(chip_->stop(), Fault::kNone);
        ASSERT_EQ(chip_->reset({}), Fault::kNone);
    }
}

TEST_F(TulipQtest, loops_back_inside_the_chip) {
    chip_->set_internal_loopback(true);
    run(4);
    const Frame frame = make_frame(kOwn, 200, 9);
    send(frame, 14);
    EXPECT_EQ(receive(), frame);
    chip_->set_internal_loopback(false);
}

TEST_F(TulipQtest, goes_on_after_its_ring_was_full) {
    run(4);
    for (std::uint8_t i = 0; i < 4; ++i)
        machine_->put_frame(make_frame(kOwn, 100, i));
    for (int tries = 0; tries < 2000 && !rx_->done_at(3); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(rx_->done_at(3));
    machine_->put_frame(make_frame(kOwn, 100, 99));  // no descriptor: lost, as on the wire
    for (int tries = 0; tries < 2000 && (bus_->read(Csr::kStatus) & csr5::kRU) == 0; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_NE(bus_->read(Csr::kStatus) & csr5::kRU, 0U);
    for (std::uint8_t i = 0; i < 4; ++i)
        EXPECT_EQ(receive(), make_frame(kOwn, 100, i));
    EXPECT_EQ(chip_->check(), Fault::kNone);
    machine_->put_frame(make_frame(kOwn, 100, 7));
    EXPECT_EQ(receive(), make_frame(kOwn, 100, 7));
}

TEST_F(TulipQtest, receives_nothing_while_it_stands) {
    run(4);
    ASSERT_EQ(chip_->stop(), Fault::kNone);
    RxFrame frame{};
    machine_->put_frame(make_frame(kOwn, 100, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(rx_->peek(frame), RxVerdict::kEmpty);
    chip_->start_transmit();
    chip_->start_receive();
    EXPECT_EQ(receive(), make_frame(kOwn, 100, 1)) << "the hub kept it meanwhile";
}

}  // namespace
}  // namespace ulc::tulip
