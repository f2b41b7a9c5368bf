// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/i8255x/mdi.h"

namespace ulc::i8255x {
namespace {

constexpr Nanos kReadyWait = 10 * kMicrosecond;
constexpr int kReadyTries = 100;

}  // namespace

std::uint32_t Mdi::access(std::uint32_t operation, std::uint8_t phy, nic::PhyRegister reg,
                          std::uint16_t value) noexcept {
    bus_.write32(Reg::kMdi, operation | std::uint32_t{phy} << mdi::kPhyShift |
                                static_cast<std::uint32_t>(reg) << mdi::kRegisterShift | value);
    for (int tries = kReadyTries; tries > 0; --tries) {
        const std::uint32_t answer = bus_.read32(Reg::kMdi);
        if ((answer & mdi::kReady) != 0) return answer;
        bus_.wait(kReadyWait);
    }
    return kNoAnswer;
}

std::uint16_t Mdi::read(std::uint8_t phy, nic::PhyRegister reg) noexcept {
    return static_cast<std::uint16_t>(access(mdi::kRead, phy, reg, 0) & mdi::kDataMask);
}

void Mdi::write(std::uint8_t phy, nic::PhyRegister reg, std::uint16_t value) noexcept {
    (void)access(mdi::kWrite, phy, reg, value);
}

}  // namespace ulc::i8255x
