// SPDX-License-Identifier: BSD-3-Clause
// UDP, IPv4 and ARP of the engine's own (ip/ip_socket.h), over a hub that the test reads and
// changes: sockets find each other, follow a gateway, and count and drop all that is wrong. Two
// ports of udp/ exchange frames over such sockets.
#include "ip/ip_socket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "port/frame_pool.h"
#include "udp/udp_port.h"

namespace ulc::ip {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Ipv4 kNet = 0x0a000000;  // 10.0.0.0/24
constexpr std::uint16_t kPort = 30791;
constexpr Ipv4 kFar = 0xc0a80009;  // 192.168.0.9
Nanos now = 0;

udp::Address address_of(Ipv4 ip, std::uint16_t port = kPort) {
    udp::Address address;
    EXPECT_TRUE(udp::read_ip(std::to_string(ip >> 24U) + "." + std::to_string(ip >> 16U & 255U) +
                                 "." + std::to_string(ip >> 8U & 255U) + "." +
                                 std::to_string(ip & 255U),
                             address));
    address.port = port;
    return address;
}

/// A station of the hub: its port below, and its socket.
struct Host {
    port::FramePool pool;
    Port below;
    std::deque<Segment*> come;
    std::vector<Bytes>* wire = nullptr;
    std::size_t accepts = SIZE_MAX;
    InterfaceState interface;
    std::unique_ptr<IpSocket> owned;
    IpSocket* socket = nullptr;
    Mac mac;
    Ipv4 ip = 0;
};

class IpSockets : public testing::Test {
protected:
    static constexpr std::uint32_t kSegments = 300;
    static constexpr std::uint16_t kMtu = 1500;

    void SetUp() override { now = kSecond; }
    void TearDown() override {
        port_.reset();
        other_port_.reset();
        for (const auto& each : hosts_) {
            each->owned.reset();
            for (Segment* const segment : each->come)
                port::FramePool::put(segment);
            EXPECT_EQ(each->below.pool.available(each->below.pool.context), kSegments)
                << "a frame is lost";
        }
    }

    Host& add(Ipv4 gateway = 0, std::uint16_t vlan = 0) {
        auto& self = *hosts_.emplace_back(std::make_unique<Host>());
        std::string why;
        EXPECT_EQ(self.pool.create(kSegments, kMtu + 18, why), Err::kOk);
        const auto number = static_cast<std::uint8_t>(hosts_.size());
        self.wire = &wire_;
        self.mac = Mac{{2, 0, 0, 0, 0, number}};
        self.ip = kNet + number;
        Port& port = self.below;
        port.context = &self;
        port.pool = self.pool.table();
        port.info.mac = self.mac;
        port.info.mtu = kMtu;
        port.rx = [](void* context, Segment** out, std::uint16_t n) {
            auto& come = static_cast<Host*>(context)->come;
            std::uint16_t count = 0;
            for (; count < n && !come.empty(); come.pop_front())
                out[count++] = come.front();
            return count;
        };
        port.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
            auto& me = *static_cast<Host*>(context);
            std::uint16_t count = 0;
            for (; count < n && me.accepts > 0; --me.accepts) {
                Segment* const frame = frames[count++];
                me.wire->emplace_back(frame->frame, frame->frame + frame->length);
                port::FramePool::put(frame);
            }
            return count;
        };
        self.interface = {"eth0", self.mac, self.mac, true, kMtu};
        port.interface = [](void* context) -> const InterfaceState* {
            return &static_cast<Host*>(context)->interface;
        };
        port.take_address = [](void* context) {
            auto& me = *static_cast<Host*>(context);
            return me.mac = me.interface.mac;
        };
        EXPECT_EQ(IpSocket::open(port,
                                 {.address = self.ip,
                                  .prefix = 24,
                                  .port = kPort,
                                  .gateway = gateway,
                                  .vlan = vlan,
                                  .seed = hosts_.size(),
                                  .clock = [] { return now; }},
                                 self.owned, why),
                  Err::kOk)
            << why;
        self.socket = self.owned.get();
        return self;
    }
    static void give(Host& to, const Bytes& frame) {
        Segment* const segment = to.pool.get();
        ASSERT_NE(segment, nullptr);
        std::memcpy(segment->frame, frame.data(), frame.size());
        segment->length = static_cast<std::uint32_t>(frame.size());
        to.come.push_back(segment);
    }
    /// Gives what was sent to the stations that it is for, filled up to 60 octets.
    void deliver() {
        std::vector<Bytes> sent;
        sent.swap(wire_);
        for (Bytes& frame : sent) {
            frame.resize(std::max<std::size_t>(frame.size(), 60));
            for (const auto& each : hosts_) {
                const bool is_sender = std::memcmp(&frame[6], &each->mac, 6) == 0;
                const bool hears = (frame[0] & std::byte{1}) != std::byte{0} ||
                                   std::memcmp(frame.data(), &each->mac, 6) == 0;
                if (!is_sender && hears) give(*each, frame);
            }
        }
    }
    /// Gives what a socket receives, as text.
    static std::vector<std::string> take(Host& at) {
        std::vector<std::string> taken;
        udp::Arrived arrived;
        while (!at.come.empty() || taken.size() < 1000) {
            const bool waited = !at.come.empty();
            if (at.socket->receive(arrived)) {
                taken.emplace_back(reinterpret_cast<const char*>(arrived.octets.data()),
                                   arrived.octets.size());
            } else if (!waited) {
                break;
            }
        }
        return taken;
    }
    /// Sends a message of text, cut into datagrams of `each` octets. Returns errno.
    static int send(Host& from, Ipv4 to, const std::string& text, std::uint16_t each = 0) {
        const udp::SocketAddress address = udp::socket_address(address_of(to));
        std::string copy = text;
        const std::size_t half = copy.size() / 2;
        iovec pieces[2]{{copy.data(), half}, {copy.data() + half, copy.size() - half}};
        const udp::Message message{&address, pieces, 2, each};
        int error = 0;
        const std::size_t sent = from.socket->send({&message, 1}, error);
        EXPECT_EQ(sent, error == 0 ? 1U : 0U);
        return error;
    }
    /// Lets the hosts learn the MAC addresses of each other.
    void meet(Host& a, Host& b) {
        EXPECT_EQ(send(a, b.ip, "?"), 0);
        EXPECT_EQ(send(b, a.ip, "?"), 0);
        for (unsigned n = 0; n < 4; ++n) {
            deliver();
            (void)take(a);
            (void)take(b);
        }
        wire_.clear();
    }
    static Mac destination(const Bytes& frame) {
        Mac mac;
        std::memcpy(&mac, frame.data(), sizeof mac);
        return mac;
    }
    static unsigned type(const Bytes& frame) {
        return std::to_integer<unsigned>(frame[12]) << 8U | std::to_integer<unsigned>(frame[13]);
    }
    /// Lets a router say by ARP that an address is at a MAC address.
    static Bytes arp(std::uint16_t operation, Ipv4 ip, const Mac& mac, const Host& to) {
        const Station router{mac, ip, 24, 0, 0};
        Bytes frame(60);
        const std::size_t link = put_link(frame.data(), router, to.mac, kTypeArp);
        put_arp(frame.data() + link, router, operation, to.mac, to.ip);
        return frame;
    }

    std::vector<std::unique_ptr<Host>> hosts_;
    std::vector<Bytes> wire_;
    std::unique_ptr<udp::UdpPort> port_, other_port_;
};

// I-25
TEST_F(IpSockets, a_message_waits_for_arp_and_arrives_in_order) {
    Host& a = add();
    Host& b = add();
    ASSERT_EQ(send(a, b.ip, "abcdefg", 3), 0);
    ASSERT_EQ(send(a, b.ip, "second"), 0);
    ASSERT_EQ(wire_.size(), 1U) << "the question alone";
    EXPECT_EQ(type(wire_[0]), kTypeArp);
    EXPECT_EQ(destination(wire_[0]), kBroadcastMac);
    deliver();
    EXPECT_TRUE(take(b).empty());
    ASSERT_EQ(wire_.size(), 1U) << "the reply";
    EXPECT_EQ(destination(wire_[0]), a.mac);
    deliver();
    EXPECT_TRUE(take(a).empty());
    deliver();
    EXPECT_EQ(take(b), (std::vector<std::string>{"abc", "def", "g", "second"}));
    ASSERT_EQ(send(a, b.ip, "third"), 0);
    deliver();
    EXPECT_EQ(take(b), (std::vector<std::string>{"third"})) << "its address is known";
}

TEST_F(IpSockets, a_datagram_names_its_sender) {
    Host& a = add();
    Host& b = add();
    meet(a, b);
    ASSERT_EQ(send(a, b.ip, "x"), 0);
    deliver();
    udp::Arrived arrived;
    ASSERT_TRUE(b.socket->receive(arrived));
    EXPECT_EQ(udp::address_of(*arrived.from), address_of(a.ip));
    EXPECT_EQ(a.socket->local(), address_of(a.ip));
}

// I-23
TEST_F(IpSockets, the_longest_datagram_passes_and_a_longer_one_is_refused) {
    Host& a = add();
    Host& b = add();
    meet(a, b);
    ASSERT_EQ(a.socket->packet_octets(), kMtu);
    const std::string longest(kMtu - kAroundOctets, 'l');
    ASSERT_EQ(send(a, b.ip, longest), 0);
    deliver();
    EXPECT_EQ(take(b), (std::vector<std::string>{longest}));
    EXPECT_EQ(a.socket->dropped(Reason::kTooLong), 0U);
    EXPECT_EQ(send(a, b.ip, longest + 'l'), EMSGSIZE);
    EXPECT_EQ(a.socket->dropped(Reason::kTooLong), 1U);
    EXPECT_EQ(send(a, b.ip, longest + longest + "ll", kMtu - kAroundOctets + 1), EMSGSIZE);
    EXPECT_EQ(a.socket->dropped(Reason::kTooLong), 3U);
    EXPECT_TRUE(wire_.empty());
}

// I-25
TEST_F(IpSockets, frames_for_a_node_that_does_not_answer_are_bounded_and_dropped) {
    Host& a = add();
    for (unsigned n = 0; n < 70; ++n)
        ASSERT_EQ(send(a, kNet + 99, "lost"), 0) << "as the kernel's socket";
    EXPECT_EQ(a.socket->dropped(Reason::kTooManyWait), 70 - IpSocket::kUnresolvedMax);
    EXPECT_EQ(wire_.size(), 1U);
    for (unsigned n = 0; n < 500; ++n, now += 10 * kMillisecond)
        (void)a.socket->look();
    EXPECT_EQ(a.socket->dropped(Reason::kNoNeighbour), IpSocket::kUnresolvedMax);
    const auto is_question = [](const Bytes& frame) {
        return frame[41] == std::byte{99};  // the last octet of the target
    };
    EXPECT_EQ(std::ranges::count_if(wire_, is_question), 3);
    EXPECT_EQ(a.socket->drops().unsendable, 70U);
}

// I-23
TEST_F(IpSockets, nodes_of_other_subnets_are_reached_through_the_gateway_whatever_its_mac_address) {
    constexpr Ipv4 kGateway = kNet + 1;
    constexpr Mac kOld{{2, 9, 0, 0, 0, 1}};
    constexpr Mac kNew{{2, 9, 0, 0, 0, 2}};
    Host& a = add();
    EXPECT_EQ(send(a, kFar, "x"), ENETUNREACH);
    EXPECT_EQ(a.socket->dropped(Reason::kNoRoute), 1U);
    Host& b = add(kGateway);
    ASSERT_EQ(send(b, kFar, "x"), 0);
    ASSERT_EQ(wire_.size(), 1U);
    ArpBody question;
    std::memcpy(&question, &wire_[0][14], sizeof question);
    EXPECT_EQ(question.target_ip, kGateway);
    wire_.clear();
    give(b, arp(kArpReply, kGateway, kOld, b));
    EXPECT_TRUE(take(b).empty());
    ASSERT_EQ(wire_.size(), 1U);
    EXPECT_EQ(destination(wire_[0]), kOld);
    wire_.clear();
    // Another machine takes over the gateway's address, and says so.
    now += 2 * kSecond;
    give(b, arp(kArpRequest, kGateway, kNew, b));
    EXPECT_TRUE(take(b).empty());
    ASSERT_EQ(wire_.size(), 2U) << "a question at once, and the reply";
    EXPECT_EQ(destination(wire_[0]), kBroadcastMac);
    ASSERT_EQ(send(b, kFar, "y"), 0);
    std::vector<Mac> to;
    for (const Bytes& frame : wire_)
        if (type(frame) == kTypeIpv4) to.push_back(destination(frame));
    EXPECT_EQ(to, std::vector<Mac>{kOld}) << "it is asked first";
    wire_.clear();
    give(b, arp(kArpReply, kGateway, kNew, b));
    EXPECT_TRUE(take(b).empty());
    ASSERT_EQ(send(b, kFar, "z"), 0);
    ASSERT_EQ(wire_.size(), 1U);
    EXPECT_EQ(destination(wire_[0]), kNew);
}

// I-26
TEST_F(IpSockets, replies_without_a_question_are_counted_and_fill_nothing) {
    Host& a = add();
    give(a, arp(kArpReply, kNet + 9, Mac{{2, 9, 0, 0, 0, 9}}, a));
    EXPECT_TRUE(take(a).empty());
    EXPECT_EQ(a.socket->dropped(Reason::kUnaskedArp), 1U);
    ASSERT_EQ(send(a, kNet + 9, "x"), 0);
    ASSERT_EQ(wire_.size(), 1U);
    EXPECT_EQ(type(wire_[0]), kTypeArp) << "it asks";
    now += 4 * kSecond;
    (void)a.socket->look();
    (void)a.socket->look();
}

TEST_F(IpSockets, requests_for_other_addresses_are_not_answered_and_own_ones_are) {
    Host& a = add();
    Bytes request = arp(kArpRequest, kNet + 9, Mac{{2, 9, 0, 0, 0, 9}}, a);
    give(a, request);
    EXPECT_TRUE(take(a).empty());
    ASSERT_EQ(wire_.size(), 1U);
    ArpBody reply;
    std::memcpy(&reply, &wire_[0][14], sizeof reply);
    EXPECT_EQ(reply.operation, kArpReply);
    EXPECT_EQ(reply.sender, a.mac);
    EXPECT_EQ(reply.sender_ip, a.ip);
    EXPECT_EQ(reply.target_ip, kNet + 9);
    wire_.clear();
    request[41] = std::byte{77};
    give(a, request);
    EXPECT_TRUE(take(a).empty());
    EXPECT_TRUE(wire_.empty());
}

// I-27
TEST_F(IpSockets, a_ping_a_millisecond_is_answered_to_the_station_that_sent_it) {
    Host& a = add();
    const Mac router{{2, 9, 0, 0, 0, 9}};
    const Station station{router, kFar, 24, 0, 0};
    const auto ping = [&](std::size_t octets) {
        Bytes frame(14 + 20 + octets);
        (void)put_link(frame.data(), station, a.mac, kTypeIpv4);
        Bytes body(octets);
        put_echo_reply(&frame[14], station, {a.ip, kIcmp, body});
        EchoHeader echo{kEchoRequest, 0, 0, 1, 2};
        std::memcpy(body.data(), &echo, sizeof echo);
        echo.checksum = checksum_of(body);
        std::memcpy(body.data(), &echo, sizeof echo);
        std::ranges::copy(body, frame.begin() + 34);
        give(a, frame);
        EXPECT_TRUE(take(a).empty());
    };
    ping(64);
    ASSERT_EQ(wire_.size(), 1U);
    EXPECT_EQ(destination(wire_[0]), router) << "and no question by ARP";
    EXPECT_EQ(wire_[0].size(), 14U + 20 + 64);
    Packet reply;
    ASSERT_EQ(read_packet(std::span(wire_[0]).subspan(14), station, reply), Reason::kNone);
    EXPECT_EQ(reply.from, a.ip);
    EXPECT_EQ(reply.octets[0], std::byte{kEchoReply});
    now += kMillisecond - 1;
    ping(64);
    EXPECT_EQ(wire_.size(), 1U);
    EXPECT_EQ(a.socket->dropped(Reason::kTooManyEchoes), 1U);
    now += 1;
    ping(kMtu - 20);
    EXPECT_EQ(wire_.size(), 2U);
    now += kMillisecond;
    ping(kMtu - 16);
    EXPECT_EQ(wire_.size(), 2U) << "longer than the MTU, as joined ones are";
    EXPECT_EQ(a.socket->dropped(Reason::kTooLong), 1U);
}

TEST_F(IpSockets, a_node_with_the_same_address_is_counted) {
    Host& a = add();
    give(a, arp(kArpRequest, a.ip, Mac{{2, 9, 0, 0, 0, 9}}, a));
    EXPECT_TRUE(take(a).empty());
    EXPECT_TRUE(wire_.empty());
    EXPECT_EQ(a.socket->dropped(Reason::kAddressInUse), 1U);
    EXPECT_EQ(a.socket->drops_as_text(), "1 of another node with this IP address");
}

// I-23, I-24
TEST_F(IpSockets, wrong_frames_are_dropped_each_by_its_reason) {
    Host& a = add();
    Host& b = add();
    Host& tagged = add(0, 7);
    meet(a, b);
    ASSERT_EQ(send(a, b.ip, "good"), 0);
    const Bytes good = wire_.at(0);
    wire_.clear();
    struct Case {
        Reason reason;
        std::size_t at;
        std::byte value;
    };
    for (const Case& each : {Case{Reason::kOtherProtocol, 12, std::byte{0x86}},
                             Case{Reason::kBadHeader, 14, std::byte{0x65}},
                             Case{Reason::kBadChecksum, 22, std::byte{1}}}) {
        Bytes bad = good;
        bad[each.at] = each.value;
        give(b, bad);
        EXPECT_TRUE(take(b).empty());
        EXPECT_EQ(b.socket->dropped(each.reason), 1U) << text_of(each.reason);
    }
    Bytes fragment = good;
    fragment[20] = std::byte{0x20};
    fragment[24] = fragment[25] = std::byte{0};
    const std::uint16_t sum = checksum_of(std::span(fragment).subspan(14, 20));
    std::memcpy(&fragment[24], &sum, sizeof sum);
    give(b, fragment);
    give(b, fragment);
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(b.socket->dropped(Reason::kFragment), 2U);
    EXPECT_TRUE(take(tagged).empty());
    const std::uint64_t questions = tagged.socket->dropped(Reason::kOtherVlan);
    EXPECT_EQ(questions, 2U) << "of the others, without a tag";
    give(tagged, good);
    EXPECT_TRUE(take(tagged).empty());
    EXPECT_EQ(tagged.socket->dropped(Reason::kOtherVlan), questions + 1);
    EXPECT_EQ(tagged.socket->drops().vlan, questions + 1);
    give(b, good);
    EXPECT_EQ(take(b), (std::vector<std::string>{"good"}));
    EXPECT_EQ(b.socket->drops().damaged, 4U);
}

// I-24
TEST_F(IpSockets, nodes_of_one_vlan_exchange_datagrams_in_frames_with_its_tag) {
    Host& a = add(0, 7);
    Host& b = add(0, 7);
    Host& c = add(0, 8);
    ASSERT_EQ(send(a, b.ip, "seven"), 0);
    for (unsigned n = 0; n < 2; ++n) {
        deliver();
        EXPECT_TRUE(take(a).empty());
        EXPECT_TRUE(take(b).empty());
        EXPECT_TRUE(take(c).empty());
    }
    ASSERT_EQ(wire_.size(), 1U);
    EXPECT_EQ(type(wire_[0]), kTypeVlan);
    EXPECT_EQ(wire_[0][15], std::byte{7});
    deliver();
    EXPECT_EQ(take(b), (std::vector<std::string>{"seven"}));
    EXPECT_EQ(c.socket->dropped(Reason::kOtherVlan), 1U) << "the question";
}

TEST_F(IpSockets, what_the_device_does_not_take_waits_in_order_and_then_nothing_is_taken) {
    Host& a = add();
    Host& b = add();
    meet(a, b);
    a.accepts = 1;
    std::vector<std::string> wanted;
    int error = 0;
    for (unsigned n = 0; error == 0 && n < 1000; ++n) {
        error = send(a, b.ip, std::to_string(n));
        if (error == 0) wanted.push_back(std::to_string(n));
    }
    EXPECT_EQ(error, EAGAIN);
    EXPECT_EQ(wanted.size(), IpSocket::kBurst + 1);
    EXPECT_GE(a.socket->unsent(), IpSocket::kBurst * 1500U);
    EXPECT_GE(a.socket->costs().refusals, 1U);
    a.accepts = SIZE_MAX;
    EXPECT_TRUE(take(a).empty());  // a look for frames sends what waits
    EXPECT_EQ(a.socket->unsent(), 0U);
    deliver();
    EXPECT_EQ(take(b), wanted);
}

TEST_F(IpSockets, a_message_for_which_there_are_no_frames_is_taken_later) {
    Host& a = add();
    Host& b = add();
    meet(a, b);
    std::vector<Segment*> held;
    while (a.pool.table().available(&a.pool) > 2)
        held.push_back(a.pool.get());
    EXPECT_EQ(send(a, b.ip, "abcd", 1), EAGAIN);
    EXPECT_TRUE(wire_.empty()) << "whole, or not at all";
    for (Segment* const segment : held)
        port::FramePool::put(segment);
    EXPECT_EQ(send(a, b.ip, "abcd", 1), 0);
    deliver();
    EXPECT_EQ(take(b).size(), 4U);
}

TEST_F(IpSockets, addresses_of_no_single_node_are_refused) {
    Host& a = add(kNet + 9);
    for (const Ipv4 to : {0xffffffffU, 0xe0000001U, kNet + 255, kNet, 0x7f000001U})
        EXPECT_EQ(send(a, to, "x"), EACCES) << to;
    EXPECT_TRUE(wire_.empty());
    EXPECT_EQ(a.socket->dropped(Reason::kNoRoute), 5U);
    EXPECT_EQ(a.socket->drops().unsendable, 0U) << "the caller counts what was refused";
}

TEST_F(IpSockets, a_datagram_to_the_own_address_comes_back) {
    Host& a = add();
    ASSERT_EQ(send(a, a.ip, "hello"), 0);
    EXPECT_TRUE(wire_.empty());
    EXPECT_EQ(take(a), (std::vector<std::string>{"hello"}));
    EXPECT_TRUE(take(a).empty());
}

TEST_F(IpSockets, a_new_mac_address_of_the_interface_is_announced_and_used) {
    Host& a = add();
    Host& b = add();
    meet(a, b);
    EXPECT_TRUE(a.socket->look());
    EXPECT_EQ(wire_.size(), 1U) << "at the start";
    wire_.clear();
    EXPECT_TRUE(a.socket->look());
    EXPECT_TRUE(wire_.empty());
    a.interface.mac = Mac{{2, 0, 0, 0, 1, 1}};
    EXPECT_TRUE(a.socket->look());
    ASSERT_EQ(wire_.size(), 1U);
    EXPECT_EQ(std::memcmp(&wire_[0][6], &a.interface.mac, 6), 0);
    now += 2 * kSecond;
    for (unsigned n = 0; n < 4; ++n) {
        deliver();
        (void)take(a);
        (void)take(b);
        EXPECT_TRUE(b.socket->look());
    }
    ASSERT_EQ(send(b, a.ip, "moved"), 0);
    deliver();
    EXPECT_EQ(take(a), (std::vector<std::string>{"moved"}));
}

TEST_F(IpSockets, an_mtu_below_576_is_refused) {
    Host& a = add();
    Port narrow = a.below;
    narrow.info.mtu = 575;
    std::unique_ptr<IpSocket> socket;
    std::string why;
    EXPECT_EQ(
        IpSocket::open(narrow,
                       {.address = a.ip, .prefix = 24, .port = kPort, .clock = [] { return now; }},
                       socket, why),
        Err::kInvalid);
    EXPECT_NE(why.find("575"), std::string::npos) << why;
}

TEST_F(IpSockets, ports_of_udp_exchange_frames_of_all_lengths_over_them) {
    Host& a = add();
    Host& b = add();
    const auto open = [](Host& host, std::unique_ptr<udp::UdpPort>& port, const Host* peer) {
        udp::PortOptions options;
        options.device.own = host.socket->local();
        options.device.open = true;
        if (peer != nullptr) options.device.peers.push_back(peer->socket->local());
        options.seed = host.ip;
        options.segments = 128;
        std::string why;
        ASSERT_EQ(udp::UdpPort::open(options, std::move(host.owned), port, why), Err::kOk) << why;
    };
    open(a, port_, &b);
    open(b, other_port_, nullptr);
    const auto look = [&](udp::UdpPort& port) {
        (void)port.port().link_up(port.port().context);
        deliver();
        Segment* segment = nullptr;
        EXPECT_EQ(port.port().rx(port.port().context, &segment, 1), 0);
    };
    for (unsigned n = 0;
         n < 1'000'000 && (port_->peers().count() == 0 || other_port_->peers().count() == 0); ++n) {
        look(*port_);
        look(*other_port_);
    }
    ASSERT_EQ(port_->peers().count(), 1U);
    const Port& from = port_->port();
    const Port& to = other_port_->port();
    EXPECT_EQ(from.info.mtu, kMtu - kAroundOctets - udp::kHeadOctets);
    std::vector<Segment*> burst;
    std::vector<Bytes> wanted;
    for (std::uint32_t n = 0; n < 40; ++n) {
        Segment* const segment = from.pool.get();
        segment->length = n % 2 == 0 ? from.info.mtu + 14U : 19 + n;
        std::memset(segment->frame, static_cast<int>('a' + n), segment->length);
        std::memcpy(segment->frame, &to.info.mac, 6);
        std::memcpy(segment->frame + 6, &from.info.mac, 6);
        segment->frame[12] = std::byte{0x88};
        segment->frame[13] = std::byte{0xb5};
        burst.push_back(segment);
        wanted.emplace_back(segment->frame, segment->frame + segment->length);
    }
    ASSERT_EQ(from.tx(from.context, burst.data(), 40), 40);
    deliver();
    for (const Bytes& want : wanted) {
        Segment* got = nullptr;
        ASSERT_EQ(to.rx(to.context, &got, 1), 1);
        EXPECT_EQ(Bytes(got->frame, got->frame + got->length), want);
        to.pool.drop(got);
    }
    EXPECT_EQ(to.drops(to.context).damaged, 0U);
    EXPECT_TRUE(to.link_up(to.context));
}

}  // namespace
}  // namespace ulc::ip
