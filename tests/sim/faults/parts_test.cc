// SPDX-License-Identifier: BSD-3-Clause
// Packets from the middle of a message go to its place by a verdict (engine/fast/receive.h). A
// sender that breaks the rules in the middle of its message damages that message alone. Its frames
// are written by the test, behind a true one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "tests/sim/cluster/sim_cluster.h"
#include "wire/build.h"

namespace ulc::sim {
namespace {

constexpr std::uint32_t kPart = 1000;

class Parts : public ::testing::Test {
protected:
    Parts() : cluster_(config()) {}
    void SetUp() override {
        ASSERT_TRUE(
            cluster_.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n % 2); }));
        ASSERT_TRUE(cluster_.client(1).send(0, 0, std::vector<std::byte>(kPart)));
        run();
        ASSERT_EQ(receiver().messages.size(), 1U);
        ASSERT_EQ(last_.type, wire::FrameType::kData);
        receiver().messages.clear();
    }
    void TearDown() override { EXPECT_EQ(cluster_.shut_down(), 0U) << "segments leaked"; }

    RingClient& receiver() { return cluster_.client(0); }
    void run() {
        (void)cluster_.run(
            kMillisecond, [] { return false; }, [this] { receiver().poll(); });
    }
    /// Node 0 gets the next packet of rank 1: `octets` of that content, with those flags.
    void put(std::uint8_t flags, std::uint32_t octets, char content, std::uint64_t length = 0) {
        std::byte frame[2048] = {};
        wire::FrameHead head = last_;
        head.flags = flags;
        head.seq = ++last_.seq;
        wire::Extensions extensions{};
        extensions.message_length = length;
        const std::size_t all = wire::build_data(frame, head, extensions, octets);
        std::memset(frame + wire::kHeadOctets + wire::extension_octets(flags, 0, false), content,
                    octets);
        cluster_.net().inject(0, frame, static_cast<std::uint32_t>(all));
    }
    /// The same, in rounds without another one.
    void inject(std::uint8_t flags, std::uint32_t octets, char content, std::uint64_t length = 0) {
        put(flags, octets, content, length);
        run();
    }
    void begin(std::uint64_t length) { inject(wire::kFlagFirst, kPart, 'a', length); }
    /// A message in one packet comes as ever.
    void expect_alive() {
        receiver().messages.clear();
        inject(wire::kFlagFirst | wire::kFlagLast, 4, 'z');
        ASSERT_EQ(receiver().messages.size(), 1U);
        EXPECT_EQ(receiver().messages[0].payload, std::vector<std::byte>(4, std::byte{'z'}));
        EXPECT_EQ(receiver().closed(), 0);
        EXPECT_EQ(receiver().broken, 0U);
    }
    std::uint64_t count(Counter counter) { return cluster_.count(counter); }

private:
    ClusterConfig config() {
        tap_.context = this;
        tap_.taken = &taken_;
        tap_.on_received = [](void*, Segment* const*, std::uint16_t) {};
        tap_.on_offered = [](void* context, Segment* const* frames, std::uint16_t n) {
            for (std::uint16_t i = 0; i < n; ++i)
                static_cast<Parts*>(context)->note(*frames[i]);
        };
        tap_.on_failed = [](void*, const Segment&) {};
        tap_.on_link_look = [](void*) {};
        ClusterConfig config;
        config.taps = {nullptr, &tap_};
        return config;
    }
    void note(const Segment& segment) {
        wire::FrameView view;
        if (wire::parse(segment.frame, segment.length, wire::kEtherTypeDefault, view) !=
                Counter::kCount ||
            view.type != wire::FrameType::kData)
            return;
        last_.destination = view.destination;
        last_.source = view.source;
        last_.type = view.type;
        last_.handle = view.handle;
        last_.rank = view.rank;
        last_.seq = view.seq;
    }

    std::atomic<std::uint64_t> taken_ = 0;
    PortTap tap_;

protected:
    wire::FrameHead last_;  ///< head of the last packet of rank 1 to rank 0
    SimCluster cluster_;
};

TEST_F(Parts, a_message_comes_whole) {
    begin(4 * kPart);
    inject(0, kPart, 'b');
    inject(wire::kFlagAckNow, kPart, 'c');
    inject(wire::kFlagLast, kPart, 'd');
    ASSERT_EQ(receiver().messages.size(), 1U);
    const auto& payload = receiver().messages[0].payload;
    ASSERT_EQ(payload.size(), 4 * kPart);
    for (std::uint32_t n = 0; n < payload.size(); ++n)
        ASSERT_EQ(payload[n], static_cast<std::byte>('a' + n / kPart)) << n;
    expect_alive();
}

TEST_F(Parts, one_that_fills_its_message_or_is_longer_than_the_rest_ends_it) {
    for (const std::uint64_t length : {3 * kPart, 2 * kPart + 10}) {
        const std::uint64_t before = count(Counter::drop_framing);
        begin(length);
        inject(0, kPart, 'b');
        inject(0, kPart, 'c');
        EXPECT_EQ(count(Counter::drop_framing), before + 1) << length;
        EXPECT_TRUE(receiver().messages.empty()) << length;
        expect_alive();
        receiver().messages.clear();
    }
}

TEST_F(Parts, one_without_payload_ends_its_message) {
    begin(3 * kPart);
    inject(0, kPart, 'b');
    inject(0, 0, 'c');
    EXPECT_EQ(count(Counter::drop_framing), 1U);
    expect_alive();
}

TEST_F(Parts, one_with_a_tag_is_no_packet) {
    begin(4 * kPart);
    put(0, kPart, 'b');  // a verdict on it is kept
    inject(wire::kFlagTag, kPart, 'c');
    EXPECT_GE(count(Counter::drop_flags), 1U);
    --last_.seq.value;
    inject(0, kPart, 'c');
    inject(wire::kFlagLast, kPart, 'd');
    EXPECT_EQ(receiver().messages.size(), 1U) << "the message goes on";
}

TEST_F(Parts, one_behind_the_end_of_its_message_belongs_to_none) {
    begin(3 * kPart);
    inject(0, kPart, 'b');
    inject(wire::kFlagLast, kPart, 'c');
    inject(0, kPart, 'd');
    EXPECT_EQ(receiver().messages.size(), 1U);
    EXPECT_EQ(count(Counter::drop_framing), 1U);
    expect_alive();
}

TEST_F(Parts, a_new_message_breaks_off_the_one_that_is_arriving) {
    begin(4 * kPart);
    inject(0, kPart, 'b');
    expect_alive();
}

}  // namespace
}  // namespace ulc::sim
