// SPDX-License-Identifier: BSD-3-Clause
// Announced messages: what an endpoint sends and answers, what it keeps, and what it makes of words
// that no correct peer sends. Against a scripted engine.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/client/rendezvous/fixture.h"

namespace ulc::client {
namespace {

using abi::SubmitKind;

// ---------------------------------------------------------------- sending

// M-5, M-6
TEST_F(ClientRendezvous, a_long_send_goes_out_in_two_parts) {
    const std::string text = pattern(30'000);
    ulc_request request;
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), &request), ULC_OK);
    std::string first;
    const Announcement head = announced(first);
    EXPECT_EQ(head.tag, kTag);
    EXPECT_EQ(head.length, 30'000U);
    EXPECT_GT(first.size(), 1000U);
    EXPECT_EQ(first, text.substr(0, first.size()));
    EXPECT_TRUE(silent());
    EXPECT_EQ(test(request), ULC_ERR_AGAIN) << "it was not asked for";
    ASSERT_EQ(ulc_send(ep, 1, kTag + 1, "later", 5, nullptr), ULC_OK);
    std::uint64_t tag = 0;
    EXPECT_EQ(taken(tag), "later") << "nothing waits behind an announced message";
    ask(1, head.id, 30'000);
    std::string rest;
    while (rest.size() + first.size() < text.size()) {
        rest += taken(tag);
        EXPECT_EQ(tag, kTagRest | head.id);
    }
    EXPECT_EQ(first + rest, text);
    ep->poll();
    EXPECT_EQ(test(request), ULC_OK);
    EXPECT_EQ(ep->messages().control_dropped(), 0U);
    ask(1, head.id, 30'000);
    EXPECT_EQ(ep->messages().control_dropped(), 1U) << "it is over";
}

TEST_F(ClientRendezvous, short_sends_multicasts_and_collectives_are_not_announced) {
    const std::string text = pattern(10'000);
    std::uint64_t tag = 0;
    ulc_request request;
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), 9'999, nullptr), ULC_OK);
    EXPECT_EQ(drain_message(nullptr), text.substr(0, 9'999));
    ASSERT_EQ(ulc_multicast(ep, kWorld, 0, kTag, text.data(), 10'000, &request), ULC_OK);
    EXPECT_EQ(drain_message(&request), text);
    ASSERT_EQ(ep->messages().send(1, std::uint64_t{1} << 63, Pieces::one(text.data(), 10'000), 0,
                                  &request),
              ULC_OK);
    EXPECT_EQ(drain_message(&request), text);
    ASSERT_EQ(ulc_set_rendezvous(ep, UINT64_MAX, UINT64_MAX), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), 10'000, &request), ULC_OK);
    EXPECT_EQ(drain_message(&request), text);
    EXPECT_TRUE(silent());
    (void)tag;
}

TEST_F(ClientRendezvous, a_low_bound_announces_short_sends_too) {
    ASSERT_EQ(ulc_set_rendezvous(ep, 16, UINT64_MAX), ULC_OK);
    std::uint64_t tag = 0;
    ASSERT_EQ(ulc_send(ep, 1, kTag, "below the bound", 15, nullptr), ULC_OK);
    EXPECT_EQ(taken(tag), "below the bound");
    EXPECT_EQ(tag, kTag);
    ASSERT_EQ(ulc_send(ep, 1, kTag, "just at the bound", 16, nullptr), ULC_OK);
    std::string first;
    EXPECT_EQ(announced(first).length, 16U);
}

// M-9
TEST_F(ClientRendezvous, a_receiver_may_ask_for_less_or_for_nothing) {
    const std::string text = pattern(30'000);
    ulc_request request;
    for (const bool something : {true, false}) {
        ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), &request), ULC_OK);
        std::string first;
        const Announcement head = announced(first);
        ask(1, head.id, something ? first.size() + 10 : 0);
        std::uint64_t tag = 0;
        if (something) {
            EXPECT_EQ(taken(tag), text.substr(first.size(), 10));
        }
        EXPECT_TRUE(silent());
        EXPECT_EQ(test(request), ULC_OK);
    }
}

// M-9
TEST_F(ClientRendezvous, a_matched_send_of_any_length_waits_for_the_ask) {
    for (const std::size_t length : {0U, 10U, 3'000U}) {
        const std::string text = pattern(length);
        const ulc_piece piece{const_cast<char*>(text.data()), length};
        ulc_request request;
        ASSERT_EQ(ulc_sendv(ep, 1, kTag, &piece, 1, ULC_SEND_MATCHED, &request), ULC_OK);
        std::string first;
        const Announcement head = announced(first);
        EXPECT_EQ(first, text);
        ep->poll();
        EXPECT_EQ(test(request), ULC_ERR_AGAIN);
        ask(1, head.id, length);
        EXPECT_EQ(test(request), ULC_OK);
        EXPECT_TRUE(silent());
    }
}

TEST_F(ClientRendezvous, a_send_without_a_request_keeps_a_copy) {
    std::string text = pattern(30'000);
    const std::string copy = text;
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), nullptr), ULC_OK);
    text.assign(30'000, 'x');
    std::string all;
    const Announcement head = announced(all);
    ask(1, head.id, 30'000);
    std::uint64_t tag = 0;
    while (all.size() < copy.size())
        all += taken(tag);
    EXPECT_EQ(all, copy);
}

TEST_F(ClientRendezvous, pieces_are_sent_after_the_ask_alone) {
    std::string text = pattern(30'000);
    const ulc_piece pieces[2] = {{text.data(), 10'001}, {text.data() + 10'001, 19'999}};
    ulc_request request;
    ASSERT_EQ(ulc_sendv(ep, 2, kTag, pieces, 2, 0, &request), ULC_OK);
    std::string all;
    const Announcement head = announced(all);
    EXPECT_EQ(head.first, 0U);
    ask(2, head.id, 20'000);
    std::uint64_t tag = 0;
    while (all.size() < 20'000)
        all += taken(tag);
    EXPECT_EQ(all, text.substr(0, 20'000));
    ep->poll();
    EXPECT_EQ(test(request), ULC_OK);
}

TEST_F(ClientRendezvous, death_of_the_receiver_ends_what_waits_for_an_ask) {
    const std::string text = pattern(30'000);
    ulc_request one;
    ulc_request other;
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), &one), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 2, kTag, text.data(), text.size(), &other), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), nullptr), ULC_OK);
    engine.peer_gone(1, true);
    ep->poll();
    ulc_status status;
    ASSERT_EQ(test(one, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    EXPECT_EQ(test(other), ULC_ERR_AGAIN);
}

// M-10
TEST_F(ClientRendezvous, leaving_sends_the_rest_unasked) {
    const std::string text = pattern(30'000);
    ulc_request request;
    ulc_request matched;
    const ulc_piece piece{const_cast<char*>(text.data()), 10};
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), &request), ULC_OK);
    ASSERT_EQ(ulc_sendv(ep, 1, kTag, &piece, 1, ULC_SEND_MATCHED, &matched), ULC_OK);
    std::string all;
    std::string small;
    const Announcement head = announced(all);
    (void)announced(small);
    ASSERT_EQ(ulc_leave(ep), ULC_OK);
    std::uint64_t tag = 0;
    while (all.size() < text.size()) {
        all += taken(tag);
        EXPECT_EQ(tag, kTagRest | head.id);
    }
    EXPECT_EQ(all, text);
    ep->poll();
    EXPECT_EQ(test(request), ULC_OK);
    ulc_status status;
    ASSERT_EQ(test(matched, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CLOSED);
    EXPECT_TRUE(engine.take(SubmitKind::kLeave).has_value());
}

// An announcement after the leave would lose its message: the rest could not follow.
TEST_F(ClientRendezvous, a_hold_after_leaving_announces_nothing) {
    constexpr std::size_t kSends = 60;
    const std::string text = pattern(3'000);
    ASSERT_EQ(ulc_set_rendezvous(ep, UINT64_MAX, UINT64_MAX), ULC_OK);
    std::vector<ulc_request> requests(kSends);
    for (ulc_request& request : requests)
        ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), &request), ULC_OK);
    ASSERT_EQ(ulc_leave(ep), ULC_OK);
    hold(1, 1);
    std::size_t octets = 0;
    while (const auto record = engine.take_any()) {
        if (record->kind == SubmitKind::kLeave) break;
        EXPECT_EQ(record->tag, kTag);
        octets += record->body.block.length;
        engine.send_done(record->cookie);
        ep->poll();
    }
    EXPECT_EQ(octets, kSends * text.size());
    for (ulc_request& request : requests)
        EXPECT_EQ(test(request), ULC_OK);
}

// M-11
TEST_F(ClientRendezvous, a_peer_that_says_hold_gets_announcements_without_a_first_part) {
    const std::string text = pattern(3'000);
    ASSERT_EQ(ulc_set_rendezvous(ep, UINT64_MAX, UINT64_MAX), ULC_OK);
    hold(1, 1);
    std::uint64_t tag = 0;
    ASSERT_EQ(ulc_send(ep, 2, kTag, text.data(), 3'000, nullptr), ULC_OK);
    EXPECT_EQ(taken(tag), text) << "another peer";
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), 256, nullptr), ULC_OK);
    EXPECT_EQ(taken(tag), text.substr(0, 256));
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), 3'000, nullptr), ULC_OK);
    std::string first;
    const Announcement head = announced(first);
    EXPECT_EQ(head.first, 0U);
    ask(1, head.id, 3'000);
    EXPECT_EQ(taken(tag), text);
    hold(1, 0);
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), 3'000, nullptr), ULC_OK);
    EXPECT_EQ(taken(tag), text);
    EXPECT_EQ(tag, kTag);
}

// ---------------------------------------------------------------- receiving

// M-5, M-9
TEST_F(ClientRendezvous, an_announced_message_is_asked_for_when_its_receive_is_known) {
    const std::string text = pattern(5'000);
    for (const bool posted : {true, false}) {
        std::string into(5'000, '-');
        ulc_request request;
        ulc_status status;
        if (posted) {
            ASSERT_EQ(receive(1, into, request), ULC_OK);
        }
        announce(1, text, 2'000);
        if (!posted) {
            EXPECT_TRUE(silent()) << "no receive wants it";
            ASSERT_EQ(ulc_probe(ep, 1, kTag, kExact, &status), ULC_OK);
            EXPECT_EQ(status.length, 5'000U);
            ASSERT_EQ(receive(1, into, request), ULC_OK);
        }
        const Ask word = said<Ask>(1, kTagAsk);
        EXPECT_EQ(word.id, 5U);
        EXPECT_EQ(word.up_to, 5'000U);
        EXPECT_EQ(test(request), ULC_ERR_AGAIN);
        hear(1, kTagRest | 5, text.substr(2'000));
        ASSERT_EQ(test(request, &status), ULC_OK);
        EXPECT_EQ(status.error, ULC_OK);
        EXPECT_EQ(status.length, 5'000U);
        EXPECT_EQ(status.tag, kTag);
        EXPECT_EQ(into, text);
        EXPECT_TRUE(silent());
    }
    EXPECT_EQ(ep->messages().control_dropped(), 0U);
}

// M-9
TEST_F(ClientRendezvous, a_shorter_receive_asks_for_as_much_as_it_takes) {
    const std::string text = pattern(5'000);
    for (const std::size_t capacity : {3'000U, 2'000U, 10U}) {
        std::string into(capacity, '-');
        ulc_request request;
        ulc_status status;
        announce(1, text, 2'000);
        ASSERT_EQ(receive(1, into, request), ULC_OK);
        EXPECT_EQ(said<Ask>(1, kTagAsk).up_to, capacity);
        if (capacity > 2'000) hear(1, kTagRest | 5, text.substr(2'000, capacity - 2'000));
        ASSERT_EQ(test(request, &status), ULC_OK);
        EXPECT_EQ(status.error, ULC_ERR_TRUNCATED);
        EXPECT_EQ(status.length, 5'000U);
        EXPECT_EQ(into, text.substr(0, capacity));
    }
}

TEST_F(ClientRendezvous, the_engine_is_told_where_the_rest_goes) {
    const abi::Placer placer = ep->placer();
    const std::string text = pattern(5'000);
    std::string into(5'000, '-');
    const ulc_piece pieces[2] = {{into.data(), 2'500}, {into.data() + 2'500, 2'500}};
    ulc_request request;
    announce(1, text, 2'000);
    const abi::Beginning rest{
        .source = 1, .stream = 0, .tag = kTagRest | 5, .length = 3'000, .taken_at_least = 0};
    EXPECT_FALSE(placer.find(placer.context, rest)) << "no receive has it";
    EXPECT_FALSE(ep->messages().inbox().may_place());
    ASSERT_EQ(ulc_receivev(ep, 1, kTag, kExact, pieces, 2, &request), ULC_OK);
    EXPECT_EQ(said<Ask>(1, kTagAsk).up_to, 5'000U);
    EXPECT_TRUE(ep->messages().inbox().may_place());
    abi::Beginning other = rest;
    other.length = 2'999;
    EXPECT_FALSE(placer.find(placer.context, other)) << "another length than was asked for";
    other = rest;
    other.source = 2;
    EXPECT_FALSE(placer.find(placer.context, other)) << "another source";
    EXPECT_EQ(placer.find(placer.context, rest).contiguous(0, 500),
              static_cast<void*>(into.data() + 2'000));
    const abi::Place place = placer.place(placer.context, rest);
    ASSERT_TRUE(place);
    place.write(0, reinterpret_cast<const std::byte*>(text.data()) + 2'000, 3'000);
    EXPECT_FALSE(placer.find(placer.context, rest)) << "it has begun";
    EXPECT_FALSE(ep->messages().inbox().may_place()) << "nothing else was asked for";
    abi::CompletionRecord& record = engine.claim(abi::CompletionKind::kMessage);
    record.flags = abi::kCompletePlaced | abi::kCompleteLast;
    record.source = 1;
    record.stream = 0;
    record.body.block.message_length = 3'000;
    engine.completions.publish();
    ep->poll();
    EXPECT_EQ(test(request), ULC_OK);
    EXPECT_EQ(into, text);
}

// M-7
TEST_F(ClientRendezvous, announcements_keep_their_place_among_messages) {
    std::string first(10, '-');
    std::string second(10, '-');
    ulc_request requests[2];
    announce(1, "announced!", 10, 1);
    engine.deliver_inline(1, kTag, "plain text");
    ep->poll();
    ASSERT_EQ(receive(ULC_RANK_ANY, first, requests[0]), ULC_OK);
    ASSERT_EQ(receive(ULC_RANK_ANY, second, requests[1]), ULC_OK);
    EXPECT_EQ(test(requests[0]), ULC_OK);
    EXPECT_EQ(test(requests[1]), ULC_OK);
    EXPECT_EQ(first, "announced!");
    EXPECT_EQ(second, "plain text");
    EXPECT_EQ(said<Ask>(1, kTagAsk).up_to, 10U) << "its sender may wait for the match";
}

TEST_F(ClientRendezvous, claimed_discarded_and_taken_messages_are_asked_for) {
    const std::string text = pattern(5'000);
    ulc_message* message = nullptr;
    announce(1, text, 2'000, 1);
    announce(1, text, 2'000, 2);
    announce(1, text, 2'000, 3);
    ASSERT_EQ(ulc_claim(ep, 1, kTag, kExact, &message, nullptr), ULC_OK);
    EXPECT_TRUE(silent());
    ASSERT_EQ(ulc_discard(ep, message), ULC_OK);
    EXPECT_EQ(said<Ask>(1, kTagAsk).up_to, 0U);

    ASSERT_EQ(ulc_claim(ep, 1, kTag, kExact, &message, nullptr), ULC_OK);
    std::string into(5'000, '-');
    const ulc_piece piece{into.data(), into.size()};
    ulc_request request;
    ASSERT_EQ(ulc_receive_claimed(ep, message, &piece, 1, &request), ULC_OK);
    const Ask word = said<Ask>(1, kTagAsk);
    EXPECT_EQ(word.id, 2U);
    hear(1, kTagRest | 2, text.substr(2'000));
    ASSERT_EQ(test(request), ULC_OK);
    EXPECT_EQ(into, text);

    const void* view = nullptr;
    ulc_status status;
    EXPECT_EQ(ulc_take(ep, 1, kTag, kExact, &view, &status), ULC_ERR_AGAIN);
    EXPECT_EQ(said<Ask>(1, kTagAsk).id, 3U);
    hear(1, kTagRest | 3, text.substr(2'000));
    ASSERT_EQ(ulc_take(ep, 1, kTag, kExact, &view, &status), ULC_OK);
    EXPECT_EQ(std::string(static_cast<const char*>(view), status.length), text);
    ulc_release(ep, view);
    EXPECT_EQ(ep->messages().control_dropped(), 0U);
}

TEST_F(ClientRendezvous, a_rest_that_comes_unasked_is_kept_for_its_receive) {
    const std::string text = pattern(5'000);
    announce(1, text, 2'000);
    hear(1, kTagRest | 5, text.substr(2'000));
    engine.peer_gone(1, false);
    ep->poll();
    std::string into(5'000, '-');
    ulc_request request;
    ulc_status status;
    ASSERT_EQ(receive(1, into, request), ULC_OK);
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_EQ(into, text);
    EXPECT_TRUE(silent());
}

TEST_F(ClientRendezvous, death_of_the_sender_ends_every_state) {
    const std::string text = pattern(5'000);
    std::string asked(5'000, '-');
    std::string half(5'000, '-');
    ulc_request requests[3];
    ulc_message* claimed = nullptr;
    announce(1, text, 2'000, 1);
    ASSERT_EQ(receive(1, asked, requests[0]), ULC_OK);
    announce(1, text, 0, 3);
    ASSERT_EQ(ulc_claim(ep, 1, kTag, kExact, &claimed, nullptr), ULC_OK);
    announce(1, text, 2'000, 2);
    ASSERT_EQ(receive(1, half, requests[1]), ULC_OK);
    announce(1, text, 2'000, 4);
    engine.deliver_block(1, kTagRest | 2, 0, text.substr(2'000, 1'000), 0, 3'000);
    ep->poll();
    engine.peer_gone(1, true);
    ep->poll();
    ulc_status status;
    for (int n = 0; n < 2; ++n) {
        ASSERT_EQ(test(requests[n], &status), ULC_OK) << n;
        EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    }
    const ulc_piece piece{asked.data(), asked.size()};
    ASSERT_EQ(ulc_receive_claimed(ep, claimed, &piece, 1, &requests[2]), ULC_OK);
    ASSERT_EQ(test(requests[2], &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    EXPECT_EQ(ulc_probe(ep, 1, kTag, kExact, nullptr), ULC_ERR_PEER_DIED)
        << "the rest of it cannot come";
}

TEST_F(ClientRendezvous, a_sender_whose_messages_fill_its_share_is_told_to_hold) {
    const std::string text = pattern(8'000);
    for (int n = 0; n < 6; ++n)
        hear(1, kTag, text);
    EXPECT_TRUE(silent()) << "48,000 of 50,000 bytes";
    hear(1, kTag, text);
    EXPECT_EQ(said<Hold>(1, kTagHold).hold, 1U);
    hear(1, kTag, text);
    EXPECT_TRUE(silent()) << "it knows";
    std::string into(8'000, '-');
    ulc_request request;
    for (int n = 0; n < 4; ++n) {
        EXPECT_TRUE(silent()) << n;
        ASSERT_EQ(receive(1, into, request), ULC_OK);
        ep->poll();
    }
    EXPECT_TRUE(silent()) << "32,000 bytes are left";
    ASSERT_EQ(receive(1, into, request), ULC_OK);
    ep->poll();
    EXPECT_EQ(said<Hold>(1, kTagHold).hold, 0U) << "24,000 bytes are left";
}

}  // namespace
}  // namespace ulc::client
