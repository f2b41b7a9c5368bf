// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/i8255x/eeprom.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "drivers/common/micro_wire.h"

namespace ulc::i8255x {
namespace {

constexpr std::uint16_t kSum = 0xbaba;
constexpr std::size_t kAddressWords = 3;

class Wires final : public nic::RomWires {
public:
    explicit Wires(Bus& bus) noexcept : bus_(bus) {}

    void drive(bool select, bool clock, bool data) noexcept override {
        const int wires =
            (select ? eeprom::kCS : 0) | (clock ? eeprom::kSK : 0) | (data ? eeprom::kDI : 0);
        bus_.write16(Reg::kEeprom, static_cast<std::uint16_t>(wires));
    }
    bool out() noexcept override { return (bus_.read16(Reg::kEeprom) & eeprom::kDO) != 0; }
    void wait(Nanos span) noexcept override { bus_.wait(span); }

private:
    Bus& bus_;
};

}  // namespace

Fault read_eeprom(Bus& bus, EepromImage& image) noexcept {
    if (bus.read32(Reg::kScb) == kNoAnswer) return Fault::kGone;
    Wires wires(bus);
    const std::optional<int> address_bits = nic::count_address_bits(wires);
    if (!address_bits) return Fault::kRomMissing;
    std::array<std::uint16_t, kEepromWordsMax> words{};
    const std::size_t size = std::min(kEepromWordsMax, std::size_t{1} << *address_bits);
    nic::read_words(wires, *address_bits, std::span(words).first(size));
    image.clear();
    for (std::size_t i = 0; i < size; ++i)
        (void)image.push_back(words[i]);
    return Fault::kNone;
}

Fault parse_address(const EepromImage& image, MacAddress& address) noexcept {
    const auto sum = std::accumulate(image.begin(), image.end(), std::uint32_t{0});
    if (image.size() < kAddressWords || (sum & 0xffff) != kSum) return Fault::kRomChecksum;
    for (std::size_t i = 0; i < kAddressWords; ++i) {
        address[i * 2] = static_cast<std::uint8_t>(image[i] & 0xff);
        address[i * 2 + 1] = static_cast<std::uint8_t>(image[i] >> 8);
    }
    return nic::is_station(address) ? Fault::kNone : Fault::kRomAddress;
}

}  // namespace ulc::i8255x
