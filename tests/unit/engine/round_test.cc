// SPDX-License-Identifier: BSD-3-Clause
// Quiet rounds look at few clients, and still miss nothing (engine/round.cc). Virtual time, one
// net, clients that write to their rings.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "abi/region.h"
#include "engine/engine.h"

namespace ulc::engine {
namespace {

/// A wire that counts how often it is asked, and brings a frame on demand.
struct FakeWire {
    unsigned rx_calls = 0;
    unsigned link_looks = 0;
    bool brings = false;
    PortCosts costs;
    std::vector<std::byte> octets = std::vector<std::byte>(2048);
    Segment segment;

    Port port() {
        segment.frame = octets.data();
        segment.capacity = 2048;
        segment.length = 60;  // zeros: no frame of ours
        Port port;
        port.context = this;
        port.info.mac = Mac{{2, 0, 0, 0, 0, 1}};
        port.info.tx_ring_frames = 64;
        port.pool.context = this;
        port.pool.allocate = [](void*) -> Segment* { return nullptr; };
        port.pool.retain = [](void*, Segment*) {};
        port.pool.release = [](void*, Segment*) {};
        port.pool.references = [](void*, const Segment*) { return 1U; };
        port.pool.available = [](void*) { return 0U; };
        port.rx = [](void* context, Segment** out, std::uint16_t) -> std::uint16_t {
            auto& self = *static_cast<FakeWire*>(context);
            ++self.rx_calls;
            if (!self.brings) return 0;
            self.brings = false;
            *out = &self.segment;
            return 1;
        };
        port.tx = [](void*, Segment* const*, std::uint16_t) -> std::uint16_t { return 0; };
        port.tx_pending = [](void*) { return 0U; };
        port.link_up = [](void* context) {
            ++static_cast<FakeWire*>(context)->link_looks;
            return true;
        };
        port.costs = [](void* context) { return static_cast<FakeWire*>(context)->costs; };
        return port;
    }
};

class Client {
public:
    explicit Client(Engine& engine) {
        const auto layout = abi::compute_layout({8, 16, 64U << 10, 64U << 10});
        memory_.reset(std::aligned_alloc(abi::kPageOctets, layout.value().region_octets));
        std::memset(memory_.get(), 0, layout.value().region_octets);
        const auto id = engine.attach(memory_.get(), layout.value(), 0);
        EXPECT_TRUE(id.ok());
        handle = id.value();
        submissions_ = abi::Region(memory_.get(), layout.value()).submission_producer();
    }
    /// A send outside of a job: the engine answers it, in the round that sees it.
    void submit() {
        abi::SubmissionRecord* record = submissions_.claim();
        ASSERT_NE(record, nullptr);
        *record = {};
        record->kind = abi::SubmitKind::kSend;
        record->flags = abi::kSubmitFirst | abi::kSubmitLast | abi::kSubmitInline;
        submissions_.publish();
    }
    EndpointId handle = 0;

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::unique_ptr<void, Free> memory_;
    abi::SubmissionProducer submissions_;
};

class Rounds : public ::testing::Test {
protected:
    static constexpr std::uint32_t kClients = 61;

    void open(std::uint32_t looks) {
        EngineConfig config;
        config.endpoints_max = 64;
        config.looks_per_round = looks;
        const Port port = wire_.port();
        engine_ = std::make_unique<Engine>(config, std::span<const Port>(&port, 1));
        for (std::uint32_t n = 0; n < kClients; ++n)
            clients_.push_back(std::make_unique<Client>(*engine_));
        be_quiet();
    }
    void be_quiet() {
        for (int round = 0; round < 20; ++round)
            poll();
        ASSERT_FALSE(poll());
    }
    bool poll() { return engine_->poll(now_ += 100); }
    [[nodiscard]] std::uint64_t count(Counter id) const { return engine_->counters().get(id); }
    /// Rounds until one more submission is taken.
    unsigned rounds_to_see() {
        const std::uint64_t before = count(Counter::submissions);
        unsigned rounds = 0;
        while (count(Counter::submissions) == before && rounds < 1000) {
            poll();
            ++rounds;
        }
        return rounds;
    }

    FakeWire wire_;
    std::unique_ptr<Engine> engine_;
    std::vector<std::unique_ptr<Client>> clients_;
    Nanos now_ = 1;
};

TEST_F(Rounds, see_each_client_within_one_turn_of_looks) {
    open(8);
    unsigned most = 0;
    for (auto& client : clients_) {
        client->submit();
        most = std::max(most, rounds_to_see());
        be_quiet();
    }
    EXPECT_LE(most, (kClients + 7) / 8 + 1);
    EXPECT_GT(most, 1U) << "every round looked at every client, so nothing was quiet";
}

TEST_F(Rounds, see_all_clients_at_once_where_all_are_looked_at) {
    open(64);
    for (auto& client : clients_) {
        client->submit();
        EXPECT_EQ(rounds_to_see(), 1U);
        be_quiet();
    }
}

TEST_F(Rounds, take_a_frame_in_the_round_that_brings_it) {
    open(8);
    wire_.brings = true;
    const unsigned calls = wire_.rx_calls;
    poll();
    EXPECT_EQ(count(Counter::rx_frames), 1U);
    EXPECT_EQ(wire_.rx_calls, calls + 1) << "the burst of the quiet look is the round's";
}

TEST_F(Rounds, look_at_the_link_in_time) {
    open(8);
    const unsigned looks = wire_.link_looks;
    now_ += 10 * kMillisecond;
    poll();
    EXPECT_EQ(wire_.link_looks, looks + 1);
    be_quiet();
    EXPECT_EQ(wire_.link_looks, looks + 1) << "no look before it is due";
}

// The port says what its frames have cost since it was opened; the counters say what of it was new.
TEST_F(Rounds, count_the_costs_of_the_port_with_each_look_at_the_link) {
    open(8);
    const auto look = [&] {
        now_ += 10 * kMillisecond;
        poll();
    };
    wire_.costs = {.calls = 5, .refusals = 2, .copied_bytes = 7570};
    look();
    look();
    EXPECT_EQ(count(Counter::tx_calls), 5U);
    EXPECT_EQ(count(Counter::tx_refusals), 2U);
    EXPECT_EQ(count(Counter::port_copied_bytes), 7570U);
    wire_.costs = {.calls = 6, .refusals = 2, .copied_bytes = 9084};
    look();
    EXPECT_EQ(count(Counter::tx_calls), 6U);
    EXPECT_EQ(count(Counter::tx_refusals), 2U);
    EXPECT_EQ(count(Counter::port_copied_bytes), 9084U);
}

TEST_F(Rounds, follow_clients_that_come_and_go) {
    open(8);
    clients_.push_back(std::make_unique<Client>(*engine_));
    clients_.back()->submit();
    EXPECT_EQ(rounds_to_see(), 1U) << "the round after an attach is general";
    be_quiet();
    for (auto& client : clients_) {
        engine_->detach(client->handle, DetachReason::kDied, now_);
        poll();
        EXPECT_TRUE(engine_->detached(client->handle));
    }
    EXPECT_EQ(engine_->endpoints(), 0U);
}

TEST_F(Rounds, look_at_all_after_a_sleep) {
    open(8);
    ASSERT_TRUE(engine_->prepare_sleep());
    for (auto& client : clients_)
        client->submit();
    engine_->awake();
    poll();
    EXPECT_EQ(count(Counter::submissions), kClients);
}

}  // namespace
}  // namespace ulc::engine
