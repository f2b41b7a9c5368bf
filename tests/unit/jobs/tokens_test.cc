// SPDX-License-Identifier: BSD-3-Clause
// A node that was asked cannot compute the tokens of other questions, and so cannot answer in the
// name of another node (jobs/node_addresses.h, jobs/liveness.h; N-8, N-52).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/unit/jobs/addresses_fixture.h"
#include "tests/unit/seal/xoshiro.h"

namespace ulc::jobs {
namespace {

constexpr unsigned kSpy = 6;     ///< a node that the test plays, which is asked again and again
constexpr unsigned kVictim = 5;  ///< one in whose name it answers

/// Returns the tokens of a kind of frame to that node, in the order in which they were sent.
std::vector<std::uint64_t> tokens_of(const JobBus& bus, wire::NodeKind kind,
                                     std::initializer_list<Mac> to) {
    std::vector<std::uint64_t> tokens;
    for (const auto& frame : bus.log) {
        wire::FrameView view;
        wire::NodeView node;
        const auto& head = *reinterpret_cast<const wire::EthernetHeader*>(frame.data());
        if (std::ranges::find(to, Mac{head.destination}) == to.end() ||
            wire::parse(frame.data(), frame.size(), wire::kEtherTypeDefault, view) !=
                Counter::kCount ||
            view.type != wire::FrameType::kNode ||
            !wire::parse_node(view.body, view.length, node) || node.kind != kind)
            continue;
        if (std::ranges::find(tokens, node.token) == tokens.end()) tokens.push_back(node.token);
    }
    return tokens;
}

/// Returns what one may expect to follow: of a linear generator, a counter, or steps.
std::vector<std::uint64_t> guesses_after(const std::vector<std::uint64_t>& seen) {
    const std::size_t size = seen.size();
    std::vector<std::uint64_t> guesses{2 * seen[size - 1] - seen[size - 2]};
    for (std::uint64_t n = 1; n <= 4; ++n)
        guesses.push_back(seen[size - 1] + n);
    if (size >= 4) guesses.push_back(test::predicted_after(std::span(seen).last<4>()));
    return guesses;
}

// N-52
TEST_F(Addresses, are_not_confirmed_by_a_token_that_was_computed_from_others) {
    const auto own = links_of(kSpy, {100, 100});
    std::vector<std::uint64_t> seen;
    for (std::uint64_t number = 1; number <= 4; ++number) {
        prove(own, number);
        for (const std::uint64_t token :
             tokens_of(bus, wire::NodeKind::kLinksRequest, {own[0].mac, own[1].mac}))
            if (std::ranges::find(seen, token) == seen.end()) seen.push_back(token);
    }
    ASSERT_GE(seen.size(), 8U);
    (void)changed(bus.node(0));
    auto forged = links_of(kVictim, {100, 100});
    forged[1].mac = link_mac(kSpy, 2);
    hint(forged[0].mac, 1, forged);
    for (const std::uint64_t guess : guesses_after(seen)) {
        const std::uint64_t before = unproven();
        reply(guess, 1, forged);
        EXPECT_EQ(unproven(), before + 1);
    }
    EXPECT_TRUE(changed(bus.node(0)).empty()) << "a forged reply was believed";
    reply(token_to(forged[0].mac), 1, links_of(kVictim, {100, 100}));
    EXPECT_EQ(unproven(), static_cast<std::uint64_t>(guesses_after(seen).size()))
        << "the true token counts";
}

// N-8
TEST_F(Addresses, of_a_peer_do_not_make_it_end_by_a_token_that_was_computed_from_others) {
    form_job_with_node_2();
    bus.run(kSecond);
    auto seen = tokens_of(bus, wire::NodeKind::kPing, {mac_of(2)});
    ASSERT_GE(seen.size(), 2U);
    bus.log.clear();
    bus.cut = &bus.node(2);  // its answers are late
    const auto pings = [&] { return tokens_of(bus, wire::NodeKind::kPing, {mac_of(2)}); };
    ASSERT_TRUE(bus.run(kSecond, [&] { return !pings().empty(); }));
    const auto gone = [&](std::uint64_t token) {
        wire::NodeBody body{};
        body.kind = wire::NodeKind::kGone;
        body.incarnation = bus.node(2).config.incarnation;
        body.token = token;
        body.ours = 11U;
        body.reason = wire::LeaveReason::kDied;
        bus.inject(bus.node(0), mac_of(2), wire::FrameType::kNode,
                   std::as_bytes(std::span(&body, 1)));
        bus.run(0);
        return bus.node(0).count(JobEventKind::kPeerDied, 1);
    };
    for (const std::uint64_t guess : guesses_after(seen))
        EXPECT_EQ(gone(guess), 0U) << "a forged answer ended a rank";
    EXPECT_EQ(gone(pings().back()), 1U) << "an answer ends it";
}

}  // namespace
}  // namespace ulc::jobs
