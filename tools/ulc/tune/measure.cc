// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/tune/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/progress.h"

namespace ulc::tools {
namespace {

constexpr std::int64_t kPatience = 30'000'000'000;  ///< ns, of one operation
constexpr std::size_t kBatches = 7;                 ///< batches of each choice, in turns
constexpr std::uint64_t kRoundsMax = 500;
/// A choice that takes this many times the best of one size is not tried at larger sizes.
constexpr double kHopeless = 4;
/// Times this far apart decide nothing, whatever their noise.
constexpr double kNear = 1.5;

constexpr ulc_reduction kSum{ULC_UINT8, ULC_SUM, nullptr, nullptr, 0};

[[nodiscard]] double quantile(const std::vector<double>& sorted, double q) {
    return sorted[static_cast<std::size_t>(
        std::lround(q * static_cast<double>(sorted.size() - 1)))];
}

[[nodiscard]] std::uint64_t rounds_for(double batch_us, double one_us) {
    return std::clamp(static_cast<std::uint64_t>(batch_us / std::max(one_us, 0.1)),
                      std::uint64_t{2}, kRoundsMax);
}

}  // namespace

int TuneMeasure::make_groups() {
    const std::uint16_t all = ulc_size(ep_);
    groups_.push_back({ulc_world(ep_), all});
    for (auto ranks = static_cast<std::uint16_t>(all / 2); ranks >= 2;
         ranks = static_cast<std::uint16_t>(ranks / 2)) {
        Group group{0, ranks};
        if (ulc_rank(ep_) < ranks) {
            std::vector<std::uint16_t> members(ranks);
            std::iota(members.begin(), members.end(), std::uint16_t{0});
            ulc_request request;
            ulc_status status{};
            int error = ulc_group_create(ep_, members.data(), ranks, &request);
            if (error == ULC_OK) error = ulc_wait_for(ep_, &request, &status, kPatience);
            if (error == ULC_OK) error = status.error;
            if (error != ULC_OK) return error;
            group.handle = status.group;
        }
        groups_.push_back(group);
    }
    return ULC_OK;
}

int TuneMeasure::finish(ulc_coll* operation, int started) {
    return started != ULC_OK ? started : ulc_coll_wait(ep_, operation, kPatience);
}

int TuneMeasure::tell(const Command& command) {
    Command copy = command;
    ulc_coll* operation = nullptr;
    const int started =
        ulc_broadcast_start(ep_, ulc_world(ep_), 0, &copy, sizeof copy, "multicast", &operation);
    return finish(operation, started);
}

int TuneMeasure::operate(const Command& command, std::uint64_t round) {
    const coll::Candidates& what = coll::candidates()[command.candidates];
    const std::string choice(what.choices[command.choice]);
    const char* algorithm = choice.c_str();
    const ulc_group group = groups_[command.group].handle;
    const auto root = static_cast<std::uint16_t>(round % groups_[command.group].ranks);
    const std::size_t octets = command.octets;
    void* in = in_.data();
    void* out = out_.data();
    ulc_coll* operation = nullptr;
    int started = ULC_ERR_INVALID;
    switch (what.op) {
        case coll::Op::kBarrier:
            started = ulc_barrier_start(ep_, group, algorithm, &operation);
            break;
        case coll::Op::kBroadcast:
            started = ulc_broadcast_start(ep_, group, root, out, octets, algorithm, &operation);
            break;
        case coll::Op::kGather:
            started = ulc_gather_start(ep_, group, root, in, out, octets, algorithm, &operation);
            break;
        case coll::Op::kScatter:
            started = ulc_scatter_start(ep_, group, root, in, out, octets, algorithm, &operation);
            break;
        case coll::Op::kAllgather:
            started = ulc_allgather_start(ep_, group, in, out, octets, algorithm, &operation);
            break;
        case coll::Op::kAlltoall:
            started = ulc_alltoall_start(ep_, group, in, out, octets, algorithm, &operation);
            break;
        case coll::Op::kReduce:
            started =
                ulc_reduce_start(ep_, group, root, in, out, octets, kSum, algorithm, &operation);
            break;
        case coll::Op::kAllreduce:
            started = ulc_allreduce_start(ep_, group, in, out, octets, kSum, algorithm, &operation);
            break;
        case coll::Op::kReduceScatter:
            started = ulc_reduce_scatter_block_start(ep_, group, in, out, octets, kSum, algorithm,
                                                     &operation);
            break;
        case coll::Op::kScan:
            started = ulc_scan_start(ep_, group, in, out, octets, kSum, algorithm, &operation);
            break;
        case coll::Op::kGatherv:
        case coll::Op::kScatterv:
        case coll::Op::kAlltoallv:
        case coll::Op::kExscan:
            break;  // take what is measured of others
    }
    return finish(operation, started);
}

int TuneMeasure::batch(const Command& command, double& us) {
    const Group& group = groups_[command.group];
    if (ulc_rank(ep_) >= group.ranks) return ULC_OK;
    const std::size_t room = std::size_t{group.ranks} * command.octets;
    if (in_.size() < room) in_.resize(room);
    if (out_.size() < room) out_.resize(room);
    ulc_coll* operation = nullptr;
    const int started = ulc_barrier_start(ep_, group.handle, "dissemination", &operation);
    if (const int error = finish(operation, started); error != ULC_OK) return error;
    const auto begun = Clock::now();
    for (std::uint64_t round = 0; round < command.rounds; ++round)
        if (const int error = operate(command, round); error != ULC_OK) return error;
    const std::chrono::duration<double, std::micro> took = Clock::now() - begun;
    const double own = took.count() / static_cast<double>(command.rounds);
    constexpr ulc_reduction kMax{ULC_DOUBLE, ULC_MAX, nullptr, nullptr, 0};
    operation = nullptr;
    const int gathered = ulc_allreduce_start(ep_, group.handle, &own, &us, 1, kMax,
                                             "binomial_multicast", &operation);
    return finish(operation, gathered);
}

int TuneMeasure::cell(Command command, double batch_us, std::vector<bool>& hopeless,
                      coll::Cell& out) {
    const coll::Candidates& what = coll::candidates()[command.candidates];
    const auto run = [&](Tried& tried) {
        command.choice = tried.choice;
        command.rounds = tried.rounds;
        double us = 0;
        int error = tell(command);
        if (error == ULC_OK) error = batch(command, us);
        if (error == ULC_OK) tried.us.push_back(us);
        return error;
    };
    std::vector<Tried> all;
    for (std::uint32_t i = 0; i < what.choices.size(); ++i)
        if (!hopeless[i]) all.push_back({i, 2, {}});
    for (Tried& tried : all) {  // warms up, and finds how many fill a batch
        if (const int error = run(tried); error != ULC_OK) return error;
        tried.rounds = rounds_for(batch_us, tried.us[0]);
        tried.us.clear();
    }
    for (std::size_t i = 0; i < kBatches; ++i)
        for (Tried& tried : all)
            if (const int error = run(tried); error != ULC_OK) return error;
    double best = HUGE_VAL;
    for (Tried& tried : all) {
        std::ranges::sort(tried.us);
        best = std::min(best, quantile(tried.us, 0.5));
    }
    for (const Tried& tried : all) {
        const double median = quantile(tried.us, 0.5);
        const double spread = quantile(tried.us, 0.75) - quantile(tried.us, 0.25);
        if (median > kHopeless * best) hopeless[tried.choice] = true;
        if (median < kNear * best)
            out.noise = std::max(out.noise, spread / median / std::sqrt(double{kBatches}));
        out.us.emplace_back(what.choices[tried.choice], median);
    }
    return ULC_OK;
}

int TuneMeasure::lead(std::vector<coll::Cell>& out) {
    const auto all = coll::candidates();
    const auto wanted = [&](const coll::Candidates& what) {
        return limits_.ops.empty() || std::ranges::find(limits_.ops, what.op) != limits_.ops.end();
    };
    std::size_t batches = 0;
    std::size_t columns = 0;
    for (const coll::Candidates& what : all) {
        if (!wanted(what)) continue;
        batches += groups_.size() * what.octets.size() * what.choices.size() * (kBatches + 1);
        columns += groups_.size();
    }
    const double batch_us =
        std::clamp(limits_.seconds * 1e6 / static_cast<double>(batches) / 2, 500.0, 20'000.0);
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(limits_.seconds));
    std::size_t done = 0;
    Progress progress(limits_.progress, limits_.progress != nullptr);
    Command command{};
    for (command.candidates = 0; command.candidates < all.size(); ++command.candidates) {
        const coll::Candidates& what = all[command.candidates];
        if (!wanted(what)) continue;
        for (command.group = 0; command.group < groups_.size(); ++command.group) {
            const Group& group = groups_[command.group];
            std::uint16_t per_node = 0;
            Medium medium{};
            const char* name = ulc_coll_medium(ep_, group.handle, &per_node);
            if (name == nullptr || !medium_of(name, medium)) return ULC_ERR_INVALID;
            std::vector<bool> hopeless(what.choices.size());
            for (const std::uint64_t octets : what.octets) {
                if (octets > limits_.octets_max) break;
                if (time_is_over()) {
                    ++left_out_;
                    break;
                }
                command.octets = octets;
                coll::Cell found{{what.op, medium, per_node, group.ranks, octets}, 0, {}};
                if (const int error = cell(command, batch_us, hopeless, found); error != ULC_OK)
                    return error;
                out.push_back(std::move(found));
            }
            const std::string column =
                fmt::format("{}, {} ranks", coll::name_of(what.op), group.ranks);
            progress.show(++done, columns, column);
            if (!progress.is_shown())
                fmt::print(stderr, "ulc tune: {}/{} {}\n", done, columns, column);
        }
    }
    command.over = 1;
    return tell(command);
}

int TuneMeasure::follow() {
    for (;;) {
        Command command{};
        ulc_coll* operation = nullptr;
        const int started = ulc_broadcast_start(ep_, ulc_world(ep_), 0, &command, sizeof command,
                                                "multicast", &operation);
        int error = finish(operation, started);
        if (error != ULC_OK || command.over != 0) return error;
        double us = 0;
        if (error = batch(command, us); error != ULC_OK) return error;
    }
}

}  // namespace ulc::tools
