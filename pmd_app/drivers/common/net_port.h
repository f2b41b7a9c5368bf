// SPDX-License-Identifier: BSD-3-Clause
// One port of a poll-mode driver: the state that the glue to DPDK's ethdev keeps in addition to the
// pure files of a chip, and what all drivers do alike. Card is the chip's part.
//
// Locks. A burst function tries its queue's lock and skips this round if it is taken; it never
// waits. The control plane takes both, transmit first. Card's methods, except the doorbells and
// phy(), are called with both locks held: by the control plane, or by a burst function that also
// got the other lock at its first try. At the rate of Fast Ethernet (6.7 us a frame) the cost of an
// uncontended lock is negligible.
//
// Card, one for each driver, in its net_<driver>.h:
//   TxRing, RxRing, kTxPlaceOctets, kRxPlaceOctets   rings, and the memory of one place (0: none)
//   kScratchOctets         memory besides the rings (Memory), which attach() gets
//   kDoorbellEvery         frames after which the doorbell must ring; 0: once a burst
//   kReceptionByFilter     set_reception() takes effect with the next post_filter()
//   make_tx, make_rx, buffer_of    rings on memory; what RxRing needs of an mbuf
//   probe, reset, attach, start_transmit, start_receive, stop, check    as the pure files say
//   post_filter, set_reception, apply, needs_filter, phy                address filter, line
//   peek, ran_dry, after_receive, demand_transmit, raise_threshold      path of a frame
//   kOwnCounters, value_of, missed_frames, bad_frames, lost_frames,
//   clear_counters         the chip's own counts
//   kRegisters, register_at                                             for a register dump
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ethdev_driver.h>
#include <ethdev_pci.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "drivers/common/fault.h"
#include "drivers/common/mac_address.h"
#include "drivers/common/net_arguments.h"
#include "drivers/common/net_log.h"
#include "drivers/common/phy.h"
#include "drivers/common/ring_types.h"

namespace ulc::nic {

/// Identity of a card among those of one driver.
struct Identity {
    std::uint16_t device_id;
    std::uint8_t revision;
};

/// Memory that the chip reaches.
struct Memory {
    void* at;
    std::uint32_t bus;
};

/// Counters of the port; by name in the extended statistics.
struct PortCounters {
    std::uint64_t rx_frames, rx_octets;
    std::uint64_t rx_crc_errors, rx_runts, rx_too_long, rx_fifo_overflows, rx_malformed;
    std::uint64_t rx_no_buffer;
    std::uint64_t tx_frames, tx_octets;
    std::uint64_t tx_collisions, tx_collision_retries, tx_given_up, tx_underflows, tx_no_carrier;
    std::uint64_t tx_jabber, tx_refused, tx_lost_in_reset;
    std::uint64_t recoveries, failed_recoveries;
};

/// Maximum of parts in a frame to send.
inline constexpr std::uint16_t kPartsMax = 16;
inline constexpr std::uint16_t kRingMin = 16;
inline constexpr std::uint16_t kRingMax = 1024;
inline constexpr std::uint16_t kRingDefault = 128;
/// Addresses, type, a VLAN tag and 1,500 bytes; the chip adds the CRC.
inline constexpr std::uint32_t kFrameOctetsMax = 1518;
inline constexpr std::uint16_t kMtuMax = 1500;

template <typename Card>
class Port {
public:
    using TxRing = typename Card::TxRing;
    using RxRing = typename Card::RxRing;

    Port(rte_eth_dev* device, void* bar, const Identity& identity) noexcept
        : device_(device), card_(bar, identity) {}

    // ---- control plane (net_port_control.h); any thread, one at a time ----
    /// Resets the chip, reads the ROM, finds the PHY. `why` is a sentence on failure.
    Fault probe(const PortArguments& arguments) noexcept;
    int set_up_receive(std::uint16_t descriptors, rte_mempool* pool, int socket);
    int set_up_transmit(std::uint16_t descriptors, int socket);
    void release_receive() noexcept;
    void release_transmit() noexcept;
    int start() noexcept;
    int stop() noexcept;
    /// Asks the PHY, at most every 100 ms, and adopts its state.
    [[nodiscard]] Link link() noexcept;
    int set_reception(Reception reception) noexcept;
    int set_own(const MacAddress& own);
    int set_multicasts(std::vector<MacAddress> multicasts);
    void statistics(rte_eth_stats& stats) noexcept;
    void clear_statistics() noexcept;
    [[nodiscard]] const PortCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] const MacAddress& address() const noexcept { return own_; }
    [[nodiscard]] Card& card() noexcept { return card_; }
    [[nodiscard]] RxRing* receive_ring() noexcept { return rx_.get(); }
    [[nodiscard]] TxRing* transmit_ring() noexcept { return tx_.get(); }
    [[nodiscard]] rte_mempool* pool() const noexcept { return pool_; }

    // ---- bursts (net_port_burst.h); one thread a queue ----
    std::uint16_t receive(rte_mbuf** frames, std::uint16_t count) noexcept;
    std::uint16_t transmit(rte_mbuf** frames, std::uint16_t count) noexcept;

private:
    /// Starts a chip that was reset, or never started. Both locks held.
    Fault bring_up() noexcept;
    [[nodiscard]] bool post_filter() noexcept;
    bool pause_for_filter(int tries) noexcept;
    bool wait_for_filter() noexcept;
    int change_filter() noexcept;
    void drop_transmit() noexcept;
    int arm_receive() noexcept;
    void free_receive() noexcept;

    enum class Posted : std::uint8_t { kYes, kNoRoom, kRefused };
    Posted post(rte_mbuf* frame, std::uint8_t tries) noexcept;
    void reap() noexcept;
    void settle(const TxDone& done) noexcept;
    void count_bad(RxVerdict verdict) noexcept;
    void watch(std::uint64_t now) noexcept;
    void recover(Fault fault) noexcept;

    rte_eth_dev* device_;
    Card card_;
    PortArguments arguments_;
    MacAddress own_{};
    std::vector<MacAddress> multicasts_;
    Reception reception_;

    rte_spinlock_t tx_lock_ = RTE_SPINLOCK_INITIALIZER;
    rte_spinlock_t rx_lock_ = RTE_SPINLOCK_INITIALIZER;
    rte_spinlock_t phy_lock_ = RTE_SPINLOCK_INITIALIZER;  ///< the PHY, and what it said
    bool running_ = false;
    bool filter_pending_ = false;    ///< the chip has not taken the filter yet
    bool threshold_wanted_ = false;  ///< an underflow: raise it when both locks are free

    std::unique_ptr<TxRing> tx_;
    std::unique_ptr<RxRing> rx_;
    rte_mempool* pool_ = nullptr;
    const rte_memzone* tx_zone_ = nullptr;
    const rte_memzone* rx_zone_ = nullptr;
    const rte_memzone* scratch_zone_ = nullptr;

    Link link_;
    std::uint64_t link_asked_at_ = 0;  ///< timer cycles
    std::uint64_t progress_at_ = 0;    ///< when the chip last returned a transmit descriptor
    std::uint64_t watch_at_ = 0;       ///< when the chip's status is read next
    std::uint64_t retry_at_ = 0;       ///< before this, no reset after one that failed
    Fault unrepaired_ = Fault::kNone;  ///< why the last reset did not help
    PortCounters counters_{};
};

}  // namespace ulc::nic
