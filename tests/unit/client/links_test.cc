// SPDX-License-Identifier: BSD-3-Clause
// Links of an endpoint, against an engine that the test writes out: client/links/link_table.h.
#include <gtest/gtest.h>
#include <ulc.h>

#include <cstring>
#include <set>
#include <string>

#include "abi/put_text.h"
#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr unsigned char kKey[16] = {1, 2, 3};
constexpr std::uint16_t kLinks = 4;

struct LinksTest : ClientTest {
    ulc_link_address own{};

    void open() {
        for (unsigned n = 0; n < sizeof own.bytes; ++n)
            own.bytes[n] = static_cast<unsigned char>(n + 1);
        ASSERT_EQ(ep->membership().open_links(kLinks, kKey), ULC_OK);
        const auto record = engine.take(abi::SubmitKind::kOpenLinks);
        ASSERT_TRUE(record.has_value());
        abi::OpenLinksRequest request;
        std::memcpy(&request, engine.region.tx(record->body.block.offset, sizeof request),
                    sizeof request);
        EXPECT_EQ(std::memcmp(request.key, kKey, sizeof kKey), 0);
        EXPECT_EQ(request.links, kLinks);
        ulc_link_address none;
        EXPECT_EQ(ulc_address(ep, &none), ULC_ERR_AGAIN);
        abi::CompletionRecord& done = engine.claim(abi::CompletionKind::kLinksOpen);
        done.stream = kLinks;
        done.flags = abi::kCompleteInline;
        std::memcpy(done.body.inline_octets, own.bytes, sizeof own.bytes);
        engine.completions.publish();
        ASSERT_EQ(ep->poll(), 1);
        ASSERT_EQ(ulc_job_state(ep), ULC_OK);
    }
    void say(abi::CompletionKind kind, std::uint16_t peer, std::uint32_t stream = 0,
             std::uint64_t tag = 0, Err status = Err::kOk) {
        abi::CompletionRecord& record = engine.claim(kind);
        record.source = peer;
        record.stream = stream;
        record.tag = tag;
        record.status = static_cast<std::int16_t>(status);
        engine.completions.publish();
        EXPECT_EQ(ep->poll(), 1);
    }
    /// A call that the engine answers with that peer.
    void linked(std::uint16_t peer) {
        ulc_request request;
        ASSERT_EQ(ulc_link(ep, &own, 0, &request), ULC_OK);
        const auto record = engine.take(abi::SubmitKind::kLink);
        ASSERT_TRUE(record.has_value());
        say(abi::CompletionKind::kLinked, peer);
        EXPECT_EQ(test(request), ULC_ERR_AGAIN);
        say(abi::CompletionKind::kLinkDone, peer, 0, record->cookie);
        ulc_status status;
        EXPECT_EQ(test(request, &status), ULC_OK);
        EXPECT_EQ(status.error, ULC_OK);
        EXPECT_EQ(status.source, peer);
    }
};

TEST_F(LinksTest, open_and_have_an_address) {
    ulc_link_address out;
    EXPECT_EQ(ulc_address(ep, &out), ULC_ERR_NOT_FORMED);
    EXPECT_EQ(ulc_link(ep, &out, 0, nullptr), ULC_ERR_INVALID);
    std::uint16_t peer = 0;
    EXPECT_EQ(ulc_next_peer(ep, &peer), ULC_ERR_NOT_FORMED);
    open();
    EXPECT_EQ(ulc_address(ep, &out), ULC_OK);
    EXPECT_EQ(std::memcmp(out.bytes, own.bytes, sizeof out.bytes), 0);
    EXPECT_EQ(ulc_size(ep), kLinks);
    EXPECT_EQ(ulc_rank(ep), ULC_RANK_ANY);
    EXPECT_EQ(ulc_open_links(ep, 1), ULC_ERR_INVALID) << "open already";
    EXPECT_EQ(ulc_join(ep, "job", 0, 1, nullptr), ULC_ERR_INVALID);
    ulc_request request;
    const std::uint16_t ranks[] = {0, 1};
    EXPECT_EQ(ulc_group_create(ep, ranks, 2, &request), ULC_ERR_INVALID) << "links have no groups";
    EXPECT_EQ(ulc_multicast(ep, ulc_world(ep), ULC_SUBSET_ALL, 0, "x", 1, nullptr),
              ULC_ERR_INVALID);
}

TEST_F(LinksTest, in_a_job_there_is_no_address) {
    engine.form(0, 2);
    ulc_link_address out;
    EXPECT_EQ(ulc_address(ep, &out), ULC_ERR_INVALID);
    ulc_request request;
    EXPECT_EQ(ulc_link(ep, &out, 0, &request), ULC_ERR_NOT_FORMED);
    EXPECT_EQ(ulc_unlink(ep, 0, nullptr), ULC_ERR_NOT_FORMED);
}

TEST_F(LinksTest, a_refusal_says_why_and_opening_may_be_tried_again) {
    ASSERT_EQ(ep->membership().open_links(kLinks, kKey), ULC_OK);
    ASSERT_TRUE(engine.take(abi::SubmitKind::kOpenLinks).has_value());
    abi::CompletionRecord& failed = engine.claim(abi::CompletionKind::kJobFailed);
    failed.status = static_cast<std::int16_t>(Err::kLimit);
    put_text(engine.region.control().failure, "few");
    engine.completions.publish();
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(ulc_job_state(ep), ULC_ERR_LIMIT);
    EXPECT_EQ(ep->membership().job_text(), "few");
    open();
}

// L-3
TEST_F(LinksTest, each_opening_has_another_key) {
    std::set<std::string> keys;
    for (int n = 0; n < 100; ++n) {
        ASSERT_EQ(ulc_open_links(ep, kLinks), ULC_OK);
        const auto record = engine.take(abi::SubmitKind::kOpenLinks);
        ASSERT_TRUE(record.has_value());
        abi::OpenLinksRequest request;
        std::memcpy(&request, engine.region.tx(record->body.block.offset, sizeof request),
                    sizeof request);
        keys.emplace(request.key, request.key + sizeof request.key);
        abi::CompletionRecord& failed = engine.claim(abi::CompletionKind::kJobFailed);
        failed.status = static_cast<std::int16_t>(Err::kLimit);
        engine.completions.publish();
        EXPECT_EQ(ep->poll(), 1);
    }
    EXPECT_EQ(keys.size(), 100U);
    EXPECT_FALSE(keys.contains(std::string(sizeof(abi::OpenLinksRequest::key), '\0')));
}

TEST_F(LinksTest, a_peer_is_there_from_its_link_to_its_end) {
    open();
    ulc_request request;
    char buffer[8];
    EXPECT_EQ(ulc_peer_state(ep, 2), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_send(ep, 2, 1, "x", 1, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_receive(ep, 2, 1, UINT64_MAX, buffer, 8, &request), ULC_ERR_INVALID);
    linked(2);
    EXPECT_EQ(ulc_peer_state(ep, 2), ULC_OK);
    EXPECT_EQ(ulc_send(ep, 2, 1, "x", 1, nullptr), ULC_OK);
    EXPECT_TRUE(engine.take(abi::SubmitKind::kSend).has_value());
    ASSERT_EQ(ulc_receive(ep, 2, 1, UINT64_MAX, buffer, 8, &request), ULC_OK);
    engine.deliver_inline(2, 1, "hi");
    EXPECT_EQ(ep->poll(), 1);
    ulc_status status;
    EXPECT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.source, 2);

    ASSERT_EQ(ulc_receive(ep, 2, 1, UINT64_MAX, buffer, 8, &request), ULC_OK);
    engine.peer_gone(2, true);
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    EXPECT_EQ(ulc_peer_state(ep, 2), ULC_ERR_PEER_DIED);
    EXPECT_EQ(ulc_send(ep, 2, 1, "x", 1, nullptr), ULC_ERR_PEER_DIED);

    ulc_request ending;
    ASSERT_EQ(ulc_unlink(ep, 2, &ending), ULC_OK);
    EXPECT_EQ(ulc_unlink(ep, 2, nullptr), ULC_ERR_INVALID) << "it is ending";
    EXPECT_EQ(engine.take(abi::SubmitKind::kUnlink)->stream, 2U);
    EXPECT_EQ(ulc_peer_state(ep, 2), ULC_ERR_INVALID);
    EXPECT_EQ(test(ending), ULC_ERR_AGAIN);
    say(abi::CompletionKind::kUnlinked, 2);
    EXPECT_EQ(test(ending), ULC_OK);
    linked(2);
    EXPECT_EQ(ulc_peer_state(ep, 2), ULC_OK) << "the number means the next peer";
}

// L-30
TEST_F(LinksTest, nothing_of_an_earlier_peer_is_taken_for_the_next_ones) {
    open();
    linked(1);
    char buffer[8];
    ulc_request named;
    ASSERT_EQ(ulc_receive(ep, 1, 7, UINT64_MAX, buffer, 8, &named), ULC_OK);
    engine.deliver_inline(1, 1, "old");
    engine.deliver_block(1, 2, 0, std::string(1000, 'o'), 0, 2000);  // half of a message
    EXPECT_EQ(ep->poll(), 2);
    ASSERT_EQ(ulc_unlink(ep, 1, nullptr), ULC_OK);
    ulc_status status;
    EXPECT_EQ(test(named, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CLOSED);
    ASSERT_TRUE(engine.take(abi::SubmitKind::kUnlink).has_value());
    engine.deliver_inline(1, 3, "late");
    EXPECT_EQ(ep->poll(), 1);
    say(abi::CompletionKind::kUnlinked, 1);
    EXPECT_EQ(ulc_probe(ep, ULC_RANK_ANY, 0, 0, nullptr), ULC_ERR_AGAIN);
    linked(1);
    EXPECT_EQ(ulc_probe(ep, 1, 0, 0, nullptr), ULC_ERR_AGAIN);
    engine.deliver_block(1, 2, 0, std::string(1000, 'n'), 0, 1000);
    EXPECT_EQ(ep->poll(), 1);
    EXPECT_EQ(ulc_probe(ep, 1, 2, UINT64_MAX, &status), ULC_OK);
    EXPECT_EQ(status.length, 1000U);
}

TEST_F(LinksTest, peers_that_called_are_given_once) {
    open();
    say(abi::CompletionKind::kLinked, 3, 1);
    say(abi::CompletionKind::kLinked, 0, 1);
    linked(2);
    std::uint16_t peer = 99;
    EXPECT_EQ(ulc_next_peer(ep, &peer), ULC_OK);
    EXPECT_EQ(peer, 3);
    ASSERT_EQ(ulc_unlink(ep, 0, nullptr), ULC_OK);
    EXPECT_EQ(ulc_next_peer(ep, &peer), ULC_ERR_AGAIN) << "0 is ending, 2 was called from here";
    ASSERT_TRUE(engine.take(abi::SubmitKind::kUnlink).has_value());
    say(abi::CompletionKind::kUnlinked, 0);
    say(abi::CompletionKind::kLinked, 0, 1);
    EXPECT_EQ(ulc_next_peer(ep, &peer), ULC_OK);
    EXPECT_EQ(peer, 0);
    EXPECT_EQ(ulc_next_peer(ep, &peer), ULC_ERR_AGAIN);
}

TEST_F(LinksTest, calls_end_as_the_engine_says_in_any_order) {
    open();
    ulc_request requests[3];
    std::uint32_t cookies[3];
    for (unsigned n = 0; n < 3; ++n) {
        ASSERT_EQ(ulc_link(ep, &own, 1000, &requests[n]), ULC_OK);
        const auto record = engine.take(abi::SubmitKind::kLink);
        cookies[n] = record->cookie;
        abi::LinkCall call;
        std::memcpy(&call, record->body.inline_octets, sizeof call);
        EXPECT_EQ(call.timeout_ns, 1000U);
        EXPECT_EQ(std::memcmp(call.address, own.bytes, sizeof own.bytes), 0);
    }
    say(abi::CompletionKind::kLinkDone, ULC_RANK_ANY, 0, cookies[2], Err::kTimeout);
    say(abi::CompletionKind::kLinked, 1);
    say(abi::CompletionKind::kLinkDone, 1, 0, cookies[0]);
    say(abi::CompletionKind::kLinkDone, 1, 0, cookies[1]);
    ulc_status status;
    EXPECT_EQ(test(requests[2], &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_TIMEOUT);
    EXPECT_EQ(status.source, ULC_RANK_ANY);
    for (unsigned n = 0; n < 2; ++n) {
        EXPECT_EQ(test(requests[n], &status), ULC_OK);
        EXPECT_EQ(status.source, 1);
    }
}

TEST_F(LinksTest, all_requests_end_with_the_endpoint) {
    open();
    linked(0);
    ulc_request call;
    ulc_request ending;
    ASSERT_EQ(ulc_link(ep, &own, 0, &call), ULC_OK);
    ASSERT_EQ(ulc_unlink(ep, 0, &ending), ULC_OK);
    engine.claim(abi::CompletionKind::kLeft);
    engine.completions.publish();
    (void)ep->poll();
    ulc_status status;
    EXPECT_EQ(test(call, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CLOSED);
    EXPECT_EQ(test(ending, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CLOSED);
    EXPECT_EQ(ulc_link(ep, &own, 0, &call), ULC_ERR_CLOSED);
}

TEST_F(LinksTest, records_that_no_engine_writes_end_the_endpoint) {
    const auto bad = [](abi::CompletionKind kind, std::uint16_t peer, std::uint64_t tag) {
        ScriptedEngine one{kSmall};
        EXPECT_EQ(one.endpoint->membership().open_links(kLinks, kKey), ULC_OK);
        abi::CompletionRecord& open = one.claim(abi::CompletionKind::kLinksOpen);
        open.stream = kLinks;
        one.completions.publish();
        EXPECT_EQ(one.endpoint->poll(), 1);
        abi::CompletionRecord& record = one.claim(kind);
        record.source = peer;
        record.tag = tag;
        one.completions.publish();
        EXPECT_EQ(one.endpoint->poll(), -ULC_ERR_CORRUPT);
    };
    bad(abi::CompletionKind::kLinked, kLinks, 0);
    bad(abi::CompletionKind::kLinkDone, 0, 5);
    bad(abi::CompletionKind::kUnlinked, 1, 0);
    bad(abi::CompletionKind::kUnlinked, kLinks, 0);
    bad(abi::CompletionKind::kLinksOpen, 0, 0);
}

TEST_F(LinksTest, unlink_waits_for_sends_that_wait_for_room) {
    open();
    linked(1);
    std::string large(300 * 1024, 'x');
    ulc_request send;
    ASSERT_EQ(ulc_send(ep, 1, 1, large.data(), large.size(), &send), ULC_OK);
    EXPECT_EQ(ulc_unlink(ep, 1, nullptr), ULC_ERR_AGAIN);
    EXPECT_EQ(drain_message(&send), large);
    EXPECT_EQ(ulc_unlink(ep, 1, nullptr), ULC_OK);
}

}  // namespace
}  // namespace ulc::client
