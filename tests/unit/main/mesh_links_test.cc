// SPDX-License-Identifier: BSD-3-Clause
// The links of a node of a mesh are judged before the engine starts (main/mesh_links.h), by the
// announcements that they bring. The links are lists of frames.
#include "main/mesh_links.h"

#include <gtest/gtest.h>

#include <algorithm>
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
        MeshLinks* test = nullptr;
        Device* loop = nullptr;  ///< gets the frames that it sends
        std::deque<Segment*> come;
        std::vector<std::vector<std::byte>> sent;
        std::vector<std::vector<NodeAddress>> nodes;  ///< reply to questions at any address
        unsigned questions = 0;
        std::uint64_t last_token = 0;
        bool up = true;
        Port port;
    };

    void SetUp() override {
        std::string why;
        ASSERT_EQ(pool_.create(256, 1514, why), Err::kOk) << why;
        for (std::uint8_t link = 0; link < 2; ++link) {
            devices_[link].test = this;
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
                    self.test->reply(self, *frames[n]);
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
    /// Puts LINKS of a node, or its LINKS_REPLY, into a frame.
    Segment* links_of(const std::vector<NodeAddress>& addresses, wire::NodeKind kind, const Mac& to,
                      std::uint64_t token, std::uint32_t life = 77) {
        Segment* segment = pool_.get();
        wire::NodeBody body{};
        body.kind = kind;
        body.incarnation = life;
        body.token = token;
        std::byte* const at = segment->frame + wire::kHeadOctets;
        const std::size_t octets = kind == wire::NodeKind::kLinks
                                       ? wire::put_links(at, body, addresses)
                                       : wire::put_links_reply(at, body, 5, addresses);
        wire::FrameHead head;
        head.destination = to;
        head.source = addresses[0].mac;
        head.type = wire::FrameType::kNode;
        segment->length =
            static_cast<std::uint32_t>(wire::build_control(segment->frame, head, octets));
        return segment;
    }
    /// A node, which replies to questions, announces itself on the segment of a link.
    void hear(unsigned link, const std::vector<NodeAddress>& addresses, int hops = -1) {
        devices_[link].nodes.push_back(addresses);
        announce(link, addresses, hops);
    }
    /// Some node announces these addresses on the segment of a link; with hops: in FORWARD.
    void announce(unsigned link, const std::vector<NodeAddress>& addresses, int hops = -1,
                  std::uint32_t life = 77) {
        Segment* segment = links_of(addresses, wire::NodeKind::kLinks, kBroadcastMac, 5, life);
        if (hops >= 0) {
            Segment* inner = segment;
            segment = pool_.get();
            segment->length = static_cast<std::uint32_t>(wire::build_forward(
                segment->frame,
                {kBroadcastMac, addresses[0].mac, static_cast<std::uint8_t>(hops), addresses[0].mac,
                 kBroadcastMac, 0},
                kEtherType, inner->frame, inner->length));
            port::FramePool::put(inner);
        }
        devices_[link].come.push_back(segment);
    }
    /// The node at the address that a frame asks replies to it.
    void reply(Device& device, const Segment& question) {
        wire::FrameView frame;
        wire::NodeView node;
        if (wire::parse(question.frame, question.length, kEtherType, frame) != Counter::kCount ||
            !wire::parse_node(frame.body, frame.length, node) ||
            node.kind != wire::NodeKind::kLinksRequest)
            return;
        EXPECT_EQ(frame.source, device.port.info.mac) << "N-54";
        ++device.questions;
        device.last_token = node.token;
        const auto* head = reinterpret_cast<const wire::EthernetHeader*>(question.frame);
        for (const auto& addresses : device.nodes)
            if (std::ranges::find(addresses, head->destination, &NodeAddress::mac) !=
                addresses.end())
                device.come.push_back(
                    links_of(addresses, wire::NodeKind::kLinksReply, frame.source, node.token));
    }
    /// Returns the sentence of the refusal; empty: the links are accepted.
    std::string judge() {
        std::string why;
        const Err error =
            check_mesh(devices_[0].port, devices_[1].port, kPlace, "lan", kEtherType, 1, why);
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

// N-60
TEST_F(MeshLinks, no_announcement_that_its_node_does_not_confirm_refuses_a_start) {
    announce(0, {{mac(2, 0), 100, 1}, {mac(2, 1), 100, 1}});  // of another row
    announce(1, {{mac(3, 0), 100, 2}, {mac(3, 1), 100, 3}});  // in this place
    announce(0, {{mac(4, 0), 100}, {mac(4, 1), 100}});        // in no mesh
    announce(1, {{mac(1, 0), 100, 2}, {mac(1, 1), 100, 3}});  // with this node's addresses
    EXPECT_EQ(judge(), "");
    EXPECT_GT(devices_[0].questions + devices_[1].questions, 3U) << "each was asked";
}

// N-60
TEST_F(MeshLinks, a_node_whose_announcement_was_forged_says_so) {
    devices_[0].nodes.push_back({{mac(2, 0), 100, 2}, {mac(2, 1), 100, 1}});
    announce(0, {{mac(2, 0), 100, 1}, {mac(2, 1), 100, 1}});
    EXPECT_EQ(judge(), "");
    EXPECT_LE(devices_[0].questions, 2U) << "its reply ended that";
}

TEST_F(MeshLinks, a_reply_with_another_token_confirms_nothing) {
    announce(0, {{mac(2, 0), 100, 1}, {mac(2, 1), 100, 1}});
    devices_[0].come.push_back(links_of({{mac(2, 0), 100, 1}, {mac(2, 1), 100, 1}},
                                        wire::NodeKind::kLinksReply, mac(1, 0), 5));
    EXPECT_EQ(judge(), "");
}

TEST_F(MeshLinks, a_forged_announcement_hides_no_node_that_is_there) {
    announce(0, {{mac(2, 0), 100, 1}, {mac(9, 9), 100, 1}});
    announce(1, {{mac(3, 0), 100, 1}, {mac(9, 9), 100, 4}});
    hear(1, {{mac(3, 0), 100, 1}, {mac(3, 1), 100, 4}});
    EXPECT_TRUE(has(judge(), "of column 4, and is to be in column 3"));
}

TEST_F(MeshLinks, many_forged_announcements_are_bounded) {
    for (std::uint8_t n = 10; n < 110; ++n)
        announce(0, {{mac(n, 0), 100, 1}, {mac(n, 1), 100, 1}});
    EXPECT_EQ(judge(), "");
    EXPECT_LE(devices_[0].questions, 100U + 64U * 50U);
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
