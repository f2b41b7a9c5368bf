// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/group_traffic.h"

#include <algorithm>
#include <utility>

namespace ulc::sim {
namespace {

constexpr Nanos kStep = 100 * kMicrosecond;

}  // namespace

GroupTraffic::GroupTraffic(LibCluster& lib, std::vector<Ranks> groups)
    : lib_(lib), groups_(std::move(groups)), handles_(groups_.size()) {}

bool GroupTraffic::create() {
    for (std::size_t group = 0; group < groups_.size(); ++group)
        if (!create(group)) return false;
    settle();
    return true;
}

bool GroupTraffic::create(std::size_t group) {
    const Ranks& ranks = groups_[group];
    std::vector<ulc_request> requests(lib_.ranks());
    std::vector<ulc_status> made(lib_.ranks());
    std::vector<std::uint16_t> left = ranks;
    for (const std::uint16_t rank : ranks)
        if (ulc_group_create(lib_.endpoint(rank), ranks.data(),
                             static_cast<std::uint16_t>(ranks.size()), &requests[rank]) != ULC_OK)
            return false;
    const bool all = lib_.run(
        kSecond, [&] { return left.empty(); },
        [&](std::uint16_t rank, Nanos now) {
            if (std::ranges::count(left, rank) > 0 &&
                ulc_test(lib_.endpoint(rank), &requests[rank], &made[rank]) == ULC_OK)
                std::erase(left, rank);
            return now + kStep;
        });
    handles_[group] = made[ranks[0]].group;
    return all && std::ranges::all_of(ranks, [&](std::uint16_t rank) {
               return made[rank].error == ULC_OK && made[rank].group == handles_[group];
           });
}

void GroupTraffic::settle() {
    const Nanos until = lib_.cluster().now() + 5 * kMillisecond;
    static_cast<void>(lib_.run(
        kSecond, [&] { return lib_.cluster().now() >= until; },
        [](std::uint16_t, Nanos now) { return now + kStep; }));
}

bool GroupTraffic::exchange(unsigned rounds) {
    std::vector<std::uint64_t> wanted(lib_.ranks(), 0);
    std::vector<std::vector<std::size_t>> of_rank(lib_.ranks());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        for (const std::uint16_t rank : groups_[group]) {
            of_rank[rank].push_back(group);
            wanted[rank] += (groups_[group].size() - 1) * rounds;
        }
    }
    std::vector<std::size_t> sent(lib_.ranks(), 0);
    const auto act = [&](std::uint16_t rank, Nanos now) {
        ulc_endpoint* ep = lib_.endpoint(rank);
        const std::vector<std::size_t>& groups = of_rank[rank];
        for (; sent[rank] < groups.size() * rounds; ++sent[rank]) {
            const std::size_t group = groups[sent[rank] % groups.size()];
            if (ulc_multicast(ep, handles_[group], ULC_SUBSET_ALL, 1, "group", 5, nullptr) !=
                ULC_OK)
                break;
        }
        const void* view = nullptr;
        ulc_status status{};
        while (ulc_take(ep, ULC_RANK_ANY, 1, UINT64_MAX, &view, &status) == ULC_OK) {
            ulc_release(ep, view);
            --wanted[rank];
            ++received_;
        }
        return now + kStep;
    };
    const auto none_wanted = [&] {
        return std::ranges::all_of(wanted, [](std::uint64_t left) { return left == 0; });
    };
    const bool all = lib_.run(20 * kSecond, none_wanted, act);
    settle();
    return all;
}

void GroupTraffic::free(std::size_t group) {
    for (const std::uint16_t rank : groups_[group])
        static_cast<void>(ulc_group_free(lib_.endpoint(rank), handles_[group]));
    groups_[group].clear();
    settle();
}

std::uint64_t GroupTraffic::unwanted() const {
    const SimCluster& cluster = lib_.cluster();
    return cluster.count(Counter::drop_shared_address) + cluster.count(Counter::drop_unfiltered) +
           cluster.count(Counter::drop_unknown_handle);
}

}  // namespace ulc::sim
