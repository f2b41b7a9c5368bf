// SPDX-License-Identifier: BSD-3-Clause
// One rank of a random liveness scenario: it sends now and then to one peer or to all, takes what
// comes, and counts both. Used by liveness_run.cc and busy_run.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "abi/records.h"
#include "base/prng.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {

class Talker : public Program {
public:
    /// `first`: the client that is rank 0. `think`: mean time between two messages. `talkative`:
    /// chance that the rank sends at all.
    Talker(SimCluster& cluster, std::size_t first, std::size_t rank, std::uint16_t ranks,
           Nanos think, double talkative, std::uint64_t seed)
        : sent(ranks),
          received(ranks),
          cluster_(cluster),
          index_(first + rank),
          rank_(rank),
          think_(think),
          prng_(seed),
          talks_(prng_.chance(talkative)) {}
    Nanos act(Nanos now) override {
        RingClient& client = cluster_.client(index_);
        client.poll();
        for (const Message& message : client.messages)
            ++received[message.source];
        client.messages.clear();
        for (const Rank rank : client.peers_died)
            died_at.emplace(rank, now);
        if (!talks_ || now < send_at_) return talks_ ? send_at_ : kNever;
        send_at_ =
            now + 1 + static_cast<Nanos>(prng_.below(2 * static_cast<std::uint64_t>(think_)));
        say(client);
        return send_at_;
    }
    void fall_silent() { talks_ = false; }
    [[nodiscard]] std::size_t index() const { return index_; }
    [[nodiscard]] bool holds_dead(std::size_t rank) const {
        const std::vector<Rank>& died = cluster_.client(index_).peers_died;
        return std::ranges::find(died, static_cast<Rank>(rank)) != died.end();
    }
    [[nodiscard]] bool all_done() const {
        const RingClient& client = cluster_.client(index_);
        return std::ranges::all_of(
            cookies_, [&](std::uint32_t cookie) { return client.sends_done.contains(cookie); });
    }

    std::vector<std::uint64_t> sent;      ///< by rank
    std::vector<std::uint64_t> received;  ///< by rank
    std::map<Rank, Nanos> died_at;        ///< time at which this rank was notified

private:
    static constexpr std::size_t kOctetsMax = 3000;

    void say(RingClient& client) {
        const bool to_all = prng_.chance(0.3);
        auto to = static_cast<Rank>(prng_.below(sent.size()));
        if (to == rank_) to = static_cast<Rank>((to + 1U) % sent.size());
        // Longer than a record holds, so that each send has an answer.
        const std::size_t octets =
            std::max<std::size_t>(100 + prng_.below(kOctetsMax - 100), abi::kInlineOctetsMax + 1);
        const std::uint32_t cookie = client.cookie_next();
        if (!client.send(to_all ? client.world : to, 1, Oracle::payload(1, octets))) return;
        cookies_.push_back(cookie);
        for (std::size_t rank = 0; rank < sent.size(); ++rank)
            if (rank != rank_ && (to_all || rank == to)) ++sent[rank];
    }

    SimCluster& cluster_;
    std::size_t index_;
    std::size_t rank_;
    Nanos think_;
    Prng prng_;
    bool talks_;
    Nanos send_at_ = 0;
    std::vector<std::uint32_t> cookies_;
};

/// Names two ranks in a message for people.
[[nodiscard]] inline std::string pair_text(std::size_t a, std::size_t b) {
    return "ranks " + std::to_string(a) + " and " + std::to_string(b);
}

/// Returns the first send that waits, or the first message that was lost or came twice, of the
/// ranks of one job; empty: there is none. Ranks that hold each other for dead may miss some.
template <typename Talkers>
[[nodiscard]] std::string unfinished(const SimCluster& cluster, const Talkers& talkers) {
    for (std::size_t a = 0; a < talkers.size(); ++a) {
        if (cluster.gone(talkers[a]->index())) continue;
        if (!talkers[a]->all_done()) return "rank " + std::to_string(a) + " has a send that waits";
        for (std::size_t b = 0; b < talkers.size(); ++b) {
            if (cluster.gone(talkers[b]->index())) continue;
            const std::uint64_t sent = talkers[a]->sent[b];
            const std::uint64_t got = talkers[b]->received[a];
            const bool dead = talkers[a]->holds_dead(b);
            if (got > sent || (!dead && got != sent))
                return pair_text(a, b) + ": " + std::to_string(sent) + " sent, " +
                       std::to_string(got) + " received" + (dead ? ", dead" : "");
        }
    }
    return {};
}

}  // namespace ulc::sim
