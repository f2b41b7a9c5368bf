// SPDX-License-Identifier: BSD-3-Clause
// Tests port.h over a wire of shared memory. The stations belong to one process, which is
// equivalent to several.
#include "tests/unit/shm/ports.h"

namespace ulc::shm {
namespace {

TEST_F(ShmPorts, a_call_ends_although_frames_for_others_keep_coming) {
    const auto a = open(0);
    const auto b = open(1);
    const auto c = open(2);
    constexpr int kForOthers = 600;
    for (int n = 0; n < kForOthers; ++n)
        ASSERT_TRUE(send(a->port(), c->port().info.mac, 60, 'c'));
    ASSERT_TRUE(send(a->port(), b->port().info.mac, 60, 'b'));
    Segment* frame = nullptr;
    const Landing landing{nullptr, 64,
                          [](void*, const std::byte*, std::uint32_t) { return Landed{}; }};
    EXPECT_EQ(b->port().rx(b->port().context, &frame, 1), 0) << "looked at all of them at once";
    EXPECT_EQ(b->port().rx_landing(b->port().context, landing), nullptr);
    EXPECT_EQ(received(b->port()), "b");
}

TEST_F(ShmPorts, unicast_goes_to_one_and_multicast_to_all_others) {
    const auto a = open(0);
    const auto b = open(1);
    const auto c = open(2);
    const Mac group{{0x03, 0, 0, 0, 0, 1}};
    EXPECT_TRUE(send(a->port(), b->port().info.mac, 60, 'u'));
    EXPECT_TRUE(send(a->port(), group, 1514, 'm'));
    EXPECT_TRUE(send(a->port(), kBroadcastMac, 14, 'b'));
    EXPECT_EQ(received(a->port()), "");
    EXPECT_EQ(received(b->port()), "umb");
    EXPECT_EQ(received(c->port()), "mb");
    EXPECT_NE(a->port().info.mac, b->port().info.mac);
}

TEST_F(ShmPorts, a_retained_frame_survives_transmission_and_goes_out_unchanged) {
    const auto a = open(0);
    const auto b = open(1);
    const Port& port = a->port();
    const std::uint32_t before = port.pool.available(port.pool.context);
    Segment* kept = frame_to(port, b->port().info.mac, 300, 'k');
    for (int round = 0; round < 1000; ++round) {
        port.pool.hold(kept);
        ASSERT_EQ(port.pool.holders(kept), 2U);
        ASSERT_EQ(port.tx(port.context, &kept, 1), 1);
        ASSERT_EQ(port.pool.holders(kept), 1U);
        ASSERT_EQ(received(b->port()), "k");
    }
    port.pool.drop(kept);
    EXPECT_EQ(port.pool.available(port.pool.context), before);
}

// The headers are in the segment, the payload is in the application's memory.
TEST_F(ShmPorts, a_frame_in_two_pieces_arrives_as_one_also_after_its_end_was_pulled_in) {
    const auto a = open(0);
    const auto b = open(1);
    const Port& port = a->port();
    ASSERT_TRUE(port.info.gathers);
    std::vector<std::byte> payload(1000, std::byte{'p'});
    Segment* segment = frame_to(port, b->port().info.mac, 40, 'h');
    segment->tail = payload.data();
    segment->tail_octets = 1000;
    segment->length += 1000;
    for (const bool pulled : {false, true}) {
        if (pulled) {
            pull_tail(*segment);
            std::ranges::fill(payload, std::byte{'x'});  // the sender reads it no more
        }
        port.pool.hold(segment);
        ASSERT_EQ(port.tx(port.context, &segment, 1), 1);
        Segment* got = nullptr;
        ASSERT_EQ(b->port().rx(b->port().context, &got, 1), 1);
        ASSERT_EQ(got->length, 1040U);
        for (std::size_t i = sizeof(Mac); i < got->length; ++i)
            ASSERT_EQ(got->frame[i], i < 40 ? std::byte{'h'} : std::byte{'p'}) << i;
        b->port().pool.drop(got);
    }
    port.pool.drop(segment);
    EXPECT_EQ(port.pool.get()->tail, nullptr) << "its next use begins empty";
}

/// Says where payloads land: each frame longer than `front` bytes, except these first bytes, lands
/// at `memory`.
struct Ground {
    std::vector<std::byte> memory = std::vector<std::byte>(4096);
    std::uint32_t front = 64;
    bool open = true;
    std::vector<std::uint32_t> asked;                  ///< lengths
    const std::function<void()>* meanwhile = nullptr;  ///< called between the question and the copy

    [[nodiscard]] Landing landing() {
        return {
            this, front, [](void* context, const std::byte* seen, std::uint32_t length) {
                auto& ground = *static_cast<Ground*>(context);
                ground.asked.push_back(length);
                EXPECT_EQ(seen[ground.front - 1], seen[sizeof(Mac)]) << "the front is there";
                if (ground.meanwhile != nullptr) (*ground.meanwhile)();
                return Landed{ground.open ? ground.memory.data() : nullptr, length - ground.front};
            }};
    }
};

TEST_F(ShmPorts, a_payload_lands_where_it_is_wanted) {
    const auto a = open(0, 2);
    const auto b = open(1, 2);
    const Port& port = b->port();
    Ground ground;
    for (const char fill : {'l', 's', 'n'})
        ASSERT_TRUE(send(a->port(), port.info.mac, fill == 's' ? 64 : 1514,
                         static_cast<std::uint8_t>(fill)));
    Segment* landed = port.rx_landing(port.context, ground.landing());
    ASSERT_NE(landed, nullptr);
    EXPECT_EQ(landed->length, 1514U);
    EXPECT_EQ(landed->tail, ground.memory.data());
    EXPECT_EQ(landed->tail_octets, 1514U - 64U);
    EXPECT_EQ(static_cast<char>(landed->frame[63]), 'l');
    EXPECT_EQ(static_cast<char>(ground.memory[0]), 'l');
    EXPECT_EQ(static_cast<char>(ground.memory[1514 - 64 - 1]), 'l');
    port.pool.drop(landed);
    Segment* small = port.rx_landing(port.context, ground.landing());
    ASSERT_NE(small, nullptr);
    EXPECT_EQ(small->tail, nullptr);
    EXPECT_EQ(static_cast<char>(small->frame[63]), 's');
    port.pool.drop(small);
    ground.open = false;
    Segment* kept = port.rx_landing(port.context, ground.landing());
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(kept->tail, nullptr);
    EXPECT_EQ(static_cast<char>(kept->frame[1513]), 'n');
    port.pool.drop(kept);
    EXPECT_EQ(ground.asked, (std::vector<std::uint32_t>{1514, 1514}))
        << "all of the short one is front";
    EXPECT_EQ(port.rx_landing(port.context, ground.landing()), nullptr);
}

TEST_F(ShmPorts, every_peer_has_its_turn_while_payloads_land) {
    const auto a = open(0);
    const auto b = open(1);
    const auto c = open(2);
    Ground ground;
    for (int n = 0; n < 30; ++n)
        ASSERT_TRUE(send(a->port(), c->port().info.mac, 1000, 'a'));
    ASSERT_TRUE(send(b->port(), c->port().info.mac, 1000, 'b'));
    std::string order;
    while (Segment* segment = c->port().rx_landing(c->port().context, ground.landing())) {
        order += static_cast<char>(segment->frame[63]);
        c->port().pool.drop(segment);
    }
    EXPECT_EQ(order.size(), 31U);
    EXPECT_LE(order.find('b'), 16U);
}

TEST_F(ShmPorts, what_its_writer_overran_while_it_landed_is_given_to_nobody) {
    const auto a = open(0, 2);
    const auto b = open(1, 2);
    const Port& port = b->port();
    a->set_patience(kMillisecond);
    ASSERT_TRUE(send(a->port(), port.info.mac, 1514, 'o'));
    const std::function<void()> overrun = [&] {
        while (a->counts().overran == 0)
            (void)send(a->port(), port.info.mac, 1514, 'x');
        for (int n = 0; n < 60; ++n)
            ASSERT_TRUE(send(a->port(), port.info.mac, 1514, 'x'));
    };
    Ground ground;
    ground.meanwhile = &overrun;
    EXPECT_EQ(port.rx_landing(port.context, ground.landing()), nullptr);
    EXPECT_EQ(b->counts().missed, 1U);
    EXPECT_EQ(ground.asked.size(), 1U);
    ground.meanwhile = nullptr;
    ASSERT_TRUE(send(a->port(), port.info.mac, 1514, 'n'));
    Segment* next = port.rx_landing(port.context, ground.landing());
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(static_cast<char>(ground.memory[0]), 'n');
    port.pool.drop(next);
}

TEST_F(ShmPorts, a_full_wire_takes_fewer_frames_and_loses_none) {
    const auto a = open(0, 2);
    const auto b = open(1, 2);
    int sent = 0;
    while (send(a->port(), b->port().info.mac, 1514, 'x'))
        ASSERT_LT(++sent, 1000);
    EXPECT_GT(sent, 30);
    EXPECT_EQ(received(b->port()), std::string(static_cast<std::size_t>(sent), 'x'));
    EXPECT_TRUE(send(a->port(), b->port().info.mac, 1514, 'y'));
    EXPECT_EQ(received(b->port()), "y");
    EXPECT_EQ(b->counts().missed, 0U);
}

TEST_F(ShmPorts, a_station_that_stopped_is_waited_for_only_so_long) {
    const auto a = open(0);
    const auto b = open(1);
    const auto stopped = open(2);
    a->set_patience(20 * kMillisecond);
    const auto send_and_read = [&] {
        return send(a->port(), b->port().info.mac, 1514, 'x') && received(b->port()) == "x";
    };
    while (send_and_read()) {
    }
    EXPECT_EQ(a->counts().overran, 0U);
    const Nanos waited = send_at_last(a->port(), b->port().info.mac);
    EXPECT_GE(waited, 15 * kMillisecond);
    EXPECT_LT(waited, kSecond);
    EXPECT_EQ(received(b->port()), "x");
    for (int n = 0; n < 200; ++n)
        ASSERT_TRUE(send_and_read()) << n;
    EXPECT_EQ(a->counts().overran, 1U);
    EXPECT_EQ(received(stopped->port()), "");
    EXPECT_EQ(stopped->counts().missed, 1U);
    EXPECT_TRUE(send(a->port(), kBroadcastMac, 60, 'z'));
    EXPECT_EQ(received(stopped->port()), "z");
}

TEST_F(ShmPorts, a_station_whose_process_ended_is_not_waited_for) {
    const auto a = open(0);
    const auto b = open(1);
    const pid_t child = fork();
    if (child == 0) {
        const auto c = open(2);
        _exit(c == nullptr ? 1 : 0);  // without detaching
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    int sent = 0;
    while (send(a->port(), b->port().info.mac, 1514, 'x')) {
        ASSERT_EQ(received(b->port()), "x");
        ASSERT_LT(++sent, 1000);
    }
    EXPECT_LT(send_at_last(a->port(), b->port().info.mac), ShmPort::kPatience);
    EXPECT_EQ(received(b->port()), "x");
    EXPECT_EQ(a->counts().overran, 1U);
}

TEST_F(ShmPorts, the_longest_ring_tells_of_no_more_frames_than_its_count_holds) {
    auto longest = options(0);
    longest.device.shape.ring_octets = kRingOctetsMax;
    longest.mtu = 576;
    std::unique_ptr<ShmPort> port;
    ASSERT_EQ(ShmPort::open(longest, port, why_), Err::kOk) << why_;
    EXPECT_EQ(port->port().info.tx_ring_frames, UINT16_MAX);
}

TEST_F(ShmPorts, a_station_comes_back_after_it_left) {
    const auto a = open(0);
    for (int life = 0; life < 3; ++life) {
        const auto b = open(1);
        for (int n = 0; n < 100; ++n) {
            ASSERT_TRUE(send(a->port(), b->port().info.mac, 1000, 'a'));
            ASSERT_EQ(received(b->port()), "a");
            ASSERT_TRUE(send(b->port(), a->port().info.mac, 1000, 'b'));
            ASSERT_EQ(received(a->port()), "b");
        }
    }
}

TEST_F(ShmPorts, frames_above_the_mtu_of_the_receiver_are_counted_and_dropped) {
    auto large = options(0);
    large.mtu = 3000;
    std::unique_ptr<ShmPort> a;
    ASSERT_EQ(ShmPort::open(large, a, why_), Err::kOk) << why_;
    const auto b = open(1);
    EXPECT_TRUE(send(a->port(), b->port().info.mac, 3014, 'x'));
    EXPECT_TRUE(send(a->port(), b->port().info.mac, 1514, 'y'));
    EXPECT_EQ(received(b->port()), "y");
    EXPECT_EQ(b->counts().too_long, 1U);
    EXPECT_EQ(b->port().drops(b->port().context).too_long, 1U);
}

TEST_F(ShmPorts, with_all_receive_frames_held_further_ones_are_counted_and_dropped) {
    const auto a = open(0);
    const auto b = open(1);
    const Port& port = b->port();
    std::vector<Segment*> held;
    while (b->counts().no_frame == 0) {
        ASSERT_TRUE(send(a->port(), port.info.mac, 60, 'x'));
        Segment* burst[1];
        if (port.rx(port.context, burst, 1) == 1) held.push_back(burst[0]);
        ASSERT_LT(held.size(), 1000U);
    }
    EXPECT_GE(held.size(), port.info.rx_frames);
    for (Segment* segment : held)
        port.pool.drop(segment);
    EXPECT_TRUE(send(a->port(), port.info.mac, 60, 'y'));
    EXPECT_EQ(received(port), "y");
}

TEST_F(ShmPorts, an_engine_counts_what_its_port_dropped_by_reason) {
    auto large = options(0);
    large.mtu = 3000;
    std::unique_ptr<ShmPort> a;
    ASSERT_EQ(ShmPort::open(large, a, why_), Err::kOk) << why_;
    const auto b = open(1);
    engine::Engine engine({}, std::span<const Port>(&b->port(), 1));
    Nanos now = kSecond;
    engine.poll(now);
    ASSERT_TRUE(send(a->port(), b->port().info.mac, 3014, 'x'));
    ASSERT_TRUE(send(a->port(), Mac{{2, 0, 0, 0, 0, 9}}, 60, 'y'));
    ASSERT_TRUE(send(a->port(), Mac{{2, 0, 0, 0, 0, 9}}, 60, 'y'));
    for (int n = 0; n < 2; ++n) {
        engine.poll(now += 100 * kMillisecond);
        engine.poll(now += 2 * kSecond);
        EXPECT_EQ(engine.counters().get(Counter::drop_too_long), 1U);
        EXPECT_EQ(engine.counters().get(Counter::drop_other_station), 2U) << "counted once";
    }
}

// A tag of VLAN 0 names no VLAN. The frame is taken, and here has no receiver.
TEST_F(ShmPorts, an_engine_takes_a_priority_tag_and_drops_the_tag_of_a_vlan) {
    const auto a = open(0);
    const auto b = open(1);
    engine::Engine engine({}, std::span<const Port>(&b->port(), 1));
    engine.poll(kSecond);
    for (const unsigned control : {0xe000U, 0xe007U}) {
        Segment* segment = frame_to(a->port(), b->port().info.mac, 100, '\0');
        // The tag, our type, version 1 and DATA, first and last, 20 octets.
        const unsigned octets[] = {0x81, 0, control >> 8U, control & 255U, 0x88, 0xb5, 0x11, 0xc0,
                                   0,    20};
        for (unsigned n = 0; n < std::size(octets); ++n)
            segment->frame[12 + n] = static_cast<std::byte>(octets[n]);
        ASSERT_EQ(a->port().tx(a->port().context, &segment, 1), 1);
    }
    engine.poll(2 * kSecond);
    EXPECT_EQ(engine.counters().get(Counter::drop_unknown_handle), 1U);
    EXPECT_EQ(engine.counters().get(Counter::drop_vlan), 1U);
}

TEST_F(ShmPorts, an_engine_counts_what_its_port_missed) {
    const auto a = open(0, 2);
    const auto b = open(1, 2);
    engine::Engine engine({}, std::span<const Port>(&b->port(), 1));
    Nanos now = kSecond;
    engine.poll(now);
    a->set_patience(0);
    for (int n = 0; n < 200; ++n)
        ASSERT_TRUE(send(a->port(), b->port().info.mac, 1514, 'x'));
    engine.poll(now += 100 * kMillisecond);
    engine.poll(now += 2 * kSecond);
    EXPECT_EQ(engine.counters().get(Counter::port_missed), 1U);
    engine.poll(now += 2 * kSecond);
    EXPECT_EQ(engine.counters().get(Counter::port_missed), 1U) << "counted once";
}

}  // namespace
}  // namespace ulc::shm
