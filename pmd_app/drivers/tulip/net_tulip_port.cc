// SPDX-License-Identifier: BSD-3-Clause
// A port's control plane: from a card that was found to one that runs, and back.
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "drivers/tulip/net_tulip.h"

namespace ulc::tulip {
namespace {

constexpr Nanos kFilterWait = 100 * kMicrosecond;
/// The setup frame waits behind the frames of the ring: up to 1,024 of 1.2 ms at 10 Mb/s.
constexpr int kFilterTries = 15'000;
constexpr std::uint32_t kLinkAskedPerSecond = 10;
constexpr const char* kLowMemoryHelp =
    "bind it to vfio-pci, where an IOMMU is, and start with --iova-mode=va "
    "--base-virtaddr=0x10000000; without one, start "
    "with --iova-mode=pa on a kernel booted with mem=4G";

/// The control plane's hold on both queues: transmit first, as all who wait do.
class Standstill {
public:
    Standstill(rte_spinlock_t& tx, rte_spinlock_t& rx) noexcept : tx_(tx), rx_(rx) {
        rte_spinlock_lock(&tx_);
        rte_spinlock_lock(&rx_);
    }
    ~Standstill() {
        rte_spinlock_unlock(&rx_);
        rte_spinlock_unlock(&tx_);
    }
    Standstill(const Standstill&) = delete;
    Standstill& operator=(const Standstill&) = delete;

private:
    rte_spinlock_t& tx_;
    rte_spinlock_t& rx_;
};

class Hold {
public:
    explicit Hold(rte_spinlock_t& lock) noexcept : lock_(lock) { rte_spinlock_lock(&lock_); }
    ~Hold() { rte_spinlock_unlock(&lock_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

private:
    rte_spinlock_t& lock_;
};

[[nodiscard]] std::span<Descriptor> descriptors_of(const rte_memzone* zone,
                                                   std::uint16_t count) noexcept {
    return {static_cast<Descriptor*>(zone->addr), count};
}

[[nodiscard]] std::uint32_t bus_of(const rte_memzone* zone) noexcept {
    return static_cast<std::uint32_t>(zone->iova);
}

/// Memory for a ring, below 4 GiB as the chip sees it. nullptr if there is none.
const rte_memzone* reserve(rte_eth_dev* device, const char* name, std::size_t octets, int socket) {
    const rte_memzone* zone =
        rte_eth_dma_zone_reserve(device, name, 0, octets, RTE_CACHE_LINE_SIZE, socket);
    if (zone == nullptr) return nullptr;
    if (zone->iova + octets <= std::uint64_t{1} << 32) return zone;
    TULIP_LOG(ERR, "the chip reaches 32 bits of addresses, and its rings would lie above; %s\n",
              kLowMemoryHelp);
    rte_memzone_free(zone);
    return nullptr;
}

}  // namespace

Fault Port::probe(const PortArguments& arguments) noexcept {
    arguments_ = arguments;
    // The ROM first: it says how the PHY is switched on, and answers also before a reset.
    RomImage image{};
    const Fault rom = read_rom(bus_, image);
    if (rom == Fault::kGone) return rom;
    Fault address = rom;
    if (rom == Fault::kNone) {
        address = parse_address(image, own_);
        if (address == Fault::kNone) sequence_ = parse_port_sequence(image, model_);
    }
    if (arguments.mac)
        own_ = *arguments.mac;
    else if (address != Fault::kNone)
        return address;
    if (const Fault fault = chip_.reset(sequence_); fault != Fault::kNone) return fault;
    chip_.set_threshold(arguments.threshold);
    return chip_.set_up_phy(arguments.media);
}

int Port::set_up_receive(std::uint16_t descriptors, rte_mempool* pool, int socket) {
    const std::uint32_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
    const std::uint32_t buffer = std::min(room, kReceiveBufferOctetsMax) / kLongword * kLongword;
    if (rte_pktmbuf_data_room_size(pool) < RTE_PKTMBUF_HEADROOM ||
        buffer < kFrameOctetsMax + RTE_ETHER_CRC_LEN) {
        TULIP_LOG(ERR, "receive buffers have %u octets, a frame %u\n", buffer,
                  kFrameOctetsMax + RTE_ETHER_CRC_LEN);
        return -EINVAL;
    }
    if (rx_zone_ == nullptr)
        rx_zone_ = reserve(device_, "rx", kRingMax * kDescriptorOctets, socket);
    if (rx_zone_ == nullptr) return -ENOMEM;
    rx_ = std::make_unique<RxRing>(descriptors_of(rx_zone_, descriptors), buffer);
    pool_ = pool;
    return 0;
}

int Port::set_up_transmit(std::uint16_t descriptors, int socket) {
    if (tx_zone_ == nullptr)
        tx_zone_ = reserve(device_, "tx", kRingMax * kDescriptorOctets, socket);
    if (setup_zone_ == nullptr) setup_zone_ = reserve(device_, "setup", kSetupFrameOctets, socket);
    if (tx_zone_ == nullptr || setup_zone_ == nullptr) return -ENOMEM;
    tx_ = std::make_unique<TxRing>(descriptors_of(tx_zone_, descriptors));
    return 0;
}

void Port::release_receive() noexcept {
    rx_.reset();
    if (rx_zone_ != nullptr) rte_memzone_free(rx_zone_);
    rx_zone_ = nullptr;
}

void Port::release_transmit() noexcept {
    tx_.reset();
    for (const rte_memzone** zone : {&tx_zone_, &setup_zone_}) {
        if (*zone != nullptr) rte_memzone_free(*zone);
        *zone = nullptr;
    }
}

/// A buffer for each place; all or none.
int Port::arm_receive() noexcept {
    for (std::uint32_t i = 0; i < rx_->size(); ++i) {
        rte_mbuf* mbuf = rte_mbuf_raw_alloc(pool_);
        const bool reachable =
            mbuf != nullptr &&
            rte_mbuf_data_iova_default(mbuf) + kReceiveBufferOctetsMax <= std::uint64_t{1} << 32;
        if (!reachable) {
            if (mbuf != nullptr) rte_mbuf_raw_free(mbuf);
            while (i-- > 0)
                rte_mbuf_raw_free(static_cast<rte_mbuf*>(rx_->owner_at(i)));
            TULIP_LOG(ERR, "no receive buffers that 32 bits reach: give the pool more, or %s\n",
                      kLowMemoryHelp);
            return -ENOMEM;
        }
        rx_->arm(i, {.owner = mbuf,
                     .bus_address = static_cast<std::uint32_t>(rte_mbuf_data_iova_default(mbuf))});
    }
    return 0;
}

void Port::free_receive() noexcept {
    for (std::uint32_t i = 0; i < rx_->size(); ++i)
        rte_mbuf_raw_free(static_cast<rte_mbuf*>(rx_->owner_at(i)));
}

void Port::drop_transmit() noexcept {
    TxDone done{};
    while (tx_->drop(done)) {
        if (done.frame == nullptr) continue;
        ++counters_.tx_lost_in_reset;
        rte_pktmbuf_free(static_cast<rte_mbuf*>(done.frame));
    }
    tx_->reset();
    filter_pending_ = false;
}

bool Port::post_filter() noexcept {
    const std::span<std::byte, kSetupFrameOctets> frame(static_cast<std::byte*>(setup_zone_->addr),
                                                        kSetupFrameOctets);
    const FilterKind kind = build_setup_frame(own_, multicasts_, frame);
    filter_pending_ = tx_->post_setup(bus_of(setup_zone_), kind == FilterKind::kHash);
    return filter_pending_;
}

/// True once the chip has read the setup frame; frames before it are settled meanwhile.
bool Port::wait_for_filter() noexcept {
    for (int tries = kFilterTries; tries > 0; --tries) {
        reap();
        if (!filter_pending_) return true;
        bus_.wait(kFilterWait);
    }
    return false;
}

/// The first setup frame must be read before anything is received (HRM, "Setup frame").
Fault Port::bring_up() noexcept {
    chip_.set_lists(bus_of(tx_zone_), bus_of(rx_zone_));
    chip_.set_reception(reception_);
    if (!post_filter()) return Fault::kSetupTimeout;
    chip_.start_transmit();
    chip_.demand_transmit();
    for (int tries = kFilterTries / 10; tries > 0 && filter_pending_; --tries) {
        bus_.wait(kFilterWait);
        reap();
        if (const Fault fault = chip_.check(); fault != Fault::kNone) return fault;
    }
    if (filter_pending_) return Fault::kSetupTimeout;
    chip_.start_receive();
    chip_.demand_receive();
    return Fault::kNone;
}

int Port::start() noexcept {
    if (!rx_ || !tx_) return -EINVAL;
    const Standstill both(tx_lock_, rx_lock_);
    if (running_) return 0;
    if (rte_mem_check_dma_mask(32) != 0) {
        TULIP_LOG(ERR, "the chip reaches 32 bits of addresses, and DPDK's memory lies above; %s\n",
                  kLowMemoryHelp);
        return -ENOMEM;
    }
    chip_.set_internal_loopback(device_->data->dev_conf.lpbk_mode != 0);
    Fault fault = chip_.reset(sequence_);
    if (fault == Fault::kNone) {
        tx_->reset();
        if (const int error = arm_receive(); error != 0) return error;
        // arm() gives every place to the chip; the ring begins at place 0 again.
        rx_->rearm_all();
        fault = bring_up();
        if (fault != Fault::kNone) {
            (void)chip_.reset(sequence_);
            free_receive();
        }
    }
    if (fault != Fault::kNone) {
        TULIP_LOG(ERR, "port %u: %s\n", device_->data->port_id, text_of(fault).data());
        return -EIO;
    }
    progress_at_ = rte_get_timer_cycles();
    unrepaired_ = Fault::kNone;
    running_ = true;
    return 0;
}

int Port::stop() noexcept {
    const Standstill both(tx_lock_, rx_lock_);
    if (!running_) return 0;
    running_ = false;
    const Fault fault = chip_.stop();
    // A chip that does not stop must not write to buffers that are given back.
    if (fault != Fault::kNone) {
        TULIP_LOG(WARNING, "port %u: %s\n", device_->data->port_id, text_of(fault).data());
        (void)chip_.reset(sequence_);
    }
    reap();
    drop_transmit();
    free_receive();
    return 0;
}

Link Port::link() noexcept {
    const Hold phy(phy_lock_);
    const std::uint64_t now = rte_get_timer_cycles();
    if (now < link_asked_at_ + rte_get_timer_hz() / kLinkAskedPerSecond && link_asked_at_ != 0)
        return link_;
    link_asked_at_ = now;
    const Link link = chip_.mii().link();
    if (link != link_) {
        const Standstill both(tx_lock_, rx_lock_);
        if (const Fault fault = chip_.apply(link); fault != Fault::kNone) {
            if (running_) recover(fault);  // before the start there may be no rings yet
            return {};
        }
        link_ = link;
    }
    return link_;
}

int Port::set_reception(Reception reception) noexcept {
    const Standstill both(tx_lock_, rx_lock_);
    reception_ = reception;
    chip_.set_reception(reception);
    return 0;
}

/// Both locks held.
int Port::change_filter() noexcept {
    if (!running_) return 0;
    // The setup frame's memory is free again once the chip has read the last one.
    if (!wait_for_filter()) return -EBUSY;
    for (int tries = kFilterTries; !post_filter(); --tries) {
        if (tries == 0) return -EBUSY;
        bus_.wait(kFilterWait);
        reap();
    }
    chip_.demand_transmit();
    return wait_for_filter() ? 0 : -EBUSY;
}

int Port::set_own(const MacAddress& own) {
    const Standstill both(tx_lock_, rx_lock_);
    own_ = own;
    return change_filter();
}

int Port::set_multicasts(std::vector<MacAddress> multicasts) {
    const Standstill both(tx_lock_, rx_lock_);
    multicasts_ = std::move(multicasts);
    return change_filter();
}

void Port::statistics(rte_eth_stats& stats) noexcept {
    const Standstill both(tx_lock_, rx_lock_);
    if (running_) {
        reap();
        if (const Fault fault = chip_.check(); fault != Fault::kNone) recover(fault);
    }
    const PortCounters& c = counters_;
    stats.ipackets = c.rx_frames;
    stats.ibytes = c.rx_octets;
    stats.opackets = c.tx_frames;
    stats.obytes = c.tx_octets;
    stats.imissed = chip_.missed().no_descriptor + chip_.missed().fifo_overflow;
    stats.ierrors =
        c.rx_crc_errors + c.rx_runts + c.rx_too_long + c.rx_fifo_overflows + c.rx_malformed;
    stats.oerrors =
        c.tx_given_up + c.tx_no_carrier + c.tx_jabber + c.tx_refused + c.tx_lost_in_reset;
    stats.rx_nombuf = c.rx_no_buffer;
}

void Port::clear_statistics() noexcept {
    const Standstill both(tx_lock_, rx_lock_);
    if (running_) (void)chip_.check();
    chip_.clear_missed();
    counters_ = {};
}

}  // namespace ulc::tulip
