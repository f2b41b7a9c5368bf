// SPDX-License-Identifier: BSD-3-Clause
// A wire as the engine sees it: bursts of segments in and out. Implemented over DPDK ethdev
// (dpdk/), and by the simulator. Constant function table plus context: one indirect call a burst.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "base/units.h"
#include "port/segment.h"
#include "wire/ids.h"

namespace ulc {

struct NodeAddress;  // wire/node_address.h

/// PortInfo::multicast_filters of a device that passes all multicasts.
inline constexpr std::uint16_t kPassesAll = UINT16_MAX;

/// A place for the payload of a frame, outside the frame.
struct Landed {
    std::byte* to = nullptr;   ///< nullptr: in the frame
    std::uint32_t octets = 0;  ///< length of the payload, which ends the frame
};

/// Asked before a frame is copied out of the wire.
struct Landing {
    void* context = nullptr;
    std::uint32_t front_octets = 0;  ///< part of a frame that where() reads, and that never lands
    /// front: those octets, in the port's private memory; length: length of the whole frame,
    /// which is longer.
    Landed (*where)(void* context, const std::byte* front, std::uint32_t length) = nullptr;
};

struct PortInfo {
    Mac mac;
    std::uint16_t mtu = 1500;          ///< octets after the Ethernet header
    std::uint16_t mtu_sure = 1500;     ///< mtu that passes each path to another node
    bool follows_paths = false;        ///< frames above a path's mtu are found, and sent in parts
    std::uint16_t tx_ring_frames = 0;  ///< frames that the device accepts at once
    std::uint32_t rx_frames =
        0;  ///< received frames that may be held beyond the device's ring; 0: any number
    std::uint64_t link_bits_per_second = 0;  ///< 0: unknown
    /// Time on the wire of the frames that may be pending. Longer where the device reports sent
    /// frames late: it must cover the interval between two reports.
    Nanos tx_pending_time = 20 * kMicrosecond;
    bool half_duplex = false;  ///< the medium carries one frame at a time (a hub)
    std::uint16_t multicast_filters = kPassesAll;  ///< multicast addresses that the device compares
    /// Frames that tx() gets at a time, so that the other end begins with them while the rest is
    /// composed. A power of two, at most 32.
    std::uint8_t flush_frames = 8;
    std::uint8_t links = 1;  ///< cables by which the node is on the net, each with an address
    bool gathers =
        false;  ///< tx() takes frames with a tail, and has read the tail when it returns, unless it
                ///< has a key (Port::add_memory)
};

/// Costs of sending and receiving since the port was opened.
struct PortCosts {
    std::uint64_t calls = 0;         ///< system calls that sent frames
    std::uint64_t refusals = 0;      ///< calls of which the kernel did not take all frames
    std::uint64_t copied_bytes = 0;  ///< between the engine's memory and the device's rings
};

/// Frames of a mesh (port/mesh_port.h) since the port was opened.
struct PortTransit {
    std::uint64_t forwarded = 0;
    std::uint64_t full = 0;       ///< dropped: the other link had no space
    std::uint64_t malformed = 0;  ///< dropped
    std::uint64_t misrouted = 0;  ///< dropped: their sender may not send them by this segment
    std::uint64_t pathless = 0;   ///< own frames, dropped: no path led to their node
};

/// Frames that a port dropped since it was opened, by reason.
struct PortDrops {
    std::uint64_t other_station = 0;  ///< came, for the MAC address of another node
    std::uint64_t too_long = 0;       ///< came, longer than the MTU
    std::uint64_t vlan = 0;           ///< came, with the tag of a VLAN
    std::uint64_t own_echo = 0;       ///< came, sent by this node
    std::uint64_t wrong_source = 0;   ///< came, with a MAC address that is not its sender's
    std::uint64_t damaged = 0;        ///< came, dropped by the device or shorter than its headers
    std::uint64_t unsealed = 0;       ///< came, not sealed as this net is, damaged, or repeated
    std::uint64_t unsendable = 0;     ///< were taken by tx(), and could not be sent
    std::uint64_t narrowed = 0;       ///< no frames: paths that began to take parts of frames alone

    PortDrops& operator+=(const PortDrops& other) noexcept {
        other_station += other.other_station;
        too_long += other.too_long;
        vlan += other.vlan;
        own_echo += other.own_echo;
        wrong_source += other.wrong_source;
        damaged += other.damaged;
        unsealed += other.unsealed;
        unsendable += other.unsendable;
        narrowed += other.narrowed;
        return *this;
    }
};

/// The kernel's network interface under a port.
struct InterfaceState {
    std::string name;       ///< present name
    Mac mac;                ///< its address
    Mac own;                ///< the port's, by which its frames name this station
    bool keeps_own = true;  ///< frames for `own` reach the port, though `mac` may be another one
    std::uint16_t mtu = 0;  ///< the least of the interface's MTU and PortInfo::mtu
};

/// Maximum number of frames in a call of a PortTap.
inline constexpr std::uint16_t kTapBurstMax = 64;

/// Watches the frames that pass between the engine and a port. The engine calls it for bursts that
/// hold frames, and for no others: polls that find nothing cost nothing. No entry is empty. A tap
/// changes nothing, and keeps no frame beyond the call. Thread rule: the engine's thread.
struct PortTap {
    /// Adds to a count that other processes read: what was written before comes before it.
    static void add(std::atomic<std::uint64_t>& count, std::uint64_t n) noexcept {
#ifdef __x86_64__
        // One instruction in place of three; x86 keeps the order of stores. It needs no lock
        // prefix, since one thread writes.
        asm volatile("addq %1, %0" : "+m"(count) : "er"(n) : "cc", "memory");
#else
        count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_release);
#endif
    }

    void* context = nullptr;
    /// The port gave these frames; the engine has not read them.
    void (*on_received)(void* context, Segment* const* frames, std::uint16_t n) = nullptr;
    /// The port is about to be offered these frames, which it may free as it takes them.
    void (*on_offered)(void* context, Segment* const* frames, std::uint16_t n) = nullptr;
    /// The engine adds to it how many of the frames that were offered last the port took: the first
    /// ones. A tap reads it in its next call. Never nullptr.
    std::atomic<std::uint64_t>* taken = nullptr;
    /// The port gave this frame up (Port::tx_failed).
    void (*on_failed)(void* context, const Segment& frame) = nullptr;
    /// The engine looked at the port's link: once in 10 ms or more often.
    void (*on_link_look)(void* context) = nullptr;
};

struct Port {
    void* context = nullptr;
    PortInfo info;
    SegmentPool pool;
    /// Up to n received frames, each with one reference that the caller now holds.
    std::uint16_t (*rx)(void* context, Segment** out, std::uint16_t n) = nullptr;
    /// Told of each burst by the engine, not by the port. It outlives the engine. nullptr: nothing
    /// watches the port.
    const PortTap* tap = nullptr;
    /// Receives one frame as rx() does. Its last octets are copied to the place that `landing`
    /// names, and are the segment's tail then. nullptr: no frame. Data there are not valid until a
    /// segment names them. The entry is empty where frames come in separate segments.
    Segment* (*rx_landing)(void* context, const Landing& landing) = nullptr;
    /// Offers n frames; takes over one reference of each accepted (the first k), returns k.
    std::uint16_t (*tx)(void* context, Segment* const* frames, std::uint16_t n) = nullptr;
    /// Frames handed to tx whose transmission is not complete; never underestimates by more than a
    /// burst. The entry is empty where frames have left when tx() returns.
    std::uint32_t (*tx_pending)(void* context) = nullptr;
    /// The next frame that was taken and given up (on a hub after 16 collisions), with the
    /// reference that tx() took; nullptr: none. The entry is empty where the device says of no
    /// frame that it failed, as with ethdev, whose statistics count but name none: then receivers
    /// miss it, ask, and it is repaired; with the profile `detect` they alone report it.
    Segment* (*tx_failed)(void* context) = nullptr;
    /// Lets the device pass multicasts to these addresses, broadcasts, and as few others as it can.
    /// May take a millisecond. False: these are too many, it passes all. The entry is empty where
    /// it always does.
    bool (*set_multicasts)(void* context, std::span<const Mac> addresses) = nullptr;
    /// Returns this node's addresses on the net, the first PortInfo::mac. Asked as often as
    /// link_up(). The entry is empty where there is one link.
    std::span<const NodeAddress> (*addresses)(void* context) = nullptr;
    /// Sends to all of these addresses of a node from now on. Frames name it by the first one.
    /// proved: the node has confirmed them; else they serve for questions to it and its answers
    /// alone. Set if `addresses` is.
    void (*set_addresses)(void* context, std::span<const NodeAddress> addresses,
                          bool proved) = nullptr;
    /// Returns the most by which frames of one sender overtake each other. megabits: speed of the
    /// slowest link of the other nodes that have several; 0: none has. The entry is empty where
    /// they do not.
    Nanos (*reorder_wait)(void* context, std::uint32_t megabits) = nullptr;
    /// True while the link is up; cheap enough for once a millisecond, not for each round.
    bool (*link_up)(void* context) = nullptr;
    /// Returns the interface under the port, as link_up() found it last. nullptr, as an empty one:
    /// there is none that others change.
    const InterfaceState* (*interface)(void* context) = nullptr;
    /// Makes the interface's address that of the port, and returns PortInfo::mac, which it is from
    /// now on. The addresses of other nodes are forgotten. To be called when nothing uses the old
    /// one any more. Set if `interface` is.
    Mac (*take_address)(void* context) = nullptr;
    /// Says as a clause which nodes do not answer or are not understood, and the advice; "": it
    /// knows of none. Optional.
    std::string (*unanswered)(void* context) = nullptr;
    /// Returns how often a link was found silent though its device said that it was up
    /// (docs/protocol/NODES.md N-38). The entry is empty where there is one link.
    std::uint64_t (*silences)(void* context) = nullptr;
    /// Returns counts of frames between the links of this node. Empty but for a mesh.
    PortTransit (*transit)(void* context) = nullptr;
    /// Frames that came and were lost before rx() could give them, since the port was opened: no
    /// descriptor, no buffer, an overrun. May read registers; asked once a second. The entry is
    /// empty where they are not counted.
    std::uint64_t (*missed)(void* context) = nullptr;
    /// Returns the frames that the port dropped. May read registers; asked once a second. The entry
    /// is empty where the port drops none.
    PortDrops (*drops)(void* context) = nullptr;
    /// Lets tails of frames lie in this memory of a client until the frames have left: the device
    /// reads it. Returns the key for Segment::tail_key, the same for the same memory; 0: not now,
    /// so its payloads are copied. The port bounds number, size and rate; may take as long as
    /// locking the memory. The memory stays the client's, which can change it meanwhile. The entry
    /// is empty where no device reads memory of clients.
    std::uint32_t (*add_memory)(void* context, std::span<const std::byte> memory) = nullptr;
    /// Ends that for the memory that begins there, if it was added: tx() gets no more frames of it.
    /// It may be unmapped at once. Set if `add_memory` is.
    void (*remove_memory)(void* context, const std::byte* memory) = nullptr;
    /// Costs since the port was opened. Makes no system call. The entry is empty where frames are
    /// sent without system calls.
    PortCosts (*costs)(void* context) = nullptr;
};

}  // namespace ulc
