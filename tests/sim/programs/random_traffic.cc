// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/random_traffic.h"

#include <algorithm>
#include <span>

#include "abi/records.h"
#include "base/group_handle.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kChunk = 16384;
constexpr unsigned kGroups = 3;
constexpr std::size_t kSubsetOctetsMax = 30'000;  ///< one record: the ring client cuts no subsets

}  // namespace

Traffic::Traffic(SimCluster& cluster, std::size_t ranks, const TrafficConfig& config,
                 std::uint64_t seed)
    : cluster_(cluster),
      config_(config),
      prng_(seed),
      ranks_(static_cast<Rank>(ranks)),
      state_(ranks) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
        world_.push_back(rank);
        state_[rank].actor = std::make_unique<Actor>(*this, rank);
    }
}

Traffic::~Traffic() {
    for (Rank rank = 0; rank < ranks_; ++rank)
        if (!cluster_.gone(rank)) cluster_.set_program(rank, nullptr);
}

bool Traffic::make_groups(Nanos limit) {
    if (!config_.own_groups || ranks_ < 3) return true;
    const GroupHandle world = cluster_.client(0).world;
    for (std::uint32_t n = 0; n < kGroups; ++n) {
        std::vector<Rank> members = world_;
        for (std::size_t i = members.size(); i > 1; --i)
            std::swap(members[i - 1], members[prng_.below(i)]);
        members.resize(2 + prng_.below(ranks_ - 1U));
        const GroupHandle handle = subgroup_handle(world, members, n);
        groups_.emplace_back(handle, members);
        for (const Rank rank : members)
            if (!cluster_.client(rank).add_group(handle, members)) return false;
    }
    const auto ready = [&](Rank rank, GroupHandle handle) {
        const auto& known = cluster_.client(rank).groups;
        const auto it = known.find(handle);
        return it != known.end() && it->second == 0;
    };
    return cluster_.run(
        limit,
        [&] {
            return std::ranges::all_of(groups_, [&](const auto& group) {
                return std::ranges::all_of(group.second,
                                           [&](Rank rank) { return ready(rank, group.first); });
            });
        },
        [&] {
            for (Rank rank = 0; rank < ranks_; ++rank)
                cluster_.client(rank).poll();
        });
}

void Traffic::start() {
    for (Rank rank = 0; rank < ranks_; ++rank)
        if (!is_dead(rank)) cluster_.set_program(rank, state_[rank].actor.get());
}

std::string Traffic::run(Nanos limit) {
    start();
    if (!cluster_.run(limit, [&] { return finished(); }))
        return "after " + std::to_string(limit / kMillisecond) + " ms still due: " + due();
    return error_;
}

std::string Traffic::due() const {
    return std::to_string(oracle_.outstanding()) + (all_sent() ? "" : ", not all sent") +
           ", first " + oracle_.first_due();
}

void Traffic::farewell() {
    farewell_ = true;
    ++config_.messages;
    config_.think = 0;
    config_.read_gap = 0;
    for (State& s : state_)
        s.read_at = s.send_at = 0;
    start();
}

void Traffic::dead(Rank rank) {
    state_[rank].dead = true;
    anyone_dead_ = true;
    oracle_.forget(rank);
}

bool Traffic::all_sent() const {
    return std::ranges::all_of(
        state_, [&](const State& s) { return s.dead || s.sent == config_.messages; });
}

bool Traffic::finished() const {
    return !error_.empty() || (all_sent() && (oracle_.outstanding() == 0 || !config_.repairs));
}

Nanos Traffic::around(Nanos mean) {
    return mean == 0 ? 0
                     : static_cast<Nanos>(prng_.below(static_cast<std::uint64_t>(2 * mean))) + 1;
}

Nanos Traffic::act(Rank rank, Nanos now) {
    State& s = state_[rank];
    if (s.dead) return kNever;
    // A lag begins with possible news: a reader that polled all the time would take most of the
    // turns.
    if (config_.read_gap > 0 && s.read_at == kNever) {
        s.read_at = now + around(config_.read_gap);
    } else if (now >= s.read_at) {
        poll(rank);
        s.read_at = config_.read_gap > 0 ? kNever : 0;
    }
    while (s.sent < config_.messages && now >= s.send_at) {
        if (!submit(rank)) break;
        s.send_at = now + around(config_.think);
    }
    Nanos next = config_.read_gap > 0 ? s.read_at : kNever;
    if (s.sent < config_.messages && s.send_at > now) next = std::min(next, s.send_at);
    return next;
}

void Traffic::poll(Rank rank) {
    RingClient& client = cluster_.client(rank);
    client.poll();
    for (const Message& message : client.messages) {
        if (is_dead(message.source)) continue;
        ++delivered_;
        const std::string error = config_.repairs ? oracle_.received(rank, message)
                                                  : oracle_.received_in_stream(rank, message);
        if (!error.empty() && error_.empty()) error_ = error;
    }
    client.messages.clear();
    for (const auto& [cookie, status] : client.sends_done)
        if (status != 0 && !anyone_dead_ && error_.empty())
            error_ = "send failed with " + std::to_string(status);
    client.sends_done.clear();
    if (client.broken != 0 && error_.empty()) error_ = "a completion breaks the contract";
    const auto lives = [this](Rank peer) { return !is_dead(peer); };
    if (error_.empty() && (std::ranges::any_of(client.peers_died, lives) ||
                           std::ranges::any_of(client.peers_left, lives)))
        error_ = "rank " + std::to_string(rank) + " got a report that a live peer is gone";
    if (client.closed() != 0 && error_.empty())
        error_ = "rank " + std::to_string(rank) + " was closed: " + std::to_string(client.closed());
}

void Traffic::plan(Rank rank, State& s) {
    s.planned = true;
    s.offset = 0;
    s.subset = 0;
    s.number = (std::uint64_t{rank} << 32) + s.sent + 1;
    const std::uint64_t size = prng_.below(10);
    s.length = size < 6   ? prng_.below(2 * abi::kInlineOctetsMax)
               : size < 9 ? prng_.below(4000)
                          : prng_.below(config_.length_max);
    const std::uint64_t kind = prng_.below(10);
    std::vector<Rank> members = world_;
    s.stream = cluster_.client(rank).world;
    if (farewell_) {
        s.to = world_;
        return;
    }
    if (kind < 5) {
        Rank to = 0;
        do {
            to = static_cast<Rank>(prng_.below(ranks_));
        } while (to == rank);
        s.stream = to;
        s.to = {to};
        return;
    }
    if (kind >= 7 && !groups_.empty()) {
        const auto& group = groups_[prng_.below(groups_.size())];
        if (std::ranges::count(group.second, rank) != 0) {
            s.stream = group.first;
            members = group.second;
        }
    }
    s.to = members;
    if (kind == 9 && members.size() <= 64) plan_subset(rank, s, members);
}

void Traffic::plan_subset(Rank rank, State& s, const std::vector<Rank>& members) {
    s.to.clear();
    while (s.to.empty()) {
        const std::uint64_t all = members.size() == 64 ? UINT64_MAX : (1ULL << members.size()) - 1;
        s.subset = prng_.next() & all;
        for (std::size_t i = 0; i < members.size(); ++i)
            if ((s.subset >> i & 1U) != 0 && members[i] != rank) s.to.push_back(members[i]);
    }
    s.length = std::min(s.length, kSubsetOctetsMax);
}

bool Traffic::submit(Rank rank) {
    State& s = state_[rank];
    if (!s.planned) plan(rank, s);
    RingClient& client = cluster_.client(rank);
    const std::vector<std::byte> payload = Oracle::payload(s.number, s.length);
    if (s.length > 2 * kChunk && s.subset == 0) {
        while (s.offset < s.length) {
            const std::size_t octets = std::min(kChunk, s.length - s.offset);
            if (!client.send_chunk(s.stream, s.number, std::span(payload).subspan(s.offset, octets),
                                   s.offset, s.length))
                return false;
            s.offset += octets;
        }
    } else if (!client.send(s.stream, s.number, payload, s.subset)) {
        return false;
    }
    std::vector<Rank> alive;
    std::ranges::copy_if(s.to, std::back_inserter(alive), [&](Rank to) { return !is_dead(to); });
    oracle_.sent(rank, alive, s.number, s.length, is_group(s.stream) ? s.stream : 0);
    ++s.sent;
    s.planned = false;
    return true;
}

}  // namespace ulc::sim
