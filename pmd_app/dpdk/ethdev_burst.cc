// SPDX-License-Identifier: BSD-3-Clause
// The hot path of a DPDK port: bursts in and out, and what the device still has.
#include <algorithm>
#include <array>
#include <cstring>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "dpdk/ethdev_port.h"
#include "dpdk/ethdev_reconnect.h"

namespace ulc::dpdk {
namespace {

constexpr std::uint16_t kBurstFramesMax = 64;
constexpr std::uint16_t kVlanMask = 0x0fff;  ///< VLAN in a tag; 0: it has a priority alone
constexpr std::uint32_t kFrameOctetsMin = RTE_ETHER_MIN_LEN - RTE_ETHER_CRC_LEN;

}  // namespace

/// Returns true if the frame is for this station, and whole. Counts it otherwise.
bool EthdevPort::is_ours(rte_mbuf*& received) {
    const rte_mbuf& frame = *received;
    if (frame.nb_segs > 1) [[unlikely]] {  // more than a buffer holds is above the MTU
        ++drops_.too_long;
        return false;
    }
    // Drivers over the kernel's sockets strip the tag unasked.
    if (keeps_tags_ && (frame.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) [[unlikely]] {
        if (rte_vlan_insert(&received) == 0) return is_for_station(frame);
        ++drops_.vlan;
        return false;
    }
    if ((frame.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 && (frame.vlan_tci & kVlanMask) != 0)
        [[unlikely]] {
        ++drops_.vlan;
        return false;
    }
    return is_for_station(frame);
}

/// Returns true if the frame is for this station. Counts it otherwise.
bool EthdevPort::is_for_station(const rte_mbuf& frame) {
    if (!checks_station_ || frame.data_len < sizeof(Mac)) return true;
    Mac to;
    std::memcpy(&to, rte_pktmbuf_mtod(&frame, const std::byte*), sizeof to);
    if ((to.octets[0] & 1U) != 0 || to == port_.info.mac) [[likely]]
        return true;
    ++drops_.other_station;
    return false;
}

std::uint16_t EthdevPort::rx(void* context, Segment** out, std::uint16_t n) {
    auto& self = *static_cast<EthdevPort*>(context);
    if (self.away_) [[unlikely]]
        return 0;
    std::array<rte_mbuf*, kBurstFramesMax> burst;
    self.mark_.enter();
    std::uint16_t received =
        rte_eth_rx_burst(self.id_, 0, burst.data(), std::min(n, kBurstFramesMax));
    self.mark_.leave();
    if (self.exception_) [[unlikely]] {
        received = self.exception_->take(burst.data(), received);
        if (self.exception_->due()) self.tx_counted_ += self.exception_->serve(tx_pending(context));
    }
    std::uint16_t kept = 0;
    for (std::uint16_t i = 0; i < received; ++i) {
        rte_mbuf* mbuf = burst[i];
        if (!self.is_ours(mbuf)) [[unlikely]] {
            rte_pktmbuf_free(mbuf);
            continue;
        }
        Segment* segment = segment_of(mbuf);
        segment->frame = rte_pktmbuf_mtod(mbuf, std::byte*);
        segment->length = mbuf->data_len;
        out[kept++] = segment;
    }
    return kept;
}

std::uint16_t EthdevPort::tx(void* context, Segment* const* frames, std::uint16_t n) {
    auto& self = *static_cast<EthdevPort*>(context);
    if (self.away_) [[unlikely]]
        return 0;
    n = std::min(n, kBurstFramesMax);
    std::array<rte_mbuf*, kBurstFramesMax> burst;
    for (std::uint16_t i = 0; i < n; ++i) {
        const Segment* segment = frames[i];
        rte_mbuf* mbuf = mbuf_of(segment);
        std::uint32_t length = segment->length;
        if (length < kFrameOctetsMin) {
            std::memset(segment->frame + length, 0, kFrameOctetsMin - length);
            length = kFrameOctetsMin;
        }
        mbuf->data_off =
            static_cast<std::uint16_t>(segment->frame - static_cast<std::byte*>(mbuf->buf_addr));
        mbuf->data_len = static_cast<std::uint16_t>(length);
        mbuf->pkt_len = length;
        burst[i] = mbuf;
    }
    self.mark_.enter();
    const std::uint16_t sent = rte_eth_tx_burst(self.id_, 0, burst.data(), n);
    self.mark_.leave();
    self.tx_counted_ += sent;
    if (self.exception_ && sent > 0) [[unlikely]]
        self.exception_->on_sent();
    return sent;
}

std::uint32_t EthdevPort::tx_pending(void* context) {
    auto& self = *static_cast<EthdevPort*>(context);
    if (self.away_ && self.request_) return 0;  // the driver let go of all with the card
    switch (self.tx_account_) {
        case TxAccount::kCopies:
        case TxAccount::kUnknown:
            return 0;
        case TxAccount::kDescriptors:
            // The oldest frame that may be pending lies tx_counted_ descriptors behind the next
            // free one.
            self.tx_counted_ = std::min<std::uint32_t>(self.tx_counted_, self.tx_ring_size_);
            while (self.tx_counted_ > 0) {
                const auto offset =
                    static_cast<std::uint16_t>(self.tx_ring_size_ - self.tx_counted_);
                if (rte_eth_tx_descriptor_status(self.id_, 0, offset) == RTE_ETH_TX_DESC_FULL)
                    break;
                --self.tx_counted_;
            }
            return self.tx_counted_;
        case TxAccount::kCleanup: {
            const int freed = rte_eth_tx_done_cleanup(self.id_, 0, 0);
            self.tx_counted_ -= std::min<std::uint32_t>(self.tx_counted_, freed > 0 ? freed : 0);
            return self.tx_counted_;
        }
    }
    return 0;
}

std::uint64_t EthdevPort::missed(void* context) {
    const auto& self = *static_cast<EthdevPort*>(context);
    rte_eth_stats stats{};
    if (self.away_ || rte_eth_stats_get(self.id_, &stats) != 0) return 0;
    return stats.imissed + stats.rx_nombuf;
}

PortDrops EthdevPort::drops(void* context) {
    const auto& self = *static_cast<EthdevPort*>(context);
    PortDrops drops = self.drops_;
    rte_eth_stats stats{};
    if (!self.away_ && rte_eth_stats_get(self.id_, &stats) == 0) drops.damaged = stats.ierrors;
    return drops;
}

}  // namespace ulc::dpdk
