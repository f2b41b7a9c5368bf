// SPDX-License-Identifier: BSD-3-Clause
// Announced messages in pieces, between peers of which some are blocked, and at a leave.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/unit/client/rendezvous/fixture.h"

namespace ulc::client {
namespace {

// A receiver that looks at a message's head finds it in the announcement.
TEST_F(ClientRendezvous, whole_pieces_go_out_with_the_announcement) {
    std::string text = pattern(30'000);
    const std::array<ulc_piece, 3> pieces{
        {{text.data(), 40}, {text.data() + 40, 60}, {text.data() + 100, 29'900}}};
    ulc_request request;
    ASSERT_EQ(ulc_sendv(ep, 1, kTag, pieces.data(), 3, 0, &request), ULC_OK);
    std::string all;
    const Announcement head = announced(all);
    EXPECT_TRUE(all == text.substr(0, 100));
    ask(1, head.id, 30'000);
    std::uint64_t tag = 0;
    while (all.size() < text.size() && !HasFailure()) {
        all += taken(tag);
        EXPECT_EQ(tag, kTagRest | head.id);
    }
    EXPECT_TRUE(all == text);
    ep->poll();
    EXPECT_EQ(test(request), ULC_OK);
    EXPECT_EQ(ep->messages().control_dropped(), 0U);
}

// M-11
TEST_F(ClientRendezvous, a_held_sender_announces_a_short_first_piece_whole) {
    std::string text = pattern(3'000);
    hold(1, 1);
    for (const std::uint64_t first : {std::uint64_t{64}, std::uint64_t{65}}) {
        const std::array<ulc_piece, 3> pieces{
            {{text.data(), first}, {text.data() + first, 8}, {text.data() + first + 8, 2'000}}};
        ulc_request request;
        ASSERT_EQ(ulc_sendv(ep, 1, kTag, pieces.data(), 3, 0, &request), ULC_OK);
        std::string all;
        const Announcement head = announced(all);
        EXPECT_EQ(all.size(), first == 64 ? 64U : 0U);
        ask(1, head.id, head.length);
        std::uint64_t tag = 0;
        all += taken(tag);
        EXPECT_TRUE(all == text.substr(0, first + 2'008));
        ep->poll();
        EXPECT_EQ(test(request), ULC_OK);
    }
}

/// Sends to rank 1 until its stream is blocked.
void block_rank_1(ulc_endpoint* ep, const std::string& text, std::array<ulc_request, 6>& requests) {
    for (ulc_request& request : requests)
        ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), &request), ULC_OK);
}

// Four receives match; two of their messages are of the blocked peer.
TEST_F(ClientRendezvous, a_blocked_peer_holds_up_no_ask_of_others) {
    const std::string text = pattern(9'000);
    std::array<ulc_request, 6> sends;
    block_rank_1(ep, text, sends);
    std::array<ulc_request, 4> requests;
    std::array<std::string, 4> into;
    std::string message = pattern(20'000);
    for (unsigned n = 0; n < 4; ++n) {
        into[n].resize(message.size());
        const auto from = static_cast<std::uint16_t>(1 + n % 2);
        ASSERT_EQ(receive(from, into[n], requests[n]), ULC_OK);
        announce(from, message, 0, 10 + n);
    }
    std::array<unsigned, 3> asks{};
    const auto taken_cookies = [&] {
        std::vector<std::uint32_t> cookies;
        while (const auto record = engine.take_any()) {
            if (record->tag == kTagAsk) {
                ++asks[record->stream];
            } else {
                cookies.push_back(record->cookie);
            }
        }
        return cookies;
    };
    auto cookies = taken_cookies();
    EXPECT_EQ(asks[1], 0U);
    EXPECT_EQ(asks[2], 2U);
    for (unsigned rounds = 0; rounds < 10; ++rounds) {
        for (const std::uint32_t cookie : cookies)
            engine.send_done(cookie);
        ep->poll();
        ep->poll();
        cookies = taken_cookies();
    }
    EXPECT_EQ(asks[1], 2U);
    EXPECT_EQ(asks[2], 2U);
}

TEST_F(ClientRendezvous, a_blocked_peer_holds_up_no_hold_of_others) {
    const std::string text = pattern(9'000);
    std::array<ulc_request, 6> sends;
    block_rank_1(ep, text, sends);
    const std::string part = pattern(8'000);
    for (unsigned n = 0; n < 6; ++n)
        for (const std::uint16_t source : {1, 2})
            hear(source, kTag + 1, part);
    // Both pass their bound in one poll, in this order.
    engine.deliver_block(1, kTag + 1, 40'960, part, 0, part.size());
    engine.deliver_block(2, kTag + 1, 32'768, part, 0, part.size());
    ep->poll();
    unsigned holds_of_2 = 0;
    while (const auto record = engine.take_any())
        if (record->tag == kTagHold && record->stream == 2) ++holds_of_2;
    EXPECT_EQ(holds_of_2, 1U);
}

// M-13
TEST_F(ClientRendezvous, words_by_multicast_are_dropped) {
    Hold word{};
    word.hold = 1;
    engine.deliver_inline(1, kTagHold,
                          std::string(reinterpret_cast<const char*>(&word), sizeof word), kWorld);
    ep->poll();
    EXPECT_EQ(ep->messages().control_dropped(), 1U);
    const std::string text = pattern(3'000);
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), nullptr), ULC_OK);
    std::uint64_t tag = 0;
    EXPECT_TRUE(taken(tag) == text) << "it does not hold";
    EXPECT_EQ(tag, kTag);
}

// The engine has all of it; that no receive had matched is no error of a plain send.
TEST_F(ClientRendezvous, a_send_whose_first_part_was_all_ends_well_at_a_leave) {
    const std::string text = pattern(4'000);
    ASSERT_EQ(ulc_set_rendezvous(ep, 1'000, UINT64_MAX), ULC_OK);
    ulc_request plain;
    ulc_request matched;
    ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), &plain), ULC_OK);
    const ulc_piece piece{const_cast<char*>(text.data()), text.size()};
    ASSERT_EQ(ulc_sendv(ep, 1, kTag, &piece, 1, ULC_SEND_MATCHED, &matched), ULC_OK);
    std::string first;
    (void)announced(first);
    EXPECT_TRUE(first == text);
    (void)announced(first);
    ASSERT_EQ(ulc_leave(ep), ULC_OK);
    ep->poll();
    ulc_status status;
    ASSERT_EQ(test(plain, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    ASSERT_EQ(test(matched, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CLOSED);
}

// The rest of a send that awaited its match goes out at a leave, but no match is known.
TEST_F(ClientRendezvous, a_rest_sent_at_a_leave_is_no_match) {
    const std::string text = pattern(20'000);
    ulc_request matched;
    const ulc_piece piece{const_cast<char*>(text.data()), text.size()};
    ASSERT_EQ(ulc_sendv(ep, 1, kTag, &piece, 1, ULC_SEND_MATCHED, &matched), ULC_OK);
    std::string all;
    (void)announced(all);
    ASSERT_EQ(ulc_leave(ep), ULC_OK);
    std::uint64_t tag = 0;
    while (all.size() < text.size() && !HasFailure())
        all += taken(tag);
    EXPECT_TRUE(all == text);
    ep->poll();
    ulc_status status;
    ASSERT_EQ(test(matched, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CLOSED);
}

}  // namespace
}  // namespace ulc::client
