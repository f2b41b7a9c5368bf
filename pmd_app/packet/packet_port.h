// SPDX-License-Identifier: BSD-3-Clause
// port.h over a packet socket: a NIC that stays with the kernel. No DPDK and no thread. Receiving
// costs no system call; sending costs one a burst. Each byte is copied once on either side.
//
// DPDK's af_packet driver reports frames as sent that the kernel has refused, and leaves them in
// its ring until something else is sent (README.md).
// This port reports a frame as pending until the kernel has freed it. It pushes again while the
// kernel refuses, and gives a frame up that does not leave (transmit_ring.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "packet/device.h"
#include "packet/packet_socket.h"
#include "port/frame_pool.h"
#include "port/port.h"

namespace ulc::packet {

struct PortOptions {
    DeviceSpec device;
    std::uint16_t mtu = 0;  ///< octets after the Ethernet header; 0: the interface's
    std::uint16_t ether_type = 0x88B5;
    std::uint32_t segments = 4096;  ///< frames that senders may hold, and receivers
};

class PacketPort {
public:
    /// Errors: those of PacketSocket::open() and FramePool::create(). Not for the hot path.
    static Err open(const PortOptions& options, std::unique_ptr<PacketPort>& out, std::string& why);
    PacketPort(const PacketPort&) = delete;
    PacketPort& operator=(const PacketPort&) = delete;

    /// Valid while this object lives; copies are fine.
    [[nodiscard]] const Port& port() const noexcept { return port_; }
    /// "net_af_packet eth0"
    [[nodiscard]] std::string name() const { return "net_af_packet " + interface_; }

    struct Counts {
        std::uint64_t frames_sent = 0;
        std::uint64_t copied_bytes = 0;  ///< into the transmit ring and out of the receive ring
        PortDrops drops;                 ///< without `unsendable`, which the ring counts
        std::uint64_t no_frame = 0;      ///< the receive pool was empty
    };
    [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
    [[nodiscard]] const TransmitRing::Counts& ring_counts() const noexcept {
        return socket_.transmit_ring().counts();
    }

private:
    PacketPort() = default;
    void fill_table(const PortOptions& options);
    [[nodiscard]] std::uint16_t receive(Segment** out, std::uint16_t n);
    /// The next frame that is for this station, copied out of the ring. nullptr: none.
    [[nodiscard]] Segment* take(const Landing* landing);
    [[nodiscard]] Segment* copy_out(const Received& got, const Landing* landing);
    [[nodiscard]] std::uint16_t send(Segment* const* frames, std::uint16_t n);
    [[nodiscard]] std::uint32_t pending();
    /// Looks at the interface. True: it is up.
    [[nodiscard]] bool look();

    Port port_;
    std::string interface_;
    PacketSocket socket_;
    port::FramePool tx_pool_;
    port::FramePool rx_pool_;
    std::uint32_t frame_max_ = 0;
    std::uint32_t send_max_ = 0;   ///< the same by the interface's present MTU
    bool by_old_address_ = false;  ///< the interface has another MAC address than the port
    Counts counts_;
};

}  // namespace ulc::packet
