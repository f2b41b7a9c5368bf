// SPDX-License-Identifier: BSD-3-Clause
// Messages that have arrived and met no receive: probed, claimed, received by their handle,
// discarded; whole or in part.
// Against a scripted engine.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr std::uint64_t kTag = 9;
constexpr std::uint64_t kExact = UINT64_MAX;

struct ClientClaim : ClientTest {
    ClientClaim() { engine.form(0, 3); }

    ulc_message* claim(std::uint16_t from, std::uint64_t tag, ulc_status* status = nullptr) {
        ulc_message* message = nullptr;
        EXPECT_EQ(ulc_claim(ep, from, tag, kExact, &message, status), ULC_OK);
        return message;
    }
    int receive(ulc_message* message, std::string& into, ulc_request& request) {
        const ulc_piece piece{into.data(), into.size()};
        return ulc_receive_claimed(ep, message, &piece, 1, &request);
    }
    /// The first part of a message of 3000 bytes.
    void begin(const std::string& text) {
        engine.deliver_block(1, kTag, 0, text.substr(0, 1024), 0, 3000);
        ep->poll();
    }
    void go_on(const std::string& text) {
        engine.deliver_block(1, kTag, 1024, text.substr(1024, 1024), 1024, 3000);
        engine.deliver_block(1, kTag, 2048, text.substr(2048), 2048, 3000);
        ep->poll();
    }
};

TEST_F(ClientClaim, a_probe_copies_the_first_bytes_that_are_there) {
    const std::string text(3000, 'a');
    char head[1500] = {};
    std::size_t octets = 4;
    EXPECT_EQ(ulc_probe_head(ep, 1, kTag, kExact, head, &octets, nullptr), ULC_ERR_AGAIN);
    EXPECT_EQ(ulc_probe_head(ep, 1, kTag, kExact, head, nullptr, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_probe_head(ep, 1, kTag, kExact, nullptr, &octets, nullptr), ULC_ERR_INVALID);
    engine.deliver_inline(2, kTag, "hello");
    begin(text);
    ulc_status status;
    for (int twice = 0; twice < 2; ++twice) {
        octets = 4;
        ASSERT_EQ(ulc_probe_head(ep, 2, kTag, kExact, head, &octets, &status), ULC_OK);
        EXPECT_EQ(std::string(head, octets), "hell");
        EXPECT_EQ(status.length, 5U);
    }
    octets = sizeof head;
    ASSERT_EQ(ulc_probe_head(ep, 2, kTag, kExact, head, &octets, &status), ULC_OK);
    EXPECT_EQ(std::string(head, octets), "hello");
    octets = sizeof head;
    ASSERT_EQ(ulc_probe_head(ep, 1, kTag, kExact, head, &octets, &status), ULC_OK);
    EXPECT_EQ(octets, 1024U) << "the rest has not arrived";
    EXPECT_EQ(std::string(head, octets), text.substr(0, 1024));
    EXPECT_EQ(status.length, 3000U);
}

TEST_F(ClientClaim, a_probe_shows_the_message_and_leaves_it) {
    ulc_status status;
    EXPECT_EQ(ulc_probe(ep, ULC_RANK_ANY, kTag, kExact, &status), ULC_ERR_AGAIN);
    engine.deliver_inline(2, kTag, "hello");
    EXPECT_EQ(ulc_probe(ep, 2, kTag, kExact, &status), ULC_ERR_AGAIN) << "it does not poll";
    ep->poll();
    EXPECT_EQ(ulc_probe(ep, 1, kTag, kExact, &status), ULC_ERR_AGAIN);
    for (int twice = 0; twice < 2; ++twice) {
        ASSERT_EQ(ulc_probe(ep, ULC_RANK_ANY, kTag, kExact, &status), ULC_OK);
        EXPECT_EQ(status.source, 2);
        EXPECT_EQ(status.tag, kTag);
        EXPECT_EQ(status.length, 5U);
    }
    EXPECT_EQ(ulc_probe(ep, 2, kTag, kExact, nullptr), ULC_OK);
    EXPECT_EQ(ulc_probe(ep, 7, kTag, kExact, &status), ULC_ERR_INVALID);
    std::string buffer(5, '-');
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, 2, kTag, kExact, buffer.data(), 5, &request), ULC_OK);
    EXPECT_EQ(test(request), ULC_OK);
    EXPECT_EQ(buffer, "hello");
}

TEST_F(ClientClaim, a_probe_tells_the_whole_length_of_a_message_that_is_still_coming) {
    begin(pattern(3000));
    ulc_status status;
    ASSERT_EQ(ulc_probe(ep, 1, kTag, kExact, &status), ULC_OK);
    EXPECT_EQ(status.length, 3000U);
}

TEST_F(ClientClaim, a_probe_of_a_source_that_is_gone_says_so) {
    engine.deliver_inline(1, kTag, "last");
    engine.peer_gone(1, true);
    ep->poll();
    EXPECT_EQ(ulc_probe(ep, 1, kTag, kExact, nullptr), ULC_OK);
    EXPECT_EQ(ulc_probe(ep, 1, kTag + 1, kExact, nullptr), ULC_ERR_PEER_DIED);
    EXPECT_EQ(ulc_probe(ep, ULC_RANK_ANY, kTag + 1, kExact, nullptr), ULC_ERR_AGAIN);
    ulc_message* message = claim(1, kTag);
    EXPECT_EQ(ulc_claim(ep, 1, kTag, kExact, &message, nullptr), ULC_ERR_PEER_DIED);
    EXPECT_EQ(message, nullptr);
}

TEST_F(ClientClaim, a_claimed_message_is_found_by_its_handle_alone) {
    engine.deliver_inline(1, kTag, "first");
    engine.deliver_inline(1, kTag, "later");
    ep->poll();
    ulc_status status;
    ulc_message* first = claim(1, kTag, &status);
    EXPECT_EQ(status.length, 5U);
    std::string later(5, '-');
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, 1, kTag, kExact, later.data(), 5, &request), ULC_OK);
    ASSERT_EQ(test(request), ULC_OK);
    EXPECT_EQ(later, "later");
    EXPECT_EQ(ulc_probe(ep, 1, kTag, kExact, nullptr), ULC_ERR_AGAIN);
    std::string into(5, '-');
    ASSERT_EQ(receive(first, into, request), ULC_OK);
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(into, "first");
    EXPECT_EQ(status.source, 1);
    EXPECT_EQ(status.tag, kTag);
    EXPECT_EQ(receive(nullptr, into, request), ULC_ERR_INVALID);
}

TEST_F(ClientClaim, a_message_that_is_still_coming_goes_on_into_the_buffer_of_its_receive) {
    const std::string text = pattern(3000);
    begin(text);
    ulc_message* message = claim(1, kTag);
    engine.deliver_block(1, kTag, 1024, text.substr(1024, 1024), 1024, 3000);
    ep->poll();
    std::string into(3000, '-');
    ulc_request request;
    ASSERT_EQ(receive(message, into, request), ULC_OK);
    EXPECT_EQ(test(request), ULC_ERR_AGAIN);
    EXPECT_EQ(ulc_cancel(ep, &request), ULC_ERR_AGAIN);
    engine.deliver_block(1, kTag, 2048, text.substr(2048), 2048, 3000);
    ep->poll();
    ASSERT_EQ(test(request), ULC_OK);
    EXPECT_EQ(into, text);
}

TEST_F(ClientClaim, a_message_that_became_whole_meanwhile_is_copied) {
    const std::string text = pattern(3000);
    begin(text);
    ulc_message* message = claim(1, kTag);
    go_on(text);
    std::string into(2000, '-');
    ulc_request request;
    ulc_status status;
    ASSERT_EQ(receive(message, into, request), ULC_OK);
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_TRUNCATED);
    EXPECT_EQ(status.length, 3000U);
    EXPECT_EQ(into, text.substr(0, 2000));
}

TEST(ClientDiscard, a_discarded_message_takes_no_memory_while_the_rest_of_it_comes) {
    ScriptedEngine engine(kSmall, {.unexpected_octets = 64U << 10});
    ulc_endpoint* ep = engine.endpoint.get();
    engine.form(0, 3);
    const std::string text = pattern(3000);
    for (int round = 0; round < 100; ++round) {  // 300,000 bytes, were they kept
        ulc_message* message = nullptr;
        engine.deliver_block(1, kTag, 0, text.substr(0, 1024), 0, 3000);
        EXPECT_EQ(ep->poll(), 1);
        ASSERT_EQ(ulc_claim(ep, 1, kTag, kExact, &message, nullptr), ULC_OK);
        ASSERT_EQ(ulc_discard(ep, message), ULC_OK);
        engine.deliver_block(1, kTag, 1024, text.substr(1024, 1024), 1024, 3000);
        engine.deliver_block(1, kTag, 2048, text.substr(2048), 2048, 3000);
        ASSERT_EQ(ep->poll(), 2) << "round " << round;
        EXPECT_EQ(engine.released().size(), 3U);
        engine.deliver_inline(1, kTag, "whole");
        ASSERT_EQ(ep->poll(), 1);
        ASSERT_EQ(ulc_claim(ep, 1, kTag, kExact, &message, nullptr), ULC_OK);
        ASSERT_EQ(ulc_discard(ep, message), ULC_OK);
        EXPECT_EQ(ulc_probe(ep, ULC_RANK_ANY, 0, 0, nullptr), ULC_ERR_AGAIN);
    }
    EXPECT_EQ(ulc_discard(ep, nullptr), ULC_ERR_INVALID);
}

TEST_F(ClientClaim, death_of_the_source_ends_what_is_not_whole) {
    const std::string text = pattern(3000);
    engine.deliver_inline(1, kTag, "whole");
    ep->poll();
    ulc_message* whole = claim(1, kTag);
    begin(text);
    ulc_message* half = claim(1, kTag);
    engine.deliver_block(2, kTag, 4096, text.substr(0, 1024), 0, 3000);
    ep->poll();
    ASSERT_EQ(ulc_discard(ep, claim(2, kTag)), ULC_OK);
    engine.peer_gone(1, true);
    engine.peer_gone(2, true);
    ep->poll();
    std::string into(3000, '-');
    ulc_request request;
    ulc_status status;
    ASSERT_EQ(receive(half, into, request), ULC_OK);
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    ASSERT_EQ(receive(whole, into, request), ULC_OK);
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_EQ(into.substr(0, 5), "whole");
}

TEST_F(ClientClaim, what_is_still_claimed_at_the_end_is_freed) {
    begin(pattern(3000));
    ASSERT_NE(claim(1, kTag), nullptr);
    engine.deliver_inline(2, kTag, "whole");
    ep->poll();
    ASSERT_NE(claim(2, kTag), nullptr);  // the leak sanitizer sees the rest
}

}  // namespace
}  // namespace ulc::client
