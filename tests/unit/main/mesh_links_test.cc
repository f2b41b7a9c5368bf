// SPDX-License-Identifier: BSD-3-Clause
// The links of a node of a mesh are judged before the engine starts (main/mesh_links.h), by the
// announcements that they bring. The links are lists of frames.
#include "main/mesh_links.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <vector>

#include "port/frame_pool.h"
#include "wire/build.h"
#include "wire/forward.h"
#include "wire/job.h"
#include "wire/parse.h"

namespace ulc::daemon {
namespace {

constexpr std::uint16_t kEtherType = 0x88b5;
constexpr port::MeshPlace kPlace{2, 3};

Mac mac(std::uint8_t node, std::uint8_t link) { return Mac{{2, 0, 0, 0, node, link}}; }

class MeshLinks : public testing::Test {
protected:
    struct Device {
        Device* loop = nullptr;  ///< gets the frames that it sends
        std::deque<Segment*> come;
        std::vector<std::vector<std::byte>> sent;
        bool up = true;
        Port port;
    };

    void SetUp() override {
        std::string why;
        ASSERT_EQ(pool_.create(256, 1514, why), Err::kOk) << why;
        for (std::uint8_t link = 0; link < 2; ++link) {
            Port& port = devices_[link].port;
            port.context = &devices_[link];
            port.pool = pool_.table();
            port.info.mac = mac(1, link);
            port.rx = [](void* context, Segment** out, std::uint16_t most) {
                auto& come = static_cast<Device*>(context)->come;
                std::uint16_t count = 0;
                for (; count < most && !come.empty(); come.pop_front())
                    out[count++] = come.front();
                return count;
            };
            port.tx = [](void* context, Segment* const* frames, std::uint16_t count) {
                auto& self = *static_cast<Device*>(context);
                for (std::uint16_t n = 0; n < count; ++n) {
                    self.sent.emplace_back(frames[n]->frame, frames[n]->frame + frames[n]->length);
                    if (self.loop != nullptr) {
                        self.loop->come.push_back(frames[n]);
                    } else {
                        port::FramePool::put(frames[n]);
                    }
                }
                return count;
            };
            port.link_up = [](void* context) { return static_cast<Device*>(context)->up; };
        }
    }
    void TearDown() override {
        for (Device& device : devices_)
            for (Segment* segment : device.come)
                port::FramePool::put(segment);
        EXPECT_EQ(pool_.table().available(&pool_), 256U) << "a frame is lost";
    }
    /// Another node announces itself on the segment of a link; with hops: in FORWARD.
    void hear(unsigned link, std::vector<NodeAddress> addresses, int hops = -1) {
        Segment* segment = pool_.get();
        wire::NodeBody body{};
        body.kind = wire::NodeKind::kLinks;
        body.incarnation = 77;
        body.token = 5U;
        const std::size_t octets =
            wire::put_links(segment->frame + wire::kHeadOctets, body, addresses);
        wire::FrameHead head;
        head.destination = kBroadcastMac;
        head.source = addresses[0].mac;
        head.type = wire::FrameType::kNode;
        segment->length =
            static_cast<std::uint32_t>(wire::build_control(segment->frame, head, octets));
        if (hops >= 0) {
            Segment* inner = segment;
            segment = pool_.get();
            segment->length = static_cast<std::uint32_t>(
                wire::build_forward(segment->frame,
                                    {kBroadcastMac, head.source, static_cast<std::uint8_t>(hops),
                                     head.source, kBroadcastMac, 0},
                                    kEtherType, inner->frame, inner->length));
            port::FramePool::put(inner);
        }
        devices_[link].come.push_back(segment);
    }
    /// Returns the sentence of the refusal; empty: the links are accepted.
    std::string judge() {
        std::string why;
        const Err error =
            check_mesh(devices_[0].port, devices_[1].port, kPlace, "lan", kEtherType, why);
        EXPECT_EQ(error, why.empty() ? Err::kOk : Err::kInvalid);
        return why;
    }
    static bool has(const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    }

    port::FramePool pool_;
    std::array<Device, 2> devices_;
};

// N-40
TEST_F(MeshLinks, nodes_of_the_own_row_and_column_are_accepted) {
    hear(0, {{mac(2, 0), 100, 2}, {mac(2, 1), 100, 1}});
    hear(1, {{mac(3, 0), 100, 1}, {mac(3, 1), 100, 3}});
    EXPECT_EQ(judge(), "");
    ASSERT_FALSE(devices_[0].sent.empty());
    for (Device& device : devices_) {
        wire::FrameView frame;
        wire::NodeView node;
        ASSERT_EQ(wire::parse(device.sent[0].data(), device.sent[0].size(), kEtherType, frame),
                  Counter::kCount);
        ASSERT_TRUE(wire::parse_node(frame.body, frame.length, node));
        ASSERT_EQ(node.links.size(), 2U);
        EXPECT_EQ(frame.source, mac(1, 0));
        EXPECT_EQ(node.links[0].segment, kPlace.row);
        EXPECT_EQ(node.links[1].segment, kPlace.column);
    }
}

TEST_F(MeshLinks, a_node_of_another_row_is_refused) {
    hear(0, {{mac(2, 0), 100, 1}, {mac(2, 1), 100, 1}});
    EXPECT_TRUE(has(judge(), "of row 1, and is to be in row 2"));
}

// N-45
TEST_F(MeshLinks, announcements_in_forward_are_heard_on_their_first_segment) {
    hear(0, {{mac(2, 0), 100, 1}, {mac(2, 1), 100, 1}}, 0);
    EXPECT_EQ(judge(), "") << "of another segment, sent on";
    hear(0, {{mac(2, 0), 100, 1}, {mac(2, 1), 100, 1}}, 1);
    EXPECT_TRUE(has(judge(), "of row 1, and is to be in row 2"));
}

TEST_F(MeshLinks, a_node_of_another_column_is_refused) {
    hear(1, {{mac(2, 0), 100, 3}, {mac(2, 1), 100, 2}});
    EXPECT_TRUE(has(judge(), "of column 2, and is to be in column 3"));
}

// N-40
TEST_F(MeshLinks, a_node_in_the_same_place_is_refused) {
    hear(1, {{mac(2, 0), 100, 2}, {mac(2, 1), 100, 3}});
    EXPECT_TRUE(has(judge(), "02:00:00:00:02:00 is in row 2, column 3 of net lan already"));
}

TEST_F(MeshLinks, a_node_that_is_in_no_mesh_is_refused) {
    hear(0, {{mac(2, 0), 100}, {mac(2, 1), 100}});
    EXPECT_TRUE(has(judge(), "which is in no mesh"));
}

TEST_F(MeshLinks, both_links_on_one_segment_are_refused) {
    devices_[0].loop = &devices_[1];
    EXPECT_TRUE(has(judge(), "are on one segment"));
}

TEST_F(MeshLinks, a_link_that_is_down_announces_nothing) {
    devices_[1].up = false;
    EXPECT_EQ(judge(), "");
    EXPECT_TRUE(devices_[1].sent.empty());
}

TEST_F(MeshLinks, unlike_links_are_refused) {
    devices_[1].port.info.mtu = 9000;
    EXPECT_TRUE(has(judge(), "MTUs of 1500"));
    devices_[0].port.info.mtu = devices_[1].port.info.mtu = 580;
    EXPECT_TRUE(has(judge(), "a mesh needs 592"));
    devices_[0].port.info.mtu = devices_[1].port.info.mtu = 1500;
    devices_[1].port.info.mac = devices_[0].port.info.mac;
    EXPECT_TRUE(has(judge(), "have the address 02:00:00:00:01:00"));
}

}  // namespace
}  // namespace ulc::daemon
