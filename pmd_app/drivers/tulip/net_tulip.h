// SPDX-License-Identifier: BSD-3-Clause
// The 21143's part of a port: what drivers/common/net_port.h asks of a driver.
#pragma once

#include <memory>
#include <vector>

#include "drivers/common/net_port.h"
#include "drivers/tulip/chip.h"
#include "drivers/tulip/rx_ring.h"
#include "drivers/tulip/setup_frame.h"
#include "drivers/tulip/tx_ring.h"

namespace ulc::tulip {

/// Registers of a card in memory space (net_tulip_memory.cc).
class MemoryBus final : public Bus {
public:
    explicit MemoryBus(void* bar) noexcept : bar_(static_cast<std::uint8_t*>(bar)) {}
    std::uint32_t read(Csr csr) noexcept override;
    void write(Csr csr, std::uint32_t value) noexcept override;
    void wait(Nanos span) noexcept override;

private:
    std::uint8_t* bar_;
};

inline constexpr std::uint16_t kVendorDec = 0x1011;
inline constexpr std::uint16_t kDevice21143 = 0x0019;
inline constexpr std::uint16_t kDevice21140 = 0x0009;

class Adapter {
public:
    using TxRing = tulip::TxRing;
    using RxRing = tulip::RxRing;
    static constexpr int kRegistersBar = 1;  ///< in memory space; BAR 0 is the same in I/O space
    static constexpr std::uint32_t kBarOctets = tulip::kBarOctets;
    static constexpr std::size_t kTxPlaceOctets = kDescriptorOctets;
    static constexpr std::size_t kRxPlaceOctets = kDescriptorOctets;
    static constexpr std::size_t kScratchOctets = kSetupFrameOctets;
    static constexpr std::uint32_t kDoorbellEvery = 0;
    static constexpr bool kReceptionByFilter = false;

    Adapter(void* bar, const nic::Identity& identity) noexcept
        : bus_(bar),
          model_(identity.device_id == kDevice21140 ? Model::k21140 : Model::k21143),
          chip_(bus_, model_) {}
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;

    [[nodiscard]] static std::unique_ptr<TxRing> make_tx(nic::Memory memory, std::uint16_t size);
    [[nodiscard]] static std::unique_ptr<RxRing> make_rx(nic::Memory memory, std::uint16_t size,
                                                         std::uint32_t buffer_octets);
    /// Buffers are received to their headroom's end, which DPDK aligns.
    [[nodiscard]] static RxBuffer buffer_of(rte_mbuf* mbuf) noexcept {
        return {.owner = mbuf,
                .bus_address = static_cast<std::uint32_t>(rte_mbuf_data_iova_default(mbuf))};
    }

    Fault probe(const nic::PortArguments& arguments, MacAddress& own) noexcept;
    Fault reset() noexcept { return chip_.reset(sequence_); }
    Fault attach(nic::Memory tx, nic::Memory rx, nic::Memory scratch) noexcept;
    Fault start_transmit(TxRing& ring) noexcept;
    Fault start_receive(RxRing& ring) noexcept;
    Fault stop() noexcept { return chip_.stop(); }
    Fault check(const TxRing& /*tx*/, const RxRing& /*rx*/) noexcept { return chip_.check(); }
    Fault apply(const Link& link) noexcept { return chip_.apply(link); }
    Fault raise_threshold(const TxRing& /*ring*/) noexcept { return chip_.raise_threshold(); }
    [[nodiscard]] bool post_filter(TxRing& ring, const MacAddress& own,
                                   const std::vector<MacAddress>& multicasts,
                                   Reception reception) noexcept;
    [[nodiscard]] bool needs_filter() const noexcept { return false; }
    void set_reception(Reception reception) noexcept { chip_.set_reception(reception); }
    void set_internal_loopback(bool on) noexcept { chip_.set_internal_loopback(on); }
    [[nodiscard]] nic::Phy& phy() noexcept { return chip_.phy(); }
    void wait(Nanos span) noexcept { bus_.wait(span); }

    [[nodiscard]] RxVerdict peek(RxRing& ring, RxFrame& frame) noexcept { return ring.peek(frame); }
    /// Returns true if no place is free: the chip has suspended, and continues on demand (HRM,
    /// CSR5<RU>).
    [[nodiscard]] static bool ran_dry(RxRing& ring) noexcept {
        return ring.done_at(ring.size() - 1);
    }
    void after_receive(const RxRing& /*ring*/, bool ran_dry) noexcept {
        if (ran_dry) chip_.demand_receive();
    }
    void demand_transmit() noexcept { chip_.demand_transmit(); }

    struct OwnCounter {
        const char* name;
        std::uint64_t MissedFrames::*counter;
    };
    static constexpr OwnCounter kOwnCounters[] = {
        {"rx_missed_no_descriptor", &MissedFrames::no_descriptor},
        {"rx_missed_fifo_overflow", &MissedFrames::fifo_overflow},
    };
    [[nodiscard]] std::uint64_t value_of(const OwnCounter& own) const noexcept {
        return chip_.missed().*own.counter;
    }
    [[nodiscard]] std::uint64_t missed_frames() const noexcept {
        return chip_.missed().no_descriptor + chip_.missed().fifo_overflow;
    }
    [[nodiscard]] std::uint64_t bad_frames() const noexcept { return 0; }
    [[nodiscard]] std::uint64_t lost_frames(std::uint64_t /*reported*/) const noexcept { return 0; }
    void clear_counters() noexcept { chip_.clear_missed(); }

    static constexpr std::uint32_t kRegisters = 16;
    [[nodiscard]] std::uint32_t register_at(std::uint32_t index) noexcept;

private:
    MemoryBus bus_;
    Model model_;
    Chip chip_;
    PortSequence sequence_;
    void* setup_frame_ = nullptr;
    std::uint32_t setup_bus_ = 0;
};

}  // namespace ulc::tulip
