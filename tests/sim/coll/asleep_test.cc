// SPDX-License-Identifier: BSD-3-Clause
// Tests that no member of a collective needs a poll of a member whose part is over. A rank may wait
// elsewhere after its part, in its MPI or asleep, where nothing polls its endpoint.
//
// Each member calls an operation as ulc_coll_wait() does: it polls only while its part is not over.
// Then it is not polled until all members have ended the operation, and begins the next one without
// a poll. So a member that only sends is never polled at all. The calls of one test have 512 sends
// and more, eight times as many as a completion ring has entries here.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "coll/algorithm.h"
#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/collective_data.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kRanks = 5;
constexpr std::uint16_t kNodes = 3;  ///< two of them have two ranks
constexpr Nanos kLookAgain = kMillisecond;
constexpr Nanos kLimit = 20 * kSecond;  ///< for one call of all members

struct Size {
    std::size_t octets;
    unsigned calls;
};
/// Inside a record, a block and nine blocks, which is more than the arena has.
constexpr Size kSizes[] = {{8, 520}, {8192, 520}, {131072, 60}};

/// One rank: calls one operation, and sleeps from the end of its part on.
class Caller : public Program {
public:
    explicit Caller(ulc_endpoint* ep, std::uint16_t rank) : ep_(ep), rank_(rank) {}

    void begin(const Operation& operation, std::uint64_t stamp) {
        data_ = CollectiveData(operation, rank_, kRanks, stamp);
        error = data_.start(ep_, ulc_world(ep_), &operation_);
        asleep = error != ULC_OK;
    }
    Nanos act(Nanos now) override {
        while (!asleep) {
            const int state = ulc_coll_test(ep_, operation_);
            if (state == ULC_ERR_AGAIN) {
                if (ulc_poll(ep_) > 0) continue;
                ep_->messages().source_notes().announce_awaited();
                return now + kLookAgain;
            }
            error = state;
            asleep = true;
        }
        return kNever;
    }
    [[nodiscard]] std::string wrong() const {
        return error != ULC_OK ? std::string(ulc_error_text(error)) : data_.wrong();
    }
    bool asleep = true;
    int error = ULC_OK;

private:
    ulc_endpoint* ep_;
    std::uint16_t rank_;
    ulc_coll* operation_ = nullptr;
    CollectiveData data_;
};

struct Way {
    Embedded embedded = Embedded::kNone;
    bool offload = false;
    std::uint64_t seed = 1;
};

class Asleep {
public:
    explicit Asleep(const Way& way)
        : lib_(config_of(way), kRanks, [way](std::uint16_t) {
              client::Limits limits;
              limits.offload = way.offload ? 1 : 0;
              return limits;
          }) {}

    /// Returns the fault; empty: all members ended each call, with the right result.
    std::string run(Operation operation, unsigned calls, bool turns) {
        if (!lib_.form()) return "the job did not form";
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            callers_.push_back(std::make_unique<Caller>(lib_.endpoint(rank), rank));
        std::string wrong;
        for (unsigned call = 0; call < calls && wrong.empty(); ++call) {
            operation.root = static_cast<std::uint16_t>(turns ? call % kRanks : 1);
            wrong = run_once(operation, call);
            if (!wrong.empty()) wrong.insert(0, "call " + std::to_string(call) + ":");
        }
        for (std::uint16_t rank = 0; rank < kRanks; ++rank)
            lib_.cluster().set_program(rank, nullptr);
        return wrong;
    }

private:
    static ClusterConfig config_of(const Way& way) {
        ClusterConfig config;
        config.seed = config.net.seed = way.seed;
        config.net.ports = kNodes;
        config.net.faults = {.loss = 0.005};  // its engine repairs while a rank sleeps
        config.embedded = way.embedded;
        config.sizes.tx_arena_octets = 64U << 10;  // less than the longest message
        return config;
    }
    std::string run_once(const Operation& operation, unsigned call) {
        for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
            callers_[rank]->begin(operation, call);
            lib_.cluster().set_program(rank, callers_[rank].get());
        }
        const auto all_ended = [&] {
            return std::ranges::all_of(callers_, [](const auto& one) { return one->asleep; });
        };
        (void)lib_.cluster().run(kLimit, all_ended);
        std::string wrong;
        for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
            const Caller& one = *callers_[rank];
            const std::string fault = one.asleep ? one.wrong() : "waits for a member that sleeps";
            if (!fault.empty()) wrong += " rank " + std::to_string(rank) + " " + fault;
        }
        return wrong;
    }

    LibCluster lib_;
    std::vector<std::unique_ptr<Caller>> callers_;
};

/// Returns whether each member sends a block to each other one.
bool sends_to_all(coll::Op op) {
    return op == coll::Op::kAlltoall || op == coll::Op::kAlltoallv ||
           op == coll::Op::kReduceScatter;
}

bool has_root(coll::Op op) {
    return op == coll::Op::kBroadcast || op == coll::Op::kGather || op == coll::Op::kGatherv ||
           op == coll::Op::kScatter || op == coll::Op::kScatterv || op == coll::Op::kReduce;
}

class CollectiveAsleep : public testing::TestWithParam<std::size_t> {
protected:
    static void run_all(const Way& way, const Size& size) {
        const coll::Algorithm& algorithm = coll::algorithms()[GetParam()];
        Operation one;
        one.kind = kind_of(algorithm.op);
        one.algorithm = algorithm.name;
        one.octets = algorithm.op == coll::Op::kBarrier ? 0 : size.octets;
        one.uneven = operation_of(one.kind) != algorithm.op;
        for (const bool turns : {false, true}) {
            if (turns && !has_root(algorithm.op)) continue;
            const bool fewer = turns || (sends_to_all(algorithm.op) && size.octets > 8);
            Asleep cluster(way);
            EXPECT_EQ(cluster.run(one, fewer ? size.calls / 4 : size.calls, turns), "")
                << one.octets << " octets, " << (turns ? "turning roots" : "root 1");
        }
    }
};

TEST_P(CollectiveAsleep, no_member_needs_a_poll_of_one_whose_part_is_over) {
    for (const Size& size : kSizes)
        run_all({}, size);
}

TEST_P(CollectiveAsleep, nor_where_engines_are_embedded) {
    for (const Size& size : kSizes)
        run_all({.embedded = Embedded::kHalf, .seed = 2}, {size.octets, size.calls / 4 + 1});
}

TEST_P(CollectiveAsleep, nor_where_engines_run_the_schedules) {
    for (const Size& size : kSizes)
        run_all({.offload = true, .seed = 3}, {size.octets, size.calls / 4 + 1});
}

INSTANTIATE_TEST_SUITE_P(Algorithms, CollectiveAsleep,
                         testing::Range<std::size_t>(0, coll::algorithms().size()),
                         [](const auto& param) {
                             const coll::Algorithm& one = coll::algorithms()[param.param];
                             return std::string(coll::name_of(one.op)) + "_" +
                                    std::string(one.name);
                         });

}  // namespace
}  // namespace ulc::sim
