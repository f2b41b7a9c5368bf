// SPDX-License-Identifier: BSD-3-Clause
// The small parts that the transport is made of, each by itself.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "base/prng.h"
#include "base/tables/list.h"
#include "urtp/arrivals.h"
#include "urtp/params.h"
#include "urtp/receiver/ordering.h"
#include "urtp/receiver/rx_store.h"
#include "urtp/receiver/stream_rx.h"
#include "urtp/rtt.h"
#include "urtp/sender/stream_tx.h"
#include "urtp/timers.h"

namespace ulc::urtp {
namespace {

TEST(Rtt, takes_the_first_sample_whole_and_then_an_eighth) {
    Rtt rtt(500 * kMicrosecond);
    EXPECT_EQ(rtt.bound(), 1500 * kMicrosecond);
    rtt.sample(80'000);
    EXPECT_EQ(rtt.smoothed(), 80'000);
    EXPECT_EQ(rtt.bound(), 80'000 + 4 * 40'000);
    rtt.sample(160'000);
    EXPECT_EQ(rtt.smoothed(), 90'000);
}

// S-58
TEST(Rtt, counts_a_pause_of_seconds_as_a_bounded_jump) {
    Rtt rtt(500 * kMicrosecond);
    rtt.sample(50 * kMicrosecond);
    rtt.sample(5 * kSecond);
    EXPECT_LE(rtt.smoothed(), 2 * kMillisecond);
    Rtt fresh(500 * kMicrosecond);
    fresh.sample(5 * kSecond);
    EXPECT_LE(fresh.smoothed(), 12 * kMillisecond);
}

TEST(Rtt, learns_a_path_that_became_slow_in_a_few_samples) {
    Rtt rtt(500 * kMicrosecond);
    rtt.sample(50 * kMicrosecond);
    for (int n = 0; n < 20; ++n)
        rtt.sample(400 * kMillisecond);
    EXPECT_GE(rtt.smoothed(), 350 * kMillisecond);
    EXPECT_GE(rtt.bound(), 400 * kMillisecond);
}

TEST(Rtt, counts_a_negative_sample_as_zero) {
    Rtt rtt(1000);
    rtt.sample(-5000);
    EXPECT_EQ(rtt.smoothed(), 0);
    EXPECT_GE(rtt.bound(), 0);
}

TEST(Timers, fire_in_order_of_time_whatever_the_order_of_arming) {
    Prng random(1);
    std::vector<std::unique_ptr<Timer>> timers;
    Timers heap;
    std::multiset<Nanos> wanted;
    for (int i = 0; i < 500; ++i) {
        heap.enroll();
        timers.push_back(std::make_unique<Timer>());
        heap.arm_by(*timers.back(), static_cast<Nanos>(random.below(1000)));
    }
    for (auto& timer : timers) {
        if (random.chance(0.3)) heap.remove(*timer);
        if (random.chance(0.3)) heap.arm_by(*timer, static_cast<Nanos>(random.below(1000)));
        if (timer->position != Timer::kIdle) wanted.insert(timer->due);
    }
    for (const Nanos at : wanted) {
        EXPECT_EQ(heap.next(), at);
        EXPECT_EQ(heap.pop_due(at - 1), nullptr);
        ASSERT_NE(heap.pop_due(at), nullptr);
    }
    EXPECT_EQ(heap.next(), kNever);
}

TEST(Timers, are_never_put_off) {
    Timers heap;
    Timer timer;
    heap.enroll();
    heap.arm_by(timer, 100);
    heap.arm_by(timer, 200);
    EXPECT_EQ(heap.next(), 100);
    heap.arm_by(timer, 50);
    EXPECT_EQ(heap.next(), 50);
    heap.remove(timer);
    heap.remove(timer);
    heap.arm_by(timer, kNever);
    EXPECT_EQ(heap.next(), kNever);
}

TEST(Timers, are_put_off_by_a_word_of_their_own) {
    Timers heap;
    Timer timers[3];
    for (Timer& timer : timers) {
        heap.enroll();
        heap.arm_by(timer, 100 + (&timer - timers));
    }
    EXPECT_EQ(heap.first_due(99), nullptr);
    ASSERT_EQ(heap.first_due(100), &timers[0]);
    EXPECT_EQ(heap.first_due(100), &timers[0]) << "a look takes nothing";
    heap.put_off(timers[0], 200);
    ASSERT_EQ(heap.first_due(101), &timers[1]);
    heap.put_off(timers[1], kNever);
    EXPECT_EQ(heap.pop_due(1000), &timers[2]);
    EXPECT_EQ(heap.pop_due(1000), &timers[0]);
    EXPECT_EQ(heap.next(), kNever);
}

struct Item {
    Links<Item> link;
};

TEST(List, holds_an_item_once_and_removes_from_anywhere) {
    List<Item, &Item::link> list;
    Item a, b, c;
    list.push_back(a);
    list.add(b);
    list.add(c);
    list.add(b);
    EXPECT_EQ(list.size(), 3U);
    list.remove(b);
    list.remove(b);
    EXPECT_EQ(list.front(), &a);
    EXPECT_EQ(list.next(a), &c);
    list.rotate();
    EXPECT_EQ(list.front(), &c);
    list.remove(c);
    list.remove(a);
    EXPECT_TRUE(list.empty());
    list.push_back(b);
    EXPECT_EQ(list.front(), &b);
    list.push_back(a);
    EXPECT_EQ(list.pop_front(), &b);
    EXPECT_FALSE(list.holds(b));
    EXPECT_EQ(list.front(), &a);
    EXPECT_EQ(list.pop_front(), &a);
    EXPECT_EQ(list.pop_front(), nullptr);
    EXPECT_EQ(list.size(), 0U);
}

TEST(List, that_was_forgotten_leaves_its_items_free) {
    List<Item, &Item::link> list;
    Item a, b;
    list.push_back(a);
    list.push_back(b);
    list = {};
    list.push_back(b);
    list.push_back(a);
    EXPECT_EQ(list.front(), &b);
    EXPECT_EQ(list.next(b), &a);
    EXPECT_EQ(list.next(a), nullptr);
    EXPECT_EQ(list.size(), 2U);
}

TEST(RxStore, finds_by_stream_and_number_and_lends_no_more_than_it_has) {
    RxStore store(8);
    EXPECT_EQ(store.take(false), nullptr) << "nothing before the first session";
    store.open();
    RxStream one, two;
    std::vector<RxNode*> nodes;
    while (RxNode* node = store.take(false)) {
        const auto i = static_cast<std::uint32_t>(nodes.size());
        node->stream = i % 2 == 0 ? &one : &two;
        node->seq = Seq{0xfffffffe} + i / 2;
        store.insert(*node);
        nodes.push_back(node);
    }
    ASSERT_EQ(nodes.size(), 8U);
    EXPECT_EQ(store.find(&one, Seq{1}), nodes[6]);
    EXPECT_EQ(store.find(&two, Seq{1}), nodes[7]);
    EXPECT_EQ(store.find(&two, Seq{2}), nullptr);
    store.erase(*nodes[6]);
    store.give_back(*nodes[6]);
    EXPECT_EQ(store.find(&one, Seq{1}), nullptr);
    EXPECT_EQ(store.find(&two, Seq{1}), nodes[7]);
    EXPECT_EQ(store.free_count(), 1U);
}

TEST(Arrivals, are_complete_when_the_port_had_no_more) {
    Arrivals arrivals;
    arrivals.took(false, 100);
    EXPECT_TRUE(arrivals.has_all_before(100));
    EXPECT_FALSE(arrivals.has_all_before(101));
    arrivals.took(true, 200);
    EXPECT_FALSE(arrivals.has_all_before(200)) << "the port may have more";
    arrivals.took(false, 300);
    EXPECT_TRUE(arrivals.has_all_before(300));
}

TEST(Arrivals, are_not_waited_for_while_more_come_than_are_taken) {
    Arrivals arrivals;
    for (unsigned n = 1; n < Arrivals::kFullMost; ++n)
        arrivals.took(true, n);
    EXPECT_FALSE(arrivals.has_all_before(1));
    arrivals.took(true, 1000);
    EXPECT_TRUE(arrivals.has_all_before(1000));
}

// A ticket counts frames of a port, so 32 bits wrap within an hour at a million frames a second.
TEST(Departures, are_known_across_the_wrap_of_tickets) {
    Departures departures;
    departures.next = departures.left = UINT32_MAX - 9;
    for (std::uint32_t n = 0; n < 20; ++n) {
        const std::uint32_t ticket = departures.next++;
        ASSERT_EQ(departures.left_at(ticket), kNever) << n;
        departures.leave_until(departures.next, 1000 + n);
        for (std::uint32_t back = 0; back <= n; ++back)
            ASSERT_EQ(departures.left_at(ticket - back), 1000 + n - back) << n << ' ' << back;
        departures.leave_until(ticket - 5, 5000);  // less than before
        ASSERT_EQ(departures.left_at(ticket), 1000 + n) << n;
    }
    EXPECT_EQ(departures.left_at(departures.left - Departures::kRemembered - 1),
              Departures::kLongAgo);
}

// S-4
TEST(TxStream, base_follows_the_last_destination_across_the_wrap) {
    const Rank ranks[] = {0, 1, 2, 3};
    TxStream tx(kGroupBit, nullptr, ranks, 1, 64, Seq{0xfffffff0}, 1000);
    EXPECT_EQ(tx.destinations, 3U);
    tx.sent = tx.tail = Seq{0xfffffff0} + 40;
    EXPECT_FALSE(tx.acknowledge(0, Seq{0x10}));
    EXPECT_FALSE(tx.acknowledge(2, Seq{0x2}));
    EXPECT_TRUE(tx.acknowledge(3, Seq{0xfffffffa}));
    EXPECT_EQ(tx.base, Seq{0xfffffffa});
    EXPECT_TRUE(tx.acknowledge(3, Seq{0x18}));
    EXPECT_EQ(tx.base, Seq{0x2});
    EXPECT_TRUE(tx.remove_destination(2));
    EXPECT_EQ(tx.base, Seq{0x10});
    EXPECT_TRUE(tx.remove_destination(0));
    EXPECT_EQ(tx.base, Seq{0x18});
}

// S-5, S-21
TEST(TxStream, the_least_credit_limits_and_may_retract) {
    const Rank ranks[] = {0, 1};
    TxStream tx(kGroupBit, nullptr, ranks, 2, 64, Seq{0}, 1000);
    EXPECT_EQ(tx.limit, Seq{64});
    tx.allow(0, Seq{10});
    EXPECT_EQ(tx.limit, Seq{10});
    tx.allow(1, Seq{20});
    EXPECT_EQ(tx.limit, Seq{10});
    tx.allow(0, Seq{30});
    EXPECT_EQ(tx.limit, Seq{20});
    EXPECT_FALSE(tx.remove_destination(1));
    EXPECT_EQ(tx.limit, Seq{30});
}

// S-45
TEST(TxStream, samples_each_acknowledgement_at_first_and_then_now_and_then) {
    const Rank ranks[] = {1};
    TxStream tx(1, nullptr, ranks, kNoRank, 64, Seq{0}, 1000);
    ASSERT_TRUE(tx.is_unbounded());
    const Nanos start = kSecond;
    tx.sampled_at = TxStream::ticks(start);
    for (; tx.samples < 16; ++tx.samples)
        EXPECT_TRUE(tx.wants_sample(1, start));
    EXPECT_FALSE(tx.wants_sample(15, start));
    EXPECT_TRUE(tx.wants_sample(16, start));
    EXPECT_FALSE(tx.wants_sample(1, start + 90 * kMicrosecond));
    EXPECT_TRUE(tx.wants_sample(1, start + 102 * kMicrosecond));
    tx.untold = 12;
    EXPECT_TRUE(tx.wants_sample(4, start));
    tx.untold = 0;
    tx.cwnd = 63;
    EXPECT_TRUE(tx.wants_sample(1, start)) << "congestion control needs each";
}

// O-5, O-6
TEST(Ordering, judges_entries_by_serial_number) {
    EXPECT_EQ(judge_entry(Seq{0}, Seq{0xffffffff}, 16), Judgement::kMet);
    EXPECT_EQ(judge_entry(Seq{0}, Seq{0}, 16), Judgement::kUnmet);
    EXPECT_EQ(judge_entry(Seq{0}, Seq{15}, 16), Judgement::kUnmet);
    EXPECT_EQ(judge_entry(Seq{0}, Seq{16}, 16), Judgement::kUnmeetable);
    EXPECT_EQ(judge_own_entry(Seq{5}, Seq{4}), Judgement::kMet);
    EXPECT_EQ(judge_own_entry(Seq{5}, Seq{5}), Judgement::kUnmeetable);
    EXPECT_TRUE(need_entry(Seq{4}, Seq{5}));
    EXPECT_FALSE(need_entry(Seq{5}, Seq{5}));
    EXPECT_EQ(entry_number(Seq{0}), Seq{0xffffffff});
}

// P-12, P-13
TEST(Params, fit_a_medium_that_carries_one_frame_at_a_time) {
    const Params plain;
    Params params;
    params.fit_wire(0, true);
    EXPECT_EQ(params.ack_delay, plain.ack_delay) << "its rate is not known";
    params.fit_wire(100'000'000, false);
    EXPECT_EQ(params.ack_delay, plain.ack_delay);
    EXPECT_EQ(params.lone_ack_window, 0U);
    EXPECT_EQ(params.probe_slot, 6720);
    params.fit_wire(100'000'000, true);
    EXPECT_TRUE(params.control_one_by_one);
    EXPECT_EQ(params.ack_delay, 128 * plain.ack_delay);
    EXPECT_EQ(params.ack_delay_max, params.ack_delay);
    EXPECT_EQ(params.lone_ack_window, plain.window / 2);
    EXPECT_EQ(params.group_ack_window, plain.window / 2);
    EXPECT_EQ(params.probe_slot, 2 * 6720);
    EXPECT_EQ(params.req_spread, 8 * 6720);
    EXPECT_EQ(params.repair_gather, params.req_spread);
    EXPECT_EQ(params.control_wait_max, 6400 * kMicrosecond);
    EXPECT_EQ(params.ack_window, 2 * plain.ack_window)
        << "congestion control begins with two of these";
}

// P-8
TEST(Params, defaults_are_those_of_the_specification) {
    const Params params;
    EXPECT_EQ(params.window, 256U);
    EXPECT_EQ(params.ack_window, 16U);
    EXPECT_EQ(params.group_ack_window, 16U);
    EXPECT_EQ(params.ack_delay, 200 * kMicrosecond);
    EXPECT_EQ(params.ack_delay_max, 800 * kMicrosecond);
    EXPECT_EQ(params.req_delay, 1U);
    EXPECT_EQ(params.reorder_wait, 0);
    EXPECT_EQ(params.min_req_gap, 50 * kMicrosecond);
    EXPECT_EQ(params.first_recv_wait, kFromRtt);
    EXPECT_EQ(params.min_recv_wait, 100 * kMicrosecond);
    EXPECT_EQ(params.max_recv_wait, 100 * kMillisecond);
    EXPECT_EQ(params.min_send_wait, 100 * kMicrosecond);
    EXPECT_EQ(params.max_send_wait, 100 * kMillisecond);
    EXPECT_EQ(params.req_spread, 10 * kMicrosecond);
    EXPECT_EQ(params.repair_gather, 10 * kMicrosecond);
    EXPECT_EQ(params.probe_slot, 2 * kMicrosecond);
    EXPECT_EQ(params.peer_dead, 2 * kSecond);
    EXPECT_EQ(params.initial_rtt, 500 * kMicrosecond);
    EXPECT_EQ(params.rx_pool_packets, 1024U);
    EXPECT_TRUE(params.timed_by_rtt && params.ack_duplicates);
    EXPECT_FALSE(params.single_request || params.receives_in_turn || params.number_vector);
}

TEST(Params, leave_on_such_a_medium_what_a_user_chose) {
    for (const Nanos chosen : {Nanos{0}, 80 * kMillisecond, kSecond, kNever}) {
        Params params;
        params.ack_delay = chosen;
        params.fit_wire(100'000'000, true);
        EXPECT_EQ(params.ack_delay, chosen);
    }
    Params params;
    params.max_send_wait = 10 * kMillisecond;
    params.fit_wire(100'000'000, true);
    EXPECT_EQ(params.ack_delay, 5 * kMillisecond) << "a sender asks after 10 ms";
}

}  // namespace
}  // namespace ulc::urtp
