// Rings and memory as small as they may be, and more under way than they hold: whoever waits must wait for something that
// another will do, and not in a circle.
#include <gtest/gtest.h>

#include <memory>

#include "tests/sim/programs/message_programs.h"
#include "tests/sim/sim_cluster.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kOctets = 1000;  ///< one packet, one block
constexpr std::uint64_t kMessages = 200;

// Each rank floods all others, and takes what comes at once. What a rank is sent outnumbers what it sends, so its receive
// blocks must come back while its own sends wait: for the memory of the others, who wait likewise.
void flood(std::uint16_t ranks, const ClusterConfig& config) {
    SimCluster cluster(config);
    ASSERT_TRUE(cluster.form(ranks, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
    MessageLog log;
    log.sent_at.resize(ranks);
    log.octets_by_source.resize(ranks);
    std::vector<std::unique_ptr<StreamProgram>> programs;
    for (Rank rank = 0; rank < ranks; ++rank) {
        RingClient& client = cluster.client(rank);
        programs.push_back(
            std::make_unique<StreamProgram>(client, rank, client.world, kOctets, kMessages, log));
        cluster.set_program(rank, programs.back().get());
    }
    const std::uint64_t all = kMessages * ranks * (ranks - 1U);
    EXPECT_TRUE(cluster.run(30 * kSecond, [&] { return log.messages == all; }))
        << log.messages << " of " << all;
    EXPECT_EQ(log.error, "");
    EXPECT_EQ(cluster.shut_down(), 0U);
}

ClusterConfig smallest(std::uint16_t ranks) {
    ClusterConfig config;
    config.net.ports = ranks;
    config.sizes = {8, 16, 64U << 10, 16U << 10};
    config.engine.pending_sends = 8;
    config.engine.params.window = 32;
    config.engine.params.rx_pool_packets = 16;
    return config;
}

TEST(SmallRings, ranks_that_flood_each_other_get_all_across) {
    for (const std::uint16_t ranks : {2, 3, 4, 8}) {
        SCOPED_TRACE(ranks);
        flood(ranks, smallest(ranks));
    }
}

}  // namespace
}  // namespace ulc::sim
