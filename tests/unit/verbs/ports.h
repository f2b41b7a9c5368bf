// SPDX-License-Identifier: BSD-3-Clause
// RDMA ports of a fabric in memory, for their tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/base/heap_watch.h"
#include "tests/unit/verbs/fabric.h"
#include "verbs/verbs_port.h"

namespace ulc::verbs {

using test::Fabric;
using test::FakeDevice;

inline constexpr std::uint32_t kFrameMax = 1024;
inline constexpr std::uint16_t kEtherType = 0x88B5;
inline constexpr std::uint32_t kQKey = 0x554c88b5;

inline std::vector<std::string> g_reports;

class VerbsPorts : public ::testing::Test {
protected:
    void SetUp() override { g_reports.clear(); }

    FakeDevice& device(std::uint8_t number) {
        while (fabric_.devices.size() <= number) {
            const auto next = static_cast<std::uint8_t>(fabric_.devices.size());
            fabric_.add("rxe" + std::to_string(next), static_cast<std::uint8_t>(next + 1));
        }
        return *fabric_.devices[number];
    }
    PortOptions options(std::uint8_t number) {
        device(number);
        PortOptions options;
        options.device.name = "rxe" + std::to_string(number);
        options.segments = 64;
        options.send_frames = 64;
        options.receive_frames = 64;
        options.report = [](const std::string& line) { g_reports.push_back(line); };
        return options;
    }
    VerbsPort& open(std::uint8_t number) { return open(options(number)); }
    VerbsPort& open(const PortOptions& options) {
        std::unique_ptr<VerbsPort> port;
        std::string why;
        if (VerbsPort::open(options, &fabric_.library(), port, why) != Err::kOk)
            throw std::runtime_error(why);
        ports_.push_back(std::move(port));
        return *ports_.back();
    }
    void close(const VerbsPort& port) {
        std::erase_if(ports_, [&](const auto& each) { return each.get() == &port; });
    }

    static Segment* frame(const VerbsPort& from, const Mac& to, std::uint32_t length,
                          std::uint8_t fill = 0x5a) {
        const Port& port = from.port();
        Segment* segment = port.pool.get();
        if (segment == nullptr) throw std::runtime_error("no segment");
        std::memset(segment->frame, fill, length);
        std::memcpy(segment->frame, &to, sizeof to);
        std::memcpy(segment->frame + 6, &port.info.mac, sizeof to);
        segment->length = length;
        return segment;
    }
    static bool send(const VerbsPort& from, const Mac& to, std::uint32_t length = 100,
                     std::uint8_t fill = 0x5a) {
        Segment* segment = frame(from, to, length, fill);
        if (from.port().tx(from.port().context, &segment, 1) == 1) return true;
        from.port().pool.drop(segment);
        return false;
    }
    /// Takes all that came, and returns the lengths.
    static std::vector<std::uint32_t> take(const VerbsPort& at) {
        std::vector<std::uint32_t> lengths;
        std::array<Segment*, 8> segments{};
        while (const std::uint16_t n = at.port().rx(at.port().context, segments.data(), 8)) {
            for (std::uint16_t i = 0; i < n; ++i) {
                lengths.push_back(segments[i]->length);
                at.port().pool.drop(segments[i]);
            }
        }
        return lengths;
    }
    static bool look(const VerbsPort& port) { return port.port().link_up(port.port().context); }
    static std::uint32_t pending(const VerbsPort& port) {
        return port.port().tx_pending(port.port().context);
    }
    static Mac mac(const VerbsPort& port) { return port.port().info.mac; }
    static std::uint32_t available(const VerbsPort& port) {
        return port.port().pool.available(port.port().pool.context);
    }
    /// a has heard b and b has heard a.
    static void acquaint(const VerbsPort& a, const VerbsPort& b) {
        EXPECT_TRUE(send(a, kBroadcastMac));
        EXPECT_TRUE(send(b, kBroadcastMac));
        EXPECT_EQ(take(a).size(), 1U);
        EXPECT_EQ(take(b).size(), 1U);
        EXPECT_EQ(pending(a) + pending(b), 0U);
    }
    std::vector<std::byte> payload(const Mac& to, const Mac& from, std::size_t length = 60) {
        std::vector<std::byte> bytes(length, std::byte{7});
        std::memcpy(bytes.data(), &to, sizeof to);
        std::memcpy(bytes.data() + 6, &from, sizeof from);
        return bytes;
    }

    Fabric fabric_;
    std::vector<std::unique_ptr<VerbsPort>> ports_;
};

}  // namespace ulc::verbs
