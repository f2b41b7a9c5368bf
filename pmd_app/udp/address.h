// SPDX-License-Identifier: BSD-3-Clause
// The address of a UDP socket, IPv4 or IPv6, as tables and datagrams hold it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ulc::udp {

/// An IPv4 address stands as ::ffff:a.b.c.d (RFC 4291 §2.5.5.2). All octets zero: none.
struct Address {
    std::array<std::uint8_t, 16> ip{};
    std::uint16_t port = 0;

    [[nodiscard]] bool is_v4() const noexcept;
    /// True for 0.0.0.0 and ::, which mean all addresses of this machine.
    [[nodiscard]] bool is_any() const noexcept;
    /// True for 127.0.0.0/8 and ::1, by which this machine alone is reached.
    [[nodiscard]] bool is_loopback() const noexcept;
    // clang-tidy takes the 0 that a comparison is compared with for a null pointer.
    auto operator<=>(const Address&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// An address in the form of the kernel.
struct SocketAddress {
    union {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
    };
    socklen_t octets = 0;

    SocketAddress() noexcept : v6{} {}
};

[[nodiscard]] SocketAddress socket_address(const Address& address) noexcept;
/// Returns the address of a datagram that the kernel gave. No address: its family is another one.
[[nodiscard]] Address address_of(const sockaddr& from) noexcept;

/// Reads "10.0.0.5:4001" or "[fd00::5]:4001". False: it is neither, or the port is 0.
[[nodiscard]] bool read_address(std::string_view text, Address& out);
/// Reads "10.0.0.5" or "fd00::5"; the port stays. False: it is neither.
[[nodiscard]] bool read_ip(std::string_view text, Address& out);
/// Returns the addresses of this machine's interfaces that are up, of that IP version, with that
/// port, at most `most`: none that holds on one link alone, and those of loopback if there are no
/// others. Asks the kernel.
[[nodiscard]] std::vector<Address> addresses_here(bool v4, std::uint16_t port, std::size_t most);
/// Asks the resolver for the addresses of a name and port, "node1:4001". Blocks, maybe for seconds.
/// Errors: kInvalid (it has none of that IP version).
Err resolve(const std::string& name, bool v4, std::vector<Address>& out, std::string& why);
/// Returns text that read_address() reads.
[[nodiscard]] std::string text_of(const Address& address);

}  // namespace ulc::udp
