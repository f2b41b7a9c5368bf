// SPDX-License-Identifier: BSD-3-Clause
// Tests the 8255x as a whole against the register model: reset, EEPROM, PHY, filter, statistics,
// stop, and the planted faults.
#include <utility>

#include "drivers/i8255x/eeprom.h"
#include "tests/unit/i8255x/rig.h"

namespace ulc::i8255x {
namespace {

TEST(I8255xChip, comes_up_with_both_units_idle_and_no_interrupts) {
    I8255xModel model;
    Chip chip(model);
    ASSERT_EQ(chip.reset(), Fault::kNone);
    EXPECT_EQ(model.cu(), scb::Cu::kIdle);
    EXPECT_EQ(model.ru(), scb::Ru::kIdle);
    EXPECT_EQ(model.interrupt_mask(), scb::kMaskAll);
    ASSERT_EQ(chip.set_up_phy(Media::kNegotiate), Fault::kNone);
    EXPECT_EQ(chip.phy().address(), 1);
    EXPECT_EQ(model.phy[4], 0x01e1) << "all four abilities, and the selector of Ethernet";
    EXPECT_EQ(model.phy[0] & 0x1200, 0x1200) << "negotiation on, and started again";
}

TEST(I8255xChip, says_what_is_wrong_within_bounds) {
    const std::pair<bool ModelFaults::*, Fault> cases[] = {
        {&ModelFaults::gone, Fault::kGone},
        {&ModelFaults::reads_zero, Fault::kGone},
        {&ModelFaults::never_resets, Fault::kResetTimeout},
        {&ModelFaults::never_accepts, Fault::kResetTimeout}};
    for (const auto& [planted, expected] : cases) {
        I8255xModel model;
        model.faults.*planted = true;
        Chip chip(model);
        EXPECT_EQ(chip.reset(), expected);
        EXPECT_LE(model.waited, 2 * kMillisecond);
        EXPECT_GT(text_of(expected).size(), 20U);
    }
    Rig rig(4);
    rig.model.faults.never_stops = true;
    const Nanos before = rig.model.waited;
    const std::uint64_t resets = rig.model.resets;
    EXPECT_EQ(rig.chip.stop(), Fault::kStopTimeout);
    EXPECT_LE(rig.model.waited - before, 10 * kMillisecond);
    EXPECT_EQ(rig.model.ru(), scb::Ru::kIdle) << "nothing writes to the buffers any more";
    EXPECT_EQ(rig.model.resets, resets + 2) << "selective, software";
    rig.model.faults = {};
    EXPECT_EQ(rig.chip.stop(), Fault::kNone);
    EXPECT_EQ(rig.model.resets, resets + 4) << "also if it stopped by itself";
    rig.model.faults = {};
    EXPECT_EQ(rig.chip.reset(), Fault::kNone) << "a reset is a way out";
    rig.model.faults.no_phy = true;
    EXPECT_EQ(rig.chip.set_up_phy(Media::kNegotiate), Fault::kNoPhy);
    rig.model.faults = {};
    rig.model.faults.mdi_dead = true;
    EXPECT_EQ(rig.chip.set_up_phy(Media::kNegotiate), Fault::kNoPhy);
}

TEST(I8255xChip, reports_a_command_that_is_not_accepted) {
    Rig rig(4);
    rig.model.faults.never_accepts = true;
    ASSERT_TRUE(rig.send(1));
    const Nanos before = rig.model.waited;
    rig.chip.demand_transmit();
    EXPECT_LE(rig.model.waited - before, kMillisecond);
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kCommandTimeout);
    Statistics memory{};
    EXPECT_EQ(rig.chip.set_up(memory, kDump), Fault::kCommandTimeout);
    EXPECT_EQ(rig.chip.start_transmit(rig.tx), Fault::kCommandTimeout);
    EXPECT_EQ(rig.chip.start_receive(rig.rx), Fault::kCommandTimeout);
    rig.model.faults = {};
    rig.run();
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kNone);
}

TEST(I8255xChip, follows_what_the_phys_agreed_on) {
    const std::pair<std::uint16_t, Link> cases[] = {{0x45e1, {true, true, 100}},
                                                    {0x40a1, {true, false, 100}},
                                                    {0x4061, {true, true, 10}},
                                                    {0x0021, {true, false, 10}}};
    I8255xModel model;
    Chip chip(model);
    ASSERT_EQ(chip.reset(), Fault::kNone);
    ASSERT_EQ(chip.set_up_phy(Media::kNegotiate), Fault::kNone);
    for (const auto& [partner, expected] : cases) {
        model.phy[5] = partner;
        EXPECT_EQ(chip.phy().link(), expected) << "partner " << partner;
    }
    model.faults.link_down = true;
    EXPECT_FALSE(chip.phy().link().up);
}

TEST(I8255xChip, forces_a_medium) {
    const std::pair<Media, Link> cases[] = {{Media::k10Half, {true, false, 10}},
                                            {Media::k10Full, {true, true, 10}},
                                            {Media::k100Half, {true, false, 100}},
                                            {Media::k100Full, {true, true, 100}}};
    for (const auto& [media, expected] : cases) {
        I8255xModel model;
        Chip chip(model);
        ASSERT_EQ(chip.reset(), Fault::kNone);
        ASSERT_EQ(chip.set_up_phy(media), Fault::kNone);
        EXPECT_EQ(chip.phy().link(), expected);
    }
}

TEST(I8255xChip, adds_up_its_statistics) {
    Rig rig(4);
    rig.model.counted = {.tx_good = 1,
                         .tx_max_collisions = 2,
                         .tx_late_collisions = 3,
                         .tx_underruns = 4,
                         .tx_lost_carrier = 5,
                         .tx_deferred = 6,
                         .tx_single_collisions = 7,
                         .tx_multiple_collisions = 8,
                         .tx_total_collisions = 9,
                         .rx_good = 10,
                         .rx_crc = 11,
                         .rx_alignment = 12,
                         .rx_no_resources = 13,
                         .rx_overruns = 14,
                         .rx_collisions = 15,
                         .rx_short = 16,
                         .complete = 0};
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kNone);
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kNone) << "the chip forgets what it told";
    const ChipCounters& c = rig.chip.counters();
    EXPECT_EQ(c.tx_max_collisions, 2U);
    EXPECT_EQ(c.tx_late_collisions, 3U);
    EXPECT_EQ(c.tx_underruns, 4U);
    EXPECT_EQ(c.tx_lost_carrier, 5U);
    EXPECT_EQ(c.tx_deferred, 6U);
    EXPECT_EQ(c.tx_collisions, 9U);
    EXPECT_EQ(c.rx_crc, 11U);
    EXPECT_EQ(c.rx_alignment, 12U);
    EXPECT_EQ(c.rx_no_resources, 13U);
    EXPECT_EQ(c.rx_overruns, 14U);
    EXPECT_EQ(c.rx_collisions, 15U);
    EXPECT_EQ(c.rx_short, 16U);
    rig.model.counted.rx_crc = 0xffff'ffff;
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kNone);
    EXPECT_EQ(c.rx_crc, 11U + 0xffff'ffffULL);
    rig.chip.clear_counters();
    EXPECT_EQ(c.rx_crc, 0U);
    rig.model.faults.dma_dead = true;
    const Nanos before = rig.model.waited;
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kNone) << "a dump that does not come";
    EXPECT_LE(rig.model.waited - before, 100 * kMicrosecond);
}

TEST(I8255xChip, finds_units_that_stand) {
    Rig rig(16);
    while (rig.deliver(1)) {
    }
    EXPECT_EQ(rig.model.ru(), scb::Ru::kNoResources);
    RxFrame frame{};
    while (rig.rx.peek(frame, false) == RxVerdict::kFrame)
        rig.rx.recycle();
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kNone);
    EXPECT_EQ(rig.model.ru(), scb::Ru::kReady) << "restarted by the watch";
    ASSERT_TRUE(rig.send(1));
    EXPECT_TRUE(rig.model.sent.empty()) << "no resume was asked for";
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kNone);
    EXPECT_EQ(rig.model.sent.size(), 1U) << "resumed by the watch";
    rig.model.faults.reads_zero = true;
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kForgot);
    rig.model.faults.reads_zero = false;
    rig.model.power_off();
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kForgot);
    rig.model.faults.gone = true;
    EXPECT_EQ(rig.chip.check(rig.tx, rig.rx), Fault::kGone);
    EXPECT_EQ(rig.chip.stop(), Fault::kGone);
    rig.chip.resume_receive(rig.rx);  // ends
}

TEST(I8255xEeprom, is_read_whatever_its_size) {
    for (const int bits : {6, 8}) {
        I8255xModel model;
        model.rom.address_bits = bits;
        model.rom_.resize(std::size_t{1} << bits);
        for (std::size_t i = 20; i < model.rom_.size(); ++i)
            model.rom_[i] = static_cast<std::uint16_t>(i * 377);
        model.seal_rom();
        EepromImage image;
        ASSERT_EQ(read_eeprom(model, image), Fault::kNone);
        ASSERT_EQ(image.size(), model.rom_.size()) << bits << " bits of address";
        for (std::size_t i = 0; i < image.size(); ++i)
            ASSERT_EQ(image[i], model.rom_[i]) << i;
        MacAddress address{};
        ASSERT_EQ(parse_address(image, address), Fault::kNone);
        EXPECT_EQ(address, (MacAddress{0x02, 0x11, 0x12, 0x13, 0x14, 0x15}));
    }
}

TEST(I8255xEeprom, that_is_broken_is_told_from_one_that_is_missing) {
    I8255xModel model;
    EepromImage image;
    MacAddress address{};
    EXPECT_EQ(parse_address(image, address), Fault::kRomChecksum) << "empty";
    model.rom.is_silent = true;
    EXPECT_EQ(read_eeprom(model, image), Fault::kRomMissing);
    model.rom.is_silent = false;
    model.faults.gone = true;
    EXPECT_EQ(read_eeprom(model, image), Fault::kGone);
    model.faults.gone = false;
    ASSERT_EQ(read_eeprom(model, image), Fault::kNone);
    for (std::size_t i = 0; i < image.size(); ++i) {  // each word counts
        image[i] ^= 0x10;
        EXPECT_EQ(parse_address(image, address), Fault::kRomChecksum) << "word " << i;
        image[i] ^= 0x10;
    }
    model.rom_[0] |= 1;  // a group address
    model.seal_rom();
    ASSERT_EQ(read_eeprom(model, image), Fault::kNone);
    EXPECT_EQ(parse_address(image, address), Fault::kRomAddress);
    model.rom_[0] = model.rom_[1] = model.rom_[2] = 0;
    model.seal_rom();
    ASSERT_EQ(read_eeprom(model, image), Fault::kNone);
    EXPECT_EQ(parse_address(image, address), Fault::kRomAddress);
}

TEST(I8255xFilter, configures_what_it_is_told) {
    const Configuration plain = configuration_of({}, {});
    EXPECT_EQ(plain[0], 22) << "the number of bytes";
    EXPECT_EQ(plain[6] & 0x30, 0x30) << "standard blocks and statistics";
    EXPECT_EQ(plain[8] & 0x81, 0x01) << "MII, and CSMA/CD on";
    EXPECT_EQ(plain[10] & 0xc0, 0) << "no loopback";
    EXPECT_EQ(plain[15] & 3, 0) << "not promiscuous, broadcasts on";
    EXPECT_EQ(plain[18] & 0x0e, 0x02) << "pads; no CRC in memory; no long frames on an 82557";
    EXPECT_EQ(plain[19] & 0x46, 0) << "bits that the 82557 has not, and half duplex";
    EXPECT_EQ(plain[21] & 8, 0) << "not all multicasts";
    const auto differs = [&](const Filter& filter, const Line& line, std::size_t byte,
                             std::uint8_t bits) {
        Configuration other = configuration_of(filter, line);
        EXPECT_EQ(other[byte], plain[byte] | bits) << "byte " << byte;
        other[byte] = plain[byte];
        EXPECT_EQ(other, plain) << "byte " << byte << " alone";
    };
    differs({.reception = {.promiscuous = true}}, {}, 15, 0x01);
    differs({.reception = {.all_multicast = true}}, {}, 21, 0x08);
    differs({}, {.full_duplex = true}, 19, 0x40);
    differs({}, {.loopback = true}, 10, 0x40);
    const Configuration later = configuration_of({}, {.is_82558_or_later = true});
    EXPECT_EQ(later[18], plain[18] | 0x08) << "frames with a VLAN tag";
    EXPECT_EQ(later[19], plain[19] | 0x06) << "no PAUSE frames, no magic packets";
}

TEST(I8255xFilter, lists_groups_and_receives_all_beyond) {
    Rig rig(8);
    std::vector<MacAddress> groups;
    for (std::uint8_t i = 0; i <= kMulticastsMax; ++i) {
        const bool fits = groups.size() <= kMulticastsMax;
        ASSERT_TRUE(post_filter(rig.tx, {.own = {2}, .multicasts = groups, .reception = {}}, {}));
        rig.chip.demand_transmit();
        TxDone done{};
        while (rig.tx.reap(done)) {
        }
        EXPECT_EQ(rig.model.multicasts, groups);
        EXPECT_EQ(rig.model.configuration[21] & 8, fits ? 0 : 8);
        groups.push_back({0x01, 0x00, 0x5e, 0, 1, i});
    }
    ASSERT_TRUE(post_filter(rig.tx, {.own = {2}, .multicasts = groups, .reception = {}}, {}));
    rig.chip.demand_transmit();
    EXPECT_EQ(rig.model.configuration[21] & 8, 8);
    EXPECT_TRUE(rig.model.multicasts.empty());
}

TEST(I8255xFilter, waits_for_room_for_all_of_it) {
    Rig rig(4);
    rig.model.faults.dma_dead = true;
    ASSERT_TRUE(rig.send(1));
    ASSERT_TRUE(rig.send(2));
    EXPECT_FALSE(post_filter(rig.tx, {}, {}));
    EXPECT_EQ(rig.tx.pending(), 2U) << "nothing was given";
}

}  // namespace
}  // namespace ulc::i8255x
