// SPDX-License-Identifier: BSD-3-Clause
// Nodes with several links (port/bond_port.h, docs/protocol/NODES.md §8.6): bulk takes all links,
// short messages pay nothing, and a cable that is pulled loses nothing. Also links of different
// speeds, shared processors, switches that learn addresses, links that say they are up and carry
// nothing, and upgrades.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/messages/numbered.h"
#include "tests/sim/programs/goodput.h"
#include "tests/sim/trace/recorder.h"
#include "wire/build.h"
#include "wire/job.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kFast = 100'000'000;

GoodputCase bulk(std::uint16_t links, std::uint64_t rate = kFast) {
    GoodputCase c;
    c.links = links;
    c.bits_per_second = rate;
    c.message_octets = 65536;
    c.warm_up = 50 * kMillisecond;
    c.span = 200 * kMillisecond;
    return c;
}

GoodputResult checked(const GoodputCase& c) {
    GoodputResult result = measure_goodput(c);
    EXPECT_TRUE(result.formed);
    EXPECT_EQ(result.leaked, 0U);
    return result;
}

// GAMMA §3.3.1.1
TEST(Bond, two_links_carry_twice_as_much_as_one) {
    const GoodputResult one = checked(bulk(1));
    const GoodputResult two = checked(bulk(2));
    EXPECT_GE(two.share, 1.9 * one.share);
    EXPECT_EQ(two.repeated, 0) << "packets that overtake others are not asked for";
    EXPECT_LT(one.share, 1.1) << "one link misses the budget";
    RecordProperty("one", std::to_string(one.share));
    RecordProperty("two", std::to_string(two.share));
}

TEST(Bond, four_links_carry_four_times_as_much_as_one) {
    const GoodputResult four = checked(bulk(4));
    EXPECT_GE(four.share, 3.7);
    EXPECT_LT(four.repeated, 0.001);
}

TEST(Bond, links_of_different_speeds_are_used_by_their_speeds) {
    GoodputCase c = bulk(2, 1'000'000'000);
    c.link_rates = {1'000'000'000, 100'000'000};
    EXPECT_GE(checked(c).share, 1.05) << "of the fast one alone";
}

// The NICs of a node show their frames at different times, as those of a host whose processor is
// shared, and say nothing of their speed, or say what is not true, as memif does.
class BondLate : public testing::TestWithParam<std::uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Stated, BondLate, testing::Values(0, 10'000'000'000));

TEST_P(BondLate, bulk_over_two_links_learns_how_late_packets_are) {
    GoodputCase c = bulk(2);
    c.gather = 4 * kMillisecond;
    c.warm_up = 100 * kMillisecond;
    c.stated_bits_per_second = GetParam();
    const GoodputResult two = checked(c);
    c.links = 1;
    const GoodputResult one = checked(c);
    EXPECT_GE(two.share, 1.9 * one.share);
    EXPECT_LT(two.repeated, 0.001);
    RecordProperty("one", std::to_string(one.share));
    RecordProperty("two", std::to_string(two.share));
}

/// Two nodes and a switch program, which share the processors with others: each runs for a while
/// and is away for a while. Ports take frames at once and say 10 Gb/s, as memif does.
GoodputCase on_shared_processors(std::uint16_t links, std::uint64_t seed) {
    GoodputCase c = bulk(links);
    c.seed = seed;
    c.sharing = {1 * kMillisecond, 2 * kMillisecond};
    c.host_bits_per_second = 10'000'000'000;
    c.stated_bits_per_second = 10'000'000'000;
    c.buffer_octets = 512U << 10;
    c.warm_up = 0;
    c.span = 500 * kMillisecond;
    return c;
}

// S-59, S-60, J-45
TEST(Bond, bulk_takes_both_links_where_processors_are_shared) {
    constexpr unsigned kSeeds = 6;
    double repeated = 0;
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        const GoodputResult one = checked(on_shared_processors(1, seed));
        const GoodputResult two = checked(on_shared_processors(2, seed));
        EXPECT_GE(two.share, 1.9 * one.share) << "seed " << seed;
        repeated += two.repeated / kSeeds;
    }
    EXPECT_LT(repeated, 0.003);
}

TEST(Bond, losses_are_repaired_while_packets_overtake_each_other) {
    double share = 0;
    double repeated = 0;
    constexpr unsigned kSeeds = 8;
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        GoodputCase c = bulk(2);
        c.seed = seed;
        c.gather = kMillisecond;
        c.loss = 0.001;
        const GoodputResult result = checked(c);
        share += result.share / kSeeds;
        repeated += result.repeated / kSeeds;
        RecordProperty("two" + std::to_string(seed), std::to_string(result.share));
    }
    EXPECT_GE(share, 1.7);
    EXPECT_LT(repeated, 0.003) << "thrice the losses";
    RecordProperty("two", std::to_string(share));
    RecordProperty("repeated", std::to_string(repeated));
}

// N-34
TEST(Bond, a_switch_learns_the_addresses_of_all_links) {
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
        GoodputCase c = bulk(2);
        c.seed = seed;
        c.learns = true;
        c.warm_up = 0;
        const GoodputResult result = checked(c);
        EXPECT_GE(result.share, 1.9);
        EXPECT_LE(result.flooded, 8U) << "of more than 3,000 frames";
        EXPECT_EQ(result.repeated, 0);
    }
}

/// Two nodes, or more, of two links each.
class BondCluster {
public:
    explicit BondCluster(std::uint16_t nodes = 2, std::uint16_t links = 2) {
        config_.links = links;
        config_.net.ports = static_cast<std::uint16_t>(nodes * links);
        config_.net.bits_per_second = kFast;
        config_.sizes = {64, 512, 1U << 20, 4U << 20};
        cluster_ = std::make_unique<SimCluster>(config_);
        formed_ =
            cluster_->form(nodes, [](std::size_t n) { return static_cast<std::uint16_t>(n); });
    }
    [[nodiscard]] SimCluster& operator*() { return *cluster_; }
    [[nodiscard]] SimCluster* operator->() { return cluster_.get(); }
    [[nodiscard]] bool formed() const { return formed_; }

private:
    ClusterConfig config_;
    std::unique_ptr<SimCluster> cluster_;
    bool formed_ = false;
};

/// Returns the round trip of a message of 8 bytes between two nodes with `links` links each.
Nanos round_trip(std::uint16_t links) {
    BondCluster cluster(2, links);
    EXPECT_TRUE(cluster.formed());
    const std::vector<std::byte> payload(8);
    constexpr int kTrips = 200;
    const Nanos start = cluster->now();
    for (int n = 0; n < kTrips; ++n) {
        for (const std::size_t from : {0U, 1U}) {
            EXPECT_TRUE(cluster->client(from).send(unicast_to(from == 0 ? 1 : 0), 1, payload));
            RingClient& to = cluster->client(1 - from);
            cluster->touch(static_cast<std::uint16_t>(from));
            EXPECT_TRUE(cluster->run(kSecond, [&] {
                to.poll();
                return !to.messages.empty();
            }));
            to.messages.clear();
            cluster->client(from).poll();
        }
    }
    return (cluster->now() - start) / kTrips;
}

TEST(Bond, short_messages_take_no_longer_than_over_one_link) {
    const Nanos one = round_trip(1);
    const Nanos two = round_trip(2);
    EXPECT_LE(two, one + one / 20) << one << " ns over one link";
}

// N-27, N-31
TEST(Bond, messages_to_one_and_to_all_arrive_once_and_in_order) {
    BondCluster cluster(3);
    ASSERT_TRUE(cluster.formed());
    Numbered one(*cluster, 0, unicast_to(1), {1}, 4000);
    ASSERT_TRUE(one.run(10 * kSecond));
    EXPECT_EQ(one.out_of_order, 0U);
    Numbered all(*cluster, 2, cluster->client(2).world, {0, 1}, 3000);
    ASSERT_TRUE(all.run(10 * kSecond));
    EXPECT_EQ(all.out_of_order, 0U);
    EXPECT_EQ(cluster->count(Counter::drop_duplicate), 0U)
        << "one link alone brings frames for groups";
    EXPECT_EQ(cluster->count(Counter::drop_own_echo), 0U);
    EXPECT_EQ(cluster->count(Counter::req_sent), 0U);
    for (std::uint16_t link = 0; link < 2; ++link)
        EXPECT_GT(cluster->net().stats(link).tx_frames, 500U);
    EXPECT_EQ(cluster->shut_down(), 0U);
}

struct Pulled {
    std::uint16_t node;
    std::uint16_t link;
    bool to_all;
};

class BondPulled : public testing::TestWithParam<Pulled> {};

INSTANTIATE_TEST_SUITE_P(Cables, BondPulled,
                         testing::Values(Pulled{0, 0, false}, Pulled{0, 1, false},
                                         Pulled{1, 0, false}, Pulled{1, 1, false},
                                         Pulled{0, 0, true}, Pulled{0, 1, true}, Pulled{1, 0, true},
                                         Pulled{1, 1, true}));

// N-29
TEST_P(BondPulled, loses_nothing_and_costs_one_round_of_repair) {
    BondCluster cluster(3);
    ASSERT_TRUE(cluster.formed());
    const Pulled pulled = GetParam();
    Numbered stream(*cluster, 0, pulled.to_all ? cluster->client(0).world : unicast_to(1),
                    pulled.to_all ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{1},
                    1400);
    stream.wanted = 1'000'000;
    ASSERT_FALSE(stream.run(20 * kMillisecond));
    cluster->pull(pulled.node, pulled.link);
    ASSERT_FALSE(stream.run(20 * kMillisecond));
    stream.wanted = stream.sent;
    ASSERT_TRUE(stream.run(kSecond));
    EXPECT_EQ(stream.out_of_order, 0U);
    // A look at the link and one repair. The peers of a receiver must hear of it first.
    const Nanos most = (pulled.node == 0 ? 3 : 5) * kMillisecond;
    for (const Nanos gap : stream.longest_gap)
        EXPECT_LE(gap, most);
    RecordProperty("longest_gap_us", static_cast<int>(stream.longest_gap[0] / kMicrosecond));
    const auto there = static_cast<std::uint16_t>(2 * pulled.node + pulled.link);
    const std::uint64_t frames = cluster->net().stats(there).tx_frames;
    stream.wanted += 500;
    ASSERT_TRUE(stream.run(kSecond));
    EXPECT_EQ(cluster->net().stats(there).tx_frames, frames) << "nothing goes to a dead link";
    cluster->pull(pulled.node, pulled.link, false);
    stream.wanted += 2000;
    ASSERT_TRUE(stream.run(10 * kSecond));
    EXPECT_EQ(stream.out_of_order, 0U);
    if (pulled.node == 0 && !pulled.to_all) {
        EXPECT_GT(cluster->net().stats(there).tx_frames, frames + 300) << "it is used again";
    }
    EXPECT_EQ(cluster->shut_down(), 0U);
}

/// The fault of a link that goes on saying that it is up.
enum class Dead : std::uint8_t { kSending, kReceiving, kBoth };

struct Lying {
    std::uint16_t node;
    std::uint16_t link;
    Dead dead;
    bool to_all;
};

class BondLies : public testing::TestWithParam<Lying> {
protected:
    /// Lets the link of the case carry nothing in that direction, or all again.
    static void set_dead(BondCluster& cluster, bool dead) {
        const Lying lying = GetParam();
        const auto there = static_cast<std::uint16_t>(2 * lying.node + lying.link);
        Faults& faults = cluster->net().faults();
        for (std::uint16_t other = 0; other < cluster->net().ports(); ++other) {
            if (lying.dead != Dead::kReceiving) faults.cut(there, other, dead);
            if (lying.dead != Dead::kSending) faults.cut(other, there, dead);
        }
    }
};

std::vector<Lying> lying_links() {
    std::vector<Lying> all;
    for (const std::uint16_t node : {0, 1})
        for (const std::uint16_t link : {0, 1})
            for (const Dead dead : {Dead::kSending, Dead::kReceiving, Dead::kBoth})
                for (const bool to_all : {false, true})
                    all.push_back({node, link, dead, to_all});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Links, BondLies, testing::ValuesIn(lying_links()));

// N-37, N-38, N-39
TEST_P(BondLies, a_link_that_says_up_and_carries_nothing_is_left_and_taken_again) {
    BondCluster cluster(3);
    ASSERT_TRUE(cluster.formed());
    const Lying lying = GetParam();
    Numbered stream(*cluster, 0, lying.to_all ? cluster->client(0).world : unicast_to(1),
                    lying.to_all ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{1},
                    1400);
    stream.wanted = 10'000'000;
    ASSERT_FALSE(stream.run(100 * kMillisecond));
    EXPECT_EQ(cluster->count(Counter::link_silences), 0U);
    set_dead(cluster, true);
    ASSERT_FALSE(stream.run(500 * kMillisecond));
    EXPECT_GE(cluster->count(Counter::link_silences), 1U);
    const std::uint64_t before = stream.sent;
    std::uint64_t repaired =
        cluster->count(Counter::repair_unicast) + cluster->count(Counter::repair_multicast);
    ASSERT_FALSE(stream.run(200 * kMillisecond));
    RecordProperty("carried", std::to_string(stream.sent - before));
    EXPECT_GT(stream.sent - before, 0.9 * 0.2 * kFast / 8 / 1500) << "what one link carries";
    repaired = cluster->count(Counter::repair_unicast) + cluster->count(Counter::repair_multicast) -
               repaired;
    EXPECT_LT(repaired, 20U) << "nothing goes by the dead link";
    set_dead(cluster, false);
    ASSERT_FALSE(stream.run(200 * kMillisecond));
    const auto there = static_cast<std::uint16_t>(2 * lying.node + lying.link);
    const std::uint64_t came = cluster->net().stats(there).rx_frames;
    const std::uint64_t went = cluster->net().stats(there).tx_frames;
    stream.wanted = stream.sent + 2000;
    ASSERT_TRUE(stream.run(kSecond));
    EXPECT_EQ(stream.out_of_order, 0U);
    if (!lying.to_all) {
        EXPECT_GT(lying.node == 0 ? cluster->net().stats(there).tx_frames - went
                                  : cluster->net().stats(there).rx_frames - came,
                  800U)
            << "it has its share again";
    }
    RecordProperty("longest_gap_us",
                   static_cast<int>(std::ranges::max(stream.longest_gap) / kMicrosecond));
    EXPECT_EQ(cluster->shut_down(), 0U);
}

// N-38
TEST(Bond, no_link_is_silent_while_frames_are_lost_or_a_node_loses_its_core) {
    BondCluster cluster(3);
    ASSERT_TRUE(cluster.formed());
    Numbered there(*cluster, 0, unicast_to(1), {1}, 1400);
    there.wanted = 10'000'000;
    cluster->net().faults().set({.loss = 0.05});
    ASSERT_FALSE(there.run(2 * kSecond));
    for (unsigned n = 0; n < 42; ++n) {
        const Nanos away = (n % 7 == 0 ? 200 : 50) * kMillisecond;
        cluster->pause_node(static_cast<std::uint16_t>(n % 3), cluster->now() + away);
        ASSERT_FALSE(there.run(away + 20 * kMillisecond));
    }
    EXPECT_EQ(cluster->count(Counter::link_silences), 0U);
    EXPECT_GT(there.sent, 1000U);
}

// N-36
TEST(Bond, an_idle_bond_asks_rarely) {
    BondCluster cluster(2);
    ASSERT_TRUE(cluster.formed());
    Numbered stream(*cluster, 0, unicast_to(1), {1}, 100);
    ASSERT_TRUE(stream.run(kSecond));
    (void)cluster->run(kSecond, [] { return false; });
    const auto frames = [&] {
        std::uint64_t sum = 0;
        for (std::uint16_t port = 0; port < 4; ++port)
            sum += cluster->net().stats(port).tx_frames;
        return sum;
    };
    const std::uint64_t before = frames();
    (void)cluster->run(10 * kSecond, [] { return false; });
    const double each = static_cast<double>(frames() - before) / 10 / 4;
    RecordProperty("frames_each_link_in_a_second", std::to_string(each));
    EXPECT_LT(each, 16);
}

// N-27
TEST(Bond, a_job_forms_while_the_first_link_is_down) {
    ClusterConfig config;
    config.links = 2;
    config.net.ports = 4;
    SimCluster cluster(config);
    cluster.pull(1, 0);
    ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    Numbered stream(cluster, 0, unicast_to(1), {1}, 1400);
    EXPECT_TRUE(stream.run(5 * kSecond));
    Numbered back(cluster, 1, unicast_to(0), {0}, 1400);
    EXPECT_TRUE(back.run(5 * kSecond));
    EXPECT_EQ(stream.out_of_order + back.out_of_order, 0U);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

/// Counts frames to one address.
class AddressTap final : public Tap {
public:
    explicit AddressTap(const Mac& mac) : mac_(mac) {}
    void on_frame(std::uint16_t, bool outbound, const std::vector<std::byte>& frame,
                  Nanos) override {
        if (outbound && std::memcmp(frame.data(), &mac_, sizeof mac_) == 0) ++sent;
    }
    unsigned sent = 0;

private:
    Mac mac_;
};

// N-52, N-53
TEST(Bond, a_forged_announcement_takes_no_node_off_the_net) {
    const Mac attacker{{2, 9, 9, 9, 9, 9}};
    for (const std::uint16_t links : {1, 2}) {
        ClusterConfig config;
        config.links = links;
        config.net.ports = static_cast<std::uint16_t>(2 * links);
        SimCluster cluster(config);
        AddressTap tap(attacker);
        cluster.net().set_tap(&tap);
        const Mac victim = SimNet::mac_of(links);
        const auto forge = [&](std::uint64_t number, std::uint32_t incarnation) {
            std::vector<std::byte> frame(200);
            wire::NodeBody head{};
            head.kind = wire::NodeKind::kLinks;
            head.incarnation = incarnation;
            head.token = number;
            const NodeAddress forged[] = {{victim, 0, 0}, {attacker, 1000, 0}};
            const std::size_t body =
                wire::put_links(frame.data() + wire::kHeadOctets, head, forged);
            wire::FrameHead ethernet;
            ethernet.destination = kBroadcastMac;
            ethernet.source = victim;
            ethernet.type = wire::FrameType::kNode;
            const std::size_t octets = wire::build_control(frame.data(), ethernet, body);
            cluster.net().inject(0, frame.data(), static_cast<std::uint32_t>(octets));
        };
        for (std::uint64_t number = 1; number < 5; ++number) {
            forge(number, 77);
            (void)cluster.run(10 * kMillisecond, [] { return false; });
        }
        ASSERT_TRUE(cluster.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
        Numbered stream(cluster, 0, unicast_to(1), {1}, 1400);
        EXPECT_TRUE(stream.run(kSecond));
        forge(1000, 78);
        stream.wanted += 200;
        EXPECT_TRUE(stream.run(kSecond));
        EXPECT_EQ(stream.out_of_order, 0U);
        EXPECT_EQ(tap.sent, 0U) << "nothing goes to the address of a forged frame";
        cluster.net().set_tap(nullptr);
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

/// Runs messages between nodes of two links and one of one link, while a cable is pulled and
/// plugged in. Returns the upgrades of engines that were made.
std::uint64_t run_mixed(Recorder& recorder, std::uint64_t upgrade_every) {
    ClusterConfig config;
    config.links = 2;
    config.bonded_nodes = 2;
    config.net.ports = 6;
    config.net.bits_per_second = kFast;
    config.recorder = &recorder;
    config.upgrade_every = upgrade_every;
    SimCluster cluster(config);
    EXPECT_TRUE(cluster.form(3, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    Numbered to_one(cluster, 0, unicast_to(2), {2}, 1400);
    Numbered from_one(cluster, 2, unicast_to(1), {1}, 1400);
    EXPECT_TRUE(to_one.run(kSecond));
    EXPECT_TRUE(from_one.run(kSecond));
    cluster.pull(1, 0);
    from_one.wanted += 300;
    EXPECT_TRUE(from_one.run(kSecond));
    cluster.pull(1, 0, false);
    from_one.wanted += 300;
    EXPECT_TRUE(from_one.run(kSecond));
    EXPECT_EQ(to_one.out_of_order + from_one.out_of_order, 0U);
    EXPECT_EQ(cluster.upgrade_error(), "");
    EXPECT_EQ(cluster.shut_down(), 0U);
    return cluster.upgrades();
}

// The engine of the node with one link carries the addresses of the others through its upgrade.
TEST(Bond, an_upgrade_of_an_engine_changes_nothing) {
    Recorder without;
    Recorder with;
    EXPECT_EQ(run_mixed(without, 0), 0U);
    EXPECT_GT(run_mixed(with, 20), 50U);
    EXPECT_GT(without.frames(), 1800U);
    EXPECT_EQ(without.difference(with), "");
}

}  // namespace
}  // namespace ulc::sim
