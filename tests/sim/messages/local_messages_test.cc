// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of one engine talk to each other: short messages pass without a frame where nothing
// waits (urtp::Transport::pass()), all others as frames. The order of a source is the same as if
// all had been frames, with multicasts, long messages, receivers that are slow, and ends.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "engine/engine.h"
#include "tests/sim/cluster/ring_client.h"
#include "tests/sim/cluster/sim_net.h"
#include "urtp/context.h"

namespace ulc::sim {
namespace {

constexpr Rank kRanks = 3;
constexpr std::uint32_t kShort = abi::kInlineOctetsMax;

NetConfig net_config(std::uint64_t seed) {
    NetConfig config;
    config.seed = seed;
    return config;
}

/// One engine, and a job whose ranks are its endpoints.
class LocalMessages : public ::testing::Test {
protected:
    void open(std::uint32_t completions, std::uint64_t seed = 1) {
        net_ = std::make_unique<SimNet>(net_config(seed));
        engine::EngineConfig config;
        config.seed = seed;
        config.linger_max = kSecond;
        const Port port = net_->port(0);
        engine_ = std::make_unique<engine::Engine>(config, std::span<const Port>(&port, 1));
        for (Rank rank = 0; rank < kRanks; ++rank) {
            memories_.push_back(std::make_unique<RegionMemory>(
                abi::RegionSizes{64, completions, 256U << 10, 256U << 10}));
            const RegionMemory& memory = *memories_.back();
            const auto id = engine_->attach(memory.base(), memory.layout(), 0);
            ASSERT_TRUE(id.ok());
            ids_.push_back(id.value());
            clients_.push_back(std::make_unique<RingClient>(memory.base(), memory.layout()));
            ASSERT_TRUE(clients_.back()->join("job", rank, kRanks));
        }
        for (int turn = 0; turn < 20'000 && !formed(); ++turn)
            run(UINT32_MAX);
        ASSERT_TRUE(formed());
        wanted_.assign(std::size_t{kRanks} * kRanks, {});
    }
    void TearDown() override {
        if (engine_ == nullptr) return;
        for (const engine::EndpointId id : ids_)
            engine_->detach(id, engine::DetachReason::kClosed, net_->now());
        for (int turn = 0; turn < 200'000 && !engine_->drained(); ++turn)
            run(UINT32_MAX);
        EXPECT_TRUE(engine_->drained());
        engine_.reset();
        net_->drop_all();
        EXPECT_EQ(net_->segments_out(0), 0U);
    }
    [[nodiscard]] bool formed() const {
        for (const auto& client : clients_)
            if (!client->formed()) return false;
        return true;
    }
    /// One round of the engine; then each client takes at most `limit` completions.
    void run(unsigned limit) {
        net_->begin_turn(0);
        engine_->poll(net_->now());
        engine_->check_invariants();
        net_->advance(net_->now() + kMicrosecond);
        for (const auto& client : clients_)
            client->poll(limit);
        check();
    }
    /// Sends a message that names itself to one rank, or to all. False: the ring is full.
    bool send(Rank from, Rank to, bool all, std::uint32_t octets) {
        std::vector<std::byte> payload(octets, static_cast<std::byte>(number_));
        const std::uint64_t tag = number_;
        const std::uint32_t stream = all ? clients_[from]->world : std::uint32_t{to};
        if (!clients_[from]->send(stream, tag, payload)) return false;
        ++number_;
        for (Rank rank = 0; rank < kRanks; ++rank)
            if (all ? rank != from : rank == to) wanted(from, rank).push_back({tag, octets});
        return true;
    }
    struct Wanted {
        std::uint64_t tag;
        std::uint32_t octets;
    };
    std::deque<Wanted>& wanted(Rank from, Rank to) {
        return wanted_[std::size_t{from} * kRanks + to];
    }
    /// Fails unless each message is the next of its source.
    void check() {
        for (Rank rank = 0; rank < kRanks && !wanted_.empty(); ++rank) {
            for (const Message& message : clients_[rank]->messages) {
                auto& next = wanted(message.source, rank);
                ASSERT_FALSE(next.empty());
                ASSERT_EQ(message.tag, next.front().tag) << message.source << " to " << rank;
                ASSERT_EQ(message.payload.size(), next.front().octets);
                for (const std::byte octet : message.payload)
                    ASSERT_EQ(octet, static_cast<std::byte>(message.tag));
                next.pop_front();
            }
            clients_[rank]->messages.clear();
        }
    }
    [[nodiscard]] bool all_came() const {
        for (const auto& one : wanted_)
            if (!one.empty()) return false;
        return true;
    }
    void finish() {
        for (int turn = 0; turn < 1'000'000 && !all_came(); ++turn)
            run(UINT32_MAX);
        EXPECT_TRUE(all_came());
    }
    [[nodiscard]] std::uint64_t count(Counter id) const { return engine_->counters().get(id); }

    std::unique_ptr<SimNet> net_;
    std::unique_ptr<engine::Engine> engine_;
    std::vector<std::unique_ptr<RegionMemory>> memories_;
    std::vector<std::unique_ptr<RingClient>> clients_;
    std::vector<engine::EndpointId> ids_;
    std::vector<std::deque<Wanted>> wanted_;  ///< by source and receiver
    std::uint64_t number_ = 1;
};

TEST_F(LocalMessages, short_messages_pass_without_frames_once_both_know_each_other) {
    open(64);
    for (int turn = 0; turn < 10; ++turn) {
        ASSERT_TRUE(send(0, 1, false, 8));
        finish();
        ASSERT_TRUE(send(1, 0, false, 8));
        finish();
    }
    const std::uint64_t frames = count(Counter::loopback_frames);
    const std::uint64_t passed = count(Counter::passed_messages);
    for (int turn = 0; turn < 100; ++turn) {
        ASSERT_TRUE(send(0, 1, false, 8));
        finish();
        ASSERT_TRUE(send(0, 1, false, 0));
        finish();
        ASSERT_TRUE(send(1, 0, false, kShort));
        finish();
    }
    EXPECT_EQ(count(Counter::loopback_frames), frames);
    EXPECT_EQ(count(Counter::passed_messages), passed + 300);
}

TEST_F(LocalMessages, short_multicasts_reach_all_members_without_repairs) {
    open(64);
    for (int turn = 0; turn < 100; ++turn) {
        ASSERT_TRUE(send(0, 0, true, 8));
        finish();
    }
    EXPECT_EQ(count(Counter::repair_unicast) + count(Counter::repair_multicast), 0U);
    EXPECT_EQ(count(Counter::req_sent), 0U);
}

// O-4
TEST_F(LocalMessages, a_message_does_not_overtake_a_multicast) {
    open(64);
    for (int turn = 0; turn < 50; ++turn) {
        ASSERT_TRUE(send(0, 1, false, 8));
        ASSERT_TRUE(send(0, 0, true, turn % 2 == 0 ? 8 : 2000));
        ASSERT_TRUE(send(0, 1, false, 8));
        ASSERT_TRUE(send(0, 2, false, 8));
        finish();
    }
}

TEST_F(LocalMessages, a_message_does_not_overtake_a_long_one) {
    open(64);
    for (int turn = 0; turn < 50; ++turn) {
        ASSERT_TRUE(send(0, 1, false, 8));
        ASSERT_TRUE(send(0, 1, false, 5000));
        ASSERT_TRUE(send(0, 1, false, 8));
        finish();
    }
}

TEST_F(LocalMessages, a_receiver_that_takes_nothing_gets_all_later) {
    open(16);
    for (int turn = 0; turn < 20; ++turn) {
        for (int sent = 0; sent < 60; ++sent) {
            (void)send(0, 1, false, 8);
            (void)send(2, 1, false, 16);
            run(0);
        }
        finish();
    }
}

TEST_F(LocalMessages, random_traffic_keeps_its_order) {
    std::uint64_t passed = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        open(seed % 2 == 0 ? 16 : 256, seed);
        Prng random(seed);
        for (int step = 0; step < 2000 && !HasFatalFailure(); ++step) {
            const auto from = static_cast<Rank>(random.below(kRanks));
            const auto to = static_cast<Rank>((from + 1 + random.below(kRanks - 1)) % kRanks);
            const bool is_long = random.chance(0.05);
            const auto octets = static_cast<std::uint32_t>(random.below(is_long ? 4000 : 130));
            (void)send(from, to, random.chance(0.05), octets);
            for (std::uint64_t rounds = random.below(4); rounds > 0; --rounds)
                run(static_cast<unsigned>(random.below(3)));
        }
        finish();
        passed += count(Counter::passed_messages);
        TearDown();
        clients_.clear();
        memories_.clear();
        ids_.clear();
        wanted_.clear();
    }
    EXPECT_GE(passed, 4000U) << "the way under test";
}

}  // namespace
}  // namespace ulc::sim
