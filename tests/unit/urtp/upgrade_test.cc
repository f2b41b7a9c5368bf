// SPDX-License-Identifier: BSD-3-Clause
// The state of a transport is exported and imported at random turns of random traffic. Each frame
// with its time, each delivery and each counter is as without, and export(import(x)) is x. Changed
// octets end the import with a sentence, or make a transport that can be destroyed.
// ULC_UPGRADE_SEEDS, ULC_UPGRADE_IMAGES: number of seeds and of changed states; ULC_SEED: one seed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/urtp/play.h"

namespace ulc::urtp::test {
namespace {

Scenario scenario_of(std::uint64_t seed, std::string_view profile) {
    Prng random(seed * 131 + 7);
    Scenario s;
    s.profile = profile;
    s.size = static_cast<std::uint16_t>(2 + random.below(4));
    s.packets = 40 + static_cast<int>(random.below(60));
    constexpr double kRates[] = {0, 0.01, 0.05, 0.2};
    s.faults.loss = kRates[random.below(4)];
    s.faults.duplicate = kRates[random.below(3)];
    s.faults.reorder = kRates[random.below(4)];
    s.faults.gap = static_cast<Nanos>(random.below(2000));
    s.faults.latency = 1000 + static_cast<Nanos>(random.below(200'000));
    s.params.window = 16U << random.below(4);
    s.params.rx_pool_packets =
        random.chance(0.4) ? 4 + static_cast<std::uint32_t>(random.below(40)) : 1024;
    s.params.reorder_wait = random.chance(0.5) ? 0 : 20 * kMicrosecond;
    s.params.peer_dead = 100 * kSecond;
    s.params.request_on_receive = random.chance(0.5);
    s.first_seq = random.chance(0.5) ? UINT32_MAX - 20 : static_cast<std::uint32_t>(random.next());
    s.slow_reader = random.chance(0.5) ? 0.9 : random.chance(0.5) ? 0.3 : 0;
    return s;
}

struct Trace {
    std::uint64_t frames = 0;
    std::uint64_t digest = 0;
    std::uint64_t times = 0;
    Nanos end = 0;
    std::vector<std::uint64_t> counters;
    int upgrades = 0;

    friend bool operator==(const Trace& a, const Trace& b) {
        return a.frames == b.frames && a.digest == b.digest && a.times == b.times &&
               a.end == b.end && a.counters == b.counters;
    }
};

/// Returns the number in a variable of the environment.
std::uint64_t number(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): one thread
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// share: of the rounds in which some member is upgraded.
Trace run_of(std::uint64_t seed, std::string_view profile, double share) {
    Trace run;
    Play play(scenario_of(seed, profile), seed);
    Prng turns(seed * 31 + 1);
    play.between = [&](World& world) {
        if (!turns.chance(share)) return;
        static_cast<void>(world.upgrade(static_cast<Rank>(turns.below(world.members.size()))));
        ++run.upgrades;
    };
    play.run();
    World& world = play.world();
    run.frames = world.frames;
    run.digest = world.digest;
    run.times = world.times;
    run.end = world.now;
    for (Rank r = 0; r < static_cast<Rank>(world.members.size()); ++r)
        for (std::size_t id = 0; id < static_cast<std::size_t>(Counter::kCount); ++id)
            run.counters.push_back(world.count(r, static_cast<Counter>(id)));
    return run;
}

TEST(Upgrade, changes_nothing_that_can_be_seen) {
    const std::uint64_t only = number("ULC_SEED", 0);
    const std::uint64_t first = only != 0 ? only : 1;
    const std::uint64_t last = only != 0 ? only : number("ULC_UPGRADE_SEEDS", 1);
    int upgrades = 0;
    for (const Policy* policy : policies()) {
        for (std::uint64_t seed = first; seed <= last; ++seed) {
            const Trace without = run_of(seed, policy->word, 0);
            const Trace with = run_of(seed, policy->word, 0.2);
            EXPECT_TRUE(without == with)
                << "profile " << policy->word << ": " << without.frames << " and " << with.frames
                << " frames, end at " << without.end << " and " << with.end;
            upgrades += with.upgrades;
            if (HasFailure()) FAIL() << "seed " << seed << " profile " << policy->word;
        }
    }
    EXPECT_GT(upgrades, 100);
}

/// Sends on all kinds of streams and lets some of it arrive.
void make_busy(World& world, std::uint64_t seed) {
    Prng random(seed);
    for (int i = 0; i < 60; ++i) {
        const auto from = static_cast<Rank>(random.below(world.members.size()));
        const auto to = static_cast<Rank>((from + 1) % world.members.size());
        world.send(from, random.chance(0.5) ? StreamId{kWorld} : unicast_to(to), "content");
        if (random.chance(0.3)) world.run_for(static_cast<Nanos>(random.below(30'000)));
    }
}

TEST(Upgrade, refuses_another_configuration) {
    World world(3);
    make_busy(world, 1);
    const state::Image image = world.upgrade(0);
    const auto why = [&](const TransportConfig& config) {
        Counters counters;
        Transport other(config, roster_of(3), world.pool.table(), counters);
        state::Importer importer(image.octets, image.frames);
        importer.values(other);
        return importer.finish() ? std::string() : importer.why();
    };
    TransportConfig config = config_of(0);
    EXPECT_EQ(why(config), "");
    config.params.window = 128;
    EXPECT_EQ(why(config), "the configuration of a transport is another");
    config.params = {};
    config.profile = "urtp+eager";
    EXPECT_EQ(why(config), "the profile is another");
}

TEST(Upgrade, survives_changed_octets) {
    const std::uint64_t images = number("ULC_UPGRADE_IMAGES", 40);
    std::map<std::string, int> sentences;
    for (const Policy* policy : policies()) {
        World world(3, {.window = 32}, {.loss = 0.2, .reorder = 0.2}, 5, UINT32_MAX - 5,
                    policy->word);
        make_busy(world, 3);
        const state::Image image = world.upgrade(0);
        Prng random(9);
        for (std::uint64_t run = 0; run < images; ++run) {
            state::Image changed = image;
            for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
                // Behind the schema, which its own test changes.
                const std::size_t body = changed.octets.size() / 3;
                const std::size_t at = body + random.below(changed.octets.size() - body);
                changed.octets[at] = random.chance(0.5) ? std::byte(random.below(256))
                                                        : changed.octets[at] ^ std::byte{1};
            }
            const auto other = world.fresh(0);
            state::Importer importer(changed.octets, changed.frames);
            importer.values(*other);
            ++sentences[importer.finish() ? "imported" : importer.why()];
        }
    }
    EXPECT_GT(sentences.size(), 15U);
}

TEST(Upgrade, keeps_the_end_of_a_stream) {
    World world(3);
    ASSERT_EQ(world.send(0, unicast_to(1), "content"), Admission::kYes);
    world.run_for(kMillisecond);
    world.members[0]->peer_gone(1, EventKind::kPeerDied, world.now);
    world.members[0]->check_invariants();
    const Admission before = world.send(0, unicast_to(1), "more");
    EXPECT_NE(before, Admission::kYes);
    static_cast<void>(world.upgrade(0));
    EXPECT_EQ(world.send(0, unicast_to(1), "more"), before);
    EXPECT_EQ(world.send(0, unicast_to(2), "content"), Admission::kYes);
}

TEST(Upgrade, keeps_links) {
    CountingPool pool;
    Counters counters[2];
    TransportConfig config = config_of(kNoRank);
    std::vector<std::unique_ptr<Transport>> ends;
    for (Rank r = 0; r < 2; ++r) {
        config.mac = mac_of(r);
        ends.push_back(
            std::make_unique<Transport>(config, std::vector<Peer>(4), pool.table(), counters[r]));
        const auto other = static_cast<Rank>(1 - r);
        const LinkEnds names{static_cast<Rank>(2 - r), Seq{10U + r}, Seq{10U + other}};
        ASSERT_EQ(
            ends[r]->link(static_cast<Rank>(1 + r), {mac_of(other), handle_of(other), 1}, names),
            Err::kOk);
    }
    ASSERT_EQ(submit(*ends[0], pool.table(), {.stream = 1}, "first", 1000), Admission::kYes);
    state::Exporter exporter;
    exporter.values(*ends[0]);
    const state::Image image = exporter.finish();
    config.mac = mac_of(0);
    auto next =
        std::make_unique<Transport>(config, std::vector<Peer>(4), pool.table(), counters[0]);
    state::Importer importer(image.octets, image.frames);
    importer.values(*next);
    ASSERT_TRUE(importer.finish()) << importer.why();
    ends[0] = std::move(next);
    EXPECT_EQ(ends[0]->link(1, {mac_of(1), handle_of(1), 1}, {2, Seq{1}, Seq{1}}), Err::kMismatch);
    Segment* frame = ends[0]->next_tx(1000);
    ASSERT_NE(frame, nullptr);
    wire::FrameView view;
    ASSERT_EQ(wire::parse(frame->frame, frame->length, wire::kEtherTypeDefault, view),
              Counter::kCount);
    EXPECT_EQ(view.rank, 2);
    EXPECT_EQ(view.seq, Seq{11});
    ends[1]->on_frame(view, frame, 2000);
    ReadyPacket packet;
    ASSERT_TRUE(ends[1]->front(2, packet));
    EXPECT_EQ(packet.length, 5);
    ends[1]->pop(2, 2000);
}

}  // namespace
}  // namespace ulc::urtp::test
