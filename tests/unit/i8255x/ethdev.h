// SPDX-License-Identifier: BSD-3-Clause
// The 8255x in the tests of the glue to ethdev (tests/unit/nic/ethdev.h).
#pragma once

#include <array>
#include <utility>

#include "tests/unit/i8255x/model.h"
#include "tests/unit/nic/ethdev.h"

namespace ulc::i8255x {

using nic::multicast;
using nic::take_log;

struct ChipUnderTest {
    using Model = I8255xModel;
    using Status = std::uint16_t;
    static constexpr const char* kName = "net_i8255x";
    static constexpr std::uint16_t kVendor = 0x8086;
    static constexpr std::uint16_t kDevice = 0x1229;
    static constexpr std::uint16_t kForeignDevice = 0x100e;  ///< an 82540EM
    static constexpr int kBar = 0;
    static constexpr std::uint64_t kBarOctets = 4096;
    static constexpr bool kHasReceiveList = false;  ///< descriptors lie in the buffers
    /// Each error of a received frame, and its counter.
    static constexpr std::array<std::pair<Status, const char*>, 8> kBadFrames{{
        {rfd::kCrc, "rx_crc_errors"},
        {rfd::kAlignment, "rx_crc_errors"},
        {rfd::kPhyError, "rx_crc_errors"},
        {rfd::kShort, "rx_runts"},
        {rfd::kCollision, "rx_runts"},
        {rfd::kNoSpace, "rx_too_long"},
        {rfd::kOverrun, "rx_fifo_overflow_errors"},
        {1U << 2, "rx_malformed_descriptors"},
    }};
    static constexpr Status kManyCollisions = 0;  ///< OK is clear
    static void break_checksum(Model& model) { model.rom_[3] ^= 1; }
    static void make_group(Model& model) {
        model.rom_[0] |= 1;
        model.seal_rom();
    }
    static std::uint64_t starts(const Model& model) { return model.command_starts; }
    static void ring(Model& model) {
        model.write8(Reg::kCommand, static_cast<std::uint8_t>(Command::kCuResume));
    }
    static bool is_promiscuous(const Model& model) { return (model.configuration[15] & 1) != 0; }
    static bool takes_all_multicasts(const Model& model) {
        return (model.configuration[21] & 8) != 0;
    }
    static bool is_full_duplex(const Model& model) { return (model.configuration[19] & 0x40) != 0; }
    static bool loops_back(const Model& model) { return (model.configuration[10] & 0xc0) == 0x40; }
    static std::uint8_t last_of_own(const Model& model) { return model.own[5]; }
    /// Returns the last byte of the first group in the filter.
    static std::uint8_t last_of_group(const Model& model) { return model.multicasts.at(0)[5]; }
    static void power_off(Model& model) { model.power_off(); }
};

using I8255xEthdev = nic::EthdevTest<ChipUnderTest>;
using NicEthdev = I8255xEthdev;

}  // namespace ulc::i8255x

namespace ulc::nic {

using i8255x::ChipUnderTest;
using i8255x::NicEthdev;

}  // namespace ulc::nic
