// SPDX-License-Identifier: BSD-3-Clause
// A packet socket with a receive and a transmit ring (packet(7), TPACKET_V2), bound to one
// interface and one EtherType. The kernel writes received frames into the receive ring; a look at
// it costs no system call. Frames to send are written into the transmit ring and pushed by one
// sendto().
//
//   transmit slot:  free ──write()──▶ asked ──push()──▶ with the kernel ──sent──▶ free
//
// push() reports what the kernel did, and a slot that the kernel did not take stays `asked`, so the
// port knows to push again. A slot is free when the kernel has freed the frame: behind a shaped
// link that is when the frame has left its queue. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
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
    struct Received {
        const std::byte* frame = nullptr;  ///< valid until release_frame()
        std::uint32_t length = 0;
        bool whole = false;  ///< not truncated, not VLAN-tagged
    };
    /// The oldest frame of the ring. False: none.
    [[nodiscard]] bool next_frame(Received& out) const noexcept;
    /// Gives the slot of that frame back to the kernel.
    void release_frame() noexcept;
    /// Frames that the kernel dropped because the ring was full, since open(). One system call.
    [[nodiscard]] std::uint64_t dropped() noexcept;

    // --- sending
    /// Memory for one frame of up to mtu() + 14 bytes; nullptr: every slot is in use.
    [[nodiscard]] std::byte* transmit_slot() noexcept;
    /// The frame of `length` bytes in that memory is to be sent by the next push().
    void write(std::uint32_t length) noexcept;
    /// Asks the kernel to take every frame in the ring that it has not taken. One system call.
    void push() noexcept;
    /// Frees the slots whose frames have left. Returns how many are in use. No system call.
    std::uint32_t in_use() noexcept;
    /// True if the kernel has not taken the newest frame, so that push() is to be repeated.
    [[nodiscard]] bool must_push() const noexcept;

    // --- the interface
    /// True while it is up and has a carrier. Binds again when an interface of that name has come
    /// back after it was removed. A system call or two.
    [[nodiscard]] bool running() noexcept;

    struct Counts {
        std::uint64_t pushes = 0;    ///< system calls to send
        std::uint64_t refusals = 0;  ///< pushes after which frames were left in the ring
    };
    [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

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
    [[nodiscard]] int ioctl_of(unsigned long request, void* answer) const noexcept;
    void read_speed() noexcept;

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
    Ring tx_;
    std::uint32_t rx_at_ = 0;    ///< slot of the oldest frame
    std::uint32_t tx_head_ = 0;  ///< free-running: frames written
    std::uint32_t tx_tail_ = 0;  ///< free-running: frames that have left
    std::uint64_t dropped_ = 0;
    Counts counts_;
};

}  // namespace ulc::packet
