// SPDX-License-Identifier: BSD-3-Clause
// Tests the chip as a whole against the register model: reset, ROM, PHY, filter, stop, and the
// planted faults.
#include <gtest/gtest.h>

#include <utility>

#include "drivers/tulip/chip.h"
#include "drivers/tulip/setup_frame.h"
#include "drivers/tulip/srom.h"
#include "tests/unit/tulip/model.h"

namespace ulc::tulip {
namespace {

TEST(TulipChip, comes_up_on_mii_with_both_processes_standing) {
    TulipModel model;
    Chip chip(model, Model::k21143);
    ASSERT_EQ(chip.reset({}), Fault::kNone);
    const std::uint32_t mode = model.csr(Csr::kOperationMode);
    EXPECT_NE(mode & csr6::kPS, 0U);
    EXPECT_NE(mode & csr6::kMBO, 0U);
    EXPECT_EQ(mode & (csr6::kSR | csr6::kST), 0U);
    EXPECT_EQ(model.csr(Csr::kInterruptMask), 0U);
    ASSERT_EQ(chip.set_up_phy(Media::kNegotiate), Fault::kNone);
    EXPECT_EQ(chip.phy().address(), 3);
    EXPECT_EQ(model.phy[4], 0x01e1) << "all four abilities, and the selector of Ethernet";
    EXPECT_EQ(model.phy[0] & 0x1200, 0x1200) << "negotiation on, and started again";
}

TEST(TulipChip, says_what_is_wrong_within_bounds) {
    const std::pair<bool ModelFaults::*, Fault> cases[] = {
        {&ModelFaults::gone, Fault::kGone}, {&ModelFaults::never_resets, Fault::kResetTimeout}};
    for (const auto& [planted, expected] : cases) {
        TulipModel model;
        model.faults.*planted = true;
        Chip chip(model, Model::k21143);
        EXPECT_EQ(chip.reset({}), expected);
        EXPECT_LE(model.waited, 2 * kMillisecond);
        EXPECT_GT(text_of(expected).size(), 20U);
    }
    TulipModel model;
    model.faults.never_stops = true;
    Chip chip(model, Model::k21143);
    ASSERT_EQ(chip.reset({}), Fault::kNone);
    chip.start_transmit();
    const Nanos before = model.waited;
    EXPECT_EQ(chip.stop(), Fault::kStopTimeout);
    EXPECT_LE(model.waited - before, 10 * kMillisecond);
    model.faults.never_stops = false;
    EXPECT_EQ(chip.reset({}), Fault::kNone) << "a reset is a way out";
    model.faults.no_phy = true;
    EXPECT_EQ(chip.set_up_phy(Media::kNegotiate), Fault::kNoPhy);
}

TEST(TulipChip, follows_what_the_phys_agreed_on) {
    struct Case {
        std::uint16_t partner;
        Link link;
        std::uint32_t mode;  ///< bits FD and TTM
    };
    const Case cases[] = {
        {0x45e1, {true, true, 100}, csr6::kFD},
        {0x40a1, {true, false, 100}, 0},
        {0x4061, {true, true, 10}, csr6::kFD | csr6::kTTM},
        {0x0021, {true, false, 10}, csr6::kTTM},
    };
    TulipModel model;
    Chip chip(model, Model::k21143);
    ASSERT_EQ(chip.reset({}), Fault::kNone);
    ASSERT_EQ(chip.set_up_phy(Media::kNegotiate), Fault::kNone);
    model.phy[1] |= 0x20;  // negotiated
    chip.start_transmit();
    chip.start_receive();
    for (const Case& c : cases) {
        model.phy[5] = c.partner;
        const Link link = chip.phy().link();
        ASSERT_EQ(chip.apply(link), Fault::kNone);
        EXPECT_EQ(link, c.link) << "partner " << c.partner;
        const std::uint32_t mode = model.csr(Csr::kOperationMode);
        EXPECT_EQ(mode & (csr6::kFD | csr6::kTTM), c.mode);
        EXPECT_EQ(mode & (csr6::kSR | csr6::kST), csr6::kSR | csr6::kST) << "runs on";
    }
    model.phy[1] &= ~0x20;
    const std::uint32_t before = model.csr(Csr::kOperationMode);
    EXPECT_FALSE(chip.phy().link().up) << "still negotiating";
    model.faults.link_down = true;
    EXPECT_FALSE(chip.phy().link().up);
    ASSERT_EQ(chip.apply({}), Fault::kNone);
    EXPECT_EQ(model.csr(Csr::kOperationMode), before) << "what was stays, for when it comes back";
}

TEST(TulipChip, forces_a_medium) {
    const std::pair<Media, Link> cases[] = {{Media::k10Half, {true, false, 10}},
                                            {Media::k10Full, {true, true, 10}},
                                            {Media::k100Half, {true, false, 100}},
                                            {Media::k100Full, {true, true, 100}}};
    for (const auto& [media, expected] : cases) {
        TulipModel model;
        Chip chip(model, Model::k21143);
        ASSERT_EQ(chip.reset({}), Fault::kNone);
        ASSERT_EQ(chip.set_up_phy(media), Fault::kNone);
        const Link link = chip.phy().link();
        ASSERT_EQ(chip.apply(link), Fault::kNone);
        EXPECT_EQ(link, expected);
    }
}

TEST(TulipChip, raises_the_threshold_up_to_whole_frames) {
    TulipModel model;
    Chip chip(model, Model::k21143);
    ASSERT_EQ(chip.reset({}), Fault::kNone);
    chip.start_transmit();
    const std::uint32_t shift = csr6::kTRShift;
    for (std::uint32_t step = 1; step <= 3; ++step) {
        ASSERT_EQ(chip.raise_threshold(), Fault::kNone);
        EXPECT_EQ((model.csr(Csr::kOperationMode) & csr6::kTRMask) >> shift, step);
    }
    ASSERT_EQ(chip.raise_threshold(), Fault::kNone);
    EXPECT_NE(model.csr(Csr::kOperationMode) & csr6::kSF, 0U);
    ASSERT_EQ(chip.raise_threshold(), Fault::kNone);
    EXPECT_EQ(chip.threshold(), TransmitThreshold::kWhole);
    EXPECT_NE(model.csr(Csr::kOperationMode) & csr6::kST, 0U);
}

TEST(TulipChip, reports_bus_errors_and_adds_up_missed_frames) {
    TulipModel model;
    Chip chip(model, Model::k21143);
    ASSERT_EQ(chip.reset({}), Fault::kNone);
    model.missed = 7 | 3U << csr8::kFifoShift;
    EXPECT_EQ(chip.check(), Fault::kNone);
    model.missed = 2 | csr8::kMissedOverflow | csr8::kFifoOverflow;
    EXPECT_EQ(chip.check(), Fault::kNone);
    EXPECT_EQ(chip.missed().no_descriptor, 7U + 2U + 65'536U);
    EXPECT_EQ(chip.missed().fifo_overflow, 3U + 2'048U);
    chip.clear_missed();
    EXPECT_EQ(chip.missed().no_descriptor, 0U);
    model.faults.bus_error = true;
    chip.start_transmit();
    EXPECT_EQ(chip.check(), Fault::kBusError);
    EXPECT_EQ(chip.check(), Fault::kNone) << "told once";
    model.faults.gone = true;
    EXPECT_EQ(chip.check(), Fault::kGone);
}

TEST(TulipChip, sets_reception_without_stopping) {
    TulipModel model;
    Chip chip(model, Model::k21143);
    ASSERT_EQ(chip.reset({}), Fault::kNone);
    chip.start_transmit();
    chip.start_receive();
    chip.set_reception({.promiscuous = true, .all_multicast = true});
    std::uint32_t mode = model.csr(Csr::kOperationMode);
    EXPECT_EQ(mode & (csr6::kPR | csr6::kPM), csr6::kPR | csr6::kPM);
    EXPECT_EQ(mode & (csr6::kSR | csr6::kST), csr6::kSR | csr6::kST);
    chip.set_reception({});
    mode = model.csr(Csr::kOperationMode);
    EXPECT_EQ(mode & (csr6::kPR | csr6::kPM), 0U);
}

TEST(TulipRom, is_read_whatever_its_size) {
    for (const int bits : {6, 8}) {
        TulipModel model;
        model.rom.address_bits = bits;
        for (std::size_t i = 40; i < 120; ++i)
            model.rom_[i] = static_cast<std::uint8_t>(i * 37);
        model.seal_rom();
        RomImage image{};
        ASSERT_EQ(read_rom(model, image), Fault::kNone);
        EXPECT_EQ(image, model.rom_) << bits << " bits of address";
        MacAddress address{};
        ASSERT_EQ(parse_address(image, address), Fault::kNone);
        EXPECT_EQ(address, (MacAddress{0x02, 0x11, 0x12, 0x13, 0x14, 0x15}));
    }
}

TEST(TulipRom, that_is_broken_is_told_from_one_that_is_missing) {
    TulipModel model;
    RomImage image{};
    MacAddress address{};
    model.rom.is_silent = true;
    EXPECT_EQ(read_rom(model, image), Fault::kRomMissing);
    model.rom.is_silent = false;
    model.faults.gone = true;
    EXPECT_EQ(read_rom(model, image), Fault::kGone);
    image = model.rom_;
    for (std::size_t i = 0; i < image.size(); ++i) {  // each byte is read
        image[i] ^= 0x10;
        EXPECT_EQ(parse_address(image, address), Fault::kRomChecksum) << "octet " << i;
        image[i] ^= 0x10;
    }
    model.rom_[20] |= 1;  // a group address
    model.seal_rom();
    EXPECT_EQ(parse_address(model.rom_, address), Fault::kRomAddress);
    for (int i = 0; i < 6; ++i)
        model.rom_[20 + i] = 0;
    model.seal_rom();
    EXPECT_EQ(parse_address(model.rom_, address), Fault::kRomAddress);
}

TEST(TulipRom, tells_how_the_phy_is_switched_on) {
    TulipModel model;
    // A leaf without compact blocks: connection type, one extended block of type 3 with 2 + 1
    // steps.
    const std::uint8_t leaf[] = {0x00, 0x08, 2,    0x83, 4, 0,    0,    0x8d, 3,
                                 0,    1,    0x34, 0x12, 2, 0x78, 0x56, 0xbc, 0x9a};
    std::copy(std::begin(leaf), std::end(leaf), model.rom_.begin() + 30);
    const PortSequence sequence = parse_port_sequence(model.rom_, Model::k21143);
    ASSERT_EQ(sequence.select.size(), 1U);
    ASSERT_EQ(sequence.reset.size(), 2U);
    EXPECT_EQ(sequence.select[0], 0x1234);
    EXPECT_EQ(sequence.reset[1], 0x9abc);
    Chip chip(model, Model::k21143);
    ASSERT_EQ(chip.reset(sequence), Fault::kNone);
    EXPECT_EQ(model.port_writes,
              (std::vector<std::uint32_t>{0x5678'0000, 0x9abc'0000, 0x1234'0000}));
}

TEST(TulipRom, of_a_21140_sets_its_port_octet_by_octet) {
    TulipModel model;
    const std::uint8_t leaf[] = {0x00, 0x08, 0x1f, 1, 0x8a, 1, 0, 1, 0x0f, 2, 0x01, 0x00, 0, 0};
    std::copy(std::begin(leaf), std::end(leaf), model.rom_.begin() + 30);
    Chip chip(model, Model::k21140);
    ASSERT_EQ(chip.reset(parse_port_sequence(model.rom_, Model::k21140)), Fault::kNone);
    EXPECT_EQ(model.port_writes, (std::vector<std::uint32_t>{0x11f, 0x01, 0x00, 0x0f}));
}

TEST(TulipRom, with_lengths_that_lie_gives_no_sequence) {
    // Sets every single byte of the leaf to every value that could mislead: nothing is read outside
    // (the sanitizer checks it), and the parse ends.
    TulipModel model;
    const std::uint8_t leaf[] = {0x00, 0x08, 1, 0x8d, 3, 0, 1, 0x34, 0x12, 1, 0x78, 0x56, 0, 0};
    for (const std::size_t at : {27U, 28U, 32U, 33U, 34U, 36U, 39U})
        for (int value = 0; value < 256; ++value) {
            RomImage image = model.rom_;
            std::copy(std::begin(leaf), std::end(leaf), image.begin() + 30);
            image[at] = static_cast<std::uint8_t>(value);
            const PortSequence s = parse_port_sequence(image, Model::k21143);
            EXPECT_LE(s.reset.size() + s.select.size(), 32U);
        }
    RomImage image = model.rom_;
    std::copy(std::begin(leaf), std::end(leaf), image.begin() + 30);
    image[36] = 200;  // more steps than the block has
    const PortSequence s = parse_port_sequence(image, Model::k21143);
    EXPECT_TRUE(s.reset.empty() && s.select.empty());
}

TEST(TulipSetupFrame, filters_sixteen_addresses_exactly) {
    const MacAddress own{2, 0x11, 0x12, 0x13, 0x14, 0x15};
    std::vector<MacAddress> multicasts;
    for (std::uint8_t i = 0; i < kPerfectMulticasts; ++i)
        multicasts.push_back({0x01, 0x00, 0x5e, 0, 0, i});
    std::array<std::byte, kSetupFrameOctets> frame{};
    EXPECT_EQ(build_setup_frame(own, multicasts, frame), FilterKind::kPerfect);
    const auto entry = [&](std::size_t i) {
        MacAddress a{};
        for (std::size_t k = 0; k < 6; ++k)
            a[k] = static_cast<std::uint8_t>(frame[i * 12 + k / 2 * 4 + k % 2]);
        return a;
    };
    EXPECT_EQ(entry(0), own);
    EXPECT_EQ(entry(1), (MacAddress{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
    for (std::size_t i = 0; i < kPerfectMulticasts; ++i)
        EXPECT_EQ(entry(i + 2), multicasts[i]);
    EXPECT_EQ(build_setup_frame(own, {}, frame), FilterKind::kPerfect);
    EXPECT_EQ(entry(15), own) << "an unused place must not let anything else in";
}

TEST(TulipSetupFrame, hashes_what_does_not_fit) {
    const MacAddress own{2, 0x11, 0x12, 0x13, 0x14, 0x15};
    std::vector<MacAddress> multicasts;
    for (std::uint8_t i = 0; i <= kPerfectMulticasts; ++i)
        multicasts.push_back({0x01, 0x00, 0x5e, 0, 1, i});
    std::array<std::byte, kSetupFrameOctets> frame{};
    EXPECT_EQ(build_setup_frame(own, multicasts, frame), FilterKind::kHash);
    // Broadcast's bit is 255 in every table: its CRC is known (manual, "Imperfect filtering").
    EXPECT_EQ(hash_bit({0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), 0x0ffU);
    const auto is_set = [&](std::uint32_t bit) {
        return (static_cast<unsigned>(frame[bit / 16 * 4 + bit % 16 / 8]) >> bit % 8 & 1U) != 0;
    };
    EXPECT_TRUE(is_set(0xff));
    for (const MacAddress& m : multicasts)
        EXPECT_TRUE(is_set(hash_bit(m)));
    int bits = 0;
    for (std::uint32_t bit = 0; bit < kHashBits; ++bit)
        bits += is_set(bit) ? 1 : 0;
    EXPECT_LE(bits, 16);
    EXPECT_EQ(static_cast<std::uint8_t>(frame[39 * 4 + 1]), own[1]);
    EXPECT_EQ(static_cast<std::uint8_t>(frame[41 * 4]), own[4]);
}

}  // namespace
}  // namespace ulc::tulip
