// SPDX-License-Identifier: BSD-3-Clause
// Tests the endpoint against a scripted engine: the records that it writes when it sends, how it
// ends, and that it validates what it reads.
#include <coll.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "abi/engine_entry.h"
#include "abi/put_text.h"
#include "client/attach/defaults.h"
#include "client/error_text.h"
#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

using abi::SubmitKind;

using Client = ClientTest;

// ---------------------------------------------------------------- joining

TEST_F(Client, a_join_says_how_long_the_rank_waits_for_silent_nodes) {
    EXPECT_EQ(ulc_set_patience(nullptr, 1), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_set_patience(ep, -1), ULC_ERR_INVALID);
    ASSERT_EQ(ulc_set_patience(ep, 15 * kSecond), ULC_OK);
    unsetenv("ULC_DEBUG");
    std::vector<std::uint64_t> seen;
    for (const char* debug : {"", "1", "0"}) {
        if (*debug != '\0') setenv("ULC_DEBUG", debug, 1);
        ASSERT_EQ(ulc_join(ep, "job", 1, 2, nullptr), ULC_OK);
        const auto record = engine.take(SubmitKind::kJoinJob);
        ASSERT_TRUE(record.has_value());
        abi::JoinRequest request;
        std::memcpy(&request, engine.region.tx(record->body.block.offset, sizeof request),
                    sizeof request);
        seen.push_back(request.patience_ns);
        engine.claim(abi::CompletionKind::kJobFailed).status = ULC_ERR_TIMEOUT;
        engine.completions.publish();
        ASSERT_EQ(ulc_poll(ep), 1);
    }
    unsetenv("ULC_DEBUG");
    const auto own = static_cast<std::uint64_t>(15 * kSecond);
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{own, 40 * own, own}));
}

TEST_F(Client, a_process_with_a_tracer_waits_as_long_as_one_that_is_debugged) {
    unsetenv("ULC_DEBUG");
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(2);  // its parent is the tracer
        _exit(patience_of_debugging() == 600 * kSecond ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this machine allows no ptrace";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

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

/// A core on which a yield takes long, because another process ran there. Each read of the clock
/// takes 100 ns.
struct SharedCore {
    Nanos now = 0;
    Nanos others_run = 5 * kMicrosecond;
    unsigned yields = 0;

    Hooks hooks() {
        Hooks hooks;
        hooks.context = this;
        hooks.now = [](void* context) { return static_cast<SharedCore*>(context)->now += 100; };
        hooks.yield = [](void* context) {
            auto& core = *static_cast<SharedCore*>(context);
            ++core.yields;
            core.now += core.others_run;
        };
        return hooks;
    }
};

// If this process computed right after a wait, an engine of another process on the same core would
// wait until the computation ends, and the peers with it.
TEST(SharedCoreClient, who_leaves_a_wait_lets_an_engine_on_its_core_take_what_was_submitted) {
    SharedCore core;
    ScriptedEngine engine(kSmall, {}, core.hooks());
    ulc_endpoint* ep = engine.endpoint.get();
    engine.form(0, 2);
    ulc_request request;
    const auto yields_after_a_send = [&] {
        const unsigned before = core.yields;
        EXPECT_EQ(ulc_send(ep, 1, 1, "x", 1, &request), ULC_OK);
        EXPECT_EQ(core.yields, before) << "a send costs no system call";
        EXPECT_EQ(ulc_wait_for(ep, &request, nullptr, 0), ULC_OK);
        return core.yields - before;
    };
    EXPECT_EQ(yields_after_a_send(), 0U) << "it is not yet known that the core is shared";
    ASSERT_EQ(ulc_wait(ep, 200 * kMicrosecond), ULC_ERR_TIMEOUT);
    ASSERT_GT(core.yields, 1U);
    EXPECT_EQ(yields_after_a_send(), 1U);
    EXPECT_EQ(yields_after_a_send(), 0U) << "not in every call of a stream";
    core.now += 20 * kMicrosecond;
    EXPECT_EQ(yields_after_a_send(), 1U);
    const unsigned all_taken = core.yields;
    core.now += 20 * kMicrosecond;
    EXPECT_EQ(ulc_wait_for(ep, &request, nullptr, 0), ULC_OK);
    EXPECT_EQ(core.yields, all_taken) << "there is nothing to take";
    core.others_run = 0;
    ASSERT_EQ(ulc_wait(ep, 30 * kMillisecond), ULC_ERR_TIMEOUT);
    core.now += 20 * kMicrosecond;
    EXPECT_EQ(yields_after_a_send(), 0U) << "the core is this thread's alone again";
}

// No other thread polls an embedded engine: a process that computes after a wait would leave its
// submissions unsent.
TEST(EmbeddedClient, who_has_waited_leaves_nothing_that_the_engine_has_not_seen) {
    struct Rounds {
        unsigned count = 0;
        int answer = abi::kRoundMoved;
        ScriptedEngine* brings = nullptr;  ///< a message, in the next one
    } rounds;
    Hooks hooks;
    hooks.context = &rounds;
    hooks.progress = [](void* context) {
        auto& seen = *static_cast<Rounds*>(context);
        ++seen.count;
        if (seen.brings != nullptr)
            std::exchange(seen.brings, nullptr)->deliver_inline(1, 2, "news");
        return seen.answer;
    };
    ScriptedEngine engine(kSmall, {}, hooks);
    ulc_endpoint* ep = engine.endpoint.get();
    engine.form(0, 2);
    ulc_request request;
    for (int call = 0; call < 3; ++call) {
        const unsigned before = rounds.count;
        ASSERT_EQ(ulc_send(ep, 1, 1, "x", 1, &request), ULC_OK);
        EXPECT_EQ(rounds.count, before) << "a send costs no round";
        ASSERT_EQ(ulc_wait_for(ep, &request, nullptr, 0), ULC_OK);
        EXPECT_EQ(rounds.count, before + 1);
        ASSERT_EQ(ulc_wait_for(ep, &request, nullptr, 0), ULC_OK);
        EXPECT_EQ(rounds.count, before + 1) << "it has seen everything";
    }
    ulc_coll* operation = nullptr;
    ASSERT_EQ(ulc_broadcast_start(ep, ulc_world(ep), 0, &request, 8, nullptr, &operation), ULC_OK);
    const unsigned begun = rounds.count;
    ASSERT_EQ(ulc_coll_test(ep, operation), ULC_OK) << "the root's message is in its record";
    EXPECT_EQ(rounds.count, begun + 1);
    // Frames are pending in the engine, such as an ACK that a peer waits for: one more round sends
    // them.
    rounds.answer = abi::kRoundMoved | abi::kRoundOwes;
    rounds.brings = &engine;
    char news[4];
    ASSERT_EQ(ulc_receive(ep, 1, 2, UINT64_MAX, news, sizeof news, &request), ULC_OK);
    const unsigned taken = rounds.count;
    ASSERT_EQ(ulc_wait_for(ep, &request, nullptr, ULC_WAIT_FOREVER), ULC_OK);
    EXPECT_EQ(rounds.count, taken + 2);
    ASSERT_EQ(ulc_wait_for(ep, &request, nullptr, 0), ULC_OK);
    EXPECT_EQ(rounds.count, taken + 2) << "who works off what came needs no more of it";
    // Another thread polls it, and may have passed our records
    rounds.answer = abi::kRoundElsewhere;
    ASSERT_EQ(ulc_send(ep, 1, 1, "x", 1, &request), ULC_OK);
    for (int call = 0; call < 2; ++call) {
        const unsigned before = rounds.count;
        ASSERT_EQ(ulc_wait_for(ep, &request, nullptr, 0), ULC_OK);
        EXPECT_EQ(rounds.count, before + 1);
    }
}

// A long message completes nothing until its last frame.
TEST(EmbeddedClient, who_waits_does_not_yield_while_the_engine_moves_frames) {
    struct Core {
        Nanos now = kSecond;
        unsigned yields = 0;
        int answer = abi::kRoundMoved;
    } core;
    Hooks hooks;
    hooks.context = &core;
    hooks.now = [](void* context) { return static_cast<Core*>(context)->now += kMicrosecond; };
    hooks.yield = [](void* context) { ++static_cast<Core*>(context)->yields; };
    hooks.progress = [](void* context) { return static_cast<Core*>(context)->answer; };
    ScriptedEngine engine(kSmall, {}, hooks);
    ulc_endpoint* ep = engine.endpoint.get();
    engine.form(0, 2);
    ASSERT_EQ(ulc_wait(ep, kMillisecond), ULC_ERR_TIMEOUT);
    EXPECT_EQ(core.yields, 0U);
    EXPECT_EQ(ulc_empty_polls(ep), 0U);
    core.answer = 0;
    EXPECT_EQ(ulc_poll(ep), 0);
    EXPECT_EQ(ulc_poll(ep), 0);
    EXPECT_EQ(ulc_empty_polls(ep), 2U);
    ASSERT_EQ(ulc_wait(ep, kMillisecond), ULC_ERR_TIMEOUT);
    EXPECT_GT(core.yields, 100U);
}

TEST_F(Client, messages_of_every_length_arrive_chunk_by_chunk) {
    engine.form(0, 2);
    for (const std::size_t octets : {105U, 128U, 4096U, 8192U, 8193U, 100'000U, 1'000'003U}) {
        const std::string text = pattern(octets);
        ulc_request request;
        ASSERT_EQ(ulc_send(ep, 1, 3, text.data(), octets, &request), ULC_OK);
        EXPECT_EQ(drain_message(&request), text) << octets;
        EXPECT_EQ(test(request), ULC_OK);
        EXPECT_TRUE(ep->messages().outbox().idle());
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

// M-3, O-4
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

TEST_F(Client, a_job_that_forms_while_its_rank_leaves_is_left) {
    ASSERT_EQ(ulc_join(ep, "job", 0, 2, nullptr), ULC_OK);
    ASSERT_TRUE(engine.take(abi::SubmitKind::kJoinJob).has_value());
    abi::CompletionRecord& formed = engine.claim(abi::CompletionKind::kJobFormed);
    formed.stream = kWorld;
    formed.body.block.length = 2;
    engine.completions.publish();
    ASSERT_EQ(ulc_leave(ep), ULC_OK);
    engine.deliver_inline(1, 5, "early", 0);
    EXPECT_EQ(ulc_poll(ep), 2);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_AGAIN);
    EXPECT_TRUE(engine.take(abi::SubmitKind::kLeave).has_value());
    engine.claim(abi::CompletionKind::kLeft).status = 0;
    engine.completions.publish();
    ulc_poll(ep);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_CLOSED);
    EXPECT_EQ(ep->membership().left_error(), ULC_OK);
}

TEST_F(Client, a_failed_job_says_why_and_may_be_tried_again) {
    ASSERT_EQ(ulc_join(ep, "job", 1, 2, nullptr), ULC_OK);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_AGAIN);
    ASSERT_TRUE(engine.take(SubmitKind::kJoinJob).has_value());
    abi::CompletionRecord& failed = engine.claim(abi::CompletionKind::kJobFailed);
    failed.status = ULC_ERR_RANK_TAKEN;
    const std::string why(abi::kTextOctetsMax - 1, 'y');
    put_text(engine.region.control().failure, why);
    engine.completions.publish();
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_RANK_TAKEN);
    EXPECT_EQ(ep->membership().job_text(), why);
    engine.form(0, 2);
}

TEST_F(Client, a_formed_job_that_the_engine_ends_leaves_its_sentence_as_the_last_error) {
    engine.form(0, 2);
    set_last_error("none");
    engine.claim(abi::CompletionKind::kJobFailed).status = ULC_ERR_PORT_DOWN;
    put_text(engine.region.control().failure, "interface eth1 has MTU 1400");
    engine.completions.publish();
    EXPECT_EQ(ep->poll(), -ULC_ERR_PORT_DOWN);
    EXPECT_STREQ(ulc_last_error_text(), "interface eth1 has MTU 1400");
}

// A receiver that wants no more says so in a message, which only a poll reads.
TEST_F(Client, at_most_512_sends_from_the_callers_memory_begin_without_a_poll) {
    constexpr std::uint32_t kBegun = 512;
    ScriptedEngine other({1024, 512, 1U << 20, 1U << 20}, {}, {}, abi::Reach::kProcess);
    other.form(0, 2);
    const std::string payload(16U << 10, 'x');
    std::vector<ulc_request> requests(kBegun + 2);
    for (ulc_request& request : requests)
        ASSERT_EQ(ulc_send(other.endpoint.get(), 1, 0, payload.data(), payload.size(), &request),
                  ULC_OK);
    const auto first = other.take(SubmitKind::kSend);
    ASSERT_TRUE(first.has_value());
    std::uint32_t begun = 1;
    while (other.take(SubmitKind::kSend))
        ++begun;
    EXPECT_EQ(begun, kBegun);
    other.send_done(first->cookie);
    EXPECT_GT(other.endpoint->poll(), 0);
    EXPECT_TRUE(other.take(SubmitKind::kSend).has_value());
    EXPECT_FALSE(other.take(SubmitKind::kSend).has_value());
}

TEST_F(Client, a_send_that_was_done_before_the_end_of_the_endpoint_is_done) {
    engine.form(0, 2);
    void* memory = ulc_alloc(ep, 5000);
    ASSERT_NE(memory, nullptr);
    ulc_request request;
    ASSERT_EQ(ulc_send(ep, 1, 0, memory, 5000, &request), ULC_OK);
    const auto record = engine.take(SubmitKind::kSend);
    ASSERT_TRUE(record.has_value());
    engine.send_done(record->cookie);
    engine.claim(abi::CompletionKind::kLeft);
    engine.completions.publish();
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(test(request), ULC_OK);
}

TEST_F(Client, the_end_of_a_send_that_is_not_out_closes_the_endpoint) {
    engine.form(0, 2);
    const std::string text(abi::kInlineOctetsMax + 1, 'x');
    ASSERT_EQ(ulc_send(engine.endpoint.get(), 1, 0, text.data(), text.size(), nullptr), ULC_OK);
    const auto record = engine.take(SubmitKind::kSend);
    ASSERT_TRUE(record.has_value());
    engine.send_done(record->cookie + 5);
    EXPECT_EQ(engine.endpoint->poll(), -ULC_ERR_CORRUPT);
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
        message.inline_length = abi::kInlineOctetsMax + 1;
    });
    spoil([](ScriptedEngine& e) {  // a chunk without bytes
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
