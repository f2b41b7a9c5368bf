// SPDX-License-Identifier: BSD-3-Clause
// A bond of links (port/bond_port.h) over ports that are lists of frames, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "port/bond_frame.h"
#include "port/bond_port.h"
#include "port/frame_pool.h"
#include "wire/header.h"

namespace ulc::port {

inline constexpr std::byte kData{0x11};  ///< version 1, DATA
inline constexpr std::byte kJob{0x06};
inline constexpr std::byte kNode{0x07};
inline constexpr std::byte kLink{0x0c};

inline Mac mac_of(unsigned node, unsigned link = 0) {
    return Mac{{2, 0, 0, 0, static_cast<std::uint8_t>(node), static_cast<std::uint8_t>(link)}};
}
inline constexpr BondConfig kConfig{wire::kEtherTypeDefault, 1000};
inline constexpr Mac kGroup{{3, 0x55, 0x4c, 0, 0, 1}};

/// A device: frames that it was given stay until done() or the test takes them.
struct Device {
    Port port;
    FramePool* pool = nullptr;
    bool up = true;
    std::size_t accepts = 1000;  ///< frames more
    std::deque<Segment*> with;   ///< given to it, not sent
    std::deque<Segment*> come;
    std::vector<Mac> multicasts;

    void done(std::size_t frames) {
        for (; frames > 0; --frames) {
            FramePool::put(with.front());
            with.pop_front();
        }
    }
};

/// Gives the device, which has a pool, its port.
inline void make_port(Device& device, const Mac& mac, std::uint64_t bits_per_second) {
    Port& port = device.port;
    port.context = &device;
    port.pool = device.pool->table();
    port.info.mac = mac;
    port.info.link_bits_per_second = bits_per_second;
    port.info.tx_ring_frames = 64;
    port.info.rx_frames = 100;
    port.rx = [](void* context, Segment** out, std::uint16_t most) {
        auto& self = *static_cast<Device*>(context);
        std::uint16_t count = 0;
        for (; count < most && !self.come.empty(); self.come.pop_front())
            out[count++] = self.come.front();
        return count;
    };
    port.tx = [](void* context, Segment* const* frames, std::uint16_t most) {
        auto& self = *static_cast<Device*>(context);
        std::uint16_t count = 0;
        for (; count < most && self.accepts > 0; --self.accepts)
            self.with.push_back(frames[count++]);
        return count;
    };
    port.tx_pending = [](void* context) {
        return static_cast<std::uint32_t>(static_cast<Device*>(context)->with.size());
    };
    port.set_multicasts = [](void* context, std::span<const Mac> addresses) {
        static_cast<Device*>(context)->multicasts.assign(addresses.begin(), addresses.end());
        return true;
    };
    port.link_up = [](void* context) { return static_cast<Device*>(context)->up; };
}

class Bond : public testing::Test {
protected:
    void make(unsigned links, std::vector<std::uint64_t> rates = {}) {
        std::string why;
        ASSERT_EQ(pool_.create(512, 1514, why), Err::kOk);
        std::vector<Port> ports;
        for (unsigned n = 0; n < links; ++n) {
            auto& device = *devices_.emplace_back(std::make_unique<Device>());
            device.pool = &pool_;
            make_port(device, mac_of(1, n), rates.empty() ? 100'000'000 : rates[n]);
            ports.push_back(device.port);
        }
        bond_ = std::make_unique<BondPort>(ports, kConfig);
        port_ = bond_->table();
    }
    void TearDown() override {
        bond_.reset();
        for (const auto& device : devices_) {
            device->done(device->with.size());
            for (Segment* segment : device->come)
                FramePool::put(segment);
        }
        if (devices_.empty()) return;
        EXPECT_EQ(pool_.table().available(&pool_), 512U) << "a frame is lost";
    }
    Segment* frame(const Mac& to, const Mac& from, std::byte type = kData,
                   std::uint32_t octets = 1000) {
        Segment* segment = pool_.get();
        std::memset(segment->frame, 0, octets);
        std::memcpy(segment->frame, &to, 6);
        std::memcpy(segment->frame + 6, &from, 6);
        segment->frame[14] = type;
        segment->length = octets;
        return segment;
    }
    bool send(const Mac& to, std::byte type = kData, std::uint32_t octets = 1000) {
        Segment* segment = frame(to, mac_of(1), type, octets);
        if (port_.tx(port_.context, &segment, 1) == 1) return true;
        FramePool::put(segment);
        return false;
    }
    /// The peer of number 2 has links of these speeds.
    void peer(const std::vector<std::uint32_t>& megabits) {
        std::vector<NodeAddress> addresses;
        for (unsigned n = 0; n < megabits.size(); ++n)
            addresses.push_back({mac_of(2, n), megabits[n]});
        port_.set_addresses(port_.context, addresses, true);
        asks_at_all_links(mac_of(2));
    }
    /// A node asks at each further link, and takes frames from there.
    void asks_at_all_links(const Mac& node) {
        for (unsigned n = 1; n < devices_.size(); ++n)
            asks(node, n, true);
    }
    void asks(const Mac& node, unsigned link, bool takes) {
        Segment* question = frame(mac_of(1, link), node, kNode, 60);
        question->frame[wire::kHeadOctets] = std::byte{8};
        question->frame[wire::kHeadOctets + 19] = static_cast<std::byte>(takes);
        arrive(link, question);
        EXPECT_EQ(received(), node) << "the engine answers it";
    }
    Nanos reorder_wait(std::uint32_t megabits = 0) {
        return port_.reorder_wait(port_.context, megabits);
    }
    void arrive(unsigned link, Segment* segment) { device(link).come.push_back(segment); }
    /// The source of the next frame, if it is for this node or a group; none: it was dropped.
    Mac received() {
        Segment* segment = nullptr;
        if (port_.rx(port_.context, &segment, 1) == 0) return {};
        Mac to, from;
        std::memcpy(&to, segment->frame, 6);
        std::memcpy(&from, segment->frame + 6, 6);
        EXPECT_TRUE((to.octets[0] & 1) != 0 || to == mac_of(1)) << "the node's first address";
        FramePool::put(segment);
        return from;
    }
    Device& device(unsigned link) { return *devices_[link]; }
    std::size_t with(unsigned link) { return device(link).with.size(); }

    FramePool pool_;
    std::vector<std::unique_ptr<Device>> devices_;
    std::unique_ptr<BondPort> bond_;
    Port port_;
};

}  // namespace ulc::port
