// SPDX-License-Identifier: BSD-3-Clause
// Random traffic between members, and its oracle: unicast, world and subgroup multicasts, and
// subsets mixed, over a wire that loses, duplicates and reorders by seed. Each receiver gets each
// source's packets for it exactly once in submission order; everything drains in bounded virtual
// time, and every segment comes back. A profile that does not recover delivers its packets in
// order, and reports at least the packets that its receivers lacked before.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string_view>

#include "tests/unit/urtp/world.h"
#include "urtp/policy.h"

namespace ulc::urtp::test {

struct Scenario {
    std::uint16_t size = 2;
    int packets = 1000;
    Params params;
    Faults faults;
    std::uint32_t first_seq = 0;
    std::string_view profile = kDefaultProfile;
    /// Share of rounds in which a member does not take the packets that are ready
    double slow_reader = 0;
};

class Play {
public:
    Play(const Scenario& scenario, std::uint64_t seed)
        : scenario_(scenario),
          random_(seed),
          world_(scenario.size, scenario.params, scenario.faults, seed, scenario.first_seq,
                 scenario.profile),
          expected_(scenario.size, std::vector<std::deque<std::string>>(scenario.size)),
          left_(scenario.size, scenario.packets),
          skipped_(scenario.size) {
        Policy policy;
        Params params;
        EXPECT_EQ(resolve(scenario.profile, policy, params), Err::kOk);
        recovers_ = policy.recovers;
        groups_.emplace_back(kWorld, std::vector<Rank>());
        for (Rank r = 0; r < scenario.size; ++r)
            groups_[0].second.push_back(r);
        for (std::uint32_t g = 0; g < 3; ++g)
            add_group(kGroupBit | (100 + g));
    }

    void run() {
        const Nanos deadline = world_.now + 3000 * kSecond;
        while (!finished()) {
            ASSERT_LT(world_.now, deadline) << "stuck: " << state();
            for (Rank r = 0; r < scenario_.size; ++r) {
                for (std::uint64_t burst = random_.below(8); burst > 0 && left_[r] > 0; --burst)
                    submit(r);
                if (!random_.chance(scenario_.slow_reader)) take(r);
            }
            if (between) between(world_);
            if (::testing::Test::HasFatalFailure()) return;
            if (!world_.step(world_.now + 50 * kMicrosecond)) continue;
        }
        if (!recovers_) settle_losses();
        for (Rank r = 0; r < scenario_.size; ++r) {
            EXPECT_EQ(world_.count(r, Counter::drop_after_unmeetable), 0U);
            EXPECT_EQ(world_.count(r, Counter::drop_ack_range), 0U);
            EXPECT_EQ(world_.count(r, Counter::drop_ack_stream), 0U);
            EXPECT_EQ(world_.count(r, Counter::drop_beyond_window), 0U);
            EXPECT_EQ(world_.count(r, Counter::drop_wrong_source), 0U);
            EXPECT_EQ(world_.count(r, Counter::peers_dead), 0U);
        }
    }

    [[nodiscard]] World& world() { return world_; }

    std::function<void(World&)> between;  ///< called between two rounds

private:
    void add_group(GroupHandle handle) {
        std::vector<Rank> ranks;
        for (Rank r = 0; r < scenario_.size; ++r) {
            if (random_.chance(0.6)) ranks.push_back(r);
        }
        for (std::size_t i = ranks.size(); i > 1; --i)
            std::swap(ranks[i - 1], ranks[random_.below(i)]);
        for (const Rank r : ranks)
            ASSERT_EQ(world_.members[r]->add_group(handle, ranks), Err::kOk);
        groups_.emplace_back(handle, ranks);
    }

    void submit(Rank from) {
        PacketMeta meta;
        std::vector<Rank> to;
        if (random_.chance(0.4)) {
            Rank other = static_cast<Rank>(random_.below(scenario_.size));
            if (other == from) other = static_cast<Rank>((other + 1) % scenario_.size);
            meta.stream = unicast_to(other);
            to.push_back(other);
        } else {
            const auto& [handle, ranks] = groups_[random_.below(groups_.size())];
            if (std::find(ranks.begin(), ranks.end(), from) == ranks.end()) return;
            meta.stream = handle;
            meta.has_subset = random_.chance(0.3);
            for (std::size_t i = 0; i < ranks.size(); ++i) {
                if (meta.has_subset && random_.chance(0.5)) continue;
                meta.subset |= 1ULL << i;
                if (ranks[i] != from) to.push_back(ranks[i]);
            }
            if (meta.subset == 0) return;
        }
        meta.ack_now = random_.chance(0.02);
        std::string text = std::to_string(from) + ':' + std::to_string(left_[from]);
        if (left_[from] % 3 == 0) text.resize(200, '.');  // long enough for a reservation
        meta.message_length = text.size();
        if (world_.send(from, meta, text) != Admission::kYes) return;
        --left_[from];
        for (const Rank r : to)
            expected_[r][from].push_back(text);
    }

    void take(Rank rank) {
        for (int i = 0; i < 64; ++i) {
            const Rank source = world_.members[rank]->next_source();
            if (source == kNoRank) break;
            ReadyPacket packet;
            ASSERT_TRUE(world_.members[rank]->front(source, packet));
            const std::string text(reinterpret_cast<const char*>(packet.payload), packet.length);
            auto& queue = expected_[rank][source];
            if (!recovers_) skip_lost(queue, text, skipped_[rank]);
            ASSERT_FALSE(queue.empty()) << "unexpected " << text << " at " << rank;
            ASSERT_EQ(text, queue.front()) << "at " << rank << " from " << source;
            queue.pop_front();
            world_.members[rank]->pop(source, world_.now);
        }
        for (Rank source = 0; source < scenario_.size; ++source) {
            if (!expected_[rank][source].empty()) world_.members[rank]->expect(source, world_.now);
        }
    }

    [[nodiscard]] bool finished() const {
        for (Rank r = 0; r < scenario_.size; ++r) {
            if (left_[r] > 0) return false;
            for (const auto& queue : expected_[r]) {
                if (!queue.empty() && recovers_) return false;
            }
        }
        return world_.drained();
    }
    /// Brings `text` to the front. If frames overtake each other, the streams of a profile that
    /// does not recover may do so too.
    void skip_lost(std::deque<std::string>& queue, const std::string& text,
                   std::uint64_t& skipped) const {
        const auto found = std::find(queue.begin(), queue.end(), text);
        if (found == queue.end()) return;
        if (scenario_.faults.reorder > 0) {
            queue.erase(found);
            queue.push_front(text);
            return;
        }
        skipped += static_cast<std::uint64_t>(found - queue.begin());
        queue.erase(queue.begin(), found);
    }

    /// Delivers everything in flight. A packet that no later packet followed is the tail, which
    /// only recovery could miss.
    void settle_losses() {
        for (int i = 0; i < 1000; ++i) {
            world_.run_for(kMillisecond);
            for (Rank r = 0; r < scenario_.size; ++r)
                take(r);
        }
        const bool faultless = scenario_.faults.loss == 0 && scenario_.faults.reorder == 0 &&
                               scenario_.slow_reader == 0;
        for (Rank r = 0; r < scenario_.size; ++r) {
            std::uint64_t reported = 0;
            Event event;
            while (world_.members[r]->poll_event(event)) {
                EXPECT_EQ(event.kind, EventKind::kLost);
                reported += event.count;
            }
            EXPECT_LE(skipped_[r], reported) << "lost in silence at " << r;
            if (!faultless) continue;
            EXPECT_EQ(reported, 0U);
            for (const auto& queue : expected_[r])
                EXPECT_TRUE(queue.empty());
        }
    }

    [[nodiscard]] std::string state() const {
        std::string text;
        for (Rank r = 0; r < scenario_.size; ++r) {
            text +=
                "\n rank " + std::to_string(r) + " left " + std::to_string(left_[r]) + " expects";
            for (const auto& queue : expected_[r])
                text += ' ' + std::to_string(queue.size());
            text += world_.members[r]->drained() ? " drained" : " not drained";
        }
        return text;
    }

    Scenario scenario_;
    Prng random_;
    World world_;
    std::vector<std::vector<std::deque<std::string>>> expected_;
    std::vector<int> left_;
    std::vector<std::uint64_t>
        skipped_;  ///< by receiver: due packets that later ones overtook for good
    bool recovers_ = true;
    std::vector<std::pair<GroupHandle, std::vector<Rank>>> groups_;
};

}  // namespace ulc::urtp::test
