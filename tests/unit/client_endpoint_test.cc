// The endpoint against a scripted engine: which records it writes, what it does with each completion, and that it judges
// what it reads.
#include "client/endpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "scripted_engine.h"

namespace ulc::client {
namespace {

using abi::SubmitKind;

constexpr abi::RegionSizes kSmall{64, 64, 64 * 1024, 64 * 1024};

std::string pattern(std::size_t octets) {
    std::string text(octets, '\0');
    for (std::size_t i = 0; i < octets; ++i)
        text[i] = static_cast<char>((i * 131 + i / 251) & 0xff);
    return text;
}

struct Client : testing::Test {
    ScriptedEngine engine{kSmall};
    ulc_endpoint* ep = engine.endpoint.get();

    int test(ulc_request& request, ulc_status* status = nullptr) {
        return ulc_test(ep, &request, status);
    }
    /// Takes all chunks of one message, answering each; what the engine read.
    std::string drain_message(ulc_request* request, unsigned* chunks = nullptr) {
        std::string read;
        for (int round = 0; round < 100'000; ++round) {
            while (auto record = engine.take_any()) {
                EXPECT_EQ(record->kind, SubmitKind::kSend);
                const abi::Block& block = record->body.block;
                EXPECT_EQ((record->flags & abi::kSubmitFirst) != 0, read.empty());
                EXPECT_EQ(block.message_offset, read.size());
                read.append(
                    reinterpret_cast<const char*>(engine.region.tx(block.offset, block.length)),
                    block.length);
                if (chunks != nullptr) ++*chunks;
                engine.send_done(record->cookie);
                if ((record->flags & abi::kSubmitLast) != 0) {
                    EXPECT_EQ(read.size(), block.message_length);
                    ep->poll();
                    return read;
                }
            }
            ep->poll();
        }
        ADD_FAILURE() << "the message does not end, state "
                      << (request != nullptr ? test(*request) : 0);
        return read;
    }
};

// ---------------------------------------------------------------- sending

TEST_F(Client, nothing_is_sent_before_the_job_has_formed) {
    EXPECT_EQ(ulc_send(ep, 1, 0, "x", 1, nullptr), ULC_ERR_NOT_FORMED);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_NOT_FORMED);
    engine.form(0, 4);
    EXPECT_EQ(ulc_send(ep, 1, 0, "x", 1, nullptr), ULC_OK);
    EXPECT_EQ(ulc_send(ep, 4, 0, "x", 1, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_send(ep, 1, UINT64_MAX, "x", 1, nullptr), ULC_ERR_INVALID);
}

TEST_F(Client, a_small_message_travels_inside_its_record) {
    engine.form(0, 2);
    const std::string text = pattern(abi::kInlineOctetsMax);
    ulc_request request;
    ASSERT_EQ(ulc_send(ep, 1, 77, text.data(), text.size(), &request), ULC_OK);
    EXPECT_EQ(test(request), ULC_OK) << "done when written";
    const auto record = engine.take(SubmitKind::kSend);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->stream, 1U);
    EXPECT_EQ(record->tag, 77U);
    EXPECT_EQ(record->inline_length, text.size());
    EXPECT_EQ(std::memcmp(record->body.inline_octets, text.data(), text.size()), 0);
}

TEST_F(Client, messages_of_every_length_arrive_chunk_by_chunk) {
    engine.form(0, 2);
    for (const std::size_t octets : {41U, 64U, 4096U, 8192U, 8193U, 100'000U, 1'000'003U}) {
        const std::string text = pattern(octets);
        ulc_request request;
        ASSERT_EQ(ulc_send(ep, 1, 3, text.data(), octets, &request), ULC_OK);
        EXPECT_EQ(drain_message(&request), text) << octets;
        EXPECT_EQ(test(request), ULC_OK);
        EXPECT_TRUE(ep->all_sent());
    }
}

TEST_F(Client, a_message_without_a_request_is_copied_whatever_its_length) {
    engine.form(0, 2);
    std::string text = pattern(300'000);
    const std::string kept = text;
    ASSERT_EQ(ulc_send(ep, 1, 3, text.data(), text.size(), nullptr), ULC_OK);
    std::fill(text.begin(), text.end(), 'x');
    EXPECT_EQ(drain_message(nullptr), kept);
}

TEST_F(Client, a_full_ring_is_again_without_and_waits_with_a_request) {
    engine.form(0, 2);
    int sent = 0;
    while (ulc_send(ep, 1, 0, "x", 1, nullptr) == ULC_OK)
        ++sent;
    EXPECT_LE(sent, 64);
    EXPECT_GE(sent, 64 * 3 / 4) << "the engine publishes its cursor once a quarter of the ring";
    ulc_request first;
    ulc_request second;
    ASSERT_EQ(ulc_send(ep, 1, 1, "a", 1, &first), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 1, 2, "b", 1, &second), ULC_OK);
    EXPECT_EQ(test(first), ULC_ERR_AGAIN);
    for (int i = 0; i < sent; ++i)
        ASSERT_TRUE(engine.take(SubmitKind::kSend).has_value());
    EXPECT_EQ(ep->poll(), 2);
    EXPECT_EQ(test(first), ULC_OK);
    EXPECT_EQ(engine.take(SubmitKind::kSend)->tag, 1U);
    EXPECT_EQ(engine.take(SubmitKind::kSend)->tag, 2U);
}

TEST_F(Client, a_later_message_to_one_receiver_never_overtakes_and_others_may) {
    engine.form(0, 3);
    const std::string large = pattern(200'000);
    ulc_request first;
    ulc_request second;
    ulc_request multicast;
    ASSERT_EQ(ulc_send(ep, 1, 1, large.data(), large.size(), &first), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 1, 2, "b", 1, &second), ULC_OK);
    EXPECT_EQ(ulc_send(ep, 1, 2, "b", 1, nullptr), ULC_ERR_AGAIN);
    ASSERT_EQ(ulc_send(ep, 2, 3, "c", 1, nullptr), ULC_OK) << "another receiver";
    ASSERT_EQ(ulc_multicast(ep, kWorld, 0, 4, "d", 1, &multicast), ULC_OK);
    EXPECT_EQ(ulc_send(ep, 2, 5, "e", 1, nullptr), ULC_ERR_AGAIN) << "behind the multicast";
    std::vector<std::uint64_t> ended;
    for (int round = 0; round < 1000 && ended.size() < 4; ++round) {
        ep->poll();
        while (auto record = engine.take_any()) {
            if ((record->flags & abi::kSubmitInline) == 0) engine.send_done(record->cookie);
            if ((record->flags & abi::kSubmitLast) != 0) ended.push_back(record->tag);
        }
    }
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{3, 1, 2, 4}));
}

TEST_F(Client, one_receiver_holds_at_most_half_of_the_arena) {
    engine.form(0, 3);
    const std::string large = pattern(200'000);
    ulc_request stuck;
    ulc_request other;
    ASSERT_EQ(ulc_send(ep, 1, 1, large.data(), large.size(), &stuck), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 2, 2, large.data(), 8000, &other), ULC_OK);
    EXPECT_EQ(test(other), ULC_OK);
    std::uint32_t held = 0;
    while (auto record = engine.take(SubmitKind::kSend))
        if (record->stream == 1) held += record->body.block.length;
    EXPECT_EQ(held, kSmall.tx_arena_octets / 2);
}

TEST_F(Client, arena_memory_is_sent_without_a_copy) {
    engine.form(0, 2);
    void* memory = ulc_alloc(ep, 5000);
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 'z', 5000);
    ulc_request request;
    ASSERT_EQ(ulc_send(ep, 1, 0, memory, 5000, &request), ULC_OK);
    EXPECT_EQ(test(request), ULC_ERR_AGAIN) << "the engine still reads it";
    const auto record = engine.take(SubmitKind::kSend);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(engine.region.tx(record->body.block.offset, 5000), memory);
    engine.send_done(record->cookie);
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(test(request), ULC_OK);
    ulc_free(ep, memory);
    ASSERT_EQ(ulc_send(ep, 1, 0, memory, 100, nullptr), ULC_OK) << "without a request: copied";
    EXPECT_NE(engine.region.tx(engine.take(SubmitKind::kSend)->body.block.offset, 100), memory);
}

TEST_F(Client, a_subset_names_members_and_never_the_sender) {
    engine.form(1, 4);
    EXPECT_EQ(ulc_multicast(ep, kWorld, 1U << 4, 0, "x", 1, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_multicast(ep, 99, 0, 0, "x", 1, nullptr), ULC_ERR_INVALID);
    ASSERT_EQ(ulc_multicast(ep, kWorld, 0b0010, 0, "x", 1, nullptr), ULC_OK);
    EXPECT_FALSE(engine.take_any().has_value()) << "only the sender itself";
    ASSERT_EQ(ulc_multicast(ep, kWorld, 0b1110, 0, "x", 1, nullptr), ULC_OK);
    const auto record = engine.take(SubmitKind::kSend);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->stream, kWorld);
    EXPECT_EQ(record->body.block.subset, 0b1100U);
    EXPECT_EQ(record->flags & abi::kSubmitInline, 0);
}

TEST_F(Client, a_message_to_itself_arrives) {
    engine.form(1, 2);
    ulc_request request;
    char buffer[8] = "";
    ASSERT_EQ(ulc_receive(ep, 1, 5, UINT64_MAX, buffer, sizeof buffer, &request), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 1, 5, "self", 5, nullptr), ULC_OK);
    EXPECT_EQ(test(request), ULC_OK);
    EXPECT_STREQ(buffer, "self");
    ASSERT_EQ(ulc_send(ep, 1, 6, "late", 5, nullptr), ULC_OK);
    const void* view = nullptr;
    ASSERT_EQ(ulc_take(ep, 1, 6, UINT64_MAX, &view, nullptr), ULC_OK);
    EXPECT_STREQ(static_cast<const char*>(view), "late");
    ulc_release(ep, view);
}

// ---------------------------------------------------------------- receiving

TEST_F(Client, a_posted_receive_gets_the_message_and_its_status) {
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

TEST_F(Client, the_error_handler_hears_what_no_request_tells) {
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

TEST_F(Client, a_longer_message_is_cut_and_says_so) {
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

TEST_F(Client, user_receives_never_see_tags_of_collectives) {
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

TEST_F(Client, chunks_are_put_together_whether_expected_before_during_or_after) {
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

TEST_F(Client, take_gives_the_arena_block_itself_until_release) {
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

TEST_F(Client, unexpected_messages_hold_at_most_half_of_the_arena) {
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
        while (engine.take_any().has_value())
            ADD_FAILURE();
    }
    EXPECT_EQ(ulc_test(ep, &request, nullptr), ULC_OK);
    EXPECT_EQ(buffer, text);
}

TEST_F(Client, releases_do_not_wait_while_the_submission_ring_is_full) {
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

TEST_F(Client, cancel_takes_back_only_what_has_not_matched) {
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

TEST_F(Client, a_pending_receive_that_names_its_source_is_announced) {
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

// ---------------------------------------------------------------- ends

TEST_F(Client, a_peer_that_dies_ends_what_named_it) {
    engine.form(0, 3);
    char buffer[4000];
    ulc_request named;
    ulc_request any;
    ulc_request arriving;
    ulc_request sending;
    ulc_status status;
    engine.deliver_inline(1, 9, "kept");
    engine.deliver_block(1, 7, 0, pattern(100), 0, 4000);
    ASSERT_EQ(ulc_receive(ep, 1, 7, UINT64_MAX, buffer, sizeof buffer, &arriving), ULC_OK);
    ASSERT_EQ(ulc_receive(ep, 1, 8, UINT64_MAX, buffer, sizeof buffer, &named), ULC_OK);
    ASSERT_EQ(ulc_receive(ep, ULC_RANK_ANY, 8, UINT64_MAX, buffer, 100, &any), ULC_OK);
    const std::string large = pattern(200'000);
    ASSERT_EQ(ulc_send(ep, 1, 0, large.data(), large.size(), &sending), ULC_OK);
    engine.peer_gone(1, true);
    ep->poll();
    ASSERT_EQ(test(named, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    ASSERT_EQ(test(arriving, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    ASSERT_EQ(test(sending, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    EXPECT_EQ(test(any), ULC_ERR_AGAIN);
    EXPECT_EQ(ulc_peer_state(ep, 1), ULC_ERR_PEER_DIED);
    EXPECT_EQ(ulc_peer_state(ep, 2), ULC_OK);
    EXPECT_EQ(ulc_send(ep, 1, 0, "x", 1, nullptr), ULC_ERR_PEER_DIED);
    ASSERT_EQ(ulc_receive(ep, 1, 9, UINT64_MAX, buffer, 100, &named), ULC_OK);
    ASSERT_EQ(test(named, &status), ULC_OK) << "what had arrived can still be received";
    EXPECT_EQ(status.error, ULC_OK);
    ASSERT_EQ(ulc_receive(ep, 1, 9, UINT64_MAX, buffer, 100, &named), ULC_OK);
    ASSERT_EQ(test(named, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
}

TEST_F(Client, leaving_waits_for_what_was_sent_and_ends_everything) {
    engine.form(0, 2);
    char buffer[8];
    ulc_request receive;
    ulc_request sending;
    ulc_status status;
    const std::string large = pattern(100'000);
    ASSERT_EQ(ulc_receive(ep, 1, 0, 0, buffer, sizeof buffer, &receive), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 1, 0, large.data(), large.size(), &sending), ULC_OK);
    ASSERT_EQ(ulc_leave(ep), ULC_OK);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_AGAIN);
    EXPECT_EQ(ulc_send(ep, 1, 0, "x", 1, nullptr), ULC_ERR_CLOSED);
    EXPECT_EQ(drain_message(&sending), large);
    ep->poll();
    ASSERT_TRUE(engine.take(SubmitKind::kLeave).has_value());
    engine.claim(abi::CompletionKind::kLeft);
    engine.completions.publish();
    EXPECT_EQ(ep->poll(), -ULC_ERR_CLOSED);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_CLOSED);
    ASSERT_EQ(test(receive, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CLOSED);
}

TEST_F(Client, a_failed_job_says_why_and_may_be_tried_again) {
    ASSERT_EQ(ulc_join(ep, "job", 1, 2, nullptr), ULC_OK);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_AGAIN);
    ASSERT_TRUE(engine.take(SubmitKind::kJoinJob).has_value());
    abi::CompletionRecord& failed = engine.claim(abi::CompletionKind::kJobFailed);
    failed.status = ULC_ERR_RANK_TAKEN;
    failed.inline_length = 5;
    std::memcpy(failed.body.inline_octets, "nodeA", 5);
    engine.completions.publish();
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_RANK_TAKEN);
    EXPECT_EQ(ep->job_text(), "nodeA");
    engine.form(0, 2);
}

TEST_F(Client, records_that_no_engine_writes_close_the_endpoint) {
    const auto spoil = [](auto change) {
        ScriptedEngine other(kSmall);
        other.form(0, 2);
        change(other);
        other.completions.publish();
        EXPECT_EQ(other.endpoint->poll(), -ULC_ERR_CORRUPT);
        EXPECT_EQ(ulc_job_state(other.endpoint.get()), ULC_ERR_CORRUPT);
    };
    using abi::CompletionKind;
    spoil([](ScriptedEngine& e) { e.claim(CompletionKind::kMessage).source = 2; });
    spoil([](ScriptedEngine& e) { e.claim(static_cast<CompletionKind>(200)); });
    spoil([](ScriptedEngine& e) { e.claim(CompletionKind::kSendDone).stream = 5; });
    spoil([](ScriptedEngine& e) { e.claim(CompletionKind::kPeerDied).source = 7; });
    spoil([](ScriptedEngine& e) { e.claim(CompletionKind::kGroupReady); });
    spoil([](ScriptedEngine& e) { e.claim(CompletionKind::kJobFormed); });
    spoil([](ScriptedEngine& e) {
        auto& message = e.claim(CompletionKind::kMessage);
        message.flags = abi::kCompleteFirst | abi::kCompleteLast;
        message.body.block = {kSmall.rx_arena_octets - 64, 65, 65, 0, 0, 0};
    });
    spoil([](ScriptedEngine& e) {
        auto& message = e.claim(CompletionKind::kMessage);
        message.flags = abi::kCompleteInline | abi::kCompleteFirst | abi::kCompleteLast;
        message.inline_length = 41;
    });
    spoil([](ScriptedEngine& e) {  // a chunk of nothing
        auto& message = e.claim(CompletionKind::kMessage);
        message.flags = abi::kCompleteLast;
        message.body.block = {0, 64, 64, 0, 0, 0};
    });
}

TEST_F(Client, closing_forgets_requests_that_may_be_gone) {
    engine.form(0, 2);
    const std::string large = pattern(200'000);
    auto requests = std::make_unique<ulc_request[]>(3);
    char buffer[8];
    ASSERT_EQ(ulc_send(ep, 1, 0, large.data(), large.size(), &requests[0]), ULC_OK);
    ASSERT_EQ(ulc_receive(ep, 1, 0, 0, buffer, sizeof buffer, &requests[1]), ULC_OK);
    engine.deliver_block(1, 5, 0, pattern(100), 0, 4000);
    ep->poll();
    ASSERT_EQ(ulc_receive(ep, 1, 5, UINT64_MAX, buffer, sizeof buffer, &requests[2]), ULC_OK);
    ASSERT_EQ(ulc_send(ep, 1, 0, large.data(), large.size(), nullptr), ULC_OK);
    requests.reset();
    engine.endpoint.reset();
}

TEST_F(Client, a_cursor_that_no_engine_publishes_closes_the_endpoint) {
    engine.form(0, 2);
    engine.region.control().sq_consumed = 1000;
    while (ulc_send(ep, 1, 0, "x", 1, nullptr) == ULC_OK) {
    }
    EXPECT_EQ(ep->poll(), -ULC_ERR_CORRUPT);
}

}  // namespace
}  // namespace ulc::client
