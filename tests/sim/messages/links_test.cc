// SPDX-License-Identifier: BSD-3-Clause
// Links through whole engines (docs/PROTOCOL.md §13): records of clients, streams, slots and ends.
// Both ends call at once; keys are wrong; nodes stop, die and come back; an UNLINK is lost to the
// end; slots go from one peer to the next; one endpoint has a thousand links.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/prng.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr Nanos kDead = 2 * kSecond;  ///< node_dead and peer_dead of the default configuration

/// Endpoints that are open for links, one a given node; clients look at their rings at each step.
class Endpoints {
public:
    Endpoints(const ClusterConfig& config, const std::vector<std::uint16_t>& nodes,
              std::uint16_t slots = 8)
        : cluster(config) {
        for (const std::uint16_t node : nodes)
            add(node, slots);
        opened = run(kSecond, [this] {
            return std::ranges::all_of(clients, [this](std::size_t n) { return at(n).links_open; });
        });
    }
    std::size_t add(std::uint16_t node, std::uint16_t slots) {
        const std::size_t n = cluster.add_client(node);
        clients.push_back(n);
        EXPECT_TRUE(at(n).open_links(slots, static_cast<std::uint8_t>(1 + n % 250)));
        cluster.touch(node);
        return n;
    }
    [[nodiscard]] RingClient& at(std::size_t client) { return cluster.client(client); }
    void poll() {
        for (std::size_t n = 0; n < cluster.size(); ++n)
            if (!cluster.gone(n) && cluster.now() >= paused_until) at(n).poll();
    }
    bool run(Nanos limit, const std::function<bool()>& done) {
        return cluster.run(limit, done, [this] { poll(); });
    }
    void run_for(Nanos span) {
        EXPECT_FALSE(run(span, [] { return false; }));
    }
    /// Starts a call; its cookie.
    std::uint32_t call(std::size_t from, std::size_t to, Nanos timeout = 0) {
        const std::uint32_t cookie = at(from).link(at(to).address, timeout);
        cluster.touch(cluster.node_of(from));
        return cookie;
    }
    /// Links two and returns the slots: the second's at the first, the first's at the second.
    std::pair<Rank, Rank> link(std::size_t a, std::size_t b) {
        const std::size_t known = at(b).linked.size();
        const std::uint32_t cookie = call(a, b);
        EXPECT_TRUE(run(5 * kSecond, [&] {
            return at(a).link_done.contains(cookie) && at(b).linked.size() > known;
        }));
        EXPECT_EQ(at(a).link_done[cookie].second, 0);
        if (at(b).linked.size() <= known) return {kNoRank, kNoRank};
        return {at(a).link_done[cookie].first, at(b).linked.back().first};
    }
    bool send(std::size_t from, Rank slot, std::uint64_t tag, std::size_t octets) {
        const bool sent = at(from).send(slot, tag, Oracle::payload(tag, octets));
        cluster.touch(cluster.node_of(from));
        return sent;
    }
    void unlink(std::size_t client, Rank slot) {
        EXPECT_TRUE(at(client).unlink(slot));
        cluster.touch(cluster.node_of(client));
    }
    [[nodiscard]] bool has(std::size_t client, const std::vector<Rank>& list, Rank slot) {
        (void)client;
        return std::ranges::count(list, slot) > 0;
    }

    SimCluster cluster;
    std::vector<std::size_t> clients;
    Nanos paused_until = 0;
    bool opened = false;
};

ClusterConfig config_of(std::uint16_t nodes, std::uint64_t seed = 1) {
    ClusterConfig config;
    config.net.ports = nodes;
    config.seed = seed;
    return config;
}

/// Every pair is linked, two endpoints share a node; each sends numbered messages of many lengths.
void exchange(std::uint64_t seed) {
    ClusterConfig config = config_of(3, seed);
    config.embedded = Embedded::kHalf;
    config.net.faults = {.loss = 0.05, .duplicate = 0.02, .reorder = 0.02};
    Endpoints w(config, {0, 0, 1, 2});
    ASSERT_TRUE(w.opened);
    constexpr std::size_t kEndpoints = 4;
    constexpr std::uint64_t kMessages = 24;
    constexpr std::size_t kLengths[] = {0, 1, 104, 105, 1400, 1500, 9000, 40'000};
    std::map<std::pair<std::size_t, Rank>, std::size_t> from;  ///< senders, by slot
    std::vector<std::pair<std::size_t, Rank>> flows;
    for (std::size_t a = 0; a < kEndpoints; ++a) {
        for (std::size_t b = a + 1; b < kEndpoints; ++b) {
            const auto [at_a, at_b] = w.link(a, b);
            ASSERT_NE(at_a, kNoRank);
            from[{a, at_a}] = b;
            from[{b, at_b}] = a;
            flows.emplace_back(a, at_a);
            flows.emplace_back(b, at_b);
        }
    }
    std::vector<std::uint64_t> sent(flows.size());
    std::vector<std::uint64_t> submitted(kEndpoints);
    std::map<std::pair<std::size_t, Rank>, std::uint64_t> taken;
    std::size_t whole = 0;
    const bool all = w.run(60 * kSecond, [&] {
        for (std::size_t f = 0; f < flows.size(); ++f) {
            const auto [client, slot] = flows[f];
            const std::uint64_t tag = client * 1000 + sent[f];
            const std::uint64_t done = w.at(client).sends_done.size();
            if (sent[f] == kMessages || submitted[client] > done + 6) continue;
            if (!w.send(client, slot, tag, kLengths[sent[f] % 8])) continue;
            if (kLengths[sent[f] % 8] > abi::kInlineOctetsMax)
                ++submitted[client];  // shorter ones are not answered
            ++sent[f];
        }
        for (std::size_t client = 0; client < kEndpoints; ++client) {
            for (const Message& message : w.at(client).messages) {
                const std::pair key{client, message.source};
                const std::uint64_t number = taken[key]++;
                EXPECT_TRUE(from.contains(key));
                EXPECT_EQ(message.tag, from[key] * 1000 + number);
                EXPECT_EQ(message.payload, Oracle::payload(message.tag, kLengths[number % 8]));
                ++whole;
            }
            w.at(client).messages.clear();
        }
        return whole == flows.size() * kMessages;
    });
    EXPECT_TRUE(all) << whole << " of " << flows.size() * kMessages << ", seed " << seed;
    for (std::size_t client = 0; client < kEndpoints; ++client)
        EXPECT_EQ(w.at(client).broken, 0U);
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

TEST(Links, deliver_whole_and_in_order_under_loss) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
        exchange(seed);
}

TEST(Links, are_one_where_both_call_at_once) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        ClusterConfig config = config_of(2, seed);
        config.net.faults.loss = seed % 2 == 0 ? 0.2 : 0;
        Endpoints w(config, {0, 1});
        const std::uint32_t one = w.call(0, 1);
        const std::uint32_t other = w.call(1, 0);
        ASSERT_TRUE(w.run(5 * kSecond, [&] {
            return w.at(0).link_done.contains(one) && w.at(1).link_done.contains(other);
        }));
        EXPECT_EQ(w.at(0).link_done[one].second, 0);
        EXPECT_EQ(w.at(1).link_done[other].second, 0);
        EXPECT_EQ(w.at(0).linked.size(), 1U);
        EXPECT_EQ(w.at(1).linked.size(), 1U);
        ASSERT_TRUE(w.send(0, w.at(0).link_done[one].first, 5, 3000));
        EXPECT_TRUE(w.run(kSecond, [&] { return w.at(1).messages.size() == 1; }));
        EXPECT_EQ(w.cluster.shut_down(), 0U);
    }
}

TEST(Links, with_a_wrong_key_are_dropped_and_counted) {
    Endpoints w(config_of(2), {0, 1});
    w.at(1).address[31] ^= 1;
    const std::uint32_t cookie = w.call(0, 1, kSecond);
    ASSERT_TRUE(w.run(2 * kSecond, [&] { return w.at(0).link_done.contains(cookie); }));
    EXPECT_EQ(w.at(0).link_done[cookie].second, static_cast<int>(Err::kTimeout));
    EXPECT_GT(w.cluster.engine(1).counters().get(Counter::drop_link_key), 0U);
    EXPECT_TRUE(w.at(1).linked.empty());
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

// The last message is delivered before the end is reported, and both slots are vacant again.
// L-22, L-23
TEST(Links, end_in_order_behind_what_was_sent) {
    for (const bool local : {false, true}) {
        ClusterConfig config = config_of(2);
        config.net.faults.loss = 0.05;
        Endpoints w(config, {0, static_cast<std::uint16_t>(local ? 0 : 1)}, 1);
        const auto [here, there] = w.link(0, 1);
        ASSERT_TRUE(w.send(0, here, 1, 100'000));
        ASSERT_TRUE(w.send(0, here, 2, 10));
        w.unlink(0, here);
        ASSERT_TRUE(w.run(5 * kSecond, [&] { return !w.at(1).peers_left.empty(); }));
        EXPECT_EQ(w.at(1).messages.size(), 2U) << "all that was sent, before the end";
        ASSERT_TRUE(w.run(kSecond, [&] { return w.at(0).unlinked.size() == 1; }));
        EXPECT_TRUE(w.at(1).unlinked.empty()) << "the slot is the client's until it lets go";
        w.unlink(1, there);
        ASSERT_TRUE(w.run(kSecond, [&] { return w.at(1).unlinked.size() == 1; }));
        const auto again = w.link(1, 0);
        EXPECT_EQ(again, (std::pair<Rank, Rank>{0, 0}));
        EXPECT_EQ(w.cluster.shut_down(), 0U);
    }
}

// L-30
TEST(Links, give_a_slot_to_one_peer_after_the_other) {
    ClusterConfig config = config_of(3);
    config.net.faults = {.loss = 0.03, .duplicate = 0.01, .reorder = 0.01};
    Endpoints w(config, {0, 1, 2}, 1);
    for (std::uint64_t turn = 0; turn < 60; ++turn) {
        const std::size_t other = 1 + turn % 2;
        const auto [there, here] = w.link(other, 0);
        ASSERT_EQ(here, 0);
        ASSERT_TRUE(w.send(other, there, 2 * turn, 2000));
        ASSERT_TRUE(w.send(0, here, 2 * turn + 1, turn % 3 == 0 ? 20'000 : 10));
        if (turn % 3 != 0) {
            ASSERT_TRUE(w.run(kSecond, [&] {
                return w.at(0).messages.size() == 1 && w.at(other).messages.size() == 1;
            })) << turn;
            EXPECT_EQ(w.at(0).messages[0].tag, 2 * turn);
            EXPECT_EQ(w.at(other).messages[0].tag, 2 * turn + 1);
        }
        // Both ends let go, also in the midst of messages.
        const std::size_t freed_here = w.at(0).unlinked.size();
        const std::size_t freed_there = w.at(other).unlinked.size();
        w.unlink(0, here);
        w.unlink(other, there);
        ASSERT_TRUE(w.run(15 * kSecond, [&] {
            return w.at(0).unlinked.size() > freed_here &&
                   w.at(other).unlinked.size() > freed_there;
        })) << turn;
        w.at(0).messages.clear();
        w.at(other).messages.clear();
    }
    for (std::size_t n = 0; n < 3; ++n)
        EXPECT_EQ(w.at(n).broken, 0U);
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

TEST(Links, end_when_a_client_dies_or_closes) {
    for (const bool dies : {true, false}) {
        Endpoints w(config_of(2), {0, 1});
        const auto [here, there] = w.link(0, 1);
        ASSERT_TRUE(w.send(1, there, 9, 5000));
        w.run_for(10 * kMillisecond);
        if (dies) {
            w.cluster.kill_client(1);
        } else {
            w.cluster.close_client(1);
        }
        ASSERT_TRUE(w.run(
            kSecond, [&] { return !(dies ? w.at(0).peers_died : w.at(0).peers_left).empty(); }));
        EXPECT_EQ(w.at(0).messages.size(), 1U);
        w.unlink(0, here);
        EXPECT_TRUE(w.run(kSecond, [&] { return w.at(0).unlinked.size() == 1; }));
        EXPECT_EQ(w.cluster.shut_down(), 0U);
    }
}

// L-27
TEST(Links, end_when_the_node_dies) {
    Endpoints w(config_of(2), {0, 1});
    const auto [here, there] = w.link(0, 1);
    ASSERT_TRUE(w.send(0, here, 1, 100));
    w.cluster.kill_node(1);
    ASSERT_TRUE(w.run(2 * kDead, [&] { return !w.at(0).peers_died.empty(); }));
    EXPECT_EQ(w.at(0).peers_died[0], here);
    w.unlink(0, here);
    EXPECT_TRUE(w.run(kSecond, [&] { return w.at(0).unlinked.size() == 1; }));
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

// Neither end sends: only questions find out.
TEST(Links, end_at_both_ends_when_a_node_stops_for_too_long) {
    Endpoints w(config_of(2), {0, 1});
    (void)w.link(0, 1);
    w.cluster.pause_node(1, w.cluster.now() + 2 * kDead);
    ASSERT_TRUE(w.run(2 * kDead, [&] { return !w.at(0).peers_died.empty(); }));
    ASSERT_TRUE(w.run(4 * kDead, [&] { return !w.at(1).peers_died.empty(); }));
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

// The other end has vacated the slot; data under it are answered by a hint.
// L-29
TEST(Links, end_at_a_node_that_comes_back_and_sends) {
    Endpoints w(config_of(2), {0, 1});
    const auto [here, there] = w.link(0, 1);
    w.cluster.pause_node(1, w.cluster.now() + 2 * kDead);
    ASSERT_TRUE(w.run(2 * kDead, [&] { return !w.at(0).peers_died.empty(); }));
    w.unlink(0, here);
    ASSERT_TRUE(w.send(1, there, 7, 3000));
    ASSERT_TRUE(w.run(2 * kDead, [&] { return !w.at(1).peers_died.empty(); }));
    EXPECT_EQ(w.at(0).messages.size(), 0U);
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

TEST(Links, an_unlink_that_is_lost_is_found_by_a_question) {
    Endpoints w(config_of(2), {0, 1});
    const auto [here, there] = w.link(0, 1);
    w.run_for(10 * kMillisecond);
    w.cluster.net().faults().cut(0, 1, true);
    w.unlink(0, here);
    ASSERT_TRUE(w.run(4 * kSecond, [&] { return w.at(0).unlinked.size() == 1; }));
    w.cluster.net().faults().cut(0, 1, false);
    ASSERT_TRUE(w.run(2 * kDead,
                      [&] { return w.at(1).peers_died.size() + w.at(1).peers_left.size() == 1; }));
    w.unlink(1, there);
    EXPECT_TRUE(w.run(kSecond, [&] { return w.at(1).unlinked.size() == 1; }));
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

TEST(Links, a_thousand_at_one_endpoint) {
    constexpr std::uint16_t kNodes = 17;
    constexpr std::size_t kLinks = 1000;
    ClusterConfig config = config_of(kNodes);
    config.sizes = {32, 32, 8U << 10, 16U << 10};
    config.engine.endpoints_max = 64;
    std::vector<std::uint16_t> nodes;
    for (std::size_t n = 0; n < kLinks; ++n)
        nodes.push_back(static_cast<std::uint16_t>(1 + n % (kNodes - 1)));
    Endpoints w(config, nodes, 1);
    ASSERT_TRUE(w.opened);
    const std::size_t server = w.add(0, kLinks);
    ASSERT_TRUE(w.run(kSecond, [&] { return w.at(server).links_open; }));
    for (std::size_t n = 0; n < kLinks; ++n)
        (void)w.call(n, server);
    ASSERT_TRUE(w.run(10 * kSecond, [&] { return w.at(server).linked.size() == kLinks; }));
    std::vector<bool> seen(kLinks);
    for (const auto& [slot, incoming] : w.at(server).linked) {
        EXPECT_TRUE(incoming);
        seen[slot] = true;
    }
    EXPECT_EQ(std::ranges::count(seen, true), std::ptrdiff_t{kLinks});
    ASSERT_TRUE(w.run(kSecond, [&] {
        return std::ranges::all_of(
            w.clients, [&](std::size_t n) { return n == server || w.at(n).link_done.size() == 1; });
    }));
    for (std::size_t n = 0; n < kLinks; ++n)
        ASSERT_TRUE(w.send(n, 0, n, 40));
    ASSERT_TRUE(w.run(10 * kSecond, [&] { return w.at(server).messages.size() == kLinks; }));
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

// A client that takes no completions: it hears of a peer before that peer's first message.
// L-18
TEST(Links, are_told_before_their_messages_though_the_ring_is_full) {
    ClusterConfig config = config_of(3);
    config.sizes = {32, 8, 64U << 10, 64U << 10};
    Endpoints w(config, {0, 1, 2});
    const auto [at_1, at_0] = w.link(1, 0);
    const auto send_rest = [&] {  // client 0 is not polled
        w.at(1).poll();
        w.at(2).poll();
    };
    for (std::uint64_t n = 0; n < 20; ++n)
        ASSERT_TRUE(w.send(1, at_1, n, 10));
    (void)w.cluster.run(
        20 * kMillisecond, [] { return false; }, send_rest);
    const std::uint32_t cookie = w.call(2, 0);
    ASSERT_TRUE(w.cluster.run(
        kSecond, [&] { return w.at(2).link_done.contains(cookie); }, send_rest));
    ASSERT_TRUE(w.send(2, w.at(2).link_done[cookie].first, 77, 3000));
    (void)w.cluster.run(
        50 * kMillisecond, [] { return false; }, send_rest);
    EXPECT_EQ(w.at(0).linked.size(), 1U);
    ASSERT_TRUE(w.run(kSecond, [&] { return w.at(0).messages.size() == 21; }));
    EXPECT_EQ(w.at(0).linked.size(), 2U);
    EXPECT_EQ(w.at(0).early, 0U) << "messages of a source that was not told";
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

TEST(Links, stand_beside_jobs_of_the_same_engines) {
    ClusterConfig config = config_of(2);
    SimCluster* cluster = nullptr;
    Endpoints w(config, {0, 1});
    cluster = &w.cluster;
    ASSERT_TRUE(cluster->form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    ASSERT_TRUE(cluster->form(2, [](std::size_t n) { return static_cast<std::uint16_t>(1 - n); }));
    const auto [here, there] = w.link(0, 1);
    ASSERT_TRUE(w.send(0, here, 1, 2000));
    ASSERT_TRUE(cluster->client(2).send(1, 2, Oracle::payload(2, 2000)));
    ASSERT_TRUE(cluster->client(4).send(1, 3, Oracle::payload(3, 2000)));
    cluster->touch(1);
    ASSERT_TRUE(w.run(kSecond, [&] {
        return w.at(1).messages.size() == 1 && w.at(3).messages.size() == 1 &&
               w.at(5).messages.size() == 1;
    }));
    EXPECT_EQ(w.at(1).messages[0].source, there);
    EXPECT_EQ(w.at(3).messages[0].tag, 2U);
    EXPECT_EQ(w.at(5).messages[0].tag, 3U);
    w.cluster.kill_client(0);
    ASSERT_TRUE(w.run(kSecond, [&] { return !w.at(1).peers_died.empty(); }));
    EXPECT_TRUE(w.at(3).peers_died.empty());
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

TEST(Links, refuse_records_that_no_correct_client_writes) {
    Endpoints w(config_of(2), {0, 1});
    const auto bad = [&] { return w.cluster.engine(0).counters().get(Counter::client_bad_record); };
    const auto submit = [&](abi::SubmitKind kind, std::uint32_t stream) {
        abi::SubmissionRecord record{};
        record.kind = kind;
        record.stream = stream;
        EXPECT_TRUE(w.at(0).submit(record));
        w.cluster.touch(0);
        w.run_for(kMillisecond);
    };
    submit(abi::SubmitKind::kUnlink, 0);
    EXPECT_EQ(bad(), 1U) << "a vacant slot";
    submit(abi::SubmitKind::kUnlink, 8);
    EXPECT_EQ(bad(), 2U) << "no such slot";
    ASSERT_TRUE(w.at(0).open_links(4, 1));
    w.cluster.touch(0);
    w.run_for(kMillisecond);
    EXPECT_EQ(bad(), 3U) << "open already";
    ASSERT_TRUE(w.at(0).join("job", 0, 1));
    w.cluster.touch(0);
    w.run_for(kMillisecond);
    EXPECT_EQ(bad(), 4U) << "a job as well";
    EXPECT_FALSE(w.at(0).formed());
    submit(abi::SubmitKind::kLink, 0);  // an address of zeros
    EXPECT_EQ(w.at(0).link_done[0].second, static_cast<int>(Err::kInvalid));
    EXPECT_EQ(w.at(0).closed(), 0);

    const std::size_t fresh = w.cluster.add_client(0);
    abi::SubmissionRecord record{};
    record.kind = abi::SubmitKind::kUnlink;
    EXPECT_TRUE(w.at(fresh).submit(record));
    record.kind = abi::SubmitKind::kLink;
    EXPECT_TRUE(w.at(fresh).submit(record));
    w.cluster.touch(0);
    w.run_for(kMillisecond);
    EXPECT_EQ(bad(), 6U) << "not open";
    EXPECT_TRUE(w.at(fresh).open_links(0, 1));
    w.cluster.touch(0);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.at(fresh).job_status, static_cast<int>(Err::kInvalid));
    EXPECT_TRUE(w.at(fresh).open_links(60'000, 1));
    w.cluster.touch(0);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.at(fresh).job_status, static_cast<int>(Err::kLimit));
    EXPECT_TRUE(w.at(fresh).open_links(8, 1));
    w.cluster.touch(0);
    w.run_for(kMillisecond);
    EXPECT_TRUE(w.at(fresh).links_open) << "a refusal is not the end";
    record.kind = abi::SubmitKind::kOpenLinks;
    record.body.block = {UINT32_MAX - 7, sizeof(abi::OpenLinksRequest), 0, 0, 0, 0};
    EXPECT_TRUE(w.at(fresh).submit(record));
    w.cluster.touch(0);
    w.run_for(kMillisecond);
    EXPECT_EQ(w.at(fresh).closed(), static_cast<int>(Err::kCorrupt));
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

TEST(Links, make_no_group) {
    Endpoints w({}, {0, 1});
    ASSERT_TRUE(w.opened);
    w.link(0, 1);
    constexpr GroupHandle kGroup = kGroupBit | 77U;
    for (const std::vector<Rank>& ranks : {std::vector<Rank>{0, 1}, {1, 2, 3}}) {
        ASSERT_TRUE(w.at(0).add_group(kGroup, ranks));
        w.cluster.touch(0);
        w.run_for(kMillisecond);
        EXPECT_EQ(w.at(0).groups[kGroup], static_cast<int>(Err::kInvalid));
        w.at(0).groups.clear();
    }
    EXPECT_EQ(w.at(0).closed(), 0);
    EXPECT_EQ(w.cluster.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
