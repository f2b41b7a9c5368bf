// SPDX-License-Identifier: BSD-3-Clause
// One port of the poll-mode driver: the state that the glue to DPDK's ethdev keeps in addition to
// the pure files.
//
// Locks. A burst function tries its queue's lock and skips this round if it is taken; it never
// waits. The control plane takes both, transmit first. Chip's methods, except the doorbells and
// mii(), are called with both locks held: by the control plane, or by a burst function that also
// got the other lock at its first try. At the rate of Fast Ethernet (6.7 us a frame) the cost of an
// uncontended lock is negligible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ethdev_driver.h>
#include <ethdev_pci.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "drivers/tulip/chip.h"
#include "drivers/tulip/rx_ring.h"
#include "drivers/tulip/setup_frame.h"
#include "drivers/tulip/tx_ring.h"

namespace ulc::tulip {

extern int g_log_type;
#define TULIP_LOG(level, ...) rte_log(RTE_LOG_##level, g_log_type, "net_tulip: " __VA_ARGS__)

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

/// Arguments of the device string.
struct PortArguments {
    std::optional<MacAddress> mac;
    Media media = Media::kNegotiate;
    TransmitThreshold threshold = TransmitThreshold::k128;
    std::uint8_t collision_retries = 3;
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

/// Maximum of parts in a frame to send; the chip takes two a descriptor.
inline constexpr std::uint16_t kSegmentsMax = 16;
inline constexpr std::uint16_t kRingMin = 16;
inline constexpr std::uint16_t kRingMax = 1024;
inline constexpr std::uint16_t kRingDefault = 128;
/// Addresses, type, a VLAN tag and 1,500 bytes; the chip adds the CRC.
inline constexpr std::uint32_t kFrameOctetsMax = 1518;
inline constexpr std::uint16_t kMtuMax = 1500;

class Port {
public:
    Port(rte_eth_dev* device, Model model, void* bar) noexcept
        : device_(device), bus_(bar), chip_(bus_, model), model_(model) {}

    // ---- control plane (net_tulip.cc); any thread, one at a time ----
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
    [[nodiscard]] const MissedFrames& missed() const noexcept { return chip_.missed(); }
    [[nodiscard]] const MacAddress& address() const noexcept { return own_; }
    [[nodiscard]] Chip& chip() noexcept { return chip_; }
    [[nodiscard]] Bus& bus() noexcept { return bus_; }
    [[nodiscard]] RxRing* receive_ring() noexcept { return rx_.get(); }
    [[nodiscard]] TxRing* transmit_ring() noexcept { return tx_.get(); }
    [[nodiscard]] rte_mempool* pool() const noexcept { return pool_; }

    // ---- bursts (net_tulip_burst.cc); one thread a queue ----
    std::uint16_t receive(rte_mbuf** frames, std::uint16_t count) noexcept;
    std::uint16_t transmit(rte_mbuf** frames, std::uint16_t count) noexcept;

private:
    /// Starts a chip that was reset, or never started. Both locks held.
    Fault bring_up() noexcept;
    [[nodiscard]] bool post_filter() noexcept;
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
    MemoryBus bus_;
    Chip chip_;
    Model model_;
    PortSequence sequence_;
    PortArguments arguments_;
    MacAddress own_{};
    std::vector<MacAddress> multicasts_;
    Reception reception_;

    rte_spinlock_t tx_lock_ = RTE_SPINLOCK_INITIALIZER;
    rte_spinlock_t rx_lock_ = RTE_SPINLOCK_INITIALIZER;
    rte_spinlock_t phy_lock_ = RTE_SPINLOCK_INITIALIZER;  ///< CSR9, and the state derived from it
    bool running_ = false;
    bool filter_pending_ = false;    ///< the chip has not read the setup frame yet
    bool threshold_wanted_ = false;  ///< an underflow: raise it when both locks are free

    std::unique_ptr<TxRing> tx_;
    std::unique_ptr<RxRing> rx_;
    rte_mempool* pool_ = nullptr;
    const rte_memzone* tx_zone_ = nullptr;
    const rte_memzone* rx_zone_ = nullptr;
    const rte_memzone* setup_zone_ = nullptr;

    Link link_;
    std::uint64_t link_asked_at_ = 0;  ///< timer cycles
    std::uint64_t progress_at_ = 0;    ///< when the chip last returned a transmit descriptor
    std::uint64_t watch_at_ = 0;       ///< when the chip's status is read next
    std::uint64_t retry_at_ = 0;       ///< before this, no reset after one that failed
    Fault unrepaired_ = Fault::kNone;  ///< why the last reset did not help
    PortCounters counters_{};
};

/// Private data that DPDK keeps for the device: a Port needs construction, which its memory does
/// not get.
struct Private {
    Port* port;
};

[[nodiscard]] inline Port& port_of(rte_eth_dev* device) noexcept {
    return *static_cast<Private*>(device->data->dev_private)->port;
}

}  // namespace ulc::tulip
