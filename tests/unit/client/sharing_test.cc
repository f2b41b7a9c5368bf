// SPDX-License-Identifier: BSD-3-Clause
// How members of a group agree on a shared multicast address, against an engine that the test
// writes out: client/groups/sharing.h.
#include <gtest/gtest.h>
#include <ulc.h>

#include <cstring>
#include <string>

#include "base/address_plan.h"
#include "base/endian.h"
#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr std::uint64_t kLibulc = std::uint64_t{3} << 62;
constexpr std::uint32_t kShared = 0x00123456;

struct Member {
    ScriptedEngine engine{kSmall};
    ulc_endpoint* ep = engine.endpoint.get();
    std::uint32_t handle = 0;
    ulc_request request{};

    /// The group of ranks 0 and 1, which is registered at an engine without an entry for it.
    void create(std::uint16_t self) {
        engine.form(self, 2);
        const std::uint16_t ranks[] = {0, 1};
        ASSERT_EQ(ulc_group_create(ep, ranks, 2, &request), ULC_OK);
        const auto add = engine.take(abi::SubmitKind::kAddGroup);
        ASSERT_TRUE(add.has_value());
        handle = add->stream;
        abi::CompletionRecord& ready = engine.claim(abi::CompletionKind::kGroupReady);
        ready.stream = handle;
        ready.tag = add->cookie;
        ready.flags = abi::kCompleteInline;
        abi::GroupOffers offers{};
        offers.count = 2;
        offers.per_node = 1;
        offers.offers[0] = AddressOffer{kShared, 3}.packed();
        offers.offers[1] = AddressOffer{kBroadcastAddress, 9}.packed();
        std::memcpy(ready.body.inline_octets, &offers, sizeof offers);
        ready.inline_length = sizeof offers;
        engine.completions.publish();
        ep->poll();
    }
    /// The next message to that rank, and its payload.
    std::string sent(std::uint16_t to, std::uint64_t tag) {
        const auto record = engine.take(abi::SubmitKind::kSend);
        if (!record.has_value()) return "nothing";
        EXPECT_EQ(record->stream, to);
        EXPECT_EQ(record->tag, tag);
        EXPECT_NE(record->flags & abi::kSubmitInline, 0);
        return {reinterpret_cast<const char*>(record->body.inline_octets), record->inline_length};
    }
    /// Handle and address, as on the wire.
    [[nodiscard]] std::string word() const {
        const Be32 fields[] = {Be32{handle}, Be32{kShared}};
        return {reinterpret_cast<const char*>(fields), sizeof fields};
    }
    void hear(std::uint16_t source, std::uint64_t tag, const std::string& octets) {
        engine.deliver_inline(source, tag, octets);
        ep->poll();
    }
    void expect_submitted(abi::SubmitKind kind) {
        const auto record = engine.take(kind);
        ASSERT_TRUE(record.has_value());
        EXPECT_EQ(record->stream, handle);
        EXPECT_EQ(record->cookie, kShared);
    }
    void listens() {
        abi::CompletionRecord& done = engine.claim(abi::CompletionKind::kGroupListens);
        done.stream = handle;
        done.tag = kShared;
        engine.completions.publish();
        ep->poll();
    }
};

// G-4, G-16, G-19, G-20
TEST(Sharing, a_member_listens_says_so_and_uses_the_address_when_it_may) {
    Member one;
    one.create(1);
    const std::string report = one.sent(0, kLibulc | 1);
    ASSERT_EQ(report.size(), 32U + 2 * 4);
    Be32 offers[2];
    std::memcpy(offers, report.data() + 32, sizeof offers);
    EXPECT_EQ(offers[0], 3U << 24U | kShared);
    EXPECT_EQ(offers[1], 9U << 24U);
    std::string verdict = report.substr(0, 32);
    const Be32 address{kShared};
    std::memcpy(verdict.data() + 28, &address, sizeof address);
    one.hear(0, kLibulc | 2, verdict);
    one.expect_submitted(abi::SubmitKind::kListenGroup);
    one.listens();
    EXPECT_EQ(one.sent(0, kLibulc | 4), one.word());
    one.hear(0, kLibulc | 5, one.word());
    one.expect_submitted(abi::SubmitKind::kUseAddress);
}

// G-19, G-20
TEST(Sharing, the_coordinator_has_all_use_an_address_when_all_listen) {
    Member zero;
    Member one;
    zero.create(0);
    one.create(1);
    EXPECT_FALSE(zero.engine.take_any().has_value()) << "rank 1 has not reported";
    zero.hear(1, kLibulc | 1, one.sent(0, kLibulc | 1));
    zero.expect_submitted(abi::SubmitKind::kListenGroup);
    const std::string verdict = zero.sent(1, kLibulc | 2);
    ASSERT_EQ(verdict.size(), 32U);
    EXPECT_EQ(verdict.substr(28), zero.word().substr(4));
    zero.listens();
    EXPECT_FALSE(zero.engine.take_any().has_value()) << "rank 1 does not listen yet";
    zero.hear(1, kLibulc | 4, zero.word());
    EXPECT_EQ(zero.sent(1, kLibulc | 5), zero.word());
    zero.expect_submitted(abi::SubmitKind::kUseAddress);
}

}  // namespace
}  // namespace ulc::client
