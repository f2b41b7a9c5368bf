// SPDX-License-Identifier: BSD-3-Clause
// Receives of many messages (ulc_receive_many), against a scripted engine. Their place among other
// receives, parts of messages that come in chunks or are announced, cancel, and the death of a
// peer. Random receives and messages are compared with plain lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tests/unit/client/rendezvous/fixture.h"

namespace ulc::client {
namespace {

/// A receive of `left` messages. Each goes into a separate part.
struct Many {
    ulc_request request;  // the first member: give() relies on it
    struct Part {
        ulc_request request{};
        std::string text;
        ulc_piece piece{};
        std::string head;
        ulc_status announced{};
    };
    std::deque<Part> parts;
    unsigned left = 0;
    std::size_t capacity = SIZE_MAX;

    static void give(ulc_request* request, const ulc_status* message, const void* head,
                     std::size_t octets, ulc_part* part) {
        auto& many = *reinterpret_cast<Many*>(request);
        ASSERT_GT(many.left, 0U);
        Part& one = many.parts.emplace_back();
        one.text.resize(std::min<std::size_t>(message->length, many.capacity));
        one.piece = {one.text.data(), one.text.size()};
        if (octets > 0) one.head.assign(static_cast<const char*>(head), octets);
        one.announced = *message;
        part->request = &one.request;
        part->pieces = &one.piece;
        part->count = 1;
        part->last = --many.left == 0 ? 1 : 0;
    }
};

struct ClientMany : ClientRendezvous {
    int receive_many(Many& many, unsigned messages, std::uint16_t from = ULC_RANK_ANY) {
        many.left = messages;
        return ulc_receive_many(ep, from, kTag, kExact, Many::give, &many.request);
    }
    /// Returns the requests that are done, in their order, and the status of the last one.
    std::vector<ulc_request*> done(ulc_status* status = nullptr) {
        std::vector<ulc_request*> requests;
        ulc_status unused;
        while (ulc_request* one = ulc_next_done(ep, status != nullptr ? status : &unused))
            requests.push_back(one);
        return requests;
    }
};

TEST_F(ClientMany, keeps_its_place_before_later_receives) {
    Many many;
    ASSERT_EQ(receive_many(many, 3), ULC_OK);
    std::string later(8, '.');
    ulc_request request;
    ASSERT_EQ(receive(ULC_RANK_ANY, later, request), ULC_OK);
    for (const char* text : {"one", "two", "three", "four"})
        engine.deliver_inline(1, kTag, text);
    ep->poll();  // all in one call
    ASSERT_EQ(many.parts.size(), 3U);
    EXPECT_EQ(many.parts[0].text, "one");
    EXPECT_EQ(many.parts[1].text, "two");
    EXPECT_EQ(many.parts[2].text, "three");
    EXPECT_EQ(many.parts[2].head, "three");
    ulc_status status;
    EXPECT_EQ(test(request, &status), ULC_OK);
    EXPECT_EQ(later.substr(0, status.length), "four");
    EXPECT_EQ(done(&status),
              (std::vector<ulc_request*>{&many.parts[0].request, &many.parts[1].request,
                                         &many.request, &many.parts[2].request}));
    EXPECT_EQ(status.source, 1);
    EXPECT_EQ(status.tag, kTag);
    EXPECT_EQ(status.length, 5U);
    EXPECT_EQ(status.error, ULC_OK);
}

TEST_F(ClientMany, an_earlier_receive_comes_first) {
    std::string earlier(8, '.');
    ulc_request request;
    ASSERT_EQ(receive(ULC_RANK_ANY, earlier, request), ULC_OK);
    Many many;
    ASSERT_EQ(receive_many(many, 2), ULC_OK);
    hear(1, kTag, "one");
    hear(2, kTag, "two");
    EXPECT_EQ(test(request), ULC_OK);
    EXPECT_EQ(earlier.substr(0, 3), "one");
    ASSERT_EQ(many.parts.size(), 1U);
    EXPECT_EQ(many.parts[0].text, "two");
}

TEST_F(ClientMany, takes_unexpected_messages_in_order_up_to_its_last) {
    for (const char* text : {"one", "two", "three"})
        hear(2, kTag, text);
    Many many;
    ASSERT_EQ(receive_many(many, 2, 2), ULC_OK);
    ASSERT_EQ(many.parts.size(), 2U);
    EXPECT_EQ(many.parts[0].text, "one");
    EXPECT_EQ(many.parts[1].text, "two");
    EXPECT_EQ(done(), (std::vector<ulc_request*>{&many.parts[0].request, &many.request,
                                                 &many.parts[1].request}));
    Many next;
    ASSERT_EQ(receive_many(next, 2, 2), ULC_OK);
    EXPECT_EQ(next.parts.at(0).text, "three");
    hear(2, kTag, "four");
    EXPECT_EQ(next.parts.at(1).text, "four");
}

TEST_F(ClientMany, short_messages_overtake_one_that_is_still_coming) {
    const std::string text = pattern(3000);
    Many many;
    ASSERT_EQ(receive_many(many, 3), ULC_OK);
    engine.deliver_block(1, kTag, 0, text.substr(0, 1000), 0, text.size());
    engine.deliver_inline(2, kTag, "short");
    ep->poll();
    ASSERT_EQ(many.parts.size(), 2U);
    EXPECT_EQ(many.parts[0].announced.length, text.size());
    EXPECT_EQ(many.parts[0].head, text.substr(0, 1000));
    EXPECT_EQ(done(), (std::vector<ulc_request*>{&many.parts[1].request}));
    engine.deliver_block(1, kTag, 8192, text.substr(1000), 1000, text.size());
    ep->poll();
    EXPECT_EQ(done(), (std::vector<ulc_request*>{&many.parts[0].request}));
    EXPECT_EQ(many.parts[0].text, text);
    EXPECT_EQ(many.parts[1].text, "short");
}

TEST_F(ClientMany, asks_for_all_of_an_announced_message) {
    const std::string text = pattern(20'000);
    Many many;
    ASSERT_EQ(receive_many(many, 2, 1), ULC_OK);
    announce(1, text, 100);
    ASSERT_EQ(many.parts.size(), 1U);
    EXPECT_EQ(many.parts[0].announced.length, text.size());
    EXPECT_EQ(many.parts[0].head, text.substr(0, 100));
    EXPECT_EQ(said<Ask>(1, kTagAsk).up_to, text.size());
}

TEST_F(ClientMany, asks_for_an_announced_message_that_was_unexpected) {
    const std::string text = pattern(20'000);
    announce(1, text, 100);
    Many many;
    ASSERT_EQ(receive_many(many, 2, 1), ULC_OK);
    ASSERT_EQ(many.parts.size(), 1U);
    EXPECT_EQ(many.parts[0].announced.length, text.size());
    EXPECT_EQ(many.parts[0].head, text.substr(0, 100));
    EXPECT_EQ(said<Ask>(1, kTagAsk).up_to, text.size());
}

TEST_F(ClientMany, a_message_to_oneself_shows_its_first_bytes) {
    Many many;
    ASSERT_EQ(receive_many(many, 2), ULC_OK);
    const std::string text = pattern(100);
    const ulc_piece pieces[] = {{const_cast<char*>(text.data()), 10},
                                {const_cast<char*>(text.data()) + 10, 90}};
    ASSERT_EQ(ulc_sendv(ep, 0, kTag, pieces, 2, 0, nullptr), ULC_OK);
    ASSERT_EQ(many.parts.size(), 1U);
    EXPECT_EQ(many.parts[0].head, text.substr(0, 64));
    EXPECT_EQ(many.parts[0].text, text);
}

TEST_F(ClientMany, a_part_that_is_too_short_cuts_its_message_alone) {
    Many many;
    many.capacity = 4;
    ASSERT_EQ(receive_many(many, 9), ULC_OK);
    hear(1, kTag, "truncated");
    hear(1, kTag, "fits");
    ulc_status status;
    EXPECT_EQ(test(many.parts.at(0).request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_TRUNCATED);
    EXPECT_EQ(status.length, 9U);
    EXPECT_EQ(test(many.parts.at(1).request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_EQ(many.parts[0].text, "trun");
    EXPECT_EQ(many.parts[1].text, "fits");
}

TEST_F(ClientMany, pieces_out_of_range_hold_no_byte) {
    ulc_request request;
    static ulc_request part_request;
    const auto give = [](ulc_request*, const ulc_status*, const void*, std::size_t,
                         ulc_part* part) {
        part->request = &part_request;
        part->count = ULC_PIECES_MAX + 1;
    };
    ASSERT_EQ(ulc_receive_many(ep, 1, kTag, kExact, give, &request), ULC_OK);
    hear(1, kTag, "text");
    ulc_status status;
    ASSERT_EQ(test(part_request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_TRUNCATED);
    EXPECT_EQ(status.length, 4U);
}

TEST_F(ClientMany, a_cancel_leaves_the_parts_that_are_coming) {
    const std::string text = pattern(2000);
    Many many;
    ASSERT_EQ(receive_many(many, 5, 1), ULC_OK);
    engine.deliver_block(1, kTag, 0, text.substr(0, 1000), 0, text.size());
    ep->poll();
    EXPECT_EQ(ulc_cancel(ep, &many.request), ULC_OK);
    EXPECT_EQ(ulc_cancel(ep, &many.parts.at(0).request), ULC_ERR_AGAIN);
    engine.deliver_block(1, kTag, 8192, text.substr(1000), 1000, text.size());
    ep->poll();
    EXPECT_EQ(done(), (std::vector<ulc_request*>{&many.parts[0].request}));
    EXPECT_EQ(many.parts[0].text, text);
    hear(1, kTag, "more");
    EXPECT_EQ(many.parts.size(), 1U);
}

TEST_F(ClientMany, ends_with_the_peer_that_it_names) {
    Many named;
    Many any;
    ASSERT_EQ(receive_many(named, 5, 1), ULC_OK);
    ASSERT_EQ(receive_many(any, 5), ULC_OK);
    engine.deliver_block(1, kTag, 0, pattern(1000), 0, 2000);
    engine.peer_gone(1, true);
    ep->poll();
    ulc_status status;
    EXPECT_EQ(done(&status),
              (std::vector<ulc_request*>{&named.parts.at(0).request, &named.request}));
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    ASSERT_EQ(receive_many(named, 5, 1), ULC_OK);
    EXPECT_EQ(done(&status), (std::vector<ulc_request*>{&named.request}));
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    hear(2, kTag, "still");
    EXPECT_EQ(any.parts.at(0).text, "still");
}

TEST_F(ClientMany, refuses_what_it_cannot_do) {
    ulc_request request;
    EXPECT_EQ(ulc_receive_many(ep, 1, kTag, kExact, nullptr, &request), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_receive_many(ep, 1, kTag, kExact, Many::give, nullptr), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_receive_many(ep, 3, kTag, kExact, Many::give, &request), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_receive_many(ep, 1, ULC_TAG_MAX + 1, kExact, Many::give, &request),
              ULC_ERR_INVALID);
    EXPECT_EQ(ulc_receive_many(nullptr, 1, kTag, kExact, Many::give, &request), ULC_ERR_INVALID);
}

// ---------------------------------------------------------------- against plain lists

/// A receive of one message, or of `many.left` ones, and the messages that it must get.
struct Expectation {
    Many many;
    bool takes_many = false;
    std::string text;
    std::uint16_t from = ULC_RANK_ANY;
    std::uint64_t tag = 0;
    unsigned left = 1;
    std::vector<std::string> expected;
};
struct Sent {
    std::uint16_t source;
    std::uint64_t tag;
    std::string text;
};

class ManyOrder : public ClientTest, public testing::WithParamInterface<std::uint64_t> {
protected:
    static constexpr std::uint16_t kRanks = 4;

    static constexpr std::uint32_t kBlock = 1024;

    ManyOrder() : prng(GetParam()) {
        engine.form(0, kRanks);
        for (std::uint32_t at = 0; at < 64 * 1024; at += kBlock)
            free_blocks.push_back(at);
    }

    // The obvious way: a list of receives, and a list of messages.
    static bool fits(const Expectation& receive, const Sent& message) {
        return (receive.from == ULC_RANK_ANY || receive.from == message.source) &&
               receive.tag == message.tag;
    }
    void model_arrive(const Sent& message) {
        const auto it = std::ranges::find_if(
            posted, [&](const Expectation* one) { return fits(*one, message); });
        if (it == posted.end()) {
            unexpected.push_back(message);
            return;
        }
        (*it)->expected.push_back(message.text);
        if (--(*it)->left == 0) posted.erase(it);
    }
    void model_post(Expectation& receive) {
        while (receive.left > 0) {
            const auto it = std::ranges::find_if(
                unexpected, [&](const Sent& one) { return fits(receive, one); });
            if (it == unexpected.end()) break;
            receive.expected.push_back(it->text);
            unexpected.erase(it);
            --receive.left;
        }
        if (receive.left > 0) posted.push_back(&receive);
    }

    void post() {
        Expectation& one = all.emplace_back();
        one.takes_many = prng.chance(0.5);
        one.left = one.takes_many ? 1 + static_cast<unsigned>(prng.below(6)) : 1;
        one.from = prng.chance(0.4) ? std::uint16_t{ULC_RANK_ANY}
                                    : static_cast<std::uint16_t>(1 + prng.below(kRanks - 1));
        one.tag = prng.below(3);
        one.many.left = one.left;
        model_post(one);
        if (one.takes_many) {
            ASSERT_EQ(
                ulc_receive_many(ep, one.from, one.tag, UINT64_MAX, Many::give, &one.many.request),
                ULC_OK);
        } else {
            one.text.resize(4000);
            ASSERT_EQ(ulc_receive(ep, one.from, one.tag, UINT64_MAX, one.text.data(),
                                  one.text.size(), &one.many.request),
                      ULC_OK);
        }
    }
    void cancel() {
        if (posted.empty()) return;
        const auto at = static_cast<std::ptrdiff_t>(prng.below(posted.size()));
        ASSERT_EQ(ulc_cancel(ep, &posted[static_cast<std::size_t>(at)]->many.request), ULC_OK);
        posted.erase(posted.begin() + at);
    }
    void arrive() {
        Sent message;
        message.source = static_cast<std::uint16_t>(1 + prng.below(kRanks - 1));
        if (coming.contains(message.source)) return go_on(message.source);
        message.tag = prng.below(3);
        const bool is_short = free_blocks.empty() || prng.chance(0.6);
        const std::size_t length = is_short           ? prng.below(abi::kInlineOctetsMax)
                                   : prng.chance(0.5) ? abi::kInlineOctetsMax + prng.below(900)
                                                      : kBlock + 1 + prng.below(2900);
        message.text = pattern(length);
        const std::string number = std::to_string(++messages);
        message.text.replace(0, std::min(number.size(), length), number.substr(0, length));
        model_arrive(message);
        if (length < abi::kInlineOctetsMax) {
            engine.deliver_inline(message.source, message.tag, message.text);
        } else {
            coming[message.source] = {message, 0};
            go_on(message.source);
        }
    }
    void go_on(std::uint16_t source) {
        if (free_blocks.empty()) poll();
        if (free_blocks.empty()) return;  // unexpected messages hold all
        auto& [message, at] = coming.at(source);
        const std::string chunk = message.text.substr(at, kBlock);
        engine.deliver_block(source, message.tag, free_blocks.front(), chunk, at,
                             message.text.size());
        free_blocks.pop_front();
        at += chunk.size();
        if (at == message.text.size()) coming.erase(source);
    }
    void poll() {
        ep->poll();
        for (const std::uint32_t block : engine.released())
            free_blocks.push_back(block);
        undelivered = 0;
    }

    Prng prng;
    std::deque<Expectation> all;
    std::vector<Expectation*> posted;
    std::vector<Sent> unexpected;
    std::map<std::uint16_t, std::pair<Sent, std::size_t>> coming;
    std::deque<std::uint32_t> free_blocks;
    unsigned undelivered = 0;
    unsigned messages = 0;
};

TEST_P(ManyOrder, every_message_goes_where_plain_lists_say) {
    for (int step = 0; step < 6000; ++step) {
        const bool receives = prng.chance((step / 1000) % 2 == 0 ? 0.35 : 0.1);
        if (receives) {
            poll();  // a receive sees what has arrived before
            post();
        } else if (prng.chance(0.02)) {
            poll();
            cancel();
        } else {
            arrive();
            if (++undelivered == 12 || prng.chance(0.2)) poll();
        }
        ASSERT_FALSE(HasFatalFailure());
    }
    for (int round = 0; !coming.empty() && round < 10'000; ++round) {
        if (free_blocks.empty()) post();  // takes some of those that hold all
        go_on(coming.begin()->first);
    }
    ASSERT_TRUE(coming.empty());
    poll();
    std::size_t handed_out = 0;
    while (ulc_next_done(ep, nullptr) != nullptr)
        ++handed_out;
    std::size_t parts = 0;
    for (Expectation& one : all) {
        if (one.takes_many) {
            ASSERT_EQ(one.many.parts.size(), one.expected.size());
            for (std::size_t i = 0; i < one.expected.size(); ++i)
                ASSERT_TRUE(one.many.parts[i].text == one.expected[i]) << one.expected[i].size();
            parts += one.expected.size() + (one.left == 0 ? 1 : 0);
        } else if (!one.expected.empty()) {
            ulc_status status;
            ASSERT_EQ(test(one.many.request, &status), ULC_OK);
            ASSERT_TRUE(one.text.substr(0, status.length) == one.expected[0]) << status.length;
        }
    }
    EXPECT_EQ(handed_out, parts);
    EXPECT_GT(parts, 1000U);
}

INSTANTIATE_TEST_SUITE_P(, ManyOrder, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace ulc::client
