// SPDX-License-Identifier: BSD-3-Clause
// The path of a frame, and the recovery of a chip that stops answering.
#pragma once

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>

#include "drivers/common/net_locks.h"
#include "drivers/common/net_port.h"

namespace ulc::nic {

/// 16 tries at 10 Mb/s with the longest back-off each take 0.4 s (IEEE 802.3, 4.2.3.2.5): an older
/// frame does not wait for the wire.
[[nodiscard]] inline std::uint64_t hang_cycles() noexcept { return rte_get_timer_hz(); }
/// Minimum interval between two reads of the chip's status.
[[nodiscard]] inline std::uint64_t watch_cycles() noexcept { return rte_get_timer_hz() / 10; }

/// Interval until a failed reset is tried again.
[[nodiscard]] inline std::uint64_t retry_cycles() noexcept { return rte_get_timer_hz(); }

inline constexpr std::uint64_t kAddressLimit = std::uint64_t{1} << 32;

template <typename Card>
void Port<Card>::count_bad(RxVerdict verdict) noexcept {
    switch (verdict) {
        case RxVerdict::kCrc:
            ++counters_.rx_crc_errors;
            return;
        case RxVerdict::kRunt:
            ++counters_.rx_runts;
            return;
        case RxVerdict::kTooLong:
            ++counters_.rx_too_long;
            return;
        case RxVerdict::kOverflow:
            ++counters_.rx_fifo_overflows;
            return;
        case RxVerdict::kMalformed:
            ++counters_.rx_malformed;
            return;
        case RxVerdict::kEmpty:
        case RxVerdict::kFrame:
        case RxVerdict::kUnsettled:
        case RxVerdict::kRest:
            return;
    }
}

template <typename Card>
std::uint16_t Port<Card>::receive(rte_mbuf** frames, std::uint16_t count) noexcept {
    const TryLock mine(rx_lock_);
    if (!mine || !running_) return 0;
    const bool ran_dry = Card::ran_dry(*rx_);
    std::uint16_t taken = 0;
    // Bad frames are bounded too, so that a flood of them cannot hold the caller.
    for (std::uint32_t looked = 0; taken < count && looked < rx_->size(); ++looked) {
        RxFrame frame{};
        const RxVerdict verdict = card_.peek(*rx_, frame);
        if (verdict == RxVerdict::kEmpty) break;
        rte_mbuf* fresh = nullptr;
        if (verdict == RxVerdict::kFrame) {
            fresh = rte_mbuf_raw_alloc(pool_);
            if (fresh == nullptr) ++counters_.rx_no_buffer;
        } else {
            count_bad(verdict);
        }
        if (fresh == nullptr) {
            rx_->recycle();
            continue;
        }
        auto* mbuf = static_cast<rte_mbuf*>(frame.owner);
        mbuf->data_off = RTE_PKTMBUF_HEADROOM;
        mbuf->pkt_len = frame.octets;
        mbuf->data_len = static_cast<std::uint16_t>(frame.octets);
        mbuf->nb_segs = 1;
        mbuf->next = nullptr;
        mbuf->ol_flags = 0;
        mbuf->port = device_->data->port_id;
        mbuf->packet_type = RTE_PTYPE_UNKNOWN;
        rte_prefetch0(rte_pktmbuf_mtod(mbuf, void*));
        rx_->replace(Card::buffer_of(fresh));
        ++counters_.rx_frames;
        counters_.rx_octets += frame.octets;
        frames[taken++] = mbuf;
    }
    card_.after_receive(*rx_, ran_dry);
    watch(rte_get_timer_cycles());
    return taken;
}

template <typename Card>
typename Port<Card>::Posted Port<Card>::post(rte_mbuf* frame, std::uint8_t tries) noexcept {
    std::array<TxSegment, kPartsMax> segments;
    if (frame->nb_segs > kPartsMax || frame->pkt_len > kFrameOctetsMax) return Posted::kRefused;
    std::size_t n = 0;
    for (const rte_mbuf* part = frame; part != nullptr; part = part->next) {
        if (part->data_len == 0) continue;
        const rte_iova_t address = rte_mbuf_data_iova(part);
        if (address + part->data_len > kAddressLimit || n == segments.size())
            return Posted::kRefused;
        segments[n++] = {static_cast<std::uint32_t>(address), part->data_len};
    }
    if (n == 0) return Posted::kRefused;
    return tx_->post(std::span(segments).first(n), frame, tries) ? Posted::kYes : Posted::kNoRoom;
}

/// Handles a frame that the chip has finished: counts it, retries it, or drops it.
template <typename Card>
void Port<Card>::settle(const TxDone& done) noexcept {
    if (done.frame == nullptr) {
        if (done.result == TxResult::kSetup) filter_pending_ = false;
        return;
    }
    auto* frame = static_cast<rte_mbuf*>(done.frame);
    counters_.tx_collisions += done.collisions;
    switch (done.result) {
        case TxResult::kSentLate:
            ++counters_.tx_underflows;
            threshold_wanted_ = true;
            [[fallthrough]];
        case TxResult::kSetup:
        case TxResult::kCommand:
        case TxResult::kSent:
            ++counters_.tx_frames;
            counters_.tx_octets += frame->pkt_len;
            break;
        case TxResult::kUnderflow:
            ++counters_.tx_underflows;
            threshold_wanted_ = true;
            [[fallthrough]];
        case TxResult::kCollisions:
            // 16 collisions are not the frame's fault: it is sent again, behind the others (GAMMA
            // §4.5.5).
            if (running_ && done.tries < arguments_.collision_retries &&
                post(frame, static_cast<std::uint8_t>(done.tries + 1)) == Posted::kYes) {
                ++counters_.tx_collision_retries;
                card_.demand_transmit();
                return;
            }
            ++counters_.tx_given_up;
            break;
        case TxResult::kNoCarrier:
            ++counters_.tx_no_carrier;
            break;
        case TxResult::kJabber:
            ++counters_.tx_jabber;
            break;
    }
    rte_pktmbuf_free(frame);
}

template <typename Card>
void Port<Card>::reap() noexcept {
    TxDone done{};
    // Bounded: a retried frame goes to the end of the ring.
    for (std::uint32_t left = tx_->size(); left > 0 && tx_->reap(done); --left) {
        progress_at_ = rte_get_timer_cycles();
        settle(done);
    }
}

template <typename Card>
std::uint16_t Port<Card>::transmit(rte_mbuf** frames, std::uint16_t count) noexcept {
    const TryLock mine(tx_lock_);
    if (!mine || !running_) return 0;
    if (tx_->pending() == 0)
        progress_at_ = rte_get_timer_cycles();
    else
        reap();
    if (threshold_wanted_) {
        const TryLock other(rx_lock_);
        if (other) {
            threshold_wanted_ = false;
            if (const Fault fault = card_.raise_threshold(*tx_); fault != Fault::kNone)
                recover(fault);
        }
    }
    std::uint16_t given = 0;
    std::uint32_t unrung = 0;
    for (; given < count; ++given) {
        const Posted posted = post(frames[given], 0);
        if (posted == Posted::kNoRoom) break;
        if (posted == Posted::kYes) {
            if (++unrung == Card::kDoorbellEvery) {
                card_.demand_transmit();
                unrung = 0;
            }
            continue;
        }
        ++counters_.tx_refused;
        rte_pktmbuf_free(frames[given]);
    }
    if (unrung != 0) card_.demand_transmit();
    return given;
}

/// Reads the chip's status now and then; holds the receive lock.
template <typename Card>
void Port<Card>::watch(std::uint64_t now) noexcept {
    if (now < watch_at_) return;
    const TryLock other(tx_lock_);
    if (!other) return;
    watch_at_ = now + watch_cycles();
    reap();
    Fault fault =
        unrepaired_;  // until it is repaired, also if the chip answers again: it has lost its rings
    if (fault == Fault::kNone) fault = card_.check(*tx_, *rx_);
    if (tx_->pending() == 0) progress_at_ = now;
    if (fault == Fault::kNone && now > progress_at_ && now - progress_at_ > hang_cycles())
        fault = Fault::kTransmitHung;
    if (fault != Fault::kNone) return recover(fault);
    if (card_.needs_filter() && !filter_pending_ && post_filter()) card_.demand_transmit();
}

/// Resets the chip and starts it again; frames in progress are lost and counted. Whichever function
/// finds the fault, the reset is retried every second while it fails, each time within the bounds
/// of Chip::reset() and bring_up(). Both locks held.
template <typename Card>
void Port<Card>::recover(Fault fault) noexcept {
    if (rte_get_timer_cycles() < retry_at_) return;
    NIC_LOG(ERR, "port %u: %s\n", device_->data->port_id, text_of(fault).data());
    ++counters_.recoveries;
    Fault again = card_.reset();  // before its frames are freed
    drop_transmit();
    if (again == Fault::kNone) {
        rx_->rearm_all();
        again = bring_up();
    }
    progress_at_ = rte_get_timer_cycles();
    unrepaired_ = again;
    if (again == Fault::kNone) {
        NIC_LOG(NOTICE, "port %u runs again\n", device_->data->port_id);
        return;
    }
    ++counters_.failed_recoveries;
    retry_at_ = progress_at_ + retry_cycles();
    NIC_LOG(ERR, "port %u does not come back: %s\n", device_->data->port_id, text_of(again).data());
}

}  // namespace ulc::nic
