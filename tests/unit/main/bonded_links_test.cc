// SPDX-License-Identifier: BSD-3-Clause
// Links of one net are judged before the engine starts (main/bonded_links.h): MTUs, addresses, one
// segment. The segments are lists of frames.
#include "main/bonded_links.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "port/frame_pool.h"
#include "port/node_frame.h"

namespace ulc::daemon {
namespace {

class BondedLinks : public testing::Test {
protected:
    struct Device {
        BondedLinks* test = nullptr;
        unsigned segment = 0;
        bool up = true;
        std::deque<Segment*> come;
        Port port;
    };

    void SetUp() override {
        std::string why;
        ASSERT_EQ(pool_.create(256, 1514, why), Err::kOk) << why;
    }
    void TearDown() override {
        for (const auto& device : devices_)
            for (Segment* segment : device->come)
                port::FramePool::put(segment);
    }

    Device& add(unsigned segment, std::uint16_t mtu = 1500) {
        auto& device = *devices_.emplace_back(std::make_unique<Device>());
        device.test = this;
        device.segment = segment;
        device.port.context = &device;
        device.port.pool = pool_.table();
        device.port.info.mtu = mtu;
        device.port.info.mac = {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(devices_.size())}};
        device.port.rx = [](void* context, Segment** out, std::uint16_t most) {
            auto& come = static_cast<Device*>(context)->come;
            std::uint16_t count = 0;
            for (; count < most && !come.empty(); come.pop_front())
                out[count++] = come.front();
            return count;
        };
        device.port.tx = [](void* context, Segment* const* frames, std::uint16_t count) {
            auto& from = *static_cast<Device*>(context);
            for (std::uint16_t n = 0; n < count; ++n)
                from.test->flood(from, frames[n]);
            return count;
        };
        device.port.link_up = [](void* context) { return static_cast<Device*>(context)->up; };
        return device;
    }

    /// Brings a frame to the other devices of the segment.
    void flood(const Device& from, Segment* frame) {
        for (const auto& device : devices_) {
            if (device.get() == &from || device->segment != from.segment || !device->up) continue;
            from.port.pool.hold(frame);
            device->come.push_back(frame);
        }
        from.port.pool.drop(frame);
    }

    /// Returns the sentence of the refusal; empty: the links are accepted.
    std::string judge() {
        std::vector<Port> ports;
        for (const auto& device : devices_)
            ports.push_back(device->port);
        std::string why;
        const Err error = check_links(ports, "lan", 0x88b5, 7, why);
        EXPECT_EQ(error, why.empty() ? Err::kOk : Err::kInvalid);
        return why;
    }

    port::FramePool pool_;
    std::vector<std::unique_ptr<Device>> devices_;
};

TEST_F(BondedLinks, links_of_one_segment_are_accepted) {
    add(0);
    add(0);
    add(0);
    EXPECT_EQ(judge(), "");
}

TEST_F(BondedLinks, links_of_different_segments_are_named_by_their_addresses) {
    add(0);
    add(0);
    add(1);
    add(1);
    EXPECT_EQ(judge(),
              "the links 02:00:00:00:00:01 and 02:00:00:00:00:03 of net lan are on different "
              "segments; join both to one switch, or give them different net names");
}

TEST_F(BondedLinks, forged_announcements_join_no_segments) {
    add(0);
    add(1);
    const std::array addresses{NodeAddress{devices_[0]->port.info.mac, 1},
                               NodeAddress{devices_[1]->port.info.mac, 1}};
    for (Device* at : {devices_[0].get(), devices_[1].get()}) {
        for (const std::uint64_t number : {1U, 2U}) {
            Port port = at->port;
            port.tx = [](void* context, Segment* const* frames, std::uint16_t) {
                static_cast<Device*>(context)->come.push_back(frames[0]);
                return std::uint16_t{1};
            };
            port::broadcast_links(port, 0x88b5, 1, number, addresses);
        }
    }
    EXPECT_NE(judge().find("are on different segments"), std::string::npos);
}

TEST_F(BondedLinks, a_link_that_is_down_is_not_judged) {
    add(0);
    add(1).up = false;
    EXPECT_EQ(judge(), "");
}

TEST_F(BondedLinks, different_mtus_are_refused) {
    add(0);
    add(0, 9000);
    EXPECT_EQ(judge(),
              "the links of net lan have MTUs of 1500 (02:00:00:00:00:01) and 9000 "
              "(02:00:00:00:00:02); give --mtu 1500 or set both alike");
}

TEST_F(BondedLinks, two_links_with_one_address_are_refused) {
    add(0);
    add(0).port.info.mac = devices_[0]->port.info.mac;
    EXPECT_EQ(judge(), "two links of net lan have the address 02:00:00:00:00:01; change one");
}

}  // namespace
}  // namespace ulc::daemon
