// SPDX-License-Identifier: BSD-3-Clause
// Messages without a receive, on simulated engines: a sender that sends without end is stopped
// at its share of the receiver's memory, and all others go on (libulc/client/arrivals/shares.h).
#include <gtest/gtest.h>
#include <ulc.h>

#include <deque>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kAllBits = ~std::uint64_t{0} >> 2;
constexpr std::uint64_t kLimit = 4U << 20;
constexpr std::uint64_t kJunk = 7;
constexpr std::uint64_t kAwaited = 8;
constexpr std::uint16_t kGreedy = 1;

/// Ranks 1 and, if many, others send to rank 0 what it has no receive for; the last rank plays a
/// game of answers with rank 0.
struct Flood {
    explicit Flood(Embedded embedded, std::size_t bytes)
        : lib(config_of(embedded), 3,
              [](std::uint16_t) { return client::Limits{.unexpected_octets = kLimit}; }),
          junk(bytes) {}

    static ClusterConfig config_of(Embedded embedded) {
        ClusterConfig config;
        config.net.ports = 3;
        config.net.faults.loss = 0.01;
        config.embedded = embedded;
        return config;
    }
    /// One more message of the greedy rank, if its libulc takes it.
    void flood() {
        for (int n = 0; n < 32; ++n) {
            if (!sends.empty() &&
                ulc_test(lib.endpoint(kGreedy), &sends.front(), nullptr) == ULC_OK) {
                sends.pop_front();
                ++sent;
            }
            if (sends.size() >= 512) return;
            ASSERT_EQ(ulc_send(lib.endpoint(kGreedy), 0, kJunk, junk.data(), junk.size(),
                               &sends.emplace_back()),
                      ULC_OK);
        }
    }
    /// Rank 2 sends, rank 0 receives, that many times, while the flood goes on.
    void play(unsigned rounds) {
        for (unsigned n = 0; n < rounds; ++n) {
            const std::vector<std::byte> payload = Oracle::payload(n, 3000);
            std::vector<std::byte> into(payload.size());
            ulc_request send;
            ulc_request receive;
            ASSERT_EQ(ulc_receive(lib.endpoint(0), 2, kAwaited, kAllBits, into.data(), into.size(),
                                  &receive),
                      ULC_OK);
            ASSERT_EQ(ulc_send(lib.endpoint(2), 0, kAwaited, payload.data(), payload.size(), &send),
                      ULC_OK);
            ASSERT_TRUE(lib.run(
                5 * kSecond,
                [&] {
                    return ulc_test(lib.endpoint(0), &receive, nullptr) == ULC_OK &&
                           ulc_test(lib.endpoint(2), &send, nullptr) == ULC_OK;
                },
                [&](std::uint16_t rank, Nanos now) {
                    if (rank == kGreedy) flood();
                    return now + 10 * kMicrosecond;
                }))
                << "round " << n;
            ASSERT_EQ(into, payload);
        }
    }
    LibCluster lib;
    std::vector<std::byte> junk;
    std::deque<ulc_request> sends;
    std::uint64_t sent = 0;
};

TEST(Shares, a_sender_without_end_stops_itself_alone) {
    for (const Embedded embedded : {Embedded::kNone, Embedded::kAll})
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{256}, std::size_t{100'000}}) {
            SCOPED_TRACE(std::to_string(bytes) + " bytes");
            Flood flood(embedded, bytes);
            ASSERT_TRUE(flood.lib.form());
            flood.play(2000);  // until the window of its engine is full, too
            if (::testing::Test::HasFatalFailure()) return;
            const std::uint64_t before = flood.sent;
            flood.play(200);
            EXPECT_EQ(flood.sent, before) << "nothing more is taken of it";
            EXPECT_LT(flood.lib.endpoint(0)->messages().inbox().arrivals().shares().used(),
                      kLimit * 3 / 4);
            // It goes on when messages are received: more come than were under way.
            std::vector<std::byte> into(bytes);
            for (std::uint64_t n = 0; n < before + 10; ++n) {
                ulc_request receive;
                ASSERT_EQ(ulc_receive(flood.lib.endpoint(0), kGreedy, kJunk, kAllBits, into.data(),
                                      bytes, &receive),
                          ULC_OK);
                ASSERT_TRUE(flood.lib.run(
                    5 * kSecond,
                    [&] { return ulc_test(flood.lib.endpoint(0), &receive, nullptr) == ULC_OK; },
                    [&](std::uint16_t rank, Nanos now) {
                        if (rank == kGreedy) flood.flood();
                        return now + 10 * kMicrosecond;
                    }))
                    << "message " << n;
            }
            EXPECT_GT(flood.sent, before);
        }
}

TEST(Shares, the_death_of_a_stopped_sender_is_told) {
    Flood flood(Embedded::kNone, 1000);
    ASSERT_TRUE(flood.lib.form());
    flood.play(400);
    flood.lib.kill(kGreedy);
    ASSERT_TRUE(flood.lib.run(
        20 * kSecond, [&] { return ulc_peer_state(flood.lib.endpoint(0), kGreedy) != ULC_OK; },
        [&](std::uint16_t, Nanos now) { return now + 100 * kMicrosecond; }));
}

}  // namespace
}  // namespace ulc::sim
