// SPDX-License-Identifier: BSD-3-Clause
// Engine::check_invariants() sees each part of an engine that is broken. The simulator calls it
// after each round that moved something.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <span>

#include "engine/core.h"
#include "engine/engine.h"
#include "jobs/jobs_impl.h"
#include "tests/fuzz/heap_pool.h"

namespace ulc::jobs {

/// Breaks what no caller can break.
struct Breaker {
    static void record_without_id(Jobs& jobs) {
        jobs.impl_->table.records_.push_back(std::make_unique<JobRecord>());
    }
    static void late_look(Jobs& jobs) {
        jobs.impl_->timer = 5;
        jobs.next_look_ = 6;
    }
};

}  // namespace ulc::jobs

namespace ulc::endpoint {

/// Breaks what no caller can break in an endpoint.
struct Breaker {
    static void unknown_work(engine::Endpoint& e) { e.work_ = 0x80; }
    static void reports_out_of_order(engine::Endpoint& e) {
        e.report({.kind = abi::CompletionKind::kJobFailed});
        e.report({.kind = abi::CompletionKind::kLeft});
        std::swap(e.reports_.queue_[0], e.reports_.queue_[1]);
    }
    static void report_without_work(engine::Endpoint& e) {
        e.reports_.add({.kind = abi::CompletionKind::kLeft});
    }
    static void open_message_of_none(engine::Endpoint& e) { ++e.sends_.open_count_; }
    static void fuller_queue(engine::Endpoint& e) {
        e.sends_.tail_ = e.sends_.head_ + e.sends_.mask_ + 2;
    }
    static void awaited_nothing(engine::Endpoint& e) { (void)e.sends_.awaiting_.push_back({}); }
    static void lost_block(engine::Endpoint& e) { (void)e.outlet_->arena_.allocate(64); }
    static void place_of_none(engine::Endpoint& e) { ++e.outlet_->places_; }
    static void source_of_none(engine::Endpoint& e) {
        e.outlet_->reserves_.emplace_back();
        e.outlet_->sources_.emplace_back();
    }
    static void two_destinations(engine::Endpoint& e) {
        e.outlet_->reserves_.emplace_back();
        e.outlet_->sources_.emplace_back();
        e.outlet_->sources_[0].open = true;
        e.outlet_->sources_[0].block = e.outlet_->arena_.allocate(64);
        e.outlet_->sources_[0].place.base = e.region().rx(0, 64);
    }
    static void free_count(engine::Endpoint& e) { --e.outlet_->arena_.free_; }
    static void bin_without_bit(engine::Endpoint& e) { e.outlet_->arena_.bins_used_ = 0; }
    static void block_of_no_state(engine::Endpoint& e) {
        e.outlet_->arena_.granules_[0].state = RxArena::kInterior;
    }
};

}  // namespace ulc::endpoint

namespace ulc::engine {

/// Breaks what no caller can break elsewhere in an engine.
struct Breaker {
    static Core& core(Engine& engine) { return *engine.core_; }

    static void ticket(Net& net) { ++net.transmitter().departures_.next; }
    static void report_of_the_port(Net& net) { ++net.transmitter().reported_; }
    static void record_without_id(Net& net) { jobs::Breaker::record_without_id(net.jobs()); }
    static void late_look(Net& net) { jobs::Breaker::late_look(net.jobs()); }
};

namespace {

Port silent_port(fuzz::HeapPool& pool) {
    Port port;
    port.info.mac = Mac{{2, 0, 0, 0, 0, 1}};
    port.info.tx_ring_frames = 64;
    port.pool = pool.table();
    port.rx = [](void*, Segment**, std::uint16_t) -> std::uint16_t { return 0; };
    port.tx = [](void*, Segment* const*, std::uint16_t) -> std::uint16_t { return 0; };
    port.tx_pending = [](void*) { return 0U; };
    port.link_up = [](void*) { return true; };
    return port;
}

struct FreeC {
    void operator()(void* memory) const { std::free(memory); }
};

/// An engine with one client that has joined nothing.
class InvariantsDeathTest : public testing::Test {
protected:
    void SetUp() override {
        const auto layout = abi::compute_layout({64, 64, 256U << 10, 256U << 10});
        ASSERT_TRUE(layout.ok());
        memory_.reset(std::aligned_alloc(abi::kPageOctets, layout.value().region_octets));
        ASSERT_TRUE(engine_.attach(memory_.get(), layout.value(), 0).ok());
        for (Nanos now = 1; now < 10; ++now)
            engine_.poll(now);
        engine_.check_invariants();
    }

    /// Expects that the check names the condition that is broken.
    void sees(void (*breaks)(Endpoint&), const char* condition) {
        EXPECT_DEATH(
            {
                breaks(*Breaker::core(engine_).table().active()[0]);
                engine_.check_invariants();
            },
            condition);
    }
    void sees(void (*breaks)(Net&), const char* condition) {
        EXPECT_DEATH(
            {
                breaks(*Breaker::core(engine_).nets()[0]);
                engine_.check_invariants();
            },
            condition);
    }

private:
    fuzz::HeapPool pool_{1600, 64};
    std::unique_ptr<void, FreeC> memory_;
    const Port port_ = silent_port(pool_);
    Engine engine_{EngineConfig{}, std::span<const Port>(&port_, 1)};
};

TEST_F(InvariantsDeathTest, of_an_endpoint) {
    sees(endpoint::Breaker::unknown_work, "kAllWork");
    sees(endpoint::Breaker::report_without_work, "Work::kControl");
    sees([](Endpoint& e) { (void)(e.membership().add_group(7), e.membership().begin_removal(7)); },
         "Work::kControl");
    sees([](Endpoint& e) { e.life().leave(kNever); }, "Work::kControl");
    sees([](Endpoint& e) { e.life().lose_memory(); }, "life_.is_valid");
    sees([](Endpoint& e) { e.set_timer(3); }, "timer");
}

TEST_F(InvariantsDeathTest, of_its_reports) {
    sees(endpoint::Breaker::reports_out_of_order, "is_valid");
}

TEST_F(InvariantsDeathTest, of_its_send_queue) {
    sees(endpoint::Breaker::open_message_of_none, "open_count_");
    sees(endpoint::Breaker::fuller_queue, "tail_ - head_");
    sees(endpoint::Breaker::awaited_nothing, "segment != nullptr");
}

TEST_F(InvariantsDeathTest, of_its_deliveries) {
    sees(endpoint::Breaker::lost_block, "held_blocks");
    sees(endpoint::Breaker::place_of_none, "places_");
    sees(endpoint::Breaker::source_of_none, "sources");
    sees(endpoint::Breaker::two_destinations, "<= 1");
}

TEST_F(InvariantsDeathTest, of_its_receive_arena) {
    sees(endpoint::Breaker::free_count, "free_");
    sees(endpoint::Breaker::bin_without_bit, "bins_used_");
    sees(endpoint::Breaker::block_of_no_state, "kHeld");
}

TEST_F(InvariantsDeathTest, of_a_transmitter) {
    sees(Breaker::ticket, "departures_.next");
    sees(Breaker::report_of_the_port, "reported_");
}

TEST_F(InvariantsDeathTest, of_jobs) {
    sees(Breaker::record_without_id, "kNoJob");
    sees(Breaker::late_look, "next_look_");
}

}  // namespace
}  // namespace ulc::engine
