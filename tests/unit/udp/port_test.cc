// SPDX-License-Identifier: BSD-3-Clause
// port.h over UDP sockets of 127.0.0.1 and ::1, open and sealed: frames of all lengths to one node
// and to all arrive whole and in order, by few system calls, and what comes from strangers is
// counted and dropped.
#include "udp/udp_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "fixture.h"

namespace ulc::udp {
namespace {

/// Ways of the ports of a test.
enum class Mode {
    kOpen,
    kOneSecret,
    kTwoSecrets,  ///< port 1 has the second one alone, others both
};

struct Wire {
    const char* ip;
    Mode mode;
};

void PrintTo(const Wire& wire, std::ostream* to) {
    *to << wire.ip << " mode " << static_cast<int>(wire.mode);
}

class UdpPorts : public testing::TestWithParam<Wire> {
protected:
    [[nodiscard]] PortOptions options_of(unsigned n) const {
        PortOptions options;
        EXPECT_TRUE(read_ip(GetParam().ip, options.device.own));
        options.device.open = GetParam().mode == Mode::kOpen;
        options.takes_secrets = true;
        if (n > 0) options.device.peers.push_back(ports[0]->local());
        options.seed = n + 1;
        options.segments = 512;
        return options;
    }
    void add_secrets(unsigned n) {
        if (GetParam().mode == Mode::kOpen) return;
        EXPECT_TRUE(ports[n]->needs_secret());
        const bool has_first = GetParam().mode == Mode::kOneSecret || n != 1;
        const bool has_second = GetParam().mode == Mode::kTwoSecrets;
        EXPECT_TRUE(!has_first || ports[n]->add_secret(secret_of(1)));
        EXPECT_TRUE(!has_second || ports[n]->add_secret(secret_of(2)));
        EXPECT_FALSE(ports[n]->needs_secret());
    }
    /// Opens ports that know the first one.
    void open(unsigned count) {
        for (unsigned n = 0; n < count; ++n) {
            const PortOptions options = options_of(n);
            std::string why;
            std::unique_ptr<UdpPort> port;
            const Err error = UdpPort::open(options, port, why);
            if (error != Err::kOk && !options.device.own.is_v4()) GTEST_SKIP() << why;
            ASSERT_EQ(error, Err::kOk) << why;
            ports.push_back(std::move(port));
            add_secrets(n);
        }
        for (unsigned round = 0; round < 1'000'000 && !know_each_other(); ++round)
            for (auto& port : ports) {
                port->port().link_up(port->port().context);
                EXPECT_EQ(receive(*port), nullptr);
            }
        ASSERT_TRUE(know_each_other());
    }
    [[nodiscard]] bool know_each_other() const {
        return std::ranges::all_of(
            ports, [this](const auto& port) { return port->peers().count() == ports.size() - 1; });
    }
    [[nodiscard]] const Port& table(unsigned n) const { return ports[n]->port(); }
    static Segment* receive(UdpPort& port) {
        Segment* segment = nullptr;
        return port.port().rx(port.port().context, &segment, 1) == 1 ? segment : nullptr;
    }
    /// Waits for a frame; the kernel brings it at once, or never.
    Segment* wait_for(unsigned n) {
        for (unsigned round = 0; round < 1000; ++round)
            if (Segment* segment = receive(*ports[n]); segment != nullptr) return segment;
        return nullptr;
    }
    Segment* frame(unsigned from, const Mac& to, std::uint32_t octets, std::uint8_t first) {
        Segment* segment = table(from).pool.get();
        segment->length = octets;
        std::memcpy(segment->frame, &to, sizeof to);
        std::memcpy(segment->frame + 6, &table(from).info.mac, 6);
        segment->frame[12] = std::byte{0x88};
        segment->frame[13] = std::byte{0xb5};
        for (std::uint32_t n = kEthernetOctets; n < octets; ++n)
            segment->frame[n] = static_cast<std::byte>(first + n);
        return segment;
    }
    std::vector<std::unique_ptr<UdpPort>> ports;
};

INSTANTIATE_TEST_SUITE_P(Wires, UdpPorts,
                         testing::Values(Wire{"127.0.0.1", Mode::kOpen}, Wire{"::1", Mode::kOpen},
                                         Wire{"127.0.0.1", Mode::kOneSecret},
                                         Wire{"::1", Mode::kOneSecret},
                                         Wire{"127.0.0.1", Mode::kTwoSecrets}));

// I-1, I-2
TEST_P(UdpPorts, carry_frames_of_all_lengths_in_order) {
    open(2);
    const std::uint32_t most = table(0).info.mtu + 14U;
    Prng prng(3);
    std::vector<Segment*> burst;
    std::vector<std::vector<std::byte>> wanted;
    for (unsigned n = 0; n < 64; ++n) {
        const std::uint32_t octets =
            n % 3 == 0 ? most : 19 + static_cast<std::uint32_t>(prng.below(most - 19));
        burst.push_back(frame(0, table(1).info.mac, octets, static_cast<std::uint8_t>(n)));
        wanted.emplace_back(burst.back()->frame, burst.back()->frame + octets);
    }
    ASSERT_EQ(table(0).tx(table(0).context, burst.data(), 64), 64);
    for (const auto& want : wanted) {
        Segment* got = wait_for(1);
        ASSERT_NE(got, nullptr);
        EXPECT_EQ(std::vector<std::byte>(got->frame, got->frame + got->length), want);
        table(1).pool.drop(got);
    }
    EXPECT_EQ(wait_for(1), nullptr);
}

TEST_P(UdpPorts, send_a_long_message_by_one_system_call_and_gather_its_octets) {
    open(2);
    const std::uint32_t most = table(0).info.mtu + 14U;
    std::vector<std::byte> memory(std::size_t{44} * most);
    for (std::size_t n = 0; n < memory.size(); ++n)
        memory[n] = static_cast<std::byte>(n * 7);
    std::vector<Segment*> burst;
    for (unsigned n = 0; n < 44; ++n) {
        burst.push_back(frame(0, table(1).info.mac, most, 0));
        burst.back()->tail = memory.data() + std::size_t{n} * most;
        burst.back()->tail_octets = most - 40;
    }
    const std::uint64_t calls = table(0).costs(table(0).context).calls;
    ASSERT_EQ(table(0).tx(table(0).context, burst.data(), 44), 44);
    EXPECT_EQ(table(0).costs(table(0).context).calls - calls, 1U);
    std::vector<std::byte> placed(memory.size());
    struct Place {
        std::byte* next;
    } place{placed.data()};
    const Landing landing{&place, 40, [](void* context, const std::byte*, std::uint32_t length) {
                              auto& to = *static_cast<Place*>(context);
                              const Landed landed{to.next, length - 40};
                              to.next += length;
                              return landed;
                          }};
    for (unsigned n = 0; n < 44; ++n) {
        Segment* got = nullptr;
        for (unsigned round = 0; round < 1000 && got == nullptr; ++round)
            got = table(1).rx_landing(table(1).context, landing);
        ASSERT_NE(got, nullptr);
        ASSERT_EQ(got->tail_octets, most - 40);
        EXPECT_EQ(std::memcmp(got->tail, memory.data() + std::size_t{n} * most, most - 40), 0);
        table(1).pool.drop(got);
    }
}

// While one end opens a slice the other one seals the next.
TEST_P(UdpPorts, seal_few_octets_before_the_first_are_sent) {
    open(1);
    const PortInfo& info = table(0).info;
    const std::size_t octets = std::size_t{info.flush_frames} * info.mtu;
    if (GetParam().mode == Mode::kOpen) {
        EXPECT_EQ(info.flush_frames, 32);
    } else {
        EXPECT_GE(octets, 8192U);
        EXPECT_LE(octets, 20'000U);
    }
}

// I-2, I-4
TEST_P(UdpPorts, send_to_all_and_to_groups_by_one_system_call) {
    open(5);
    const Mac group{{3, 0x55, 0x4c, 1, 2, 3}};
    for (const Mac& to : {kBroadcastMac, group}) {
        Segment* sent = frame(2, to, 500, 9);
        const std::vector<std::byte> want(sent->frame, sent->frame + 500);
        const std::uint64_t calls = table(2).costs(table(2).context).calls;
        ASSERT_EQ(table(2).tx(table(2).context, &sent, 1), 1);
        EXPECT_EQ(table(2).costs(table(2).context).calls - calls, 1U);
        for (const unsigned n : {0U, 1U, 3U, 4U}) {
            Segment* got = wait_for(n);
            ASSERT_NE(got, nullptr);
            EXPECT_EQ(std::vector<std::byte>(got->frame, got->frame + got->length), want);
            table(n).pool.drop(got);
        }
        EXPECT_EQ(wait_for(2), nullptr);
    }
}

TEST_P(UdpPorts, give_the_last_broadcast_to_a_node_that_comes_later) {
    open(1);
    for (const std::uint32_t octets : {200U, 300U}) {
        Segment* sent = frame(0, kBroadcastMac, octets, 5);
        ASSERT_EQ(table(0).tx(table(0).context, &sent, 1), 1);
    }
    Segment* wanted = frame(0, kBroadcastMac, 300, 5);
    std::string why;
    std::unique_ptr<UdpPort> late;
    ASSERT_EQ(UdpPort::open(options_of(1), late, why), Err::kOk) << why;
    ports.push_back(std::move(late));
    add_secrets(1);
    Segment* got = nullptr;
    for (unsigned round = 0; round < 100'000 && got == nullptr; ++round) {
        for (const unsigned n : {0U, 1U})
            table(n).link_up(table(n).context);
        EXPECT_EQ(receive(*ports[0]), nullptr);
        got = receive(*ports[1]);
    }
    ASSERT_NE(got, nullptr);
    ASSERT_EQ(got->length, 300U);
    EXPECT_EQ(std::memcmp(got->frame, wanted->frame, 300), 0);
    table(1).pool.drop(got);
    table(0).pool.drop(wanted);
}

TEST_P(UdpPorts, drop_and_count_what_cannot_be_sent) {
    open(2);
    Segment* burst[3];
    burst[0] = frame(0, table(1).info.mac, 100, 1);
    burst[1] = frame(0, Mac{{2, 1, 1, 1, 1, 1}}, 100, 2);
    burst[2] = frame(0, table(1).info.mac, 100, 3);
    ASSERT_EQ(table(0).tx(table(0).context, burst, 3), 3);
    EXPECT_EQ(table(0).drops(table(0).context).unsendable, 1U);
    for (unsigned n = 0; n < 2; ++n) {
        Segment* got = wait_for(1);
        ASSERT_NE(got, nullptr);
        table(1).pool.drop(got);
    }
    EXPECT_EQ(table(0).pool.available(table(0).pool.context), 512U);
}

// I-3
TEST_P(UdpPorts, take_nothing_from_strangers) {
    open(2);
    Socket stranger;
    Address own;
    ASSERT_TRUE(read_ip(GetParam().ip, own));
    std::string why;
    ASSERT_EQ(stranger.open(own, why), Err::kOk) << why;
    const SocketAddress to = socket_address(ports[1]->local());
    std::vector<std::byte> octets(200);
    int error = 0;
    const auto send = [&](std::size_t length) {
        iovec piece{octets.data(), length};
        const Message message{&to, &piece, 1, 0};
        ASSERT_EQ(stranger.send({&message, 1}, error), 1U);
        EXPECT_EQ(wait_for(1), nullptr);
    };
    // Port 0 has asked by a secret that port 1 does not have, if there are two.
    const std::uint64_t before = table(1).drops(table(1).context).unsealed;
    const auto drops = [&] {
        PortDrops now = table(1).drops(table(1).context);
        now.unsealed -= before;
        return now;
    };
    octets[0] = static_cast<std::byte>(Kind::kFrame);
    send(100);
    EXPECT_EQ(drops().wrong_source, 1U);
    send(0);
    EXPECT_EQ(drops().damaged, 1U);
    const bool is_open = GetParam().mode == Mode::kOpen;
    octets[0] = static_cast<std::byte>(Kind::kHello);
    send(100);
    octets[0] = static_cast<std::byte>(Kind::kWelcome);
    send(sizeof(Welcome));
    EXPECT_EQ(drops().damaged, is_open ? 3U : 1U) << "a wrong length, and a name of zeros";
    EXPECT_EQ(drops().unsealed, is_open ? 0U : 2U);
    octets[0] = static_cast<std::byte>(Kind::kSealedHello);
    send(sizeof(Hello) + sizeof(seal::Proof));
    octets[0] = static_cast<std::byte>(Kind::kSealedWelcome);
    send(sizeof(Welcome) + sizeof(seal::Proof));
    EXPECT_EQ(drops().unsealed, is_open ? 2U : 4U);
    octets[0] = static_cast<std::byte>(Kind::kSealed);
    send(100);
    EXPECT_EQ(drops().wrong_source, 2U);
    EXPECT_EQ(ports[1]->peers().count(), 1U);
}

}  // namespace
}  // namespace ulc::udp
