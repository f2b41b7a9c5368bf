// SPDX-License-Identifier: BSD-3-Clause
// A UDP socket of an ordinary user. One system call sends messages to many addresses, each of up to
// 64 datagrams of one size that the kernel cuts (UDP_SEGMENT, udp(7)); one call receives up to
// kBatch messages, in each of which the kernel joined datagrams of one sender (UDP_GRO). Engine
// thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "udp/datagram_socket.h"

namespace ulc::udp {

class Socket final : public DatagramSocket {
public:
    static constexpr std::size_t kBatch = 8;

    Socket() noexcept;
    ~Socket() override;

    /// Binds to the address; port 0: one that is free. Errors: kInvalid (no such address here, or
    /// the port is in use), kSystem.
    Err open(const Address& address, std::string& why);
    [[nodiscard]] const Address& local() const noexcept override { return local_; }
    [[nodiscard]] std::uint16_t packet_octets() const noexcept override;
    [[nodiscard]] std::size_t send(std::span<const Message> messages, int& error) noexcept override;
    [[nodiscard]] std::size_t unsent() noexcept override;
    /// Gives one message a call after a long one, so that its octets are still in the cache when
    /// they are copied on.
    [[nodiscard]] bool receive(Arrived& out) noexcept override;
    [[nodiscard]] bool look() override { return true; }
    [[nodiscard]] std::uint64_t overruns() const noexcept override { return overruns_; }
    [[nodiscard]] PortCosts costs() const override { return {counts_.sends, counts_.refusals, 0}; }
    [[nodiscard]] PortDrops drops() const override { return {}; }
    /// Returns the octets of datagrams that wait here before the kernel drops others, with what it
    /// adds to each.
    [[nodiscard]] std::size_t receive_space() const noexcept;

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
