// SPDX-License-Identifier: BSD-3-Clause
// Announced messages between real endpoints on simulated engines: under loss, with bounded memory,
// with deaths in their midst, and when a rank leaves.
#include <gtest/gtest.h>
#include <ulc.h>

#include <utility>
#include <vector>

#include "base/prng.h"
#include "tests/sim/cluster/libulc_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

// Long messages in random order of sends and receives, some matched alone, all with a rendezvous:
// through daemons and engines in the application, under loss, with a small bound on what is
// unexpected.
TEST(Rendezvous, announced_messages_under_loss) {
    constexpr std::uint16_t kRanks = 3;
    constexpr std::size_t kMessages = 60;
    LibulcCluster cluster(lossy(3), kRanks);
    ASSERT_TRUE(cluster.formed());
    for (std::uint16_t rank = 0; rank < kRanks; ++rank)
        ASSERT_EQ(ulc_set_rendezvous(cluster.ep(rank), 30'000, 100'000), ULC_OK);
    Prng random(11);
    std::vector<std::vector<std::byte>> sent(kMessages);
    std::vector<std::vector<std::byte>> received(kMessages);
    std::vector<ulc_request> sends(kMessages);
    std::vector<ulc_request> receives(kMessages);
    std::vector<std::size_t> order(kMessages);
    const auto from = [](std::size_t n) { return static_cast<std::uint16_t>(n % kRanks); };
    const auto to = [](std::size_t n) { return static_cast<std::uint16_t>(n / kRanks % kRanks); };
    for (std::size_t n = 0; n < kMessages; ++n) {
        order[n] = n;
        sent[n] = Oracle::payload(n, random.below(n % 3 == 0 ? 400'000 : 50'000));
        received[n].resize(sent[n].size());
        const ulc_piece piece{sent[n].data(), sent[n].size()};
        ASSERT_EQ(ulc_sendv(cluster.ep(from(n)), to(n), n, &piece, 1,
                            random.chance(0.3) ? ULC_SEND_MATCHED : 0, &sends[n]),
                  ULC_OK);
    }
    for (std::size_t n = kMessages; n > 1; --n)
        std::swap(order[n - 1], order[random.below(n)]);
    std::size_t posted = 0;
    for (const std::size_t n : order) {
        ASSERT_EQ(ulc_receive(cluster.ep(to(n)), from(n), n, ~0ULL >> 2, received[n].data(),
                              received[n].size(), &receives[n]),
                  ULC_OK);
        if (++posted % 5 == 0) {
            ASSERT_TRUE(cluster.run([&] {
                return ulc_test(cluster.ep(to(n)), &receives[n], nullptr) == ULC_OK;
            })) << "message "
                << n << " waits, though its receive is known";
        }
    }
    ASSERT_TRUE(cluster.run([&] {
        for (std::size_t n = 0; n < kMessages; ++n)
            if (ulc_test(cluster.ep(to(n)), &receives[n], nullptr) == ULC_ERR_AGAIN ||
                ulc_test(cluster.ep(from(n)), &sends[n], nullptr) == ULC_ERR_AGAIN)
                return false;
        return true;
    }));
    for (std::size_t n = 0; n < kMessages; ++n)
        EXPECT_EQ(received[n], sent[n]) << n;
    for (std::uint16_t rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(cluster.ep(rank)->messages().control_dropped(), 0U);
}

// Messages without a receive take bounded memory, and hold up nothing behind them.
TEST(Rendezvous, unexpected_messages_of_one_sender_take_bounded_memory) {
    for (const Embedded embedded : {Embedded::kNone, Embedded::kAll}) {
        constexpr std::size_t kBytes = 20'000;
        constexpr std::size_t kMessages = 2'000;  // 40 MB
        constexpr std::uint64_t kHeld = 1 << 20;
        ClusterConfig config;
        config.net.ports = 2;
        config.embedded = embedded;
        LibulcCluster cluster(config, 2);
        ASSERT_TRUE(cluster.formed());
        ASSERT_EQ(ulc_set_rendezvous(cluster.ep(1), UINT64_MAX, kHeld), ULC_OK);
        const std::vector<std::byte> payload = Oracle::payload(3, kBytes);
        std::vector<ulc_request> sends(kMessages);
        std::size_t started = 0;
        const auto start = [&](std::uint16_t rank) {
            for (int n = 0; rank == 0 && n < 4 && started < kMessages; ++n) {
                EXPECT_EQ(ulc_send(cluster.ep(0), 1, 1, payload.data(), kBytes, &sends[started]),
                          ULC_OK);
                ++started;
            }
        };
        ASSERT_TRUE(cluster.run([&] { return started == kMessages; }, 20 * kSecond, start));
        ulc_request awaited;
        ulc_request request;
        ASSERT_EQ(ulc_send(cluster.ep(0), 1, 2, "awaited", 8, &awaited), ULC_OK);
        char text[8] = {};
        ASSERT_EQ(ulc_receive(cluster.ep(1), 0, 2, ~0ULL >> 2, text, 8, &request), ULC_OK);
        ASSERT_TRUE(
            cluster.run([&] { return ulc_test(cluster.ep(1), &request, nullptr) == ULC_OK; }));
        EXPECT_STREQ(text, "awaited");
        EXPECT_LT(cluster.ep(1)->messages().inbox().arrivals().shares().used(), 8 * kHeld);
        std::vector<std::byte> into(kBytes);
        for (std::size_t n = 0; n < kMessages; ++n) {
            ASSERT_EQ(ulc_receive(cluster.ep(1), 0, 1, ~0ULL >> 2, into.data(), kBytes, &request),
                      ULC_OK);
            ASSERT_TRUE(cluster.run([&] {
                return ulc_test(cluster.ep(1), &request, nullptr) == ULC_OK;
            })) << n;
            ASSERT_EQ(into, payload) << n;
        }
        ASSERT_TRUE(cluster.run_until_done(sends, 0, kMessages));
    }
}

TEST(Rendezvous, death_in_the_midst_of_a_rendezvous_ends_both_requests) {
    for (const bool sender_dies : {true, false}) {
        for (const bool asked : {true, false}) {
            ClusterConfig config;
            config.net.ports = 2;
            config.embedded = Embedded::kHalf;
            LibCluster lib(config, 2);
            ASSERT_TRUE(lib.form());
            ASSERT_EQ(ulc_set_rendezvous(lib.endpoint(0), 10'000, UINT64_MAX), ULC_OK);
            std::vector<std::byte> payload(5'000'000);
            std::vector<std::byte> into(payload.size());
            ulc_request send;
            ulc_request receive;
            const auto idle = [](std::uint16_t, Nanos) { return kNever; };
            ASSERT_EQ(ulc_send(lib.endpoint(0), 1, 1, payload.data(), payload.size(), &send),
                      ULC_OK);
            ASSERT_TRUE(lib.run(
                kSecond,
                [&] { return ulc_probe(lib.endpoint(1), 0, 1, ~0ULL >> 2, nullptr) == ULC_OK; },
                idle));
            if (asked) {
                ASSERT_EQ(ulc_receive(lib.endpoint(1), 0, 1, ~0ULL >> 2, into.data(), into.size(),
                                      &receive),
                          ULC_OK);
                static_cast<void>(lib.run(
                    200 * kMicrosecond, [] { return false; }, idle));
                ASSERT_EQ(ulc_test(lib.endpoint(1), &receive, nullptr), ULC_ERR_AGAIN);
            }
            lib.kill(sender_dies ? 0 : 1);
            if (sender_dies && !asked) {
                ASSERT_TRUE(lib.run(
                    20 * kSecond,
                    [&] {
                        return ulc_probe(lib.endpoint(1), 0, 1, ~0ULL >> 2, nullptr) ==
                               ULC_ERR_PEER_DIED;
                    },
                    idle));
                continue;
            }
            ulc_endpoint* left = lib.endpoint(sender_dies ? 1 : 0);
            ulc_request& request = sender_dies ? receive : send;
            ulc_status status;
            ASSERT_TRUE(lib.run(
                20 * kSecond, [&] { return ulc_test(left, &request, &status) == ULC_OK; }, idle))
                << sender_dies << asked;
            EXPECT_EQ(status.error, ULC_ERR_PEER_DIED) << sender_dies << asked;
        }
    }
}

TEST(Rendezvous, a_rank_that_leaves_sends_the_rest_of_what_it_announced) {
    LibulcCluster cluster(lossy(2), 2);
    ASSERT_TRUE(cluster.formed());
    ASSERT_EQ(ulc_set_rendezvous(cluster.ep(0), 10'000, UINT64_MAX), ULC_OK);
    const std::vector<std::byte> payload = Oracle::payload(1, 300'000);
    ASSERT_EQ(ulc_send(cluster.ep(0), 1, 1, payload.data(), payload.size(), nullptr), ULC_OK);
    ASSERT_TRUE(
        cluster.run([&] { return ulc_probe(cluster.ep(1), 0, 1, ~0ULL >> 2, nullptr) == ULC_OK; }));
    ASSERT_EQ(ulc_leave(cluster.ep(0)), ULC_OK);
    ASSERT_TRUE(cluster.run([&] { return ulc_peer_state(cluster.ep(1), 0) == ULC_ERR_PEER_LEFT; }));
    std::vector<std::byte> into(payload.size());
    ulc_request request;
    ulc_status status;
    ASSERT_EQ(ulc_receive(cluster.ep(1), 0, 1, ~0ULL >> 2, into.data(), into.size(), &request),
              ULC_OK);
    ASSERT_EQ(ulc_test(cluster.ep(1), &request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_EQ(into, payload);
}

}  // namespace
}  // namespace ulc::sim
