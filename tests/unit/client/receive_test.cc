// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's handling of messages that arrive: matching, assembly, memory, release. Against a
// scripted engine.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

using abi::SubmitKind;

using ClientReceive = ClientTest;

TEST_F(ClientReceive, a_posted_receive_gets_the_message_and_its_status) {
    engine.form(0, 3);
    char buffer[16] = "";
    ulc_request request;
    ulc_status status;
    ASSERT_EQ(ulc_receive(ep, 2, 9, UINT64_MAX, buffer, sizeof buffer, &request), ULC_OK);
    engine.deliver_inline(1, 9, "other");
    engine.deliver_inline(2, 9, "hello");
    EXPECT_EQ(ep->poll(), 2);
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.source, 2);
    EXPECT_EQ(status.tag, 9U);
    EXPECT_EQ(status.length, 5U);
    EXPECT_EQ(std::string(buffer, 5), "hello");
}

TEST_F(ClientReceive, one_call_receives_from_several_sources_in_any_order) {
    engine.form(0, 4);
    char buffers[3][8] = {};
    void* const places[] = {buffers[0], buffers[1], buffers[2]};
    const std::uint16_t from[] = {3, 1, 2};
    ulc_request requests[3];
    ulc_status status;
    engine.deliver_inline(2, 9, "early");
    ep->poll();
    ASSERT_EQ(ulc_multireceive(ep, from, 3, 9, UINT64_MAX, places, 8, requests), ULC_OK);
    ASSERT_EQ(test(requests[2], &status), ULC_OK);
    EXPECT_EQ(status.source, 2);
    EXPECT_EQ(std::string(buffers[2], 5), "early");
    engine.deliver_inline(1, 8, "other");
    engine.deliver_inline(1, 9, "one");
    engine.deliver_inline(1, 9, "again");
    ep->poll();
    EXPECT_EQ(test(requests[0]), ULC_ERR_AGAIN);
    ASSERT_EQ(test(requests[1], &status), ULC_OK);
    EXPECT_EQ(status.source, 1);
    EXPECT_EQ(std::string(buffers[1], 3), "one");
    engine.deliver_inline(3, 9, "three");
    ep->poll();
    ASSERT_EQ(test(requests[0], &status), ULC_OK);
    EXPECT_EQ(status.source, 3);
    EXPECT_EQ(std::string(buffers[0], 5), "three");
}

TEST_F(ClientReceive, from_several_sources_all_start_or_none) {
    char buffers[2][8] = {};
    void* const places[] = {buffers[0], buffers[1]};
    const std::uint16_t from[] = {1, 2};
    ulc_request requests[2];
    const auto start = [&](const std::uint16_t* sources, void* const* into) {
        return ulc_multireceive(ep, sources, 2, 9, UINT64_MAX, into, 8, requests);
    };
    EXPECT_NE(start(from, places), ULC_OK) << "no job has formed";
    engine.form(0, 3);
    engine.deliver_inline(1, 9, "kept");
    ep->poll();
    constexpr std::uint16_t kTwice[] = {1, 1};
    constexpr std::uint16_t kAny[] = {1, ULC_RANK_ANY};
    constexpr std::uint16_t kUnknown[] = {1, 3};
    void* const none[] = {buffers[0], nullptr};
    EXPECT_EQ(start(kTwice, places), ULC_ERR_INVALID);
    EXPECT_EQ(start(kAny, places), ULC_ERR_INVALID);
    EXPECT_EQ(start(kUnknown, places), ULC_ERR_INVALID);
    EXPECT_EQ(start(from, none), ULC_ERR_INVALID);
    EXPECT_EQ(buffers[0][0], '\0') << "a call that was refused took a message";
    ASSERT_EQ(start(from, places), ULC_OK);
    EXPECT_EQ(test(requests[0]), ULC_OK);
    EXPECT_EQ(std::string(buffers[0], 4), "kept");
}

TEST_F(ClientReceive, the_error_handler_hears_what_no_request_tells) {
    struct Heard {
        int error = 0;
        std::uint16_t source = 0;
        std::uint64_t count = 0;
        int calls = 0;
    } heard;
    ulc_set_error_handler(
        ep,
        [](void* context, int error, std::uint16_t source, std::uint64_t count) {
            auto& into = *static_cast<Heard*>(context);
            into = {error, source, count, into.calls + 1};
        },
        &heard);
    engine.form(0, 2);
    abi::CompletionRecord& fault = engine.claim(abi::CompletionKind::kFault);
    fault.source = 1;
    fault.status = static_cast<std::int16_t>(ULC_ERR_LOST);
    fault.tag = 7;
    engine.completions.publish();
    ep->poll();
    EXPECT_EQ(heard.calls, 1);
    EXPECT_EQ(heard.error, ULC_ERR_LOST);
    EXPECT_EQ(heard.source, 1);
    EXPECT_EQ(heard.count, 7U);
    char buffer[4] = {};
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, ULC_RANK_ANY, 0, 0, buffer, 3, &request), ULC_OK);
    engine.deliver_inline(1, 0, "abcdefgh");
    ep->poll();
    EXPECT_EQ(heard.calls, 2);
    EXPECT_EQ(heard.error, ULC_ERR_TRUNCATED);
    EXPECT_EQ(heard.count, 8U);
    ulc_set_error_handler(ep, nullptr, nullptr);
    engine.deliver_inline(1, 0, "abcdefgh");
    ASSERT_EQ(ulc_receive(ep, ULC_RANK_ANY, 0, 0, buffer, 3, &request), ULC_OK);
    ep->poll();
    EXPECT_EQ(heard.calls, 2);
    EXPECT_EQ(test(request, nullptr), ULC_OK);
}

TEST_F(ClientReceive, a_member_that_holds_up_multicasts_is_remembered) {
    engine.form(0, 3);
    ulc_holder holder{};
    EXPECT_EQ(ulc_group_slowest(ep, kWorld, &holder), ULC_ERR_AGAIN);
    EXPECT_EQ(ulc_group_slowest(ep, kWorld + 1, &holder), ULC_ERR_INVALID);
    const auto hold = [&](std::uint16_t rank, int error) {
        abi::CompletionRecord& fault = engine.claim(abi::CompletionKind::kFault);
        fault.source = rank;
        fault.status = static_cast<std::int16_t>(error);
        fault.tag = 20;
        fault.stream = kWorld;
        engine.completions.publish();
        ep->poll();
        ASSERT_EQ(ulc_group_slowest(ep, kWorld, &holder), ULC_OK);
        EXPECT_EQ(holder.rank, rank);
        EXPECT_EQ(holder.error, error);
    };
    hold(1, ULC_ERR_PEER_SLOW);
    EXPECT_EQ(holder.held_ns, 20'000'000U);
    hold(1, ULC_ERR_PEER_SILENT);
    EXPECT_EQ(holder.held_ns, 40'000'000U);
    hold(2, ULC_ERR_PEER_SLOW);
    EXPECT_EQ(holder.held_ns, 20'000'000U);
}

TEST_F(ClientReceive, the_limit_of_the_hold_goes_to_the_engine) {
    const std::uint16_t keep[] = {2, 1};
    EXPECT_EQ(ulc_set_hold(ep, 1, 0, nullptr, 0), ULC_ERR_NOT_FORMED);
    engine.form(0, 3);
    ASSERT_EQ(ulc_set_hold(ep, 5000, ULC_HOLD_EXCLUDE, keep, 2), ULC_OK);
    const auto record = engine.take(abi::SubmitKind::kHold);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->tag, 5000U);
    EXPECT_EQ(record->stream, abi::kHoldExcludes);
    ASSERT_EQ(record->inline_length, sizeof keep);
    EXPECT_EQ(std::memcmp(record->body.inline_octets, keep, sizeof keep), 0);
    const std::uint16_t beyond = 3;
    EXPECT_EQ(ulc_set_hold(ep, 1, 0, &beyond, 1), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_set_hold(ep, 0, 0, nullptr, 0), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_set_hold(ep, 1, 2, nullptr, 0), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_set_hold(ep, 1, 0, nullptr, 1), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_set_hold(ep, 1, 0, keep, ULC_HOLD_KEEP_MAX + 1), ULC_ERR_INVALID);
    EXPECT_FALSE(engine.take(abi::SubmitKind::kHold).has_value());
}

TEST_F(ClientReceive, a_longer_message_is_cut_and_says_so) {
    engine.form(0, 2);
    char buffer[4] = {};
    ulc_request request;
    ulc_status status;
    engine.deliver_inline(1, 0, "abcdefgh");
    ep->poll();
    ASSERT_EQ(ulc_receive(ep, ULC_RANK_ANY, 0, 0, buffer, 3, &request), ULC_OK);
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_TRUNCATED);
    EXPECT_EQ(status.length, 8U);
    EXPECT_STREQ(buffer, "abc");
}

TEST_F(ClientReceive, user_receives_never_see_tags_of_collectives) {
    engine.form(0, 2);
    engine.deliver_inline(1, (std::uint64_t{1} << 63) | 5, "coll");
    engine.deliver_inline(1, 5, "user");
    ep->poll();
    char buffer[8] = "";
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, ULC_RANK_ANY, 0, 0, buffer, sizeof buffer, &request), ULC_OK);
    EXPECT_EQ(test(request), ULC_OK);
    EXPECT_STREQ(buffer, "user");
}

TEST_F(ClientReceive, chunks_are_put_together_whether_expected_before_during_or_after) {
    engine.form(0, 2);
    const std::string text = pattern(3000);
    for (int posted_at = 0; posted_at <= 3; ++posted_at) {
        std::string buffer(3000, '\0');
        ulc_request request;
        for (int chunk = 0; chunk <= 3; ++chunk) {
            if (chunk == posted_at) {
                ASSERT_EQ(ulc_receive(ep, 1, 1, UINT64_MAX, buffer.data(), 3000, &request), ULC_OK);
            }
            if (chunk == 3) break;
            engine.deliver_block(1, 1, 4096U * static_cast<unsigned>(chunk),
                                 text.substr(static_cast<std::size_t>(chunk) * 1000, 1000),
                                 static_cast<std::uint64_t>(chunk) * 1000, 3000);
            ep->poll();
            if (posted_at <= chunk) {
                EXPECT_EQ(test(request), chunk == 2 ? ULC_OK : ULC_ERR_AGAIN);
            }
        }
        EXPECT_EQ(test(request), ULC_OK);
        EXPECT_EQ(buffer, text);
        EXPECT_FALSE(engine.take_any().has_value());
        EXPECT_EQ(engine.released(), (std::vector<std::uint32_t>{0, 4096, 8192}));
    }
}

TEST_F(ClientReceive, take_gives_the_arena_block_itself_until_release) {
    engine.form(0, 2);
    const std::string text = pattern(1000);
    engine.deliver_block(1, 4, 128, text, 0, 1000);
    ep->poll();
    const void* view = nullptr;
    ulc_status status;
    ASSERT_EQ(ulc_take(ep, 1, 4, UINT64_MAX, &view, &status), ULC_OK);
    EXPECT_EQ(view, engine.region.rx(128, 1000));
    EXPECT_EQ(status.length, 1000U);
    EXPECT_TRUE(engine.released().empty());
    ulc_release(ep, view);
    EXPECT_EQ(engine.released(), (std::vector<std::uint32_t>{128}));
    EXPECT_EQ(ulc_take(ep, 1, 4, UINT64_MAX, &view, &status), ULC_ERR_AGAIN);
}

TEST_F(ClientReceive, unexpected_messages_hold_at_most_half_of_the_arena) {
    engine.form(0, 2);
    const std::string text = pattern(8192);
    for (unsigned i = 0; i < 8; ++i)
        engine.deliver_block(1, i, 8192 * i, text, 0, 8192);
    ep->poll();
    EXPECT_EQ(engine.released().size(), 4U) << "the rest was copied";
    for (unsigned i = 0; i < 8; ++i) {
        std::string buffer(8192, '\0');
        ulc_request request;
        ASSERT_EQ(ulc_receive(ep, 1, i, UINT64_MAX, buffer.data(), 8192, &request), ULC_OK);
        EXPECT_EQ(test(request), ULC_OK);
        EXPECT_EQ(buffer, text);
    }
    EXPECT_EQ(engine.released().size(), 4U);
    EXPECT_FALSE(engine.take_any().has_value());
}

TEST(ClientLimits, at_the_memory_limit_poll_says_so_and_nothing_is_lost) {
    Limits limits;
    limits.unexpected_octets = 64 * 1024;
    ScriptedEngine engine(kSmall, limits);
    engine.form(0, 2);
    ulc_endpoint* ep = engine.endpoint.get();
    const std::string text = pattern(200'000);  // in chunks, more than the limit
    std::string buffer(text.size(), '\0');
    std::size_t at = 0;
    int result = 0;
    while (result >= 0 && at < text.size()) {
        const std::string chunk = text.substr(at, 8192);
        engine.deliver_block(1, 1, 0, chunk, at, text.size());
        result = ep->poll();
        if (result >= 0) at += chunk.size();
    }
    EXPECT_EQ(result, -ULC_ERR_LIMIT);
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, 1, 1, UINT64_MAX, buffer.data(), buffer.size(), &request), ULC_OK);
    EXPECT_EQ(ep->poll(), 1);
    for (at += 8192; at < text.size(); at += 8192) {
        engine.deliver_block(1, 1, 0, text.substr(at, 8192), at, text.size());
        EXPECT_EQ(ep->poll(), 1);
    }
    EXPECT_EQ(ulc_test(ep, &request, nullptr), ULC_OK);
    EXPECT_EQ(buffer, text);
}

TEST_F(ClientReceive, releases_do_not_wait_while_the_submission_ring_is_full) {
    engine.form(0, 2);
    while (ulc_send(ep, 1, 0, "x", 1, nullptr) == ULC_OK) {
    }
    char buffer[64];
    for (unsigned i = 0; i < 30; ++i) {
        ulc_request request;
        engine.deliver_block(1, 0, 64 * i, pattern(60), 0, 60);
        ep->poll();
        ASSERT_EQ(ulc_receive(ep, 1, 0, 0, buffer, sizeof buffer, &request), ULC_OK);
        ASSERT_EQ(test(request), ULC_OK);
    }
    EXPECT_EQ(engine.released().size(), 30U);
}

TEST_F(ClientReceive, cancel_takes_back_only_what_has_not_matched) {
    engine.form(0, 2);
    char buffer[8];
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, 1, 0, 0, buffer, sizeof buffer, &request), ULC_OK);
    EXPECT_EQ(ulc_cancel(ep, &request), ULC_OK);
    engine.deliver_inline(1, 0, "x");
    ep->poll();
    ASSERT_EQ(ulc_receive(ep, 1, 0, 0, buffer, sizeof buffer, &request), ULC_OK);
    EXPECT_EQ(ulc_cancel(ep, &request), ULC_ERR_AGAIN);
    EXPECT_EQ(test(request), ULC_OK);
}

TEST_F(ClientReceive, a_pending_receive_that_names_its_source_is_announced) {
    engine.form(0, 3);
    char buffer[8];
    ulc_request named;
    ulc_request any;
    ASSERT_EQ(ulc_receive(ep, 2, 0, 0, buffer, sizeof buffer, &named), ULC_OK);
    ASSERT_EQ(ulc_receive(ep, ULC_RANK_ANY, 1, UINT64_MAX, buffer, sizeof buffer, &any), ULC_OK);
    for (int i = 0; i < 5000; ++i)
        ep->poll();
    const auto record = engine.take(SubmitKind::kExpect);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->stream, 2U);
    EXPECT_FALSE(engine.take_any().has_value()) << "once";
    ASSERT_EQ(ulc_cancel(ep, &named), ULC_OK);
    ASSERT_EQ(ulc_cancel(ep, &any), ULC_OK);
}

TEST_F(ClientReceive, collected_requests_are_handed_out_in_the_order_in_which_they_end) {
    engine.form(0, 2);
    char buffer[8];
    ulc_request first;
    ulc_request second;
    ulc_request unlisted;
    ulc_status status;
    ASSERT_EQ(ulc_receive(ep, 1, 1, UINT64_MAX, buffer, sizeof buffer, &first), ULC_OK);
    ASSERT_EQ(ulc_receive(ep, 1, 2, UINT64_MAX, buffer, sizeof buffer, &second), ULC_OK);
    ASSERT_EQ(ulc_receive(ep, 1, 3, UINT64_MAX, buffer, sizeof buffer, &unlisted), ULC_OK);
    ASSERT_EQ(ulc_collect(ep, &first), ULC_OK);
    ASSERT_EQ(ulc_collect(ep, &second), ULC_OK);
    EXPECT_EQ(ulc_collect(ep, &second), ULC_ERR_INVALID) << "once";
    EXPECT_EQ(ulc_next_done(ep, &status), nullptr);
    for (const std::uint64_t tag : {3, 2, 1})
        engine.deliver_inline(1, tag, "x");
    EXPECT_EQ(ep->poll(), 3);
    EXPECT_EQ(ulc_next_done(ep, &status), &second);
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_EQ(status.tag, 2U);
    EXPECT_EQ(status.length, 1U);
    EXPECT_EQ(status.source, 1);
    EXPECT_EQ(ulc_next_done(ep, nullptr), &first);
    EXPECT_EQ(ulc_next_done(ep, nullptr), nullptr);
    EXPECT_EQ(test(unlisted), ULC_OK);
}

TEST_F(ClientReceive, a_request_that_is_done_when_it_is_collected_is_handed_out_too) {
    engine.form(0, 2);
    char buffer[8];
    ulc_request request;
    engine.deliver_inline(1, 0, "x");
    ep->poll();
    for (int again = 0; again < 2; ++again) {  // one memory, started twice
        ASSERT_EQ(ulc_receive(ep, 1, 0, 0, buffer, sizeof buffer, &request), ULC_OK);
        ASSERT_EQ(ulc_collect(ep, &request), ULC_OK);
        if (again == 1) {
            engine.deliver_inline(1, 0, "y");
            ep->poll();
        }
        EXPECT_EQ(ulc_next_done(ep, nullptr), &request);
        EXPECT_EQ(ulc_next_done(ep, nullptr), nullptr);
    }
}

TEST_F(ClientReceive, a_collected_receive_that_is_taken_back_is_not_handed_out) {
    engine.form(0, 2);
    char buffer[8];
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, 1, 0, 0, buffer, sizeof buffer, &request), ULC_OK);
    ASSERT_EQ(ulc_collect(ep, &request), ULC_OK);
    EXPECT_EQ(ulc_cancel(ep, &request), ULC_OK);
    EXPECT_EQ(ulc_next_done(ep, nullptr), nullptr);
    // One that cannot be taken back still is.
    ASSERT_EQ(ulc_receive(ep, 1, 0, 0, buffer, sizeof buffer, &request), ULC_OK);
    ASSERT_EQ(ulc_collect(ep, &request), ULC_OK);
    engine.deliver_block(1, 0, 0, pattern(4), 0, 8);
    ep->poll();
    EXPECT_EQ(ulc_cancel(ep, &request), ULC_ERR_AGAIN);
    EXPECT_EQ(ulc_next_done(ep, nullptr), nullptr);
    engine.deliver_block(1, 0, 64, pattern(4), 4, 8);
    ep->poll();
    EXPECT_EQ(ulc_next_done(ep, nullptr), &request);
}

TEST_F(ClientReceive, collected_sends_are_handed_out_when_their_payload_may_be_used_again) {
    engine.form(0, 2);
    const std::string payload = pattern(100);
    const ulc_piece piece{const_cast<char*>(payload.data()), payload.size()};
    std::vector<ulc_request> waiting(80);  // more than the submission ring holds
    for (ulc_request& one : waiting) {
        ASSERT_EQ(ulc_send(ep, 1, 0, "x", 1, &one), ULC_OK);
        ASSERT_EQ(ulc_collect(ep, &one), ULC_OK);
    }
    ulc_request delivered;
    ASSERT_EQ(ulc_sendv(ep, 1, 0, &piece, 1, ULC_SEND_DELIVERED, &delivered), ULC_OK);
    ASSERT_EQ(ulc_collect(ep, &delivered), ULC_OK);
    std::size_t handed_out = 0;
    std::optional<std::uint32_t> cookie;
    for (int round = 0; round < 4; ++round) {
        while (auto record = engine.take_any())
            if ((record->flags & abi::kSubmitNotifyAcked) != 0) cookie = record->cookie;
        while (ulc_request* request = ulc_next_done(ep, nullptr))
            EXPECT_EQ(request, &waiting[handed_out++]);
        EXPECT_TRUE(round > 0 || handed_out < waiting.size()) << "some wait for the ring";
        ep->poll();
    }
    EXPECT_EQ(handed_out, waiting.size());
    ASSERT_TRUE(cookie.has_value());
    engine.send_done(*cookie);
    ep->poll();
    EXPECT_EQ(ulc_next_done(ep, nullptr), &delivered);
}

TEST_F(ClientReceive, the_end_of_an_endpoint_hands_out_every_collected_request) {
    engine.form(0, 3);
    char buffer[8];
    ulc_request requests[3];
    for (std::uint16_t n = 0; n < 3; ++n) {
        const std::uint16_t from = n == 0 ? ULC_RANK_ANY : n;
        ASSERT_EQ(ulc_receive(ep, from, 0, 0, buffer, sizeof buffer, &requests[n]), ULC_OK);
        ASSERT_EQ(ulc_collect(ep, &requests[n]), ULC_OK);
    }
    ulc_status status;
    engine.peer_gone(2, true);
    ep->poll();
    EXPECT_EQ(ulc_next_done(ep, &status), &requests[2]);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    engine.region.control().closed.store(ULC_ERR_NO_ENGINE);
    for (int i = 0; i < 100'000 && ep->ended() == 0; ++i)
        ep->poll();
    EXPECT_EQ(ulc_next_done(ep, &status), &requests[1]);
    EXPECT_EQ(status.error, ULC_ERR_NO_ENGINE);
    EXPECT_EQ(ulc_next_done(ep, &status), &requests[0]);
    EXPECT_EQ(ulc_next_done(ep, &status), nullptr);
}

TEST_F(ClientReceive, a_short_message_meets_the_receive_that_was_posted_first) {
    engine.form(0, 3);
    char buffers[4][8] = {};
    ulc_request any;
    ulc_request named;
    ulc_status status;
    ASSERT_EQ(ulc_receive(ep, ULC_RANK_ANY, 5, UINT64_MAX, buffers[0], 8, &any), ULC_OK);
    ASSERT_EQ(ulc_receive(ep, 1, 5, UINT64_MAX, buffers[1], 8, &named), ULC_OK);
    engine.deliver_inline(1, 5, "one");
    EXPECT_EQ(ep->poll(), 1);
    ASSERT_EQ(test(any, &status), ULC_OK);
    EXPECT_EQ(std::string(buffers[0], 3), "one");
    EXPECT_EQ(test(named), ULC_ERR_AGAIN);
    engine.deliver_inline(1, 5, "two");
    EXPECT_EQ(ep->poll(), 1);
    ASSERT_EQ(test(named, &status), ULC_OK);
    EXPECT_EQ(std::string(buffers[1], 3), "two");

    ulc_request other;
    ASSERT_EQ(ulc_receive(ep, 1, 6, UINT64_MAX, buffers[2], 8, &other), ULC_OK);
    ASSERT_EQ(ulc_receive(ep, 1, 7, UINT64_MAX, buffers[3], 3, &named), ULC_OK);
    engine.deliver_inline(1, 7, "longer");
    EXPECT_EQ(ep->poll(), 1);
    ASSERT_EQ(test(named, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_TRUNCATED);
    EXPECT_EQ(std::string(buffers[3], 8), std::string("lon\0\0\0\0\0", 8));
    EXPECT_EQ(test(other), ULC_ERR_AGAIN);
    ASSERT_EQ(ulc_cancel(ep, &other), ULC_OK);
}

TEST_F(ClientReceive, a_short_message_beyond_its_buffer_is_cut) {
    engine.form(0, 2);
    char buffer[8] = "";
    ulc_request request;
    ulc_status status;
    ASSERT_EQ(ulc_receive(ep, 1, 7, UINT64_MAX, buffer, 3, &request), ULC_OK);
    engine.deliver_inline(1, 7, "longer");
    EXPECT_EQ(ep->poll(), 1);
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_TRUNCATED);
    EXPECT_EQ(status.length, 6U);
    EXPECT_EQ(std::string(buffer, 4), std::string("lon\0", 4));
}

}  // namespace
}  // namespace ulc::client
