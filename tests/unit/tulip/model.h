// SPDX-License-Identifier: BSD-3-Clause
// A small model of the 21143's registers, rings, serial ROM and PHY, with faults that no emulator
// has. It was written from the manual, not from the driver, so that it can check the driver. Its
// memory is an arena whose bus address of byte 0 is kArenaBus, or all memory of the process below 4
// GiB.
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "drivers/common/crc32.h"
#include "drivers/tulip/bus.h"
#include "drivers/tulip/descriptor.h"
#include "tests/unit/nic/phy_model.h"
#include "tests/unit/nic/rom_model.h"

namespace ulc::tulip {

inline constexpr std::uint32_t kArenaBus = 0x0010'0000;

/// Faults that a test can plant.
struct ModelFaults {
    bool gone = false;          ///< every read gives ones
    bool never_resets = false;  ///< the receive process stays in its state
    bool never_stops = false;   ///< the transmit process stays in its state
    bool dma_dead = false;      ///< descriptors are never returned
    bool bus_error = false;     ///< CSR5<FBE> with the next demand
    bool no_phy = false;
    bool link_down = false;
    std::uint32_t tx_status = 0;  ///< written to the last descriptor of the next frames
    int tx_status_frames = 0;     ///< the number of those frames
};

class TulipModel : public Bus {
public:
    /// 0: no arena, a bus address is the process's own.
    explicit TulipModel(std::size_t arena_octets = 1 << 17) : arena_(arena_octets) {
        rom_[20] = 0x02;
        for (int i = 1; i < 6; ++i)
            rom_[20 + i] = static_cast<std::uint8_t>(0x10 + i);
        rom_[27] = 30;  // the leaf of controller 0
        seal_rom();
    }

    ModelFaults faults;
    std::array<std::uint8_t, 128> rom_{};
    std::array<std::uint16_t, 32> phy{0x1000, 0x782d, 0, 0, 0x01e1, 0x45e1};
    std::uint8_t phy_address = 3;
    nic::RomModel rom;
    std::vector<std::vector<std::byte>> sent;
    std::vector<std::byte> setup;
    std::uint32_t setup_control = 0;
    std::vector<std::uint32_t> port_writes;  ///< to CSR15, CSR12
    std::uint32_t missed = 0;                ///< the value that the next read of CSR8 returns
    /// Reads of the PHY's status after which a link that is down comes up
    int link_up_after_reads = 0;
    std::uint64_t receive_demands = 0;  ///< writes to CSR2
    std::uint64_t transmit_lists = 0;   ///< writes to CSR4
    Nanos waited = 0;
    std::uint64_t accesses = 0;

    void seal_rom() {
        const std::uint32_t crc = nic::crc32(std::as_bytes(std::span(rom_)).first(126));
        rom_[126] = static_cast<std::uint8_t>(crc);
        rom_[127] = static_cast<std::uint8_t>(crc >> 8);
    }

    [[nodiscard]] std::byte* at(std::uint32_t bus) {
        if (arena_.empty()) return reinterpret_cast<std::byte*>(std::uintptr_t{bus});
        return arena_.data() + (bus - kArenaBus);
    }
    [[nodiscard]] std::uint32_t csr(Csr c) const { return csr_[static_cast<std::size_t>(c)]; }
    [[nodiscard]] bool receives() const { return (csr(Csr::kOperationMode) & csr6::kSR) != 0; }

    /// Delivers a frame from the wire, without CRC; `status` adds error bits, `cut` leaves out
    /// <LS>. Returns false if it was lost for lack of a descriptor.
    bool deliver(std::span<const std::byte> frame, std::uint32_t status = 0, bool cut = false) {
        auto* d = reinterpret_cast<Descriptor*>(at(rx_at_));
        if (!receives() || (d->status & kOwn) == 0) {
            ++missed;
            return false;
        }
        const std::uint32_t room = d->control & 0x7ff;
        std::memcpy(at(d->buffer1), frame.data(), std::min<std::size_t>(room, frame.size()));
        const auto length = static_cast<std::uint32_t>(frame.size() + 4);
        d->status = status | rdes0::kFS | (cut ? 0 : rdes0::kLS) | length << rdes0::kFLShift;
        next_rx(d);
        return true;
    }
    /// Delivers a descriptor with arbitrary contents, as a faulty chip might.
    void deliver_raw(std::uint32_t status) {
        auto* d = reinterpret_cast<Descriptor*>(at(rx_at_));
        d->status = status & ~kOwn;
        next_rx(d);
    }

    std::uint32_t read(Csr c) noexcept override {
        ++accesses;
        if (faults.gone) return kNoAnswer;
        if (c == Csr::kRomAndMii) {
            return (rom.out() ? csr9::kSromDO : 0) | (mii_out_ ? csr9::kMDI : 0);
        }
        if (c == Csr::kMissedFrames) return std::exchange(missed, 0);
        return csr(c);
    }

    void write(Csr c, std::uint32_t value) noexcept override {
        ++accesses;
        std::uint32_t& reg = csr_[static_cast<std::size_t>(c)];
        switch (c) {
            case Csr::kBusMode:
                reg = value & ~csr0::kSWR;
                if ((value & csr0::kSWR) != 0)
                    csr_[5] = faults.never_resets ? 3U << csr5::kRSShift : 0;
                return;
            case Csr::kStatus:
                reg &= ~(value & csr5::kClearable);
                return;
            case Csr::kOperationMode:
                reg = value;
                set_states();
                return transmit();
            case Csr::kTransmitPollDemand:
                return transmit();
            case Csr::kReceivePollDemand:
                ++receive_demands;
                return;
            case Csr::kReceiveListBase:
                rx_at_ = value;
                reg = value;
                return;
            case Csr::kTransmitListBase:
                tx_at_ = value;
                reg = value;
                ++transmit_lists;
                return;
            case Csr::kRomAndMii:
                rom_wires(value);
                mii_wires(value);
                return;
            case Csr::kSiaGeneralPort:
            case Csr::kSiaStatus:
                port_writes.push_back(value);
                return;
            default:
                reg = value;
        }
    }

    void wait(Nanos span) noexcept override { waited += span; }

private:
    void set_states() {
        const std::uint32_t mode = csr_[6];
        const bool transmits = (mode & csr6::kST) != 0 || faults.never_stops;
        csr_[5] &= ~(csr5::kStateMask << csr5::kRSShift | csr5::kStateMask << csr5::kTSShift);
        if ((mode & csr6::kSR) != 0) csr_[5] |= 3U << csr5::kRSShift;
        if (transmits) csr_[5] |= 6U << csr5::kTSShift;
    }

    void next_rx(const Descriptor* d) {
        rx_at_ = (d->control & rdes1::kRER) != 0 ? csr(Csr::kReceiveListBase) : rx_at_ + 16;
    }

    void transmit() {
        if ((csr_[6] & csr6::kST) == 0) return;
        if (faults.bus_error) csr_[5] |= csr5::kFBE | 1U << csr5::kEBShift;
        if (faults.dma_dead || faults.bus_error) return;
        for (auto* d = reinterpret_cast<Descriptor*>(at(tx_at_)); (d->status & kOwn) != 0;
             d = reinterpret_cast<Descriptor*>(at(tx_at_))) {
            take(d);
            tx_at_ = (d->control & tdes1::kTER) != 0 ? csr(Csr::kTransmitListBase) : tx_at_ + 16;
        }
    }

    void take(Descriptor* d) {
        const std::uint32_t first = d->control & 0x7ff;
        const std::uint32_t second = (d->control >> 11) & 0x7ff;
        if ((d->control & tdes1::kSET) != 0) {
            setup.assign(at(d->buffer1), at(d->buffer1) + first);
            setup_control = d->control;
            d->status = tdes0::kSetupDone;
            return;
        }
        if ((d->control & tdes1::kFS) != 0) frame_.clear();
        frame_.insert(frame_.end(), at(d->buffer1), at(d->buffer1) + first);
        if (second != 0) frame_.insert(frame_.end(), at(d->buffer2), at(d->buffer2) + second);
        d->status = 0;
        if ((d->control & tdes1::kLS) == 0) return;
        if (faults.tx_status_frames > 0) {
            --faults.tx_status_frames;
            d->status = faults.tx_status;
            return;
        }
        sent.push_back(frame_);
    }

    void rom_wires(std::uint32_t v) {
        if ((v & csr9::kSR) == 0) return;
        rom.wires((v & csr9::kSromCS) != 0, (v & csr9::kSromSK) != 0, (v & csr9::kSromDI) != 0,
                  [this](std::uint32_t index) {
                      const std::size_t octet = index * 2 % rom_.size();
                      return rom_[octet] | std::uint32_t{rom_[octet + 1]} << 8;
                  });
    }

    // IEEE 802.3 clause 22: 32 ones, start, operation, PHY, register, turn-around, 16 bits of data.
    void mii_wires(std::uint32_t v) {
        const bool rising = (v & csr9::kMDC) != 0 && (mii_wires_ & csr9::kMDC) == 0;
        mii_wires_ = v;
        if (!rising || (v & csr9::kSR) != 0) return;
        const bool reads = (v & csr9::kMII) != 0;
        const bool one = reads || (v & csr9::kMDO) != 0;
        if (mii_bits_ == 0) {  // idle: a zero after at least 32 ones starts a frame
            mii_ones_ = one ? mii_ones_ + 1 : 0;
            if (one || mii_last_ones_ < 32) {
                mii_last_ones_ = mii_ones_;
                mii_out_ = true;
                return;
            }
            mii_word_ = 0;
            mii_bits_ = 1;
            return;
        }
        mii_word_ = mii_word_ << 1 | (one ? 1U : 0U);
        ++mii_bits_;
        const std::uint32_t header = mii_bits_ >= 14 ? mii_word_ >> (mii_bits_ - 14) : 0;
        const bool mine = !faults.no_phy && ((header >> 5) & 31) == phy_address;
        const std::uint32_t reg = header & 31;
        const bool is_read = (header >> 10) == 0b0110;
        mii_out_ = true;
        if (mii_bits_ >= 16 && mii_bits_ < 32 && mine && is_read)
            mii_out_ = ((nic::read_phy(*this, reg) >> (31 - mii_bits_)) & 1) != 0;
        if (mii_bits_ == 15 && mine && is_read) mii_out_ = false;  // turn-around
        if (mii_bits_ < 32) return;
        if (mine && (header >> 10) == 0b0101) phy[reg] = static_cast<std::uint16_t>(mii_word_);
        mii_bits_ = mii_ones_ = mii_last_ones_ = 0;
    }

    std::vector<std::byte> arena_;
    std::array<std::uint32_t, 16> csr_{};
    std::vector<std::byte> frame_;
    std::uint32_t rx_at_ = kArenaBus;
    std::uint32_t tx_at_ = kArenaBus;
    std::uint32_t mii_wires_ = 0;
    std::uint32_t mii_word_ = 0;
    int mii_bits_ = 0;
    int mii_ones_ = 0;
    int mii_last_ones_ = 0;
    bool mii_out_ = true;
};

}  // namespace ulc::tulip
