// SPDX-License-Identifier: BSD-3-Clause
// The transmit ring of a packet socket (packet(7), TPACKET_V2). A frame is written into a slot. One
// system call makes the kernel read the ring in order, from its own head on.
//
//   free ──write()──▶ asked ──push()──▶ with the kernel ──sent──▶ free
//                       ▲ │ refused: the kernel's head stays at this slot
//                       └─┘
//
// A queue that is full refuses a frame for a while. A hop of the path whose MTU is smaller, such as
// the port of a bridge behind a veth pair, refuses a long frame each time, and every frame of the
// node waits behind it. So retry() asks again in each call for kUnpaced, then every kPace. After
// kPatience it gives the frame up: it writes a length that the kernel refuses, which makes the
// kernel skip the slot (PACKET_LOSS). The shortest length that was given up is remembered. A frame
// at least as long is given up after one refusal, until the kernel takes one of them again.
//
// Time is an argument. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

struct tpacket2_hdr;

namespace ulc::packet {

class TransmitRing {
public:
    /// Result of a call that makes the kernel read the ring.
    enum class Answer : std::uint8_t {
        kLooked,   ///< it took frames as far as it could
        kRefused,  ///< it refused the frame at its head
        kBusy,     ///< the interface is down, or the send buffer is full: it judged no frame
    };
    /// Makes the kernel read the ring: sendto() of a socket.
    struct Kernel {
        void* context = nullptr;
        Answer (*read_ring)(void* context) = nullptr;
    };

    static constexpr Nanos kUnpaced = kMillisecond;
    static constexpr Nanos kPace = 250 * kMicrosecond;
    /// Longer than a frame of 9,000 bytes needs on a link of 2 Mb/s.
    static constexpr Nanos kPatience = 50 * kMillisecond;
    static constexpr std::uint32_t kRefusalsMin = 16;  ///< the process may not have run meanwhile
    static constexpr std::uint32_t kGiveUpsMost = 16;  ///< frames that one retry() gives up

    /// slots: a power of two. The memory is zeroed, or was a ring whose frames have all left.
    void use(std::byte* memory, std::uint32_t slot_octets, std::uint32_t slots, Kernel kernel);

    /// Memory for one frame; nullptr: every slot is in use.
    [[nodiscard]] std::byte* slot() noexcept;
    /// The frame of `length` bytes in that memory is to be sent by the next push().
    void write(std::uint32_t length) noexcept;
    /// Asks the kernel to take the frames that it has not taken. One system call. None after a
    /// refusal: then retry() asks.
    void push() noexcept;
    /// True if the kernel has not taken the newest frame, so that retry() is to be called.
    [[nodiscard]] bool must_push() const noexcept;
    /// Asks again after a refusal if it is time to, and gives frames up.
    void retry(Nanos now) noexcept;
    /// Frees the slots whose frames have left. Returns how many are in use. No system call.
    std::uint32_t in_use() noexcept;

    struct Counts {
        std::uint64_t pushes = 0;      ///< system calls to send
        std::uint64_t refusals = 0;    ///< calls that left frames in the ring
        std::uint64_t unsendable = 0;  ///< frames that were given up
    };
    [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

private:
    [[nodiscard]] tpacket2_hdr& at(std::uint32_t n) const noexcept;
    Answer ask() noexcept;
    void pass() noexcept;
    [[nodiscard]] bool is_hopeless(Nanos now) const noexcept;
    void give_up() noexcept;

    std::byte* memory_ = nullptr;
    std::uint32_t slot_octets_ = 0;
    std::uint32_t slots_ = 0;
    Kernel kernel_;
    std::uint32_t head_ = 0;       ///< free-running: frames written
    std::uint32_t kernel_at_ = 0;  ///< free-running: frames before it were taken or given up
    std::uint32_t tail_ = 0;       ///< free-running: frames that have left
    bool refused_ = false;         ///< the kernel left frames in the ring
    bool waits_ = false;           ///< retry() has asked for the frame at kernel_at_
    Nanos since_ = 0;              ///< first time that it did
    Nanos due_ = 0;                ///< when to ask again
    std::uint32_t refusals_ = 0;   ///< refusals of that frame in a row
    Nanos refused_since_ = 0;      ///< time of the first one
    std::uint32_t blocked_octets_ = UINT32_MAX;  ///< shortest frame that was given up
    Counts counts_;
};

}  // namespace ulc::packet
