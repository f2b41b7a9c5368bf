// SPDX-License-Identifier: BSD-3-Clause
// Tests the 8255x driver's pure files against QEMU's models of the family, register by register and
// frame by frame, without a guest: the test is the machine's processor. Five chips of the family:
// identity, filter, frames of every size both ways, many ring sizes, a full ring, stop and start.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "drivers/i8255x/chip.h"
#include "drivers/i8255x/eeprom.h"
#include "drivers/i8255x/filter.h"
#include "qtest_frames.h"

namespace ulc::i8255x {
namespace {

using nic::Frame;
using nic::kOwn;
using nic::kPeer;
using nic::make_frame;
using nic::QtestMachine;

constexpr std::uint32_t kBlocks = 0x0020'0000;
constexpr std::uint32_t kDump = 0x0022'0000;
constexpr std::uint32_t kBuffers = 0x0030'0000;
constexpr std::uint32_t kBufferOctets = 1536;
constexpr std::uint32_t kPlaceOctets = kBufferOctets + sizeof(ReceiveDescriptor);

class QtestBus final : public Bus {
public:
    explicit QtestBus(QtestMachine& machine) : machine_(machine) {}
    std::uint32_t read32(Reg reg) noexcept override { return machine_.read32(at(reg)); }
    std::uint16_t read16(Reg reg) noexcept override { return machine_.read16(at(reg)); }
    void write32(Reg reg, std::uint32_t value) noexcept override {
        machine_.write32(at(reg), value);
    }
    void write16(Reg reg, std::uint16_t value) noexcept override {
        machine_.write16(at(reg), value);
    }
    void write8(Reg reg, std::uint8_t value) noexcept override { machine_.write8(at(reg), value); }
    void wait(Nanos span) noexcept override { QtestMachine::wait(span); }

private:
    static std::uint32_t at(Reg reg) { return static_cast<std::uint32_t>(reg); }
    QtestMachine& machine_;
};

/// The parameter is the name of QEMU's device.
class I8255xQtest : public testing::TestWithParam<const char*>,
                    protected nic::DriverOnQtest<I8255xQtest, QtestBus, Chip, TxRing, RxRing> {
    friend nic::DriverOnQtest<I8255xQtest, QtestBus, Chip, TxRing, RxRing>;

protected:
    void SetUp() override {
        if (!QtestMachine::available()) GTEST_SKIP() << "QEMU is missing; run: tools/setup test";
        machine_ = std::make_unique<QtestMachine>(GetParam(), 0, nic::kOwnText);
        bus_ = std::make_unique<QtestBus>(*machine_);
        chip_ = std::make_unique<Chip>(*bus_);
        ASSERT_EQ(chip_->reset(), Fault::kNone);
    }

    /// Starts rings of `size`, with the filter in force, and both units running.
    void run(std::uint32_t size, std::span<const MacAddress> multicasts = {}) {
        tx_ = std::make_unique<TxRing>(
            std::span(reinterpret_cast<CommandBlock*>(machine_->at(kBlocks)), size + 1), kBlocks);
        rx_ = std::make_unique<RxRing>(size, kBufferOctets);
        for (std::uint32_t i = 0; i < size; ++i) {
            const std::uint32_t bus = kBuffers + i * kPlaceOctets;
            auto* descriptor = reinterpret_cast<ReceiveDescriptor*>(machine_->at(bus));
            rx_->arm(i, {.owner = descriptor + 1, .descriptor = descriptor, .bus_address = bus});
        }
        rx_->rearm_all();
        ASSERT_EQ(chip_->set_up(*reinterpret_cast<Statistics*>(machine_->at(kDump)), kDump),
                  Fault::kNone);
        ASSERT_TRUE(post_filter(*tx_, filter(multicasts, {}), {}));
        ASSERT_EQ(chip_->start_transmit(*tx_), Fault::kNone);
        reap_filter();
        ASSERT_EQ(chip_->start_receive(*rx_), Fault::kNone);
    }

    static Filter filter(std::span<const MacAddress> multicasts, Reception reception) {
        return {.own = kOwn, .multicasts = multicasts, .reception = reception};
    }
    void receive_as(std::span<const MacAddress> multicasts, Reception reception) {
        ASSERT_TRUE(post_filter(*tx_, filter(multicasts, reception), {}));
        chip_->demand_transmit();
        reap_filter();
    }
    void reap_filter() {
        TxDone done{};
        for (std::uint32_t i = 0; i < kFilterBlocks; ++i)
            ASSERT_TRUE(tx_->reap(done));
        EXPECT_EQ(done.result, TxResult::kSetup);
    }

    RxVerdict peek(RxFrame& frame) {
        const RxVerdict verdict = rx_->peek(frame, false);
        if (verdict != RxVerdict::kUnsettled) return verdict;
        (void)bus_->read32(Reg::kScb);
        return rx_->peek(frame, true);
    }
    void give_back() {
        rx_->recycle();
        if (rx_->may_have_stopped()) chip_->resume_receive(*rx_);
    }
};

TEST_P(I8255xQtest, is_known_by_its_ids_eeprom_and_phy) {
    EXPECT_EQ(machine_->vendor(), 0x8086);
    EXPECT_TRUE(machine_->device() == 0x1229 || machine_->device() == 0x1209);
    EepromImage image;
    ASSERT_EQ(read_eeprom(*bus_, image), Fault::kNone);
    MacAddress address{};
    ASSERT_EQ(parse_address(image, address), Fault::kNone) << "its checksum is right";
    EXPECT_EQ(address, kOwn);
    ASSERT_EQ(chip_->set_up_phy(Media::kNegotiate), Fault::kNone);
    EXPECT_EQ(chip_->phy().address(), 1);
    EXPECT_EQ(chip_->phy().link(), (Link{.up = true, .full_duplex = true, .mbit = 100}));
}

TEST_P(I8255xQtest, carries_frames_of_every_size_both_ways) {
    run(16);
    expect_every_size();
}

TEST_P(I8255xQtest, filters_by_its_commands) {
    const MacAddress joined{0x01, 0x00, 0x5e, 0x01, 0x02, 0x03};
    const MacAddress foreign{0x01, 0x00, 0x5e, 0x01, 0x02, 0x04};
    run(8, std::span(&joined, 1));
    EXPECT_TRUE(passes(nic::kBroadcast));
    EXPECT_TRUE(passes(joined));
    EXPECT_FALSE(passes(foreign));
    EXPECT_FALSE(passes(kPeer));
    receive_as({}, {.promiscuous = false, .all_multicast = true});
    EXPECT_TRUE(passes(foreign));
    EXPECT_FALSE(passes(kPeer));
    receive_as({}, {.promiscuous = true, .all_multicast = false});
    EXPECT_TRUE(passes(kPeer));
    receive_as(std::span(&foreign, 1), {});
    EXPECT_TRUE(passes(foreign));
    EXPECT_FALSE(passes(joined));
}

TEST_P(I8255xQtest, wraps_at_many_ring_sizes) {
    for (const std::uint32_t size : {3U, 7U, 64U}) {
        run(size);
        for (std::uint32_t i = 0; i < size * 2 + 3; ++i)
            ASSERT_NO_FATAL_FAILURE(expect_both_ways(60 + i, static_cast<std::uint8_t>(i)))
                << size << ", frame " << i;
        ASSERT_EQ(chip_->stop(), Fault::kNone);
        ASSERT_EQ(chip_->reset(), Fault::kNone);
    }
}

TEST_P(I8255xQtest, sends_many_frames_with_one_doorbell) {
    run(16);
    std::memcpy(machine_->at(kTxFrame), make_frame(kPeer, 60, 1).data(), 60);
    const TxSegment segment{kTxFrame, 60};
    for (int i = 0; i < 16; ++i)
        ASSERT_TRUE(tx_->post(std::span(&segment, 1), this, 0));
    chip_->demand_transmit();
    TxDone done{};
    for (int i = 0; i < 16; ++i) {
        ASSERT_TRUE(tx_->reap(done)) << "frame " << i;
        ASSERT_TRUE(machine_->get_frame().has_value());
    }
    EXPECT_EQ(tx_->pending(), 0U);
}

TEST_P(I8255xQtest, goes_on_after_its_ring_was_full) {
    run(4);
    for (std::uint8_t i = 0; i < 4; ++i)
        machine_->put_frame(make_frame(kOwn, 100, i));
    for (int tries = 0; tries < 2000 && !rx_->done_at(3); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(rx_->done_at(3));
    EXPECT_EQ(scb::ru_state(bus_->read32(Reg::kScb)), scb::Ru::kNoResources);
    machine_->put_frame(make_frame(kOwn, 100, 99));  // no descriptor: lost, and counted
    for (int tries = 0; tries < 200 && chip_->counters().rx_no_resources == 0; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ASSERT_EQ(chip_->check(*tx_, *rx_), Fault::kNone);
    }
    EXPECT_EQ(chip_->counters().rx_no_resources, 1U);
    for (std::uint8_t i = 0; i < 4; ++i)
        EXPECT_EQ(receive(), make_frame(kOwn, 100, i));
    machine_->put_frame(make_frame(kOwn, 100, 7));
    EXPECT_EQ(receive(), make_frame(kOwn, 100, 7));
}

TEST_P(I8255xQtest, receives_nothing_while_it_stands) {
    run(4);
    ASSERT_EQ(chip_->stop(), Fault::kNone);
    RxFrame frame{};
    machine_->put_frame(make_frame(kOwn, 100, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(rx_->peek(frame, true), RxVerdict::kEmpty);
    run(4);
    machine_->put_frame(make_frame(kOwn, 100, 2));
    EXPECT_EQ(receive(), make_frame(kOwn, 100, 2)) << "only what came after the start";
}

INSTANTIATE_TEST_SUITE_P(family, I8255xQtest,
                         testing::Values("i82557c", "i82558b", "i82559c", "i82559er", "i82551"));

}  // namespace
}  // namespace ulc::i8255x
