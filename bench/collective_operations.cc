// SPDX-License-Identifier: BSD-3-Clause
#include "bench/collective_operations.h"

#include <array>
#include <cstring>
#include <memory>

namespace ulc::bench {
namespace {

constexpr std::array<std::string_view, kCollectives> kNames{
    "barrier", "broadcast", "gather",         "scatter", "allgather", "alltoall",
    "reduce",  "allreduce", "reduce_scatter", "scan",    "exscan"};

using Octets = std::vector<unsigned char>;

/// Returns the value that `from` has for `to` in a total exchange.
std::uint64_t stamp_of(std::uint16_t from, std::uint16_t to) { return from * 1000U + to; }

Operation broadcast(Transport& transport, std::size_t octets, const char* algorithm) {
    auto buffer = std::make_shared<Octets>(payload_of(transport.rank(), octets));
    return {[=, &transport](std::uint16_t root) {
                transport.broadcast(root, buffer->data(), octets, algorithm);
            },
            // The first root's bytes go round from root to root.
            [=] { return *buffer == payload_of(0, octets); }};
}

/// `octets` of each of the ranks, `stamps(rank)`, one behind the other.
template <typename Stamps>
Octets blocks_of(std::uint16_t ranks, std::size_t octets, Stamps stamps) {
    Octets blocks(octets * ranks);
    for (std::uint16_t rank = 0; octets > 0 && rank < ranks; ++rank) {
        const Octets block = payload_of(stamps(rank), octets);
        std::memcpy(blocks.data() + rank * octets, block.data(), octets);
    }
    return blocks;
}

/// gather, scatter, allgather, alltoall.
Operation exchange(Transport& transport, Collective collective, std::size_t octets,
                   const char* algorithm) {
    const std::uint16_t ranks = transport.size();
    const std::uint16_t self = transport.rank();
    const auto own = [](std::uint16_t rank) { return std::uint64_t{rank}; };
    const auto sent = [=](std::uint16_t to) { return stamp_of(self, to); };
    const auto received = [=](std::uint16_t from) { return stamp_of(from, self); };
    auto one = std::make_shared<Octets>(payload_of(self, octets));
    const bool total = collective == Collective::kAlltoall;
    auto all = std::make_shared<Octets>(total ? blocks_of(ranks, octets, sent)
                                              : blocks_of(ranks, octets, own));
    if (collective == Collective::kScatter) {
        auto got = std::make_shared<Octets>(octets);
        return {[=, &transport](std::uint16_t root) {
                    transport.scatter(root, all->data(), got->data(), octets, algorithm);
                },
                [=] { return *got == *one; }};
    }
    auto out = std::make_shared<Octets>(octets * ranks);
    if (collective == Collective::kGather)
        return {[=, &transport](std::uint16_t root) {
                    transport.gather(root, one->data(), out->data(), octets, algorithm);
                },
                [=] { return *out == *all; }};
    if (collective == Collective::kAllgather)
        return {[=, &transport](std::uint16_t) {
                    transport.allgather(one->data(), out->data(), octets, algorithm);
                },
                [=] { return *out == *all; }};
    return {[=, &transport](std::uint16_t) {
                transport.alltoall(all->data(), out->data(), octets, algorithm);
            },
            [=] { return *out == blocks_of(ranks, octets, received); }};
}

/// Sums of doubles that are exact: element i of rank r is r + i.
Operation reduction(Transport& transport, Collective collective, std::size_t octets,
                    const char* algorithm) {
    const std::uint16_t ranks = transport.size();
    const std::uint16_t self = transport.rank();
    const std::size_t count = octets / sizeof(double);
    const bool by_blocks = collective == Collective::kReduceScatter;
    auto in = std::make_shared<std::vector<double>>(by_blocks ? count * ranks : count);
    for (std::size_t i = 0; i < in->size(); ++i)
        (*in)[i] = static_cast<double>(self + i);
    auto out = std::make_shared<std::vector<double>>(count);
    const auto right = [=] {
        if (collective == Collective::kExscan && self == 0) return true;  // it gets nothing
        const std::size_t before = by_blocks ? self * count : 0;
        const std::size_t folded = collective == Collective::kScan     ? self + 1U
                                   : collective == Collective::kExscan ? self
                                                                       : ranks;
        bool all = true;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t sum = folded * (folded - 1) / 2 + folded * (before + i);
            all = all && (*out)[i] == static_cast<double>(sum);
        }
        return all;
    };
    const auto once = [=, &transport](std::uint16_t root) {
        if (collective == Collective::kReduce) {
            transport.reduce(root, in->data(), out->data(), count, algorithm);
        } else if (collective == Collective::kAllreduce) {
            transport.allreduce(in->data(), out->data(), count, algorithm);
        } else if (by_blocks) {
            transport.reduce_scatter(in->data(), out->data(), count, algorithm);
        } else if (collective == Collective::kScan) {
            transport.scan(in->data(), out->data(), count, algorithm);
        } else {
            transport.exscan(in->data(), out->data(), count, algorithm);
        }
    };
    return {once, right};
}

}  // namespace

std::string_view name_of(Collective collective) {
    return kNames[static_cast<std::uint32_t>(collective)];
}

Operation make_operation(Transport& transport, Collective collective, std::size_t octets,
                         const char* algorithm) {
    switch (collective) {
        case Collective::kBarrier:
            return {[=, &transport](std::uint16_t) { transport.barrier(algorithm); },
                    [] { return true; }};
        case Collective::kBroadcast:
            return broadcast(transport, octets, algorithm);
        case Collective::kGather:
        case Collective::kScatter:
        case Collective::kAllgather:
        case Collective::kAlltoall:
            return exchange(transport, collective, octets, algorithm);
        case Collective::kReduce:
        case Collective::kAllreduce:
        case Collective::kReduceScatter:
        case Collective::kScan:
        case Collective::kExscan:
            return reduction(transport, collective, octets, algorithm);
    }
    return {};
}

std::uint64_t octets_at_least(Collective collective, std::uint64_t octets, std::uint64_t ranks) {
    switch (collective) {
        case Collective::kBarrier:
            return 0;
        case Collective::kBroadcast:
            return octets;
        case Collective::kGather:
        case Collective::kScatter:
        case Collective::kReduce:
        case Collective::kScan:
        case Collective::kExscan:
            return (ranks - 1) * octets;
        case Collective::kAllgather:
        case Collective::
            // All operands except that of the rank that makes the result, and the result
            kAllreduce:
            return ranks * octets;
        case Collective::kAlltoall:
        case Collective::kReduceScatter:
            return ranks * (ranks - 1) * octets;
    }
    return 0;
}

}  // namespace ulc::bench
