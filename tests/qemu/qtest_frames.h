// SPDX-License-Identifier: BSD-3-Clause
// Frames and addresses of the driver tests on QEMU's models.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "drivers/common/mac_address.h"
#include "qtest.h"

namespace ulc::nic {

inline constexpr MacAddress kOwn{0x02, 0x21, 0x14, 0x30, 0x00, 0x01};
inline constexpr const char* kOwnText = "02:21:14:30:00:01";
inline constexpr MacAddress kPeer{0x02, 0x21, 0x14, 0x30, 0x00, 0x02};

using Frame = std::vector<std::byte>;

/// Returns a frame to `to` from kPeer, whose content depends on `seed`.
[[nodiscard]] inline Frame make_frame(const MacAddress& to, std::size_t octets, std::uint8_t seed) {
    Frame frame(octets);
    for (std::size_t i = 0; i < octets; ++i)
        frame[i] = static_cast<std::byte>(seed + i * 7);
    std::memcpy(frame.data(), to.data(), 6);
    std::memcpy(frame.data() + 6, kPeer.data(), 6);
    frame[12] = std::byte{0x88};
    frame[13] = std::byte{0xb5};
    return frame;
}

// Each test gives its driver's way to send a frame in two parts, and to receive one.

/// Returns true if frames to `address` are received: sends a frame to it, then one that is
/// certainly received.
template <typename Receive>
[[nodiscard]] bool passes(QtestMachine& machine, const MacAddress& address, Receive receive) {
    const Frame asked = make_frame(address, 64, 1);
    const Frame sure = make_frame(kOwn, 64, 2);
    machine.put_frame(asked);
    machine.put_frame(sure);
    const Frame first = receive();
    if (first == sure) return false;
    EXPECT_TRUE(first == asked) << "neither frame came";
    return !first.empty() && receive() == sure;
}

/// Sends and receives a frame of `octets`, whose content depends on `seed`.
template <typename Send, typename Receive>
void expect_both_ways(QtestMachine& machine, std::size_t octets, std::uint8_t seed,
                      std::size_t first_part, Send send, Receive receive) {
    const Frame out = make_frame(kPeer, octets, seed);
    send(out, first_part);
    ASSERT_EQ(machine.get_frame(), std::optional(out)) << octets;
    const Frame in = make_frame(kOwn, octets, static_cast<std::uint8_t>(seed + 1));
    machine.put_frame(in);
    ASSERT_EQ(receive(), in) << octets;
}

/// Sends and receives frames of 60 to 1514 bytes.
template <typename Send, typename Receive>
void expect_every_size(QtestMachine& machine, Send send, Receive receive) {
    for (std::size_t octets = 60; octets <= 1514; octets += octets < 80 || octets > 1500 ? 1 : 13) {
        const std::size_t first = octets % 3 == 0 ? octets : 14 + octets % 40;
        expect_both_ways(machine, octets, static_cast<std::uint8_t>(octets), first, send, receive);
        if (testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace ulc::nic
