// SPDX-License-Identifier: BSD-3-Clause
// Implements port.h over a wire of shared memory: the nodes of one machine communicate over it if
// no real wire must be imitated. Each station writes a frame once, into its own ring, and all
// others find it there (broadcast_ring.h), so a multicast costs its sender the same as a unicast,
// and no switch process is in between. No DPDK, no thread, no system call while frames flow.
//
// Like a cable it drops nothing: a full ring makes tx() take fewer frames. A station that has read
// nothing for kPatience is not awaited any longer and misses the frames that are overwritten, as if
// its receive ring had overflowed; a station whose process ended, at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "port/frame_pool.h"
#include "port/port.h"
#include "shm/broadcast_ring.h"
#include "shm/wire_file.h"

namespace ulc::shm {

/// "shm,path=/dev/shm/lab,station=0,stations=4,ring=524288"
struct DeviceSpec {
    std::string path;
    unsigned station = 0;
    Shape shape{.stations = 16, .ring_octets = 1U << 19};
};

/// Returns true if the device string means a wire of shared memory.
[[nodiscard]] bool is_shm(std::string_view device) noexcept;
/// Parses one. Errors: kInvalid; `why` says what would be understood.
Err parse_device(std::string_view device, DeviceSpec& out, std::string& why);

struct PortOptions {
    DeviceSpec device;
    std::uint16_t mtu = 0;          ///< bytes after the Ethernet header; 0: 1500
    std::uint32_t segments = 4096;  ///< frames that senders may hold, and receivers
};

/// Faults of this port since it opened. Frames, except `overran`.
struct Counts {
    std::uint64_t missed =
        0;  ///< number of times that a writer overtook us; each lost the frames in its ring
    std::uint64_t broken = 0;         ///< impossible records; each lost the frames in that ring
    std::uint64_t too_long = 0;       ///< above the MTU
    std::uint64_t other_station = 0;  ///< for the MAC address of another one
    std::uint64_t no_frame = 0;       ///< the receive pool was empty
    std::uint64_t overran = 0;        ///< number of times that a station was not awaited any longer
};

class ShmPort {
public:
    /// Errors: those of WireFile::open() and FramePool::create(). Not for the hot path.
    static Err open(const PortOptions& options, std::unique_ptr<ShmPort>& out, std::string& why);
    ~ShmPort();  ///< leaves the wire; every segment should have been released before
    ShmPort(const ShmPort&) = delete;
    ShmPort& operator=(const ShmPort&) = delete;

    /// Releases the station in a child of fork(): it belongs to the parent. The port is not used
    /// again.
    void abandon() noexcept { wire_->abandon(); }
    /// Valid while this object lives; copies are fine.
    [[nodiscard]] const Port& port() const noexcept { return port_; }
    /// "shm station 2 of 4"
    [[nodiscard]] std::string name() const;
    [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
    /// Called by the engine's thread: stations that do not read are awaited for this time;
    /// kPatience unless set.
    void set_patience(Nanos patience) noexcept { patience_ = patience; }

    static constexpr Nanos kPatience = 200 * kMillisecond;

private:
    struct Peer {
        unsigned station;
        RingReader ring;
    };

    ShmPort() = default;
    void join();
    [[nodiscard]] std::uint16_t receive(Segment** out, std::uint16_t n);
    [[gnu::noinline]] std::uint16_t receive_some(Segment** out, std::uint16_t n);
    [[nodiscard]] Segment* receive_landing(const Landing& landing);
    /// Takes the next record of a peer by copy(Segment&). Returns its frame; nullptr: it is not for
    /// us, or no record that can be.
    template <typename Copy>
    [[nodiscard]] Segment* take(RingReader& ring, Copy copy);
    static void copy_in(Segment& segment, const RingReader& ring) noexcept;
    static void land(Segment& segment, const RingReader& ring, const Landing& landing);
    static void copy_out(std::byte* to, const Segment& segment) noexcept;
    [[nodiscard]] std::uint16_t send(Segment* const* frames, std::uint16_t n);
    /// Returns true if a station is not awaited any longer, and there may be space.
    [[nodiscard]] bool give_up_waiting();

    Port port_;
    Counts counts_;
    std::unique_ptr<WireFile> wire_;
    port::FramePool tx_pool_;
    port::FramePool rx_pool_;
    RingWriter writer_;
    std::vector<Peer> peers_;
    std::size_t turn_ = 0;    ///< peer that is asked first
    unsigned turn_used_ = 0;  ///< frames that receive_landing() took in this turn
    Nanos patience_ = kPatience;
    Nanos waiting_since_ = kNever;
    std::uint32_t frame_max_ = 0;
};

}  // namespace ulc::shm
