// SPDX-License-Identifier: BSD-3-Clause
// port.h over RDMA ports of a fabric in memory: what two nodes send arrives, what a device or a
// neighbour lies about does not.
#include "verbs/verbs_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/base/heap_watch.h"
#include "tests/unit/verbs/fabric.h"

namespace ulc::verbs {
namespace {

using test::Fabric;
using test::FakeDevice;

constexpr std::uint32_t kFrameMax = 1024;
constexpr std::uint16_t kEtherType = 0x88B5;
constexpr std::uint32_t kQKey = 0x554c88b5;

std::vector<std::string> g_reports;

class VerbsPorts : public ::testing::Test {
protected:
    void SetUp() override { g_reports.clear(); }

    FakeDevice& device(std::uint8_t number) {
        while (fabric_.devices.size() <= number) {
            const auto next = static_cast<std::uint8_t>(fabric_.devices.size());
            fabric_.add("rxe" + std::to_string(next), static_cast<std::uint8_t>(next + 1));
        }
        return *fabric_.devices[number];
    }
    PortOptions options(std::uint8_t number) {
        device(number);
        PortOptions options;
        options.device.name = "rxe" + std::to_string(number);
        options.segments = 64;
        options.send_frames = 64;
        options.receive_frames = 64;
        options.report = [](const std::string& line) { g_reports.push_back(line); };
        return options;
    }
    VerbsPort& open(std::uint8_t number) { return open(options(number)); }
    VerbsPort& open(const PortOptions& options) {
        std::unique_ptr<VerbsPort> port;
        std::string why;
        if (VerbsPort::open(options, &fabric_.library(), port, why) != Err::kOk)
            throw std::runtime_error(why);
        ports_.push_back(std::move(port));
        return *ports_.back();
    }
    void close(const VerbsPort& port) {
        std::erase_if(ports_, [&](const auto& each) { return each.get() == &port; });
    }

    static Segment* frame(const VerbsPort& from, const Mac& to, std::uint32_t length,
                          std::uint8_t fill = 0x5a) {
        const Port& port = from.port();
        Segment* segment = port.pool.get();
        if (segment == nullptr) throw std::runtime_error("no segment");
        std::memset(segment->frame, fill, length);
        std::memcpy(segment->frame, &to, sizeof to);
        std::memcpy(segment->frame + 6, &port.info.mac, sizeof to);
        segment->length = length;
        return segment;
    }
    static bool send(const VerbsPort& from, const Mac& to, std::uint32_t length = 100,
                     std::uint8_t fill = 0x5a) {
        Segment* segment = frame(from, to, length, fill);
        if (from.port().tx(from.port().context, &segment, 1) == 1) return true;
        from.port().pool.drop(segment);
        return false;
    }
    /// Takes all that came, and returns the lengths.
    static std::vector<std::uint32_t> take(const VerbsPort& at) {
        std::vector<std::uint32_t> lengths;
        std::array<Segment*, 8> segments{};
        while (const std::uint16_t n = at.port().rx(at.port().context, segments.data(), 8)) {
            for (std::uint16_t i = 0; i < n; ++i) {
                lengths.push_back(segments[i]->length);
                at.port().pool.drop(segments[i]);
            }
        }
        return lengths;
    }
    static bool look(const VerbsPort& port) { return port.port().link_up(port.port().context); }
    static std::uint32_t pending(const VerbsPort& port) {
        return port.port().tx_pending(port.port().context);
    }
    static Mac mac(const VerbsPort& port) { return port.port().info.mac; }
    static std::uint32_t available(const VerbsPort& port) {
        return port.port().pool.available(port.port().pool.context);
    }
    /// a has heard b and b has heard a.
    static void acquaint(const VerbsPort& a, const VerbsPort& b) {
        EXPECT_TRUE(send(a, kBroadcastMac));
        EXPECT_TRUE(send(b, kBroadcastMac));
        EXPECT_EQ(take(a).size(), 1U);
        EXPECT_EQ(take(b).size(), 1U);
        EXPECT_EQ(pending(a) + pending(b), 0U);
    }
    std::vector<std::byte> payload(const Mac& to, const Mac& from, std::size_t length = 60) {
        std::vector<std::byte> bytes(length, std::byte{7});
        std::memcpy(bytes.data(), &to, sizeof to);
        std::memcpy(bytes.data() + 6, &from, sizeof from);
        return bytes;
    }

    Fabric fabric_;
    std::vector<std::unique_ptr<VerbsPort>> ports_;
};

// ---- what arrives

// U-3
TEST_F(VerbsPorts, a_port_has_the_mac_of_its_gid_and_queue_pair) {
    device(0).qp_number = 0x123456;
    const VerbsPort& port = open(0);
    EXPECT_EQ(port.name(), "verbs rxe0");
    EXPECT_EQ(mac(port), mac_of({test::gid_of(1), 0x123456}));
    EXPECT_EQ(mac(port).octets[0] & 3, 2) << "unicast, locally administered";
    EXPECT_EQ(mac(port).octets[3], 0x12);
    EXPECT_EQ(port.port().info.mtu, kFrameMax - 14);
    EXPECT_EQ(port.port().info.link_bits_per_second, 100'000'000'000U);
    EXPECT_TRUE(port.port().info.gathers);
    EXPECT_TRUE(look(port));
}

// U-7, U-9
TEST_F(VerbsPorts, a_node_not_heard_of_is_reached_by_all_and_then_alone) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    const VerbsPort& c = open(2);
    EXPECT_TRUE(send(a, mac(b), 77));
    EXPECT_EQ(a.counts().flooded, 1U);
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{77});
    EXPECT_TRUE(take(c).empty());
    EXPECT_EQ(c.counts().unwanted, 1U);
    EXPECT_TRUE(send(b, mac(a), 78)) << "b has heard a";
    EXPECT_EQ(b.counts().flooded, 0U);
    EXPECT_EQ(take(a), std::vector<std::uint32_t>{78});
    EXPECT_TRUE(send(a, mac(b), 79));
    EXPECT_EQ(a.counts().flooded, 1U);
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{79});
    EXPECT_TRUE(take(c).empty());
    EXPECT_EQ(c.counts().unwanted, 1U);
    EXPECT_EQ(device(0).handles_made, 2) << "one for all, one for b";
}

// U-1, U-2
TEST_F(VerbsPorts, a_frame_arrives_as_it_was_in_every_length) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    for (std::uint32_t length = 14; length <= kFrameMax; length += length < 200 ? 1 : 103) {
        Segment* sent = frame(a, mac(b), length);
        for (std::uint32_t n = 14; n < length; ++n)
            sent->frame[n] = static_cast<std::byte>(n * 7);
        ASSERT_EQ(a.port().tx(a.port().context, &sent, 1), 1);
        EXPECT_EQ(pending(a), 0U);
        Segment* got = nullptr;
        ASSERT_EQ(b.port().rx(b.port().context, &got, 1), 1) << length;
        ASSERT_EQ(got->length, length);
        for (std::uint32_t n = 14; n < length; ++n)
            ASSERT_EQ(got->frame[n], static_cast<std::byte>(n * 7));
        b.port().pool.drop(got);
    }
}

// U-5, U-6
TEST_F(VerbsPorts, a_multicast_reaches_those_who_joined_and_no_other) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    const VerbsPort& c = open(2);
    const Mac group{{0x03, 0x55, 0x4c, 1, 2, 3}};
    const Mac other{{0x03, 0x55, 0x4c, 1, 2, 4}};
    EXPECT_TRUE(b.port().set_multicasts(b.port().context, std::array{group}));
    EXPECT_TRUE(c.port().set_multicasts(c.port().context, std::array{other}));
    EXPECT_TRUE(send(a, group));
    EXPECT_EQ(take(b).size(), 1U);
    EXPECT_TRUE(take(c).empty());
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_EQ(take(b).size(), 1U);
    EXPECT_EQ(take(c).size(), 1U);
    EXPECT_TRUE(b.port().set_multicasts(b.port().context, {}));
    EXPECT_TRUE(send(a, group));
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(device(1).groups.size(), 1U) << "broadcast stays";
}

// U-4, U-5
TEST_F(VerbsPorts, nets_of_two_ethertypes_do_not_hear_each_other) {
    PortOptions strange = options(1);
    strange.ether_type = 0x88B6;
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(strange);
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_TRUE(take(b).empty());
}

// U-5
TEST_F(VerbsPorts, frames_travel_over_ipv4_where_the_gid_is_such) {
    for (std::uint8_t n = 0; n < 2; ++n) {
        ibv_gid_entry& entry = device(n).gids[0];
        const Gid gid = test::gid_of(static_cast<std::uint8_t>(n + 1), true);
        std::memcpy(entry.gid.raw, gid.data(), gid.size());
    }
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    EXPECT_TRUE(send(a, mac(b), 100));
    EXPECT_EQ(take(b).size(), 1U);
    const Gid broadcast = mgid_of(kBroadcastGroup, kEtherType, true);
    EXPECT_TRUE(device(1).groups.contains(broadcast));
    EXPECT_EQ(broadcast[12], 239);
    device(1).spoil = [](ibv_wc&, std::byte* grh) { grh[20] = std::byte{0x60}; };
    EXPECT_TRUE(send(a, mac(b), 100));
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(b.counts().forged, 1U);
}

// ---- how much it costs

TEST_F(VerbsPorts, a_burst_takes_one_doorbell_and_few_completions) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    FakeDevice& sender = device(0);
    sender.doorbells = sender.signalled = 0;
    std::array<Segment*, 32> burst{};
    for (Segment*& each : burst)
        each = frame(a, mac(b), 900);
    EXPECT_EQ(a.port().tx(a.port().context, burst.data(), 32), 32);
    EXPECT_EQ(sender.doorbells, 1);
    EXPECT_EQ(sender.signalled, 2);
    EXPECT_EQ(sender.chain_longest, 32);
    EXPECT_EQ(pending(a), 0U);
    EXPECT_EQ(take(b).size(), 32U);
}

TEST_F(VerbsPorts, a_frame_is_kept_until_the_device_has_sent_it) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const std::uint32_t free = available(a);
    device(0).holds_sends = true;
    EXPECT_TRUE(send(a, mac(b), 1000));
    EXPECT_TRUE(send(a, mac(b), 1000));
    EXPECT_EQ(pending(a), 2U);
    EXPECT_EQ(available(a), free - 2);
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
    EXPECT_EQ(available(a), free);
}

TEST_F(VerbsPorts, a_full_send_queue_takes_no_more) {
    PortOptions few = options(0);
    few.send_frames = 4;
    const VerbsPort& a = open(few);
    device(0).holds_sends = true;
    std::array<Segment*, 6> burst{};
    for (Segment*& each : burst)
        each = frame(a, kBroadcastMac, 900);
    EXPECT_EQ(a.port().tx(a.port().context, burst.data(), 6), 4);
    EXPECT_EQ(a.port().tx(a.port().context, burst.data() + 4, 2), 0);
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
    EXPECT_EQ(a.port().tx(a.port().context, burst.data() + 4, 2), 2);
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
}

TEST_F(VerbsPorts, a_short_payload_is_gathered_inline_and_a_long_one_copied_once) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    device(0).inlined = device(0).two_pieces = 0;
    std::vector<std::byte> payload(900, std::byte{0x11});
    for (const std::uint32_t octets : {64U, 900U}) {
        Segment* segment = frame(a, mac(b), 40 + octets);
        segment->tail = payload.data();
        segment->tail_octets = octets;
        device(0).holds_sends = true;
        ASSERT_EQ(a.port().tx(a.port().context, &segment, 1), 1);
        std::ranges::fill(payload, std::byte{0x22});  // the application goes on
        Segment* got = nullptr;
        ASSERT_EQ(b.port().rx(b.port().context, &got, 1), 1);
        EXPECT_EQ(got->length, 40 + octets);
        EXPECT_EQ(got->frame[got->length - 1], std::byte{0x11});
        b.port().pool.drop(got);
        if (octets == 900) {
            EXPECT_EQ(segment->tail, nullptr) << "the device may read it later";
        }
        std::ranges::fill(payload, std::byte{0x11});
    }
    EXPECT_EQ(device(0).inlined, 1);
    EXPECT_EQ(device(0).two_pieces, 1);
    const PortCosts costs = a.port().costs(a.port().context);
    EXPECT_EQ(costs.copied_bytes, 100U + 104 + 900);  // the broadcast of acquaint() is inline too
    EXPECT_EQ(costs.calls, 3U);
    Fabric::release_sends(device(0));
    EXPECT_EQ(pending(a), 0U);
}

TEST_F(VerbsPorts, the_steady_state_takes_no_memory) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const auto exchange = [&] {
        EXPECT_TRUE(send(a, mac(b), 900));
        EXPECT_EQ(pending(a), 0U);
        std::array<Segment*, 8> got{};
        EXPECT_EQ(b.port().rx(b.port().context, got.data(), 8), 1);
        b.port().pool.drop(got[0]);
    };
    for (int n = 0; n < 200; ++n)
        exchange();
    const std::size_t before = ulc::test::heap_octets();
    for (int n = 0; n < 200; ++n)
        exchange();
    EXPECT_LE(ulc::test::heap_octets(), before + 2048) << "the fabric's queues may move";
}

TEST_F(VerbsPorts, a_receiver_that_holds_all_frames_gets_more_when_it_gives_some_back) {
    PortOptions few = options(1);
    few.segments = 64;
    few.receive_frames = 16;
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(few);
    std::vector<Segment*> held;
    std::size_t lost = 0;
    for (int n = 0; n < 200; ++n) {
        EXPECT_TRUE(send(a, kBroadcastMac));
        EXPECT_EQ(pending(a), 0U);
        Segment* got = nullptr;
        if (b.port().rx(b.port().context, &got, 1) == 1) {
            held.push_back(got);
        } else {
            ++lost;
        }
    }
    EXPECT_EQ(held.size(), 80U) << "64 and the ring";
    EXPECT_EQ(lost, 120U);
    for (Segment* each : held)
        b.port().pool.drop(each);
    EXPECT_TRUE(take(b).empty());
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_EQ(take(b).size(), 1U);
    EXPECT_EQ(b.counts().resets, 0U);
}

// ---- what lies

TEST_F(VerbsPorts, every_failed_completion_resets_the_queue_pair_and_frames_flow_again) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    std::uint64_t resets = 0;
    for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
        ibv_wc failed{};
        failed.status = static_cast<ibv_wc_status>(status);
        if (status % 2 == 0) {
            device(1).holds_sends = true;
            EXPECT_TRUE(send(b, mac(a), 900));
            failed.wr_id = device(1).held.front().wr_id;
            device(1).holds_sends = false;
            device(1).sent.push_back(failed);
            EXPECT_EQ(pending(b), 0U) << "a frame that failed has left";
        } else {
            failed.wr_id = device(1).receives.front().id;
            device(1).receives.pop_front();
            device(1).received.push_back(failed);
            EXPECT_TRUE(take(b).empty());
        }
        EXPECT_FALSE(send(b, mac(a))) << "it is not ready";
        for (int n = 0; n < 3000 && !look(b); ++n) {
        }
        EXPECT_EQ(b.counts().resets, ++resets);
        EXPECT_EQ(pending(b), 0U);
        EXPECT_EQ(available(b), 64U);
        EXPECT_EQ(device(1).receives.size(), 64U);
        take(a);
        EXPECT_TRUE(send(a, mac(b), 500));
        EXPECT_EQ(take(b), std::vector<std::uint32_t>{500});
        EXPECT_TRUE(send(b, mac(a), 501));
        EXPECT_EQ(take(a), std::vector<std::uint32_t>{501});
    }
    EXPECT_EQ(b.counts().failed_completions, resets);
}

TEST_F(VerbsPorts, a_completion_of_no_request_is_ignored) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    device(1).holds_sends = true;
    EXPECT_TRUE(send(b, mac(a), 900));
    const std::uint64_t right = device(1).held.front().wr_id;
    for (const std::uint64_t id :
         {right + 1, right - 1, UINT64_MAX, right + (std::uint64_t{1} << 40)}) {
        ibv_wc wc{};
        wc.wr_id = id;
        device(1).sent.push_back(wc);
    }
    EXPECT_EQ(pending(b), 1U);
    EXPECT_EQ(b.counts().bad_completions, 4U);
    Fabric::release_sends(device(1));
    EXPECT_EQ(pending(b), 0U);

    const std::uint64_t posted = device(1).receives.front().id;
    EXPECT_TRUE(send(a, mac(b), 600));
    device(1).received.push_back(device(1).received.front());  // told twice
    for (const std::uint64_t id : {posted + 64, posted + (std::uint64_t{1} << 32), UINT64_MAX}) {
        ibv_wc wc = device(1).received.front();
        wc.wr_id = id;
        device(1).received.push_back(wc);
    }
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{600});
    EXPECT_EQ(b.counts().bad_completions, 8U);
    EXPECT_TRUE(look(b));
}

TEST_F(VerbsPorts, a_completion_of_before_a_reset_is_ignored) {
    const VerbsPort& b = open(1);
    ibv_wc old{};
    old.wr_id = device(1).receives.front().id;
    old.byte_len = 100;
    old.wc_flags = IBV_WC_GRH;
    Fabric::raise(device(1), IBV_EVENT_QP_FATAL);
    EXPECT_TRUE(look(b));
    EXPECT_EQ(b.counts().resets, 1U);
    device(1).received.push_back(old);
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(b.counts().bad_completions, 1U);
}

TEST_F(VerbsPorts, a_length_that_cannot_be_is_dropped) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const std::uint32_t lies[] = {0, 39, 40, 53, kGrhOctets + kFrameMax + 1, UINT32_MAX};
    for (const std::uint32_t lie : lies) {
        device(1).spoil = [lie](ibv_wc& wc, std::byte*) { wc.byte_len = lie; };
        EXPECT_TRUE(send(a, mac(b), 100));
        EXPECT_TRUE(take(b).empty()) << lie;
    }
    EXPECT_EQ(b.counts().bad_lengths, std::size(lies));
    EXPECT_EQ(b.port().missed(b.port().context), std::size(lies));
    device(1).spoil = [](ibv_wc& wc, std::byte*) { wc.byte_len = kGrhOctets + 14; };
    EXPECT_TRUE(send(a, mac(b), 100));
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{14});
}

// U-8
TEST_F(VerbsPorts, a_frame_with_the_mac_of_another_is_dropped) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const Gid to = mgid_of(kBroadcastGroup, kEtherType, false);
    const auto forge = [&](const Gid& gid, std::uint32_t qpn, const Mac& from) {
        fabric_.deliver(gid, qpn, to, kMulticastQpn, kQKey, payload(mac(b), from));
        return !take(b).empty();
    };
    const Gid own = test::gid_of(9);
    EXPECT_FALSE(forge(own, 17, mac(a))) << "known MAC, other GID";
    EXPECT_FALSE(forge(test::gid_of(1), 18, mac(a))) << "known MAC, other queue pair";
    const Mac stranger{{2, 2, 2, 0, 0, 17}};
    EXPECT_FALSE(forge(own, 17, stranger)) << "a MAC of no node";
    EXPECT_EQ(b.counts().forged, 3U);
    EXPECT_TRUE(forge(own, 17, mac_of({own, 17})));
    EXPECT_EQ(b.counts().forged, 3U);
    device(1).spoil = [](ibv_wc& wc, std::byte*) { wc.wc_flags = 0; };
    EXPECT_FALSE(forge(own, 17, mac_of({own, 17}))) << "without a GRH no sender is known";
    EXPECT_EQ(b.counts().forged, 4U);
}

// U-4
TEST_F(VerbsPorts, a_frame_with_another_q_key_is_the_devices_to_drop) {
    const VerbsPort& b = open(1);
    const Gid own = test::gid_of(9);
    const Gid to = mgid_of(kBroadcastGroup, kEtherType, false);
    fabric_.deliver(own, 17, to, kMulticastQpn, kQKey + 1, payload(mac(b), mac_of({own, 17})));
    EXPECT_TRUE(take(b).empty());
    EXPECT_EQ(b.counts().forged, 0U);
}

TEST_F(VerbsPorts, ten_thousand_strangers_take_a_bounded_table) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    const Gid to = mgid_of(kBroadcastGroup, kEtherType, false);
    int handles_most = 0;
    for (std::uint32_t n = 0; n < 10'000; ++n) {
        const Gid own = test::gid_of(static_cast<std::uint8_t>(10 + n % 200));
        const Address from{own, 0x1000 + n};
        fabric_.deliver(own, from.qpn, to, kMulticastQpn, kQKey, payload(mac(b), mac_of(from)));
        EXPECT_EQ(take(b).size(), 1U);
        EXPECT_TRUE(send(b, mac_of(from))) << "a handle for each";
        EXPECT_EQ(pending(b), 0U);
        handles_most = std::max(handles_most, device(1).handles);
        take(a);  // the strangers' frames reach all
    }
    EXPECT_EQ(b.counts().peers_learnt, 10'001U);
    EXPECT_LE(handles_most, 4096 + 1);
    EXPECT_GT(handles_most, 2048);
    EXPECT_TRUE(send(a, mac(b), 333));
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{333});
    EXPECT_TRUE(send(b, mac(a), 334)) << "known again, or by all";
    EXPECT_EQ(take(a), std::vector<std::uint32_t>{334});
}

TEST_F(VerbsPorts, a_handle_in_use_is_not_given_back) {
    const VerbsPort& b = open(1);
    const Gid to = mgid_of(kBroadcastGroup, kEtherType, false);
    device(1).holds_sends = true;
    for (std::uint32_t n = 0; n < 10'000; ++n) {
        const Address from{test::gid_of(9), 0x1000 + n};
        fabric_.deliver(from.gid, from.qpn, to, kMulticastQpn, kQKey,
                        payload(mac(b), mac_of(from)));
        EXPECT_EQ(take(b).size(), 1U);
        if (n < 48) {
            EXPECT_TRUE(send(b, mac_of(from)));
        }
    }
    EXPECT_EQ(device(1).handles, 48) << "each with a frame that is not sent yet";
    EXPECT_EQ(b.counts().flooded, 0U);
    Fabric::release_sends(device(1));
    EXPECT_EQ(pending(b), 0U);
}

// ---- what fails

TEST_F(VerbsPorts, without_a_handle_frames_go_to_all_until_the_next_try) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    device(0).handle_error = ETIMEDOUT;
    const int made = device(0).handles_made;
    for (int n = 0; n < 50; ++n)
        EXPECT_TRUE(send(a, mac(b), 80));
    EXPECT_EQ(device(0).handles_made - made, 1) << "the kernel is asked once";
    EXPECT_EQ(take(b).size(), 50U);
    EXPECT_EQ(a.counts().flooded, 50U);
    device(0).handle_error = 0;
    for (int n = 0; n < 101; ++n)
        EXPECT_TRUE(look(a));
    EXPECT_TRUE(send(a, mac(b), 80));
    EXPECT_EQ(a.counts().flooded, 50U);
    EXPECT_EQ(take(b).size(), 1U);
}

TEST_F(VerbsPorts, a_frame_that_has_no_way_is_lost_and_counted) {
    const VerbsPort& a = open(0);
    const std::uint32_t free = available(a);
    device(0).errors["create_ah"] = ENOMEM;
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_EQ(a.counts().no_handle, 1U);
    EXPECT_EQ(pending(a), 0U);
    EXPECT_EQ(available(a), free);
    EXPECT_EQ(device(0).doorbells, 0);
}

TEST_F(VerbsPorts, a_refused_chain_leaves_the_rest_to_the_caller) {
    const VerbsPort& a = open(0);
    for (const int at : {0, 1, 5}) {
        device(0).send_error = ENOMEM;
        device(0).send_error_at = at;
        std::array<Segment*, 8> burst{};
        for (Segment*& each : burst)
            each = frame(a, kBroadcastMac, 900);
        EXPECT_EQ(a.port().tx(a.port().context, burst.data(), 8), at);
        EXPECT_EQ(
            a.port().tx(a.port().context, burst.data() + at, static_cast<std::uint16_t>(8 - at)),
            8 - at);
        EXPECT_EQ(pending(a), 0U);
        EXPECT_EQ(available(a), 64U);
    }
    EXPECT_EQ(a.counts().refusals, 3U);
    EXPECT_EQ(a.counts().resets, 0U);
    device(0).bad_is_wild = true;
    device(0).send_error = EINVAL;
    device(0).send_error_at = 0;
    EXPECT_FALSE(send(a, kBroadcastMac));
    EXPECT_TRUE(look(a));
    EXPECT_EQ(a.counts().resets, 1U);
    EXPECT_TRUE(send(a, kBroadcastMac));
}

TEST_F(VerbsPorts, a_refused_receive_resets_the_queue_pair) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    for (const bool wild : {false, true}) {
        device(1).bad_is_wild = wild;
        device(1).receive_error_at = 3;
        for (int n = 0; n < 17; ++n)
            EXPECT_TRUE(send(a, kBroadcastMac));
        EXPECT_EQ(take(b).size(), 17U);
        EXPECT_TRUE(take(b).empty());
        for (int n = 0; n < 10 && !look(b); ++n) {
        }
        EXPECT_TRUE(look(b));
        EXPECT_EQ(device(1).receives.size(), 64U);
    }
    EXPECT_EQ(b.counts().resets, 2U);
}

TEST_F(VerbsPorts, a_queue_pair_that_stays_broken_is_tried_ever_less_often) {
    const VerbsPort& a = open(0);
    Fabric::raise(device(0), IBV_EVENT_QP_FATAL);
    device(0).errors["modify_qp"] = EINVAL;
    for (int n = 0; n < 10'000; ++n)
        EXPECT_FALSE(look(a));
    EXPECT_GE(g_reports.size(), 10U);
    EXPECT_LE(g_reports.size(), 25U) << "ten, then one each ten seconds";
    EXPECT_NE(
        g_reports[0].find("verbs rxe0: its queue pair failed; its queue pair cannot be reset"),
        std::string::npos)
        << g_reports[0];
    device(0).errors.clear();
    int looks = 0;
    while (!look(a) && looks < 2000)
        ++looks;
    EXPECT_LT(looks, 1025);
    EXPECT_EQ(a.counts().resets, 1U);
    for (int n = 0; n < 1100; ++n)
        EXPECT_TRUE(look(a));
    Fabric::raise(device(0), IBV_EVENT_QP_FATAL);
    EXPECT_TRUE(look(a)) << "after calm, at once";
}

TEST_F(VerbsPorts, an_overrun_completion_queue_ends_the_port_and_nothing_else) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    Fabric::raise(device(1), IBV_EVENT_CQ_ERR);
    EXPECT_FALSE(look(b));
    EXPECT_FALSE(send(b, kBroadcastMac));
    EXPECT_TRUE(send(a, mac(b)));
    EXPECT_TRUE(take(b).empty());
    for (int n = 0; n < 100; ++n)
        EXPECT_FALSE(look(b));
    ASSERT_EQ(g_reports.size(), 1U);
    EXPECT_NE(g_reports[0].find("start the engine again"), std::string::npos);
}

TEST_F(VerbsPorts, a_device_that_is_gone_ends_the_port_with_frames_in_it) {
    const VerbsPort& a = open(0);
    device(0).holds_sends = true;
    EXPECT_TRUE(send(a, kBroadcastMac));
    Fabric::raise(device(0), IBV_EVENT_DEVICE_FATAL);
    EXPECT_FALSE(look(a));
    EXPECT_EQ(pending(a), 1U);
    close(a);  // the fabric's end sees that all was given back
}

TEST_F(VerbsPorts, a_device_that_was_taken_out_ends_the_port) {
    const VerbsPort& a = open(0);
    device(0).errors["get_async_event"] = EINTR;
    EXPECT_TRUE(look(a));
    device(0).errors["get_async_event"] = EIO;
    EXPECT_FALSE(look(a));
    EXPECT_FALSE(send(a, kBroadcastMac));
    ASSERT_EQ(g_reports.size(), 1U);
    EXPECT_NE(g_reports[0].find("the device is gone"), std::string::npos) << g_reports[0];
}

TEST_F(VerbsPorts, polling_that_fails_resets) {
    const VerbsPort& a = open(0);
    device(0).errors["poll_cq"] = -1;
    EXPECT_EQ(pending(a), 0U);
    device(0).errors.clear();
    EXPECT_TRUE(look(a));
    EXPECT_EQ(a.counts().resets, 1U);
    device(0).errors["poll_cq"] = -1;
    EXPECT_TRUE(take(a).empty());
    device(0).errors["poll_cq"] = 0x7fffffff;  // more than were asked for
    static_cast<void>(pending(a));
    device(0).errors.clear();
    for (int n = 0; n < 10 && !look(a); ++n) {
    }
    EXPECT_TRUE(send(a, kBroadcastMac));
    EXPECT_EQ(pending(a), 0U);
}

TEST_F(VerbsPorts, the_link_follows_the_port) {
    const VerbsPort& a = open(0);
    device(0).port.state = IBV_PORT_DOWN;
    EXPECT_TRUE(look(a)) << "no event told";
    Fabric::raise(device(0), IBV_EVENT_PORT_ERR, 2);
    EXPECT_TRUE(look(a)) << "another port";
    Fabric::raise(device(0), IBV_EVENT_PORT_ERR);
    EXPECT_FALSE(look(a));
    device(0).port.state = IBV_PORT_ACTIVE;
    Fabric::raise(device(0), IBV_EVENT_PORT_ACTIVE);
    EXPECT_TRUE(look(a));
    device(0).port.active_mtu = IBV_MTU_512;
    Fabric::raise(device(0), IBV_EVENT_PORT_ACTIVE);
    EXPECT_FALSE(look(a)) << "our frames do not fit any more";
    EXPECT_EQ(g_reports.size(), 3U);
    Fabric::raise(device(0), IBV_EVENT_SQ_DRAINED);
    EXPECT_FALSE(look(a));
}

TEST_F(VerbsPorts, a_gid_that_moves_is_followed_and_one_that_goes_is_told) {
    const VerbsPort& a = open(0);
    const VerbsPort& b = open(1);
    acquaint(a, b);
    EXPECT_TRUE(send(a, mac(b)));
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_TRUE(look(a)) << "another entry of the table";
    EXPECT_EQ(a.counts().resets, 0U);

    device(0).gids.insert(device(0).gids.begin(), ibv_gid_entry{});
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_TRUE(look(a));
    EXPECT_EQ(a.counts().resets, 1U);
    EXPECT_EQ(device(0).handles, 0) << "all named the old place";
    take(b);
    EXPECT_TRUE(send(a, mac(b), 99));
    EXPECT_EQ(take(b), std::vector<std::uint32_t>{99});

    const ibv_gid_entry own = device(0).gids.back();
    device(0).gids.pop_back();
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_FALSE(look(a));
    EXPECT_NE(g_reports.back().find("its GID is gone"), std::string::npos);
    device(0).gids.push_back(own);
    Fabric::raise(device(0), IBV_EVENT_GID_CHANGE);
    EXPECT_TRUE(look(a));
}

TEST_F(VerbsPorts, a_group_that_cannot_be_joined_is_tried_again) {
    const VerbsPort& b = open(1);
    const Mac group{{0x03, 0x55, 0x4c, 0, 0, 9}};
    device(1).errors["attach_mcast"] = ENOMEM;
    EXPECT_FALSE(b.port().set_multicasts(b.port().context, std::array{group}));
    EXPECT_FALSE(b.port().set_multicasts(b.port().context, std::array{group}));
    EXPECT_EQ(g_reports.size(), 1U) << "told once";
    device(1).errors.clear();
    for (int n = 0; n < 100; ++n)
        EXPECT_TRUE(look(b));
    EXPECT_EQ(device(1).groups.size(), 2U);
    ASSERT_EQ(g_reports.size(), 2U);
    EXPECT_NE(g_reports[1].find("has joined"), std::string::npos);
    EXPECT_EQ(device(1).memberships, 4) << "one each try, and the first";
}

}  // namespace
}  // namespace ulc::verbs
