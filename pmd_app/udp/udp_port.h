// SPDX-License-Identifier: BSD-3-Clause
// port.h over a UDP socket: needs no privilege, and crosses routers (docs/protocol/IP.md). The
// socket is the kernel's, or that of ip/ on a NIC. No thread. A system call of the kernel's socket
// sends a burst and one receives several. On an open net nothing is copied to send, and each byte
// once to receive; a sealed one encrypts copies.
//
//   engine ── tx() ──▶ runs of frames to one node ──▶ sendmmsg(), cut by the kernel
//   engine ◀── rx() ── copied to its place ◀── joined by the kernel ◀── recvmmsg()
//
// The node's name is drawn at random, so each incarnation has another one (peers.h). A frame for a
// group goes to each peer, by one system call. The engine sees Ethernet frames with names for
// addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "port/frame_pool.h"
#include "port/port.h"
#include "udp/datagram.h"
#include "udp/datagram_socket.h"
#include "udp/device.h"
#include "udp/peers.h"
#include "udp/sender.h"
#include "wire/header.h"

namespace ulc::udp {

struct PortOptions {
    DeviceSpec device;
    /// Octets after the Ethernet header. 0: what a packet on Ethernet carries, or a longer one on
    /// the loopback interface (packet_octets()).
    std::uint16_t mtu = 0;
    std::uint16_t ether_type = 0x88B5;
    std::uint32_t segments = 4096;  ///< frames that senders may hold, and receivers
    seal::Seed seed;                ///< for the name, tokens and tables
    bool takes_secrets = false;     ///< without key=, add_secret() names the first one
};

class UdpPort {
public:
    /// Errors: those of Socket::open(), seal::read_secret() and FramePool::create(); kInvalid: it
    /// has no key. Not for the hot path.
    static Err open(const PortOptions& options, std::unique_ptr<UdpPort>& out, std::string& why);
    /// Opens the port over a socket that is open. Errors: the same without those of Socket::open().
    static Err open(const PortOptions& options, std::unique_ptr<DatagramSocket> socket,
                    std::unique_ptr<UdpPort>& out, std::string& why);
    UdpPort(const UdpPort&) = delete;
    UdpPort& operator=(const UdpPort&) = delete;

    /// Valid while this object lives; copies are fine.
    [[nodiscard]] const Port& port() const noexcept { return port_; }
    /// "udp 10.0.0.5:4001"
    [[nodiscard]] std::string name() const { return "udp " + text_of(socket_->local()); }
    [[nodiscard]] const Address& local() const noexcept { return socket_->local(); }
    [[nodiscard]] const Peers& peers() const noexcept { return peers_; }
    /// Returns where other nodes can ask for this one, "10.0.0.5:4001,…", at most kMeetingMax. Asks
    /// the kernel.
    [[nodiscard]] std::string addresses() const;
    /// Asks for a node at each of these. Engine thread.
    void meet(std::span<const Address> addresses);
    /// Takes a secret by which other nodes may seal, unless the net is open. False: it has
    /// seal::kSecretsMax others. Engine thread.
    [[nodiscard]] bool add_secret(const seal::Secret& secret) noexcept;
    /// Returns whether no node can be found before a secret is added.
    [[nodiscard]] bool needs_secret() const noexcept {
        return ring_ != nullptr && ring_->count() == 0;
    }

private:
    UdpPort(const PortOptions& options, const PeersConfig& config,
            std::unique_ptr<seal::Keyring> ring, std::unique_ptr<DatagramSocket> socket);
    void fill_table(const PortOptions& options);

    [[nodiscard]] std::uint16_t send(Segment* const* frames, std::uint16_t n);
    [[nodiscard]] std::uint32_t pending();
    [[nodiscard]] bool look();
    void answer();

    [[nodiscard]] std::uint16_t receive(Segment** out, std::uint16_t n);
    [[nodiscard]] Segment* take(const Landing* landing);
    [[nodiscard]] bool next_message();
    [[nodiscard]] bool next_datagram(std::span<const std::byte>& out);
    [[nodiscard]] bool is_plain(std::span<const std::byte> datagram) const noexcept;
    [[nodiscard]] bool take_control(std::span<const std::byte> datagram);
    [[nodiscard]] bool is_frame(std::span<const std::byte> datagram);
    [[nodiscard]] bool has_frame_kind(std::span<const std::byte> datagram);
    [[nodiscard]] Segment* open_frame(std::span<const std::byte> datagram, const Landing* landing);
    [[nodiscard]] Segment* take_open(std::span<const std::byte> datagram, const Landing* landing);
    [[nodiscard]] bool take_part(std::span<const std::byte> part);
    [[nodiscard]] Segment* copy_out(std::span<const std::byte> datagram, const Landing* landing);
    [[nodiscard]] Segment* new_segment();
    void put_header(Segment& segment, std::span<const std::byte> datagram);
    void know_sender() noexcept;

    Port port_;
    std::unique_ptr<seal::Keyring> ring_;  ///< nullptr: the net is open
    std::unique_ptr<DatagramSocket> socket_;
    Peers peers_;
    port::FramePool tx_pool_;
    port::FramePool rx_pool_;
    std::uint32_t frame_max_ = 0;

    Sender sender_;
    bool unsent_ = false;        ///< the kernel held datagrams when it was asked
    std::uint32_t unasked_ = 0;  ///< frames sent since then

    Arrived arrived_;
    std::size_t at_ = 0;  ///< in arrived_
    Address from_;        ///< its sender, and the name of the node there
    Mac name_;
    bool takes_plain_ = false;        ///< it has a name, and the net is open
    wire::EthernetHeader header_{};   ///< header of its frames for this node
    seal::PeerKeys* keys_ = nullptr;  ///< its keys
    std::uint64_t copied_bytes_ = 0;
    std::uint64_t no_frame_ = 0;
    std::int64_t failed_at_ = 0;  ///< millisecond in which a datagram was opened without success
    PortDrops drops_;
};

}  // namespace ulc::udp
