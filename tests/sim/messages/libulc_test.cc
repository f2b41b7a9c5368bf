// SPDX-License-Identifier: BSD-3-Clause
// The real libulc on real engines on the simulated net: what a user calls, without a process. Only
// calls that start or test are made; time is virtual.
#include <coll.h>
#include <gtest/gtest.h>
#include <ulc.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "client/error_text.h"
#include "tests/sim/cluster/libulc_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

// Every rank sends a long message to every other while it receives theirs: sends wait for releases
// behind sends.
// M-1
TEST(Libulc, all_to_all_of_long_messages_under_loss) {
    constexpr std::uint16_t kRanks = 4;
    constexpr std::size_t kOctets = 700'000;  // more than both arenas hold
    LibulcCluster cluster(lossy(3), kRanks);
    ASSERT_TRUE(cluster.formed());
    std::vector<ulc_request> sends(kRanks * (kRanks - 1));
    std::vector<ulc_request> receives(kRanks * (kRanks - 1));
    std::vector<std::vector<std::byte>> sent(kRanks);
    std::vector<std::vector<std::byte>> received(receives.size(), std::vector<std::byte>(kOctets));
    std::size_t n = 0;
    for (std::uint16_t rank = 0; rank < kRanks; ++rank)
        sent[rank] = Oracle::payload(rank, kOctets);
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        for (std::uint16_t to = 0; to < kRanks; ++to) {
            if (to == rank) continue;
            ASSERT_EQ(ulc_receive(cluster.ep(rank), to, 5, ~0ULL >> 2, received[n].data(), kOctets,
                                  &receives[n]),
                      ULC_OK);
            ASSERT_EQ(ulc_send(cluster.ep(rank), to, 5, sent[rank].data(), kOctets, &sends[n]),
                      ULC_OK);
            ++n;
        }
    }
    ASSERT_TRUE(cluster.run_until_done(receives, 0, kRanks - 1));
    ASSERT_TRUE(cluster.run_until_done(sends, 0, kRanks - 1));
    n = 0;
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        for (std::uint16_t from = 0; from < kRanks; ++from) {
            if (from == rank) continue;
            EXPECT_EQ(received[n], sent[from]) << from << " to " << rank;
            ++n;
        }
    }
}

// G-7
TEST(Libulc, groups_and_collectives_under_loss) {
    constexpr std::uint16_t kRanks = 6;
    LibulcCluster cluster(lossy(6), kRanks);
    ASSERT_TRUE(cluster.formed());
    const std::uint16_t members[] = {4, 1, 3, 0};
    std::vector<ulc_request> requests(4);
    for (std::size_t n = 0; n < 4; ++n)
        ASSERT_EQ(ulc_group_create(cluster.ep(members[n]), members, 4, &requests[n]), ULC_OK);
    ulc_group group = 0;
    ASSERT_TRUE(cluster.run([&] {
        for (std::size_t n = 0; n < 4; ++n) {
            ulc_status status;
            if (ulc_test(cluster.ep(members[n]), &requests[n], &status) == ULC_ERR_AGAIN)
                return false;
            EXPECT_EQ(status.error, ULC_OK);
            group = status.group;
        }
        return true;
    }));
    for (int round = 0; round < 10; ++round) {
        std::vector<std::vector<std::byte>> buffers(4, std::vector<std::byte>(50'000));
        buffers[2] = Oracle::payload(static_cast<std::uint64_t>(round) + 1, 50'000);
        std::vector<std::uint32_t> in(kRanks);
        std::vector<std::vector<std::uint32_t>> out(kRanks, std::vector<std::uint32_t>(kRanks));
        std::vector<ulc_coll*> operations(4 + kRanks);
        std::vector<ulc_endpoint*> of(4 + kRanks);
        for (std::uint16_t n = 0; n < 4; ++n) {
            of[n] = cluster.ep(members[n]);
            ASSERT_EQ(ulc_broadcast_start(of[n], group, 2, buffers[n].data(), 50'000, nullptr,
                                          &operations[n]),
                      ULC_OK);
        }
        for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
            of[4U + rank] = cluster.ep(rank);
            in[rank] = rank + 100U * static_cast<unsigned>(round);
            ASSERT_EQ(ulc_allgather_start(of[4U + rank], ulc_world(of[4U + rank]), &in[rank],
                                          out[rank].data(), sizeof in[rank], nullptr,
                                          &operations[4U + rank]),
                      ULC_OK);
        }
        const auto test_of = [&](std::uint16_t rank) {
            for (std::size_t n = 0; n < operations.size(); ++n) {
                if (operations[n] == nullptr || of[n] != cluster.ep(rank)) continue;
                const int state = ulc_coll_test(of[n], operations[n]);
                if (state == ULC_ERR_AGAIN) continue;
                EXPECT_EQ(state, ULC_OK);
                operations[n] = nullptr;
            }
        };
        ASSERT_TRUE(
            cluster.run([&] { return std::ranges::count(operations, nullptr) == 4 + kRanks; },
                        20 * kSecond, test_of))
            << "round " << round;
        for (std::size_t n = 0; n < 4; ++n)
            EXPECT_EQ(buffers[n], buffers[2]);
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            EXPECT_EQ(out[rank], in);
    }
}

/// Memory in up to 8 pieces of random lengths, `bytes` altogether, and the list of them.
struct Scattered {
    Scattered(Prng& random, std::size_t bytes) : memory(bytes + 64) {
        const std::size_t count = 1 + random.below(8);
        std::size_t at = 0;
        for (std::size_t n = 0; n < count; ++n) {
            const std::size_t left = bytes - at;
            const std::size_t length = n + 1 == count ? left : random.below(left + 1);
            list.push_back({memory.data() + at + 8 * n, length});  // with gaps between them
            at += length;
        }
    }
    void fill(const std::vector<std::byte>& payload) {
        std::size_t at = 0;
        for (const ulc_piece& piece : list) {
            std::memcpy(piece.base, payload.data() + at, piece.length);
            at += piece.length;
        }
    }
    [[nodiscard]] std::vector<std::byte> joined() const {
        std::vector<std::byte> payload;
        for (const ulc_piece& piece : list) {
            const auto* base = static_cast<const std::byte*>(piece.base);
            payload.insert(payload.end(), base, base + piece.length);
        }
        return payload;
    }
    [[nodiscard]] unsigned count() const { return static_cast<unsigned>(list.size()); }

    std::vector<std::byte> memory;
    std::vector<ulc_piece> list;
};

// Payloads in pieces through daemons and engines in the application, posted early and late, unicast
// and multicast.
TEST(Libulc, messages_in_pieces_under_loss) {
    constexpr std::uint16_t kRanks = 3;
    constexpr std::size_t kMessages = 40;
    LibulcCluster cluster(lossy(3), kRanks);
    ASSERT_TRUE(cluster.formed());
    Prng random(7);
    for (std::size_t n = 0; n < kMessages; ++n) {
        const auto from = static_cast<std::uint16_t>(n % kRanks);
        const std::size_t bytes = random.below(n % 4 == 0 ? 300'000 : 20'000);
        const std::vector<std::byte> payload = Oracle::payload(n, bytes);
        Scattered sent(random, bytes);
        sent.fill(payload);
        std::vector<Scattered> received;
        std::vector<ulc_request> requests(kRanks);
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            received.emplace_back(random, bytes);
        const auto receive = [&](std::uint16_t rank) {
            ASSERT_EQ(
                ulc_receivev(cluster.ep(rank), from, n, ~0ULL >> 2, received[rank].list.data(),
                             received[rank].count(), &requests[rank]),
                ULC_OK);
        };
        const auto late = static_cast<std::uint16_t>((from + 1 + random.below(2)) % kRanks);
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            if (rank != from && rank != late) receive(rank);
        const unsigned flags = random.chance(0.5) ? ULC_SEND_DELIVERED : 0;
        ASSERT_EQ(ulc_multicastv(cluster.ep(from), ulc_world(cluster.ep(from)), ULC_SUBSET_ALL, n,
                                 sent.list.data(), sent.count(), flags, &requests[from]),
                  ULC_OK);
        ASSERT_TRUE(cluster.run(
            [&] { return ulc_probe(cluster.ep(late), from, n, ~0ULL >> 2, nullptr) == ULC_OK; }));
        receive(late);
        ASSERT_TRUE(cluster.run_until_done(requests, 0, 1)) << "message " << n;
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            if (rank != from) {
                EXPECT_EQ(received[rank].joined(), payload) << "message " << n << " at " << rank;
            }
    }
}

// With a window of one packet and a receiver that does not poll, nothing says early that it was
// delivered.
TEST(Libulc, a_delivered_send_completes_after_the_acknowledgement_of_the_receiver) {
    for (const std::size_t bytes : {8U, 3'000U, 200'000U}) {
        ClusterConfig config;
        config.net.ports = 2;
        config.embedded = Embedded::kHalf;
        LibulcCluster cluster(config, 2);
        ASSERT_TRUE(cluster.formed());
        for (std::uint16_t from = 0; from < 2; ++from) {
            const std::vector<std::byte> payload = Oracle::payload(from, bytes);
            const ulc_piece piece{const_cast<std::byte*>(payload.data()), bytes};
            ulc_request request;
            ASSERT_EQ(
                ulc_sendv(cluster.ep(from), from ^ 1U, 1, &piece, 1, ULC_SEND_DELIVERED, &request),
                ULC_OK);
            EXPECT_EQ(ulc_test(cluster.ep(from), &request, nullptr), ULC_ERR_AGAIN);
            ulc_status status;
            ASSERT_TRUE(cluster.run([&] {
                return ulc_test(cluster.ep(from), &request, &status) == ULC_OK;
            })) << bytes;
            EXPECT_EQ(status.error, ULC_OK);
            // It is at the receiver: without a further frame its next polls find it.
            ASSERT_TRUE(cluster.run([&] {
                return ulc_probe(cluster.ep(from ^ 1U), from, 1, ~0ULL >> 2, nullptr) == ULC_OK;
            }));
        }
    }
}

TEST(Libulc, a_delivered_send_to_a_rank_that_dies_says_so) {
    for (const std::size_t bytes : {8U, 200'000U}) {
        for (const Embedded embedded : {Embedded::kNone, Embedded::kAll}) {
            ClusterConfig config;
            config.net.ports = 2;
            config.embedded = embedded;
            LibCluster lib(config, 2);
            ASSERT_TRUE(lib.form());
            const std::vector<std::byte> payload = Oracle::payload(1, bytes);
            const ulc_piece piece{const_cast<std::byte*>(payload.data()), bytes};
            ulc_request request;
            lib.kill(1);
            ASSERT_EQ(ulc_sendv(lib.endpoint(0), 1, 1, &piece, 1, ULC_SEND_DELIVERED, &request),
                      ULC_OK);
            ulc_status status;
            ASSERT_TRUE(lib.run(
                20 * kSecond,
                [&] { return ulc_test(lib.endpoint(0), &request, &status) == ULC_OK; },
                [](std::uint16_t, Nanos) { return kNever; }));
            EXPECT_EQ(status.error, ULC_ERR_PEER_DIED) << bytes;
        }
    }
}

// Three groups over one set of ranks, made in another order at each member; with one key used
// twice.
// G-8, H-5
TEST(Libulc, groups_with_keys_are_made_in_any_order) {
    constexpr std::uint16_t kRanks = 3;
    LibulcCluster cluster(lossy(3), kRanks);
    ASSERT_TRUE(cluster.formed());
    const std::uint16_t members[] = {2, 0, 1};
    const std::uint64_t keys[kRanks][4] = {{5, 6, 7, 5}, {7, 5, 6, 5}, {6, 5, 5, 7}};
    std::vector<ulc_request> requests(4 * kRanks);
    std::vector<ulc_request> plain(kRanks);
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        for (std::size_t n = 0; n < 4; ++n) {
            if (n == rank) {
                ASSERT_EQ(ulc_group_create(cluster.ep(rank), members, kRanks, &plain[rank]),
                          ULC_OK);
            }
            ASSERT_EQ(ulc_group_create_keyed(cluster.ep(rank), members, kRanks, keys[rank][n],
                                             &requests[4U * rank + n]),
                      ULC_OK);
        }
    }
    ASSERT_TRUE(cluster.run_until_done(requests, 0, 4));
    ASSERT_TRUE(cluster.run_until_done(plain, 0, 1));
    std::vector<std::vector<ulc_group>> of_key(kRanks);  // 5, 5 again, 6, 7, no key
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        for (std::uint64_t key = 5; key <= 7; ++key)
            for (std::size_t n = 0; n < 4; ++n) {
                ulc_status status;
                ASSERT_EQ(ulc_test(cluster.ep(rank), &requests[4U * rank + n], &status), ULC_OK);
                ASSERT_EQ(status.error, ULC_OK);
                if (keys[rank][n] == key) of_key[rank].push_back(status.group);
            }
        ulc_status status;
        ASSERT_EQ(ulc_test(cluster.ep(rank), &plain[rank], &status), ULC_OK);
        of_key[rank].push_back(status.group);
        EXPECT_EQ(of_key[rank], of_key[0]);
    }
    for (std::size_t one = 0; one < of_key[0].size(); ++one)
        for (std::size_t other = 0; other < one; ++other)
            EXPECT_NE(of_key[0][one], of_key[0][other]);
}

TEST(Libulc, leaves_in_order) {
    LibulcCluster cluster(lossy(2), 2);
    ASSERT_TRUE(cluster.formed());
    ASSERT_EQ(ulc_send(cluster.ep(0), 1, 1, "last words", 10, nullptr), ULC_OK);
    ASSERT_EQ(ulc_leave(cluster.ep(0)), ULC_OK);
    ASSERT_TRUE(cluster.run([&] {
        return ulc_job_state(cluster.ep(0)) == ULC_ERR_CLOSED &&
               ulc_peer_state(cluster.ep(1), 0) == ULC_ERR_PEER_LEFT;
    }));
    char text[16] = {};
    ulc_request request;
    ASSERT_EQ(ulc_receive(cluster.ep(1), 0, 1, ~0ULL >> 2, text, sizeof text, &request), ULC_OK);
    ulc_status status;
    ASSERT_EQ(ulc_test(cluster.ep(1), &request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_STREQ(text, "last words");
}

/// Stops node 1 for five seconds. leaves: the other rank leaves the job meanwhile. Returns the
/// sentence that a receive at the node ends with.
std::string sentence_after_a_stop(Embedded embedded, bool leaves) {
    ClusterConfig config;
    config.net.ports = 2;
    config.embedded = embedded;
    LibCluster cluster(config);
    if (!cluster.form()) return "the job did not form";
    unsigned char octet = 0;
    ulc_request receive;
    if (ulc_receive(cluster.endpoint(1), 0, 5, ~0ULL, &octet, 1, &receive) != ULC_OK)
        return "the receive did not begin";
    client::set_last_error("none");
    cluster.cluster().pause_node(1, cluster.cluster().now() + 5 * kSecond);
    ulc_status status{};
    const bool ended = cluster.run(
        10 * kSecond,
        [&] { return ulc_test(cluster.endpoint(1), &receive, &status) != ULC_ERR_AGAIN; },
        [&](std::uint16_t rank, Nanos) {
            if (leaves && rank == 0 && ulc_peer_state(cluster.endpoint(0), 1) != ULC_OK)
                static_cast<void>(ulc_leave(cluster.endpoint(0)));
            return kNever;
        });
    if (!ended) return "the receive does not end";
    EXPECT_EQ(status.error, leaves ? ULC_ERR_PEER_LEFT : ULC_ERR_PEER_DIED);
    return ulc_last_error_text();
}

// The others hold the node for dead meanwhile, and say so when it is back.
TEST(Libulc, a_rank_whose_engine_was_stopped_learns_why_its_job_ended) {
    for (const bool leaves : {false, true}) {
        EXPECT_EQ(sentence_after_a_stop(Embedded::kAll, leaves),
                  "this process was stopped for 5.0 s, which may be why others ended the job");
        EXPECT_EQ(
            sentence_after_a_stop(Embedded::kNone, leaves),
            "the engine of this node was stopped for 5.0 s, which may be why others ended the job");
    }
}

}  // namespace
}  // namespace ulc::sim
