// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/tulip/srom.h"

#include <algorithm>
#include <optional>

#include "drivers/tulip/crc32.h"

namespace ulc::tulip {
namespace {

/// Half a period of the ROM's clock: parts of 1 MHz and slower are in use.
constexpr Nanos kHalfClock = 1 * kMicrosecond;
/// MicroWire: a start bit and the operation "read".
constexpr std::uint32_t kReadCommand = 0b110;
constexpr int kReadCommandBits = 3;
/// Parts have 6 (64 words) or 8 (256 words) address bits; no known part has more than this.
constexpr int kAddressBitsMax = 10;

constexpr std::size_t kChecksumOffset = 126;
constexpr std::size_t kAddressOffset = 20;
constexpr std::size_t kLeafOffset = 27;   ///< offset of the leaf of controller 0, little-endian
constexpr std::uint8_t kExtended = 0x80;  ///< first byte of a media block: length in the other bits
constexpr std::uint8_t kBlock21140Mii = 1;
/// A write with this bit sets which pins of the 21140A's port are outputs (HRM of the 21140A,
/// CSR12<GPC>).
constexpr std::uint16_t kPortControl = 0x100;
constexpr std::uint8_t kBlock21143Mii = 3;

/// The ROM's wires, through CSR9.
class MicroWire {
public:
    explicit MicroWire(Bus& bus) noexcept : bus_(bus) {}

    void select(bool on) noexcept {
        selected_ = on ? csr9::kSromCS : 0;
        drive(0);
    }

    /// Passes one period of the clock; returns the ROM's output after the rising edge.
    bool clock(bool data) noexcept {
        const std::uint32_t in = data ? csr9::kSromDI : 0;
        drive(in);
        drive(in | csr9::kSromSK);
        const bool out = (bus_.read(Csr::kRomAndMii) & csr9::kSromDO) != 0;
        drive(in);
        return out;
    }

    void command(std::uint32_t bits, int count) noexcept {
        for (int i = count - 1; i >= 0; --i)
            (void)clock(((bits >> i) & 1U) != 0);
    }

private:
    void drive(std::uint32_t lines) noexcept {
        bus_.write(Csr::kRomAndMii, csr9::kSR | csr9::kRD | selected_ | lines);
        bus_.wait(kHalfClock);
    }

    Bus& bus_;
    std::uint32_t selected_ = 0;
};

/// Counts the address bits. The ROM pulls its output low with the last bit of the address, so the
/// number is found by reading word 0, whose address may be longer than sent. Returns nothing if it
/// never does.
std::optional<int> count_address_bits(MicroWire& rom) noexcept {
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

std::uint16_t read_word(MicroWire& rom, int address_bits, std::uint32_t address) noexcept {
    rom.select(true);
    rom.command(kReadCommand, kReadCommandBits);
    rom.command(address, address_bits);
    std::uint16_t word = 0;
    for (int i = 0; i < 16; ++i)
        word = static_cast<std::uint16_t>((word << 1) | (rom.clock(false) ? 1 : 0));
    rom.select(false);
    return word;
}

/// A cursor over the image that reads zero, and reports it, beyond its end.
class Cursor {
public:
    Cursor(const RomImage& image, std::size_t at, std::size_t end) noexcept
        : image_(image), at_(at), end_(std::min(end, kChecksumOffset)) {}

    std::uint8_t octet() noexcept {
        if (at_ >= end_) {
            broken_ = true;
            return 0;
        }
        return image_[at_++];
    }
    /// Reads `width` bytes, little-endian.
    std::uint16_t number(int width) noexcept {
        std::uint16_t value = octet();
        if (width == 2) value = static_cast<std::uint16_t>(value | (octet() << 8));
        return value;
    }
    void skip_to(std::size_t at) noexcept { at_ = at; }
    [[nodiscard]] std::size_t at() const noexcept { return at_; }
    [[nodiscard]] bool broken() const noexcept { return broken_; }

private:
    const RomImage& image_;
    std::size_t at_;
    std::size_t end_;
    bool broken_ = false;
};

template <std::size_t N>
void take_sequence(Cursor& block, int width, FixedVector<std::uint16_t, N>& out) noexcept {
    for (int left = block.octet(); left > 0 && !block.broken(); --left) {
        const std::uint16_t value = block.number(width);
        if (!block.broken() && !out.push_back(value)) return;  // no board has that number of steps
    }
}

}  // namespace

Fault read_rom(Bus& bus, RomImage& image) noexcept {
    if (bus.read(Csr::kRomAndMii) == kNoAnswer) return Fault::kGone;
    MicroWire rom(bus);
    const std::optional<int> address_bits = count_address_bits(rom);
    if (!address_bits) return Fault::kRomMissing;
    for (std::uint32_t i = 0; i < kRomOctets / 2; ++i) {
        const std::uint16_t word = read_word(rom, *address_bits, i);
        image[i * 2] = static_cast<std::uint8_t>(word & 0xff);
        image[i * 2 + 1] = static_cast<std::uint8_t>(word >> 8);
    }
    return Fault::kNone;
}

Fault parse_address(const RomImage& image, MacAddress& address) noexcept {
    const auto checked = std::as_bytes(std::span(image)).first(kChecksumOffset);
    const std::uint32_t stored = image[kChecksumOffset] | std::uint32_t{image[kChecksumOffset + 1]}
                                                              << 8;
    if ((crc32(checked) & 0xffff) != stored) return Fault::kRomChecksum;
    std::copy_n(image.begin() + kAddressOffset, address.size(), address.begin());
    const bool group = (address[0] & 1) != 0;
    const bool zero = std::all_of(address.begin(), address.end(), [](auto o) { return o == 0; });
    return group || zero ? Fault::kRomAddress : Fault::kNone;
}

PortSequence parse_port_sequence(const RomImage& image, Model model) noexcept {
    const bool newer = model == Model::k21143;
    const std::uint8_t wanted = newer ? kBlock21143Mii : kBlock21140Mii;
    const int width = newer ? 2 : 1;  // size of an entry, in bytes
    Cursor leaf(image, image[kLeafOffset] | std::size_t{image[kLeafOffset + 1]} << 8, kRomOctets);
    (void)leaf.number(2);  // selected connection type
    const std::uint16_t directions = newer ? 0 : kPortControl | leaf.octet();
    for (int blocks = leaf.octet(); blocks > 0 && !leaf.broken(); --blocks) {
        const std::uint8_t head = leaf.octet();
        if ((head & kExtended) == 0) break;  // compact blocks, of boards without MII
        const std::size_t end = leaf.at() + (head & ~kExtended);
        Cursor block(image, leaf.at(), end);
        if (block.octet() == wanted) {
            (void)block.octet();  // number of the PHY among the board's
            PortSequence sequence;
            if (!newer) (void)sequence.reset.push_back(directions);
            take_sequence(block, width, sequence.select);
            take_sequence(block, width, sequence.reset);
            return block.broken() ? PortSequence{} : sequence;
        }
        leaf.skip_to(end);
    }
    return {};
}

}  // namespace ulc::tulip
