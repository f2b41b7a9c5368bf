// SPDX-License-Identifier: BSD-3-Clause
// A UDP socket of an ordinary user. One system call sends messages to many addresses, each of up to
// 64 datagrams of one size that the kernel cuts (UDP_SEGMENT, udp(7)); one call receives up to
// kBatch messages, in each of which the kernel joined datagrams of one sender (UDP_GRO). Engine
// thread only.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
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

class Socket {
public:
    static constexpr std::size_t kBatch = 8;

    Socket() noexcept;
    ~Socket();
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    /// Binds to the address; port 0: one that is free. Errors: kInvalid (no such address here, or
    /// the port is in use), kSystem.
    Err open(const Address& address, std::string& why);
    /// Returns the address with its port.
    [[nodiscard]] const Address& local() const noexcept { return local_; }

    /// Sends the first k messages, and returns k. `error`: errno of the next one; EAGAIN: later.
    [[nodiscard]] std::size_t send(std::span<const Message> messages, int& error) noexcept;
    /// Returns the octets that the kernel holds and has not sent, with what it adds to each packet.
    [[nodiscard]] std::size_t unsent() const noexcept;
    /// Gives the next message, valid until the next call. False: none is there, or all that a call
    /// received were given: the next call asks the kernel again. After a long message one comes a
    /// call, so that it is still in the cache when its octets are copied on.
    [[nodiscard]] bool receive(Arrived& out) noexcept;
    /// Returns the octets of datagrams that wait here before the kernel drops others, with what it
    /// adds to each.
    [[nodiscard]] std::size_t receive_space() const noexcept;
    /// Returns datagrams that the kernel dropped because this process was late.
    [[nodiscard]] std::uint64_t overruns() const noexcept { return overruns_; }

    struct Counts {
        std::uint64_t sends = 0;  ///< system calls
        std::uint64_t receives = 0;
        std::uint64_t refusals = 0;  ///< sends that left messages over
    };
    [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

private:
    static constexpr std::size_t kControlOctets = 64;
    struct Batch;

    int fd_ = -1;
    Address local_;
    std::unique_ptr<Batch> batch_;
    std::size_t arrived_ = 0;  ///< messages in it
    std::size_t taken_ = 0;
    std::size_t asked_ = kBatch;  ///< messages that the next call takes
    bool drained_ = false;        ///< a call received fewer than it could, so the next one may wait
    std::uint64_t overruns_ = 0;
    Counts counts_;
};

}  // namespace ulc::udp
