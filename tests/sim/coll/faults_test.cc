// SPDX-License-Identifier: BSD-3-Clause
// Tests collectives whose callers are wrong: the error says what to do. Also several at once, and
// floating-point numbers, whose result must be the same everywhere.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "tests/sim/coll/cast.h"

namespace ulc::sim {
namespace {

using Kind = CollectiveKind;

TEST(CollectiveFaults, wrong_arguments_are_refused_and_not_counted) {
    LibCluster lib(config_of(2, 1));
    ulc_endpoint* ep = lib.endpoint(0);
    ulc_coll* operation = nullptr;
    EXPECT_EQ(ulc_barrier_start(ep, 0, nullptr, &operation), ULC_ERR_NOT_FORMED);
    ASSERT_TRUE(lib.form());
    const ulc_group world = ulc_world(ep);
    unsigned char octet = 0;
    unsigned char other = 0;
    const std::size_t lengths[2] = {1, 1};
    const std::size_t huge[2] = {SIZE_MAX, SIZE_MAX};
    const ulc_reduction sum{ULC_UINT8, ULC_SUM};
    const auto refused = [&](int error, int expected, const char* text) {
        EXPECT_EQ(error, expected) << text;
        EXPECT_NE(std::string(ulc_last_error_text()).find(text), std::string::npos)
            << ulc_last_error_text();
    };
    refused(ulc_barrier_start(ep, world + 1, nullptr, &operation), ULC_ERR_INVALID, "no member");
    refused(ulc_barrier_start(ep, world, "ring", &operation), ULC_ERR_INVALID, "no algorithm");
    refused(ulc_barrier_start(ep, world, nullptr, nullptr), ULC_ERR_INVALID, "is NULL");
    refused(ulc_barrier_start(nullptr, world, nullptr, &operation), ULC_ERR_INVALID, "is NULL");
    refused(ulc_broadcast_start(ep, world, 2, &octet, 1, nullptr, &operation), ULC_ERR_INVALID,
            "root 2");
    refused(ulc_broadcast_start(ep, world, 0, nullptr, 1, nullptr, &operation), ULC_ERR_INVALID,
            "output is NULL");
    refused(ulc_allgather_start(ep, world, &octet, nullptr, 1, nullptr, &operation),
            ULC_ERR_INVALID, "output is NULL");
    refused(ulc_allgather_start(ep, world, &octet, &other, SIZE_MAX, nullptr, &operation),
            ULC_ERR_LIMIT, "address space");
    refused(ulc_gather_start(ep, world, 1, nullptr, nullptr, 1, nullptr, &operation),
            ULC_ERR_INVALID, "input is NULL");
    refused(
        ulc_gatherv_start(ep, world, 0, &octet, 1, &other, nullptr, nullptr, nullptr, &operation),
        ULC_ERR_INVALID, "lengths by rank");
    refused(ulc_gatherv_start(ep, world, 0, &octet, 1, &other, huge, nullptr, nullptr, &operation),
            ULC_ERR_LIMIT, "address space");
    refused(ulc_gatherv_start(ep, world, 0, &octet, 1, &other, lengths, nullptr, "binomial",
                              &operation),
            ULC_ERR_INVALID, "no algorithm");
    refused(ulc_scatter_start(ep, world, 0, nullptr, &octet, 1, nullptr, &operation),
            ULC_ERR_INVALID, "input is NULL");
    refused(ulc_alltoall_start(ep, world, &octet, nullptr, 1, nullptr, &operation), ULC_ERR_INVALID,
            "output is NULL");
    refused(ulc_reduce_start(ep, world, 5, &octet, &other, 1, sum, nullptr, &operation),
            ULC_ERR_INVALID, "root 5");
    refused(ulc_reduce_start(ep, world, 1, nullptr, &other, 1, sum, nullptr, &operation),
            ULC_ERR_INVALID, "input is NULL");
    refused(ulc_allreduce_start(ep, world, &octet, &other, 1, {99, ULC_SUM}, nullptr, &operation),
            ULC_ERR_INVALID, "no type 99");
    refused(
        ulc_allreduce_start(ep, world, &octet, &other, 1, {ULC_BYTE, ULC_SUM}, nullptr, &operation),
        ULC_ERR_INVALID, "not defined for type");
    refused(ulc_scan_start(ep, world, &octet, &other, 1, {ULC_INT8, 77}, nullptr, &operation),
            ULC_ERR_INVALID, "operator 77");
    refused(
        ulc_exscan_start(ep, world, &octet, &other, 1, {ULC_INT8, ULC_USER}, nullptr, &operation),
        ULC_ERR_INVALID, "without a function");
    refused(ulc_allreduce_start(ep, world, &octet, &other, SIZE_MAX / 2, {ULC_DOUBLE, ULC_SUM},
                                nullptr, &operation),
            ULC_ERR_LIMIT, "address space");
    EXPECT_EQ(ulc_coll_test(ep, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(operation, nullptr);
    Cast cast(lib, std::vector<std::vector<Operation>>(2, {Operation{}, Operation{}}));
    EXPECT_TRUE(cast.run(kSecond));
    EXPECT_TRUE(cast.actors[0].done() && cast.actors[1].done());
}

/// The way to call an operation: by its start function if there is memory for the started
/// operation, else by the function that blocks.
struct Way {
    ulc_coll** to;
    template <typename Start, typename Blocking, typename... Arguments>
    int operator()(Start start, Blocking blocking, Arguments... arguments) const {
        return to != nullptr ? start(arguments..., nullptr, to) : blocking(arguments...);
    }
};

/// Every operation of coll.h with one byte, or element, for each rank of three.
using Memory = unsigned char*;
using Begin = int (*)(Way, ulc_endpoint*, ulc_group, std::uint16_t root, Memory in, Memory out);
enum class Where : std::uint8_t { kNowhere, kAtRoot, kElsewhere, kEverywhere };
struct Every {
    const char* name;
    Where needs_input;  ///< operations for which NULL is not the in-place form, or is not checked
    Where needs_output;
    Begin begin;
};

constexpr std::size_t kOnes[3] = {1, 1, 1};
constexpr ulc_reduction kSum{ULC_UINT8, ULC_SUM};

constexpr Every kEveryOperation[] = {
    {"barrier", Where::kNowhere, Where::kNowhere,
     [](Way way, auto* ep, auto group, auto, Memory, Memory) {
         return way(ulc_barrier_start, ulc_barrier, ep, group);
     }},
    {"broadcast", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto root, Memory, Memory out) {
         return way(ulc_broadcast_start, ulc_broadcast, ep, group, root, out, 1);
     }},
    {"gather", Where::kElsewhere, Where::kAtRoot,
     [](Way way, auto* ep, auto group, auto root, Memory in, Memory out) {
         return way(ulc_gather_start, ulc_gather, ep, group, root, in, out, 1);
     }},
    {"gatherv", Where::kElsewhere, Where::kAtRoot,
     [](Way way, auto* ep, auto group, auto root, Memory in, Memory out) {
         return way(ulc_gatherv_start, ulc_gatherv, ep, group, root, in, 1, out, kOnes, nullptr);
     }},
    {"scatter", Where::kAtRoot, Where::kElsewhere,
     [](Way way, auto* ep, auto group, auto root, Memory in, Memory out) {
         return way(ulc_scatter_start, ulc_scatter, ep, group, root, in, out, 1);
     }},
    {"scatterv", Where::kAtRoot, Where::kElsewhere,
     [](Way way, auto* ep, auto group, auto root, Memory in, Memory out) {
         return way(ulc_scatterv_start, ulc_scatterv, ep, group, root, in, kOnes, nullptr, out, 1);
     }},
    {"allgather", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_allgather_start, ulc_allgather, ep, group, in, out, 1);
     }},
    {"allgatherv", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_allgatherv_start, ulc_allgatherv, ep, group, in, out, kOnes, nullptr);
     }},
    {"alltoall", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_alltoall_start, ulc_alltoall, ep, group, in, out, 1);
     }},
    {"alltoallv", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_alltoallv_start, ulc_alltoallv, ep, group, in,
                    in == nullptr ? nullptr : kOnes, nullptr, out, kOnes, nullptr);
     }},
    {"reduce", Where::kElsewhere, Where::kAtRoot,
     [](Way way, auto* ep, auto group, auto root, Memory in, Memory out) {
         return way(ulc_reduce_start, ulc_reduce, ep, group, root, in, out, 1, kSum);
     }},
    {"allreduce", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_allreduce_start, ulc_allreduce, ep, group, in, out, 1, kSum);
     }},
    {"reduce_scatter", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_reduce_scatter_start, ulc_reduce_scatter, ep, group, in, out, kOnes, kSum);
     }},
    {"reduce_scatter_block", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_reduce_scatter_block_start, ulc_reduce_scatter_block, ep, group, in, out, 1,
                    kSum);
     }},
    {"scan", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_scan_start, ulc_scan, ep, group, in, out, 1, kSum);
     }},
    {"exscan", Where::kNowhere, Where::kEverywhere,
     [](Way way, auto* ep, auto group, auto, Memory in, Memory out) {
         return way(ulc_exscan_start, ulc_exscan, ep, group, in, out, 1, kSum);
     }},
};

void expect_refused(int error, const char* text, const std::string& what) {
    EXPECT_EQ(error, ULC_ERR_INVALID) << what;
    EXPECT_NE(std::string(ulc_last_error_text()).find(text), std::string::npos)
        << what << ": " << ulc_last_error_text();
}

bool is_at(Where where, bool root) {
    return where == Where::kEverywhere || where == (root ? Where::kAtRoot : Where::kElsewhere);
}

TEST(CollectiveFaults, a_null_buffer_where_octets_are_due_is_refused_by_every_operation) {
    LibCluster lib(config_of(3, 1));
    ASSERT_TRUE(lib.form());
    ulc_endpoint* ep = lib.endpoint(1);
    ulc_coll* operation = nullptr;
    unsigned char in[3] = {};
    unsigned char out[3] = {};
    for (const Every& every : kEveryOperation) {
        for (const Way way : {Way{&operation}, Way{nullptr}}) {
            for (const std::uint16_t root : {0, 1}) {
                const std::string what = std::string(every.name) + " root " + std::to_string(root);
                if (is_at(every.needs_input, root == 1))
                    expect_refused(every.begin(way, ep, ulc_world(ep), root, nullptr, out),
                                   "input is NULL", what);
                if (is_at(every.needs_output, root == 1))
                    expect_refused(every.begin(way, ep, ulc_world(ep), root, in, nullptr),
                                   "output is NULL", what);
            }
        }
    }
    EXPECT_EQ(operation, nullptr);
    Cast cast(lib, std::vector<std::vector<Operation>>(3, {meeting()}));
    EXPECT_TRUE(cast.run(kSecond));
    for (const CollectiveActor& actor : cast.actors)
        EXPECT_TRUE(actor.done()) << "the refused ones do not count: " << actor.error_text();
}

/// Makes the group of ranks 0 and 2, of three.
ulc_group pair_of(LibCluster& lib) {
    const std::uint16_t ranks[2] = {0, 2};
    ulc_request requests[3];
    ulc_status made[3]{};
    bool known[3] = {false, true, false};
    for (const std::uint16_t rank : ranks)
        EXPECT_EQ(ulc_group_create(lib.endpoint(rank), ranks, 2, &requests[rank]), ULC_OK);
    EXPECT_TRUE(lib.run(
        kSecond, [&] { return known[0] && known[2]; },
        [&](std::uint16_t rank, Nanos) {
            if (!known[rank])
                known[rank] = ulc_test(lib.endpoint(rank), &requests[rank], &made[rank]) == ULC_OK;
            return kNever;
        }));
    EXPECT_EQ(made[0].group, made[2].group);
    return made[0].group;
}

/// Calls every operation, begun or blocking, in place or not, as root or not: each returns INVALID,
/// and nothing begins.
void expect_no_member(ulc_endpoint* ep, ulc_group group) {
    ulc_coll* operation = nullptr;
    unsigned char in[3] = {};
    unsigned char out[3] = {};
    for (const Every& every : kEveryOperation) {
        for (const Way way : {Way{&operation}, Way{nullptr}}) {
            for (const std::uint16_t root : {0, 1}) {
                const std::string what = std::string(every.name) + " root " + std::to_string(root);
                expect_refused(every.begin(way, ep, group, root, in, out), "no member", what);
                const std::string place = what + " in place";
                expect_refused(every.begin(way, ep, group, root, nullptr, out), "no member", place);
                expect_refused(every.begin(way, ep, group, root, in, nullptr), "no member", place);
            }
        }
    }
    EXPECT_EQ(operation, nullptr);
}

TEST(CollectiveFaults,
     a_call_on_a_group_of_others_is_refused_by_every_operation_and_disturbs_none) {
    LibCluster lib(config_of(3, 1));
    ASSERT_TRUE(lib.form());
    const ulc_group group = pair_of(lib);
    expect_no_member(lib.endpoint(1), group);
    ulc_coll* running[3] = {};
    for (const std::uint16_t rank : {0, 2})
        ASSERT_EQ(ulc_barrier_start(lib.endpoint(rank), group, nullptr, &running[rank]), ULC_OK);
    int states[3] = {ULC_ERR_AGAIN, ULC_OK, ULC_ERR_AGAIN};
    EXPECT_TRUE(lib.run(
        kSecond, [&] { return states[0] != ULC_ERR_AGAIN && states[2] != ULC_ERR_AGAIN; },
        [&](std::uint16_t rank, Nanos now) {
            if (states[rank] == ULC_ERR_AGAIN)
                states[rank] = ulc_coll_test(lib.endpoint(rank), running[rank]);
            return now + kMillisecond;
        }));
    EXPECT_EQ(states[0], ULC_OK);
    EXPECT_EQ(states[2], ULC_OK);
}

TEST(CollectiveFaults, a_call_on_a_freed_group_is_refused_by_every_operation_and_disturbs_none) {
    LibCluster lib(config_of(3, 1));
    ASSERT_TRUE(lib.form());
    const ulc_group group = pair_of(lib);
    ASSERT_EQ(ulc_group_free(lib.endpoint(2), group), ULC_OK);
    expect_no_member(lib.endpoint(2), group);
    ASSERT_EQ(ulc_group_free(lib.endpoint(0), group), ULC_OK);
    expect_no_member(lib.endpoint(0), group);
    Cast cast(lib, std::vector<std::vector<Operation>>(3, {meeting()}));
    EXPECT_TRUE(cast.run(kSecond));
    for (const CollectiveActor& actor : cast.actors)
        EXPECT_TRUE(actor.done()) << actor.error_text();
}

TEST(CollectiveFaults, a_group_that_is_freed_under_an_operation_ends_it) {
    LibCluster lib(config_of(3, 1));
    ASSERT_TRUE(lib.form());
    const ulc_group group = pair_of(lib);
    ulc_endpoint* ep = lib.endpoint(0);
    ulc_coll* operation = nullptr;
    unsigned char memory[2] = {};
    // Index 0 waits for index 1, which never comes, and would then have to send.
    ASSERT_EQ(ulc_broadcast_start(ep, group, 1, memory, 2, "binomial", &operation), ULC_OK);
    ulc_coll* second = nullptr;
    ASSERT_EQ(ulc_allgather_start(ep, group, nullptr, memory, 1, "round_robin", &second), ULC_OK);
    ASSERT_EQ(ulc_group_free(ep, group), ULC_OK);
    EXPECT_EQ(ulc_barrier_start(ep, group, nullptr, &operation), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_coll_test(ep, operation), ULC_ERR_INVALID);
    EXPECT_NE(std::string(ulc_last_error_text()).find("freed"), std::string::npos);
    int state = ULC_ERR_AGAIN;  // its multicast is in flight
    EXPECT_TRUE(lib.run(
        kSecond, [&] { return state != ULC_ERR_AGAIN; },
        [&](std::uint16_t rank, Nanos now) {
            if (rank == 0 && state == ULC_ERR_AGAIN) state = ulc_coll_test(ep, second);
            return now + kMillisecond;
        }));
    EXPECT_EQ(state, ULC_ERR_INVALID);
}

TEST(CollectiveFaults, several_at_once_on_one_group_each_get_their_own) {
    constexpr std::uint16_t kRanks = 5;
    ClusterConfig config = config_of(kRanks, 11);
    config.net.faults = {.loss = 0.02, .duplicate = 0.01, .reorder = 0.02};
    LibCluster lib(config);
    ASSERT_TRUE(lib.form());
    struct Running {
        CollectiveData data;
        ulc_coll* operation = nullptr;
        bool done = false;
    };
    std::vector<std::vector<Running>> all(kRanks);
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
        ulc_endpoint* ep = lib.endpoint(rank);
        for (std::uint8_t n = 0; n < 2 * kCollectiveKinds; ++n) {
            const Operation op{static_cast<Kind>(n % kCollectiveKinds), "",
                               n % 3 == 0 ? 40U : 5000U, static_cast<std::uint16_t>(n % kRanks)};
            all[rank].push_back({CollectiveData(op, rank, kRanks, n)});
        }
        for (Running& one : all[rank])
            ASSERT_EQ(one.data.start(ep, ulc_world(ep), &one.operation), ULC_OK);
    }
    const auto all_done = [&] {
        return std::ranges::all_of(all, [](const auto& of_rank) {
            return std::ranges::all_of(of_rank, [](const Running& one) { return one.done; });
        });
    };
    EXPECT_TRUE(lib.run(10 * kSecond, all_done, [&](std::uint16_t rank, Nanos now) {
        for (auto one = all[rank].rbegin(); one != all[rank].rend(); ++one) {
            if (one->done) continue;
            const int state = ulc_coll_test(lib.endpoint(rank), one->operation);
            EXPECT_TRUE(state == ULC_OK || state == ULC_ERR_AGAIN) << ulc_error_text(state);
            one->done = state != ULC_ERR_AGAIN;
        }
        return now + kMillisecond;
    }));
    for (const auto& of_rank : all)
        for (const Running& one : of_rank)
            EXPECT_EQ(one.data.wrong(), "");
}

constexpr std::uint16_t kSummers = 7;
using PerRank = std::vector<std::vector<double>>;

/// Starts a reduction of doubles at one rank; reduce_scatter cuts them into equal blocks.
int start_sum(Kind kind, ulc_endpoint* ep, const std::vector<double>& in, std::vector<double>& out,
              const char* algorithm, ulc_coll** running) {
    const ulc_reduction sum{ULC_DOUBLE, ULC_SUM};
    const ulc_group world = ulc_world(ep);
    const std::size_t n = in.size();
    switch (kind) {
        case Kind::kReduce:
            return ulc_reduce_start(ep, world, 3, in.data(), out.data(), n, sum, algorithm,
                                    running);
        case Kind::kAllreduce:
            return ulc_allreduce_start(ep, world, in.data(), out.data(), n, sum, algorithm,
                                       running);
        case Kind::kReduceScatter:
            return ulc_reduce_scatter_block_start(ep, world, in.data(), out.data(), n / kSummers,
                                                  sum, algorithm, running);
        case Kind::kScan:
            return ulc_scan_start(ep, world, in.data(), out.data(), n, sum, algorithm, running);
        default:
            return ulc_exscan_start(ep, world, in.data(), out.data(), n, sum, algorithm, running);
    }
}

/// Returns sums of doubles that depend on their order, at every rank, in a run with faults that
/// follow from the seed.
PerRank sums(Kind kind, const char* algorithm, std::size_t count, std::uint64_t seed) {
    ClusterConfig config = config_of(kSummers, seed);
    config.net.faults = {.loss = 0.01 * static_cast<double>(seed), .reorder = 0.05};
    LibCluster lib(config);
    EXPECT_TRUE(lib.form());
    PerRank in(kSummers, std::vector<double>(count));
    PerRank out = in;
    std::vector<ulc_coll*> running(kSummers, nullptr);
    for (std::uint16_t rank = 0; rank < kSummers; ++rank) {
        for (std::size_t i = 0; i < count; ++i)
            in[rank][i] = (rank % 2 == 0 ? 1e16 : -1e16) / static_cast<double>(i + rank + 1) + 0.1;
        EXPECT_EQ(
            start_sum(kind, lib.endpoint(rank), in[rank], out[rank], algorithm, &running[rank]),
            ULC_OK)
            << algorithm;
    }
    const auto none_runs = [&] {
        return std::ranges::all_of(running, [](ulc_coll* one) { return one == nullptr; });
    };
    EXPECT_TRUE(lib.run(10 * kSecond, none_runs, [&](std::uint16_t rank, Nanos now) {
        if (running[rank] != nullptr &&
            ulc_coll_test(lib.endpoint(rank), running[rank]) != ULC_ERR_AGAIN)
            running[rank] = nullptr;
        return now + kMillisecond;
    }));
    return out;
}

std::vector<std::uint64_t> bits_of(const std::vector<double>& values) {
    std::vector<std::uint64_t> bits;
    bits.reserve(values.size());
    for (const double value : values)
        bits.push_back(std::bit_cast<std::uint64_t>(value));
    return bits;
}

TEST(CollectiveFaults, floating_point_sums_are_the_same_to_the_last_bit_in_all_runs) {
    constexpr std::size_t kCount = 910;
    std::vector<PerRank> of_allreduce;
    for (const coll::Algorithm& algorithm : coll::algorithms()) {
        const Kind kind = kind_of(algorithm.op);
        if (kind < Kind::kReduce) continue;
        const std::string name =
            std::string(algorithm.name) + (algorithm.has_k ? ":2@1000" : "@1000");
        const PerRank first = sums(kind, name.c_str(), kCount, 1);
        for (const std::uint64_t seed : {2, 3}) {
            const PerRank again = sums(kind, name.c_str(), kCount, seed);
            for (std::size_t rank = 0; rank < kSummers; ++rank)
                EXPECT_EQ(bits_of(first[rank]), bits_of(again[rank]))
                    << coll::name_of(algorithm.op) << ' ' << name << " rank " << rank;
        }
        if (kind != Kind::kAllreduce) continue;
        for (std::size_t rank = 0; rank < kSummers; ++rank)
            EXPECT_EQ(bits_of(first[0]), bits_of(first[rank])) << name << " rank " << rank;
        of_allreduce.push_back(first);
    }
    // The operands are such that brackets show: not all algorithms give the same result.
    EXPECT_TRUE(std::ranges::any_of(of_allreduce, [&](const PerRank& one) {
        return bits_of(one[0]) != bits_of(of_allreduce[0][0]);
    }));
}

}  // namespace
}  // namespace ulc::sim
