// SPDX-License-Identifier: BSD-3-Clause
// Tests in virtual time when an engine interrupts a client that computes: within 50 µs of the send,
// in the round that has the message, and once. The interrupt itself is a signal, which process test
// `upcalls` covers.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "abi/slot_ring.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/host/presets.h"

namespace ulc::sim {
namespace {

constexpr Nanos kUpcallMax = 50 * kMicrosecond;
constexpr unsigned kMessages = 50;

/// Rank 0 sends to rank 1, on another node, one message after the other.
class UpcallTime : public ::testing::Test {
protected:
    UpcallTime() : cluster_(config()) {
        EXPECT_TRUE(cluster_.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
        cluster_.engine(1).set_interrupt(cluster_.endpoint(1), {on_interrupt, this});
    }
    static ClusterConfig config() {
        ClusterConfig config;
        config.net.ports = 2;
        config.net.latency = 2 * kMicrosecond;
        config.hosts = {*host_preset("own-machine")};
        return config;
    }
    static void on_interrupt(void* context) {
        auto& test = *static_cast<UpcallTime*>(context);
        test.interrupts_.push_back(test.cluster_.now());
    }
    void send() {
        const std::array<std::byte, 8> payload{};
        ASSERT_TRUE(cluster_.client(0).send(1, 7, payload));
        cluster_.touch(0);
    }

    SimCluster cluster_;
    std::vector<Nanos> interrupts_;
};

TEST_F(UpcallTime, a_client_that_computes_is_interrupted_in_the_round_that_has_its_message) {
    for (unsigned n = 0; n < kMessages; ++n) {
        cluster_.client(0).poll();
        abi::client_going_to_compute(cluster_.client(1).region().control());
        const Nanos sent = cluster_.now();
        send();
        const std::size_t before = cluster_.client(1).messages.size();
        ASSERT_TRUE(cluster_.run(kSecond, [&] { return interrupts_.size() > n; })) << n;
        EXPECT_LE(interrupts_.back() - sent, kUpcallMax) << n;
        cluster_.client(1).poll();
        EXPECT_EQ(cluster_.client(1).messages.size(), before + 1) << "the message is there by then";
        (void)cluster_.run(kMillisecond, [] { return false; });
        EXPECT_EQ(interrupts_.size(), n + 1) << "one upcall a message";
    }
}

TEST_F(UpcallTime, a_client_that_polls_is_not_interrupted) {
    for (unsigned n = 0; n < kMessages; ++n) {
        cluster_.client(0).poll();
        send();
        (void)cluster_.run(kMillisecond, [] { return false; });
        cluster_.client(1).poll();
    }
    EXPECT_EQ(cluster_.client(1).messages.size(), kMessages);
    EXPECT_TRUE(interrupts_.empty());
}

}  // namespace
}  // namespace ulc::sim
