// SPDX-License-Identifier: BSD-3-Clause
// Opens, configures and closes a DPDK port. ethdev_burst.cc moves its frames, ethdev_link.cc
// watches its link.
#include "dpdk/ethdev_port.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mempool.h>

#include "base/clock.h"
#include "dpdk/device_check.h"
#include "dpdk/ethdev_reconnect.h"
#include "dpdk/interrupt_thread.h"
#include "dpdk/kernel/isolation.h"
#include "dpdk/log.h"
#include "dpdk/multicast.h"
#include "dpdk/pci_card.h"
#include "dpdk/quirks/own_drivers.h"
#include "dpdk/quirks/parked.h"

namespace ulc::dpdk {
namespace {

constexpr std::uint16_t kMtuDefault = 1500;
constexpr std::uint32_t kDeviceReceiveReserve =
    512;  ///< receive buffers beyond descriptors, for caches

Err error_of(int negative_errno) {
    switch (-negative_errno) {
        case EPERM:
        case EACCES:
            return Err::kPermission;
        case ENOMEM:
            return Err::kNoMemory;
        case EINVAL:
        case ENODEV:
        case EEXIST:
            return Err::kInvalid;
        default:
            return Err::kSystem;
    }
}

std::string with_log(const std::string& what) {
    const std::string said = take_recent_log();
    return said.empty() ? what : what + " (" + said + ")";
}

}  // namespace

Err EthdevPort::open(const PortOptions& options, std::unique_ptr<EthdevPort>& out,
                     std::string& why) {
    static unsigned ports_opened = 0;  // names must be unique only within the process
    std::unique_ptr<EthdevPort> port(new EthdevPort);
    auto spec = parse_device(options.device, ports_opened, why);
    if (!spec) return Err::kInvalid;
    ++ports_opened;
    port->spec_ = std::move(*spec);
    PortOptions sized = options;
    if (const Err e = check_device(port->spec_, sized.mtu, why); e != Err::kOk) return e;
    size_device(port->spec_, sized.mtu == 0 ? kMtuDefault : sized.mtu);
    if (const Err e = port->probe(sized, why); e != Err::kOk) return e;
    Err e = Err::kOk;
    if (port->was_parked_) {
        // A peer may have connected to the parked device: disconnect it, and accept no other until
        // the queues are new.
        struct Opening {
            PortOptions options;
            std::string why;
        };
        const auto opening = std::make_shared<Opening>(Opening{sized, {}});
        e = on_interrupt_thread([self = port.get(), opening] {
            rte_eth_dev_start(self->id_);
            rte_eth_dev_stop(self->id_);
            return self->make_ready(opening->options, opening->why);
        });
        if (e == Err::kTimeout) {
            static_cast<void>(port.release());  // that thread may still use it
            why = "the thread of DPDK's drivers does not answer; start the process again";
            return e;
        }
        why = opening->why;
    } else {
        e = port->make_ready(sized, why);
    }
    if (e != Err::kOk) return e;
    port->choose_tx_account();
    port->keeps_tags_ = options.all_types;
    if (options.exception) {
        e = ExceptionPath::open(port->id_, ports_opened - 1, port->port_.info.mtu,
                                options.ether_type, port->rx_pool_.mempool(), port->exception_,
                                why);
        if (e != Err::kOk) return e;
    }
    port->fill_table();
    if (e = port->follow_address(why); e != Err::kOk) return e;
    out = std::move(port);
    return Err::kOk;
}

Err EthdevPort::probe(const PortOptions& options, std::string& why) {
    (void)take_recent_log();  // earlier messages are not about this device
    if (const auto parked = take_parked_device(spec_)) {
        id_ = *parked;
        probed_ = true;
        was_parked_ = true;
        return Err::kOk;
    }
    if (spec_.kind == DeviceKind::kMemif) guard_memif();
    if (spec_.kind != DeviceKind::kPci) {
        // Not by rte_eal_hotplug_add(): from DPDK 24.11 on it refuses arguments of more than 127
        // bytes, and a memif socket's path alone may have 107.
        int result = rte_vdev_init(spec_.name.c_str(), spec_.joined_arguments().c_str());
        if (result > 0) result = -ENODEV;  // no driver has that name
        if (result != 0) {
            why =
                with_log("device '" + options.device + "' did not open: " + rte_strerror(-result));
            if (spec_.kind == DeviceKind::kAfPacket) {
                why +=
                    "; af_packet needs CAP_NET_RAW: run as root, or: setcap cap_net_raw+ep PROGRAM";
                return Err::kPermission;
            }
            why += "; check its name and arguments";
            return error_of(result);
        }
        probed_ = true;
    }
    if (rte_eth_dev_get_port_by_name(spec_.name.c_str(), &id_) != 0) {
        why = with_log("no DPDK port '" + spec_.name + "'");
        const OwnDriver* own = spec_.kind == DeviceKind::kPci ? own_driver_of(spec_.name) : nullptr;
        if (own != nullptr && plugin_of(*own).empty()) {
            why += "; it is a card with the chip " + std::string(own->chip) +
                   ", whose driver is not built; run: tools/driver-headers && tools/build release";
            return Err::kInvalid;
        }
        why += "; " + (spec_.kind == DeviceKind::kPci ? why_no_port(spec_.name)
                                                      : "check its name and arguments");
        return Err::kInvalid;
    }
    return Err::kOk;
}

Err EthdevPort::choose_mtu(const PortOptions& options, std::string& why) {
    port_.info.mtu = options.mtu == 0 ? kMtuDefault : options.mtu;
    if (spec_.kind == DeviceKind::kMemif || spec_.kind == DeviceKind::kAfPacket) return Err::kOk;
    rte_eth_dev_info info;
    if (rte_eth_dev_info_get(id_, &info) != 0) return Err::kOk;
    if (info.max_mtu != 0 && port_.info.mtu > info.max_mtu) {
        why = spec_.name + " carries at most MTU " + std::to_string(info.max_mtu) +
              "; lower mtu on every node";
        return Err::kInvalid;
    }
    return Err::kOk;
}

/// Decides whether the kernel keeps its frames. A switch port takes all.
Err EthdevPort::choose_sharing(const PortOptions& options, std::string& why) {
    rte_eth_dev_info info;
    shared_ = !options.promiscuous && rte_eth_dev_info_get(id_, &info) == 0 &&
              info.driver_name != nullptr && is_bifurcated(spec_, info.driver_name);
    if (shared_ && options.all_types) {
        why =
            spec_.name +
            ": its driver leaves IP with the kernel's interface; leave out ip, and use udp, as in "
            "--device udp,addr=10.0.0.5";
        return Err::kInvalid;
    }
    if (!shared_ || !options.exception) return Err::kOk;
    why = spec_.name + ": its driver leaves IP with the kernel's interface; leave out exception";
    return Err::kInvalid;
}

Err EthdevPort::configure(const PortOptions& options, std::string& why) {
    if (const Err e = choose_mtu(options, why); e != Err::kOk) return e;
    if (const Err e = choose_sharing(options, why); e != Err::kOk) return e;
    const bool is_card = spec_.kind == DeviceKind::kPci;
    if (shared_ && is_card) {
        if (const Err e = leave_frames_with_kernel(id_, spec_, why); e != Err::kOk) return e;
    }
    const auto failed = [&](const char* what, int result) {
        why = with_log(spec_.name + ": " + what + ": " + rte_strerror(-result)) +
              "; see 'ulc doctor'";
        return error_of(result);
    };
    rte_eth_conf conf{};
    const bool device_knows_mtu =
        spec_.kind == DeviceKind::kPci || spec_.kind == DeviceKind::kOther;
    if (device_knows_mtu) conf.rxmode.mtu = port_.info.mtu;
    if (const int r = rte_eth_dev_configure(id_, 1, 1, &conf); r < 0)
        return failed("configuration refused", r);
    std::uint16_t rx_ring = options.rx_descriptors;
    tx_ring_size_ = options.tx_descriptors;
    if (const int r = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_ring, &tx_ring_size_); r < 0) {
        return failed("descriptor counts refused", r);
    }
    const std::uint32_t octets = receive_buffer_octets(spec_, port_.info.mtu);
    const std::string number = std::to_string(id_);
    if (const Err e = tx_pool_.create("ulc_tx" + number, options.segments, octets, why);
        e != Err::kOk)
        return e;
    port_.info.rx_frames =
        options.receive_segments != 0 ? options.receive_segments : options.segments;
    const std::uint32_t receive =
        port_.info.rx_frames + kDeviceReceiveReserve + (device_knows_mtu ? rx_ring : 0);
    if (const Err e = rx_pool_.create("ulc_rx" + number, receive, octets, why); e != Err::kOk)
        return e;
    if (const int r =
            rte_eth_rx_queue_setup(id_, 0, rx_ring, SOCKET_ID_ANY, nullptr, rx_pool_.mempool());
        r < 0) {
        return failed("receive queue refused", r);
    }
    rte_eth_dev_info info;
    rte_eth_txconf tx_conf{};
    if (rte_eth_dev_info_get(id_, &info) == 0) tx_conf = info.default_txconf;
    tx_conf.offloads = 0;  // above all not FAST_FREE: frames are shared with the sender
    // Every frame reports that it is sent. By default many drivers report only one in 32, and the
    // engine, which keeps few frames in the ring, would wait for a report that only later frames
    // cause.
    const std::uint16_t report_default = tx_conf.tx_rs_thresh;
    tx_conf.tx_rs_thresh = 1;
    int r = rte_eth_tx_queue_setup(id_, 0, tx_ring_size_, SOCKET_ID_ANY, &tx_conf);
    reports_each_frame_ = r == 0;
    if (r < 0) {
        tx_conf.tx_rs_thresh = report_default;
        r = rte_eth_tx_queue_setup(id_, 0, tx_ring_size_, SOCKET_ID_ANY, &tx_conf);
    }
    if (r < 0) return failed("transmit queue refused", r);
    // DPDK asks for this before the configuration, but net_tap ignores it until it has queues.
    return shared_ && !is_card ? leave_frames_with_kernel(id_, spec_, why) : Err::kOk;
}

Err EthdevPort::make_ready(const PortOptions& options, std::string& why) {
    const Err e = configure(options, why);
    return e == Err::kOk ? start(options, why) : e;
}

Err EthdevPort::start(const PortOptions& options, std::string& why) {
    reconnect_ = std::make_unique<Reconnect>();
    reconnect_->id = id_;
    const bool may_wait = spec_.kind == DeviceKind::kMemif;
    if (may_wait) mute_log(true);
    const int result = rte_eth_dev_start(id_);
    if (may_wait) mute_log(false);
    if (result != 0 && !may_wait) {
        why = with_log(spec_.name + " did not start: " + rte_strerror(-result)) +
              "; see 'ulc doctor'";
        return error_of(result);
    }
    away_ = result != 0;
    reconnect_->started = result == 0;
    reconnect_->tried_at = monotonic_now();
    rte_ether_addr mac{};
    rte_eth_macaddr_get(id_, &mac);
    std::memcpy(port_.info.mac.octets.data(), mac.addr_bytes, sizeof mac.addr_bytes);
    choose_filter(options);
    if (shared_) {
        const Err e = receive_ether_type(id_, spec_, options.ether_type, why);
        if (e != Err::kOk) return e;
    }
    if (spec_.kind == DeviceKind::kPci) request_ = std::make_unique<CardRequest>(spec_.name);
    return Err::kOk;
}

/// The kernel's own multicasts are not known here, so an exception interface needs all of them. A
/// port that is shared with the kernel leaves the kernel's filter as it is, and takes our
/// EtherType's by its rule.
void EthdevPort::choose_filter(const PortOptions& options) {
    if (spec_.kind == DeviceKind::kPci && !options.promiscuous && !options.exception && !shared_)
        port_.info.multicast_filters = learn_multicast_filters(id_);
    if (port_.info.multicast_filters != kPassesAll) return;
    // A device that cannot pass all multicast frames passes all frames.
    const bool all_multicast = rte_eth_allmulticast_enable(id_) == 0;
    if (options.promiscuous || (!all_multicast && spec_.kind != DeviceKind::kMemif))
        rte_eth_promiscuous_enable(id_);
    checks_station_ = !options.promiscuous &&
                      (spec_.kind != DeviceKind::kPci || rte_eth_promiscuous_get(id_) == 1);
}

void EthdevPort::choose_tx_account() {
    rte_eth_dev_info info;
    const bool known = rte_eth_dev_info_get(id_, &info) == 0 && info.driver_name != nullptr;
    const std::string driver = known ? info.driver_name : "";
    const bool shares_memory = spec_.argument("zero-copy").value_or("no") == "yes";
    constexpr std::array kCopying{"net_memif", "net_af_packet", "net_tap", "net_pcap", "net_null"};
    const bool copies = std::any_of(kCopying.begin(), kCopying.end(),
                                    [&](const char* name) { return driver == name; });
    if (copies && !shares_memory) {
        tx_account_ = TxAccount::kCopies;
    } else if (reports_each_frame_ && rte_eth_tx_descriptor_status(id_, 0, 0) >= 0) {
        tx_account_ = TxAccount::kDescriptors;
    } else if (rte_eth_tx_done_cleanup(id_, 0, 0) >= 0) {
        tx_account_ = TxAccount::kCleanup;
    } else {
        tx_account_ = TxAccount::kUnknown;
    }
}

void EthdevPort::fill_table() {
    rte_eth_link link{};
    port_.info.tx_ring_frames = tx_ring_size_;
    if (rte_eth_link_get_nowait(id_, &link) == 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN) {
        port_.info.link_bits_per_second = std::uint64_t{link.link_speed} * 1'000'000;
        port_.info.half_duplex =
            link.link_status == RTE_ETH_LINK_UP && link.link_duplex == RTE_ETH_LINK_HALF_DUPLEX;
    }
    port_.context = this;
    port_.pool = tx_pool_.table();
    port_.rx = rx;
    port_.tx = tx;
    port_.tx_pending = tx_pending;
    port_.link_up = link_up;
    port_.missed = missed;
    port_.drops = drops;
    if (port_.info.multicast_filters == kPassesAll) return;
    port_.set_multicasts = [](void* context, std::span<const Mac> addresses) {
        const auto& self = *static_cast<EthdevPort*>(context);
        return self.away_ || dpdk::set_multicasts(self.id_, addresses);
    };
}

/// Stops the device, and closes it if it is not kept. False: the interrupt thread does not answer.
bool EthdevPort::close_device() {
    if (!reconnect_->wait()) return false;
    reconnect_->closing = true;
    reconnect_->request = nullptr;
    reconnect_->keep = is_memif_server(spec_);
    // The driver's own handlers run on EAL's interrupt thread, and a peer may be leaving at this
    // moment.
    if (spec_.kind != DeviceKind::kMemif || !reconnect_->ask()) Reconnect::run(reconnect_.get());
    return reconnect_->wait();
}

EthdevPort::~EthdevPort() {
    exception_.reset();  // it sends through this device
    if (!probed_ && reconnect_ == nullptr) return;
    if (reconnect_ != nullptr && !close_device()) {
        // That thread may still use the device and what it was asked to do.
        static_cast<void>(reconnect_.release());
        static_cast<void>(request_.release());
        RTE_LOG(WARNING, USER1, "%s: the thread of the drivers does not answer; it stays open\n",
                spec_.name.c_str());
        return;
    }
    if (is_memif_server(spec_)) {
        park_device(spec_, id_);
        return;
    }
    mute_log(true);
    if (probed_) rte_eal_hotplug_remove("vdev", spec_.name.c_str());
    mute_log(false);
}

const ExceptionPath* EthdevPort::exception() const noexcept { return exception_.get(); }

}  // namespace ulc::dpdk
