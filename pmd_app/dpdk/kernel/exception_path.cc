// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/kernel/exception_path.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include "dpdk/log.h"

namespace ulc::dpdk {
namespace {

constexpr std::uint16_t kRing = 256;
/// Frames at a time, in each direction; one while frames of ours come, which would wait for all of
/// them.
constexpr std::uint16_t kFramesAtOnce = 4;
/// The kernel's frames wait while more than this number is in flight.
constexpr std::uint32_t kPendingMax = 4;
/// A longer look was interrupted, for example by a thread that got a frame.
constexpr Nanos kLookCostMax = 1 * kMillisecond;
/// Bytes on the wire in addition to a frame: preamble 8, FCS 4, gap 12.
constexpr std::uint32_t kFrameOverhead = 24;
/// The relevant type after a VLAN tag is the next one; ours may be tagged too.
constexpr std::size_t kTypeOffset = 12;
constexpr std::size_t kTaggedTypeOffset = 16;

std::uint16_t type_at(const rte_mbuf* frame, std::size_t offset) noexcept {
    if (frame->data_len < offset + sizeof(std::uint16_t)) return 0;
    return *rte_pktmbuf_mtod_offset(frame, const rte_be16_t*, offset);
}

std::uint16_t type_of(const rte_mbuf* frame) noexcept {
    const std::uint16_t type = type_at(frame, kTypeOffset);
    return type == RTE_BE16(RTE_ETHER_TYPE_VLAN) ? type_at(frame, kTaggedTypeOffset) : type;
}

bool has_handler(int signal) noexcept {
    struct sigaction action {};
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL;
}

/// Returns the real-time signals that have a handler.
sigset_t handled_signals() noexcept {
    sigset_t handled;
    sigemptyset(&handled);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal)
        if (has_handler(signal)) sigaddset(&handled, signal);
    return handled;
}

/// The driver of the TAP requests a real-time signal from the kernel at each frame, which its
/// handler notes. Blocks the signals that are new since `before` in this thread, which may be the
/// one that polls, and in the threads that it creates later. EAL's interrupt thread, which exists
/// already, takes them.
void leave_signals_to_eal(const sigset_t& before) noexcept {
    sigset_t added = handled_signals();
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal)
        if (sigismember(&before, signal) == 1) sigdelset(&added, signal);
    pthread_sigmask(SIG_BLOCK, &added, nullptr);
}

Err refuse(const std::string& interface, int result, std::string& why) {
    const std::string said = take_recent_log();
    why = "the exception interface " + interface + " could not be made: " + rte_strerror(-result);
    if (!said.empty()) why += " (" + said + ")";
    why +=
        "; it needs CAP_NET_ADMIN and /dev/net/tun: run as root after 'modprobe tun', or leave "
        "exception out";
    return result == -EPERM || result == -EACCES ? Err::kPermission : Err::kSystem;
}

}  // namespace

Err ExceptionPath::open(std::uint16_t nic, unsigned number, std::uint16_t mtu,
                        std::uint16_t ether_type, rte_mempool* pool,
                        std::unique_ptr<ExceptionPath>& out, std::string& why) {
    std::unique_ptr<ExceptionPath> path(new ExceptionPath);
    path->nic_ = nic;
    path->ether_type_ = rte_cpu_to_be_16(ether_type);
    path->device_ = "net_tap" + std::to_string(number);
    path->interface_ = "ulc" + std::to_string(number);
    path->nanos_per_tick_ = static_cast<double>(kSecond) / static_cast<double>(rte_get_tsc_hz());
    rte_ether_addr mac;
    rte_eth_macaddr_get(nic, &mac);
    std::array<char, RTE_ETHER_ADDR_FMT_SIZE> text{};
    rte_ether_format_addr(text.data(), text.size(), &mac);
    const std::string arguments = "iface=" + path->interface_ + ",mac=" + text.data();
    (void)take_recent_log();
    const sigset_t handled = handled_signals();
    mute_log(
        // It reports the queueing disciplines that it would like; relevant messages are kept for
        // refuse()
        true);
    int result = rte_eal_hotplug_add("vdev", path->device_.c_str(), arguments.c_str());
    mute_log(false);
    if (result != 0) return refuse(path->interface_, result, why);
    path->open_ = rte_eth_dev_get_port_by_name(path->device_.c_str(), &path->tap_) == 0;
    if (!path->open_) return refuse(path->interface_, -ENODEV, why);
    const rte_eth_conf conf{};
    result = rte_eth_dev_configure(path->tap_, 1, 1, &conf);
    if (result == 0)
        result = rte_eth_rx_queue_setup(path->tap_, 0, kRing, SOCKET_ID_ANY, nullptr, pool);
    if (result == 0) result = rte_eth_tx_queue_setup(path->tap_, 0, kRing, SOCKET_ID_ANY, nullptr);
    if (result == 0) result = rte_eth_dev_set_mtu(path->tap_, mtu);
    if (result == 0) result = rte_eth_dev_start(path->tap_);
    if (result != 0) return refuse(path->interface_, result, why);
    leave_signals_to_eal(handled);
    out = std::move(path);
    return Err::kOk;
}

ExceptionPath::~ExceptionPath() {
    while (queue_first_ != queue_end_)
        rte_pktmbuf_free(queue_[queue_first_++ % kQueueFrames]);
    if (!open_) return;
    rte_eth_dev_stop(tap_);
    rte_eal_hotplug_remove("vdev", device_.c_str());
}

std::uint16_t ExceptionPath::take(rte_mbuf** frames, std::uint16_t count) noexcept {
    std::uint16_t kept = 0;
    for (std::uint16_t i = 0; i < count; ++i) {
        if (type_of(frames[i]) == ether_type_) {
            frames[kept++] = frames[i];
        } else if (queue_end_ - queue_first_ < kQueueFrames) {
            queue_[queue_end_++ % kQueueFrames] = frames[i];
        } else {
            ++counts_.lost;
            rte_pktmbuf_free(frames[i]);
        }
    }
    ours_now_ |= kept > 0;
    ours_came_ |= kept > 0;
    return kept;
}

void ExceptionPath::to_kernel(std::uint16_t frames) noexcept {
    for (std::uint16_t n = 0; n < frames && queue_first_ != queue_end_; ++n) {
        rte_mbuf* frame = queue_[queue_first_++ % kQueueFrames];
        if (rte_eth_tx_burst(tap_, 0, &frame, 1) == 1) {
            ++counts_.to_kernel;
        } else {
            ++counts_.lost;
            rte_pktmbuf_free(frame);
        }
    }
}

Nanos ExceptionPath::wire_time(std::uint32_t octets) const noexcept {
    if (mbits_ == RTE_ETH_SPEED_NUM_NONE || mbits_ == RTE_ETH_SPEED_NUM_UNKNOWN) return 0;
    return Nanos{octets + kFrameOverhead} * 8 * kMicrosecond / mbits_;
}

std::uint16_t ExceptionPath::from_kernel(Nanos now, std::uint16_t frames) noexcept {
    std::uint16_t sent = 0;
    for (std::uint16_t n = 0; n < frames && wire_share_.may_work(now); ++n) {
        rte_mbuf* frame = nullptr;
        if (rte_eth_rx_burst(tap_, 0, &frame, 1) == 0) break;
        const Nanos on_wire = wire_time(frame->pkt_len);
        if (rte_eth_tx_burst(nic_, 0, &frame, 1) == 1) {
            wire_share_.on_work(now, on_wire);
            ++sent;
        } else {
            ++counts_.lost;
            rte_pktmbuf_free(frame);
        }
    }
    counts_.from_kernel += sent;
    return sent;
}

Nanos ExceptionPath::tsc_now() const noexcept {
    return static_cast<Nanos>(static_cast<double>(rte_rdtsc()) * nanos_per_tick_);
}

std::uint16_t ExceptionPath::serve(std::uint32_t nic_pending) noexcept {
    const Nanos now = tsc_now();
    if (ours_came_ || nic_pending > 0) {
        thread_share_.on_ours(now);
        wire_share_.on_ours(now);
    }
    ours_came_ = false;
    const bool wire_is_free = wire_share_.may_work(now) && nic_pending <= kPendingMax;
    if (!thread_share_.may_work(now)) return 0;
    const std::uint16_t frames = thread_share_.ours_come(now) ? std::uint16_t{1} : kFramesAtOnce;
    to_kernel(frames);
    const std::uint16_t sent = wire_is_free ? from_kernel(now, frames) : std::uint16_t{0};
    thread_share_.on_work(now, std::min(tsc_now() - now, kLookCostMax));
    return sent;
}

}  // namespace ulc::dpdk
