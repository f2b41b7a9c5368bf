// A member as its engine sees it: two or more of them on a wire that loses what the test says.
#include "urtp/member.h"

#include <gtest/gtest.h>

#include "urtp_world.h"

namespace ulc::urtp::test {
namespace {

using Strings = std::vector<std::string>;

TEST(Member, delivers_a_unicast_packet_with_its_tag) {
    World w(2);
    EXPECT_EQ(w.send(0, PacketMeta{.stream = 1, .has_tag = true, .tag = 42}, "hello"),
              Admission::kYes);
    w.run_for(kMillisecond / 10);
    EXPECT_EQ(w.members[1]->next_source(), 0);
    ReadyPacket packet;
    ASSERT_TRUE(w.members[1]->front(0, packet));
    EXPECT_TRUE(packet.first && packet.last && packet.has_tag);
    EXPECT_EQ(packet.tag, 42U);
    EXPECT_EQ(packet.stream, 1U);
    EXPECT_EQ(w.receive(1, 0), Strings{"hello"});
    EXPECT_EQ(w.members[1]->next_source(), kNoRank);
}

TEST(Member, drains_after_the_delayed_acknowledgement) {
    World w(2);
    EXPECT_EQ(w.send(0, 1, "x"), Admission::kYes);
    EXPECT_FALSE(w.members[0]->drained());
    w.run_for(kMillisecond);
    EXPECT_TRUE(w.drained());
    EXPECT_EQ(w.count(1, Counter::ack_sent), 1U);
    EXPECT_EQ(w.count(0, Counter::probe_sent), 0U);
}

TEST(Member, repairs_a_multicast_that_one_receiver_lost) {
    World w(3);
    int lost = 0;
    w.hook = [&](const wire::FrameView& f, Rank to) {
        const bool lose =
            f.type == wire::FrameType::kMcast && to == 2 && f.seq.value == 1 && lost == 0;
        lost += lose;
        return lose ? Fate::kLose : Fate::kPass;
    };
    for (const char* text : {"a", "b", "c"})
        EXPECT_EQ(w.send(0, kWorld, text), Admission::kYes);
    w.run_for(200 * kMicrosecond);
    EXPECT_EQ(lost, 1);
    EXPECT_EQ(w.receive(1, 0), (Strings{"a", "b", "c"}));
    EXPECT_EQ(w.receive(2, 0), (Strings{"a", "b", "c"}));
    EXPECT_EQ(w.count(2, Counter::req_sent), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_unicast), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_multicast), 0U);
    w.run_for(100 * kMillisecond);
    EXPECT_TRUE(w.drained());
}

TEST(Member, repairs_by_multicast_what_several_lost) {
    World w(4);
    bool lost = false;
    w.hook = [&](const wire::FrameView& f, Rank to) {
        if (f.type != wire::FrameType::kMcast || f.seq.value != 1 || lost) return Fate::kPass;
        lost = to == 3;
        return Fate::kLose;
    };
    for (const char* text : {"a", "b", "c"})
        EXPECT_EQ(w.send(0, kWorld, text), Admission::kYes);
    w.run_for(200 * kMicrosecond);
    for (Rank r = 1; r < 4; ++r)
        EXPECT_EQ(w.receive(r, 0), (Strings{"a", "b", "c"})) << r;
    EXPECT_EQ(w.count(0, Counter::repair_multicast), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_unicast), 0U);
}

TEST(Member, probes_for_a_lost_tail) {
    World w(2);
    int data = 0;
    w.hook = [&](const wire::FrameView& f, Rank) {
        return f.type == wire::FrameType::kData && data++ == 0 ? Fate::kLose : Fate::kPass;
    };
    EXPECT_EQ(w.send(0, 1, "only"), Admission::kYes);
    w.run_for(10 * kMillisecond);
    EXPECT_EQ(w.receive(1, 0), Strings{"only"});
    EXPECT_EQ(w.count(0, Counter::probe_sent), 1U);
    EXPECT_EQ(w.count(0, Counter::repair_unicast), 1U);
    EXPECT_TRUE(w.drained());
}

TEST(Member, unicast_never_overtakes_a_lost_multicast) {
    World w(3);
    bool lost = false;
    w.hook = [&](const wire::FrameView& f, Rank to) {
        if (f.type != wire::FrameType::kMcast || to != 1 || lost) return Fate::kPass;
        lost = true;
        return Fate::kLose;
    };
    EXPECT_EQ(w.send(0, kWorld, "first"), Admission::kYes);
    EXPECT_EQ(w.send(0, 1, "second"), Admission::kYes);
    w.run_for(20 * kMicrosecond);
    EXPECT_TRUE(w.receive(1, 0).empty());
    w.run_for(20 * kMillisecond);
    EXPECT_EQ(w.receive(1, 0), (Strings{"first", "second"}));
    EXPECT_EQ(w.receive(2, 0), Strings{"first"});
    EXPECT_TRUE(w.drained());
}

}  // namespace
}  // namespace ulc::urtp::test
