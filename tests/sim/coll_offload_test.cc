// Collectives that the engine carries out while the application computes: nobody polls, tests or waits meanwhile. And what the engine
// does with schedules that no correct client hands over.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "abi/schedule.h"
#include "client/ulc_internal.h"
#include "tests/sim/lib_cluster.h"
#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kMebi = 1U << 20;

ClusterConfig config_of(std::uint16_t ranks, double loss = 0, std::uint64_t seed = 1) {
    ClusterConfig config;
    config.seed = seed;
    config.net.ports = ranks;
    config.net.seed = seed;
    config.net.bits_per_second = 100'000'000;
    config.net.faults = {.loss = loss, .duplicate = loss / 2, .reorder = loss};
    config.sizes.tx_arena_octets = 4 * kMebi;
    return config;
}

client::Limits offloading(std::uint16_t /*rank*/) {
    client::Limits limits;
    limits.offload = 1;
    return limits;
}

/// Calls `start` once at each rank, and lets nobody poll any more.
void start_all(LibCluster& lib, const std::function<void(std::uint16_t)>& start) {
    std::vector<bool> begun(lib.ranks(), false);
    ASSERT_TRUE(lib.run(
        kSecond, [&] { return std::ranges::count(begun, false) == 0; },
        [&](std::uint16_t rank, Nanos) {
            if (!begun[rank]) start(rank);
            begun[rank] = true;
            return kNever;
        }));
}

/// Time passes; every application computes.
bool compute(LibCluster& lib, Nanos time) {
    const Nanos until = lib.cluster().now() + time;
    bool over = false;
    lib.cluster().at(until, [&] { over = true; });
    return lib.cluster().run(time + kSecond, [&] { return over; });
}

/// Tests all until each is over, the ranks that died apart. What each said.
std::vector<int> finish_all(LibCluster& lib, std::vector<ulc_coll*>& running,
                            Nanos limit = 20 * kSecond) {
    std::vector<int> states(running.size(), ULC_ERR_AGAIN);
    const auto over = [&] {
        for (std::size_t rank = 0; rank < running.size(); ++rank)
            if (running[rank] != nullptr) return false;
        return true;
    };
    static_cast<void>(lib.run(limit, over, [&](std::uint16_t rank, Nanos now) {
        if (running[rank] == nullptr) return kNever;
        states[rank] = ulc_coll_test(lib.endpoint(rank), running[rank]);
        if (states[rank] == ULC_ERR_AGAIN) return now + 100 * kMicrosecond;
        running[rank] = nullptr;
        return kNever;
    }));
    return states;
}

TEST(Offload, a_barrier_completes_while_all_compute) {
    for (const char* algorithm : {"gather_broadcast", "dissemination:3", "chain:2"}) {
        constexpr std::uint16_t kRanks = 7;
        LibCluster lib(config_of(kRanks), 0, offloading);
        ASSERT_TRUE(lib.form());
        std::vector<ulc_coll*> running(kRanks);
        start_all(lib, [&](std::uint16_t rank) {
            ulc_endpoint* ep = lib.endpoint(rank);
            ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), algorithm, &running[rank]), ULC_OK);
        });
        EXPECT_TRUE(lib.cluster().run(20 * kMillisecond, [&] {
            return lib.cluster().count(Counter::offload_done) == kRanks;
        })) << algorithm;
        for (const int state : finish_all(lib, running))
            EXPECT_EQ(state, ULC_OK);
        EXPECT_EQ(lib.shut_down(), 0U);
    }
}

TEST(Offload, a_barrier_waits_for_the_last) {
    LibCluster lib(config_of(3), 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> running(3);
    start_all(lib, [&](std::uint16_t rank) {
        if (rank == 1) return;
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &running[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 50 * kMillisecond));
    EXPECT_EQ(lib.cluster().count(Counter::offload_done), 0U);
    start_all(lib, [&](std::uint16_t rank) {
        if (rank != 1) return;
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &running[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    EXPECT_GE(lib.cluster().count(Counter::offload_done), 2U);
    for (const int state : finish_all(lib, running))
        EXPECT_EQ(state, ULC_OK);
}

/// 1 MiB from rank 1: started by all at once, then computation, then tests until done. Until the last rank is done.
Nanos broadcast_beside(bool offload, bool arena, Nanos computation) {
    constexpr std::uint16_t kRanks = 4;
    LibCluster lib(config_of(kRanks), 0, [&](std::uint16_t) {
        client::Limits limits;
        limits.offload = offload ? 1 : 0;
        return limits;
    });
    EXPECT_TRUE(lib.form());
    std::vector<std::vector<unsigned char>> own(kRanks, std::vector<unsigned char>(kMebi));
    std::vector<unsigned char*> memory(kRanks);
    std::vector<ulc_coll*> running(kRanks);
    const Nanos begun = lib.cluster().now();
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        memory[rank] = arena ? static_cast<unsigned char*>(ulc_alloc(ep, kMebi)) : own[rank].data();
        ASSERT_NE(memory[rank], nullptr);
        for (std::size_t i = 0; i < kMebi; ++i)
            memory[rank][i] = rank == 1 ? static_cast<unsigned char>(i * 7 + i / 4096) : 0;
        ASSERT_EQ(
            ulc_broadcast_start(ep, ulc_world(ep), 1, memory[rank], kMebi, nullptr, &running[rank]),
            ULC_OK);
    });
    EXPECT_TRUE(computation == 0 || compute(lib, computation));
    EXPECT_EQ(lib.cluster().count(Counter::offload_taken), offload ? kRanks : 0U);
    for (const int state : finish_all(lib, running))
        EXPECT_EQ(state, ULC_OK);
    const Nanos spent = lib.cluster().now() - begun;
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        for (std::size_t i = 0; i < kMebi; ++i) {
            if (memory[rank][i] == static_cast<unsigned char>(i * 7 + i / 4096)) continue;
            ADD_FAILURE() << "rank " << rank << " octet " << i;
            break;
        }
    }
    return spent;
}

/// The share of the broadcast that a computation of its length hides.
double hidden(bool offload, bool arena) {
    const Nanos alone = broadcast_beside(offload, arena, 0);
    const Nanos both = broadcast_beside(offload, arena, alone);
    const double share = 1.0 - static_cast<double>(both - alone) / static_cast<double>(alone);
    std::printf("%s, memory %s: %.1f %% hidden\n", offload ? "offloaded" : "carried out by libulc",
                arena ? "of ulc_alloc" : "elsewhere", 100 * share);
    return share;
}

TEST(Offload, hides_nine_tenths_of_a_broadcast_behind_computation) {
    EXPECT_GE(hidden(true, true), 0.9);
    EXPECT_GE(hidden(true, false), 0.9);
    EXPECT_LT(hidden(false, false), 0.9);
}

// Ranks drift apart, so messages come before, while and after schedules are handed over; some ranks carry theirs out themselves.
TEST(Offload, gives_every_octet_to_every_rank_under_loss) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const auto ranks = static_cast<std::uint16_t>(2 + seed);
        ClusterConfig config = config_of(ranks, 0.02, seed);
        config.engine.offloads_max = seed % 2 == 0 ? 1 : 8;
        LibCluster lib(config, 0, [&](std::uint16_t rank) {
            client::Limits limits;
            limits.offload = seed % 3 == 0 && rank % 2 == 0 ? 0 : 1;
            return limits;
        });
        ASSERT_TRUE(lib.form());
        std::vector<Operation> program;
        for (unsigned turn = 0; turn < 40; ++turn) {
            Operation one;
            one.root = static_cast<std::uint16_t>(turn % ranks);
            one.octets = std::size_t{turn} * turn * 97;
            const bool barrier = turn % 3 == 2;
            one.kind = barrier ? CollectiveKind::kBarrier : CollectiveKind::kBroadcast;
            one.algorithm = barrier ? "dissemination:2" : turn % 2 == 0 ? "multicast@4000" : "";
            program.push_back(one);
        }
        std::vector<CollectiveActor> actors;
        for (std::uint16_t rank = 0; rank < ranks; ++rank)
            actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), program,
                                seed * 100 + rank);
        const auto ended = [&] {
            return std::ranges::all_of(actors, [](const CollectiveActor& a) { return a.ended(); });
        };
        EXPECT_TRUE(lib.run(60 * kSecond, ended, [&](std::uint16_t rank, Nanos now) {
            return actors[rank].step(now);
        })) << seed;
        for (const CollectiveActor& actor : actors) {
            EXPECT_TRUE(actor.done()) << seed << " at " << actor.at() << " " << actor.error_text();
            EXPECT_EQ(actor.wrong(), "") << seed;
        }
        EXPECT_GT(lib.cluster().count(Counter::offload_done), 0U) << seed;
        EXPECT_EQ(lib.shut_down(), 0U) << seed;
    }
}

// One begins when a third of the data is on its way: those segments are its client's, the rest the engine's.
TEST(Offload, goes_on_where_the_client_was) {
    constexpr std::uint16_t kRanks = 3;
    LibCluster lib(config_of(kRanks), 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<std::vector<unsigned char>> memory(kRanks, std::vector<unsigned char>(kMebi));
    for (std::size_t i = 0; i < kMebi; ++i)
        memory[0][i] = static_cast<unsigned char>(i * 7 + i / 4096);
    std::vector<ulc_coll*> running(kRanks);
    const auto start = [&](bool late) {
        start_all(lib, [&](std::uint16_t rank) {
            if ((rank == 2) != late) return;
            ulc_endpoint* ep = lib.endpoint(rank);
            ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 0, memory[rank].data(), kMebi, nullptr,
                                          &running[rank]),
                      ULC_OK);
        });
    };
    start(false);
    ASSERT_TRUE(compute(lib, 15 * kMillisecond));
    start(true);
    ASSERT_TRUE(lib.cluster().run(
        200 * kMillisecond, [&] { return lib.cluster().count(Counter::offload_done) == kRanks; }));
    for (const int state : finish_all(lib, running))
        EXPECT_EQ(state, ULC_OK);
    for (const std::uint16_t rank : {1, 2})
        EXPECT_TRUE(memory[rank] == memory[0]) << rank;
}

// More at once than the engine takes: the rest are carried out by libulc, and neither kind waits for the other.
TEST(Offload, takes_as_many_as_configured_and_leaves_the_rest) {
    constexpr std::uint16_t kRanks = 3;
    ClusterConfig config = config_of(kRanks);
    config.engine.offloads_max = 2;
    LibCluster lib(config, 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<std::vector<ulc_coll*>> all(6, std::vector<ulc_coll*>(kRanks));
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        for (auto& running : all)
            ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &running[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    for (std::size_t i = all.size(); i-- > 0;)
        for (const int state : finish_all(lib, all[i]))
            EXPECT_EQ(state, ULC_OK) << i;
    EXPECT_EQ(lib.cluster().count(Counter::offload_over_quota), 4U * kRanks);
}

TEST(Offload, ends_with_the_same_error_everywhere_when_a_member_dies) {
    constexpr std::uint16_t kRanks = 5;
    ClusterConfig config = config_of(kRanks);
    LibCluster lib(config, 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> running(kRanks);
    start_all(lib, [&](std::uint16_t rank) {
        if (rank == 2) return;
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), "gather_broadcast", &running[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 5 * kMillisecond));
    lib.kill(2);
    ASSERT_TRUE(compute(lib, 5 * kSecond));
    const std::vector<int> states = finish_all(lib, running);
    for (const std::uint16_t rank : {0, 1, 3, 4})
        EXPECT_EQ(states[rank], ULC_ERR_PEER_DIED) << rank;
    EXPECT_EQ(lib.cluster().count(Counter::offload_failed), 4U);
}

TEST(Offload, finds_members_that_disagree) {
    constexpr std::uint16_t kRanks = 4;
    LibCluster lib(config_of(kRanks), 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> running(kRanks);
    std::vector<std::vector<unsigned char>> memory(kRanks, std::vector<unsigned char>(20000));
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 0, memory[rank].data(),
                                      rank == 3 ? 19000 : 20000, nullptr, &running[rank]),
                  ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    const std::vector<int> states = finish_all(lib, running);
    EXPECT_EQ(states[3], ULC_ERR_MISMATCH);
    EXPECT_NE(std::string(ulc_last_error_text()).find("gave another length"), std::string::npos)
        << ulc_last_error_text();
}

TEST(Offload, is_cancelled_when_its_group_breaks) {
    constexpr std::uint16_t kRanks = 3;
    LibCluster lib(config_of(kRanks), 0, offloading);
    ASSERT_TRUE(lib.form());
    std::vector<ulc_coll*> first(kRanks);
    std::vector<ulc_coll*> second(kRanks);
    unsigned char octets[64] = {};
    start_all(lib, [&](std::uint16_t rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        if (rank == 2) {
            ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 2, octets, sizeof octets, nullptr,
                                          &first[rank]),
                      ULC_OK);
            return;
        }
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &first[rank]), ULC_OK);
        ASSERT_EQ(ulc_barrier_start(ep, ulc_world(ep), nullptr, &second[rank]), ULC_OK);
    });
    ASSERT_TRUE(compute(lib, 20 * kMillisecond));
    const std::vector<int> states = finish_all(lib, first);
    const std::vector<int> later = finish_all(lib, second);
    for (const std::uint16_t rank : {0, 1}) {
        EXPECT_EQ(states[rank], ULC_ERR_MISMATCH) << rank;
        EXPECT_EQ(later[rank], ULC_ERR_MISMATCH) << rank;
    }
    EXPECT_EQ(
        lib.cluster().count(Counter::offload_done) + lib.cluster().count(Counter::offload_failed),
        lib.cluster().count(Counter::offload_taken));
}

// ---------------------------------------------------------------- hostile schedules

/// Two ring clients of one job; the second hands over what it likes.
class Hostile {
public:
    explicit Hostile(const ClusterConfig& config = config_of(2)) : cluster_(config) {
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
    /// Writes the schedule where the record says and lets the engine look at it.
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
        [](Hostile& h) { h.request.reserved = 1; },
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

// A message that the client has not seen when it writes the record, and that the engine has given it.
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

// The engine cannot know which of its messages have passed: more did than its log keeps.
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
