// SPDX-License-Identifier: BSD-3-Clause
// A socket of UDP over IPv4 on a port that carries Ethernet frames: it plays the part of the
// kernel's network where the engine owns the NIC (docs/protocol/IP.md §18).
//
//   UdpPort ── send() ──▶ copy behind headers ──▶ next hop's MAC? ── known ──▶ to_send_ ──▶ port
//                                                       └ asked: unresolved_, until the reply
//   UdpPort ◀── receive() ── checked, in the port's frame ◀── port ──▶ ARP: answered here
//
// A frame that came is checked, counted by reason and dropped. ARP and pings alone are answered.
// Invariant: to_send_ takes a message only while it holds less than kBurst frames, so that it has
// space for a message and for all of unresolved_. Engine thread only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bounded.h"
#include "base/error.h"
#include "base/units.h"
#include "ip/arp_table.h"
#include "ip/packet.h"
#include "port/port.h"
#include "udp/datagram_socket.h"

namespace ulc::ip {

struct SocketOptions {
    Ipv4 address = 0;
    std::uint8_t prefix = 0;
    std::uint16_t port = 0;
    Ipv4 gateway = 0;        ///< 0: nodes of the subnet alone are reached
    std::uint16_t vlan = 0;  ///< 0: frames have no tag
    std::uint64_t seed = 0;  ///< random bits that strangers do not know
    Nanos (*clock)() = nullptr;
};

class IpSocket final : public udp::DatagramSocket {
public:
    static constexpr std::size_t kBurst = 64;
    static constexpr std::size_t kUnresolvedMax = 64;  ///< frames that wait for ARP
    static constexpr Nanos kEchoApart = kMillisecond;  ///< between answers to pings

    /// below: one link that passes frames of all types, and that outlives this. Errors: kInvalid
    /// (an MTU too small for UDP).
    static Err open(const Port& below, const SocketOptions& options, std::unique_ptr<IpSocket>& out,
                    std::string& why);
    ~IpSocket() override;

    [[nodiscard]] const udp::Address& local() const noexcept override { return local_; }
    [[nodiscard]] std::uint16_t packet_octets() const noexcept override { return packet_octets_; }
    [[nodiscard]] std::size_t send(std::span<const udp::Message> messages,
                                   int& error) noexcept override;
    [[nodiscard]] std::size_t unsent() noexcept override;
    [[nodiscard]] bool receive(udp::Arrived& out) noexcept override;
    [[nodiscard]] bool look() override;
    [[nodiscard]] std::uint64_t overruns() const noexcept override;
    [[nodiscard]] PortCosts costs() const override;
    [[nodiscard]] PortDrops drops() const override;

    /// Returns how many frames were dropped for that reason.
    [[nodiscard]] std::uint64_t dropped(Reason reason) const noexcept {
        return dropped_[static_cast<std::size_t>(reason)];
    }
    /// Returns the counts as text, "3 fragments, 1 of another VLAN"; empty: nothing was dropped.
    [[nodiscard]] std::string drops_as_text() const;

private:
    struct Unresolved {
        Segment* frame = nullptr;
        Ipv4 hop = 0;
    };

    IpSocket(const Port& below, const SocketOptions& options, std::uint16_t packet_octets);
    void drop(Reason reason, std::uint64_t frames = 1) noexcept {
        dropped_[static_cast<std::size_t>(reason)] += frames;
    }

    [[nodiscard]] int take(const udp::Message& message) noexcept;
    [[nodiscard]] int hop_to(Ipv4 to, Ipv4& hop) noexcept;
    void put(const udp::Message& message, std::size_t octets, std::size_t each, Ipv4 hop,
             const Mac* mac) noexcept;
    void keep_for_self(const udp::Message& message, std::size_t octets);
    [[nodiscard]] bool flush() noexcept;
    void send_resolved(Ipv4 hop, const Mac& mac) noexcept;
    void drop_unanswered() noexcept;
    void send_questions() noexcept;
    void send_arp(std::uint16_t operation, const Mac& to, const Mac& target,
                  Ipv4 target_ip) noexcept;
    void send_now(Segment* segment, std::size_t octets) noexcept;

    [[nodiscard]] bool read(const Segment& frame, udp::Arrived& out) noexcept;
    [[nodiscard]] Reason answer_echo(const Packet& request, const Mac& from) noexcept;
    void take_arp(std::span<const std::byte> body);
    void give(Ipv4 from, std::uint16_t port, std::span<const std::byte> octets,
              udp::Arrived& out) noexcept;
    void follow_address();

    Port below_;
    Station station_;
    Ipv4 gateway_;
    Nanos (*clock_)();
    udp::Address local_;
    std::uint16_t packet_octets_;
    ArpTable neighbours_;
    bool was_up_ = false;
    Nanos next_echo_ = 0;  ///< pings are answered again

    FixedVector<Segment*, 2 * kBurst + kUnresolvedMax> to_send_;
    FixedVector<Unresolved, kUnresolvedMax> unresolved_;
    std::uint64_t refusals_ = 0;
    std::uint64_t copied_bytes_ = 0;

    std::array<Segment*, kBurst> came_{};
    std::uint16_t came_count_ = 0;
    std::uint16_t came_next_ = 0;
    Segment* given_ = nullptr;         ///< holds the octets of the last message
    udp::SocketAddress from_;          ///< its sender
    std::vector<std::byte> for_self_;  ///< a datagram to the own address
    bool has_for_self_ = false;
    std::array<std::uint64_t, kReasons> dropped_{};
};

}  // namespace ulc::ip
