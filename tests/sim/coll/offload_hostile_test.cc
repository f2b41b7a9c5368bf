// SPDX-License-Identifier: BSD-3-Clause
// Tests the engine's reaction to schedules that no correct client submits, or that are submitted
// too late. Each refusal is counted, and no other memory is changed.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "abi/schedule.h"
#include "client/ulc_internal.h"
#include "tests/sim/cluster/sim_cluster.h"

namespace ulc::sim {
namespace {

ClusterConfig two_nodes() {
    ClusterConfig config;
    config.net.ports = 2;
    config.net.bits_per_second = 100'000'000;
    return config;
}

/// Two ring clients of one job; the second submits arbitrary schedules.
class Hostile {
public:
    Hostile() : cluster_(two_nodes()) {
        EXPECT_TRUE(cluster_.form(2, [](std::size_t n) { return static_cast<std::uint16_t>(n); }));
        request.tag_mask = ~std::uint64_t{0};
        request.output_octets = 1024;
        record.kind = abi::SubmitKind::kOffload;
        record.stream = client().world;
        record.tag = ULC_TAG_COLL | 5;
    }
    RingClient& client() { return cluster_.client(1); }
    [[nodiscard]] SimCluster& cluster() { return cluster_; }

    static abi::Step step(abi::StepKind kind, std::uint64_t length = 0) {
        abi::Step one{};
        one.kind = kind;
        one.buffer = abi::BufferId::kOutput;
        one.length = length;
        return one;
    }
    /// Writes the schedule at the place that the record names, and lets the engine read it.
    void submit(std::int64_t longer = 0) {
        request.step_count = static_cast<std::uint32_t>(steps.size());
        request.depends_count = static_cast<std::uint32_t>(depends.size());
        const std::size_t octets = sizeof request + steps.size() * sizeof(abi::Step) +
                                   depends.size() * sizeof(std::uint32_t);
        constexpr std::uint32_t kAt = 4096;
        auto* at = reinterpret_cast<unsigned char*>(
            client().region().tx(kAt, static_cast<std::uint32_t>(octets)));
        std::memcpy(at, &request, sizeof request);
        if (!steps.empty())
            std::memcpy(at + sizeof request, steps.data(), steps.size() * sizeof(abi::Step));
        if (!depends.empty())
            std::memcpy(at + sizeof request + steps.size() * sizeof(abi::Step), depends.data(),
                        depends.size() * sizeof(std::uint32_t));
        record.body.block = {
            kAt, static_cast<std::uint32_t>(static_cast<std::int64_t>(octets) + longer), 0, 0, 0,
            0};
        EXPECT_TRUE(client().submit(record));
        cluster_.touch(1);
        const Nanos until = cluster_.now() + kMillisecond;
        static_cast<void>(cluster_.run(
            2 * kMillisecond, [&] { return cluster_.now() >= until; }, [&] { client().poll(); }));
    }
    [[nodiscard]] std::uint64_t count(Counter counter) const { return cluster_.count(counter); }

    abi::OffloadRequest request{};
    abi::SubmissionRecord record{};
    std::vector<abi::Step> steps;
    std::vector<std::uint32_t> depends;

private:
    SimCluster cluster_;
};

TEST(OffloadOfHostileClient, refuses_each_wrong_schedule_and_counts_it) {
    using Spoil = void (*)(Hostile&);
    const struct {
        const char* what;
        Counter counter;
        Spoil spoil;
    } cases[] = {
        {"a reduction", Counter::offload_bad_schedule,
         [](Hostile& h) { h.steps.push_back(Hostile::step(abi::StepKind::kReduce)); }},
        {"a copy", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.steps.push_back(Hostile::step(abi::StepKind::kCopy, 8));
             h.steps.back().from_buffer = abi::BufferId::kOutput;
             h.steps.back().from_offset = 512;
         }},
        {"a range outside its buffer", Counter::offload_bad_schedule,
         [](Hostile& h) { h.steps.push_back(Hostile::step(abi::StepKind::kRecv, 1025)); }},
        {"an offset that wraps", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.steps.push_back(Hostile::step(abi::StepKind::kRecv, 8));
             h.steps.back().offset = ~std::uint64_t{3};
         }},
        {"a range outside the scratch", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.request.scratch_octets = 64;
             h.steps.push_back(Hostile::step(abi::StepKind::kSend, 64));
             h.steps.back().buffer = abi::BufferId::kScratch;
             h.steps.back().offset = 1;
         }},
        {"octets of a scratch that is not there", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.steps.push_back(Hostile::step(abi::StepKind::kRecv, 1));
             h.steps.back().buffer = abi::BufferId::kScratch;
         }},
        {"a buffer that there is not", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.steps.push_back(Hostile::step(abi::StepKind::kRecv));
             h.steps.back().buffer = static_cast<abi::BufferId>(3);
         }},
        {"a message received into the input", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.request.input_octets = 64;
             h.steps.push_back(Hostile::step(abi::StepKind::kRecv, 8));
             h.steps.back().buffer = abi::BufferId::kInput;
         }},
        {"a peer outside the group", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.steps.push_back(Hostile::step(abi::StepKind::kRecv));
             h.steps.back().peer = 2;
         }},
        {"a message to itself", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.steps.push_back(Hostile::step(abi::StepKind::kSend));
             h.steps.back().peer = 1;
         }},
        {"a dependency on a later step", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.steps.push_back(Hostile::step(abi::StepKind::kRecv));
             h.steps.back().depends_count = 1;
             h.depends.push_back(0);
         }},
        {"dependencies outside the table", Counter::offload_bad_schedule,
         [](Hostile& h) {
             h.steps.push_back(Hostile::step(abi::StepKind::kRecv));
             h.steps.back().depends_count = 1;
         }},
        {"too many steps", Counter::offload_over_quota,
         [](Hostile& h) { h.steps.assign(513, Hostile::step(abi::StepKind::kRecv)); }},
        {"dependencies shared by too many", Counter::offload_over_quota,
         [](Hostile& h) {
             h.steps.assign(512, Hostile::step(abi::StepKind::kRecv));
             h.depends = {0};
             for (std::size_t i = 1; i < h.steps.size(); ++i)
                 h.steps[i].depends_count = 1;
             h.depends.assign(64, 0);
             for (std::size_t i = 64; i < h.steps.size(); ++i)
                 h.steps[i].depends_count = 64;
         }},
        {"an unknown group", Counter::offload_bad_group, [](Hostile& h) { h.record.stream ^= 1U; }},
        {"a rank for a group", Counter::offload_bad_group, [](Hostile& h) { h.record.stream = 0; }},
        {"a tag of the user", Counter::offload_bad_group, [](Hostile& h) { h.record.tag = 5; }},
        {"a mask that takes users' messages", Counter::offload_bad_group,
         [](Hostile& h) { h.request.tag_mask = 0; }},
    };
    for (const auto& one : cases) {
        Hostile hostile;
        one.spoil(hostile);
        hostile.submit();
        EXPECT_EQ(hostile.count(one.counter), 1U) << one.what;
        EXPECT_EQ(hostile.count(Counter::offload_taken), 0U) << one.what;
        EXPECT_EQ(hostile.client().closed(), 0) << one.what;
    }
    Hostile honest;
    honest.steps.push_back(Hostile::step(abi::StepKind::kRecv, 1024));
    honest.submit();
    EXPECT_EQ(honest.count(Counter::offload_taken), 1U);
}

TEST(OffloadOfHostileClient, closes_who_names_memory_that_is_not_its_own) {
    using Spoil = void (*)(Hostile&);
    const Spoil cases[] = {
        [](Hostile& h) { h.request.output_offset = UINT32_MAX; },
        [](Hostile& h) { h.request.input_octets = UINT32_MAX; },
        [](Hostile& h) { h.request.flags = abi::kOffloadPassesOn << 1U; },
        [](Hostile& h) { h.request.scratch_offset = UINT32_MAX; },
        [](Hostile& h) { h.request.scratch_octets = UINT32_MAX; },
        [](Hostile& h) {  // the last byte is one behind the arena
            h.request.scratch_offset = h.client().region().layout().tx_arena_octets - 63;
            h.request.scratch_octets = 64;
        },
        [](Hostile& h) { h.record.flags = abi::kSubmitFirst; },
    };
    for (const Spoil spoil : cases) {
        Hostile hostile;
        spoil(hostile);
        hostile.submit();
        EXPECT_NE(hostile.client().closed(), 0);
    }
    for (const std::int64_t longer : {-1, 1, -41, 1 << 30}) {
        Hostile hostile;
        hostile.steps.push_back(Hostile::step(abi::StepKind::kRecv));
        hostile.submit(longer);
        EXPECT_NE(hostile.client().closed(), 0) << longer;
    }
}

TEST(OffloadOfHostileClient, takes_no_more_schedules_than_configured) {
    Hostile hostile;
    hostile.steps.push_back(Hostile::step(abi::StepKind::kRecv));
    for (unsigned i = 0; i < 20; ++i) {
        hostile.record.cookie = i;
        hostile.submit();
    }
    EXPECT_EQ(hostile.count(Counter::offload_taken), 8U);
    EXPECT_EQ(hostile.count(Counter::offload_over_quota), 12U);
    hostile.record.kind = abi::SubmitKind::kCancelOffload;
    for (unsigned i = 0; i < 8; ++i) {
        hostile.record.cookie = i;
        hostile.submit();
    }
    EXPECT_EQ(hostile.count(Counter::offload_failed), 8U);
    EXPECT_EQ(hostile.client().closed(), 0);
}

// A step without bytes may name any buffer. In an earlier version, its offset without a scratch
// buffer was behind the end of an array.
TEST(OffloadOfClient, sends_nothing_from_a_buffer_that_is_not_there) {
    Hostile client;
    client.steps.push_back(Hostile::step(abi::StepKind::kSend));
    client.steps.back().buffer = abi::BufferId::kScratch;
    client.submit();
    EXPECT_EQ(client.count(Counter::offload_done), 1U);
    client.cluster().client(0).poll();
    ASSERT_EQ(client.cluster().client(0).messages.size(), 1U);
    EXPECT_EQ(client.client().closed(), 0);
}

/// Sends data of one operation from the first client to the second one, whose engine handles them.
void send_to(Hostile& client, std::span<const std::byte> octets) {
    EXPECT_TRUE(client.cluster().client(0).send(1, ULC_TAG_COLL | 5, octets));
    client.cluster().touch(0);
    const Nanos until = client.cluster().now() + 5 * kMillisecond;
    static_cast<void>(
        client.cluster().run(10 * kMillisecond, [&] { return client.cluster().now() >= until; }));
}

/// The second client receives two messages of `octets` into scratch and sends them back, the second
/// one first.
void pass_on_two(Hostile& client, std::uint32_t octets) {
    client.request.scratch_offset = 16384;
    client.request.scratch_octets = 2 * octets;
    client.request.flags = abi::kOffloadPassesOn;
    client.request.seen = client.client().region().control().cq_consumed.load();
    for (unsigned i = 0; i < 4; ++i) {
        client.steps.push_back(
            Hostile::step(i < 2 ? abi::StepKind::kRecv : abi::StepKind::kSend, octets));
        client.steps.back().buffer = abi::BufferId::kScratch;
        client.steps.back().offset = i == 0 || i == 3 ? 0 : octets;
    }
    client.steps[2].depends_count = 1;
    client.depends = {1};
    client.steps[3].depends_count = 1;
    client.steps[3].depends_first = 0;
}

TEST(OffloadOfClient, sends_on_what_it_receives) {
    Hostile client;
    constexpr std::uint32_t kOctets = 5000;
    pass_on_two(client, kOctets);
    client.submit();
    std::vector<std::byte> octets[2];
    for (std::vector<std::byte>& one : octets) {
        for (std::size_t i = 0; i < kOctets; ++i)
            one.push_back(static_cast<std::byte>(i * 7 + i / 256 + one.size() + (&one - octets)));
        send_to(client, one);
    }
    EXPECT_EQ(client.count(Counter::offload_done), 1U);
    client.cluster().client(0).poll();
    const std::vector<Message>& got = client.cluster().client(0).messages;
    ASSERT_EQ(got.size(), 2U);
    EXPECT_TRUE(got[0].payload == octets[1]);
    EXPECT_TRUE(got[1].payload == octets[0]);
    client.client().poll();
    EXPECT_TRUE(client.client().messages.empty());
}

// Data that went to the client are in memory that only the client may read: nothing else may be
// sent in their place.
TEST(OffloadOfClient, does_not_pass_on_what_the_client_got) {
    for (const std::size_t octets : {8U, 5000U}) {
        Hostile client;
        pass_on_two(client, static_cast<std::uint32_t>(octets));
        send_to(client, std::vector<std::byte>(octets));
        client.record.cookie = 7;
        client.submit();
        EXPECT_EQ(client.count(Counter::offload_late), 1U);
        EXPECT_EQ(client.count(Counter::offload_taken), 0U);
        ASSERT_EQ(client.client().offloads_done.count(7), 1U);
        EXPECT_NE(client.client().offloads_done[7], 0);
        EXPECT_EQ(client.client().messages.size(), 1U);
        client.cluster().client(0).poll();
        EXPECT_TRUE(client.cluster().client(0).messages.empty());
    }
}

// Steps that no correct client would write: it receives into memory from which it sends, with all
// buffers in one place. It spoils only its own data.
TEST(OffloadOfHostileClient, spoils_nothing_but_its_own_octets_by_buffers_that_overlap) {
    Hostile hostile;
    constexpr std::uint32_t kOctets = 3000;
    pass_on_two(hostile, kOctets);
    hostile.request.input_offset = hostile.request.output_offset = hostile.request.scratch_offset;
    hostile.request.input_octets = hostile.request.output_octets = kOctets;
    hostile.depends.clear();
    for (abi::Step& step : hostile.steps)
        step.offset = step.depends_count = 0;
    hostile.steps[0].buffer = abi::BufferId::kOutput;
    hostile.steps[2].buffer = abi::BufferId::kInput;
    hostile.submit();
    for (unsigned i = 0; i < 2; ++i)
        send_to(hostile, std::vector<std::byte>(kOctets, std::byte{0x5a}));
    EXPECT_EQ(hostile.count(Counter::offload_done), 1U);
    EXPECT_EQ(hostile.client().closed(), 0);
    const abi::Region& region = hostile.client().region();
    EXPECT_EQ(*region.tx(16384 + kOctets, 1), std::byte{0});
    EXPECT_EQ(*region.tx(16383, 1), std::byte{0});
    hostile.cluster().client(0).poll();
    ASSERT_EQ(hostile.cluster().client(0).messages.size(), 2U);
    EXPECT_EQ(hostile.cluster().client(0).messages[0].payload.size(), kOctets);
}

// A message that the client has not seen when it writes the record, and that the engine has given
// it.
TEST(OffloadOfClient, counts_what_it_could_not_know_of) {
    Hostile client;
    for (unsigned i = 0; i < 2; ++i)
        EXPECT_TRUE(client.cluster().client(0).send(1, ULC_TAG_COLL | 5, {}));
    client.cluster().touch(0);
    const Nanos until = client.cluster().now() + kMillisecond;
    static_cast<void>(
        client.cluster().run(2 * kMillisecond, [&] { return client.cluster().now() >= until; }));
    client.request.seen = 1;  // it knows that the job has formed
    client.record.cookie = 7;
    client.steps.assign(2, Hostile::step(abi::StepKind::kRecv));
    client.submit();
    EXPECT_EQ(client.count(Counter::offload_done), 1U);
    ASSERT_EQ(client.client().offloads_done.count(7), 1U);
    EXPECT_EQ(client.client().offloads_done[7], 0);
    EXPECT_EQ(client.client().messages.size(), 2U);
}

// A collective that never ends is in the way of each upgrade of its engine, until the engine ends
// its client. The other one hears of a death, as of any.
TEST(OffloadOfHostileClient, stops_no_upgrade_that_evicts) {
    Hostile hostile;
    SimCluster& cluster = hostile.cluster();
    hostile.steps.push_back(Hostile::step(abi::StepKind::kRecv, 8));
    hostile.submit();
    EXPECT_FALSE(cluster.upgrade_node(1));
    state::Exporter exporter;
    cluster.engine(1).export_state(exporter);
    EXPECT_NE(exporter.why().find("process "), std::string::npos) << exporter.why();
    EXPECT_NE(exporter.why().find(" of user "), std::string::npos) << exporter.why();
    EXPECT_EQ(cluster.engine(0).evict(cluster.now()), "");
    const std::string names = cluster.engine(1).evict(cluster.now());
    EXPECT_EQ(exporter.why(), names + " has a collective that the engine carries out");
    EXPECT_TRUE(cluster.upgrade_node(1)) << cluster.upgrade_error();
    EXPECT_EQ(hostile.client().closed(), static_cast<int>(Err::kClosed));
    EXPECT_TRUE(cluster.run(
        kSecond, [&] { return cluster.client(0).peers_died.size() == 1; },
        [&] { cluster.client(0).poll(); }));
}

// The engine cannot know which of its messages have passed: more passed than its log keeps.
TEST(OffloadOfHostileClient, refuses_a_schedule_that_comes_too_late) {
    Hostile hostile;
    hostile.request.seen = hostile.client().region().control().cq_consumed.load();
    for (unsigned i = 0; i < 70; ++i) {
        EXPECT_TRUE(hostile.cluster().client(0).send(1, ULC_TAG_COLL | 9, {}));
        hostile.cluster().touch(0);
        const Nanos until = hostile.cluster().now() + kMillisecond;
        static_cast<void>(hostile.cluster().run(
            2 * kMillisecond, [&] { return hostile.cluster().now() >= until; },
            [&] { hostile.client().poll(); }));
    }
    hostile.steps.push_back(Hostile::step(abi::StepKind::kRecv));
    hostile.submit();
    EXPECT_EQ(hostile.count(Counter::offload_late), 1U);
    EXPECT_EQ(hostile.count(Counter::offload_taken), 0U);
}

}  // namespace
}  // namespace ulc::sim
