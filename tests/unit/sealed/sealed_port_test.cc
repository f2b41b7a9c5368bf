// SPDX-License-Identifier: BSD-3-Clause
// A net whose frames are sealed (sealed/sealed_port.h), over a hub that the test reads and changes.
#include "sealed/sealed_port.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "wire/header.h"
#include "wire/mac_text.h"

namespace ulc::sealed {
namespace {

constexpr Mac kGroup{{3, 0x55, 0x4c, 0, 0, 7}};
constexpr std::uint16_t kType = wire::kEtherTypeDefault;
Nanos now = 0;

Mac station(unsigned n) { return Mac{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(n)}}; }

using Bytes = std::vector<std::byte>;

/// A station of the hub: its port below, and the sealed one.
struct Station {
    port::FramePool pool;
    Port below;
    std::deque<Segment*> come;
    std::vector<Bytes>* wire = nullptr;
    std::size_t accepts = SIZE_MAX;
    bool deaf_to_calls = false;  ///< broadcasts do not reach it
    InterfaceState interface;
    std::unique_ptr<SealedPort> sealed;
    Mac mac;

    [[nodiscard]] const Port& port() const { return sealed->port(); }
};

std::string key_file(const std::string& text) {
    std::string path = testing::TempDir() + "ulc_sealed_XXXXXX";
    const int fd = mkstemp(path.data());
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
    return path;
}

class Sealed : public testing::Test {
protected:
    static constexpr std::uint32_t kSegments = 128;
    static constexpr std::uint16_t kMtu = 1500;

    void SetUp() override {
        now = kSecond;
        key_ = key_file(std::string(32, 'k'));
        other_key_ = key_file(std::string(32, 'o'));
    }
    void TearDown() override {
        for (const auto& each : stations_) {
            each->sealed.reset();
            for (Segment* const segment : each->come)
                port::FramePool::put(segment);
            EXPECT_EQ(each->below.pool.available(each->below.pool.context), kSegments)
                << "a frame is lost";
        }
        std::remove(key_.c_str());
        std::remove(other_key_.c_str());
    }

    Station& add(const std::string& key) {
        auto& self = *stations_.emplace_back(std::make_unique<Station>());
        std::string why;
        EXPECT_EQ(self.pool.create(kSegments, kMtu + 14, why), Err::kOk);
        self.wire = &wire_;
        self.mac = station(static_cast<unsigned>(stations_.size()));
        Port& port = self.below;
        port.context = &self;
        port.pool = self.pool.table();
        port.info.mac = self.mac;
        port.info.mtu = port.info.mtu_sure = kMtu;
        port.rx = [](void* context, Segment** out, std::uint16_t n) {
            auto& come = static_cast<Station*>(context)->come;
            std::uint16_t count = 0;
            for (; count < n && !come.empty(); come.pop_front())
                out[count++] = come.front();
            return count;
        };
        port.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
            auto& me = *static_cast<Station*>(context);
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
            return &static_cast<Station*>(context)->interface;
        };
        port.take_address = [](void* context) {
            auto& me = *static_cast<Station*>(context);
            return me.mac = me.interface.own = me.interface.mac;
        };
        const PortOptions options{kType, kSegments, stations_.size(), key, [] { return now; }};
        EXPECT_EQ(SealedPort::open(port, options, self.sealed, why), Err::kOk) << why;
        return self;
    }
    /// Gives a frame to one station.
    static void give(Station& to, const Bytes& frame) {
        Segment* const segment = to.pool.get();
        ASSERT_NE(segment, nullptr);
        std::memcpy(segment->frame, frame.data(), frame.size());
        segment->length = static_cast<std::uint32_t>(frame.size());
        to.come.push_back(segment);
    }
    /// Gives what was sent to the stations that it is for, filled up to 60 octets, and collects
    /// what each gives its engine.
    void deliver() {
        std::vector<Bytes> sent;
        sent.swap(wire_);
        for (Bytes& frame : sent) {
            log_.push_back(frame);
            frame.resize(std::max<std::size_t>(frame.size(), 60));
            Mac to;
            std::memcpy(&to, frame.data(), sizeof to);
            for (const auto& each : stations_) {
                const bool is_sender = std::memcmp(&frame[6], &each->mac, 6) == 0;
                const bool hears = udp::is_group(to) ? !each->deaf_to_calls : to == each->mac;
                if (!is_sender && hears) give(*each, frame);
            }
        }
    }
    std::vector<Bytes> take(Station& at) {
        std::vector<Bytes> taken;
        Segment* frames[64];
        while (!at.come.empty()) {
            const std::uint16_t count = at.port().rx(at.port().context, frames, 64);
            for (std::uint16_t n = 0; n < count; ++n) {
                taken.emplace_back(frames[n]->frame, frames[n]->frame + frames[n]->length);
                port::FramePool::put(frames[n]);
            }
        }
        return taken;
    }
    /// Lets all stations talk for a while; what their engines get is dropped.
    void meet(Nanos time = 100 * kMillisecond, Nanos step = kMillisecond) {
        for (const Nanos end = now + time; now < end; now += step)
            for (const auto& each : stations_) {
                (void)each->port().link_up(each->port().context);
                deliver();
                for (const auto& other : stations_)
                    (void)take(*other);
            }
    }
    static Segment* frame(Station& from, const Mac& to, std::size_t octets, char fill = 'p') {
        Segment* const segment = from.port().pool.get();
        std::memset(segment->frame, fill, octets);
        std::memcpy(segment->frame, &to, sizeof to);
        std::memcpy(segment->frame + 6, &from.port().info.mac, sizeof to);
        const Be16 type{kType};
        std::memcpy(segment->frame + 12, &type, sizeof type);
        segment->length = static_cast<std::uint32_t>(octets);
        return segment;
    }
    static bool send(Station& from, const Mac& to, std::size_t octets, char fill = 'p') {
        Segment* const segment = frame(from, to, octets, fill);
        if (from.port().tx(from.port().context, &segment, 1) == 1) return true;
        port::FramePool::put(segment);
        return false;
    }
    static PortDrops drops(const Station& at) { return at.port().drops(at.port().context); }
    static std::string words(const Station& at) { return at.port().unanswered(at.port().context); }
    static std::string payload(const Bytes& frame) {
        return {reinterpret_cast<const char*>(frame.data()) + 14, frame.size() - 14};
    }
    static Mac mac_at(const Bytes& frame, std::size_t at) {
        Mac mac;
        std::memcpy(&mac, &frame[at], sizeof mac);
        return mac;
    }

    std::string key_, other_key_;
    std::vector<std::unique_ptr<Station>> stations_;
    std::vector<Bytes> wire_;
    std::vector<Bytes> log_;  ///< all that was on the wire
};

TEST_F(Sealed, nodes_of_one_key_exchange_frames_that_others_cannot_read) {
    Station& a = add(key_);
    Station& b = add(key_);
    Station& c = add(key_);
    meet();
    log_.clear();
    const std::string secret(1000, 'p');
    ASSERT_TRUE(send(a, b.port().info.mac, 1014));
    deliver();
    EXPECT_TRUE(take(c).empty());
    const auto taken = take(b);
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(payload(taken[0]), secret);
    EXPECT_EQ(mac_at(taken[0], 0), b.port().info.mac);
    EXPECT_EQ(mac_at(taken[0], 6), a.port().info.mac) << "the name, not the address";
    ASSERT_EQ(log_.size(), 1U);
    EXPECT_EQ(payload(log_[0]).find("pppp"), std::string::npos);
    EXPECT_EQ(log_[0].size(), 1014U + udp::kHeadOctets + seal::kSealOctets);
    EXPECT_EQ(a.port().info.mtu, kMtu - udp::kHeadOctets - seal::kSealOctets);
}

// I-20
TEST_F(Sealed, a_frame_for_a_group_is_sent_once) {
    Station& a = add(key_);
    Station& b = add(key_);
    Station& c = add(key_);
    meet();
    for (const Mac& to : {kGroup, kBroadcastMac}) {
        log_.clear();
        ASSERT_TRUE(send(a, to, 200));
        deliver();
        EXPECT_EQ(log_.size(), 1U);
        EXPECT_EQ(mac_at(log_.at(0), 0), to) << "the devices' filters know it";
        for (Station* const at : {&b, &c}) {
            const auto taken = take(*at);
            ASSERT_EQ(taken.size(), 1U);
            EXPECT_EQ(mac_at(taken[0], 0), to);
            EXPECT_EQ(payload(taken[0]), std::string(186, 'p'));
        }
    }
}

TEST_F(Sealed, short_frames_and_the_longest_one_arrive) {
    Station& a = add(key_);
    Station& b = add(key_);
    meet();
    for (const std::size_t octets : {15U, 16U, 30U, 42U, 43U, 60U, kMtu + 14U - 32U}) {
        ASSERT_TRUE(send(a, b.port().info.mac, octets));
        deliver();
        const auto taken = take(b);
        ASSERT_EQ(taken.size(), 1U) << octets;
        EXPECT_EQ(payload(taken[0]).substr(0, octets - 14), std::string(octets - 14, 'p'));
        EXPECT_LE(taken[0].size(), std::max<std::size_t>(octets, 60)) << "as Ethernet fills up";
    }
    const std::uint64_t before = drops(a).unsendable;
    Segment* const segment = a.port().pool.get();
    std::memset(segment->frame, 0, 14);
    segment->length = kMtu + 14;
    ASSERT_EQ(a.port().tx(a.port().context, &segment, 1), 1);
    EXPECT_EQ(drops(a).unsendable, before + 1);
}

TEST_F(Sealed, a_payload_in_memory_of_a_client_is_read_in_the_call) {
    Station& a = add(key_);
    Station& b = add(key_);
    meet();
    Bytes tail(500, std::byte{'t'});
    Segment* const segment = frame(a, b.port().info.mac, 114);
    segment->tail = tail.data();
    segment->tail_octets = 500;
    segment->length += 500;
    ASSERT_EQ(a.port().tx(a.port().context, &segment, 1), 1);
    std::ranges::fill(tail, std::byte{0});
    deliver();
    EXPECT_EQ(payload(take(b).at(0)), std::string(100, 'p') + std::string(500, 't'));
}

TEST_F(Sealed, a_node_with_another_key_gets_and_gives_nothing) {
    Station& a = add(key_);
    Station& b = add(other_key_);
    meet();
    EXPECT_GT(drops(a).unsealed, 0U) << "its questions prove another secret";
    EXPECT_EQ(words(a),
              "the engine at " + text_of(b.mac) +
                  " has another key, or is open: give all engines of the segment one --seal");
    const std::uint64_t before = drops(a).unsendable;
    ASSERT_TRUE(send(a, b.port().info.mac, 100));
    EXPECT_EQ(drops(a).unsendable, before + 1) << "no node of that name was found";
    ASSERT_TRUE(send(a, kBroadcastMac, 100));
    deliver();
    EXPECT_TRUE(take(b).empty());
}

TEST_F(Sealed, repeated_changed_redirected_and_open_frames_are_dropped) {
    Station& a = add(key_);
    Station& b = add(key_);
    Station& c = add(key_);
    meet();
    log_.clear();
    ASSERT_TRUE(send(a, b.port().info.mac, 100));
    deliver();
    ASSERT_EQ(take(b).size(), 1U);
    const Bytes sealed = log_.at(0);
    std::uint64_t counted = drops(b).unsealed;
    give(b, sealed);
    EXPECT_TRUE(take(b).empty()) << "it came before";
    EXPECT_EQ(drops(b).unsealed, ++counted);
    ASSERT_TRUE(send(a, b.port().info.mac, 100));
    Bytes changed = wire_.at(0);
    wire_.clear();
    changed.back() ^= std::byte{1};
    give(b, changed);
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(drops(b).unsealed, ++counted);
    changed.back() ^= std::byte{1};
    Bytes redirected = changed;
    std::memcpy(redirected.data(), &c.mac, 6);
    give(c, redirected);
    EXPECT_TRUE(take(c).empty()) << "the receiver's name is sealed with it";
    give(b, changed);
    EXPECT_EQ(take(b).size(), 1U) << "a wrong tag changed nothing";
    Bytes open(100, std::byte{0x11});
    std::memcpy(open.data(), &b.mac, 6);
    std::memcpy(&open[6], &a.mac, 6);
    const Be16 type{kType};
    std::memcpy(&open[12], &type, sizeof type);
    give(b, open);
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(drops(b).unsealed, ++counted);
    EXPECT_EQ(words(b), "") << "any station can send as a node whose key is known";
    open[11] = std::byte{98};
    give(b, open);
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(drops(b).unsealed, ++counted);
    EXPECT_NE(words(b).find(":62 has another key, or is open"), std::string::npos) << words(b);
    std::memcpy(&open[6], &b.mac, 6);
    give(b, open);
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(drops(b).own_echo, 1U);
    Bytes stranger = sealed;
    stranger[11] = std::byte{99};
    give(b, stranger);
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(drops(b).wrong_source, 1U);
}

TEST_F(Sealed, frames_of_other_protocols_reach_the_engine_that_counts_them) {
    Station& a = add(key_);
    Bytes arp(60, std::byte{8});
    give(a, arp);
    const auto taken = take(a);
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0], arp);
}

TEST_F(Sealed, a_node_that_comes_later_gets_the_last_broadcast) {
    Station& a = add(key_);
    meet();
    ASSERT_TRUE(send(a, kBroadcastMac, 100, 'j'));
    Station& b = add(key_);
    std::vector<Bytes> taken;
    for (unsigned n = 0; n < 50; ++n, now += kMillisecond)
        for (const auto& each : stations_) {
            (void)each->port().link_up(each->port().context);
            deliver();
            (void)take(a);
            for (const Bytes& frame : take(b))
                taken.push_back(frame);
        }
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(payload(taken[0]), std::string(86, 'j'));
    EXPECT_EQ(mac_at(taken[0], 0), kBroadcastMac);
}

TEST_F(Sealed, frames_that_the_device_does_not_take_wait_in_order) {
    Station& a = add(key_);
    Station& b = add(key_);
    meet();
    a.accepts = 1;
    std::vector<Segment*> frames;
    for (char fill = 'a'; fill < 'e'; ++fill)
        frames.push_back(frame(a, b.port().info.mac, 100, fill));
    ASSERT_EQ(a.port().tx(a.port().context, frames.data(), 4), 4);
    EXPECT_FALSE(send(a, b.port().info.mac, 100, 'x')) << "those that wait go first";
    EXPECT_EQ(a.port().tx_pending(a.port().context), 3U);
    a.accepts = SIZE_MAX;
    EXPECT_EQ(a.port().tx_pending(a.port().context), 0U) << "a look at them sends them";
    deliver();
    const auto taken = take(b);
    ASSERT_EQ(taken.size(), 4U);
    for (unsigned n = 0; n < 4; ++n)
        EXPECT_EQ(payload(taken[n]), std::string(86, static_cast<char>('a' + n)));
}

TEST_F(Sealed, secrets_of_jobs_are_each_for_their_own_nodes) {
    Station& a = add("");
    Station& b = add("");
    Station& c = add("");
    EXPECT_TRUE(a.sealed->needs_secret());
    meet();
    const auto secret = [](std::uint8_t fill) {
        std::array<std::uint8_t, 16> nonce;
        nonce.fill(fill);
        return seal::secret_of_nonce(nonce);
    };
    ASSERT_TRUE(a.sealed->add_secret(secret(1)));
    ASSERT_TRUE(a.sealed->add_secret(secret(2)));
    ASSERT_TRUE(b.sealed->add_secret(secret(1)));
    ASSERT_TRUE(c.sealed->add_secret(secret(2)));
    EXPECT_FALSE(a.sealed->needs_secret());
    meet(3 * kSecond, 10 * kMillisecond);
    log_.clear();
    ASSERT_TRUE(send(a, kGroup, 100));
    ASSERT_TRUE(send(b, kGroup, 100, 'b'));
    deliver();
    EXPECT_EQ(log_.size(), 3U) << "once for each secret";
    EXPECT_EQ(take(a).size(), 1U);
    EXPECT_EQ(take(b).size(), 1U);
    EXPECT_EQ(payload(take(c).at(0)), std::string(86, 'p'));
}

// I-21: a node learns of others from one that knows them.
TEST_F(Sealed, nodes_are_named_by_others_with_their_addresses) {
    Station& a = add(key_);
    Station& b = add(key_);
    meet();
    Station& c = add(key_);
    b.deaf_to_calls = true;  // it hears of c from a alone
    meet(6 * kSecond, 10 * kMillisecond);
    ASSERT_TRUE(send(b, c.port().info.mac, 100));
    deliver();
    EXPECT_EQ(take(c).size(), 1U);
    EXPECT_TRUE(take(a).empty());
}

TEST_F(Sealed, a_node_keeps_its_name_when_the_address_changes) {
    Station& a = add(key_);
    Station& b = add(key_);
    meet();
    b.interface.mac = station(77);
    meet(15 * kSecond, 10 * kMillisecond);
    EXPECT_EQ(b.mac, station(77));
    log_.clear();
    ASSERT_TRUE(send(a, b.port().info.mac, 100));
    deliver();
    EXPECT_EQ(take(b).size(), 1U);
    EXPECT_EQ(mac_at(log_.at(0), 0), station(77));
    const InterfaceState* const state = b.port().interface(b.port().context);
    EXPECT_EQ(state->mac, state->own) << "the engine's jobs go on";
}

// I-22
TEST_F(Sealed, nodes_that_know_each_other_say_little) {
    for (unsigned n = 0; n < 4; ++n)
        add(key_);
    meet(11 * kSecond, 10 * kMillisecond);
    log_.clear();
    meet(8 * kSecond, 10 * kMillisecond);
    EXPECT_LE(log_.size(), 4 * 3 * 2 * 3U) << "each asks each other one every 4 s";
    for (const Bytes& frame : log_)
        EXPECT_NE(mac_at(frame, 0), kBroadcastMac) << "it has called all often enough";
}

TEST_F(Sealed, a_key_file_or_an_mtu_that_does_not_serve_is_refused) {
    Station& a = add(key_);
    std::string why;
    std::unique_ptr<SealedPort> port;
    PortOptions options{kType, kSegments, 1, "/no/such/file", [] { return now; }};
    EXPECT_EQ(SealedPort::open(a.below, options, port, why), Err::kInvalid);
    EXPECT_NE(why.find("/no/such/file"), std::string::npos) << why;
    options.key_file = key_;
    Port narrow = a.below;
    narrow.info.mtu = 576;
    EXPECT_EQ(SealedPort::open(narrow, options, port, why), Err::kInvalid);
    EXPECT_EQ(why, "a sealed net needs an MTU of 1204, and has 576; raise it on every node");
}

}  // namespace
}  // namespace ulc::sealed
