// SPDX-License-Identifier: BSD-3-Clause
// The cost of idle links, at engine and libulc: bytes of heap for each slot and each link, and the
// frames and rounds of an endpoint with 1,000 links, which go by its peers' nodes.
#include <gtest/gtest.h>
#include <ulc.h>

#include <cstdio>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/unit/base/heap_watch.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kPeerNodes = 16;
constexpr std::uint16_t kNodes = kPeerNodes + 1;
constexpr std::uint16_t kEndpointsEach = 63;
constexpr std::uint16_t kLinks = 1000;
constexpr std::size_t kSlotMax = 336;  ///< bytes of a slot, at engine and libulc
constexpr std::size_t kLinkMax = 100;  ///< bytes of a link on top of its slots, at both ends

/// The work of a node.
struct Work {
    std::uint64_t frames = 0;  ///< sent and received
    std::uint64_t busy = 0;    ///< rounds that moved something
};

/// Endpoints of 17 nodes: 0, 17, 34 … are of node 0, and the others its peers.
class LinkedNodes {
public:
    LinkedNodes() : lib_(config(), kNodes * kEndpointsEach) {}

    void open(std::uint16_t endpoint, std::uint16_t links) {
        const unsigned char key[16] = {1};
        ASSERT_EQ(lib_.endpoint(endpoint)->membership().open_links(links, key), ULC_OK);
        ASSERT_TRUE(run(kSecond, [&] { return ulc_job_state(lib_.endpoint(endpoint)) == ULC_OK; }));
    }
    /// Opens `count` endpoints of the other nodes, one node after the other, for one link each.
    void add_peers(std::uint16_t count) {
        for (std::uint16_t endpoint = opened_; count > 0;) {
            if (++endpoint % kNodes == 0) continue;
            open(endpoint, 1);
            opened_ = endpoint;
            --count;
        }
    }
    /// Links the next `count` of these peers to endpoint 0, and waits for 3 s.
    void link(std::uint16_t count) {
        ulc_link_address address;
        ASSERT_EQ(ulc_address(lib_.endpoint(0), &address), ULC_OK);
        ulc_request request;
        while (count > 0) {
            if (++linked_ % kNodes == 0) continue;
            --count;
            ASSERT_EQ(ulc_link(lib_.endpoint(linked_), &address, 0, &request), ULC_OK);
            ulc_status status{};
            ASSERT_TRUE(run(kSecond, [&] {
                return ulc_test(lib_.endpoint(linked_), &request, &status) == ULC_OK;
            }));
            ASSERT_EQ(status.error, ULC_OK);
            std::uint16_t number = 0;
            ASSERT_TRUE(
                run(kSecond, [&] { return ulc_next_peer(lib_.endpoint(0), &number) == ULC_OK; }));
        }
        idle(3 * kSecond);
    }
    void idle(Nanos span) {
        EXPECT_FALSE(run(span, [] { return false; }));
    }
    /// Returns what node 0 does in that time.
    Work work_in(Nanos span) {
        const Counters& counters = lib_.cluster().engine(0).counters();
        const auto now = [&] {
            return Work{counters.get(Counter::rx_frames) + counters.get(Counter::tx_frames),
                        counters.get(Counter::rounds_busy)};
        };
        const Work before = now();
        idle(span);
        return {now().frames - before.frames, now().busy - before.busy};
    }

private:
    static ClusterConfig config() {
        ClusterConfig config;
        config.net.ports = kNodes;
        config.sizes = {32, 32, 8U << 10, 16U << 10};
        config.engine.endpoints_max = kEndpointsEach + 1;
        return config;
    }
    bool run(Nanos limit, const std::function<bool()>& done) {
        return lib_.run(limit, done, [](std::uint16_t, Nanos) { return kNever; });
    }

    LibCluster lib_;
    std::uint16_t opened_ = 0;  ///< last endpoint of another node that is open
    std::uint16_t linked_ = 0;
};

std::size_t grown_since(std::size_t before) {
    const std::size_t now = test::heap_octets();
    return now > before ? now - before : 0;
}

TEST(LinksBudget, a_slot_and_an_idle_link_take_bounded_memory) {
    LinkedNodes nodes;
    constexpr std::uint16_t kFirst = kNodes;  // an endpoint of node 0, as its multiples are
    nodes.open(kFirst, 1);                    // also creates what is there once
    std::size_t before = test::heap_octets();
    nodes.open(2 * kFirst, 1);
    const std::size_t one = grown_since(before);
    before = test::heap_octets();
    nodes.open(0, kLinks);
    const std::size_t slot = (grown_since(before) - one) / (kLinks - 1);
    // The simulated net's own memory grows with the first links.
    constexpr std::uint16_t kWarm = 500;
    nodes.add_peers(kLinks);
    nodes.link(kWarm);
    before = test::heap_octets();
    nodes.link(kLinks - kWarm);
    const std::size_t link = grown_since(before) / (kLinks - kWarm);
    std::printf("an endpoint open for one link  %6zu bytes\n", one);
    std::printf("each further slot              %6zu bytes (budget %zu)\n", slot, kSlotMax);
    std::printf("an idle link, both ends        %6zu bytes (budget %zu)\n", link, kLinkMax);
    EXPECT_GT(slot, sizeof(void*));
    EXPECT_LE(slot, kSlotMax);
    EXPECT_GT(link, 0U) << "what a link takes was not counted";
    EXPECT_LE(link, kLinkMax);
}

TEST(LinksBudget, idle_links_cost_frames_and_rounds_by_node) {
    constexpr Nanos kSpan = 10 * kSecond;
    LinkedNodes nodes;
    nodes.open(0, kLinks);
    nodes.add_peers(kLinks);
    nodes.link(kPeerNodes);  // one a node
    const Work few = nodes.work_in(kSpan);
    nodes.link(kLinks - kPeerNodes);
    const Work many = nodes.work_in(kSpan);
    std::printf(
        "node 0 in 10 s: %llu frames and %llu busy rounds with 16 links, %llu and %llu with "
        "1,000\n",
        static_cast<unsigned long long>(few.frames), static_cast<unsigned long long>(few.busy),
        static_cast<unsigned long long>(many.frames), static_cast<unsigned long long>(many.busy));
    EXPECT_GT(few.frames, kPeerNodes * 10U) << "no peer is watched";
    EXPECT_LE(many.frames, few.frames + few.frames / 10);
    EXPECT_LE(many.busy, few.busy + few.busy / 10);
}

}  // namespace
}  // namespace ulc::sim
