// SPDX-License-Identifier: BSD-3-Clause
// A packet socket with a receive and a transmit ring (packet(7), TPACKET_V2), bound to one
// interface and one EtherType. The kernel writes received frames into the receive ring; a look at
// it costs no system call. Frames to send are written into the transmit ring and pushed by one
// sendto() (transmit_ring.h). A slot is free when the kernel has freed the frame: behind a shaped
// link that is when the frame has left its queue. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "packet/received.h"
#include "packet/transmit_ring.h"
#include "port/interface/kernel.h"
#include "port/interface/watch.h"
#include "port/port.h"

struct tpacket2_hdr;

namespace ulc::packet {

struct SocketOptions {
    std::string interface;
    std::uint16_t ether_type = 0x88B5;
    std::uint16_t mtu = 0;  ///< 0: the interface's, at most kMtuMax
    std::uint32_t receive_frames = 1024;
    bool qdisc_bypass = false;
};

inline constexpr std::uint16_t kMtuMax = 9600;
inline constexpr std::uint32_t kTransmitSlots = 64;

class PacketSocket {
public:
    PacketSocket() = default;
    ~PacketSocket();
    PacketSocket(const PacketSocket&) = delete;
    PacketSocket& operator=(const PacketSocket&) = delete;

    /// Errors: kInvalid (interface, MTU), kPortDown, kPermission, kNoMemory, kSystem. `why` says
    /// what to do.
    Err open(const SocketOptions& options, std::string& why);

    [[nodiscard]] const Mac& mac() const noexcept { return mac_; }
    [[nodiscard]] std::uint16_t mtu() const noexcept { return mtu_; }
    /// 0: the interface does not say.
    [[nodiscard]] std::uint64_t bits_per_second() const noexcept { return bits_per_second_; }

    // --- receiving
    /// The oldest frame of the ring. False: none.
    [[nodiscard]] bool next_frame(Received& out) const noexcept;
    /// Gives the slot of that frame back to the kernel.
    void release_frame() noexcept;
    /// Frames that the kernel dropped because the ring was full, since open(). One system call.
    [[nodiscard]] std::uint64_t dropped() noexcept;

    // --- sending
    /// The ring of frames to send; each has up to mtu() + 14 bytes.
    [[nodiscard]] TransmitRing& transmit_ring() noexcept { return tx_; }
    [[nodiscard]] const TransmitRing& transmit_ring() const noexcept { return tx_; }

    // --- the interface
    /// True while it is up and has a carrier. Binds again when an interface of that name has come
    /// back after it was removed. A few system calls.
    [[nodiscard]] bool running() { return watch_.look(); }
    [[nodiscard]] port::InterfaceWatch& watch() noexcept { return watch_; }
    [[nodiscard]] const port::InterfaceWatch& watch() const noexcept { return watch_; }

private:
    struct Ring {
        std::byte* memory = nullptr;
        std::uint32_t slot_octets = 0;
        std::uint32_t slots = 0;
        [[nodiscard]] tpacket2_hdr* at(std::uint32_t n) const noexcept;
    };

    Err look_up(std::string& why);
    Err make_rings(std::uint32_t receive_frames, std::string& why);
    Err bind_to(int index, std::string& why);
    [[nodiscard]] bool bind_again(int index);
    [[nodiscard]] int take_multicasts() noexcept;
    [[nodiscard]] int ioctl_of(unsigned long request, void* answer) const noexcept;
    void read_speed() noexcept;
    [[nodiscard]] TransmitRing::Answer read_transmit_ring() noexcept;

    int fd_ = -1;
    int index_ = 0;  ///< interface index
    std::string interface_;
    std::uint16_t ether_type_ = 0;
    std::uint16_t mtu_ = 0;
    Mac mac_;
    std::uint64_t bits_per_second_ = 0;
    void* mapped_ = nullptr;
    std::size_t mapped_octets_ = 0;
    Ring rx_;
    TransmitRing tx_;
    std::uint32_t rx_at_ = 0;  ///< slot of the oldest frame
    std::uint64_t dropped_ = 0;
    port::KernelInterface kernel_{-1};
    port::InterfaceWatch watch_;
};

}  // namespace ulc::packet
