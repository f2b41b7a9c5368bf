// SPDX-License-Identifier: BSD-3-Clause
// Accounts: the share of each user in what all users have, and shares of frames of one pool.
#include "engine/accounts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "base/state/archive.h"

namespace ulc::engine {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

TEST(Accounts, a_user_alone_gets_its_share_and_each_next_one_finds_something) {
    Accounts accounts({.user_share = 90}, 64, 1024, 1);
    std::string why;
    std::vector<std::uint32_t> got;
    for (UserId uid = 1; uid <= 4; ++uid) {
        std::uint32_t count = 0;
        while (accounts.enter({uid, 0}, why) != nullptr)
            ++count;
        got.push_back(count);
    }
    EXPECT_EQ(got, (std::vector<std::uint32_t>{57, 6, 1, 0}));
    EXPECT_EQ(why, "all 64 endpoints of the engine are taken; close some, or raise --endpoints");
}

TEST(Accounts, a_refusal_names_limit_value_and_remedy) {
    Accounts accounts({.user_share = 50, .octets = 100 * kMiB}, 4, 8, 1);
    std::string why;
    ASSERT_NE(accounts.enter({7, 40 * kMiB}, why), nullptr);
    EXPECT_EQ(accounts.enter({7, 20 * kMiB}, why), nullptr);
    EXPECT_EQ(why,
              "user 7 holds 40 MiB and asks for 20 MiB of the 100 MiB for all clients, of which "
              "40 MiB are taken; close some, ask for smaller arenas, or raise --client-memory");
    ASSERT_NE(accounts.enter({7, 0}, why), nullptr);
    EXPECT_EQ(accounts.enter({7, 0}, why), nullptr);
    EXPECT_EQ(why,
              "user 7 holds 2 of 4 endpoints, and the rest is kept for other users; close some, or "
              "raise --endpoints or --user-share");
    EXPECT_NE(accounts.enter({8, 30 * kMiB}, why), nullptr);
}

TEST(Accounts, what_is_left_may_be_taken_again) {
    Accounts accounts({.octets = 10 * kMiB}, 2, 1, 1);
    std::string why;
    User* user = accounts.enter({1, 10 * kMiB}, why);
    ASSERT_NE(user, nullptr);
    EXPECT_EQ(accounts.enter({2, 1}, why), nullptr);
    accounts.leave(*user, 10 * kMiB);
    EXPECT_TRUE(accounts.users().empty());
    EXPECT_NE(accounts.enter({2, 10 * kMiB}, why), nullptr);
}

TEST(Accounts, groups_are_shared_by_net) {
    Accounts accounts({.user_share = 75}, 8, 8, 2);
    std::string why;
    User* a = accounts.enter({1, 0}, why);
    User* b = accounts.enter({2, 0}, why);
    for (std::uint32_t net = 0; net < 2; ++net) {
        for (int n = 0; n < 6; ++n)
            EXPECT_TRUE(accounts.take_group(*a, net)) << n;
        EXPECT_FALSE(accounts.take_group(*a, net));
        EXPECT_TRUE(accounts.take_group(*b, net));
    }
    for (int n = 0; n < 3; ++n)
        accounts.give_group(*a, 0);
    EXPECT_TRUE(accounts.take_group(*a, 0));
    EXPECT_FALSE(accounts.take_group(*a, 1));
}

TEST(Accounts, jobs_begin_at_a_bounded_rate_that_a_new_endpoint_does_not_reset) {
    Accounts accounts({.jobs_per_second = 10, .jobs_burst = 4}, 8, 8, 1);
    std::string why;
    User* user = accounts.enter({1, 0}, why);
    unsigned begun = 0;
    Nanos now = kSecond;
    for (unsigned n = 0; n < 100'000; ++n, now += 100 * kMicrosecond) {
        if (n % 100 == 0) {
            accounts.leave(*user, 0);
            user = accounts.enter({1, 0}, why);
        }
        begun += accounts.take_job(*user, now, now) == now ? 1 : 0;
    }
    EXPECT_GE(begun, 100U);
    EXPECT_LE(begun, 104U) << "10 s of 10, and 4 at once";
    User* other = accounts.enter({2, 0}, why);
    EXPECT_EQ(accounts.take_job(*other, now, now), now) << "of another user";
}

TEST(Accounts, jobs_in_a_row_wait_for_the_rate_after_those_at_once) {
    Accounts accounts({.jobs_per_second = 20, .jobs_burst = 64}, 8, 8, 1);
    std::string why;
    const User* user = accounts.enter({1, 0}, why);
    Nanos now = kSecond;
    for (unsigned n = 0; n < 300; ++n)
        now = accounts.take_job(*user, now, kNever - 1);
    EXPECT_EQ(now, kSecond + 236 * kSecond / 20) << "64 at once, and 236 by the rate";
}

TEST(Accounts, root_and_the_engines_own_user_begin_any_number_of_jobs) {
    constexpr UserId kOwner = 7;
    AccountLimits limits;
    limits.jobs_per_second = 10;
    limits.jobs_burst = 4;
    const auto begun = [&](UserId uid) {
        Accounts accounts(limits, 4, 4, 1);
        std::string why;
        const User* user = accounts.enter({uid, 0}, why);
        unsigned count = 0;
        for (int n = 0; n < 300; ++n)
            count += accounts.take_job(*user, kSecond, kSecond) == kSecond ? 1 : 0;
        return count;
    };
    EXPECT_EQ(begun(0), 4U) << "who is trusted is not known";
    limits.owner = kOwner;
    EXPECT_EQ(begun(0), 300U);
    EXPECT_EQ(begun(kOwner), 300U);
    EXPECT_EQ(begun(kOwner + 1), 4U);
}

TEST(Accounts, jobs_beyond_the_rate_wait_their_turn_within_the_join_time) {
    AccountLimits limits;
    limits.jobs_per_second = 10;
    limits.jobs_burst = 4;
    Accounts accounts(limits, 4, 4, 1);
    std::string why;
    const User* user = accounts.enter({1, 0}, why);
    const Nanos now = 5 * kSecond;
    const Nanos latest = now + kSecond;
    for (int n = 0; n < 4; ++n)
        EXPECT_EQ(accounts.take_job(*user, now, latest), now);
    for (int n = 1; n <= 10; ++n)
        EXPECT_EQ(accounts.take_job(*user, now, latest), now + n * kSecond / 10);
    EXPECT_EQ(accounts.take_job(*user, now, latest), kNever) << "its join time ends before";
    EXPECT_EQ(accounts.take_job(*user, now, latest + kSecond), now + 11 * kSecond / 10);
    accounts.give_job(user->uid);
    EXPECT_EQ(accounts.take_job(*user, now, latest + kSecond), now + 11 * kSecond / 10);
}

TEST(Accounts, an_engine_without_a_rate_takes_over_the_jobs_of_one_with_it) {
    Accounts before({.jobs_per_second = 10}, 4, 4, 1);
    std::string why;
    const Nanos now = 5 * kSecond;
    ASSERT_EQ(before.take_job(*before.enter({1, 0}, why), now, now), now);
    state::Exporter exporter;
    exporter.values(before);
    const state::Image image = exporter.finish();
    Accounts after({.jobs_per_second = 0}, 4, 4, 1);
    state::Importer importer(image.octets, image.frames);
    importer.values(after);
    ASSERT_TRUE(importer.finish()) << importer.why();
    after.give_job(1);
    EXPECT_EQ(after.take_job({1, 1}, now, now), now);
}

// ---------------------------------------------------------------- frames

using urtp::FrameBudget;
using urtp::FrameShare;
using urtp::UserFrames;

std::uint32_t take_all(FrameShare& share) {
    std::uint32_t taken = 0;
    for (; share.may_take(); ++taken)
        share.take();
    return taken;
}

void give_all(FrameShare& share) {
    while (share.held() > 0)
        share.give_back();
}

TEST(FrameShares, every_endpoint_of_another_user_finds_frames) {
    constexpr std::uint32_t kFrames = 4000;
    constexpr std::uint32_t kKept = 16;
    FrameBudget budget(kFrames, kKept, 2);
    UserFrames a;
    UserFrames b;
    std::vector<std::unique_ptr<FrameShare>> of_a;
    of_a.reserve(60);
    for (int n = 0; n < 60; ++n)
        of_a.push_back(std::make_unique<FrameShare>(budget, a));
    FrameShare of_b(budget, b);
    for (const auto& share : of_a)
        EXPECT_GE(take_all(*share), kKept);
    EXPECT_LE(a.held, kFrames * 2 / 3);
    EXPECT_GE(take_all(of_b), kFrames / 10);
    for (const auto& share : of_a)
        give_all(*share);
    give_all(of_b);
    EXPECT_EQ(a.held, 0U);
}

TEST(FrameShares, room_says_how_many_may_be_taken) {
    for (const std::uint32_t alpha : {1U, 2U, 5U}) {
        FrameBudget budget(1000, 10, alpha);
        UserFrames user;
        FrameShare first(budget, user);
        FrameShare second(budget, user);
        for (const std::uint32_t held : {0U, 5U, 10U, 100U}) {
            for (std::uint32_t n = 0; n < held; ++n)
                first.take();
            const std::uint32_t room = second.room();
            EXPECT_EQ(take_all(second), room) << alpha << ", " << held;
            give_all(second);
            give_all(first);
        }
    }
}

TEST(FrameShares, the_guarantee_follows_the_endpoints_in_use) {
    constexpr std::uint32_t kFrames = 768;  // received frames of af_packet's ring
    FrameBudget budget(kFrames, 16, 2);
    UserFrames user;
    std::vector<std::unique_ptr<FrameShare>> shares;
    for (std::uint32_t count = 1; count <= 512; ++count) {
        shares.push_back(std::make_unique<FrameShare>(budget, user));
        if (count <= kFrames / 2 / 16) {
            EXPECT_EQ(budget.guaranteed(), 16U) << count;
        }
        if (count <= kFrames / 2) {
            EXPECT_LE(count * budget.guaranteed(), kFrames / 2) << count;
        }
        EXPECT_GE(budget.guaranteed(), 1U);
    }
    EXPECT_EQ(budget.guaranteed(), 1U);
    shares.resize(2);
    EXPECT_EQ(budget.guaranteed(), 16U) << "two of 512 endpoints are in use";
}

TEST(FrameShares, held_frames_are_counted_anew_when_the_guarantee_changes) {
    constexpr std::int64_t kFrames = 200;
    FrameBudget budget(kFrames, 16, 2);
    std::vector<UserFrames> users(3);
    struct One {
        std::unique_ptr<FrameShare> share;
        std::size_t user = 0;
    };
    std::vector<One> all;
    Prng prng(7);
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t at = all.empty() ? 0 : prng.below(all.size());
        switch (prng.below(12)) {
            case 0:
                if (all.size() == 40) break;
                all.push_back({nullptr, prng.below(users.size())});
                all.back().share = std::make_unique<FrameShare>(budget, users[all.back().user]);
                break;
            case 1:
                if (all.empty()) break;
                give_all(*all[at].share);
                all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
                break;
            case 2:
            case 3:
            case 4:
                if (!all.empty() && all[at].share->held() > 0) all[at].share->give_back();
                break;
            default:
                if (!all.empty() && all[at].share->may_take()) all[at].share->take();
        }
        std::int64_t taken = 0;
        std::vector<std::uint32_t> above(users.size());
        for (const One& one : all) {
            taken += std::max(one.share->held(), budget.guaranteed());
            above[one.user] +=
                std::max(one.share->held(), budget.guaranteed()) - budget.guaranteed();
            EXPECT_EQ(one.share->may_take(), one.share->room() > 0);
        }
        ASSERT_EQ(budget.free(), kFrames - taken) << "step " << step;
        for (std::size_t n = 0; n < users.size(); ++n)
            ASSERT_EQ(users[n].held, above[n]) << "step " << step;
    }
    for (const One& one : all)
        give_all(*one.share);
    all.clear();
    EXPECT_EQ(budget.free(), kFrames);
}

TEST(FrameShares, the_guarantee_returns_with_the_endpoint) {
    FrameBudget budget(100, 10, 2);
    UserFrames user;
    {
        const FrameShare one(budget, user);
        EXPECT_EQ(budget.free(), 90);
    }
    EXPECT_EQ(budget.free(), 100);
}

}  // namespace
}  // namespace ulc::engine
