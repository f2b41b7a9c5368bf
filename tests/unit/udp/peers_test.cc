// SPDX-License-Identifier: BSD-3-Clause
// Nodes on UDP find each other (udp/peers.h): from one known address to all, after losses, late,
// and in other incarnations. Words of strangers move no node and cost little.
#include "udp/peers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "fixture.h"

namespace ulc::udp {
namespace {

Address address(unsigned n) {
    Address out;
    EXPECT_TRUE(read_address("10.0.0." + std::to_string(n + 1) + ":4001", out));
    return out;
}

Mac name(unsigned n) { return Mac{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(n + 1)}}; }

/// Nodes on a network that loses and delays nothing, unless a test says so.
class UdpPeers : public testing::Test {
protected:
    struct Sent {
        Address from;
        Address to;
        std::vector<std::byte> octets;
    };
    Peers& add(unsigned n, std::uint64_t life = 0) {
        Mac own = name(n);
        own.octets[1] = static_cast<std::uint8_t>(life);
        seal::Keyring* ring = nullptr;
        if (!secrets.empty()) {
            EXPECT_GE(sodium_init(), 0);
            seal::Salt salt{};
            std::memcpy(salt.data(), &own, sizeof own);
            rings.push_back(std::make_unique<seal::Keyring>(own, salt, seal::has_aes()));
            ring = rings.back().get();
            for (const std::uint8_t secret : secrets)
                EXPECT_TRUE(ring->add(secret_of(secret)));
        }
        nodes[address(n)] =
            std::make_unique<Peers>(PeersConfig{own, 100 * life + n + 1, ring, datagram_max});
        return at(n);
    }
    [[nodiscard]] Peers& at(unsigned n) { return *nodes.at(address(n)); }
    void run(Nanos span) {
        for (const Nanos end = now + span; now < end; now += kMillisecond) {
            for (auto& [own, peers] : nodes)
                peers->on_timer(now);
            for (bool any = true; any;) {
                any = false;
                for (auto& [own, peers] : nodes)
                    any |= take(own, *peers);
            }
        }
    }
    bool take(const Address& own, Peers& peers) {
        std::byte body[kQuestionMax];
        Address to;
        const std::size_t octets = peers.next_tx(to, body);
        if (octets == 0) return false;
        if (octets > path_max) return true;
        log.push_back({own, to, {body, body + octets}});
        if (loss > 0 && prng.chance(loss)) return true;
        if (const auto there = nodes.find(to); there != nodes.end())
            there->second->on_datagram(own, {body, octets}, now);
        return true;
    }
    void send(const Address& from, unsigned to, const void* data, std::size_t octets) {
        at(to).on_datagram(from, {static_cast<const std::byte*>(data), octets}, now);
    }
    [[nodiscard]] std::size_t sent_to(const Address& to) const {
        std::size_t octets = 0;
        for (const Sent& sent : log)
            if (sent.to == to) octets += sent.octets.size();
        return octets;
    }
    [[nodiscard]] bool know_each_other(unsigned count) {
        for (unsigned a = 0; a < count; ++a)
            for (unsigned b = 0; b < count; ++b)
                if (a != b && at(a).find(name(b)) == nullptr) return false;
        return true;
    }
    std::size_t datagram_max = 0;
    std::size_t path_max = SIZE_MAX;    ///< longest datagram of all paths
    std::vector<std::uint8_t> secrets;  ///< those of nodes that are added next; none: they are open
    std::vector<std::unique_ptr<seal::Keyring>> rings;
    std::map<Address, std::unique_ptr<Peers>> nodes;
    std::vector<Sent> log;
    Nanos now = kSecond;
    double loss = 0;
    Prng prng{7};
};

// I-5, I-7, I-10, I-11
TEST_F(UdpPeers, find_all_others_by_one_known_address) {
    constexpr unsigned kNodes = 70;  // more than the addresses of one answer
    for (unsigned n = 0; n < kNodes; ++n)
        add(n).add(address(0), now);
    run(200 * kMillisecond);
    EXPECT_TRUE(know_each_other(kNodes));
    for (unsigned n = 0; n < kNodes; ++n) {
        EXPECT_EQ(at(n).count(), kNodes - 1) << "no node is its own peer";
        EXPECT_EQ(at(n).counts().malformed + at(n).counts().unproven, 0U);
    }
    log.clear();
    run(10 * kSecond);
    EXPECT_LE(log.size(), std::size_t{kNodes} * kNodes * 2 * 3) << "then they ask rarely";
}

TEST_F(UdpPeers, find_each_other_though_half_of_all_datagrams_are_lost) {
    loss = 0.5;
    for (unsigned n = 0; n < 8; ++n)
        add(n).add(address(0), now);
    run(60 * kSecond);
    EXPECT_TRUE(know_each_other(8));
}

// I-12, I-13
TEST_F(UdpPeers, find_all_others_that_hold_a_secret_though_datagrams_are_lost) {
    constexpr unsigned kNodes = 70;
    loss = 0.3;
    for (unsigned n = 0; n < kNodes; ++n) {
        secrets = n % 2 == 0 ? std::vector<std::uint8_t>{1, 2} : std::vector<std::uint8_t>{2};
        add(n).add(address(0), now);
    }
    run(60 * kSecond);
    EXPECT_TRUE(know_each_other(kNodes));
    for (unsigned n = 0; n < kNodes; ++n) {
        EXPECT_EQ(at(n).holders_of(0) + at(n).holders_of(1), kNodes - 1);
        for (unsigned other = 0; other < kNodes; ++other)
            if (other != n) {
                EXPECT_NE(at(n).keys_of(address(other)), nullptr);
            }
    }
}

// I-13, I-17
TEST_F(UdpPeers, neither_find_nor_flood_nodes_that_hold_no_secret_of_theirs) {
    secrets = {1};
    add(0);
    secrets = {2};
    add(1).add(address(0), now);
    secrets = {};
    add(2).add(address(0), now);
    run(100 * kSecond);
    for (unsigned n = 0; n < 3; ++n)
        EXPECT_EQ(at(n).count(), 0U);
    EXPECT_EQ(at(1).unanswered(),
              "10.0.0.1:4001 (its engine has another key, or is open: give both one key=FILE)");
    EXPECT_EQ(
        at(2).unanswered(),
        "10.0.0.1:4001 (its engine is sealed, and this one open: give both one key=FILE, or write "
        "open at both)");
    // Each question of the two is answered by one hint.
    EXPECT_LE(sent_to(address(0)), 2 * 110 * (sizeof(Hello) + sizeof(seal::Proof)));
    EXPECT_LE(sent_to(address(1)) + sent_to(address(2)),
              2 * 110 * (sizeof(Hello) + sizeof(seal::Proof)));
}

// I-8, I-17
TEST_F(UdpPeers, hint_once_a_second_and_never_because_of_a_hint) {
    secrets = {1};
    add(0);
    Hello hello;
    hello.name = name(70);
    hello.token = std::uint64_t{5};
    for (unsigned n = 0; n < 200; ++n)
        send(address(70), 0, &hello, sizeof hello);
    hello.token = std::uint64_t{0};
    send(address(71), 0, &hello, sizeof hello);
    run(900 * kMillisecond);
    EXPECT_EQ(sent_to(address(70)), sizeof(Hello) + sizeof(seal::Proof));
    seal::Proof none;
    EXPECT_EQ(rings[0]->check(log.front().octets, none), seal::Keyring::kNone)
        << "its proof could be repeated elsewhere";
    EXPECT_EQ(sent_to(address(71)), 0U);
    EXPECT_EQ(at(0).counts().unsealed, 201U);
    log.clear();
    hello.token = std::uint64_t{5};
    for (unsigned n = 100; n < 200; ++n)
        send(address(n), 0, &hello, sizeof hello);
    run(kMillisecond);
    EXPECT_LE(log.size(), Peers::kHintsPerSecond) << "also to many addresses";
}

// I-8
TEST_F(UdpPeers, ask_where_a_question_came_from_once_a_second) {
    for (const bool sealed : {false, true}) {
        secrets.assign(sealed ? 1 : 0, 1);
        nodes.clear();
        add(0);
        add(1).add(address(70), now);
        run(kMillisecond);
        ASSERT_FALSE(log.empty());
        const std::vector<std::byte> question = log.front().octets;
        nodes.erase(address(1));
        log.clear();
        send(address(80), 0, question.data(), question.size());
        run(500 * kMillisecond);
        EXPECT_LE(sent_to(address(80)), 3 * question.size());
        run(20 * kSecond);
        EXPECT_LE(sent_to(address(80)), (3 + 8) * question.size());
        log.clear();
    }
}

// I-13
TEST_F(UdpPeers, spend_bounded_work_on_wrong_proofs) {
    secrets = {1};
    add(0);
    add(1).add(address(70), now);
    run(kMillisecond);
    const std::vector<std::byte> question = log.front().octets;
    std::vector<std::byte> junk(kQuestionMax, static_cast<std::byte>(Kind::kSealedHello));
    for (std::size_t octets = 0; octets < Peers::kCheckedMax; octets += junk.size())
        send(address(71), 0, junk.data(), junk.size());
    log.clear();
    send(address(1), 0, question.data(), question.size());
    std::byte body[kQuestionMax];
    Hello hint;
    for (Address to; at(0).next_tx(to, body) != 0;) {
        std::memcpy(&hint, body, sizeof hint);
        EXPECT_EQ(hint.kind, Kind::kSealedHello);
        EXPECT_EQ(hint.token, 0U) << "no more work before the next look";
    }
    EXPECT_EQ(hint.kind, Kind::kSealedHello);
    run(kMillisecond);
    log.clear();
    send(address(1), 0, question.data(), question.size());
    run(kMillisecond);
    EXPECT_GT(sent_to(address(1)), 0U);
}

// I-11
TEST_F(UdpPeers, take_no_peer_for_themselves_because_a_question_came_back) {
    add(0).add(address(1), now);
    run(kMillisecond);
    const std::vector<std::byte> question = log.front().octets;
    send(address(1), 0, question.data(), question.size());  // from the address that it went to
    add(1);
    run(Peers::kForget + kSecond);
    EXPECT_TRUE(know_each_other(2)) << "it is asked again";
    send(address(1), 0, question.data(), question.size());
    run(Peers::kForget + kSecond);
    EXPECT_TRUE(know_each_other(2)) << "a node that answers is another one";
}

// I-13
TEST_F(UdpPeers, find_a_node_that_comes_late_and_holds_another_secret_only) {
    secrets = {1, 2, 3};
    add(0).add(address(1), now);
    run(400 * kSecond);
    secrets = {2};
    add(1);
    run(4 * kSecond);
    EXPECT_TRUE(know_each_other(2));
    secrets = {3};  // it starts again, and has another secret
    add(1, 9).add(address(0), now);
    run(4 * kSecond);
    ASSERT_NE(at(0).keys_of(address(1)), nullptr);
    EXPECT_EQ(at(0).keys_of(address(1))->secret(), 2U);
}

// I-14
TEST_F(UdpPeers, take_new_keys_with_another_incarnation_and_no_others) {
    secrets = {1};
    add(0).add(address(1), now);
    add(1);
    run(kSecond);
    const seal::PeerKeys* const before = at(0).keys_of(address(1));
    ASSERT_NE(before, nullptr);
    const seal::Salt salt = before->salt();
    run(30 * kSecond);
    EXPECT_EQ(at(0).keys_of(address(1)), before) << "the numbers that came stay known";
    add(1, 9).add(address(0), now);
    run(2 * kSecond);
    ASSERT_NE(at(0).keys_of(address(1)), nullptr);
    EXPECT_NE(at(0).keys_of(address(1))->salt(), salt);
    EXPECT_EQ(at(0).holders_of(0), 1U);
}

// I-19; RFC 8899 §4.3
TEST_F(UdpPeers, find_that_a_path_became_narrow_and_wide_again) {
    datagram_max = 1472;
    for (const bool sealed : {false, true}) {
        secrets.assign(sealed ? 1 : 0, 1);
        nodes.clear();
        add(0).add(address(1), now);
        add(1);
        run(10 * kSecond);
        ASSERT_TRUE(know_each_other(2));
        EXPECT_EQ(at(0).narrow_count() + at(1).narrow_count(), 0U);
        path_max = 1400;
        run(6 * kSecond);
        EXPECT_EQ(at(0).narrow_count() + at(1).narrow_count(), 2U);
        EXPECT_TRUE(at(0).find(name(1))->narrow);
        EXPECT_EQ(at(0).counts().narrowed, 1U);
        log.clear();
        run(20 * kSecond);
        EXPECT_LE(log.size(), 2U * 2 * 2 * 6) << "two questions in 4 s";
        EXPECT_EQ(at(0).narrow_count() + at(1).narrow_count(), 2U);
        path_max = SIZE_MAX;
        run(6 * kSecond);
        EXPECT_EQ(at(0).narrow_count() + at(1).narrow_count(), 0U);
        path_max = 1400;
        run(6 * kSecond);
        nodes.erase(address(1));
        run(Peers::kForget + 10 * kSecond);
        EXPECT_EQ(at(0).narrow_count(), 0U) << "it is forgotten";
        path_max = SIZE_MAX;
    }
}

TEST_F(UdpPeers, take_no_lossy_path_for_a_narrow_one) {
    datagram_max = 1472;
    loss = 0.1;
    add(0).add(address(1), now);
    add(1);
    unsigned narrow = 0;
    for (unsigned n = 0; n < 600; ++n) {
        run(kSecond);
        narrow += at(0).narrow_count() > 0 ? 1 : 0;
    }
    EXPECT_LE(narrow, 60U) << "seconds of 600";
}

// I-10
TEST_F(UdpPeers, wait_for_a_node_that_comes_ten_minutes_late) {
    add(0).add(address(1), now);
    run(600 * kSecond);
    EXPECT_LE(log.size(), 620U) << "one question a second, after the first ones";
    add(1);
    run(2 * kSecond);
    EXPECT_TRUE(know_each_other(2));
}

// I-6
TEST_F(UdpPeers, take_another_incarnation_at_the_same_address) {
    add(0).add(address(1), now);
    add(1);
    run(kSecond);
    ASSERT_TRUE(know_each_other(2));
    const Mac before = at(0).name_of(address(1));
    add(1, 9).add(address(0), now);
    run(2 * kSecond);
    EXPECT_EQ(at(0).find(name(1)), nullptr);
    EXPECT_EQ(at(0).count(), 1U);
    EXPECT_NE(at(0).name_of(address(1)), before);
}

// I-9
TEST_F(UdpPeers, leave_a_name_where_it_answers) {
    add(0);
    add(1).add(address(0), now);
    run(100 * kMillisecond);
    // Node 2 says that it is node 1, and answers questions.
    nodes[address(2)] = std::make_unique<Peers>(PeersConfig{name(1), 77});
    at(2).add(address(0), now);
    run(5 * kSecond);
    EXPECT_EQ(at(0).find(name(1))->address, address(1));
    EXPECT_GE(at(0).counts().refused, 1U);
    nodes.erase(address(1));
    run(Peers::kSilent + 5 * kSecond);
    EXPECT_EQ(at(0).find(name(1))->address, address(2)) << "it moved";
}

// I-6
TEST_F(UdpPeers, believe_no_answer_without_the_token_of_a_question) {
    add(0).add(address(1), now);
    run(10 * kMillisecond);
    Welcome welcome;
    welcome.name = name(1);
    welcome.count = std::uint16_t{0};
    welcome.entries = std::uint16_t{0};
    welcome.token = std::uint64_t{1234};
    send(address(1), 0, &welcome, sizeof welcome);
    welcome.token = std::uint64_t{0};
    send(address(5), 0, &welcome, sizeof welcome);
    EXPECT_EQ(at(0).count(), 0U);
    EXPECT_EQ(at(0).counts().unproven, 2U);
}

TEST_F(UdpPeers, refuse_what_is_malformed) {
    add(0);
    Hello hello;
    hello.name = name(1);
    hello.token = std::uint64_t{1};
    std::byte octets[sizeof hello]{};
    std::memcpy(octets, &hello, sizeof hello);
    send(address(1), 0, octets, sizeof hello - 1);
    std::vector<std::byte> too_long(kQuestionMax + 1);
    std::memcpy(too_long.data(), &hello, sizeof hello);
    send(address(1), 0, too_long.data(), too_long.size());
    hello.name = Mac{};
    send(address(1), 0, &hello, sizeof hello);
    hello.name = kBroadcastMac;
    send(address(1), 0, &hello, sizeof hello);
    Welcome welcome;
    welcome.name = name(1);
    welcome.entries = std::uint16_t{1};
    send(address(1), 0, &welcome, sizeof welcome);
    welcome.entries = std::uint16_t{0};
    welcome.name = at(0).own();
    send(address(1), 0, &welcome, sizeof welcome);
    EXPECT_EQ(at(0).counts().malformed, 6U);
    run(kSecond);
    EXPECT_TRUE(log.empty());
}

// I-8; RFC 9000 §8.1
TEST_F(UdpPeers, send_a_stranger_no_more_than_thrice_what_came_from_there) {
    add(0);
    for (unsigned n = 1; n < 60; ++n)
        add(n).add(address(0), now);
    run(kSecond);
    log.clear();
    Hello hello;
    hello.name = name(70);
    hello.token = std::uint64_t{1};
    std::size_t came = 0;
    for (unsigned n = 0; n < 200; ++n) {
        send(address(70), 0, &hello, sizeof hello);
        came += sizeof hello;
        run(kMillisecond);
        ASSERT_LE(sent_to(address(70)), 3 * came);
    }
    EXPECT_LE(sent_to(address(70)), came * 2 / 3) << "questions are rare";
}

// I-8, I-10
TEST_F(UdpPeers, ask_at_few_of_the_addresses_that_a_peer_invents) {
    add(0).add(address(1), now);
    unsigned invented = 0;
    std::size_t answered = 0;
    for (unsigned round = 0; round < 2000; ++round) {
        run(kMillisecond);
        for (; answered < log.size(); ++answered) {  // node 1 is played
            const Sent& sent = log[answered];
            if (sent.to != address(1)) continue;
            Hello hello;
            std::memcpy(&hello, sent.octets.data(), sizeof hello);
            std::vector<std::byte> octets(kControlMax - sizeof(seal::Proof));
            Welcome welcome;
            welcome.name = name(1);
            welcome.count = UINT16_MAX;
            welcome.entries = static_cast<std::uint16_t>(kEntriesMax);
            welcome.token = std::uint64_t{hello.token};
            std::memcpy(octets.data(), &welcome, sizeof welcome);
            for (std::size_t n = 0; n < kEntriesMax; ++n) {
                Entry entry;
                entry.ip = address(0).ip;
                entry.ip[13] = static_cast<std::uint8_t>(++invented >> 8U);
                entry.ip[14] = static_cast<std::uint8_t>(invented);
                entry.port = std::uint16_t{9};
                entry.reserved = std::uint16_t{0};
                std::memcpy(octets.data() + sizeof welcome + n * sizeof entry, &entry,
                            sizeof entry);
            }
            send(address(1), 0, octets.data(), octets.size());
        }
    }
    EXPECT_GT(invented, 2000U);
    std::map<Address, unsigned> asked;
    for (const Sent& sent : log)
        ++asked[sent.to];
    EXPECT_LE(asked.size(), Peers::kStrangersMax + 1);
    EXPECT_GT(at(0).counts().refused, 1000U);
    EXPECT_EQ(at(0).count(), 1U);
}

TEST_F(UdpPeers, cost_the_same_for_any_number_of_invented_addresses) {
    add(0);
    add(1).add(address(0), now);
    run(kSecond);
    log.clear();
    constexpr unsigned kFrames = 20'000;
    const std::uint64_t steps = at(0).steps();
    Hello hello;
    hello.token = std::uint64_t{1};
    for (unsigned n = 0; n < kFrames; ++n) {
        Address from = address(0);
        from.ip[12] = 11;
        from.ip[13] = static_cast<std::uint8_t>(n >> 8U);
        from.ip[14] = static_cast<std::uint8_t>(n);
        hello.name = name(n % 200);
        hello.name.octets[2] = 1;
        send(from, 0, &hello, sizeof hello);
    }
    EXPECT_LE(at(0).steps() - steps, 20U * kFrames);
    EXPECT_GE(at(0).counts().refused, kFrames - Peers::kStrangersMax);
    run(kMillisecond);
    EXPECT_LE(log.size(), 2 * Peers::kStrangersMax);
    EXPECT_EQ(at(0).count(), 1U);
    run(20 * kSecond);
    hello.name = name(2);
    log.clear();
    send(address(2), 0, &hello, sizeof hello);
    run(kMillisecond);
    EXPECT_GT(sent_to(address(2)), 0U) << "the places of those that never answered are free";
}

TEST_F(UdpPeers, name_the_configured_addresses_without_an_answer) {
    Peers& own = add(0);
    add(1);
    EXPECT_EQ(own.unanswered(), "");
    own.add(address(1), now);
    own.add(address(0), now);  // its own
    own.add(address(7), now);
    run(kSecond);
    EXPECT_EQ(own.unanswered(), "10.0.0.8:4001");
    for (unsigned n = 10; n < 14; ++n)
        own.add(address(n), now);
    run(kSecond);
    EXPECT_EQ(own.unanswered(), "10.0.0.8:4001, 10.0.0.11:4001, 10.0.0.12:4001 and 2 more");
}

}  // namespace
}  // namespace ulc::udp
