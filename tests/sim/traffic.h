// Random traffic of every kind on a cluster whose first clients form one job, judged by the oracle.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/group_handle.h"
#include "oracle.h"
#include "sim_cluster.h"

namespace ulc::sim {

struct TrafficConfig {
    unsigned messages = 300;           ///< of each rank
    std::size_t length_max = 100'000;  ///< of a message, seldom
    bool slow_readers = false;         ///< a client reads now and then only
    bool own_groups = true;
};

class Traffic {
public:
    Traffic(SimCluster& cluster, std::size_t ranks, const TrafficConfig& config, std::uint64_t seed)
        : cluster_(cluster), config_(config), prng_(seed), ranks_(static_cast<Rank>(ranks)) {
        for (Rank rank = 0; rank < ranks_; ++rank)
            world_.push_back(rank);
        state_.resize(ranks);
    }

    /// Registers a few groups everywhere and waits until each is ready. False: failed.
    bool make_groups() {
        if (!config_.own_groups || ranks_ < 3) return true;
        const GroupHandle world = cluster_.client(0).world;
        for (std::uint32_t n = 0; n < 3; ++n) {
            std::vector<Rank> members = world_;
            for (std::size_t i = members.size(); i > 1; --i)
                std::swap(members[i - 1], members[prng_.below(i)]);
            members.resize(2 + prng_.below(ranks_ - 1U));
            const GroupHandle handle = subgroup_handle(world, members, n);
            groups_.emplace_back(handle, members);
            for (const Rank rank : members)
                if (!cluster_.client(rank).add_group(handle, members)) return false;
        }
        return cluster_.run(
            kSecond,
            [&] {
                return std::ranges::all_of(groups_, [&](const auto& group) {
                    return std::ranges::all_of(group.second, [&](Rank rank) {
                        const auto& known = cluster_.client(rank).groups;
                        const auto it = known.find(group.first);
                        return it != known.end() && it->second == 0;
                    });
                });
            },
            [&] { poll_all(); });
    }

    /// Runs until everything has arrived. The empty string: all is well.
    std::string run(Nanos limit) {
        const bool done = cluster_.run(
            limit, [&] { return finished(); }, [&] { tick(); });
        if (!error_.empty()) return error_;
        if (!done)
            return "after " + std::to_string(limit / kMillisecond) +
                   " ms still due: " + std::to_string(oracle_.outstanding()) +
                   (all_sent() ? "" : ", not all sent");
        for (Rank rank = 0; rank < ranks_; ++rank)
            if (cluster_.client(rank).broken != 0) return "a completion breaks the contract";
        return {};
    }

    void tick() {
        for (Rank rank = 0; rank < ranks_; ++rank) {
            if (state_[rank].dead) continue;
            if (!config_.slow_readers || prng_.chance(0.02)) poll(rank);
            for (int n = 0; n < 4 && state_[rank].sent < config_.messages; ++n)
                if (!submit(rank)) break;
        }
    }

    /// The rank takes no further part; nothing to or from it is due.
    void dead(Rank rank) {
        state_[rank].dead = true;
        oracle_.forget(rank);
        dead_.push_back(rank);
    }
    [[nodiscard]] Oracle& oracle() noexcept { return oracle_; }
    [[nodiscard]] bool finished() const {
        return !error_.empty() || (all_sent() && oracle_.outstanding() == 0);
    }
    [[nodiscard]] const std::string& error() const noexcept { return error_; }

private:
    struct State {
        unsigned sent = 0;
        bool dead = false;
        // The message being made; kept until the ring has room for it.
        bool planned = false;
        std::uint64_t number = 0;
        std::uint32_t stream = 0;
        std::uint64_t subset = 0;
        std::size_t length = 0;
        std::size_t offset = 0;  ///< in chunks
        std::vector<Rank> to;
    };

    [[nodiscard]] bool all_sent() const {
        return std::ranges::all_of(
            state_, [&](const State& s) { return s.dead || s.sent == config_.messages; });
    }
    void poll_all() {
        for (Rank rank = 0; rank < ranks_; ++rank)
            poll(rank);
    }
    void poll(Rank rank) {
        RingClient& client = cluster_.client(rank);
        client.poll();
        for (const Message& message : client.messages) {
            if (std::ranges::count(dead_, message.source) != 0) continue;
            const std::string error = oracle_.received(rank, message);
            if (!error.empty() && error_.empty()) error_ = error;
        }
        client.messages.clear();
        for (const auto& [cookie, status] : client.sends_done)
            if (status != 0 && dead_.empty() && error_.empty())
                error_ = "send failed with " + std::to_string(status);
        client.sends_done.clear();
    }

    void plan(Rank rank, State& s) {
        s.planned = true;
        s.offset = 0;
        s.subset = 0;
        s.number = (std::uint64_t{rank} << 32) + s.sent + 1;
        const std::uint64_t size = prng_.below(10);
        s.length = size < 6   ? prng_.below(64)
                   : size < 9 ? prng_.below(4000)
                              : prng_.below(config_.length_max);
        const std::uint64_t kind = prng_.below(10);
        std::vector<Rank> members = world_;
        s.stream = cluster_.client(rank).world;
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
        if (kind != 9) return;
        s.to.clear();
        while (s.to.empty()) {
            s.subset = prng_.next() & ((1ULL << members.size()) - 1);
            for (std::size_t i = 0; i < members.size(); ++i)
                if ((s.subset >> i & 1U) != 0 && members[i] != rank) s.to.push_back(members[i]);
        }
        s.length =
            std::min<std::size_t>(s.length, 30'000);  // one record: the test client cuts no subsets
    }

    bool submit(Rank rank) {
        State& s = state_[rank];
        if (!s.planned) plan(rank, s);
        RingClient& client = cluster_.client(rank);
        const std::vector<std::byte> payload = Oracle::payload(s.number, s.length);
        constexpr std::size_t kChunk = 16384;
        if (s.length > 2 * kChunk && s.subset == 0) {
            while (s.offset < s.length) {
                const std::size_t octets = std::min(kChunk, s.length - s.offset);
                if (!client.send_chunk(s.stream, s.number,
                                       std::span(payload).subspan(s.offset, octets), s.offset,
                                       s.length))
                    return false;
                s.offset += octets;
            }
        } else if (!client.send(s.stream, s.number, payload, s.subset)) {
            return false;
        }
        std::vector<Rank> alive;
        std::ranges::copy_if(s.to, std::back_inserter(alive),
                             [&](Rank to) { return std::ranges::count(dead_, to) == 0; });
        oracle_.sent(rank, alive, s.number, s.length, is_group(s.stream) ? s.stream : 0);
        ++s.sent;
        s.planned = false;
        return true;
    }

    SimCluster& cluster_;
    TrafficConfig config_;
    Prng prng_;
    Rank ranks_;
    std::vector<Rank> world_;
    std::vector<std::pair<GroupHandle, std::vector<Rank>>> groups_;
    std::vector<State> state_;
    std::vector<Rank> dead_;
    Oracle oracle_;
    std::string error_;
};

}  // namespace ulc::sim
