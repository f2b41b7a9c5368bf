// SPDX-License-Identifier: BSD-3-Clause
// Rings of a peer that does not keep to the rules of near.h. A malformed record, cursor or offer is
// counted and ends the use of its ring; all other traffic goes on.
#include "tests/unit/client/near/near_pair.h"

#include "client/p2p/tags.h"

namespace ulc::client {
namespace {

// ---------------------------------------------------------------- hostile peers

struct Spoiled {
    const char* what;
    void (*spoil)(abi::SubmissionRecord& record);
};

struct ClientNearSpoiled : ClientNear, testing::WithParamInterface<Spoiled> {};

TEST_P(ClientNearSpoiled, a_malformed_record_ends_the_ring_and_is_counted) {
    connect();
    send("spoiled");
    GetParam().spoil(slot(0));
    send("not read");
    second.endpoint->poll();
    EXPECT_EQ(b->messages().control_dropped(), 1U);
    EXPECT_EQ(next(), "none");
    second.endpoint->poll();
    EXPECT_EQ(b->messages().control_dropped(), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    all, ClientNearSpoiled,
    testing::Values(
        Spoiled{"kind", [](auto& r) { r.kind = abi::SubmitKind::kLeave; }},
        Spoiled{"tag_of_libulc", [](auto& r) { r.tag = kLibulcTags | 7; }},
        Spoiled{"inline_length", [](auto& r) { r.inline_length = abi::kInlineOctetsMax + 1; }},
        Spoiled{"block_too_long",
                [](auto& r) { r.flags = 0, r.body.block = {0, 32'769, 0, 0, 0, 0}; }},
        Spoiled{"block_outside",
                [](auto& r) { r.flags = 0, r.body.block = {131'072, 1, 0, 0, 0, 0}; }},
        Spoiled{"block_wraps",
                [](auto& r) { r.flags = 0, r.body.block = {UINT32_MAX, 2, 0, 0, 0, 0}; }}),
    [](const auto& one) { return std::string(one.param.what); });

TEST_F(ClientNear, a_count_that_never_comes_holds_up_only_its_ring) {
    connect();
    NearSender hostile(ring());
    ASSERT_TRUE(hostile.send(1'000'000, kTag, Pieces::one("never", 5)));
    send(pattern(40'000));
    do
        first.endpoint->poll();
    while (carry());
    second.deliver_inline(2, kTag, "of another");
    EXPECT_GT(second.endpoint->poll(), 0);
    EXPECT_TRUE(next() == pattern(40'000));
    ulc_status status;
    EXPECT_EQ(ulc_probe(b, 2, kTag, UINT64_MAX, &status), ULC_OK);
    EXPECT_EQ(second.endpoint->poll(), 0);
}

TEST_F(ClientNear, bytes_that_a_match_has_seen_are_not_read_again) {
    connect();
    static std::byte* block = nullptr;
    static ulc_request part;
    static char into[200];
    static ulc_piece piece{into, sizeof into};
    ulc_request many;
    const auto give = [](ulc_request*, const ulc_status*, const void* head, std::size_t octets,
                         ulc_part* place) {
        EXPECT_EQ(octets, 64U);
        EXPECT_EQ(static_cast<const char*>(head)[0], 'a');
        std::memset(block, 'b', sizeof into);
        *place = {&part, &piece, 1, 1};
    };
    ASSERT_EQ(ulc_receive_many(b, 0, kTag, UINT64_MAX, give, &many), ULC_OK);
    send(std::string(sizeof into, 'a'));
    block = ring() + kNearDataAt + slot(0).body.block.offset;
    second.endpoint->poll();
    ASSERT_EQ(ulc_test(b, &part, nullptr), ULC_OK);
    EXPECT_EQ(std::string(into, 64), std::string(64, 'a'));
}

TEST_F(ClientNear, a_cursor_that_no_receiver_publishes_ends_the_use_of_the_ring) {
    connect();
    auto& control = *reinterpret_cast<NearControl*>(ring());
    unsigned sent = 0;
    for (; silent(); ++sent) {
        send("x");
        if (sent == 5) control.consumed = 1000;
    }
    EXPECT_EQ(sent, kNearSlots + 1);
    for (int i = 0; i < 3; ++i) {
        control.consumed = static_cast<std::uint32_t>(i);
        send("x");
        EXPECT_FALSE(silent());
    }
}

TEST_F(ClientNear, a_peer_that_the_engine_or_the_kernel_does_not_show_gets_no_ring) {
    NearOffer offer{};
    ASSERT_NE(kOwnMemory.make(offer), nullptr);
    const std::string word(reinterpret_cast<const char*>(&offer), sizeof offer);
    for (const bool engine : {false, true}) {
        sees = !engine;
        ScriptedEngine third(kSmall);
        ASSERT_EQ(third.endpoint->messages().prepare_near(kOwnMemory), ULC_OK);
        third.form(2, 3);
        ulc_near_process self{};
        ulc_near_process other{};
        EXPECT_EQ(ulc_near_processes(third.endpoint.get(), 1, &self, &other), ULC_ERR_AGAIN);
        third.deliver_inline(1, kTag, "first");
        third.deliver_inline(1, kTagNear, word);
        third.endpoint->poll();
        answer(third, 1, engine);
        EXPECT_EQ(mapped_of, 0U);
        EXPECT_EQ(third.endpoint->messages().control_dropped(), 1U);
        EXPECT_FALSE(third.take_any().has_value());  // nor does it offer one
        EXPECT_EQ(ulc_near_processes(third.endpoint.get(), 1, &self, &other), ULC_ERR_UNSUPPORTED);
        third.deliver_inline(1, kTagNear, word);
        third.endpoint->poll();
        EXPECT_EQ(third.endpoint->messages().control_dropped(), 2U);
    }
}

// The process of an excluded rank lives, and may not know that it is excluded.
TEST_F(ClientNear, an_excluded_peer_is_not_heard_by_its_ring_and_gets_no_other) {
    connect();
    second.peer_gone(0, true);
    second.endpoint->poll();
    send("after its exclusion");
    second.endpoint->poll();
    EXPECT_EQ(next(), "none");
    NearOffer offer{};
    ASSERT_NE(kOwnMemory.make(offer), nullptr);
    const std::string word(reinterpret_cast<const char*>(&offer), sizeof offer);
    mapped_of = 0;
    second.deliver_inline(0, kTagNear, word);
    second.endpoint->poll();
    ulc_near_process self{};
    ulc_near_process other{};
    EXPECT_EQ(ulc_near_processes(b, 0, &self, &other), ULC_ERR_UNSUPPORTED);
    EXPECT_FALSE(second.take(abi::SubmitKind::kNear).has_value()) << "the engine is asked again";
    EXPECT_EQ(mapped_of, 0U);
}

TEST_F(ClientNear, a_peer_that_is_excluded_before_the_engine_answers_is_not_near) {
    ScriptedEngine third(kSmall);
    ASSERT_EQ(third.endpoint->messages().prepare_near(kOwnMemory), ULC_OK);
    third.form(2, 3);
    ulc_near_process self{};
    ulc_near_process other{};
    EXPECT_EQ(ulc_near_processes(third.endpoint.get(), 1, &self, &other), ULC_ERR_AGAIN);
    third.peer_gone(1, true);
    third.endpoint->poll();
    answer(third, 1);
    EXPECT_EQ(ulc_near_processes(third.endpoint.get(), 1, &self, &other), ULC_ERR_UNSUPPORTED);
}

// M-13
TEST_F(ClientNear, malformed_offers_are_dropped_and_counted) {
    const NearOffer offer{};
    const std::string word(reinterpret_cast<const char*>(&offer), sizeof offer);
    first.deliver_inline(2, kTagNear, word);  // of a peer that is not near
    first.endpoint->poll();
    EXPECT_EQ(a->messages().control_dropped(), 1U);
    first.deliver_inline(1, kTagNear, word.substr(1));
    first.endpoint->poll();
    EXPECT_EQ(a->messages().control_dropped(), 2U);
    connect();
    first.deliver_inline(1, kTagNear, word);  // a second one
    first.endpoint->poll();
    EXPECT_EQ(a->messages().control_dropped(), 3U);
}

}  // namespace
}  // namespace ulc::client
