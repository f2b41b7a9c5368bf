// SPDX-License-Identifier: BSD-3-Clause
// The link of a DPDK port: memif is connected again, a card that the kernel wants is given back,
// another MAC address is noticed.
#include <net/if.h>

#include <array>
#include <utility>

#include <rte_alarm.h>
#include <rte_ethdev.h>

#include "base/clock.h"
#include "dpdk/ethdev_port.h"
#include "dpdk/ethdev_reconnect.h"
#include "dpdk/interrupt_thread.h"
#include "dpdk/log.h"

namespace ulc::dpdk {
namespace {

constexpr Nanos kReconnectEvery = 20 * kMillisecond;
/// A server that accepted may be slow to answer, with many pollers on few cores. Another start
/// would not help.
constexpr Nanos kHandshakeMax = 1 * kSecond;

}  // namespace

bool EthdevPort::Reconnect::ask() {
    done.store(false, std::memory_order_relaxed);
    if (rte_eal_alarm_set(1, run, this) == 0) return true;
    done.store(true, std::memory_order_relaxed);
    return false;
}

bool EthdevPort::Reconnect::wait() const {
    return wait_for_interrupt_thread(
        [this] { return done.load(std::memory_order_acquire); });  // partner: run()
}

void EthdevPort::Reconnect::run(void* context) {
    auto* self = static_cast<Reconnect*>(context);
    mute_log(true);  // a peer that is not there yet is no error
    rte_eth_dev_stop(self->id);
    if (self->closing && !self->keep) rte_eth_dev_close(self->id);
    self->started = !self->closing && rte_eth_dev_start(self->id) == 0;
    mute_log(false);
    if (self->request != nullptr) self->request->give_back();
    self->done.store(true, std::memory_order_release);  // partner: reconnect_memif()
}

bool EthdevPort::link_up(void* context) {
    auto& self = *static_cast<EthdevPort*>(context);
    if (self.spec_.kind == DeviceKind::kAfPacket) return self.watch().look();
    Reconnect& reconnect = *self.reconnect_;
    if (self.request_ && self.request_->came() && !reconnect.closing) self.let_go();
    if (self.away_) {
        if (!reconnect.done.load(std::memory_order_acquire))
            return false;                 // partner: Reconnect::run()
        self.away_ = !reconnect.started;  // a burst on a stopped device would be logged as a bug
    }
    if (!self.away_ && self.port_.interface != nullptr) static_cast<void>(self.watch().look());
    rte_eth_link link{};
    const bool up = !self.away_ && rte_eth_link_get_nowait(self.id_, &link) == 0 &&
                    link.link_status == RTE_ETH_LINK_UP;
    if (self.exception_) self.exception_->on_link(link.link_speed);
    const bool connects = self.spec_.kind == DeviceKind::kMemif && !is_memif_server(self.spec_);
    reconnect.been_up |= up;
    if (!up && connects) self.reconnect_memif();
    return up;
}

/// Returns the name of the kernel's interface under the port; empty: there is none.
std::string EthdevPort::interface_name() const {
    rte_eth_dev_info info;
    if (rte_eth_dev_info_get(id_, &info) != 0) return {};
    const std::string driver = info.driver_name != nullptr ? info.driver_name : "";
    if (spec_.kind == DeviceKind::kAfPacket || driver == "net_af_xdp")
        return spec_.argument("iface").value_or("");
    if (driver == "net_tap") return spec_.argument("remote").value_or("");
    std::array<char, IF_NAMESIZE> name{};
    const bool has_one = shared_ && info.if_index != 0;
    return has_one && if_indextoname(info.if_index, name.data()) != nullptr ? name.data() : "";
}

/// Notices if the MAC address changes under the port. The address of a memif is its own for good.
Err EthdevPort::follow_address(std::string& why) {
    if (spec_.kind == DeviceKind::kMemif) return Err::kOk;
    const std::string name = interface_name();
    const bool is_af_packet = spec_.kind == DeviceKind::kAfPacket;
    if (!name.empty()) {
        const auto mtu =
            is_af_packet ? FollowedInterface::Mtu::kFollowed : FollowedInterface::Mtu::kDrivers;
        const Err e = FollowedInterface::open(name, port_.info, mtu, interface_, why);
        if (e != Err::kOk && is_af_packet) return e;
        if (e != Err::kOk)
            RTE_LOG(WARNING, USER1, "%s: the MAC address of %s is not followed: %s\n",
                    spec_.name.c_str(), name.c_str(), std::exchange(why, {}).c_str());
    }
    if (interface_ == nullptr) station_.begin(id_, spec_.name, port_.info);
    port_.interface = [](void* context) -> const InterfaceState* {
        return &static_cast<EthdevPort*>(context)->watch().state();
    };
    port_.take_address = [](void* context) {
        auto& self = *static_cast<EthdevPort*>(context);
        self.watch().take_address();
        return self.port_.info.mac = self.watch().state().own;
    };
    return Err::kOk;
}

/// Gives the card back to the kernel, on the interrupt thread. From now on no burst runs on it.
void EthdevPort::let_go() {
    reconnect_->closing = true;
    reconnect_->request = request_.get();
    away_ = true;
    if (!reconnect_->ask()) reconnect_->closing = false;  // again, at the next look
}

/// Lets the interrupt thread stop and start the device. True if it will.
bool EthdevPort::reconnect_memif() {
    const Nanos now = monotonic_now();
    const bool shaking_hands = reconnect_->started && !reconnect_->been_up;
    if (now - reconnect_->tried_at < (shaking_hands ? kHandshakeMax : kReconnectEvery))
        return false;
    reconnect_->tried_at = now;
    reconnect_->been_up = false;
    if (!reconnect_->ask()) return false;
    away_ = true;
    return true;
}

}  // namespace ulc::dpdk
