// SPDX-License-Identifier: BSD-3-Clause
// Tests of the matching order: against a plain list that does it the obvious way, and the cases
// that users expect by name.
#include "client/p2p/matching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "base/prng.h"

namespace ulc::client {
namespace {

constexpr std::uint64_t kAll = UINT64_MAX;

struct Fixture : testing::Test {
    Fixture() { EXPECT_TRUE(matcher.begin_job(4)); }
    Request& post(std::uint16_t from, std::uint64_t tag, std::uint64_t mask = kAll) {
        requests.push_back({});
        Request& request = requests.back();
        request.from = from;
        request.tag = tag;
        request.mask = mask;
        matcher.post(request);
        return request;
    }
    Arrival& arrive(std::uint16_t source, std::uint64_t tag) {
        arrivals.push_back({});
        Arrival& arrival = arrivals.back();
        arrival.source = source;
        arrival.tag = tag;
        matcher.add_unexpected(arrival);
        return arrival;
    }
    std::deque<Request> requests;
    std::deque<Arrival> arrivals;
    Matcher matcher;
};
using Matching = Fixture;

TEST_F(Matching, the_receive_posted_first_wins_named_or_not) {
    Request& any = post(kAnySource, 1);
    Request& named = post(2, 1);
    EXPECT_EQ(matcher.match_posted(2, 1), &any);
    EXPECT_EQ(matcher.match_posted(2, 1), &named);
    EXPECT_EQ(matcher.match_posted(2, 1), nullptr);
}

TEST_F(Matching, a_named_receive_takes_its_source_only) {
    Request& named = post(3, 5);
    EXPECT_EQ(matcher.match_posted(2, 5), nullptr);
    EXPECT_EQ(matcher.match_posted(3, 6), nullptr);
    EXPECT_EQ(matcher.match_posted(3, 5), &named);
}

TEST_F(Matching, masked_bits_of_the_tag_do_not_count) {
    Request& low = post(kAnySource, 0x12, 0xff);
    EXPECT_EQ(matcher.match_posted(0, 0x3413), nullptr);
    EXPECT_EQ(matcher.match_posted(0, 0x3412), &low);
}

TEST_F(Matching, says_whether_a_long_receive_is_posted) {
    const auto post_of = [this](std::uint16_t from, std::uint64_t capacity) -> Request& {
        requests.push_back({});
        Request& request = requests.back();
        request.from = from;
        request.mask = kAll;
        request.capacity = capacity;
        matcher.post(request);
        return request;
    };
    post_of(1, abi::kPlacedMin - 1);
    EXPECT_FALSE(matcher.has_long());
    Request& canceled = post_of(2, abi::kPlacedMin);
    post_of(kAnySource, abi::kPlacedMin);
    post_of(3, abi::kPlacedMin + 1);
    matcher.unpost(canceled);
    EXPECT_NE(matcher.match_posted(0, 0), nullptr);
    EXPECT_TRUE(matcher.has_long());
    EXPECT_NE(matcher.take_posted(3), nullptr);
    EXPECT_FALSE(matcher.has_long());
}

TEST_F(Matching, unexpected_messages_are_found_in_arrival_order) {
    Arrival& first = arrive(1, 7);
    Arrival& second = arrive(0, 7);
    Arrival& third = arrive(1, 7);
    EXPECT_EQ(matcher.find_unexpected(kAnySource, 7, kAll), &first);
    EXPECT_EQ(matcher.find_unexpected(0, 7, kAll), &second);
    matcher.remove_unexpected(first);
    EXPECT_EQ(matcher.find_unexpected(kAnySource, 7, kAll), &second);
    EXPECT_EQ(matcher.find_unexpected(1, 0, 0), &third);
}

TEST_F(Matching, a_source_is_announced_once_until_it_is_heard_again) {
    post(1, 0);
    post(3, 0);
    std::vector<std::uint16_t> told;
    const auto tell = [&](std::uint16_t source) {
        told.push_back(source);
        return true;
    };
    matcher.each_awaited(8, tell);
    matcher.each_awaited(8, tell);
    EXPECT_EQ(told, (std::vector<std::uint16_t>{1, 3}));
    matcher.heard(3);
    matcher.each_awaited(8, tell);
    EXPECT_EQ(told.size(), 3U);
    (void)matcher.match_posted(1, 0);
    (void)matcher.match_posted(3, 0);
    matcher.heard(1);
    matcher.heard(3);
    matcher.each_awaited(8, tell);
    EXPECT_EQ(told.size(), 3U) << "nothing is awaited any more";
}

/// The parameters of random receives and messages.
struct Traffic {
    std::uint64_t seed;
    std::uint16_t sources;
    std::uint64_t tags;
    std::vector<std::uint64_t> masks;
    double receives_first;  ///< share of steps that post
    double takes_back;      ///< share of steps that cancel a receive
};

class MatchingOrder : public Fixture, public testing::WithParamInterface<Traffic> {};

// The reference: one list of receives, one of messages.
TEST_P(MatchingOrder, agrees_with_plain_lists_over_random_traffic) {
    const Traffic& traffic = GetParam();
    Prng prng(traffic.seed);
    bool hashed = false;
    unsigned filings = 0;
    std::vector<Request*> plain_posted;
    std::vector<Arrival*> plain_arrived;
    const auto fits = [](const Request& r, std::uint16_t source, std::uint64_t tag) {
        return (r.from == kAnySource || r.from == source) && ((r.tag ^ tag) & r.mask) == 0;
    };
    for (int step = 0; step < 20'000; ++step) {
        const auto source = static_cast<std::uint16_t>(prng.below(traffic.sources));
        const std::uint64_t tag = prng.below(traffic.tags);
        if (prng.chance(traffic.takes_back) && !plain_posted.empty()) {
            const auto at = static_cast<std::ptrdiff_t>(prng.below(plain_posted.size()));
            matcher.unpost(*plain_posted[static_cast<std::size_t>(at)]);
            plain_posted.erase(plain_posted.begin() + at);
            continue;
        }
        // The share alternates, so that both lists grow long and become short again.
        const bool receives = prng.chance((step / 4000) % 2 == 0 ? traffic.receives_first
                                                                 : 1 - traffic.receives_first);
        if (!receives) {
            const auto it = std::find_if(plain_posted.begin(), plain_posted.end(),
                                         [&](Request* r) { return fits(*r, source, tag); });
            Request* const expected = it == plain_posted.end() ? nullptr : *it;
            ASSERT_EQ(matcher.match_posted(source, tag), expected) << "step " << step;
            if (expected != nullptr && expected->many && prng.chance(0.8)) {
                continue;  // it takes more
            } else if (expected != nullptr) {
                if (expected->many) matcher.unpost(*expected);
                plain_posted.erase(it);
            } else {
                plain_arrived.push_back(&arrive(source, tag));
            }
        } else {
            const std::uint16_t from = prng.chance(0.3) ? kAnySource : source;
            const std::uint64_t mask = traffic.masks[prng.below(traffic.masks.size())];
            Request probe{};
            probe.from = from;
            probe.tag = tag;
            probe.mask = mask;
            const auto it =
                std::find_if(plain_arrived.begin(), plain_arrived.end(),
                             [&](Arrival* a) { return fits(probe, a->source, a->tag); });
            Arrival* const expected = it == plain_arrived.end() ? nullptr : *it;
            ASSERT_EQ(matcher.find_unexpected(from, tag, mask), expected) << "step " << step;
            if (expected != nullptr) {
                matcher.remove_unexpected(*expected);
                plain_arrived.erase(it);
            } else {
                plain_posted.push_back(&post(from, tag, mask));
                plain_posted.back()->many = prng.chance(0.2);
            }
        }
        hashed |= matcher.hashes_posted();
        filings = std::max(filings, matcher.filings());
    }
    if (traffic.tags > 4) {
        EXPECT_TRUE(hashed);
        EXPECT_EQ(filings, std::min<std::size_t>(kFilings, 2 * traffic.masks.size()));
    }
    for (std::uint16_t source = 0; source < traffic.sources; ++source)
        while (matcher.take_posted(source) != nullptr) {
        }
    while (matcher.take_posted(kAnySource) != nullptr) {
    }
    EXPECT_FALSE(matcher.hashes_posted());
    while (matcher.first_unexpected() != nullptr)
        matcher.remove_unexpected(*matcher.first_unexpected());
    EXPECT_EQ(matcher.filings(), 0U);
}

std::vector<std::uint64_t> masks_of_bits(unsigned count) {
    std::vector<std::uint64_t> masks;
    for (unsigned n = 0; n < count; ++n)
        masks.push_back(kAll ^ n);
    return masks;
}

INSTANTIATE_TEST_SUITE_P(, MatchingOrder,
                         testing::Values(Traffic{42, 4, 4, {kAll, kAll, 1}, 0.5, 0},  // short lists
                                         Traffic{43, 4, 4000, {kAll, kAll, kAll ^ 7}, 0.6, 0.05},
                                         Traffic{44, 2, 300, masks_of_bits(12), 0.7, 0.02},
                                         Traffic{45, 3, 5000, masks_of_bits(24), 0.65,
                                                 0.1}));  // more than it has shapes

}  // namespace
}  // namespace ulc::client
