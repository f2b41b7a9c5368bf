// SPDX-License-Identifier: BSD-3-Clause
// Checksums against published examples, and readers of Ethernet, ARP, IPv4, UDP and echo requests:
// a good frame is read whole, and each wrong one is refused for its reason.
#include "ip/packet.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace ulc::ip {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Ipv4 kOwn = 0x0a000005;    // 10.0.0.5
constexpr Ipv4 kOther = 0x0a000007;  // 10.0.0.7
constexpr Mac kOwnMac{{2, 0, 0, 0, 0, 5}};
constexpr Mac kOtherMac{{2, 0, 0, 0, 0, 7}};
constexpr Station kStation{kOwnMac, kOwn, 24, 30791, 0};
constexpr Station kSender{kOtherMac, kOther, 24, 4001, 0};

Bytes bytes_of(std::initializer_list<unsigned> octets) {
    Bytes bytes;
    for (const unsigned octet : octets)
        bytes.push_back(static_cast<std::byte>(octet));
    return bytes;
}

std::uint16_t big(std::uint16_t in_memory) {
    std::array<std::uint8_t, 2> octets{};
    std::memcpy(octets.data(), &in_memory, sizeof in_memory);
    return static_cast<std::uint16_t>(octets[0] << 8U | octets[1]);
}

/// A packet from the sender to the station, filled up behind its end.
Bytes packet(std::size_t octets = 20, std::size_t filled = 0) {
    Bytes bytes(kAroundOctets + octets + filled, std::byte{'p'});
    put_datagram(bytes.data(), kSender, kOwn, kStation.port, octets);
    return bytes;
}

Reason read_datagram(std::span<const std::byte> octets, const Station& station, Datagram& out) {
    Packet packet;
    const Reason reason = read_packet(octets, station, packet);
    return reason == Reason::kNone ? ip::read_datagram(packet, station, out) : reason;
}

void put16(Bytes& bytes, std::size_t at, unsigned value) {
    const Be16 big_endian{static_cast<std::uint16_t>(value)};
    std::memcpy(&bytes[at], &big_endian, sizeof big_endian);
}
void put32(Bytes& bytes, std::size_t at, std::uint32_t value) {
    const Be32 big_endian{value};
    std::memcpy(&bytes[at], &big_endian, sizeof big_endian);
}
/// Makes the checksum of the IPv4 header right again.
void set_checksum(Bytes& bytes) {
    put16(bytes, 10, 0);
    const std::uint16_t sum = checksum_of(std::span(bytes).first(20));
    std::memcpy(&bytes[10], &sum, sizeof sum);
}
/// Sets the checksum of UDP.
void set_udp_checksum(Bytes& bytes, std::uint16_t in_memory) {
    std::memcpy(&bytes[26], &in_memory, sizeof in_memory);
}

TEST(IpPacket, the_sum_is_that_of_the_example_of_rfc_1071) {
    EXPECT_EQ(big(sum_of(bytes_of({0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}))), 0xddf2);
    EXPECT_EQ(big(sum_of(bytes_of({0x00, 0x01, 0xf2}))), 0xf201) << "an odd octet is the high one";
    EXPECT_EQ(big(sum_of(bytes_of({0xff, 0xff, 0x00, 0x01}))), 0x0001) << "the carry comes around";
    EXPECT_EQ(sum_of({}), 0);
}

TEST(IpPacket, the_checksum_of_a_header_is_that_of_the_published_example) {
    const Bytes header = bytes_of({0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                   0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7});
    EXPECT_EQ(big(checksum_of(header)), 0xb861);
}

TEST(IpPacket, a_sum_in_pieces_is_the_sum_of_the_whole) {
    Bytes bytes;
    for (unsigned n = 0; n < 1473; ++n)
        bytes.push_back(static_cast<std::byte>(n * 37 + 11));
    for (const std::size_t at : {0U, 2U, 4U, 14U, 1000U, 1472U}) {
        const std::uint16_t first = sum_of(std::span(bytes).first(at));
        EXPECT_EQ(sum_of(std::span(bytes).subspan(at), first), sum_of(bytes)) << at;
    }
}

TEST(IpPacket, a_datagram_is_read_as_it_was_written) {
    for (const std::size_t octets : {0U, 1U, 20U, 1472U}) {
        const Bytes bytes = packet(octets, 7);
        Datagram out;
        ASSERT_EQ(read_datagram(bytes, kStation, out), Reason::kNone) << octets;
        EXPECT_EQ(out.from, kOther);
        EXPECT_EQ(out.from_port, kSender.port);
        EXPECT_EQ(out.octets.size(), octets) << "what fills up the frame is left out";
        EXPECT_EQ(big(sum_of(std::span(bytes).first(20))), 0xffff);
    }
}

TEST(IpPacket, options_of_ip_are_passed_over) {
    Bytes bytes = packet();
    const Bytes options(8, std::byte{1});
    bytes.insert(bytes.begin() + 20, options.begin(), options.end());
    bytes[0] = std::byte{0x47};
    put16(bytes, 2, static_cast<unsigned>(bytes.size()));
    put16(bytes, 10, 0);
    const std::uint16_t sum = checksum_of(std::span(bytes).first(28));
    std::memcpy(&bytes[10], &sum, sizeof sum);
    Datagram out;
    ASSERT_EQ(read_datagram(bytes, kStation, out), Reason::kNone);
    EXPECT_EQ(out.octets.size(), 20U);
}

TEST(IpPacket, a_checksum_of_udp_counts_if_it_is_there) {
    Bytes bytes = packet(21);
    const std::uint16_t pseudo = pseudo_sum(kOther, kOwn, 29);
    Datagram out;
    const auto right =
        static_cast<std::uint16_t>(~sum_of(std::span(bytes).subspan(20, 29), pseudo));
    set_udp_checksum(bytes, right);
    EXPECT_EQ(read_datagram(bytes, kStation, out), Reason::kNone);
    bytes.back() ^= std::byte{1};
    EXPECT_EQ(read_datagram(bytes, kStation, out), Reason::kBadChecksum);
    set_udp_checksum(bytes, pseudo);
    EXPECT_EQ(read_datagram(bytes, kStation, out), Reason::kNone)
        << "the kernel of this machine left the rest to its device";
}

TEST(IpPacket, wrong_datagrams_are_refused_each_for_its_reason) {
    struct Case {
        const char* what;
        Reason reason;
        std::function<void(Bytes&)> change;
        bool keeps_checksum = false;
    };
    const std::vector<Case> cases{
        {"no octet", Reason::kShort, [](Bytes& b) { b.clear(); }, true},
        {"19 octets", Reason::kShort, [](Bytes& b) { b.resize(19); }, true},
        {"cut before its end", Reason::kShort, [](Bytes& b) { b.pop_back(); }},
        {"version 6", Reason::kBadHeader, [](Bytes& b) { b[0] = std::byte{0x65}; }},
        {"header of 16 octets", Reason::kBadHeader, [](Bytes& b) { b[0] = std::byte{0x44}; }},
        {"length below the header", Reason::kBadHeader, [](Bytes& b) { put16(b, 2, 19); }},
        {"header longer than the packet", Reason::kBadHeader,
         [](Bytes& b) {
             b[0] = std::byte{0x4f};
             put16(b, 2, 48);
         }},
        {"header checksum", Reason::kBadChecksum, [](Bytes& b) { b[8] ^= std::byte{1}; }, true},
        {"another node", Reason::kOtherStation, [](Bytes& b) { put32(b, 16, kOwn + 1); }},
        {"broadcast", Reason::kOtherStation, [](Bytes& b) { put32(b, 16, 0xffffffff); }},
        {"first fragment", Reason::kFragment, [](Bytes& b) { put16(b, 6, 0x2000); }},
        {"last fragment", Reason::kFragment, [](Bytes& b) { put16(b, 6, 0x0001); }},
        {"TCP", Reason::kOtherProtocol, [](Bytes& b) { b[9] = std::byte{6}; }},
        {"from a multicast address", Reason::kBadSource,
         [](Bytes& b) { put32(b, 12, 0xe0000001); }},
        {"from 0.0.0.0", Reason::kBadSource, [](Bytes& b) { put32(b, 12, 0); }},
        {"from the loopback net", Reason::kBadSource, [](Bytes& b) { put32(b, 12, 0x7f000001); }},
        {"from the subnet's broadcast", Reason::kBadSource,
         [](Bytes& b) { put32(b, 12, 0x0a0000ff); }},
        {"from the own address", Reason::kBadSource, [](Bytes& b) { put32(b, 12, kOwn); }},
        {"no space for UDP", Reason::kShort, [](Bytes& b) { put16(b, 2, 27); }},
        {"UDP longer than IP", Reason::kBadHeader, [](Bytes& b) { put16(b, 24, 29); }},
        {"UDP of 7 octets", Reason::kBadHeader, [](Bytes& b) { put16(b, 24, 7); }},
        {"another port", Reason::kOtherStation, [](Bytes& b) { put16(b, 22, 30792); }},
        {"from port 0", Reason::kBadSource, [](Bytes& b) { put16(b, 20, 0); }},
    };
    for (const Case& each : cases) {
        Bytes bytes = packet();
        each.change(bytes);
        if (!each.keeps_checksum && each.reason != Reason::kBadHeader) set_checksum(bytes);
        if (each.reason == Reason::kBadHeader && bytes[0] == std::byte{0x45}) set_checksum(bytes);
        Datagram out;
        EXPECT_EQ(read_datagram(bytes, kStation, out), each.reason) << each.what;
    }
}

TEST(IpPacket, each_octet_changed_is_read_within_the_packet) {
    for (std::size_t at = 0; at < kAroundOctets; ++at)
        for (unsigned value = 0; value < 256; ++value) {
            Bytes bytes = packet(4);
            bytes[at] = static_cast<std::byte>(value);
            if (at != 10 && at != 11) set_checksum(bytes);
            Datagram out;
            if (read_datagram(bytes, kStation, out) != Reason::kNone) continue;
            EXPECT_LE(out.octets.size(), 4U);
        }
}

/// An echo request of that many octets, with its checksum.
Bytes echo(std::size_t octets, std::uint8_t type = kEchoRequest, std::uint8_t code = 0) {
    Bytes bytes(octets, std::byte{'e'});
    EchoHeader header{type, code, 0, 1, 2};
    std::memcpy(bytes.data(), &header, sizeof header);
    header.checksum = checksum_of(bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

TEST(IpPacket, a_reply_to_an_echo_has_what_was_sent) {
    for (const std::size_t octets : {8U, 9U, 64U, 1480U}) {
        const Bytes request = echo(octets);
        Bytes bytes(sizeof(Ipv4Header) + octets);
        ASSERT_EQ(check_echo({kOther, kIcmp, request}), Reason::kNone);
        put_echo_reply(bytes.data(), kStation, {kOther, kIcmp, request});
        Packet reply;
        ASSERT_EQ(read_packet(bytes, kSender, reply), Reason::kNone);
        EXPECT_EQ(reply.from, kOwn);
        EXPECT_EQ(reply.protocol, kIcmp);
        EXPECT_EQ(Bytes(reply.octets.begin(), reply.octets.end()), echo(octets, kEchoReply));
    }
}

// I-27
TEST(IpPacket, wrong_echoes_are_refused_each_for_its_reason) {
    EXPECT_EQ(check_echo({kOther, kIcmp, echo(20, kEchoReply)}), Reason::kOtherProtocol);
    EXPECT_EQ(check_echo({kOther, kIcmp, echo(20, kEchoRequest, 1)}), Reason::kOtherProtocol);
    Bytes bytes = echo(20);
    EXPECT_EQ(check_echo({kOther, kIcmp, std::span(bytes).first(7)}), Reason::kShort);
    bytes.back() ^= std::byte{1};
    EXPECT_EQ(check_echo({kOther, kIcmp, bytes}), Reason::kBadChecksum);
}

// I-24
TEST(IpPacket, frames_of_another_vlan_are_refused) {
    Station tagged = kStation;
    tagged.vlan = 7;
    Station sender = kSender;
    struct Case {
        unsigned of_frame;  // 0: no tag
        const Station* station;
        Reason reason;
    };
    for (const Case& each :
         {Case{0, &kStation, Reason::kNone}, Case{0, &tagged, Reason::kOtherVlan},
          Case{7, &kStation, Reason::kOtherVlan}, Case{7, &tagged, Reason::kNone},
          Case{8, &tagged, Reason::kOtherVlan}}) {
        sender.vlan = static_cast<std::uint16_t>(each.of_frame);
        Bytes frame(60);
        const std::size_t octets = put_link(frame.data(), sender, kOwnMac, kTypeIpv4);
        EXPECT_EQ(octets, each.of_frame == 0 ? 14U : 18U);
        LinkBody out;
        EXPECT_EQ(read_link(frame, *each.station, out), each.reason) << each.of_frame;
        if (each.reason != Reason::kNone) continue;
        EXPECT_EQ(out.type, kTypeIpv4);
        EXPECT_EQ(out.octets.size(), frame.size() - octets);
    }
    sender.vlan = 0xe000;  // a priority alone
    Bytes frame(60);
    put_link(frame.data(), sender, kOwnMac, kTypeIpv4);
    LinkBody out;
    EXPECT_EQ(read_link(frame, kStation, out), Reason::kNone);
}

TEST(IpPacket, short_frames_and_own_ones_are_refused) {
    Bytes frame(60);
    put_link(frame.data(), kSender, kOwnMac, kTypeVlan);
    LinkBody out;
    for (std::size_t octets = 0; octets < 18; ++octets)
        EXPECT_EQ(read_link(std::span(frame).first(octets), kStation, out), Reason::kShort);
    put_link(frame.data(), kStation, kBroadcastMac, kTypeArp);
    EXPECT_EQ(read_link(frame, kStation, out), Reason::kBadSource) << "an echo";
    Station group = kSender;
    group.mac.octets[0] |= 1U;
    put_link(frame.data(), group, kOwnMac, kTypeIpv4);
    EXPECT_EQ(read_link(frame, kStation, out), Reason::kBadSource);
}

TEST(IpPacket, wrong_arp_is_refused) {
    struct Case {
        const char* what;
        Reason reason;
        std::function<void(Bytes&)> change;
    };
    const std::vector<Case> cases{
        {"good", Reason::kNone, [](Bytes&) {}},
        {"27 octets", Reason::kShort, [](Bytes& b) { b.resize(27); }},
        {"another medium", Reason::kBadArp, [](Bytes& b) { put16(b, 0, 6); }},
        {"another protocol", Reason::kBadArp, [](Bytes& b) { put16(b, 2, 0x86dd); }},
        {"8 octets of hardware", Reason::kBadArp, [](Bytes& b) { b[4] = std::byte{8}; }},
        {"16 octets of IP", Reason::kBadArp, [](Bytes& b) { b[5] = std::byte{16}; }},
        {"operation 0", Reason::kBadArp, [](Bytes& b) { put16(b, 6, 0); }},
        {"operation 3", Reason::kBadArp, [](Bytes& b) { put16(b, 6, 3); }},
        {"group as sender", Reason::kBadArp, [](Bytes& b) { b[8] |= std::byte{1}; }},
        {"own MAC address", Reason::kBadArp, [](Bytes& b) { std::memcpy(&b[8], &kOwnMac, 6); }},
        {"no MAC address", Reason::kBadArp, [](Bytes& b) { std::memset(&b[8], 0, 6); }},
        {"own IP address", Reason::kAddressInUse, [](Bytes& b) { put32(b, 14, kOwn); }},
        {"another subnet", Reason::kBadArp, [](Bytes& b) { put32(b, 14, 0x0a000107); }},
        {"the subnet's broadcast", Reason::kBadArp, [](Bytes& b) { put32(b, 14, 0x0a0000ff); }},
        {"a probe", Reason::kNone, [](Bytes& b) { put32(b, 14, 0); }},
        {"a reply of no node", Reason::kBadArp,
         [](Bytes& b) {
             put16(b, 6, kArpReply);
             put32(b, 14, 0);
         }},
    };
    for (const Case& each : cases) {
        Bytes body(sizeof(ArpBody));
        put_arp(body.data(), kSender, kArpRequest, Mac{}, kOwn);
        each.change(body);
        ArpBody out;
        EXPECT_EQ(read_arp(body, kStation, out), each.reason) << each.what;
    }
}

TEST(IpPacket, each_reason_has_a_text) {
    for (std::size_t n = 0; n < kReasons; ++n)
        EXPECT_GT(std::strlen(text_of(static_cast<Reason>(n))), 3U) << n;
}

}  // namespace
}  // namespace ulc::ip
