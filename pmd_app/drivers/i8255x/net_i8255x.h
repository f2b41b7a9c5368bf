// SPDX-License-Identifier: BSD-3-Clause
// The 8255x's part of a port: what drivers/common/net_port.h asks of a driver.
#pragma once

#include <memory>
#include <vector>

#include "drivers/common/net_port.h"
#include "drivers/i8255x/chip.h"
#include "drivers/i8255x/filter.h"

namespace ulc::i8255x {

/// Registers of a card in memory space (net_i8255x_memory.cc).
class MemoryBus final : public Bus {
public:
    explicit MemoryBus(void* bar) noexcept : bar_(static_cast<std::uint8_t*>(bar)) {}
    std::uint32_t read32(Reg reg) noexcept override;
    std::uint16_t read16(Reg reg) noexcept override;
    void write32(Reg reg, std::uint32_t value) noexcept override;
    void write16(Reg reg, std::uint16_t value) noexcept override;
    void write8(Reg reg, std::uint8_t value) noexcept override;
    void wait(Nanos span) noexcept override;

private:
    std::uint8_t* bar_;
};

class Adapter {
public:
    using TxRing = i8255x::TxRing;
    using RxRing = i8255x::RxRing;
    static constexpr int kRegistersBar = 0;  ///< in memory space; BAR 1 is the same in I/O space
    static constexpr std::uint32_t kBarOctets = i8255x::kBarOctets;
    static constexpr std::size_t kTxPlaceOctets = sizeof(CommandBlock);
    static constexpr std::size_t kRxPlaceOctets = 0;  ///< descriptors lie in the headroom
    static constexpr std::size_t kScratchOctets = sizeof(Statistics);
    /// QEMU's model ends a run of the command unit after 16 blocks, and waits for a resume.
    static constexpr std::uint32_t kDoorbellEvery = 16;
    static constexpr bool kReceptionByFilter = true;

    Adapter(void* bar, const nic::Identity& identity) noexcept : bus_(bar), chip_(bus_) {
        line_.is_82558_or_later = identity.revision >= kRevision82558;
    }
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;

    [[nodiscard]] static std::unique_ptr<TxRing> make_tx(nic::Memory memory, std::uint16_t size);
    [[nodiscard]] static std::unique_ptr<RxRing> make_rx(nic::Memory memory, std::uint16_t size,
                                                         std::uint32_t buffer_octets);
    /// The descriptor takes the end of the headroom, so that the frame begins as DPDK expects.
    [[nodiscard]] static RxBuffer buffer_of(rte_mbuf* mbuf) noexcept {
        static_assert(RTE_PKTMBUF_HEADROOM >= sizeof(ReceiveDescriptor));
        auto* frame = static_cast<std::uint8_t*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
        auto* descriptor = frame - sizeof(ReceiveDescriptor);
        return {.owner = mbuf,
                .descriptor = reinterpret_cast<ReceiveDescriptor*>(descriptor),
                .bus_address = static_cast<std::uint32_t>(rte_mbuf_data_iova_default(mbuf) -
                                                          sizeof(ReceiveDescriptor))};
    }

    Fault probe(const nic::PortArguments& arguments, MacAddress& own) noexcept;
    Fault reset() noexcept { return chip_.reset(); }
    Fault attach(nic::Memory tx, nic::Memory rx, nic::Memory scratch) noexcept;
    Fault start_transmit(TxRing& ring) noexcept;
    Fault start_receive(RxRing& ring) noexcept { return chip_.start_receive(ring); }
    Fault stop() noexcept { return chip_.stop(); }
    Fault check(const TxRing& tx, RxRing& rx) noexcept { return chip_.check(tx, rx); }
    /// The chip learns a change of duplex with the next filter.
    Fault apply(const Link& link) noexcept;
    Fault raise_threshold(TxRing& ring) noexcept;
    [[nodiscard]] bool post_filter(TxRing& ring, const MacAddress& own,
                                   const std::vector<MacAddress>& multicasts,
                                   Reception reception) noexcept;
    [[nodiscard]] bool needs_filter() const noexcept { return needs_filter_; }
    void set_reception(Reception /*reception*/) noexcept {}  // with the filter
    void set_internal_loopback(bool on) noexcept { line_.loopback = on; }
    [[nodiscard]] nic::Phy& phy() noexcept { return chip_.phy(); }
    void wait(Nanos span) noexcept { bus_.wait(span); }

    /// A chip that sets C before the content is there (QEMU's) is asked once for a register, which
    /// orders its writes before the answer.
    [[nodiscard]] RxVerdict peek(RxRing& ring, RxFrame& frame) noexcept {
        const RxVerdict verdict = ring.peek(frame, false);
        if (verdict != RxVerdict::kUnsettled) [[likely]]
            return verdict;
        (void)bus_.read32(Reg::kScb);
        return ring.peek(frame, true);
    }
    [[nodiscard]] static bool ran_dry(const RxRing& /*ring*/) noexcept { return false; }
    void after_receive(RxRing& ring, bool /*ran_dry*/) noexcept {
        if (ring.may_have_stopped()) chip_.resume_receive(ring);
    }
    void demand_transmit() noexcept { chip_.demand_transmit(); }

    struct OwnCounter {
        const char* name;
        std::uint64_t ChipCounters::*counter;
    };
    static constexpr OwnCounter kOwnCounters[] = {
        {"rx_missed_no_descriptor", &ChipCounters::rx_no_resources},
        {"rx_missed_fifo_overflow", &ChipCounters::rx_overruns},
        {"chip_rx_crc_errors", &ChipCounters::rx_crc},
        {"chip_rx_alignment_errors", &ChipCounters::rx_alignment},
        {"chip_rx_collisions", &ChipCounters::rx_collisions},
        {"chip_rx_short_frames", &ChipCounters::rx_short},
        {"chip_tx_max_collisions", &ChipCounters::tx_max_collisions},
        {"chip_tx_late_collisions", &ChipCounters::tx_late_collisions},
        {"chip_tx_underruns", &ChipCounters::tx_underruns},
        {"chip_tx_lost_carrier", &ChipCounters::tx_lost_carrier},
        {"chip_tx_deferred", &ChipCounters::tx_deferred},
        {"chip_tx_collisions", &ChipCounters::tx_collisions},
    };
    [[nodiscard]] std::uint64_t value_of(const OwnCounter& own) const noexcept {
        return chip_.counters().*own.counter;
    }
    [[nodiscard]] std::uint64_t missed_frames() const noexcept;
    /// Returns frames that the chip dropped by itself; with this configuration it gives no others.
    [[nodiscard]] std::uint64_t bad_frames() const noexcept;
    /// Returns frames that the chip did not send, beyond the `reported` ones.
    [[nodiscard]] std::uint64_t lost_frames(std::uint64_t reported) const noexcept;
    void clear_counters() noexcept { chip_.clear_counters(); }

    static constexpr std::uint32_t kRegisters = 5;  ///< SCB, pointer, PORT, EEPROM, MDI
    [[nodiscard]] std::uint32_t register_at(std::uint32_t index) noexcept {
        return bus_.read32(static_cast<Reg>(index * 4));
    }

private:
    static constexpr std::uint8_t kRevision82558 = 4;

    MemoryBus bus_;
    Chip chip_;
    Line line_;
    nic::TransmitThreshold threshold_ = nic::TransmitThreshold::k128;
    bool needs_filter_ = false;
};

}  // namespace ulc::i8255x
