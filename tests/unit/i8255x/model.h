// SPDX-License-Identifier: BSD-3-Clause
// A small model of the 8255x's registers, command and receive units, EEPROM and PHY, with faults
// that no emulator has. It was written from the manual, not from the driver, so that it can check
// the driver. Its memory is an arena whose bus address of byte 0 is kArenaBus, or all memory of the
// process below 4 GiB.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "drivers/i8255x/bus.h"
#include "drivers/i8255x/descriptor.h"
#include "tests/unit/nic/phy_model.h"
#include "tests/unit/nic/rom_model.h"

namespace ulc::i8255x {

inline constexpr std::uint32_t kArenaBus = 0x0010'0000;

/// Faults that a test can plant.
struct ModelFaults {
    bool gone = false;            ///< every read gives ones
    bool reads_zero = false;      ///< every read gives zeros, as some buses do without a card
    bool never_resets = false;    ///< the receive unit stays in its state
    bool never_stops = false;     ///< the command unit stays active
    bool dma_dead = false;        ///< command blocks are never read or returned
    bool never_accepts = false;   ///< the command byte is never cleared
    bool commands_fail = false;   ///< configure and the others end without OK
    bool late_content = false;    ///< C first; count and content with the next read of a register
    bool prefetches_end = false;  ///< reads EL of the next descriptor when it ends the one before
    bool no_phy = false;
    bool mdi_dead = false;  ///< MDI never gets ready
    bool link_down = false;
    std::uint16_t tx_status = 0;  ///< written to the next frames besides C
    int tx_status_frames = 0;     ///< the number of those frames
};

class I8255xModel : public Bus {
public:
    /// 0: no arena, a bus address is the process's own.
    explicit I8255xModel(std::size_t arena_octets = 1 << 17) : arena_(arena_octets) {
        rom_.resize(64);
        rom_[0] = 0x1102;
        rom_[1] = 0x1312;
        rom_[2] = 0x1514;
        seal_rom();
    }

    ModelFaults faults;
    nic::RomModel rom;
    std::vector<std::uint16_t> rom_;
    std::array<std::uint16_t, 32> phy{0x1000, 0x782d, 0, 0, 0x01e1, 0x45e1};
    std::uint8_t phy_address = 1;
    std::vector<std::vector<std::byte>> sent;
    std::vector<std::uint8_t> thresholds;  ///< one of each frame sent
    std::array<std::uint8_t, 22> configuration{};
    std::array<std::uint8_t, 6> own{};
    std::vector<std::array<std::uint8_t, 6>> multicasts;
    Statistics counted{};  ///< the content of the next dump
    int link_up_after_reads = 0;
    std::uint64_t receive_starts = 0;
    std::uint64_t command_starts = 0;
    std::uint64_t resumes = 0;
    std::uint64_t resets = 0;
    std::uint64_t executed = 0;  ///< command blocks
    Nanos waited = 0;
    std::uint64_t accesses = 0;

    void seal_rom() {
        std::uint16_t sum = 0;
        rom_.back() = 0;
        for (const std::uint16_t word : rom_)
            sum = static_cast<std::uint16_t>(sum + word);
        rom_.back() = static_cast<std::uint16_t>(0xbaba - sum);
    }

    [[nodiscard]] std::byte* at(std::uint32_t bus) {
        if (arena_.empty()) return reinterpret_cast<std::byte*>(std::uintptr_t{bus});
        return arena_.data() + (bus - kArenaBus);
    }
    [[nodiscard]] scb::Ru ru() const { return ru_; }
    [[nodiscard]] scb::Cu cu() const { return cu_; }
    [[nodiscard]] bool receives() const { return ru_ == scb::Ru::kReady; }
    [[nodiscard]] std::uint8_t interrupt_mask() const { return interrupt_mask_; }

    /// Delivers a frame from the wire; `status` replaces OK if it is not 0. Returns false if it was
    /// lost for lack of a descriptor.
    bool deliver(std::span<const std::byte> frame, std::uint16_t status = 0) {
        settle();
        if (!receives()) {
            ++counted.rx_no_resources;
            return false;
        }
        auto* d = reinterpret_cast<ReceiveDescriptor*>(at(ru_at_));
        const bool fits = frame.size() <= d->size;
        const std::size_t octets = fits ? frame.size() : d->size;
        if (!fits && status == 0) status = rfd::kNoSpace;
        content_.assign(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(octets));
        content_at_ = ru_at_;
        finish(d, static_cast<std::uint16_t>(rfd::kComplete | (status == 0 ? rfd::kOk : status)),
               static_cast<std::uint16_t>(octets));
        return true;
    }
    /// Ends a descriptor with arbitrary contents, as a faulty chip might.
    void deliver_raw(std::uint16_t status, std::uint16_t count) {
        auto* d = reinterpret_cast<ReceiveDescriptor*>(at(ru_at_));
        d->count = count;
        d->status = status | rfd::kComplete;
        next_rx(d);
    }
    /// Loses the state as a chip without power does.
    void power_off() {
        cu_ = scb::Cu::kIdle;
        ru_ = scb::Ru::kIdle;
    }

    std::uint32_t read32(Reg reg) noexcept override {
        ++accesses;
        if (faults.gone) return kNoAnswer;
        if (faults.reads_zero) return 0;
        settle();
        if (reg == Reg::kMdi) return mdi_ | (faults.mdi_dead ? 0 : mdi::kReady);
        if (reg != Reg::kScb) return 0;
        const std::uint32_t cu = faults.never_stops ? 2U : static_cast<std::uint32_t>(cu_);
        return std::uint32_t{interrupt_mask_} << scb::kMaskShift |
               static_cast<std::uint32_t>(ru_) << scb::kRusShift | cu << scb::kCusShift |
               (faults.never_accepts ? 1U << scb::kCommandShift : 0);
    }
    std::uint16_t read16(Reg reg) noexcept override {
        ++accesses;
        if (faults.gone) return 0xffff;
        if (faults.reads_zero) return 0;
        return reg == Reg::kEeprom && rom.out() ? eeprom::kDO : 0;
    }
    void write32(Reg reg, std::uint32_t value) noexcept override {
        ++accesses;
        if (faults.gone || faults.reads_zero) return;
        if (reg == Reg::kGeneralPointer) pointer_ = value;
        if (reg == Reg::kPort) reset();
        if (reg == Reg::kMdi) access_phy(value);
    }
    void write16(Reg reg, std::uint16_t value) noexcept override {
        ++accesses;
        if (reg != Reg::kEeprom) return;
        rom.wires((value & eeprom::kCS) != 0, (value & eeprom::kSK) != 0,
                  (value & eeprom::kDI) != 0,
                  [this](std::uint32_t index) { return rom_[index % rom_.size()]; });
    }
    void write8(Reg reg, std::uint8_t value) noexcept override {
        ++accesses;
        if (faults.gone || faults.reads_zero) return;
        if (reg == Reg::kInterruptMask) interrupt_mask_ = value;
        if (reg == Reg::kCommand && !faults.never_accepts) execute(static_cast<Command>(value));
    }
    void wait(Nanos span) noexcept override { waited += span; }

private:
    void reset() {
        ++resets;
        ru_ = faults.never_resets ? scb::Ru::kReady : scb::Ru::kIdle;
        cu_ = scb::Cu::kIdle;
        interrupt_mask_ = 0;
        content_.clear();
    }

    void execute(Command code) {
        switch (code) {
            case Command::kCuLoadBase:
                cu_base_ = pointer_;
                return;
            case Command::kRuLoadBase:
                ru_base_ = pointer_;
                return;
            case Command::kLoadDumpAddress:
                dump_at_ = pointer_;
                return;
            case Command::kDumpAndReset:
                if (faults.dma_dead) return;
                counted.complete = kDumped;
                std::memcpy(at(dump_at_), &counted, sizeof counted);
                counted = {};
                return;
            case Command::kRuAbort:
                ru_ = scb::Ru::kIdle;
                return;
            case Command::kRuStart:
                ++receive_starts;
                ru_ = scb::Ru::kReady;
                ru_at_ = ru_base_ + pointer_;
                look_ahead();
                return;
            case Command::kCuStart:
                ++command_starts;
                cu_ = scb::Cu::kActive;
                cu_at_ = cu_base_ + pointer_;
                return run_list();
            case Command::kCuResume:
                ++resumes;
                return resume();
        }
    }

    /// A suspended unit reads S of the last block again; one that is active goes on anyway.
    void resume() {
        if (cu_ == scb::Cu::kIdle) return;
        if (cu_ == scb::Cu::kSuspended) {
            const auto* last = reinterpret_cast<CommandBlock*>(at(cu_at_));
            if ((last->command & cb::kSuspend) != 0) return;
            cu_at_ = cu_base_ + last->link;
        }
        cu_ = scb::Cu::kActive;
        run_list();
    }

    void run_list() {
        while (!faults.dma_dead) {
            auto* block = reinterpret_cast<CommandBlock*>(at(cu_at_));
            const std::uint16_t status = perform(*block);
            block->status = status | cb::kComplete;
            ++executed;
            if ((block->command & cb::kEndOfList) != 0) cu_ = scb::Cu::kIdle;
            if ((block->command & cb::kSuspend) != 0) cu_ = scb::Cu::kSuspended;
            if (cu_ != scb::Cu::kActive) return;
            cu_at_ = cu_base_ + block->link;
        }
    }

    std::uint16_t perform(const CommandBlock& block) {
        const std::uint8_t* bytes = block.body.bytes.data();
        const std::uint16_t done = faults.commands_fail ? 0 : cb::kOk;
        switch (block.command & cb::kCommandMask) {
            case cb::kConfigure:
                std::copy_n(bytes, configuration.size(), configuration.begin());
                return done;
            case cb::kAddress:
                std::copy_n(bytes, own.size(), own.begin());
                return done;
            case cb::kMulticast:
                multicasts.clear();
                for (int i = 0; i < (bytes[0] | bytes[1] << 8) / 6; ++i)
                    std::copy_n(bytes + 2 + i * 6, 6, multicasts.emplace_back().begin());
                return done;
            case cb::kTransmit:
                return transmit(block);
            default:
                return cb::kOk;
        }
    }

    std::uint16_t transmit(const CommandBlock& block) {
        const auto& t = block.body.transmit;
        std::vector<std::byte> frame;
        const auto* buffers = reinterpret_cast<TransmitBuffer*>(at(t.buffers));
        for (int i = 0; i < t.number; ++i)
            frame.insert(frame.end(), at(buffers[i].address),
                         at(buffers[i].address) + buffers[i].size);
        std::uint16_t status = cb::kOk;
        if (faults.tx_status_frames > 0) {
            --faults.tx_status_frames;
            status = faults.tx_status;
        }
        if ((status & cb::kOk) == 0) return status;
        sent.push_back(frame);
        thresholds.push_back(t.threshold);
        return status;
    }

    void finish(ReceiveDescriptor* d, std::uint16_t status, std::uint16_t octets) {
        if (faults.late_content) {
            d->status = status;
            unsettled_octets_ = octets;
        } else {
            std::memcpy(at(content_at_) + sizeof *d, content_.data(), content_.size());
            d->count = octets | rfd::kEof | rfd::kFilled;
            d->status = status;
            content_.clear();
        }
        next_rx(d);
    }
    /// Writes what `late_content` kept back.
    void settle() {
        if (content_.empty()) return;
        auto* d = reinterpret_cast<ReceiveDescriptor*>(at(content_at_));
        std::memcpy(at(content_at_) + sizeof *d, content_.data(), content_.size());
        d->count = unsettled_octets_;
        content_.clear();
    }

    void next_rx(const ReceiveDescriptor* d) {
        const bool ends = faults.prefetches_end ? ends_here_ : (d->command & rfd::kEndOfList) != 0;
        if (ends) {
            ru_ = scb::Ru::kNoResources;
            return;
        }
        ru_at_ = ru_base_ + d->link;
        look_ahead();
    }
    void look_ahead() {
        const auto* d = reinterpret_cast<ReceiveDescriptor*>(at(ru_at_));
        ends_here_ = (d->command & rfd::kEndOfList) != 0;
    }

    void access_phy(std::uint32_t value) {
        const std::uint32_t reg = value >> mdi::kRegisterShift & 31;
        const bool mine = !faults.no_phy && (value >> mdi::kPhyShift & 31) == phy_address;
        mdi_ = value & ~mdi::kDataMask;
        if ((value & mdi::kRead) != 0)
            mdi_ |= mine ? nic::read_phy(*this, reg) : 0xffffU;
        else if (mine)
            phy[reg] = static_cast<std::uint16_t>(value);
    }

    std::vector<std::byte> arena_;
    scb::Ru ru_ = scb::Ru::kIdle;
    scb::Cu cu_ = scb::Cu::kIdle;
    std::uint8_t interrupt_mask_ = 0;
    std::uint32_t pointer_ = 0;
    std::uint32_t cu_base_ = 0x1000;  ///< after power-on: whatever
    std::uint32_t ru_base_ = 0x1000;
    std::uint32_t cu_at_ = 0;  ///< active: the next block; suspended: the last
    std::uint32_t ru_at_ = 0;
    std::uint32_t dump_at_ = 0;
    std::uint32_t mdi_ = 0;
    std::vector<std::byte> content_;
    std::uint32_t content_at_ = 0;
    std::uint16_t unsettled_octets_ = 0;
    bool ends_here_ = false;
};

}  // namespace ulc::i8255x
