// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tables/applications/application_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ulc::sim {
namespace {

constexpr Nanos kLimit = 3600 * kSecond;
constexpr Nanos kLookAgain = kMillisecond;  ///< as ulc_coll_wait()

unsigned char octet_of(std::size_t number, std::size_t at) {
    return static_cast<unsigned char>(number * 7 + at * 13 + at / 251);
}

}  // namespace

ApplicationRun::ApplicationRun(const ClusterConfig& config)
    : lib_(config), formed_(lib_.form()), ranks_(lib_.ranks()) {}

void ApplicationRun::compute(std::uint16_t rank, Nanos time) {
    ranks_[rank].phases.push_back({.time = time});
}

ApplicationRun::Phase& ApplicationRun::exchange(std::uint16_t rank) {
    ranks_[rank].phases.push_back({.number = ranks_[rank].exchanges++});
    return ranks_[rank].phases.back();
}

void ApplicationRun::broadcast(std::uint16_t rank, std::uint16_t root, std::size_t octets,
                               std::string algorithm) {
    Phase& phase = exchange(rank);
    (rank == root ? phase.input_octets : phase.output_octets) = octets;
    phase.start = [root, octets, algorithm = std::move(algorithm)](ulc_endpoint* ep, Phase& p) {
        Bytes& buffer = p.input.empty() ? p.output : p.input;
        return ulc_broadcast_start(ep, ulc_world(ep), root, buffer.data(), octets,
                                   algorithm.c_str(), &p.operation);
    };
}

void ApplicationRun::scatter(std::uint16_t rank, std::size_t block, std::string algorithm) {
    Phase& phase = exchange(rank);
    phase.input_octets = rank == 0 ? block * ranks_.size() : 0;
    phase.output_octets = block;
    phase.output_at = rank * block;
    phase.start = [block, algorithm = std::move(algorithm)](ulc_endpoint* ep, Phase& p) {
        return ulc_scatter_start(ep, ulc_world(ep), 0, p.input.data(), p.output.data(), block,
                                 algorithm.empty() ? nullptr : algorithm.c_str(), &p.operation);
    };
}

void ApplicationRun::gather(std::uint16_t rank, std::size_t block, std::string algorithm) {
    Phase& phase = exchange(rank);
    phase.input_octets = block;
    phase.input_at = rank * block;
    phase.output_octets = rank == 0 ? block * ranks_.size() : 0;
    phase.start = [block, algorithm = std::move(algorithm)](ulc_endpoint* ep, Phase& p) {
        return ulc_gather_start(ep, ulc_world(ep), 0, p.input.data(), p.output.data(), block,
                                algorithm.empty() ? nullptr : algorithm.c_str(), &p.operation);
    };
}

void ApplicationRun::allgather(std::uint16_t rank, std::size_t block, std::string algorithm) {
    Phase& phase = exchange(rank);
    phase.input_octets = block;
    phase.input_at = rank * block;
    phase.output_octets = block * ranks_.size();
    phase.start = [block, algorithm = std::move(algorithm)](ulc_endpoint* ep, Phase& p) {
        return ulc_allgather_start(ep, ulc_world(ep), p.input.data(), p.output.data(), block,
                                   algorithm.empty() ? nullptr : algorithm.c_str(), &p.operation);
    };
}

void ApplicationRun::hand_on(std::uint16_t from, std::uint16_t to, std::size_t octets) {
    const std::size_t number = std::max(ranks_[from].exchanges, ranks_[to].exchanges);
    if (from == to) return;
    for (const std::uint16_t rank : {from, to}) {
        ranks_[rank].exchanges = number;
        Phase& phase = exchange(rank);
        phase.is_message = true;
        (rank == from ? phase.input_octets : phase.output_octets) = octets;
    }
    ranks_[from].phases.back().start = [to, octets](ulc_endpoint* ep, Phase& p) {
        return ulc_send(ep, to, p.number + 1, p.input.data(), octets, &p.request);
    };
    ranks_[to].phases.back().start = [from, octets](ulc_endpoint* ep, Phase& p) {
        return ulc_receive(ep, from, p.number + 1, UINT64_MAX, p.output.data(), octets, &p.request);
    };
}

// The time that the engine took of the processor meanwhile is added at the end.
bool ApplicationRun::computed(Rank& rank, std::uint16_t node, Nanos now) {
    const Nanos busy = lib_.cluster().busy(node);
    if (!std::exchange(rank.begun, true)) {
        rank.until = now + rank.phases[rank.at].time;
        rank.busy_before = busy;
    }
    if (now < rank.until) return false;
    rank.until = now + busy - std::exchange(rank.busy_before, busy);
    return now >= rank.until;
}

bool ApplicationRun::communicated(Rank& rank, ulc_endpoint* ep) {
    Phase& phase = rank.phases[rank.at];
    if (!std::exchange(rank.begun, true)) {
        phase.input.resize(phase.input_octets);
        phase.output.resize(phase.output_octets);
        for (std::size_t i = 0; i < phase.input.size(); ++i)
            phase.input[i] = octet_of(phase.number, phase.input_at + i);
        rank.failed = phase.start(ep, phase) != ULC_OK;
        if (rank.failed) return false;
    }
    ulc_status status{};
    const int state = phase.is_message ? ulc_test(ep, &phase.request, &status)
                                       : ulc_coll_test(ep, phase.operation);
    if (state == ULC_ERR_AGAIN) return false;
    rank.failed = state != ULC_OK || status.error != ULC_OK;
    for (std::size_t i = 0; i < phase.output.size() && !rank.failed; ++i)
        rank.failed = phase.output[i] != octet_of(phase.number, phase.output_at + i);
    phase.input = {};
    phase.output = {};
    return !rank.failed;
}

Nanos ApplicationRun::act(std::uint16_t number, Nanos now) {
    Rank& rank = ranks_[number];
    while (rank.at < rank.phases.size() && !rank.failed) {
        const bool exchange = rank.phases[rank.at].start != nullptr;
        const bool over =
            exchange ? communicated(rank, lib_.endpoint(number)) : computed(rank, number, now);
        if (!over) return exchange ? now + kLookAgain : rank.until;
        rank.begun = false;
        ++rank.at;
        rank.ended = now;
    }
    return kNever;
}

double ApplicationRun::seconds() {
    if (!formed_) return std::nan("");
    const Nanos start = lib_.cluster().now();
    const auto all_ended = [&] {
        return std::ranges::all_of(
            ranks_, [](const Rank& r) { return r.failed || r.at == r.phases.size(); });
    };
    if (!lib_.run(kLimit, all_ended, [&](std::uint16_t rank, Nanos now) { return act(rank, now); }))
        return std::nan("");
    Nanos last = start;
    for (const Rank& rank : ranks_) {
        if (rank.failed) return std::nan("");
        last = std::max(last, rank.ended);
    }
    return static_cast<double>(last - start) / static_cast<double>(kSecond);
}

}  // namespace ulc::sim
