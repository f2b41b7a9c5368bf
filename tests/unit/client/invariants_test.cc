// SPDX-License-Identifier: BSD-3-Clause
// Endpoint::check_invariants() sees each part of an endpoint that is broken. The simulator calls it
// after each poll that found something.
#include <gtest/gtest.h>

#include "tests/unit/client/scripted_engine.h"

namespace ulc::client {

/// Breaks what no caller can break.
struct Breaker {
    static Arrivals& arrivals(Endpoint& e) { return e.messages_.inbox_.arrivals_; }
    static Shares& shares(Endpoint& e) { return arrivals(e).shares_; }
    static Outbox& outbox(Endpoint& e) { return e.messages_.outbox_; }

    static void formed_without_ranks(Endpoint& e) { e.membership_.size_ = 0; }
    static void rank_of_no_one(Endpoint& e) { e.membership_.rank_ = 7; }
    static void request_of_none(Endpoint& e) { e.membership_.request_block_ = 64; }
    static void left_twice(Endpoint& e) { e.membership_.leave_submitted_ = true; }
    static void waits_for_none(Endpoint& e) { ++outbox(e).pending_groups_; }
    static void holds_no_block(Endpoint& e) { outbox(e).group_octets_ = 64; }
    static void copied_nothing(Endpoint& e) { outbox(e).detached_octets_ = 1; }
    static void cookie_of_none(Endpoint& e) { ++outbox(e).in_flight_.count_; }
    static void held_by_none(Endpoint& e) { ++outbox(e).announcements_.holding_; }
    static void announces_too_late(Endpoint& e) { outbox(e).announcements_.from_ = 1; }
    static void lost_message(Endpoint& e) { (void)arrivals(e).free_.pop_front(); }
    static void asked_for_none(Endpoint& e) { ++arrivals(e).asked_; }
    static void arena_of_none(Endpoint& e) { ++arrivals(e).arena_held_; }
    static void memory_of_none(Endpoint& e) { ++shares(e).used_; }
    static void share_of_none(Endpoint& e) { ++shares(e).senders_[1].memory; }
    static void held_unlisted(Endpoint& e) { shares(e).senders_[1].told = true; }
    static void stopped_unlisted(Endpoint& e) {
        shares(e).senders_[1].intake = shares(e).senders_[1].noted_intake = abi::Intake::kNone;
    }
    static void stopped_unnoted(Endpoint& e) {
        shares(e).senders_[1].intake = abi::Intake::kNone;
        shares(e).stopped_.push_back(1);
    }
    static void claimed_by_none(Endpoint& e) {
        Inbox& inbox = e.messages_.inbox_;
        inbox.claimed_.push_back(*inbox.arrivals_.create(1, 1, 1));
    }
    static void member_of_another(Endpoint& e) { ++e.groups_.find(kWorld)->own_index; }
    static void ranks_of_no_node(Endpoint& e) { e.groups_.find(kWorld)->per_node = 9; }
    static void link_of_none(Endpoint& e) { e.links_.ending_.push_back(nullptr); }
    static void peer_not_linked(Endpoint& e) {
        e.links_.places_.assign(3, LinkTable::Place::kVacant);
        e.links_.ending_.assign(3, nullptr);
    }
    static void peer_named_by_none(Endpoint& e) {
        e.messages_.near_->peers_[1].named = Near::Named::kWanted;
    }
};

namespace {

/// An endpoint of a job of three, with a ring for each peer that is near.
class ClientInvariantsDeathTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(engine_.endpoint->messages().prepare_near(kernel_memory()), ULC_OK);
        engine_.form(0, 3);
        engine_.deliver_inline(1, 5, "one");
        engine_.deliver_block(2, 5, 0, std::string(100, 'x'), 0, 200);
        ASSERT_EQ(engine_.endpoint->poll(), 2);
        engine_.endpoint->check_invariants();
    }

    /// Expects that the check names the condition that is broken.
    void sees(void (*breaks)(Endpoint&), const char* condition) {
        EXPECT_DEATH(
            {
                breaks(*engine_.endpoint);
                engine_.endpoint->check_invariants();
            },
            condition);
    }

private:
    ScriptedEngine engine_{{64, 64, 64U << 10, 64U << 10}};
};

TEST_F(ClientInvariantsDeathTest, of_a_membership) {
    sees(Breaker::formed_without_ranks, "size");
    sees(Breaker::rank_of_no_one, "rank_");
    sees(Breaker::request_of_none, "requested");
    sees(Breaker::left_twice, "leave_submitted_");
}

TEST_F(ClientInvariantsDeathTest, of_sends) {
    sees(Breaker::waits_for_none, "pending_groups_");
    sees(Breaker::holds_no_block, "held");
    sees(Breaker::copied_nothing, "detached_octets_");
    sees(Breaker::cookie_of_none, "count_");
    sees(Breaker::held_by_none, "holding_");
    sees(Breaker::announces_too_late, "from_");
}

TEST_F(ClientInvariantsDeathTest, of_messages_that_arrived) {
    sees(Breaker::lost_message, "in_use");
    sees(Breaker::asked_for_none, "asked_");
    sees(Breaker::arena_of_none, "arena_held_");
    sees(Breaker::claimed_by_none, "claimed_");
}

TEST_F(ClientInvariantsDeathTest, of_shares) {
    sees(Breaker::memory_of_none, "used");
    sees(Breaker::share_of_none, "memory");
    sees(Breaker::held_unlisted, "listed");
    sees(Breaker::stopped_unlisted, "stopped");
    sees(Breaker::stopped_unnoted, "noted");
}

TEST_F(ClientInvariantsDeathTest, of_groups_and_links) {
    sees(Breaker::member_of_another, "own_index");
    sees(Breaker::ranks_of_no_node, "per_node");
    sees(Breaker::link_of_none, "places_");
    sees(Breaker::peer_not_linked, "knows");
}

TEST_F(ClientInvariantsDeathTest, of_peers_of_this_node) {
    sees(Breaker::peer_named_by_none, "unasked");
}

}  // namespace
}  // namespace ulc::client
