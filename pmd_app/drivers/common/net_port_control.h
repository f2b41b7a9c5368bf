// SPDX-License-Identifier: BSD-3-Clause
// A port's control plane: from a card that was found to one that runs, and back.
#pragma once

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "drivers/common/net_locks.h"
#include "drivers/common/net_port.h"

namespace ulc::nic {

inline constexpr Nanos kFilterWait = 100 * kMicrosecond;
/// The setup frame waits behind the frames of the ring: up to 1,024 of 1.2 ms at 10 Mb/s.
inline constexpr int kFilterTries = 15'000;
inline constexpr int kFilterTriesPerCheck = 100;
inline constexpr std::uint32_t kLinkAskedPerSecond = 10;
inline constexpr const char* kLowMemoryHelp =
    "bind it to vfio-pci, where an IOMMU is, and start with --iova-mode=va "
    "--base-virtaddr=0x10000000; without one, start "
    "with --iova-mode=pa on a kernel booted with mem=4G";

/// Memory for a ring, below 4 GiB as the chip sees it. nullptr if there is none.
inline const rte_memzone* reserve(rte_eth_dev* device, const char* name, std::size_t octets,
                                  int socket) {
    const rte_memzone* zone =
        rte_eth_dma_zone_reserve(device, name, 0, octets, RTE_CACHE_LINE_SIZE, socket);
    if (zone == nullptr) return nullptr;
    if (zone->iova + octets <= std::uint64_t{1} << 32) return zone;
    NIC_LOG(ERR, "the chip reaches 32 bits of addresses, and its rings would lie above; %s\n",
            kLowMemoryHelp);
    rte_memzone_free(zone);
    return nullptr;
}

[[nodiscard]] inline Memory memory_of(const rte_memzone* zone) noexcept {
    if (zone == nullptr) return {};
    return {.at = zone->addr, .bus = static_cast<std::uint32_t>(zone->iova)};
}

template <typename Card>
Fault Port<Card>::probe(const PortArguments& arguments) noexcept {
    arguments_ = arguments;
    return card_.probe(arguments, own_);
}

template <typename Card>
int Port<Card>::set_up_receive(std::uint16_t descriptors, rte_mempool* pool, int socket) {
    const std::uint32_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
    const std::uint32_t buffer = std::min(room, kReceiveBufferOctetsMax) / kLongword * kLongword;
    if (rte_pktmbuf_data_room_size(pool) < RTE_PKTMBUF_HEADROOM ||
        buffer < kFrameOctetsMax + RTE_ETHER_CRC_LEN) {
        NIC_LOG(ERR, "receive buffers have %u octets, a frame %u\n", buffer,
                kFrameOctetsMax + RTE_ETHER_CRC_LEN);
        return -EINVAL;
    }
    if (Card::kRxPlaceOctets != 0 && rx_zone_ == nullptr) {
        rx_zone_ = reserve(device_, "rx", kRingMax * Card::kRxPlaceOctets, socket);
        if (rx_zone_ == nullptr) return -ENOMEM;
    }
    rx_ = Card::make_rx(memory_of(rx_zone_), descriptors, buffer);
    pool_ = pool;
    return 0;
}

template <typename Card>
int Port<Card>::set_up_transmit(std::uint16_t descriptors, int socket) {
    // One place more than the largest ring: the 8255x keeps one free.
    if (tx_zone_ == nullptr)
        tx_zone_ = reserve(device_, "tx", (kRingMax + 1) * Card::kTxPlaceOctets, socket);
    if (tx_zone_ == nullptr) return -ENOMEM;
    if (scratch_zone_ == nullptr)
        scratch_zone_ = reserve(device_, "scratch", Card::kScratchOctets, socket);
    if (scratch_zone_ == nullptr) return -ENOMEM;
    tx_ = Card::make_tx(memory_of(tx_zone_), descriptors);
    return 0;
}

template <typename Card>
void Port<Card>::release_receive() noexcept {
    rx_.reset();
    if (rx_zone_ != nullptr) rte_memzone_free(rx_zone_);
    rx_zone_ = nullptr;
}

template <typename Card>
void Port<Card>::release_transmit() noexcept {
    tx_.reset();
    for (const rte_memzone** zone : {&tx_zone_, &scratch_zone_}) {
        if (*zone != nullptr) rte_memzone_free(*zone);
        *zone = nullptr;
    }
}

/// A buffer for each place; all or none.
template <typename Card>
int Port<Card>::arm_receive() noexcept {
    for (std::uint32_t i = 0; i < rx_->size(); ++i) {
        rte_mbuf* mbuf = rte_mbuf_raw_alloc(pool_);
        const bool reachable =
            mbuf != nullptr &&
            rte_mbuf_data_iova_default(mbuf) + kReceiveBufferOctetsMax <= std::uint64_t{1} << 32;
        if (!reachable) {
            if (mbuf != nullptr) rte_mbuf_raw_free(mbuf);
            while (i-- > 0)
                rte_mbuf_raw_free(static_cast<rte_mbuf*>(rx_->owner_at(i)));
            NIC_LOG(ERR, "no receive buffers that 32 bits reach: give the pool more, or %s\n",
                    kLowMemoryHelp);
            return -ENOMEM;
        }
        rx_->arm(i, Card::buffer_of(mbuf));
    }
    return 0;
}

template <typename Card>
void Port<Card>::free_receive() noexcept {
    for (std::uint32_t i = 0; i < rx_->size(); ++i)
        rte_mbuf_raw_free(static_cast<rte_mbuf*>(rx_->owner_at(i)));
}

template <typename Card>
void Port<Card>::drop_transmit() noexcept {
    TxDone done{};
    while (tx_->drop(done)) {
        if (done.frame == nullptr) continue;
        ++counters_.tx_lost_in_reset;
        rte_pktmbuf_free(static_cast<rte_mbuf*>(done.frame));
    }
    tx_->reset();
    filter_pending_ = false;
}

template <typename Card>
bool Port<Card>::post_filter() noexcept {
    filter_pending_ = card_.post_filter(*tx_, own_, multicasts_, reception_);
    return filter_pending_;
}

/// Waits for kFilterWait, and settles frames meanwhile. tries: the waits that are left; the chip is
/// checked in every kFilterTriesPerCheck-th. Returns false if it is down.
template <typename Card>
bool Port<Card>::pause_for_filter(int tries) noexcept {
    card_.wait(kFilterWait);
    reap();
    if (tries % kFilterTriesPerCheck != 0) return true;
    if (const Fault fault = card_.check(*tx_, *rx_); fault != Fault::kNone) recover(fault);
    return unrepaired_ == Fault::kNone;
}

/// Returns true once the chip has taken the filter.
template <typename Card>
bool Port<Card>::wait_for_filter() noexcept {
    reap();
    for (int tries = kFilterTries; filter_pending_; --tries)
        if (tries == 0 || !pause_for_filter(tries)) return false;
    return true;
}

/// The filter must be in force before anything is received.
template <typename Card>
Fault Port<Card>::bring_up() noexcept {
    Fault fault = card_.attach(memory_of(tx_zone_), memory_of(rx_zone_), memory_of(scratch_zone_));
    if (fault != Fault::kNone) return fault;
    card_.set_reception(reception_);
    if (!post_filter()) return Fault::kSetupTimeout;
    fault = card_.start_transmit(*tx_);
    for (int tries = kFilterTries / 10; tries > 0 && filter_pending_; --tries) {
        if (fault != Fault::kNone) return fault;
        card_.wait(kFilterWait);
        reap();
        fault = card_.check(*tx_, *rx_);
    }
    if (fault != Fault::kNone) return fault;
    if (filter_pending_) return Fault::kSetupTimeout;
    return card_.start_receive(*rx_);
}

template <typename Card>
int Port<Card>::start() noexcept {
    if (!rx_ || !tx_) return -EINVAL;
    const Standstill both(tx_lock_, rx_lock_);
    if (running_) return 0;
    if (rte_mem_check_dma_mask(32) != 0) {
        NIC_LOG(ERR, "the chip reaches 32 bits of addresses, and DPDK's memory lies above; %s\n",
                kLowMemoryHelp);
        return -ENOMEM;
    }
    card_.set_internal_loopback(device_->data->dev_conf.lpbk_mode != 0);
    Fault fault = card_.reset();
    if (fault == Fault::kNone) {
        tx_->reset();
        if (const int error = arm_receive(); error != 0) return error;
        rx_->rearm_all();
        fault = bring_up();
        if (fault != Fault::kNone) {
            (void)card_.reset();
            free_receive();
        }
    }
    if (fault != Fault::kNone) {
        NIC_LOG(ERR, "port %u: %s\n", device_->data->port_id, text_of(fault).data());
        return -EIO;
    }
    progress_at_ = rte_get_timer_cycles();
    unrepaired_ = Fault::kNone;
    running_ = true;
    return 0;
}

template <typename Card>
int Port<Card>::stop() noexcept {
    const Standstill both(tx_lock_, rx_lock_);
    if (!running_) return 0;
    running_ = false;
    const Fault fault = card_.stop();
    // A chip that does not stop must not write to buffers that are given back.
    if (fault != Fault::kNone) {
        NIC_LOG(WARNING, "port %u: %s\n", device_->data->port_id, text_of(fault).data());
        (void)card_.reset();
    }
    reap();
    drop_transmit();
    free_receive();
    return 0;
}

template <typename Card>
Link Port<Card>::link() noexcept {
    const Hold phy(phy_lock_);
    const std::uint64_t now = rte_get_timer_cycles();
    if (now < link_asked_at_ + rte_get_timer_hz() / kLinkAskedPerSecond && link_asked_at_ != 0)
        return link_;
    link_asked_at_ = now;
    const Link link = card_.phy().link();
    if (link != link_) {
        const Standstill both(tx_lock_, rx_lock_);
        if (const Fault fault = card_.apply(link); fault != Fault::kNone) {
            if (running_) recover(fault);  // before the start there may be no rings yet
            return {};
        }
        link_ = link;
    }
    return link_;
}

template <typename Card>
int Port<Card>::set_reception(Reception reception) noexcept {
    const Standstill both(tx_lock_, rx_lock_);
    reception_ = reception;
    card_.set_reception(reception);
    return Card::kReceptionByFilter ? change_filter() : 0;
}

/// Both locks held.
template <typename Card>
int Port<Card>::change_filter() noexcept {
    // A chip that is down gets the filter when it comes back.
    if (!running_ || unrepaired_ != Fault::kNone) return 0;
    // The filter's memory is free again once the chip has read the last one.
    if (!wait_for_filter()) return -EBUSY;
    for (int tries = kFilterTries; !post_filter(); --tries)
        if (tries == 0 || !pause_for_filter(tries)) return -EBUSY;
    card_.demand_transmit();
    return wait_for_filter() ? 0 : -EBUSY;
}

template <typename Card>
int Port<Card>::set_own(const MacAddress& own) {
    const Standstill both(tx_lock_, rx_lock_);
    own_ = own;
    return change_filter();
}

template <typename Card>
int Port<Card>::set_multicasts(std::vector<MacAddress> multicasts) {
    const Standstill both(tx_lock_, rx_lock_);
    multicasts_ = std::move(multicasts);
    return change_filter();
}

template <typename Card>
void Port<Card>::statistics(rte_eth_stats& stats) noexcept {
    const Standstill both(tx_lock_, rx_lock_);
    if (running_) {
        reap();
        if (const Fault fault = card_.check(*tx_, *rx_); fault != Fault::kNone) recover(fault);
    }
    const PortCounters& c = counters_;
    stats.ipackets = c.rx_frames;
    stats.ibytes = c.rx_octets;
    stats.opackets = c.tx_frames;
    stats.obytes = c.tx_octets;
    stats.imissed = card_.missed_frames();
    stats.ierrors = card_.bad_frames() + c.rx_crc_errors + c.rx_runts + c.rx_too_long +
                    c.rx_fifo_overflows + c.rx_malformed;
    stats.oerrors = card_.lost_frames(c.tx_given_up + c.tx_collision_retries) + c.tx_given_up +
                    c.tx_no_carrier + c.tx_jabber + c.tx_refused + c.tx_lost_in_reset;
    stats.rx_nombuf = c.rx_no_buffer;
}

template <typename Card>
void Port<Card>::clear_statistics() noexcept {
    const Standstill both(tx_lock_, rx_lock_);
    if (running_) {
        reap();
        (void)card_.check(*tx_, *rx_);
    }
    card_.clear_counters();
    counters_ = {};
}

}  // namespace ulc::nic
