// SPDX-License-Identifier: BSD-3-Clause
// Ports over UDP with a network between them: it repeats and changes datagrams, drops long ones,
// and its nodes have other keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "udp/udp_port.h"

namespace ulc::udp {
namespace {

/// Two ports that hold one secret. The second one knows the first one by a relay.
struct Pair {
    std::unique_ptr<UdpPort> a;
    std::unique_ptr<UdpPort> b;
    std::optional<Relay> relay;

    explicit Pair(bool open) {
        PortOptions options;
        std::string why;
        EXPECT_TRUE(read_ip("127.0.0.1", options.device.own));
        options.device.open = open;
        options.takes_secrets = true;
        options.segments = 512;
        options.seed = 1;
        if (UdpPort::open(options, a, why) != Err::kOk) return;
        relay.emplace(a->local());
        options.seed = 2;
        options.device.peers.push_back(relay->local());
        if (UdpPort::open(options, b, why) != Err::kOk) return;
        EXPECT_TRUE(a->add_secret(secret_of(1)));
        EXPECT_TRUE(b->add_secret(secret_of(1)));
    }
};

// I-12 to I-16
TEST(SealedUdpPorts, take_nothing_that_a_relay_repeats_or_changes) {
    Pair pair(false);
    auto &a = pair.a, &b = pair.b;
    auto& relay = pair.relay;
    ASSERT_TRUE(a != nullptr && b != nullptr);
    const auto receive = [&]() -> Segment* {
        Segment* segment = nullptr;
        return a->port().rx(a->port().context, &segment, 1) == 1 ? segment : nullptr;
    };
    for (unsigned round = 0; round < 100'000 && a->peers().count() + b->peers().count() < 2;
         ++round) {
        Segment* segment = nullptr;
        a->port().link_up(a->port().context);
        b->port().link_up(b->port().context);
        EXPECT_EQ(receive(), nullptr);
        EXPECT_EQ(b->port().rx(b->port().context, &segment, 1), 0);
        relay->run();
    }
    ASSERT_EQ(a->peers().count(), 1U);
    ASSERT_EQ(b->peers().count(), 1U);
    Segment* sent = b->port().pool.get();
    sent->length = 300;
    std::memset(sent->frame, 'u', 300);
    std::memcpy(sent->frame, &a->port().info.mac, sizeof(Mac));
    ASSERT_EQ(b->port().tx(b->port().context, &sent, 1), 1);
    Segment* got = nullptr;
    for (unsigned round = 0; round < 1000 && got == nullptr; ++round) {
        relay->run();
        got = receive();
    }
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->length, 300U);
    a->port().pool.drop(got);
    ASSERT_EQ(relay->kept.size(), 1U);
    const std::vector<std::byte> datagram = relay->kept[0];
    EXPECT_EQ(datagram.size(), 300 - kEthernetOctets + kHeadOctets + seal::kSealOctets);
    EXPECT_EQ(std::ranges::count(datagram, std::byte{'u'}) < 100, true) << "it is encrypted";
    relay->send(a->local(), datagram);
    for (unsigned round = 0; round < 1000; ++round)
        EXPECT_EQ(receive(), nullptr);
    EXPECT_EQ(a->port().drops(a->port().context).unsealed, 1U);
    auto changed = datagram;
    changed.back() ^= std::byte{1};
    relay->send(a->local(), changed);
    auto open_one = datagram;
    open_one[0] = std::byte{0x10};
    relay->send(a->local(), open_one);
    for (unsigned round = 0; round < 1000; ++round)
        EXPECT_EQ(receive(), nullptr);
    EXPECT_EQ(a->port().drops(a->port().context).unsealed, 3U);
    EXPECT_EQ(a->port().pool.available(a->port().pool.context), 512U);
}

// Octets of a long message are copied on while they are in the cache.
TEST(UdpSocket, receives_one_long_message_a_call) {
    Socket from;
    Socket to;
    Address own;
    std::string why;
    ASSERT_TRUE(read_ip("127.0.0.1", own));
    ASSERT_EQ(from.open(own, why), Err::kOk) << why;
    ASSERT_EQ(to.open(own, why), Err::kOk) << why;
    const SocketAddress address = socket_address(to.local());
    std::vector<std::byte> octets(20'000);
    const auto send = [&](std::size_t length) {
        iovec piece{octets.data(), length};
        const Message message{&address, &piece, 1, static_cast<std::uint16_t>(length / 4)};
        int error = 0;
        ASSERT_EQ(from.send({&message, 1}, error), 1U);
    };
    Arrived arrived;
    const auto receive = [&] {
        EXPECT_TRUE(to.receive(arrived));
        return arrived.octets;
    };
    send(octets.size());
    const std::byte* const place = receive().data();
    EXPECT_FALSE(to.receive(arrived)) << "a call that received fewer than it could was the last";
    for (const std::size_t length : {20'000, 20'000, 20'000, 400, 400, 400})
        send(length);
    for (unsigned n = 0; n < 3; ++n) {
        EXPECT_EQ(receive().size(), octets.size());
        EXPECT_EQ(arrived.octets.data(), place);
    }
    for (unsigned n = 0; n < 3; ++n)
        EXPECT_EQ(receive().size(), 400U);
    EXPECT_FALSE(to.receive(arrived));
    EXPECT_EQ(to.counts().receives, 1 + 3 + 2U) << "short ones come by one call but the first";
}

// I-18, I-19
TEST(UdpPath, takes_frames_in_parts_once_it_drops_long_datagrams) {
    for (const bool open : {true, false}) {
        Pair pair(open);
        auto &a = pair.a, &b = pair.b;
        auto& relay = pair.relay;
        ASSERT_TRUE(a != nullptr && b != nullptr);
        Segment* got = nullptr;
        const auto run = [&] {
            a->port().link_up(a->port().context);
            b->port().link_up(b->port().context);
            relay->run();
            Segment* segment = nullptr;
            if (a->port().rx(a->port().context, &segment, 1) == 1) got = segment;
            EXPECT_EQ(b->port().rx(b->port().context, &segment, 1), 0);
        };
        const auto send = [&](std::uint32_t octets) {
            Segment* sent = b->port().pool.get();
            sent->length = octets;
            for (std::uint32_t n = 0; n < octets; ++n)
                sent->frame[n] = static_cast<std::byte>(n * 11);
            std::memcpy(sent->frame, &a->port().info.mac, sizeof(Mac));
            ASSERT_EQ(b->port().tx(b->port().context, &sent, 1), 1);
        };
        while (a->peers().count() + b->peers().count() < 2)
            run();
        relay->limit = 1300;
        send(b->port().info.mtu + 14U);
        for (unsigned round = 0; round < 100; ++round)
            run();
        EXPECT_EQ(got, nullptr) << "a long datagram is lost";
        while (b->peers().narrow_count() == 0)  // questions find it
            run();
        for (const std::uint32_t octets : {b->port().info.mtu + 14U, 1290U, 300U}) {
            send(octets);
            while (got == nullptr)
                run();
            ASSERT_EQ(got->length, octets);
            for (std::uint32_t n = kEthernetOctets; n < octets; ++n)
                ASSERT_EQ(got->frame[n], static_cast<std::byte>(n * 11)) << n;
            a->port().pool.drop(std::exchange(got, nullptr));
        }
        EXPECT_EQ(a->port().drops(a->port().context).damaged, 0U);
    }
}

TEST(UdpPath, drops_parts_that_do_not_follow_each_other_and_long_datagrams) {
    std::unique_ptr<UdpPort> port;
    PortOptions options;
    options.mtu = 1468;
    std::string why;
    ASSERT_TRUE(read_ip("127.0.0.1", options.device.own));
    options.device.open = true;
    options.segments = 512;
    ASSERT_EQ(UdpPort::open(options, port, why), Err::kOk) << why;
    Socket peer;
    ASSERT_EQ(peer.open(options.device.own, why), Err::kOk) << why;
    const SocketAddress to = socket_address(port->local());
    const auto send = [&](const void* octets, std::size_t length) {
        iovec piece{const_cast<void*>(octets), length};
        const Message message{&to, &piece, 1, 0};
        int error = 0;
        ASSERT_EQ(peer.send({&message, 1}, error), 1U);
    };
    Segment* got = nullptr;
    const auto receive = [&] {
        port->port().link_up(port->port().context);
        return port->port().rx(port->port().context, &got, 1) == 1;
    };
    Hello hello;
    hello.name = Mac{{2, 0, 0, 0, 0, 9}};
    hello.token = std::uint64_t{1};
    send(&hello, sizeof hello);
    while (port->peers().count() == 0) {  // it answers, and asks in turn
        EXPECT_FALSE(receive());
        Arrived arrived;
        if (!peer.receive(arrived) || arrived.octets[0] != std::byte{0x18}) continue;
        std::memcpy(&hello, arrived.octets.data(), sizeof hello);
        Welcome welcome;
        welcome.name = Mac{{2, 0, 0, 0, 0, 9}};
        welcome.count = std::uint16_t{0};
        welcome.entries = std::uint16_t{0};
        welcome.token = hello.token;
        send(&welcome, sizeof welcome);
    }
    const auto part = [&](std::uint16_t datagram, std::uint8_t number, bool last,
                          std::size_t octets) {
        std::vector<std::byte> out(sizeof(PartHead) + octets, std::byte{0x10});
        PartHead head;
        head.number = static_cast<std::uint8_t>(number | (last ? kLastPart : 0));
        head.datagram = datagram;
        std::memcpy(out.data(), &head, sizeof head);
        send(out.data(), out.size());
    };
    const auto frames = [&] {
        unsigned count = 0;
        for (unsigned round = 0; round < 100; ++round)
            if (receive()) {
                ++count;
                port->port().pool.drop(got);
            }
        return count;
    };
    part(1, 0, false, 700);
    part(1, 1, true, 700);
    EXPECT_EQ(frames(), 1U);
    const auto damaged = [&] { return port->port().drops(port->port().context).damaged; };
    ASSERT_EQ(damaged(), 0U);
    part(1, 1, true, 700);  // again
    part(2, 1, true, 700);  // without the first
    part(3, 0, false, 700);
    part(3, 2, true, 700);  // one is missing
    part(3, 1, true, 700);  // and comes too late
    part(4, 0, false, 700);
    part(5, 1, true, 700);  // of another datagram
    EXPECT_EQ(frames(), 0U);
    EXPECT_EQ(damaged(), 5U);
    part(6, 0, false, 900);
    part(6, 1, true, 900);  // longer than a frame
    part(7, 0, true, 4);    // a head alone
    for (std::uint8_t n = 0; n < 20; ++n)
        part(8, n, false, 1);
    EXPECT_EQ(frames(), 0U);
    EXPECT_EQ(damaged(), 5 + 1 + 1 + 4U) << "parts are at most 16";
    part(9, 0, false, 60);
    part(9, 1, true, 60);
    EXPECT_EQ(frames(), 1U);
    const std::vector<std::byte> whole(1468 + kHeadOctets + 1, std::byte{0x10});
    send(whole.data(), whole.size() - 1);
    EXPECT_EQ(frames(), 1U);
    send(whole.data(), whole.size());
    send(whole.data(), kHeadOctets);
    EXPECT_EQ(frames(), 0U);
    EXPECT_EQ(port->port().drops(port->port().context).too_long, 1U);
    EXPECT_EQ(damaged(), 5 + 1 + 1 + 4 + 1U);
}

// I-17
TEST(SealedUdpPorts, open_and_sealed_ports_and_those_of_other_keys_tell_why_they_find_none) {
    for (const bool other_is_open : {true, false}) {
        std::unique_ptr<UdpPort> a;
        std::unique_ptr<UdpPort> b;
        PortOptions options;
        std::string why;
        ASSERT_TRUE(read_ip("127.0.0.1", options.device.own));
        options.takes_secrets = true;
        options.seed = 1;
        ASSERT_EQ(UdpPort::open(options, a, why), Err::kOk) << why;
        options.seed = 2;
        options.device.peers.push_back(a->local());
        options.device.open = other_is_open;
        ASSERT_EQ(UdpPort::open(options, b, why), Err::kOk) << why;
        EXPECT_TRUE(a->add_secret(secret_of(1)));
        EXPECT_TRUE(b->add_secret(secret_of(2)));
        const auto text = [&] { return b->port().unanswered(b->port().context); };
        const char* const wanted = other_is_open ? "is sealed" : "another key";
        Segment* segment = nullptr;
        for (unsigned round = 0; round < 100'000 && text().find(wanted) == std::string::npos;
             ++round) {
            a->port().link_up(a->port().context);
            b->port().link_up(b->port().context);
            EXPECT_EQ(a->port().rx(a->port().context, &segment, 1), 0);
            EXPECT_EQ(b->port().rx(b->port().context, &segment, 1), 0);
        }
        EXPECT_NE(text().find(wanted), std::string::npos) << text();
        EXPECT_EQ(a->peers().count() + b->peers().count(), 0U);
        // Neither asks on and on: a hint is not answered by another one.
        const auto unsealed = [&] { return a->peers().counts().unsealed; };
        const std::uint64_t before = unsealed();
        for (unsigned round = 0; round < 1000; ++round) {
            EXPECT_EQ(a->port().rx(a->port().context, &segment, 1), 0);
            EXPECT_EQ(b->port().rx(b->port().context, &segment, 1), 0);
        }
        EXPECT_LE(unsealed() - before, 3U);
    }
}

TEST(SealedUdpPorts, a_port_without_a_key_is_refused_in_a_sentence) {
    std::unique_ptr<UdpPort> port;
    PortOptions options;
    std::string why;
    ASSERT_TRUE(read_ip("127.0.0.1", options.device.own));
    EXPECT_EQ(UdpPort::open(options, port, why), Err::kInvalid);
    EXPECT_NE(why.find("key=FILE"), std::string::npos) << why;
}

}  // namespace
}  // namespace ulc::udp
