// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/tulip/srom.h"

#include <algorithm>
#include <optional>

#include "drivers/common/crc32.h"
#include "drivers/common/micro_wire.h"

namespace ulc::tulip {
namespace {

constexpr std::size_t kChecksumOffset = 126;
constexpr std::size_t kAddressOffset = 20;
constexpr std::size_t kLeafOffset = 27;   ///< offset of the leaf of controller 0, little-endian
constexpr std::uint8_t kExtended = 0x80;  ///< first byte of a media block: length in the other bits
constexpr std::uint8_t kBlock21140Mii = 1;
/// A write with this bit sets which pins of the 21140A's port are outputs (HRM of the 21140A,
/// CSR12<GPC>).
constexpr std::uint16_t kPortControl = 0x100;
constexpr std::uint8_t kBlock21143Mii = 3;

/// The ROM's wires in CSR9.
class Wires final : public nic::RomWires {
public:
    explicit Wires(Bus& bus) noexcept : bus_(bus) {}

    void drive(bool select, bool clock, bool data) noexcept override {
        bus_.write(Csr::kRomAndMii, csr9::kSR | csr9::kRD | (select ? csr9::kSromCS : 0) |
                                        (clock ? csr9::kSromSK : 0) | (data ? csr9::kSromDI : 0));
    }
    bool out() noexcept override { return (bus_.read(Csr::kRomAndMii) & csr9::kSromDO) != 0; }
    void wait(Nanos span) noexcept override { bus_.wait(span); }

private:
    Bus& bus_;
};

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
    Wires wires(bus);
    const std::optional<int> address_bits = nic::count_address_bits(wires);
    if (!address_bits) return Fault::kRomMissing;
    std::array<std::uint16_t, kRomOctets / 2> words{};
    nic::read_words(wires, *address_bits, words);
    for (std::size_t i = 0; i < words.size(); ++i) {
        image[i * 2] = static_cast<std::uint8_t>(words[i] & 0xff);
        image[i * 2 + 1] = static_cast<std::uint8_t>(words[i] >> 8);
    }
    return Fault::kNone;
}

Fault parse_address(const RomImage& image, MacAddress& address) noexcept {
    const auto checked = std::as_bytes(std::span(image)).first(kChecksumOffset);
    const std::uint32_t stored = image[kChecksumOffset] | std::uint32_t{image[kChecksumOffset + 1]}
                                                              << 8;
    if ((nic::crc32(checked) & 0xffff) != stored) return Fault::kRomChecksum;
    std::copy_n(image.begin() + kAddressOffset, address.size(), address.begin());
    return nic::is_station(address) ? Fault::kNone : Fault::kRomAddress;
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
