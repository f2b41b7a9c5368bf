// SPDX-License-Identifier: BSD-3-Clause
// Tests that an engine tells the tap of a port (port/port.h) of each frame once, and of bursts that
// hold frames alone: in quiet rounds, in general ones, where payloads land, on a bond and on a hub.
#include <gtest/gtest.h>
#include <ulc.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/messages/flood.h"
#include "tests/sim/programs/message_programs.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

/// Counts the calls of one tap and their frames.
struct Told {
    std::uint64_t bursts = 0;
    std::uint64_t empty = 0;  ///< bursts without a frame
    std::uint64_t received = 0;
    std::uint64_t landed = 0;
    std::uint64_t foreign = 0;  ///< received frames that are not addressed to the node
    std::uint64_t offered = 0;
    std::atomic<std::uint64_t> taken = 0;  ///< the engine adds to it
    std::uint64_t taken_before = 0;        ///< at the last call
    std::uint64_t failed = 0;
    std::uint64_t link_looks = 0;
    std::uint32_t waiting = 0;  ///< frames of the last call, if it was an offer
    unsigned disorder = 0;      ///< calls that do not fit the one before
    Mac mac;
    PortTap tap;

    explicit Told(std::uint16_t port) : mac(mac_of_port(port)) {
        tap.context = this;
        tap.on_received = [](void* context, Segment* const* frames, std::uint16_t n) {
            auto& told = told_of(context, n);
            told.received += n;
            for (std::uint16_t i = 0; i < n; ++i) {
                const auto& to =
                    reinterpret_cast<const wire::EthernetHeader*>(frames[i]->frame)->destination;
                told.foreign += to != told.mac && (to.octets[0] & 1U) == 0 ? 1 : 0;
                told.landed += frames[i]->tail != nullptr ? 1 : 0;
            }
        };
        tap.on_offered = [](void* context, Segment* const* frames, std::uint16_t n) {
            auto& told = told_of(context, n);
            told.offered += n;
            told.waiting = n;
            for (std::uint16_t i = 0; i < n; ++i) {
                const auto& from =
                    reinterpret_cast<const wire::EthernetHeader*>(frames[i]->frame)->source;
                if (from != told.mac) ++told.disorder;
            }
        };
        tap.taken = &taken;
        tap.on_failed = [](void* context, const Segment& /*frame*/) {
            ++static_cast<Told*>(context)->failed;
        };
        tap.on_link_look = [](void* context) { ++static_cast<Told*>(context)->link_looks; };
    }
    static Told& told_of(void* context, std::uint16_t n) {
        auto& told = *static_cast<Told*>(context);
        // The port takes at most what was offered, and nothing later.
        if (told.taken > told.taken_before + told.waiting) ++told.disorder;
        told.taken_before = told.taken;
        told.waiting = 0;
        ++told.bursts;
        if (n == 0) ++told.empty;
        return told;
    }
};

/// The taps of a cluster's nodes.
class Taps {
public:
    void put_into(ClusterConfig& config) {
        const std::uint16_t nodes = config.net.ports / config.links;
        for (std::uint16_t node = 0; node < nodes; ++node) {
            const auto first_link = static_cast<std::uint16_t>(node * config.links);
            told_.push_back(std::make_unique<Told>(first_link));
            config.taps.push_back(&told_.back()->tap);
        }
    }
    /// Compares with the counters of the nodes' engines.
    void check(SimCluster& cluster) const {
        for (std::size_t node = 0; node < told_.size(); ++node) {
            SCOPED_TRACE(node);
            const Told& told = *told_[node];
            const Counters& counters = cluster.engine(static_cast<std::uint16_t>(node)).counters();
            EXPECT_EQ(told.received, counters.get(Counter::rx_frames));
            EXPECT_EQ(told.taken, counters.get(Counter::tx_frames));
            EXPECT_EQ(told.failed, counters.get(Counter::tx_given_up));
            EXPECT_GT(told.taken, 0U);
            EXPECT_GT(told.link_looks, 0U);
            EXPECT_EQ(told.empty, 0U);
            EXPECT_EQ(told.disorder, 0U);
            EXPECT_EQ(told.foreign, 0U);
            EXPECT_LT(told.bursts, counters.get(Counter::rounds)) << "most rounds find nothing";
        }
    }
    [[nodiscard]] std::uint64_t sum(std::uint64_t Told::*count) const {
        std::uint64_t all = 0;
        for (const auto& told : told_)
            all += (*told).*count;
        return all;
    }

private:
    std::vector<std::unique_ptr<Told>> told_;
};

TEST(Tap, is_told_of_each_frame_of_a_flood_with_losses) {
    for (const std::size_t octets : {8, 900, 20'000}) {
        SCOPED_TRACE(octets);
        ClusterConfig config;
        config.net.ports = 3;
        config.net.faults = {.loss = 0.02};
        Taps taps;
        taps.put_into(config);
        SimCluster cluster(config);
        flood(cluster, static_cast<std::uint16_t>(cluster.nodes()), octets, 60);
        taps.check(cluster);
        EXPECT_EQ(cluster.shut_down(), 0U);
    }
}

TEST(Tap, is_told_of_frames_whose_payloads_land) {
    ClusterConfig config;
    config.net.ports = 2;
    config.embedded = Embedded::kAll;
    Taps taps;
    taps.put_into(config);
    LibCluster lib(config);
    ASSERT_TRUE(lib.form());
    std::vector<std::byte> buffer(300'000);
    const std::vector<std::byte> payload = Oracle::payload(1, buffer.size());
    ulc_request receive;
    ulc_request send;
    ASSERT_EQ(ulc_receive(lib.endpoint(0), 1, 5, ~std::uint64_t{0} >> 2, buffer.data(),
                          buffer.size(), &receive),
              ULC_OK);
    ASSERT_EQ(ulc_send(lib.endpoint(1), 0, 5, payload.data(), payload.size(), &send), ULC_OK);
    ASSERT_TRUE(lib.run(
        20 * kSecond, [&] { return ulc_test(lib.endpoint(0), &receive, nullptr) == ULC_OK; },
        [](std::uint16_t, Nanos) { return kNever; }));
    EXPECT_EQ(buffer, payload);
    EXPECT_GT(lib.cluster().count(Counter::payloads_landed), 100U);
    EXPECT_EQ(taps.sum(&Told::landed), lib.cluster().count(Counter::payloads_landed));
    taps.check(lib.cluster());
    EXPECT_EQ(lib.shut_down(), 0U);
}

// The node with one link puts a BondPort around its port when it hears of nodes with two.
TEST(Tap, stays_when_the_engine_puts_a_bond_around_the_port) {
    ClusterConfig config;
    config.links = 2;
    config.bonded_nodes = 2;
    config.net.ports = 6;
    config.net.bits_per_second = 100'000'000;
    config.upgrade_every = 50;
    Taps taps;
    taps.put_into(config);
    SimCluster cluster(config);
    flood(cluster, static_cast<std::uint16_t>(cluster.nodes()), 1400, 100);
    EXPECT_GT(cluster.upgrades(), 10U);
    taps.check(cluster);
    EXPECT_EQ(cluster.shut_down(), 0U);
}

TEST(Tap, is_told_of_frames_that_a_hub_gave_up) {
    ClusterConfig config;
    config.net.ports = 16;
    config.net.medium = MediumKind::kHub;
    config.net.bits_per_second = 100'000'000;
    Taps taps;
    taps.put_into(config);
    SimCluster cluster(config);
    flood(cluster, static_cast<std::uint16_t>(cluster.nodes()), 1400, 20);
    taps.check(cluster);
    EXPECT_EQ(cluster.shut_down(), 0U);
    EXPECT_GT(taps.sum(&Told::failed), 0U);
}

}  // namespace
}  // namespace ulc::sim
