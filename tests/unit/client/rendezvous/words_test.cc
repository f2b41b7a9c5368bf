// SPDX-License-Identifier: BSD-3-Clause
// Announcements that no correct peer sends, and messages to oneself.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/client/rendezvous/fixture.h"

namespace ulc::client {
namespace {

// ---------------------------------------------------------------- words of no correct peer

// M-13
TEST_F(ClientRendezvous, malformed_words_are_counted_and_dropped) {
    const std::string text = pattern(5'000);
    std::uint64_t dropped = 0;
    const auto expect_dropped = [&](const char* what) {
        EXPECT_EQ(ep->messages().control_dropped(), ++dropped) << what;
        EXPECT_EQ(ulc_probe(ep, ULC_RANK_ANY, 0, 0, nullptr), ULC_ERR_AGAIN) << what;
        EXPECT_TRUE(silent()) << what;
    };
    hear(1, kTagAnnouncement, "short");
    expect_dropped("an announcement without its head");
    hear(1, kTagAnnouncement, announcement(std::uint64_t{1} << 63, 100, 1, ""));
    expect_dropped("a tag of collectives");
    hear(1, kTagAnnouncement, announcement(kTag, 3, 1, "four"));
    expect_dropped("a first part longer than the message");
    hear(1, kTagAnnouncement, announcement(kTag, 100, 1, "four").substr(0, 27));
    expect_dropped("a first part shorter than it says");
    hear(1, kTagRest | 77, "whose?");
    expect_dropped("the rest of nothing");
    engine.deliver_block(1, kTagRest | 77, 0, text.substr(0, 1'000), 0, 5'000);
    ep->poll();
    expect_dropped("the rest of nothing, in chunks");
    engine.deliver_block(1, kTagRest | 77, 1024, text.substr(1'000), 1'000, 5'000);
    EXPECT_EQ(ep->poll(), 1);
    hear(1, kTagAsk, "ask");
    expect_dropped("a short Ask");
    ask(1, 77, 10);
    expect_dropped("an Ask for nothing");
    hold(1, 2);
    expect_dropped("a Hold that is neither");
    hear(1, (std::uint64_t{3} << 62) | 12, "?");
    expect_dropped("an unknown word");

    announce(1, text, 2'000);
    for (const std::size_t wrong : {2'999U, 3'001U}) {
        hear(1, kTagRest | 5, std::string(wrong, 'x'));
        EXPECT_EQ(ep->messages().control_dropped(), ++dropped) << "another length than is missing";
    }
    hear(2, kTagRest | 5, text.substr(2'000));
    EXPECT_EQ(ep->messages().control_dropped(), ++dropped) << "another source";

    ulc_request request;
    ASSERT_EQ(ulc_send(ep, 1, kTag, pattern(30'000).data(), 30'000, &request), ULC_OK);
    std::string first;
    const Announcement head = announced(first);
    ask(2, head.id, 30'000);
    EXPECT_EQ(ep->messages().control_dropped(), ++dropped) << "another receiver";
    ask(1, head.id, 30'001);
    EXPECT_EQ(ep->messages().control_dropped(), ++dropped) << "more than there is";
    ask(1, head.id ^ 1U << 20, 30'000);
    EXPECT_EQ(ep->messages().control_dropped(), ++dropped) << "an earlier message's id";
    EXPECT_TRUE(silent());
    EXPECT_EQ(test(request), ULC_ERR_AGAIN);
}

// ---------------------------------------------------------------- to oneself

TEST_F(ClientRendezvous, a_long_message_to_oneself_is_copied_when_it_is_received) {
    for (const bool posted : {true, false}) {
        std::string text = pattern(30'000);
        std::string into(30'000, '-');
        const ulc_piece pieces[2] = {{text.data(), 1}, {text.data() + 1, 29'999}};
        ulc_request send;
        ulc_request request;
        if (posted) {
            ASSERT_EQ(receive(0, into, request), ULC_OK);
        }
        ASSERT_EQ(ulc_sendv(ep, 0, kTag, pieces, 2, 0, &send), ULC_OK);
        if (!posted) {
            EXPECT_EQ(test(send), ULC_ERR_AGAIN);
            ASSERT_EQ(receive(0, into, request), ULC_OK);
        }
        EXPECT_EQ(test(send), ULC_OK);
        EXPECT_EQ(test(request), ULC_OK);
        EXPECT_EQ(into, text);
    }
    ulc_request send;
    const ulc_piece nothing{nullptr, 0};
    ASSERT_EQ(ulc_sendv(ep, 0, kTag, &nothing, 1, ULC_SEND_MATCHED, &send), ULC_OK);
    EXPECT_EQ(test(send), ULC_ERR_AGAIN);
    ulc_message* message = nullptr;
    ASSERT_EQ(ulc_claim(ep, 0, kTag, kExact, &message, nullptr), ULC_OK);
    ASSERT_EQ(ulc_discard(ep, message), ULC_OK);
    EXPECT_EQ(test(send), ULC_OK);
    EXPECT_TRUE(silent());
}

}  // namespace
}  // namespace ulc::client
