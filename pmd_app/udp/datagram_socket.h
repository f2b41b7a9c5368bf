// SPDX-License-Identifier: BSD-3-Clause
// A socket for datagrams as UdpPort uses it: of the kernel (udp_socket.h), or of IP that the engine
// speaks itself on a NIC (ip/ip_socket.h). Engine thread only.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "port/port.h"
#include "udp/address.h"
#include "udp/message.h"

namespace ulc::udp {

/// Datagrams of one sender, one behind the other.
struct Arrived {
    const sockaddr* from = nullptr;
    std::span<const std::byte> octets;
    std::size_t datagram_octets = 0;  ///< length of each but the last
    bool truncated = false;
};

class DatagramSocket {
public:
    virtual ~DatagramSocket() = default;
    DatagramSocket(const DatagramSocket&) = delete;
    DatagramSocket& operator=(const DatagramSocket&) = delete;

    /// Returns the address with its port.
    [[nodiscard]] virtual const Address& local() const noexcept = 0;
    /// Returns the octets of the longest packet, with its IP header.
    [[nodiscard]] virtual std::uint16_t packet_octets() const noexcept = 0;
    /// Sends the first k messages, and returns k. `error`: errno of the next one; EAGAIN: later;
    /// EMSGSIZE: it is longer than a packet.
    [[nodiscard]] virtual std::size_t send(std::span<const Message> messages,
                                           int& error) noexcept = 0;
    /// Returns the octets that were taken and not sent, with what each packet adds.
    [[nodiscard]] virtual std::size_t unsent() noexcept = 0;
    /// Gives the next message, valid until the next call. False: none is there, or this call has
    /// done its share of work.
    [[nodiscard]] virtual bool receive(Arrived& out) noexcept = 0;
    /// Sends what is due, and returns whether the link is up. Called every 1 to 10 ms.
    [[nodiscard]] virtual bool look() = 0;
    /// Returns datagrams that were lost because this process was late.
    [[nodiscard]] virtual std::uint64_t overruns() const noexcept = 0;
    [[nodiscard]] virtual PortCosts costs() const = 0;
    [[nodiscard]] virtual PortDrops drops() const = 0;

protected:
    DatagramSocket() = default;
};

}  // namespace ulc::udp
