// SPDX-License-Identifier: BSD-3-Clause
// Tests that a receive is taken back although a message has begun to fill it (ulc_abandon): nothing
// writes to its buffer any more, and later messages arrive as ever. Runs against a scripted engine.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "client/p2p/rendezvous.h"
#include "client/ulc_memory.h"
#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr std::uint64_t kTag = 9;

/// The engine's answer to Hooks::forget_place(), and what it was asked.
struct Forgets {
    int answer = ULC_OK;
    std::vector<abi::Place> places;
};

Hooks hooks_of(Forgets& forgets) {
    Hooks hooks;
    hooks.context = &forgets;
    hooks.forget_place = [](void* context, std::uint16_t, const abi::Place& place) {
        auto& all = *static_cast<Forgets*>(context);
        all.places.push_back(place);
        return all.answer;
    };
    return hooks;
}

struct ClientAbandon : testing::Test {
    ClientAbandon() { engine.form(0, 3); }

    void receive(std::uint16_t from, ulc_request& request, std::string& into) {
        ASSERT_EQ(ulc_receive(ep, from, kTag, UINT64_MAX, into.data(), into.size(), &request),
                  ULC_OK);
    }
    int test(ulc_request& request, ulc_status* status = nullptr) {
        return ulc_test(ep, &request, status);
    }
    /// The next message of `from` is received in full.
    void goes_on(std::uint16_t from) {
        std::string into(5, '-');
        ulc_request request;
        receive(from, request, into);
        engine.deliver_inline(from, kTag, "later");
        EXPECT_EQ(ep->poll(), 1);
        EXPECT_EQ(test(request), ULC_OK);
        EXPECT_EQ(into, "later");
    }
    bool place(std::uint16_t from, std::uint64_t length) {
        const abi::Placer placer = ep->placer();
        return bool{placer.place(placer.context, {.source = from,
                                                  .stream = ep->membership().rank(),
                                                  .tag = kTag,
                                                  .length = length,
                                                  .taken_at_least = 0})};
    }
    void placed(std::uint16_t from, std::uint64_t length) {
        abi::CompletionRecord& record = engine.claim(abi::CompletionKind::kMessage);
        record.flags = abi::kCompletePlaced | abi::kCompleteLast;
        record.source = from;
        record.stream = ep->membership().rank();
        record.body.block.message_length = length;
        engine.completions.publish();
    }
    void announce(std::uint16_t from, std::uint32_t id, std::uint64_t length,
                  const std::string& first) {
        Announcement head{};
        head.tag = kTag;
        head.length = length;
        head.id = id;
        head.first = static_cast<std::uint32_t>(first.size());
        std::string bytes(sizeof head, '\0');
        std::memcpy(bytes.data(), &head, sizeof head);
        engine.deliver_block(from, kTagAnnouncement, 0, bytes + first, 0,
                             sizeof head + first.size());
    }
    /// Bytes up to which the rest of a message is asked for.
    std::uint64_t asked() {
        const auto record = engine.take(abi::SubmitKind::kSend);
        if (!record || record->tag != kTagAsk) return UINT64_MAX;
        Ask ask;
        std::memcpy(&ask, record->body.inline_octets, sizeof ask);
        return ask.up_to;
    }

    Forgets forgets;
    ScriptedEngine engine{kSmall, {}, hooks_of(forgets)};
    ulc_endpoint* ep = engine.endpoint.get();
};

TEST_F(ClientAbandon, chunks_that_come_later_do_not_touch_the_buffer) {
    const std::string text = pattern(3000);
    std::string buffer(3000, '-');
    ulc_request request;
    receive(1, request, buffer);
    engine.deliver_block(1, kTag, 0, text.substr(0, 1024), 0, 3000);
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(ulc_cancel(ep, &request), ULC_ERR_AGAIN);
    ASSERT_EQ(ulc_abandon(ep, &request), ULC_OK);
    buffer.assign(3000, '+');
    engine.deliver_block(1, kTag, 1024, text.substr(1024, 1024), 1024, 3000);
    engine.deliver_block(1, kTag, 2048, text.substr(2048), 2048, 3000);
    EXPECT_EQ(ep->poll(), 2);
    EXPECT_EQ(buffer, std::string(3000, '+'));
    EXPECT_EQ(engine.released().size(), 3U) << "no block is kept";
    goes_on(1);
}

TEST_F(ClientAbandon, nothing_is_placed_any_more_and_the_engine_says_nothing_of_the_rest) {
    std::string buffer(5000, '-');
    ulc_request request;
    receive(1, request, buffer);
    ASSERT_TRUE(place(1, 5000));
    ASSERT_EQ(ulc_abandon(ep, &request), ULC_OK);
    ASSERT_EQ(forgets.places.size(), 1U);
    EXPECT_EQ(static_cast<void*>(forgets.places[0].base), buffer.data());
    goes_on(1);
}

TEST_F(ClientAbandon, a_placed_message_that_was_whole_is_taken_and_forgotten) {
    forgets.answer = ULC_ERR_AGAIN;
    std::string buffer(5000, '-');
    ulc_request request;
    receive(1, request, buffer);
    ASSERT_TRUE(place(1, 5000));
    placed(1, 5000);
    ASSERT_EQ(ulc_abandon(ep, &request), ULC_OK);
    EXPECT_EQ(ep->poll(), 1);
    goes_on(1);
}

TEST_F(ClientAbandon, a_receive_stays_while_a_stuck_engine_has_its_buffer) {
    forgets.answer = ULC_ERR_TIMEOUT;
    std::string buffer(5000, '-');
    ulc_request request;
    receive(1, request, buffer);
    ASSERT_TRUE(place(1, 5000));
    EXPECT_EQ(ulc_abandon(ep, &request), ULC_ERR_TIMEOUT);
    EXPECT_EQ(test(request), ULC_ERR_AGAIN);
    placed(1, 5000);
    EXPECT_EQ(ep->poll(), 1);
    ulc_status status;
    EXPECT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_EQ(status.length, 5000U);
}

TEST_F(ClientAbandon, an_endpoint_that_ends_makes_the_engine_forget_its_places) {
    std::string buffer(5000, '-');
    ulc_request request;
    receive(1, request, buffer);
    ASSERT_TRUE(place(1, 5000));
    engine.claim(abi::CompletionKind::kLeft).status = 0;
    engine.completions.publish();
    EXPECT_EQ(ep->poll(), -ULC_ERR_CLOSED);
    EXPECT_EQ(test(request), ULC_OK) << "the buffer is the caller's again";
    EXPECT_EQ(forgets.places.size(), 1U);
}

TEST_F(ClientAbandon, an_announced_message_is_asked_for_nothing) {
    ASSERT_EQ(ulc_set_rendezvous(ep, UINT64_MAX, UINT64_MAX), ULC_OK);
    std::string buffer(5000, '-');
    ulc_request request;
    receive(1, request, buffer);
    // The ring is full, so the Ask is due and not sent.
    while (ulc_send(ep, 2, 0, "x", 1, nullptr) == ULC_OK) {
    }
    announce(1, 7, 5000, "first");
    EXPECT_EQ(ep->poll(), 1);
    ASSERT_EQ(ulc_abandon(ep, &request), ULC_OK);
    while (engine.take_any().has_value()) {
    }
    EXPECT_EQ(ep->poll(), 0);
    EXPECT_EQ(asked(), 0U);
    goes_on(1);
    EXPECT_EQ(ep->messages().control_dropped(), 0U);
}

TEST_F(ClientAbandon, the_rest_that_was_asked_for_is_dropped) {
    std::string buffer(5000, '-');
    ulc_request request;
    receive(1, request, buffer);
    announce(1, 7, 5000, "first");
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(asked(), 5000U);
    ASSERT_EQ(ulc_abandon(ep, &request), ULC_OK);
    buffer.assign(5000, '+');
    const std::string rest = pattern(4995);
    engine.deliver_block(1, kTagRest | 7, 64, rest.substr(0, 1000), 0, rest.size());
    engine.deliver_block(1, kTagRest | 7, 4096, rest.substr(1000), 1000, rest.size());
    EXPECT_EQ(ep->poll(), 2);
    EXPECT_EQ(buffer, std::string(5000, '+'));
    EXPECT_EQ(ep->messages().control_dropped(), 0U);
    goes_on(1);
}

TEST_F(ClientAbandon, other_requests_are_answered) {
    std::string buffer(5, '-');
    ulc_request request;
    receive(1, request, buffer);
    ASSERT_EQ(ulc_abandon(ep, &request), ULC_OK) << "it has not matched";
    receive(1, request, buffer);
    engine.deliver_inline(1, kTag, "whole");
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(ulc_abandon(ep, &request), ULC_ERR_AGAIN);
    const std::string long_one(200'000, 'x');
    ASSERT_EQ(ulc_send(ep, 1, 0, long_one.data(), long_one.size(), &request), ULC_OK);
    EXPECT_EQ(ulc_abandon(ep, &request), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_abandon(ep, nullptr), ULC_ERR_INVALID);
}

TEST_F(ClientAbandon, a_send_goes_on_from_a_copy) {
    const std::string text = pattern(200'000);
    auto memory = std::make_unique<std::string>(text);
    ulc_request request;
    ASSERT_EQ(ulc_send(ep, 1, kTag, memory->data(), memory->size(), &request), ULC_OK);
    std::vector<unsigned char> copy(text.size());
    EXPECT_EQ(ulc_move_payload(ep, &request, copy.data(), copy.size() - 1), ULC_ERR_LIMIT);
    ASSERT_EQ(ulc_move_payload(ep, &request, copy.data(), copy.size()), ULC_OK);
    memory->assign(text.size(), '!');
    memory.reset();
    std::string read;
    for (int n = 0; n < 1000 && read.size() < text.size(); ++n) {
        while (auto record = engine.take_any()) {
            const abi::Block& block = record->body.block;
            read.append(reinterpret_cast<const char*>(engine.region.tx(block.offset, block.length)),
                        block.length);
            engine.send_done(record->cookie);
        }
        ep->poll();
    }
    EXPECT_EQ(read, text);
    EXPECT_EQ(test(request), ULC_OK);
    EXPECT_EQ(ulc_move_payload(ep, &request, copy.data(), copy.size()), ULC_ERR_AGAIN);
}

}  // namespace
}  // namespace ulc::client
