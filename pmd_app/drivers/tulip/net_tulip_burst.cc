// SPDX-License-Identifier: BSD-3-Clause
// The path of a frame, and the recovery of a chip that stops answering.
#include <algorithm>
#include <array>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "drivers/tulip/net_tulip.h"

namespace ulc::tulip {
namespace {

/// 16 tries at 10 Mb/s with the longest back-off each take 0.4 s (IEEE 802.3, 4.2.3.2.5): an older
/// frame does not wait for the wire.
std::uint64_t hang_cycles() noexcept { return rte_get_timer_hz(); }
/// Minimum interval between two reads of the chip's status.
std::uint64_t watch_cycles() noexcept { return rte_get_timer_hz() / 10; }

/// Interval until a failed reset is tried again.
std::uint64_t retry_cycles() noexcept { return rte_get_timer_hz(); }

constexpr std::uint64_t kAddressLimit = std::uint64_t{1} << 32;

/// Holds a lock if it was free.
class TryLock {
public:
    explicit TryLock(rte_spinlock_t& lock) noexcept
        : lock_(rte_spinlock_trylock(&lock) != 0 ? &lock : nullptr) {}
    ~TryLock() {
        if (lock_ != nullptr) rte_spinlock_unlock(lock_);
    }
    TryLock(const TryLock&) = delete;
    TryLock& operator=(const TryLock&) = delete;
    explicit operator bool() const noexcept { return lock_ != nullptr; }

private:
    rte_spinlock_t* lock_;
};

/// Buffers are received to their headroom's end, which DPDK aligns.
RxBuffer receive_buffer(rte_mbuf* mbuf) noexcept {
    return {.owner = mbuf,
            .bus_address = static_cast<std::uint32_t>(rte_mbuf_data_iova_default(mbuf))};
}

}  // namespace

void Port::count_bad(RxVerdict verdict) noexcept {
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
        case RxVerdict::kRest:
            return;
    }
}

std::uint16_t Port::receive(rte_mbuf** frames, std::uint16_t count) noexcept {
    const TryLock mine(rx_lock_);
    if (!mine || !running_) return 0;
    // Without a free place the chip has suspended, and continues on demand (HRM, CSR5<RU>).
    const bool ran_dry = rx_->done_at(rx_->size() - 1);
    std::uint16_t taken = 0;
    // Bad frames are bounded too, so that a flood of them cannot hold the caller.
    for (std::uint32_t looked = 0; taken < count && looked < rx_->size(); ++looked) {
        RxFrame frame{};
        const RxVerdict verdict = rx_->peek(frame);
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
        rx_->replace(receive_buffer(fresh));
        ++counters_.rx_frames;
        counters_.rx_octets += frame.octets;
        frames[taken++] = mbuf;
    }
    if (ran_dry) chip_.demand_receive();
    watch(rte_get_timer_cycles());
    return taken;
}

Port::Posted Port::post(rte_mbuf* frame, std::uint8_t tries) noexcept {
    std::array<TxSegment, kSegmentsMax> segments;
    if (frame->nb_segs > kSegmentsMax || frame->pkt_len > kFrameOctetsMax) return Posted::kRefused;
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
void Port::settle(const TxDone& done) noexcept {
    if (done.result == TxResult::kSetup) {
        filter_pending_ = false;
        return;
    }
    auto* frame = static_cast<rte_mbuf*>(done.frame);
    counters_.tx_collisions += done.collisions;
    switch (done.result) {
        case TxResult::kSetup:
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
            if (done.tries < arguments_.collision_retries &&
                post(frame, static_cast<std::uint8_t>(done.tries + 1)) == Posted::kYes) {
                ++counters_.tx_collision_retries;
                chip_.demand_transmit();
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

void Port::reap() noexcept {
    TxDone done{};
    // Bounded: a retried frame goes to the end of the ring.
    for (std::uint32_t left = tx_->size(); left > 0 && tx_->reap(done); --left) {
        progress_at_ = rte_get_timer_cycles();
        settle(done);
    }
}

std::uint16_t Port::transmit(rte_mbuf** frames, std::uint16_t count) noexcept {
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
            if (const Fault fault = chip_.raise_threshold(); fault != Fault::kNone) recover(fault);
        }
    }
    std::uint16_t given = 0;
    bool any = false;
    for (; given < count; ++given) {
        const Posted posted = post(frames[given], 0);
        if (posted == Posted::kNoRoom) break;
        if (posted == Posted::kYes) {
            any = true;
            continue;
        }
        ++counters_.tx_refused;
        rte_pktmbuf_free(frames[given]);
    }
    if (any) chip_.demand_transmit();
    return given;
}

/// Reads the chip's status now and then; holds the receive lock.
void Port::watch(std::uint64_t now) noexcept {
    if (now < watch_at_) return;
    const TryLock other(tx_lock_);
    if (!other) return;
    watch_at_ = now + watch_cycles();
    reap();
    Fault fault =
        unrepaired_;  // until it is repaired, also if the chip answers again: it has lost its rings
    if (fault == Fault::kNone) fault = chip_.check();
    if (tx_->pending() == 0) progress_at_ = now;
    if (fault == Fault::kNone && now > progress_at_ && now - progress_at_ > hang_cycles())
        fault = Fault::kTransmitHung;
    if (fault != Fault::kNone) recover(fault);
}

/// Resets the chip and starts it again; frames in progress are lost and counted. Whichever function
/// finds the fault, the reset is retried every second while it fails, each time within the bounds
/// of Chip::reset() and bring_up(). Both locks held.
void Port::recover(Fault fault) noexcept {
    if (rte_get_timer_cycles() < retry_at_) return;
    TULIP_LOG(ERR, "port %u: %s\n", device_->data->port_id, text_of(fault).data());
    ++counters_.recoveries;
    drop_transmit();
    Fault again = chip_.reset(sequence_);
    if (again == Fault::kNone) {
        rx_->rearm_all();
        again = bring_up();
    }
    progress_at_ = rte_get_timer_cycles();
    unrepaired_ = again;
    if (again == Fault::kNone) {
        TULIP_LOG(NOTICE, "port %u runs again\n", device_->data->port_id);
        return;
    }
    ++counters_.failed_recoveries;
    retry_at_ = progress_at_ + retry_cycles();
    TULIP_LOG(ERR, "port %u does not come back: %s\n", device_->data->port_id,
              text_of(again).data());
}

}  // namespace ulc::tulip
