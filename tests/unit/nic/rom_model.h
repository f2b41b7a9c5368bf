// SPDX-License-Identifier: BSD-3-Clause
// A MicroWire EEPROM on its three wires, for the register models: start bit, two bits of operation,
// address, then 16 bits out, the highest first.
#pragma once

#include <cstdint>

namespace ulc::nic {

class RomModel {
public:
    int address_bits = 6;
    bool is_silent = false;  ///< its output stays high

    /// Follows the wires; `word_at(index)` gives the content.
    template <typename WordAt>
    void wires(bool select, bool clock, bool data, WordAt word_at) {
        const bool rising = clock && !clock_;
        clock_ = clock;
        if (!select) {
            bits_ = word_ = 0;
            out_ = true;
            return;
        }
        if (!rising) return;
        const int header = 3 + address_bits;
        if (bits_ < header) {
            word_ = word_ << 1 | (data ? 1U : 0U);
            if (++bits_ == header) {
                out_ = false;
                word_ = word_at(word_ & ((1U << address_bits) - 1));
            }
            return;
        }
        out_ = (word_ & 0x8000) != 0;
        word_ <<= 1;
    }
    [[nodiscard]] bool out() const { return is_silent || out_; }

private:
    bool clock_ = false;
    std::uint32_t word_ = 0;
    int bits_ = 0;
    bool out_ = true;
};

}  // namespace ulc::nic
