// SPDX-License-Identifier: BSD-3-Clause
// Tests the questions of an embedded engine when a message begins (abi/placement.h), and the effect
// of the answer on the receive. Runs against a scripted engine.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr std::uint64_t kTag = 9;
constexpr std::uint64_t kLibulcsTag = std::uint64_t{3} << 62;

struct ClientPlacing : ClientTest {
    ClientPlacing() { engine.form(0, 3); }

    void receive(std::uint16_t from, std::uint64_t tag, std::string& into, ulc_request& request,
                 std::uint64_t mask = UINT64_MAX) {
        ASSERT_EQ(ulc_receive(ep, from, tag, mask, into.data(), into.size(), &request), ULC_OK);
    }
    [[nodiscard]] abi::Beginning message(std::uint16_t source, std::uint64_t tag,
                                         std::uint64_t length) const {
        return {.source = source,
                .stream = ep->membership().rank(),
                .tag = tag,
                .length = length,
                .taken_at_least = passed_at};
    }
    std::byte* place(std::uint16_t source, std::uint64_t tag, const std::string& text) {
        std::byte* to = placer.place(placer.context, message(source, tag, text.size())).base;
        if (to != nullptr) std::memcpy(to, text.data(), text.size());
        return to;
    }
    void whole(std::uint16_t source, std::uint64_t length) {
        abi::CompletionRecord& record = engine.claim(abi::CompletionKind::kMessage);
        record.flags = abi::kCompletePlaced | abi::kCompleteLast;
        record.source = source;
        record.stream = ep->membership().rank();
        record.body.block.message_length = length;
        engine.completions.publish();
    }
    void broken(std::uint16_t source) {
        abi::CompletionRecord& record = engine.claim(abi::CompletionKind::kMessage);
        record.flags = abi::kCompleteInline | abi::kCompleteLast;
        record.source = source;
        record.stream = ep->membership().rank();
        record.status = static_cast<std::int16_t>(Err::kCorrupt);
        engine.completions.publish();
    }

    abi::Placer placer = ep->placer();
    std::uint32_t passed_at = 0;
};

TEST_F(ClientPlacing, a_message_goes_into_the_buffer_of_its_receive) {
    std::string buffer(20'000, '-');
    ulc_request request;
    receive(2, kTag, buffer, request);
    const std::string text = pattern(20'000);
    EXPECT_EQ(static_cast<void*>(placer.find(placer.context, message(2, kTag, text.size())).base),
              buffer.data());
    EXPECT_EQ(static_cast<void*>(place(2, kTag, text)), buffer.data())
        << "a look before changed nothing";
    ep->poll();
    EXPECT_EQ(test(request), ULC_ERR_AGAIN) << "the end of it was not told yet";
    EXPECT_EQ(ulc_cancel(ep, &request), ULC_ERR_AGAIN) << "it has matched";
    whole(2, text.size());
    ep->poll();
    ulc_status status;
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_EQ(status.source, 2);
    EXPECT_EQ(status.tag, kTag);
    EXPECT_EQ(status.length, text.size());
    EXPECT_EQ(buffer, text);
    EXPECT_TRUE(engine.released().empty()) << "no block was in between";
}

TEST_F(ClientPlacing, receives_are_found_in_the_order_of_matching) {
    std::string first(2000, '-');
    std::string second(2000, '-');
    std::string any(2000, '-');
    ulc_request requests[3];
    receive(1, kTag, first, requests[0]);
    receive(ULC_RANK_ANY, 0x100, any, requests[1], 0xff00);
    receive(1, kTag, second, requests[2]);
    EXPECT_EQ(place(2, kTag, "other source"), nullptr);
    EXPECT_EQ(place(1, kTag + 1, "other tag"), nullptr);
    EXPECT_EQ(static_cast<void*>(place(1, kTag, "a")), first.data());
    EXPECT_EQ(static_cast<void*>(place(2, 0x1ab, "b")), any.data());
    EXPECT_EQ(static_cast<void*>(place(1, kTag, "c")), second.data());
    EXPECT_EQ(place(1, kTag, "d"), nullptr) << "none is left";
    whole(2, 1);
    whole(1, 1);
    whole(1, 1);
    ep->poll();
    ulc_status status;
    ASSERT_EQ(test(requests[1], &status), ULC_OK);
    EXPECT_EQ(status.tag, 0x1abU);
    EXPECT_EQ(status.source, 2);
    EXPECT_EQ(test(requests[0]), ULC_OK);
    EXPECT_EQ(test(requests[2]), ULC_OK);
    EXPECT_EQ(first[0], 'a');
    EXPECT_EQ(second[0], 'c');
}

TEST_F(ClientPlacing, a_short_receive_and_messages_of_libulc_go_the_usual_way) {
    std::string buffer(1000, '-');
    ulc_request request;
    receive(1, kTag, buffer, request);
    EXPECT_EQ(place(1, kTag, std::string(1001, 'x')), nullptr);
    EXPECT_EQ(place(7, kTag, "nobody's"), nullptr);
    ASSERT_EQ(ulc_cancel(ep, &request), ULC_OK) << "it is still posted";
    ASSERT_EQ(ep->messages().receive(ULC_RANK_ANY, 0, 0, Pieces::one(buffer.data(), buffer.size()),
                                     &request),
              ULC_OK);
    EXPECT_EQ(place(1, kLibulcsTag, "control"), nullptr);
    EXPECT_NE(place(1, kTag, "not control"), nullptr);
}

// The receive that matches the second message depends on the first message, which is still in the
// ring.
TEST_F(ClientPlacing, nothing_is_said_before_what_came_earlier_has_found_its_receive) {
    std::string first(2000, '-');
    std::string second(2000, '-');
    ulc_request requests[2];
    receive(1, kTag, first, requests[0]);
    receive(1, kTag, second, requests[1]);
    engine.deliver_inline(1, kTag, "early");
    passed_at = engine.completions.produced();
    EXPECT_FALSE(placer.find(placer.context, message(1, kTag, 2000)));
    EXPECT_EQ(place(1, kTag, "late"), nullptr);
    ep->poll();
    EXPECT_EQ(first.substr(0, 5), "early");
    EXPECT_EQ(static_cast<void*>(place(1, kTag, "late")), second.data());
}

TEST_F(ClientPlacing, one_that_breaks_off_ends_its_receive_and_not_the_next_one) {
    std::string buffers[3] = {std::string(3000, '-'), std::string(3000, '-'),
                              std::string(3000, '-')};
    ulc_request requests[3];
    for (int n = 0; n < 3; ++n)
        receive(1, kTag, buffers[n], requests[n]);
    for (int n = 0; n < 3; ++n)
        ASSERT_NE(place(1, kTag, std::string(3000, static_cast<char>('a' + n))), nullptr);
    whole(1, 3000);
    broken(1);
    whole(1, 3000);
    ep->poll();
    ulc_status status;
    ASSERT_EQ(test(requests[0], &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    ASSERT_EQ(test(requests[1], &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CORRUPT);
    ASSERT_EQ(test(requests[2], &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
}

TEST_F(ClientPlacing, a_receive_whose_source_dies_in_the_middle_ends) {
    std::string buffer(3000, '-');
    ulc_request request;
    receive(1, kTag, buffer, request);
    ASSERT_NE(place(1, kTag, "half"), nullptr);
    engine.peer_gone(1, true);
    ep->poll();
    ulc_status status;
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    EXPECT_EQ(place(1, kTag, "more"), nullptr);
}

TEST_F(ClientPlacing, an_end_that_nobody_awaits_is_no_engines) {
    std::string buffer(3000, '-');
    ulc_request request;
    receive(1, kTag, buffer, request);
    ASSERT_NE(place(1, kTag, std::string(3000, 'x')), nullptr);
    whole(1, 2999);  // another length than announced
    EXPECT_EQ(ep->poll(), -ULC_ERR_CORRUPT);
    ulc_status status;
    ASSERT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CORRUPT);
    EXPECT_FALSE(placer.find(placer.context, message(1, kTag, 8))) << "it is over";
}

}  // namespace
}  // namespace ulc::client
