// SPDX-License-Identifier: BSD-3-Clause
// The 21143 in the tests of the glue to ethdev (tests/unit/nic/ethdev.h).
#pragma once

#include <array>
#include <utility>

#include "drivers/tulip/setup_frame.h"
#include "tests/unit/nic/ethdev.h"
#include "tests/unit/tulip/model.h"

namespace ulc::tulip {

using nic::multicast;
using nic::take_log;

struct ChipUnderTest {
    using Model = TulipModel;
    using Status = std::uint32_t;
    static constexpr const char* kName = "net_tulip";
    static constexpr std::uint16_t kVendor = 0x1011;
    static constexpr std::uint16_t kDevice = 0x0019;
    static constexpr std::uint16_t kForeignDevice = 0x0014;  ///< a 21041
    static constexpr int kBar = 1;
    static constexpr std::uint64_t kBarOctets = 128;
    static constexpr bool kHasReceiveList = true;  ///< descriptors apart from the buffers
    /// Each error of a received frame, and its counter.
    static constexpr std::array<std::pair<Status, const char*>, 7> kBadFrames{{
        {rdes0::kES | rdes0::kCE, "rx_crc_errors"},
        {rdes0::kES | rdes0::kRE, "rx_crc_errors"},
        {rdes0::kES | rdes0::kRF, "rx_runts"},
        {rdes0::kES | rdes0::kCS, "rx_runts"},
        {rdes0::kES | rdes0::kRW, "rx_too_long"},
        {rdes0::kES | rdes0::kOF, "rx_fifo_overflow_errors"},
        {rdes0::kES, "rx_malformed_descriptors"},
    }};
    static constexpr Status kManyCollisions = tdes0::kES | tdes0::kEC | 15U << tdes0::kCCShift;
    static void break_checksum(Model& model) { model.rom_[3] ^= 1; }
    static void make_group(Model& model) {
        model.rom_[20] |= 1;
        model.seal_rom();
    }
    static std::uint64_t starts(const Model& model) { return model.transmit_lists; }
    static void ring(Model& model) { model.write(Csr::kTransmitPollDemand, 1); }
    static bool is_promiscuous(const Model& model) {
        return (model.csr(Csr::kOperationMode) & csr6::kPR) != 0;
    }
    static bool takes_all_multicasts(const Model& model) {
        return (model.csr(Csr::kOperationMode) & csr6::kPM) != 0;
    }
    static bool is_full_duplex(const Model& model) {
        return (model.csr(Csr::kOperationMode) & csr6::kFD) != 0;
    }
    static bool loops_back(const Model& model) {
        return (model.csr(Csr::kOperationMode) & csr6::kOMInternal) != 0;
    }
    static std::uint8_t last_of_own(const Model& model) {
        return static_cast<std::uint8_t>(model.setup[9]);
    }
    /// Returns the last byte of the first group in the filter.
    static std::uint8_t last_of_group(const Model& model) {
        return static_cast<std::uint8_t>(model.setup[2 * 12 + 9]);
    }
    static void power_off(Model& model) { model.write(Csr::kOperationMode, 0); }
};

using TulipEthdev = nic::EthdevTest<ChipUnderTest>;
using NicEthdev = TulipEthdev;

}  // namespace ulc::tulip

namespace ulc::nic {

using tulip::ChipUnderTest;
using tulip::NicEthdev;

}  // namespace ulc::nic
