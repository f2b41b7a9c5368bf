// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/common/micro_wire.h"

namespace ulc::nic {
namespace {

/// Half a period of the ROM's clock: parts of 1 MHz and slower are in use.
constexpr Nanos kHalfClock = 1 * kMicrosecond;
/// MicroWire: a start bit and the operation "read".
constexpr std::uint32_t kReadCommand = 0b110;
constexpr int kReadCommandBits = 3;
/// Parts have 6 (64 words) or 8 (256 words) address bits; no known part has more than this.
constexpr int kAddressBitsMax = 10;

class MicroWire {
public:
    explicit MicroWire(RomWires& wires) noexcept : wires_(wires) {}

    void select(bool on) noexcept {
        selected_ = on;
        drive(false, false);
    }

    /// Passes one period of the clock; returns the ROM's output after the rising edge.
    bool clock(bool data) noexcept {
        drive(false, data);
        drive(true, data);
        const bool out = wires_.out();
        drive(false, data);
        return out;
    }

    void command(std::uint32_t bits, int count) noexcept {
        for (int i = count - 1; i >= 0; --i)
            (void)clock(((bits >> i) & 1U) != 0);
    }

private:
    void drive(bool level, bool data) noexcept {
        wires_.drive(selected_, level, data);
        wires_.wait(kHalfClock);
    }

    RomWires& wires_;
    bool selected_ = false;
};

std::uint16_t read_word(MicroWire& rom, int address_bits, std::uint32_t index) noexcept {
    rom.select(true);
    rom.command(kReadCommand, kReadCommandBits);
    rom.command(index, address_bits);
    std::uint16_t word = 0;
    for (int bit = 0; bit < 16; ++bit)
        word = static_cast<std::uint16_t>((word << 1) | (rom.clock(false) ? 1 : 0));
    rom.select(false);
    return word;
}

}  // namespace

/// Reads word 0, whose address may be longer than sent.
std::optional<int> count_address_bits(RomWires& wires) noexcept {
    MicroWire rom(wires);
    rom.select(true);
    rom.command(kReadCommand, kReadCommandBits);
    int bits = 0;
    bool answered = false;
    while (!answered && bits < kAddressBitsMax) {
        ++bits;
        answered = !rom.clock(false);
    }
    rom.select(false);
    if (!answered) return std::nullopt;
    return bits;
}

void read_words(RomWires& wires, int address_bits, std::span<std::uint16_t> words) noexcept {
    MicroWire rom(wires);
    for (std::uint32_t i = 0; i < words.size(); ++i)
        words[i] = read_word(rom, address_bits, i);
}

}  // namespace ulc::nic
