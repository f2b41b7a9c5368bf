// SPDX-License-Identifier: BSD-3-Clause
// Implements port.h over a DPDK ethdev: any NIC, memif, af_packet, tap. One port, one queue pair,
// one engine thread.
//
// Transmission: the device frees its reference when it has finished with a frame (rte_pktmbuf_free
// counts, so the sender's own reference keeps the frame for retransmissions). Devices that copy
// (memif, af_packet, tap) have finished when tx returns. The FAST_FREE offload, which ignores
// counts, is never enabled.
//
// A memif link that is down (peer not there yet, or gone) is reconnected from link_up(), rarely, on
// EAL's interrupt thread, so that this cannot run concurrently with the driver's own handlers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "dpdk/address/followed_interface.h"
#include "dpdk/address/followed_station.h"
#include "dpdk/card_request.h"
#include "dpdk/device.h"
#include "dpdk/frame_pool.h"
#include "dpdk/kernel/exception_path.h"
#include "dpdk/quirks/memif_guard.h"
#include "port/port.h"

namespace ulc::dpdk {

struct PortOptions {
    std::string device;                  ///< as in dpdk/device.h
    std::uint16_t mtu = 0;               ///< bytes after the Ethernet header; 0: the device's
    std::uint32_t segments = 4096;       ///< frames that senders may hold
    std::uint32_t receive_segments = 0;  ///< frames that receivers may hold; 0: the same number
    std::uint16_t rx_descriptors = 1024;
    std::uint16_t tx_descriptors = 1024;
    bool promiscuous = false;  ///< receive every unicast frame (a switch port)
    bool exception = false;    ///< frames of other types go to a TAP interface; exception_path.h
    std::uint16_t ether_type = 0x88B5;  ///< ours
    bool all_types = false;  ///< frames of every EtherType and VLAN, with their tags: ip/
};

class EthdevPort {
public:
    /// Opens and starts a device; the EAL must run. A memif whose peer is not there yet opens too,
    /// with the link down. Errors (`why`: the cause and the advice): kInvalid, kNoMemory,
    /// kPortDown, kPermission, kSystem. Not for the hot path.
    static Err open(const PortOptions& options, std::unique_ptr<EthdevPort>& out, std::string& why);
    ~EthdevPort();  ///< closes; every segment should have been released before
    EthdevPort(const EthdevPort&) = delete;
    EthdevPort& operator=(const EthdevPort&) = delete;

    /// Valid while this object lives; copies are fine.
    [[nodiscard]] const Port& port() const noexcept { return port_; }
    [[nodiscard]] const DeviceSpec& device() const noexcept { return spec_; }
    /// Returns nullptr without one. Only the port's thread may use its counts.
    [[nodiscard]] const ExceptionPath* exception() const noexcept;
    [[nodiscard]] std::uint16_t ethdev_id() const noexcept { return id_; }

private:
    struct Reconnect;
    enum class TxAccount : std::uint8_t { kCopies, kDescriptors, kCleanup, kUnknown };

    EthdevPort() = default;
    Err probe(const PortOptions& options, std::string& why);
    Err configure(const PortOptions& options, std::string& why);
    Err start(const PortOptions& options, std::string& why);
    Err make_ready(const PortOptions& options, std::string& why);
    Err choose_sharing(const PortOptions& options, std::string& why);
    void choose_filter(const PortOptions& options);
    Err choose_mtu(const PortOptions& options, std::string& why);
    void choose_tx_account();
    void fill_table();
    [[nodiscard]] std::string interface_name() const;
    Err follow_address(std::string& why);
    [[nodiscard]] port::InterfaceWatch& watch() noexcept {
        return interface_ != nullptr ? interface_->watch() : station_.watch();
    }

    static std::uint16_t rx(void* context, Segment** out, std::uint16_t n);
    static std::uint16_t tx(void* context, Segment* const* frames, std::uint16_t n);
    static std::uint32_t tx_pending(void* context);
    static bool link_up(void* context);
    static std::uint64_t missed(void* context);
    static PortDrops drops(void* context);
    [[nodiscard]] bool is_ours(rte_mbuf*& received);
    [[nodiscard]] bool is_for_station(const rte_mbuf& frame);
    bool reconnect_memif();
    bool close_device();
    void let_go();

    Port port_;
    std::uint16_t id_ = 0;
    TxAccount tx_account_ = TxAccount::kUnknown;
    bool reports_each_frame_ = false;  ///< the driver was configured to, and did not refuse
    bool away_ =
        false;  ///< memif is being reconnected, or the card is being released: no burst may run
    std::uint16_t tx_ring_size_ = 0;
    std::uint32_t tx_counted_ = 0;  ///< handed to the device and not seen complete
    bool checks_station_ = false;   ///< the device passes frames for other stations
    bool keeps_tags_ = false;       ///< PortOptions::all_types
    PortDrops drops_;               ///< without `damaged`, which the device counts
    BurstMark mark_;
    FramePool tx_pool_;
    FramePool rx_pool_;
    DeviceSpec spec_;
    bool probed_ = false;
    bool was_parked_ = false;               ///< parked.h
    bool shared_ = false;                   ///< kernel/isolation.h
    std::unique_ptr<CardRequest> request_;  ///< request for a PCI card
    std::unique_ptr<Reconnect> reconnect_;
    std::unique_ptr<ExceptionPath> exception_;
    std::unique_ptr<FollowedInterface> interface_;  ///< nullptr: the kernel has none under the port
    FollowedStation station_;                       ///< without interface_
};

}  // namespace ulc::dpdk
