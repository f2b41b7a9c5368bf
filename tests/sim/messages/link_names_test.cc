// SPDX-License-Identifier: BSD-3-Clause
// Messages between three jobs: members find each other by name (docs/protocol/LINKS.md §13.4), at
// 5 % loss, and while a node without the secret asks for names and forges answers.
#include <gtest/gtest.h>
#include <ulc.h>
#include <ulc_names.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/cluster/libulc_cluster.h"
#include "wire/build.h"
#include "wire/link.h"
#include "wire/parse.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kJobs = 3;
constexpr std::uint16_t kMembers = 2;
constexpr std::uint16_t kAll = kJobs * kMembers;
constexpr unsigned kMessages = 6;
constexpr unsigned char kSecret[ULC_NAME_SECRET_BYTES] = {5, 4, 3};

ulc_link_address name_of(std::size_t member, const unsigned char* secret = kSecret) {
    ulc_link_address name;
    const std::string text =
        std::to_string(member / kMembers) + "/" + std::to_string(member % kMembers);
    EXPECT_EQ(ulc_link_name(text.c_str(), secret, &name), ULC_OK);
    return name;
}

/// Endpoint n is a rank of job n / kMembers; endpoint kAll + n is that rank's for links.
class Jobs {
public:
    explicit Jobs(std::uint64_t seed, double loss = 0.05) : lib(config_of(seed, loss), 2 * kAll) {
        for (std::uint16_t n = 0; n < kAll; ++n) {
            const std::string job = "job" + std::to_string(n / kMembers);
            EXPECT_EQ(ulc_join(lib.endpoint(n), job.c_str(), n % kMembers, kMembers, nullptr),
                      ULC_OK);
            const ulc_link_address name = name_of(n);
            EXPECT_EQ(ulc_open_links_as(guest(n), kAll, &name), ULC_OK);
        }
        EXPECT_TRUE(run([this] {
            for (std::uint16_t n = 0; n < 2 * kAll; ++n)
                if (ulc_job_state(lib.endpoint(n)) != ULC_OK) return false;
            return true;
        }));
    }
    ulc_endpoint* guest(std::size_t n) {
        return lib.endpoint(static_cast<std::uint16_t>(kAll + n));
    }
    bool run(const std::function<bool()>& done, Nanos limit = 20 * kSecond) {
        return lib.run(limit, done, [](std::uint16_t, Nanos) { return kNever; });
    }

    LibCluster lib;

private:
    static ClusterConfig config_of(std::uint64_t seed, double loss) {
        ClusterConfig config;
        config.embedded = Embedded::kHalf;
        config.net.ports = 4;
        config.seed = seed;
        config.net.faults = {.loss = loss, .duplicate = loss / 5, .reorder = loss / 5};
        return config;
    }
};

/// Every member sends to all members of the other two jobs, and to its own job meanwhile.
void exchange(Jobs& w) {
    std::vector<std::unique_ptr<ulc_request>> calls;
    std::map<std::size_t, std::vector<std::uint16_t>> peers;
    std::vector<std::pair<std::size_t, ulc_request*>> pending;
    const auto request = [&](std::size_t n) {
        calls.push_back(std::make_unique<ulc_request>());
        pending.emplace_back(n, calls.back().get());
        return calls.back().get();
    };
    for (std::size_t from = 0; from < kAll; ++from) {
        for (std::size_t to = 0; to < kAll; ++to) {
            if (from / kMembers == to / kMembers) continue;
            const ulc_link_address name = name_of(to);
            ASSERT_EQ(ulc_link(w.guest(from), &name, 0, request(kAll + from)), ULC_OK);
        }
    }
    const auto all_done = [&] {
        std::erase_if(pending, [&](const auto& one) {
            ulc_status status;
            ulc_endpoint* ep = w.lib.endpoint(static_cast<std::uint16_t>(one.first));
            if (ulc_test(ep, one.second, &status) == ULC_ERR_AGAIN) return false;
            EXPECT_EQ(status.error, ULC_OK);
            peers[one.first].push_back(status.source);
            return true;
        });
        return pending.empty();
    };
    ASSERT_TRUE(w.run(all_done));
    for (std::size_t from = 0; from < kAll; ++from) {
        auto& linked = peers[kAll + from];
        ASSERT_EQ(linked.size(), std::size_t{kAll - kMembers});
        std::ranges::sort(linked);
        EXPECT_EQ(std::ranges::adjacent_find(linked), linked.end()) << "one link a pair";
    }
    const std::string text(3000, 'm');
    std::vector<unsigned> came(2 * kAll);
    const auto receive = [&] {
        for (std::uint16_t n = 0; n < 2 * kAll; ++n) {
            ulc_message* message = nullptr;
            ulc_status status;
            while (ulc_claim(w.lib.endpoint(n), ULC_RANK_ANY, 0, 0, &message, &status) == ULC_OK) {
                EXPECT_EQ(status.length, text.size());
                EXPECT_EQ(ulc_discard(w.lib.endpoint(n), message), ULC_OK);
                ++came[n];
            }
        }
    };
    for (unsigned round = 0; round < kMessages; ++round) {
        for (std::uint16_t n = 0; n < kAll; ++n) {
            for (const std::uint16_t peer : peers[kAll + n])
                ASSERT_EQ(
                    ulc_send(w.guest(n), peer, round, text.data(), text.size(), request(kAll + n)),
                    ULC_OK);
            const auto next = static_cast<std::uint16_t>((n + 1) % kMembers);
            ASSERT_EQ(
                ulc_send(w.lib.endpoint(n), next, round, text.data(), text.size(), request(n)),
                ULC_OK);
        }
        ASSERT_TRUE(w.run([&] {
            receive();
            return all_done();
        }));
    }
    ASSERT_TRUE(w.run([&] {
        receive();
        for (std::size_t n = 0; n < 2 * kAll; ++n)
            if (came[n] < kMessages * (n < kAll ? 1U : kAll - kMembers)) return false;
        return true;
    }));
}

// L-33, L-36, L-37
TEST(LinkNames, three_jobs_message_each_other_under_loss) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        Jobs w(seed);
        exchange(w);
        EXPECT_EQ(w.lib.shut_down(), 0U);
    }
}

/// Sees all frames; has no secret. Asks all nodes for names it saw, and answers as if it had them.
class Forger {
public:
    explicit Forger(SimCluster& cluster) : cluster_(cluster), next_(cluster.now()) {}

    /// Sends a burst, at most one in 100 µs.
    void act() {
        if (cluster_.now() < next_) return;
        next_ = cluster_.now() + 100 * kMicrosecond;
        for (int n = 0; n < 40; ++n)
            strike();
    }
    std::uint64_t struck = 0;

private:
    void strike() {
        const auto node = static_cast<std::uint16_t>(prng_.below(4));
        const std::size_t member = prng_.below(kAll);
        const bool asks = prng_.chance(0.5);
        wire::LinkName name;
        const ulc_link_address bytes = name_of(member);
        std::memcpy(static_cast<void*>(&name), bytes.bytes, sizeof name);
        wire::LinkBody body{};
        body.kind = asks ? wire::LinkKind::kWhere : wire::LinkKind::kHere;
        body.version = wire::kProtocolVersion;
        body.incarnation = static_cast<std::uint32_t>(1 + prng_.below(5));
        body.ours = asks ? prng_.next() | 1U : 0U;
        const bool knows = prng_.chance(0.9);  // the lookup, seen on the wire
        body.theirs = asks && knows ? wire::lookup_of(wire::key_of(name)) : prng_.next() | 1U;
        body.from = static_cast<std::uint32_t>(1 + prng_.below(50));
        body.to = asks ? 0U : static_cast<std::uint32_t>(1 + prng_.below(50));
        wire::LinkKey guess;
        guess.octets[0] = 1;
        wire::FrameHead head;
        head.destination = asks ? kBroadcastMac : SimNet::mac_of(node);
        head.source = prng_.chance(0.5) ? Mac{{2, 9, 9, 9, 9, 9}}
                                        : SimNet::mac_of(static_cast<std::uint16_t>(node ^ 1U));
        head.type = wire::FrameType::kLink;
        std::byte frame[256]{};
        const std::size_t octets =
            wire::put_link(frame + wire::kHeadOctets, body, {}, guess, head.source);
        const std::size_t all = wire::build_control(frame, head, octets);
        cluster_.net().inject(node, frame, static_cast<std::uint32_t>(all));
        ++struck;
    }
    SimCluster& cluster_;
    Prng prng_{99};
    Nanos next_;
};

// L-31, L-38
TEST(LinkNames, a_node_without_the_secret_learns_nothing_and_hinders_nobody) {
    Jobs w(7, 0.01);
    Forger forger(w.lib.cluster());
    std::uint64_t dropped = 0;
    ASSERT_TRUE(w.run([&] {
        forger.act();
        return forger.struck >= 2000;
    }));
    for (std::uint16_t node = 0; node < 4; ++node)
        dropped += w.lib.cluster().engine(node).counters().get(Counter::drop_link_key);
    EXPECT_GT(dropped, 100U) << "one of four nodes has the name that it asks for";
    exchange(w);
    EXPECT_EQ(w.lib.shut_down(), 0U);
}

TEST(LinkNames, of_one_engine_are_of_one_endpoint) {
    ClusterConfig config;
    config.net.ports = 2;
    LibCluster lib(config, 4);  // 0 and 2 on node 0
    const auto run = [&](const std::function<bool()>& done) {
        return lib.run(kSecond, done, [](std::uint16_t, Nanos) { return kNever; });
    };
    const ulc_link_address name = name_of(0);
    const auto open = [&](std::uint16_t n, int wanted) {
        ASSERT_EQ(ulc_open_links_as(lib.endpoint(n), 4, &name), ULC_OK);
        ASSERT_TRUE(run([&] { return ulc_job_state(lib.endpoint(n)) != ULC_ERR_AGAIN; }));
        EXPECT_EQ(ulc_job_state(lib.endpoint(n)), wanted);
    };
    open(0, ULC_OK);
    open(2, ULC_ERR_RANK_TAKEN);
    open(1, ULC_OK);  // another engine's
    lib.kill(0);
    run([] { return false; });
    open(2, ULC_OK);
    unsigned char other[ULC_NAME_SECRET_BYTES] = {1};
    const ulc_link_address foreign = name_of(0, other);
    ulc_request request;
    ASSERT_EQ(ulc_link(lib.endpoint(1), &foreign, 100 * kMillisecond, &request), ULC_OK);
    ulc_status status{};
    ASSERT_TRUE(run([&] { return ulc_test(lib.endpoint(1), &request, &status) == ULC_OK; }));
    EXPECT_EQ(status.error, ULC_ERR_TIMEOUT);
    EXPECT_EQ(lib.shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
