// SPDX-License-Identifier: BSD-3-Clause
// Tests the frames that collectives put on the wire: a loss costs one retransmission, ranks of one
// node share one frame, and no output of the switch gathers the frames of many senders. Each has a
// counterpart that must fail.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/collective_actor.h"
#include "tests/sim/programs/collective_timing.h"
#include "wire/header.h"
#include "wire/parse.h"

namespace ulc::sim {
namespace {

using Kind = CollectiveKind;

constexpr std::size_t kLongest = 1486;        ///< payload bytes at an MTU of 1500
constexpr Nanos kFrame = 123 * kMicrosecond;  ///< time of the longest frame on the wire

/// Counts frames that leave the hosts, and loses one in flight to one receiver.
class Wire : public Tap {
public:
    /// `counts_empty`: frames without bytes, of which a barrier consists, also count as payload,
    /// and may be lost.
    Wire(LibCluster& lib, bool counts_empty) : lib_(lib), counts_empty_(counts_empty) {
        lib.cluster().net().set_tap(this);
    }
    ~Wire() override { lib_.cluster().net().set_tap(nullptr); }
    /// Once this number of frames with payload has left, and then a full one leaves a port, the
    /// next frame that arrives from that port at one receiver is lost. 0: none is lost.
    void lose_after(std::uint64_t payload_frames) { lose_after_ = payload_frames; }

    void on_frame(std::uint16_t port, bool outbound, const std::vector<std::byte>& frame,
                  Nanos) override {
        if (!outbound) return;
        wire::FrameView view;
        const std::uint16_t type = engine::EngineConfig{}.ether_type;
        ASSERT_EQ(wire::parse(frame.data(), frame.size(), type, view), Counter::kCount);
        const bool mcast = view.type == wire::FrameType::kMcast;
        const bool data = mcast || view.type == wire::FrameType::kData;
        if (!data || (view.length == 0 && !counts_empty_)) {
            ++control;
            return;
        }
        ++payload;
        multicasts += mcast ? 1 : 0;
        if (lose_after_ == 0 || payload < lose_after_ ||
            (view.length < kLongest / 2 && !counts_empty_))
            return;
        lose_after_ = 0;
        SimNet& net = lib_.cluster().net();
        auto to = static_cast<std::uint16_t>((port + 1) % net.ports());
        for (std::uint16_t other = 0; other < net.ports(); ++other)
            if (view.destination == SimNet::mac_of(other)) to = other;
        net.faults().lose_next(port, to, 1);
    }
    std::uint64_t payload = 0;
    std::uint64_t multicasts = 0;  ///< multicasts among them
    std::uint64_t control = 0;

private:
    LibCluster& lib_;
    bool counts_empty_;
    std::uint64_t lose_after_ = 0;
};

/// Runs one operation after the other at all ranks, started at once; checks every byte. Returns how
/// long they took.
Nanos run_once(LibCluster& lib, const std::vector<Operation>& program) {
    std::vector<CollectiveActor> actors;
    actors.reserve(lib.ranks());
    for (std::uint16_t rank = 0; rank < lib.ranks(); ++rank)
        actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), program, 1);
    const Nanos begin = lib.cluster().now();
    const auto all_ended = [&] {
        return std::ranges::all_of(actors, [](const CollectiveActor& a) { return a.ended(); });
    };
    EXPECT_TRUE(lib.run(10 * kSecond, all_ended, [&](std::uint16_t rank, Nanos now) {
        actors[rank].run_until_waiting();
        return now + 100 * kMicrosecond;
    }));
    for (const CollectiveActor& actor : actors)
        EXPECT_TRUE(actor.done() && actor.wrong().empty()) << actor.wrong() << actor.error_text();
    const Nanos end = lib.cluster().now();
    // The remaining acknowledgements.
    const Nanos quiet = end + 100 * kMillisecond;
    static_cast<void>(lib.run(
        kSecond, [&] { return lib.cluster().now() >= quiet; },
        [](std::uint16_t, Nanos now) { return now + kMillisecond; }));
    return end - begin;
}

struct Counted {
    std::uint64_t payload;
    std::uint64_t multicasts;
    std::uint64_t control;
    std::uint64_t lost;
    Nanos time;
};

Counted count(const ClusterConfig& config, std::uint16_t ranks, const Operation& operation,
              std::uint64_t lose_after, const std::vector<Operation>& before) {
    LibCluster lib(config, ranks);
    EXPECT_TRUE(lib.form());
    run_once(lib, before);
    Wire wire(lib, operation.kind == Kind::kBarrier);
    wire.lose_after(lose_after);
    const Nanos time = run_once(lib, {operation});
    std::uint64_t lost = 0;
    for (std::uint16_t port = 0; port < config.net.ports; ++port)
        lost += lib.cluster().net().faults().counts(port).lost;
    return {wire.payload, wire.multicasts, wire.control, lost, time};
}

/// Counts the same after three operations of its kind, from which members know how long an answer
/// takes.
Counted count(const ClusterConfig& config, std::uint16_t ranks, const Operation& operation,
              std::uint64_t lose_after = 0) {
    return count(config, ranks, operation, lose_after, {operation, operation, operation});
}

// A loss also costs about the time of one frame: three more if it passes through a chain of
// members, none of which can begin early.
TEST(CollectiveWire, a_loss_in_mid_collective_costs_one_repair) {
    constexpr std::uint16_t kNodes = 4;
    constexpr std::size_t kOctets = 64 * 1024;
    const Operation operations[] = {{Kind::kBroadcast, "", kOctets, 1},
                                    {Kind::kAllgather, "", kOctets / kNodes},
                                    {Kind::kAlltoall, "", kOctets / kNodes},
                                    {Kind::kAllreduce, "", kOctets},
                                    {Kind::kGather, "", kOctets / kNodes, 1},
                                    {Kind::kScatter, "", kOctets / kNodes, 1},
                                    {Kind::kReduce, "", kOctets, 1},
                                    {Kind::kReduceScatter, "", kOctets / kNodes},
                                    {Kind::kScan, "", kOctets},
                                    {Kind::kExscan, "", kOctets}};
    for (const Operation& operation : operations) {
        const std::string name(coll::name_of(operation_of(operation.kind)));
        const Counted whole = count(fast_ethernet(kNodes), kNodes, operation);
        EXPECT_EQ(whole.lost, 0U);
        for (unsigned quarter = 1; quarter <= 3; ++quarter) {
            const std::uint64_t after = whole.payload * quarter / 4;
            const Counted lossy = count(fast_ethernet(kNodes), kNodes, operation, after);
            EXPECT_EQ(lossy.lost, 1U) << name << ", after " << after;
            EXPECT_EQ(lossy.payload, whole.payload + 1) << name << ", after " << after;
            EXPECT_LE(lossy.control, whole.control + 4) << name << ", after " << after;
            EXPECT_LE(lossy.time, whole.time + 4 * kFrame) << name << ", after " << after;
        }
        ClusterConfig repeats_all = fast_ethernet(kNodes);
        repeats_all.engine.profile = "gbn";
        EXPECT_GT(count(repeats_all, kNodes, operation, whole.payload / 2).payload,
                  whole.payload + 1)
            << name;
    }
}

TEST(CollectiveWire, a_loss_in_mid_barrier_costs_one_repair) {
    unsigned losses = 0;
    std::uint64_t repairs = 0;
    for (const char* algorithm :
         {"gather_broadcast", "chain:2", "dissemination", "dissemination:3"}) {
        const Operation barrier{Kind::kBarrier, algorithm};
        const Counted whole = count(fast_ethernet(4), 4, barrier);
        EXPECT_GE(whole.payload, 4U) << algorithm;
        for (std::uint64_t after = 1; after <= whole.payload; ++after) {
            const Counted lossy = count(fast_ethernet(4), 4, barrier, after);
            EXPECT_EQ(lossy.lost, 1U) << algorithm << ", after " << after;
            EXPECT_GT(lossy.payload, whole.payload) << algorithm << ", after " << after;
            // Nothing else is in flight from which a member could see that a packet is missing: its
            // timeout, or the sender's, detects the loss.
            EXPECT_LE(lossy.time, whole.time + 400 * kMicrosecond) << algorithm << ' ' << after;
            ++losses;
            repairs += lossy.payload - whole.payload;
        }
    }
    // A request may cross the frame for which it asks. The phase of the timers decides where, and
    // the length of the frames that form the job moves that phase.
    EXPECT_LE(repairs, losses + losses / 10) << "frames repaired twice";
}

// After a barrier a receiver asks again before a retransmission can arrive: it is longer than the
// answers of a barrier, and leaves after the frame that the port is sending.
TEST(CollectiveWire, a_repair_is_not_repeated_where_only_short_answers_are_known) {
    const Operation broadcast{Kind::kBroadcast, "", 64 * 1024, 1};
    const Counted whole = count(fast_ethernet(4), 4, broadcast, 0, {Operation{}});
    for (unsigned quarter = 1; quarter <= 3; ++quarter) {
        const std::uint64_t after = whole.payload * quarter / 4;
        const Counted lossy = count(fast_ethernet(4), 4, broadcast, after, {Operation{}});
        EXPECT_EQ(lossy.lost, 1U) << after;
        EXPECT_EQ(lossy.payload, whole.payload + 1) << after;
    }
}

TEST(CollectiveWire, a_multicast_to_several_ranks_of_a_node_is_one_frame) {
    constexpr std::size_t kOctets = 64 * 1024;
    const Operation broadcast{Kind::kBroadcast, "", kOctets, 1};
    const Counted one_a_node = count(fast_ethernet(2), 2, broadcast);
    const Counted three_a_node = count(fast_ethernet(2), 6, broadcast);
    EXPECT_LE(one_a_node.payload, kOctets / kLongest + 2);
    EXPECT_EQ(three_a_node.payload, one_a_node.payload);
    EXPECT_EQ(three_a_node.multicasts, one_a_node.payload);
    const Counted unicast = count(fast_ethernet(2), 6, {Kind::kBroadcast, "binomial", kOctets, 1});
    EXPECT_GT(unicast.payload, one_a_node.payload);
}

/// Returns the maximum that an output of the switch has held.
std::uint64_t queued(std::uint16_t nodes, const std::vector<Operation>& program) {
    LibCluster lib(fast_ethernet(nodes));
    EXPECT_TRUE(lib.form());
    run_once(lib, program);
    for (const auto& [name, value] : lib.cluster().net().medium_report())
        if (name == "buffer_octets_max") return value;
    ADD_FAILURE() << "the switch does not say";
    return 0;
}

// The data of the other nodes for a node reach its output one after the other, not all at once.
TEST(CollectiveWire, an_alltoall_queues_few_senders_frames_at_any_output) {
    for (const std::uint16_t nodes : {8, 16}) {
        for (const std::size_t octets : {6000, 16384}) {
            const std::uint64_t block = octets + octets / kLongest * wire::kHeadOctets;
            std::vector<Operation> all_to_one;  // to 0 first, then to 1, …
            for (std::uint16_t root = 0; root < nodes; ++root)
                all_to_one.push_back({Kind::kGather, "direct", octets, root});
            EXPECT_LE(queued(nodes, {{Kind::kAlltoall, "pairwise", octets}}), 2 * block) << nodes;
            EXPECT_LE(queued(nodes, {{Kind::kAlltoall, "", octets}}), 3 * block) << nodes;
            EXPECT_GT(queued(nodes, all_to_one), 5 * block) << nodes;
        }
    }
}

}  // namespace
}  // namespace ulc::sim
