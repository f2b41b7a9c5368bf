// SPDX-License-Identifier: BSD-3-Clause
// Parts of the tests of ports over UDP.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "seal/keys.h"
#include "udp/datagram.h"
#include "udp/udp_socket.h"

namespace ulc::udp {

inline seal::Secret secret_of(std::uint8_t n) {
    std::array<std::uint8_t, 16> nonce{};
    nonce.fill(n);
    return seal::secret_of_nonce(nonce);
}

/// A network between two ports, which keeps the sealed frames for one of them.
class Relay {
public:
    explicit Relay(const Address& to) : to_(to) {
        Address own;
        EXPECT_TRUE(read_ip("127.0.0.1", own));
        std::string why;
        EXPECT_EQ(socket_.open(own, why), Err::kOk) << why;
    }
    [[nodiscard]] const Address& local() const { return socket_.local(); }
    /// Passes on what came from the other side to `to`, and what came from `to` to the other side.
    void run() {
        Arrived arrived;
        while (socket_.receive(arrived)) {
            const Address from = address_of(*arrived.from);
            if (from != to_) other_ = from;
            const std::size_t each = arrived.datagram_octets;
            for (auto left = arrived.octets; !left.empty();
                 left = left.subspan(std::min(each, left.size()))) {
                const auto one = left.first(std::min(each, left.size()));
                if (one.size() > limit) continue;
                if (from != to_ && one[0] == std::byte{0x20})
                    kept.emplace_back(one.begin(), one.end());
                send(from == to_ ? other_ : to_, one);
            }
        }
    }
    void send(const Address& to, std::span<const std::byte> octets) {
        const SocketAddress address = socket_address(to);
        iovec piece{const_cast<std::byte*>(octets.data()), octets.size()};
        const Message message{&address, &piece, 1, 0};
        int error = 0;
        EXPECT_EQ(socket_.send({&message, 1}, error), 1U);
    }
    std::vector<std::vector<std::byte>> kept;
    std::size_t limit = SIZE_MAX;  ///< longest datagram that it passes on

private:
    Address to_;
    Address other_;
    Socket socket_;
};

}  // namespace ulc::udp
