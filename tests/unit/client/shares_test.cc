// SPDX-License-Identifier: BSD-3-Clause
// Tests that the messages of one sender without a receive use up no more than its share of the
// endpoint's memory (shares.h): the engine has to stop it, and others go on. Runs against a
// scripted engine, which obeys when the test says so.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr std::uint64_t kTag = 9;
constexpr std::uint64_t kLimit = 1U << 20;

struct ClientShares : testing::Test {
    ClientShares() {
        engine.form(0, 8);
        ulc_set_error_handler(
            ep,
            [](void* context, int error, std::uint16_t source, std::uint64_t) {
                if (error == ULC_ERR_LIMIT)
                    static_cast<ClientShares*>(context)->reported.push_back(source);
            },
            this);
    }
    /// A message without a receive, as large as the arena allows.
    int send(std::uint16_t from, std::size_t octets = 8192) {
        engine.deliver_block(from, kTag, 0, std::string(octets, 'x'), 0, octets);
        return ep->poll();
    }
    /// The engine looks for a note and obeys. False: there is none.
    bool obey() {
        bool told = false;
        while (const auto record = engine.take_any())
            told |= record->kind == abi::SubmitKind::kExpect;
        abi::EndpointControl& page = engine.region.control();
        const std::uint32_t word = page.source_note.load();
        if (word == page.note_taken.load()) return false;
        EXPECT_TRUE(told) << "a kExpect ends quiet rounds";
        EXPECT_TRUE(abi::SourceNote::read(word, note));
        page.note_taken.store(word);
        return true;
    }
    /// Sends until the sender is stopped. Returns the number of messages.
    unsigned fill(std::uint16_t from, std::size_t octets = 8192) {
        for (unsigned n = 1; n < 10'000; ++n) {
            EXPECT_EQ(send(from, octets), 1);
            if (obey()) return n;
        }
        return 0;
    }
    void receive(std::uint16_t from, unsigned messages) {
        for (unsigned n = 0; n < messages; ++n) {
            ulc_request request;
            ASSERT_EQ(ulc_receive(ep, from, kTag, UINT64_MAX, nullptr, 0, &request), ULC_OK);
            ASSERT_EQ(ulc_test(ep, &request, nullptr), ULC_OK);
        }
    }

    ScriptedEngine engine{kSmall, {.unexpected_octets = kLimit}};
    ulc_endpoint* ep = engine.endpoint.get();
    std::vector<std::uint16_t> reported;
    abi::SourceNote note{};
};

TEST_F(ClientShares, a_sender_is_stopped_at_half_and_others_go_on) {
    const unsigned messages = fill(1);
    EXPECT_EQ(note.source, 1);
    EXPECT_EQ(note.intake, abi::Intake::kNone);
    EXPECT_NEAR(messages * 8192.0, kLimit / 2.0, kLimit / 8.0);
    EXPECT_EQ(reported, (std::vector<std::uint16_t>{1}));
    for (int n = 0; n < 10; ++n)
        EXPECT_EQ(send(2), 1) << "another one has its own share";
    EXPECT_FALSE(obey());
    receive(1, messages - 1);
    ep->poll();
    ASSERT_TRUE(obey());
    EXPECT_EQ(note.source, 1);
    EXPECT_EQ(note.intake, abi::Intake::kAll);
}

TEST_F(ClientShares, many_senders_leave_room_for_one_more) {
    for (std::uint16_t from = 1; from <= 3; ++from) {
        EXPECT_GT(fill(from), 0U);
        EXPECT_EQ(note.source, from);
    }
    EXPECT_EQ(send(7), 1);
    EXPECT_GE(ep->poll(), 0) << "the limit of all is not reached";
    EXPECT_FALSE(obey()) << "and it has a share";
}

TEST_F(ClientShares, messages_without_a_byte_take_memory_too) {
    unsigned messages = 0;
    while (messages < 100'000 && !obey()) {
        engine.deliver_inline(1, kTag, "");
        ASSERT_EQ(ep->poll(), 1);
        ++messages;
    }
    EXPECT_NEAR(static_cast<double>(messages * sizeof(Arrival)), kLimit / 2.0, kLimit / 8.0);
    EXPECT_EQ(note.intake, abi::Intake::kNone);
}

TEST_F(ClientShares, memory_of_others_that_becomes_free_lets_a_sender_go_on) {
    const unsigned first = fill(1);
    const unsigned second = fill(2);
    receive(2, second);
    for (int n = 0; n < 4; ++n)
        ep->poll();
    ASSERT_TRUE(obey());
    EXPECT_EQ(note.source, 2);
    receive(1, first / 2);
    ep->poll();
    ASSERT_TRUE(obey());
    EXPECT_EQ(note.source, 1);
    EXPECT_EQ(note.intake, abi::Intake::kAll);
}

TEST_F(ClientShares, the_rest_of_a_message_that_has_a_receive_is_taken) {
    const std::string text = pattern(90'000);
    engine.deliver_block(1, kTag + 1, 0, text.substr(0, 30'000), 0, text.size());
    EXPECT_EQ(ep->poll(), 1);
    for (std::uint16_t from = 2; from < 6; ++from)
        ASSERT_GT(fill(from), 0U);
    // Its share ends in the middle of the message.
    engine.deliver_block(1, kTag + 1, 0, text.substr(30'000, 30'000), 30'000, text.size());
    EXPECT_EQ(ep->poll(), 1);
    ASSERT_TRUE(obey());
    EXPECT_EQ(note.source, 1);
    EXPECT_EQ(note.intake, abi::Intake::kNone);
    std::string into(text.size(), '-');
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, 1, kTag + 1, UINT64_MAX, into.data(), into.size(), &request), ULC_OK);
    ep->poll();
    ASSERT_TRUE(obey());
    EXPECT_EQ(note.source, 1);
    EXPECT_NE(note.intake, abi::Intake::kNone);
    engine.deliver_block(1, kTag + 1, 0, text.substr(60'000), 60'000, text.size());
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(ulc_test(ep, &request, nullptr), ULC_OK);
    EXPECT_EQ(into, text);
}

TEST_F(ClientShares, one_note_is_under_way_at_a_time) {
    // Both are above their share before the engine looks.
    while (engine.region.control().source_note.load() == 0)
        EXPECT_EQ(send(1), 1);
    const std::uint32_t first = engine.region.control().source_note.load();
    for (int n = 0; n < 45; ++n)
        EXPECT_GE(send(2), 0);
    EXPECT_EQ(engine.region.control().source_note.load(), first);
    ASSERT_TRUE(obey());
    EXPECT_EQ(note.source, 1);
    ep->poll();
    ASSERT_TRUE(obey());
    EXPECT_EQ(note.source, 2);
}

}  // namespace
}  // namespace ulc::client
