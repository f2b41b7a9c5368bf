// SPDX-License-Identifier: BSD-3-Clause
// Messages of one node through shared memory (near.h): two endpoints, each against a scripted
// engine, so that the test decides when the engine brings what; then rings that a peer wrote.
#include "tests/unit/client/near/near_pair.h"

namespace ulc::client {
namespace {

TEST_F(ClientNear, a_ring_follows_the_first_message_of_a_peer_that_is_named) {
    connect();
    for (const std::size_t length : {0, 1, 104, 105, 5'000, 32'768}) {
        const std::string text = pattern(length);
        send(text);
        EXPECT_TRUE(silent()) << length;
        EXPECT_GT(second.endpoint->poll(), 0);
        EXPECT_TRUE(next() == text) << length;
    }
    send(pattern(32'769));  // too long for it
    EXPECT_FALSE(silent());
}

TEST_F(ClientNear, a_peer_that_is_not_named_gets_no_ring) {
    second.deliver_inline(2, kTag, "far");
    second.endpoint->poll();
    EXPECT_FALSE(second.take_any().has_value());
    EXPECT_TRUE(made.empty());
    // One that is named later gets it then.
    EXPECT_EQ(ulc_near_peer(b, 2), ULC_OK);
    answer(second, 2);
    EXPECT_EQ(second.take_any()->tag, kTagNear);
    EXPECT_EQ(ulc_near_peer(b, 2), ULC_OK);
    second.endpoint->poll();
    EXPECT_FALSE(second.take_any().has_value());
    EXPECT_EQ(ulc_near_peer(b, 3), ULC_ERR_INVALID);
}

TEST_F(ClientNear, the_engine_is_asked_once_and_names_both_processes) {
    ulc_near_process self{};
    ulc_near_process other{};
    EXPECT_EQ(ulc_near_processes(b, 0, &self, &other), ULC_OK);
    EXPECT_EQ(self.pid, 7U);
    EXPECT_EQ(self.start_ticks, 5U);
    EXPECT_EQ(other.pid, 100U);
    EXPECT_EQ(other.start_ticks, 6U);
    EXPECT_FALSE(second.take_any().has_value());
    EXPECT_EQ(ulc_near_processes(b, 2, &self, &other), ULC_ERR_AGAIN);
    EXPECT_EQ(ulc_near_processes(b, 2, &self, &other), ULC_ERR_AGAIN);
    answer(second, 2);
    EXPECT_EQ(ulc_near_processes(b, 2, &self, &other), ULC_OK);
    EXPECT_EQ(other.pid, 102U);
    EXPECT_EQ(ulc_near_processes(b, 3, &self, &other), ULC_ERR_INVALID);
    second.peer_gone(2, true);
    second.endpoint->poll();
    EXPECT_EQ(ulc_near_processes(b, 2, &self, &other), ULC_ERR_UNSUPPORTED);
}

TEST_F(ClientNear, the_ring_of_a_peer_is_mapped_from_the_process_that_the_engine_names) {
    connect();
    EXPECT_EQ(mapped_of, 101U);
}

TEST_F(ClientNear, an_offer_waits_for_the_answer_of_the_engine) {
    ScriptedEngine third(kSmall);
    ASSERT_EQ(third.endpoint->messages().prepare_near(kOwnMemory), ULC_OK);
    third.form(2, 3);
    ASSERT_EQ(ulc_near_peer(third.endpoint.get(), 1), ULC_OK);
    NearOffer offer{};
    ASSERT_NE(kOwnMemory.make(offer), nullptr);
    const std::string word(reinterpret_cast<const char*>(&offer), sizeof offer);
    third.deliver_inline(1, kTagNear, word);
    third.endpoint->poll();
    EXPECT_EQ(mapped_of, 0U);
    answer(third, 1);
    EXPECT_EQ(mapped_of, 101U);
    EXPECT_EQ(third.endpoint->messages().control_dropped(), 0U);
    EXPECT_EQ(ulc_send(third.endpoint.get(), 1, kTag, "x", 1, nullptr), ULC_OK);
    EXPECT_FALSE(third.take_any().has_value());
}

TEST_F(ClientNear, an_endpoint_that_is_not_prepared_or_is_embedded_has_no_rings) {
    ScriptedEngine third(kSmall);
    third.form(2, 3);
    EXPECT_EQ(ulc_near_peer(third.endpoint.get(), 1), ULC_ERR_INVALID);
    EXPECT_EQ(third.endpoint->messages().prepare_near(kOwnMemory), ULC_ERR_INVALID);
    NearOffer offer{};
    third.deliver_inline(1, kTagNear, {reinterpret_cast<const char*>(&offer), sizeof offer});
    third.endpoint->poll();
    EXPECT_EQ(third.endpoint->messages().control_dropped(), 1U);
}

TEST_F(ClientNear, a_thread_that_sleeps_naps_if_a_ring_may_bring_something) {
    struct World {
        Nanos now = 0;
        Nanos nap_max = 0;
        NearSender* sender = nullptr;
    } world;
    Hooks hooks;
    hooks.context = &world;
    hooks.now = [](void* context) { return static_cast<World*>(context)->now += kMicrosecond; };
    hooks.sleep = [](void* context, std::atomic<std::uint32_t>&, std::uint32_t, Nanos nap) {
        auto* one = static_cast<World*>(context);
        one->now += nap;
        one->nap_max = std::max(one->nap_max, nap);
        if (one->sender != nullptr)
            static_cast<void>(one->sender->send(1, kTag, Pieces::one("late", 4)));
    };
    ScriptedEngine third(kSmall, {}, hooks);
    ulc_endpoint* ep = third.endpoint.get();
    ASSERT_EQ(third.endpoint->messages().prepare_near(kOwnMemory), ULC_OK);
    third.form(2, 3);
    ASSERT_EQ(ulc_near_peer(ep, 1), ULC_OK);
    answer(third, 1);
    EXPECT_EQ(ulc_wait(ep, 100 * kMillisecond), ULC_ERR_TIMEOUT);
    EXPECT_EQ(world.nap_max, 10 * kMillisecond);
    third.deliver_inline(1, kTag, "first");
    EXPECT_EQ(ulc_wait(ep, kMillisecond), ULC_OK);
    NearSender sender(made.rbegin()->second);
    world.sender = &sender;
    world.nap_max = 0;
    EXPECT_EQ(ulc_wait(ep, 100 * kMillisecond), ULC_OK);
    EXPECT_EQ(world.nap_max, 200 * kMicrosecond);
}

TEST_F(ClientNear, a_cancelled_receive_leaves_its_message_to_the_next_one_of_any_source) {
    connect();
    std::string taken_back(8, '.');
    std::string into(8, '.');
    ulc_request first_receive;
    ulc_request second_receive;
    EXPECT_EQ(ulc_receive(b, ULC_RANK_ANY, kTag, ~0ULL, taken_back.data(), 8, &first_receive), 0);
    EXPECT_EQ(ulc_receive(b, ULC_RANK_ANY, kTag, ~0ULL, into.data(), 8, &second_receive), 0);
    send("1");
    ASSERT_EQ(ulc_cancel(b, &first_receive), ULC_OK);
    ASSERT_GT(second.endpoint->poll(), 0);
    ulc_status status;
    ASSERT_EQ(ulc_test(b, &second_receive, &status), ULC_OK);
    EXPECT_EQ(into[0], '1');
    EXPECT_EQ(taken_back[0], '.');
    EXPECT_EQ(status.source, 0);
    EXPECT_EQ(ulc_cancel(b, &second_receive), ULC_ERR_AGAIN);
}

TEST_F(ClientNear, a_peer_that_dies_in_the_middle_of_a_write_leaves_nothing) {
    connect();
    send("whole");
    send("half");
    slot(1).mark = 0;  // as before the writer published it
    second.peer_gone(0, true);
    second.endpoint->poll();
    EXPECT_EQ(next(), "whole");
    EXPECT_EQ(next(), "none");
    slot(1).mark = abi::mark_of(1, kNearSlots);
    second.endpoint->poll();
    EXPECT_EQ(next(), "none");
}

TEST_F(ClientNear, a_ring_that_cannot_be_mapped_leaves_all_to_the_engine) {
    refuses = true;
    connect();
    send("by the engine");
    EXPECT_TRUE(carry());
    second.endpoint->poll();
    EXPECT_EQ(next(), "by the engine");
}

TEST_F(ClientNear, a_message_of_the_ring_waits_for_those_before_it) {
    connect();
    send(pattern(40'000));  // through the engine, in chunks
    send("after");
    second.endpoint->poll();
    EXPECT_EQ(next(), "none");
    ASSERT_TRUE(carry());
    second.endpoint->poll();
    // The long one has begun, so "after" is behind it and may be taken.
    ulc_status status;
    ASSERT_EQ(ulc_probe(b, 0, kTag, UINT64_MAX, &status), ULC_OK);
    EXPECT_EQ(status.length, 40'000U);
    EXPECT_TRUE(next() == pattern(40'000));
    EXPECT_EQ(next(), "after");
}

TEST_F(ClientNear, a_message_of_the_engine_waits_for_those_before_it) {
    connect();
    send("first");
    send(pattern(33'000));
    send("third");
    do
        first.endpoint->poll();
    while (carry());
    second.endpoint->poll();  // finds all at once
    EXPECT_EQ(next(), "first");
    EXPECT_TRUE(next() == pattern(33'000));
    EXPECT_EQ(next(), "third");
}

TEST_F(ClientNear, a_full_ring_leaves_messages_to_the_engine) {
    connect();
    unsigned sent = 0;
    for (; silent(); ++sent)
        send("message " + std::to_string(sent));
    EXPECT_EQ(sent, kNearSlots + 1);  // the last one was taken from the submissions
    second.endpoint->poll();
    for (unsigned i = 0; i + 1 < sent; ++i)
        EXPECT_EQ(next(), "message " + std::to_string(i));
    send("behind it");  // the ring again; what was taken never comes
    EXPECT_TRUE(silent());
    second.endpoint->poll();
    EXPECT_EQ(next(), "none");
}

TEST_F(ClientNear, sends_with_a_level_go_through_the_engine) {
    connect();
    ulc_request request;
    const ulc_piece piece{const_cast<char*>("x"), 1};
    EXPECT_EQ(ulc_sendv(a, 1, kTag, &piece, 1, ULC_SEND_DELIVERED, &request), ULC_OK);
    EXPECT_FALSE(silent());
    ulc_request plain;
    EXPECT_EQ(ulc_sendv(a, 1, kTag, &piece, 1, 0, &plain), ULC_OK);
    EXPECT_TRUE(silent());
    EXPECT_EQ(ulc_test(a, &plain, nullptr), ULC_OK);
}

TEST_F(ClientNear, what_a_peer_wrote_before_it_left_arrives) {
    connect();
    send("last words");
    second.peer_gone(0, true);
    second.endpoint->poll();
    EXPECT_EQ(next(), "last words");
    std::string into(8, '.');
    ulc_request request;
    ASSERT_EQ(ulc_receive(b, 0, kTag, UINT64_MAX, into.data(), into.size(), &request), ULC_OK);
    ulc_status status;
    ASSERT_EQ(ulc_test(b, &request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
}

TEST_F(ClientNear, unexpected_messages_of_a_ring_count_for_their_sender) {
    connect();
    EXPECT_EQ(ulc_set_rendezvous(b, UINT64_MAX, 50'000), ULC_OK);
    send(pattern(30'000));
    send(pattern(30'000));
    second.endpoint->poll();
    EXPECT_TRUE(carry_back());  // Hold
    first.endpoint->poll();
    send(pattern(300));
    EXPECT_FALSE(silent());  // announced, so through the engine
}

TEST_F(ClientNear, no_memory_keeps_messages_in_their_ring_and_later_ones_behind) {
    ScriptedEngine poor(kSmall, Limits{.unexpected_octets = 70'000});
    ASSERT_EQ(poor.endpoint->messages().prepare_near(kOwnMemory), ULC_OK);
    poor.form(1, 3);
    ulc_endpoint* ep = poor.endpoint.get();
    ASSERT_EQ(ulc_near_peer(ep, 0), ULC_OK);
    answer(poor, 0);
    poor.deliver_inline(0, kTag, "hello");
    ep->poll();
    ASSERT_EQ(poor.take_any()->tag, kTagNear);
    NearSender sender(made.rbegin()->second);
    const std::string text = pattern(30'000);
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(sender.send(1, kTag, Pieces::one(text.data(), text.size())));
    poor.deliver_inline(0, kTag, "end");
    while (ep->poll() > 0) {
    }
    EXPECT_EQ(ep->poll(), -ULC_ERR_LIMIT);
    std::vector<std::size_t> lengths;
    std::string into(40'000, '.');
    for (int i = 0; i < 5; ++i) {
        ulc_request request;
        ulc_status status;
        ASSERT_EQ(ulc_receive(ep, 0, kTag, UINT64_MAX, into.data(), into.size(), &request), ULC_OK);
        ep->poll();
        ASSERT_EQ(ulc_test(ep, &request, &status), ULC_OK);
        lengths.push_back(status.length);
    }
    EXPECT_EQ(lengths, (std::vector<std::size_t>{5, 30'000, 30'000, 30'000, 3}));
}

TEST_F(ClientNear, the_ring_of_a_sender_above_its_share_is_left) {
    constexpr std::uint64_t kLimit = 8 * kNearBytes;
    ScriptedEngine poor(kSmall, Limits{.unexpected_octets = kLimit});
    ASSERT_EQ(poor.endpoint->messages().prepare_near(kOwnMemory), ULC_OK);
    poor.form(1, 3);
    ulc_endpoint* ep = poor.endpoint.get();
    ASSERT_EQ(ulc_near_peer(ep, 0), ULC_OK);
    answer(poor, 0);
    poor.deliver_inline(0, kTag, "hello");
    ep->poll();
    NearSender sender(made.rbegin()->second);
    const std::string text = pattern(30'000);
    std::uint64_t sent = 0;
    const auto fill = [&] {
        for (int n = 0; n < 100; ++n) {
            while (sender.send(1, kTag, Pieces::one(text.data(), text.size())))
                sent += text.size();
            EXPECT_GE(ep->poll(), 0) << "the limit of all is not reached";
        }
    };
    fill();
    EXPECT_GE(sent, kLimit / 2);
    EXPECT_LE(sent, kLimit / 2 + 2 * kNearBytes) << "a lap, and what the ring still has";
    const std::uint64_t stopped_at = sent;
    std::string into(text.size(), '.');
    for (std::uint64_t n = 0; n < stopped_at / text.size(); ++n) {
        ulc_request request;
        ASSERT_EQ(ulc_receive(ep, 0, kTag, UINT64_MAX, into.data(), into.size(), &request), ULC_OK);
        ep->poll();
        ASSERT_EQ(ulc_test(ep, &request, nullptr), ULC_OK);
    }
    fill();
    EXPECT_GT(sent, stopped_at) << "it goes on when messages were received";
}

TEST_F(ClientNear, all_orders_of_ring_and_engine_are_the_order_of_sending) {
    connect();
    Prng random(7);
    std::deque<std::string> expected;
    for (int step = 0; step < 20'000; ++step) {
        switch (random.below(4)) {
            case 0: {
                const std::size_t length =
                    random.below(8) == 0 ? random.below(40'000) : random.below(200);
                expected.push_back(std::to_string(step) + pattern(length));
                if (ulc_send(a, 1, kTag, expected.back().data(), expected.back().size(), nullptr) !=
                    ULC_OK)
                    expected.pop_back();
                break;
            }
            case 1:
                first.endpoint->poll();
                if (expected.size() < 50) break;
                [[fallthrough]];
            case 2:
                if (!blocks.empty() && second.completions.room(4) == 4) static_cast<void>(carry());
                break;
            default:
                second.endpoint->poll();
                if (const std::string text = next(); text != "none") {
                    ASSERT_FALSE(expected.empty());
                    ASSERT_TRUE(text == expected.front())
                        << "step " << step << ": " << text.substr(0, 12);
                    expected.pop_front();
                }
        }
        take_back();
    }
}

}  // namespace
}  // namespace ulc::client
