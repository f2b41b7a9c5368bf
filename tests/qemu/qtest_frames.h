// SPDX-License-Identifier: BSD-3-Clause
// Frames, addresses and fixture of the driver tests on QEMU's models.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "drivers/common/mac_address.h"
#include "drivers/common/ring_types.h"
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

/// A driver's chip and rings on a machine. `Driver` is the fixture that derives from it: it makes
/// all of these, and has peek(RxFrame&) and give_back() for the oldest received frame.
template <typename Driver, typename Bus, typename Chip, typename TxRing, typename RxRing>
class DriverOnQtest {
protected:
    /// Sends a frame in two parts, the first of `first_part` bytes.
    void send(const Frame& frame, std::size_t first_part) {
        std::memcpy(machine_->at(kTxFrame), frame.data(), frame.size());
        const auto first = static_cast<std::uint32_t>(first_part);
        const auto rest = static_cast<std::uint32_t>(frame.size() - first_part);
        const TxSegment segments[] = {{kTxFrame, first}, {kTxFrame + first, rest}};
        ASSERT_TRUE(tx_->post(std::span(segments).first(rest > 0 ? 2 : 1), this, 0));
        chip_->demand_transmit();
        TxDone done{};
        ASSERT_TRUE(tx_->reap(done));
        EXPECT_EQ(done.result, TxResult::kSent);
        EXPECT_EQ(done.frame, this);
    }

    /// Returns the next frame that was received; empty if none comes within 2 s.
    Frame receive() {
        auto& driver = static_cast<Driver&>(*this);
        RxFrame frame{};
        for (int tries = 0; tries < 2000; ++tries) {
            const RxVerdict verdict = driver.peek(frame);
            if (verdict == RxVerdict::kFrame) {
                const auto* at = static_cast<const std::byte*>(frame.owner);
                Frame copy(at, at + frame.octets);
                driver.give_back();
                return copy;
            }
            EXPECT_EQ(verdict, RxVerdict::kEmpty);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return {};
    }

    /// Returns true if frames to `address` are received: sends a frame to it, then one that is
    /// certainly received.
    [[nodiscard]] bool passes(const MacAddress& address) {
        const Frame asked = make_frame(address, 64, 1);
        const Frame sure = make_frame(kOwn, 64, 2);
        machine_->put_frame(asked);
        machine_->put_frame(sure);
        const Frame first = receive();
        if (first == sure) return false;
        EXPECT_TRUE(first == asked) << "neither frame came";
        return !first.empty() && receive() == sure;
    }

    /// Sends and receives a frame of `octets`, whose content depends on `seed`.
    void expect_both_ways(std::size_t octets, std::uint8_t seed, std::size_t first_part = 30) {
        const Frame out = make_frame(kPeer, octets, seed);
        send(out, first_part);
        ASSERT_EQ(machine_->get_frame(), std::optional(out)) << octets;
        const Frame in = make_frame(kOwn, octets, static_cast<std::uint8_t>(seed + 1));
        machine_->put_frame(in);
        ASSERT_EQ(receive(), in) << octets;
    }

    /// Sends and receives frames of 60 to 1514 bytes.
    void expect_every_size() {
        for (std::size_t octets = 60; octets <= 1514;
             octets += octets < 80 || octets > 1500 ? 1 : 13) {
            const std::size_t first = octets % 3 == 0 ? octets : 14 + octets % 40;
            expect_both_ways(octets, static_cast<std::uint8_t>(octets), first);
            if (testing::Test::HasFatalFailure()) return;
        }
    }

    static constexpr std::uint32_t kTxFrame = 0x0023'0000;  ///< bus address

    std::unique_ptr<QtestMachine> machine_;
    std::unique_ptr<Bus> bus_;
    std::unique_ptr<Chip> chip_;
    std::unique_ptr<TxRing> tx_;
    std::unique_ptr<RxRing> rx_;
};

}  // namespace ulc::nic
