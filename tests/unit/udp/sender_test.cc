// SPDX-License-Identifier: BSD-3-Clause
// Frames as messages of a UDP socket (udp/sender.h), by a call that takes as many messages as the
// test says and then fails with the errno that it says: each frame reaches each of its receivers
// once and in order, or is counted, and is freed once. On an open net, and on sealed ones.
#include "udp/sender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "fixture.h"
#include "port/frame_pool.h"

namespace ulc::udp {
namespace {

constexpr std::uint32_t kFrameMax = 1482;
constexpr std::size_t kNarrow = 1252;  ///< longest datagram of a narrow path
constexpr unsigned kPeers = 5;

Address address(unsigned n) {
    Address out;
    const std::string low = std::to_string(n / 250) + "." + std::to_string(n % 250 + 1);
    EXPECT_TRUE(read_address("10.0." + low + ":4791", out));
    return out;
}

Mac name(unsigned n) {
    return Mac{
        {2, 0, 0, 0, static_cast<std::uint8_t>(n / 250), static_cast<std::uint8_t>(n % 250)}};
}

/// The parameter: secrets of the net, of which node n holds secret n % their number; 0: it is open.
class UdpSender : public testing::TestWithParam<unsigned> {
protected:
    UdpSender()
        : ring(GetParam() == 0 ? nullptr : ring_of(name(1000))),
          peers(PeersConfig{name(1000), 1, ring.get()}),
          sender(peers, {kFrameMax, kNarrow, ring.get()},
                 {this, [](void* self, std::span<const Message> messages, int& error) {
                      return static_cast<UdpSender*>(self)->take(messages, error);
                  }}) {
        for (unsigned n = 0; n < GetParam(); ++n)
            EXPECT_TRUE(ring->add(secret_of(static_cast<std::uint8_t>(n))));
        std::string why;
        EXPECT_EQ(pool.create(256, kFrameMax, why), Err::kOk) << why;
        for (unsigned n = 0; n < kPeers; ++n)
            introduce(n);
    }
    static std::unique_ptr<seal::Keyring> ring_of(const Mac& own) {
        EXPECT_GE(sodium_init(), 0);
        seal::Salt salt{};
        std::memcpy(salt.data(), &own, sizeof own);
        return std::make_unique<seal::Keyring>(own, salt, seal::has_aes());
    }
    /// The keys by which a receiver opens datagrams.
    struct Opener {
        std::unique_ptr<seal::Keyring> ring;
        std::unique_ptr<seal::PeerKeys> keys;
    };
    void introduce(unsigned n) {
        if (ring != nullptr) {
            Opener& opener = openers[address(n)];
            opener.ring = ring_of(name(n));
            EXPECT_TRUE(opener.ring->add(secret_of(static_cast<std::uint8_t>(n % GetParam()))));
            std::byte body[sizeof(seal::Proof)];
            ring->prove(n % GetParam(), body, 0);
            seal::Proof proof;
            EXPECT_EQ(opener.ring->check(body, proof), 0U);
            opener.keys = std::make_unique<seal::PeerKeys>(name(1000), proof);
        }
        peers.add(address(n), 0);
        peers.on_timer(0);
        std::byte body[kControlMax];
        for (Address to; peers.next_tx(to, body) != 0;) {
            Hello hello;
            std::memcpy(&hello, body, sizeof hello);
            Welcome welcome;
            welcome.name = name(n);
            welcome.count = std::uint16_t{0};
            welcome.entries = std::uint16_t{0};
            welcome.token = std::uint64_t{hello.token};
            std::size_t octets = sizeof welcome;
            if (ring != nullptr) welcome.kind = Kind::kSealedWelcome;
            std::memcpy(body, &welcome, sizeof welcome);
            if (ring != nullptr) {
                openers[to].ring->prove(0, body, octets);
                octets += sizeof(seal::Proof);
            }
            peers.on_datagram(to, {body, octets}, 0);
        }
        ASSERT_NE(peers.find(name(n)), nullptr);
    }
    /// The call: takes `takes` messages in all, then fails with each of `errors` in turn.
    std::size_t take(std::span<const Message> messages, int& error) {
        std::size_t sent = 0;
        error = 0;
        for (const Message& message : messages) {
            if (takes == 0) {
                error = errors.empty() ? EAGAIN : errors.front();
                if (!errors.empty()) errors.pop_front();
                return sent;
            }
            if (narrow.contains(address_of(message.to->any)) && longest_of(message) > kNarrow) {
                error = EMSGSIZE;
                return sent;
            }
            --takes;
            ++sent;
            deliver(message);
        }
        return sent;
    }
    static std::size_t longest_of(const Message& message) {
        if (message.datagram_octets != 0) return message.datagram_octets;
        std::size_t octets = 0;
        for (std::size_t n = 0; n < message.piece_count; ++n)
            octets += message.pieces[n].iov_len;
        return octets;
    }
    void deliver(const Message& message) {
        std::vector<std::byte> octets;
        for (std::size_t n = 0; n < message.piece_count; ++n) {
            const auto* from = static_cast<const std::byte*>(message.pieces[n].iov_base);
            octets.insert(octets.end(), from, from + message.pieces[n].iov_len);
        }
        const std::size_t each =
            message.datagram_octets == 0 ? octets.size() : message.datagram_octets;
        EXPECT_LE(octets.size(), kMessageOctetsMax);
        EXPECT_LE((octets.size() + each - 1) / each, kDatagramsMax);
        for (std::size_t at = 0; at < octets.size(); at += each) {
            const std::size_t end = std::min(octets.size(), at + each);
            const Address to = address_of(message.to->any);
            take_datagram(to, opened(to, {octets.data() + at, end - at}));
        }
    }
    /// Parts become the datagram that was cut. All come, and in order.
    void take_datagram(const Address& to, std::vector<std::byte> datagram) {
        if (datagram[0] == static_cast<std::byte>(Kind::kPart)) {
            PartHead head;
            std::memcpy(&head, datagram.data(), sizeof head);
            auto& [number, id, whole] = parts[to];
            if ((head.number & ~unsigned{kLastPart}) == 0) {
                EXPECT_EQ(number, 0U) << "the datagram before has no end";
                id = head.datagram;
            }
            EXPECT_EQ(head.number & ~unsigned{kLastPart}, number);
            EXPECT_EQ(head.datagram, id);
            ++number;
            whole.insert(whole.end(), datagram.begin() + sizeof head, datagram.end());
            if ((head.number & kLastPart) == 0) return;
            datagram = std::exchange(whole, {});
            number = 0;
            ++cut;
        }
        came[to].push_back(std::move(datagram));
    }
    /// Returns what the receiver finds in a datagram.
    std::vector<std::byte> opened(const Address& to, std::span<const std::byte> datagram) {
        if (ring == nullptr) return {datagram.begin(), datagram.end()};
        Opener& opener = openers.at(to);
        std::vector<std::byte> text(datagram.size() - seal::kSealOctets);
        EXPECT_TRUE(opener.keys->open(*opener.ring, datagram, text.data(), 0)) << text_of(to);
        return text;
    }
    Segment* frame(const Mac& to, std::uint32_t octets, unsigned number) {
        Segment* segment = pool.get();
        EXPECT_NE(segment, nullptr);
        std::memset(segment->frame, static_cast<int>(number), octets);
        std::memcpy(segment->frame, &to, sizeof to);
        segment->frame[kEthernetOctets] = std::byte{1};  // DATA
        segment->length = octets;
        if (octets < 200) return segment;
        segment->tail = tails.data() + number % 100;
        segment->tail_octets = 100;
        return segment;
    }
    /// Returns the datagram that the frame becomes.
    static std::vector<std::byte> datagram_of(const Segment& segment) {
        std::vector<std::byte> whole(segment.length);
        copy_frame(whole.data(), segment);
        whole.erase(whole.begin(), whole.begin() + (kEthernetOctets - kHeadOctets));
        const bool group = (segment.frame[0] & std::byte{1}) != std::byte{};
        whole[0] = static_cast<std::byte>(group ? Kind::kToGroup : Kind::kFrame);
        for (std::size_t n = 1; n < kHeadOctets; ++n)
            whole[n] = group ? segment.frame[2 + n] : std::byte{};
        return whole;
    }
    [[nodiscard]] std::uint32_t free_frames() {
        const SegmentPool table = pool.table();
        return table.available(table.context);
    }
    std::vector<std::byte> tails = std::vector<std::byte>(200, std::byte{0x5a});
    port::FramePool pool;
    std::map<Address, Opener> openers;
    std::unique_ptr<seal::Keyring> ring;
    Peers peers;
    Sender sender;
    struct Parts {
        unsigned number = 0;
        unsigned id = 0;
        std::vector<std::byte> whole;
    };
    std::map<Address, Parts> parts;
    unsigned cut = 0;          ///< datagrams that came in parts
    std::set<Address> narrow;  ///< receivers whose paths take kNarrow octets
    std::size_t takes = SIZE_MAX;
    std::deque<int> errors;
    std::map<Address, std::vector<std::vector<std::byte>>> came;
};

INSTANTIATE_TEST_SUITE_P(Secrets, UdpSender, testing::Values(0U, 1U, 3U));

// I-2, I-4
TEST_P(UdpSender, gives_each_receiver_each_frame_once_and_in_order_however_calls_end) {
    Prng prng(11);
    std::map<Address, std::vector<std::vector<std::byte>>> wanted;
    std::uint64_t unsendable = 0;
    unsigned number = 0;
    for (unsigned round = 0; round < 1000; ++round) {
        if (round == 300) narrow = {address(1), address(4)};  // I-18: paths become narrow
        std::vector<Segment*> burst;
        const std::uint32_t count = 1 + static_cast<std::uint32_t>(prng.below(64));
        unsigned to = 0;
        std::uint32_t octets = 100;
        for (std::uint32_t n = 0; n < count; ++n) {
            if (prng.chance(0.3)) to = static_cast<unsigned>(prng.below(kPeers + 2));
            if (prng.chance(0.3)) octets = 60 + static_cast<std::uint32_t>(prng.below(1400));
            const Mac group{{3, 0x55, 0x4c, 0, 1, static_cast<std::uint8_t>(round)}};
            burst.push_back(frame(to == kPeers ? group : name(to), octets, ++number));
            const std::vector<std::byte> datagram = datagram_of(*burst.back());
            for (unsigned peer = 0; peer < kPeers; ++peer)
                if (to == peer || to == kPeers) wanted[address(peer)].push_back(datagram);
            if (to == kPeers + 1) ++unsendable;  // a name that is not known
        }
        std::size_t offered = 0;
        while (offered < burst.size() || !sender.send_rest()) {
            takes = prng.below(12);
            const auto left = static_cast<std::uint16_t>(burst.size() - offered);
            offered += sender.send(burst.data() + offered, left);
        }
    }
    ASSERT_EQ(came.size(), kPeers);
    for (auto& [to, frames] : wanted)
        EXPECT_EQ(came[to], frames) << text_of(to);
    EXPECT_EQ(sender.unsendable(), unsendable);
    EXPECT_EQ(free_frames(), 256U);
    EXPECT_GT(cut, 1000U);
    EXPECT_EQ(peers.narrow_count(), 2U);
}

TEST_P(UdpSender, passes_over_a_receiver_that_the_kernel_refuses) {
    const Mac group{{3, 0x55, 0x4c, 0, 0, 1}};
    Segment* burst[] = {frame(name(0), 300, 1), frame(group, 300, 2), frame(name(1), 300, 3)};
    takes = 3;  // the first, and two of the group's
    errors = {EPERM};
    ASSERT_GE(sender.send(burst, 3), 2);
    EXPECT_EQ(sender.unsendable(), 1U);
    takes = SIZE_MAX;
    EXPECT_TRUE(sender.send_rest());
    ASSERT_EQ(sender.send(&burst[2], 1), 1);
    std::size_t all = 0;
    for (const auto& [to, frames] : came)
        all += frames.size();
    EXPECT_EQ(all, 1 + (kPeers - 1) + 1);
    EXPECT_EQ(free_frames(), 256U);
}

TEST_P(UdpSender, gives_up_a_frame_that_its_only_receiver_cannot_get) {
    Segment* burst[] = {frame(name(0), 300, 1), frame(name(1), 300, 2)};
    takes = 0;
    errors = {EMSGSIZE, EHOSTUNREACH};
    ASSERT_EQ(sender.send(burst, 2), 2);
    EXPECT_EQ(sender.unsendable(), 2U);
    EXPECT_TRUE(came.empty());
    EXPECT_EQ(free_frames(), 256U);
}

// Others may hold the frames, and send them again.
TEST_P(UdpSender, leaves_frames_as_they_were) {
    const Mac group{{3, 0x55, 0x4c, 0, 0, 1}};
    Segment* const one = frame(name(0), 300, 1);
    Segment* burst[] = {one, one, frame(group, 300, 2)};
    std::vector<std::vector<std::byte>> wanted;
    const SegmentPool table = pool.table();
    for (Segment* each : burst) {
        wanted.emplace_back(each->frame, each->frame + each->length - each->tail_octets);
        table.hold(each);
    }
    table.hold(one);
    for (const std::size_t taken : {SIZE_MAX, std::size_t{0}}) {
        takes = taken;
        ASSERT_EQ(sender.send(burst, 3), taken == 0 ? 0 : 3);
        for (std::size_t n = 0; n < 3; ++n)
            EXPECT_TRUE(
                std::ranges::equal(wanted[n], std::span(burst[n]->frame, wanted[n].size())));
    }
    EXPECT_EQ(came[address(0)].size(), 3U);
    EXPECT_EQ(came[address(0)][1], datagram_of(*one));
}

TEST_P(UdpSender, drops_a_frame_that_is_too_long) {
    Segment* burst[] = {frame(name(0), 300, 1)};
    burst[0]->length = kFrameMax + 1;
    burst[0]->tail = nullptr;
    ASSERT_EQ(sender.send(burst, 1), 1);
    EXPECT_EQ(sender.unsendable(), 1U);
    EXPECT_TRUE(came.empty());
}

// I-4
TEST_P(UdpSender, sends_a_groups_frame_to_more_nodes_than_a_call_takes) {
    for (unsigned n = kPeers; n < 300; ++n)
        introduce(n);
    const Mac group{{3, 0x55, 0x4c, 0, 0, 1}};
    Segment* sent = frame(group, 300, 1);
    takes = 100;
    ASSERT_EQ(sender.send(&sent, 1), 1);
    for (unsigned calls = 0; calls < 10 && !sender.send_rest(); ++calls)
        takes = 100;
    EXPECT_EQ(came.size(), 300U);
    for (const auto& [to, frames] : came)
        EXPECT_EQ(frames.size(), 1U);
    EXPECT_EQ(free_frames(), 256U);
}

}  // namespace
}  // namespace ulc::udp
