// SPDX-License-Identifier: BSD-3-Clause
// Short messages that an engine passes from one of its endpoints to another, without a frame.
#include "tests/unit/urtp/world.h"

namespace ulc::urtp {
namespace {

using test::Fate;
using test::World;

/// Rank 0 gives short messages to rank 1 without a frame, where it may.
class Passing {
public:
    Passing() : world(3) {}
    bool pass(Rank from = 0, Rank to = 1) {
        Session* session = world.members[from]->find_session(to);
        Session* theirs = world.members[to]->takes_passed(from);
        bool passed = false;
        if (session != nullptr && session->tx != nullptr && theirs != nullptr) {
            TxPrediction prediction = world.members[from]->predict(*session);
            prediction.theirs = theirs;
            passed = world.members[from]->pass(prediction, *world.members[to], world.now);
        }
        for (const auto& member : world.members)
            member->check_invariants();
        return passed;
    }
    /// The two know each other, and nothing is on its way.
    void meet() {
        ASSERT_EQ(world.send(0, 1, "a"), Admission::kYes);
        world.run_for(kSecond);
        ASSERT_EQ(world.receive(1, 0).size(), 1U);
    }
    World world;
};

TEST(UrtpPassing, passes_a_message_only_if_nothing_waits) {
    Passing p;
    EXPECT_FALSE(p.pass()) << "they do not know each other";
    ASSERT_EQ(p.world.send(0, 1, "a"), Admission::kYes);
    EXPECT_FALSE(p.pass()) << "one is to be sent";
    p.world.run_for(kSecond);
    EXPECT_FALSE(p.pass()) << "one waits for the client";
    EXPECT_EQ(p.world.receive(1, 0).size(), 1U);
    EXPECT_TRUE(p.pass());
    p.world.members[1]->peer_gone(0, EventKind::kPeerLeft, p.world.now);
    EXPECT_FALSE(p.pass()) << "to it, rank 0 is gone";
}

// O-1
TEST(UrtpPassing, passes_no_message_before_a_multicast_that_its_receiver_lacks) {
    Passing p;
    p.meet();
    p.world.hook = [](const wire::FrameView& view, Rank to) {
        return view.type == wire::FrameType::kMcast && to == 1 ? Fate::kLose : Fate::kPass;
    };
    ASSERT_EQ(p.world.send(0, {.stream = test::kWorld, .message_length = 1}, "m"), Admission::kYes);
    p.world.run_for(100 * kMicrosecond);
    EXPECT_FALSE(p.pass());
    p.world.hook = nullptr;
    p.world.run_for(kSecond);
    EXPECT_FALSE(p.pass()) << "it waits for the client";
    EXPECT_EQ(p.world.receive(1, 0).size(), 1U);
    EXPECT_TRUE(p.pass());
}

TEST(UrtpPassing, passed_messages_leave_numbers_credit_and_answers_as_frames_would) {
    Passing p;
    p.meet();
    const std::uint64_t frames = p.world.frames;
    for (int n = 0; n < 5000; ++n)
        ASSERT_TRUE(p.pass()) << n;
    p.world.run_for(kSecond);
    EXPECT_EQ(p.world.frames, frames) << "no answer is owed";
    EXPECT_TRUE(p.world.drained());
    ASSERT_EQ(p.world.send(0, 1, "b"), Admission::kYes);
    p.world.run_for(kSecond);
    EXPECT_EQ(p.world.receive(1, 0).size(), 1U);
    EXPECT_EQ(p.world.count(1, Counter::drop_beyond_window), 0U);
    EXPECT_TRUE(p.pass());
}

TEST(UrtpPassing, a_passed_message_takes_an_owed_acknowledgement_along) {
    Passing p;
    p.meet();
    ASSERT_EQ(p.world.send(1, 0, "a"), Admission::kYes);
    p.world.run_for(kSecond);
    ASSERT_EQ(p.world.receive(0, 1).size(), 1U);
    ASSERT_EQ(p.world.send(1, 0, "b"), Admission::kYes);
    for (int n = 0; n < 100 && p.world.count(0, Counter::data_received) < 2; ++n)
        p.world.run_for(kMicrosecond);
    ASSERT_EQ(p.world.receive(0, 1).size(), 1U);
    ASSERT_FALSE(p.world.members[1]->drained()) << "the acknowledgement is delayed";
    EXPECT_TRUE(p.pass());
    EXPECT_TRUE(p.world.members[1]->drained());
}

}  // namespace
}  // namespace ulc::urtp
