// SPDX-License-Identifier: BSD-3-Clause
// The table of MAC addresses (ip/arp_table.h): what fills it, how often it asks, and when an entry
// ends or changes.
#include "ip/arp_table.h"

#include <gtest/gtest.h>

namespace ulc::ip {
namespace {

constexpr Ipv4 kNode = 0x0a000007;
constexpr Mac kFirst{{2, 0, 0, 0, 0, 7}};
constexpr Mac kOtherMac{{2, 0, 0, 0, 0, 8}};

class IpArpTable : public testing::Test {
protected:
    /// Lets time pass in steps of 10 ms. Returns the questions of that time.
    unsigned pass(Nanos time) {
        unsigned questions = 0;
        for (const Nanos end = now + time; now < end; now += 10 * kMillisecond) {
            table.on_timer(now);
            questions += asked();
        }
        return questions;
    }
    unsigned asked() {
        unsigned questions = 0;
        for (Ipv4 address = 0; table.next_question(address); ++questions)
            EXPECT_EQ(address, kNode);
        return questions;
    }
    void learn(const Mac& mac) {
        ASSERT_TRUE(table.ask(kNode, now));
        EXPECT_EQ(asked(), 1U);
        EXPECT_TRUE(table.on_reply(kNode, mac, now));
        ASSERT_NE(table.find(kNode), nullptr);
        EXPECT_EQ(*table.find(kNode), mac);
    }

    Nanos now = 5 * kSecond;
    ArpTable table{7};
};

// I-25
TEST_F(IpArpTable, asks_three_times_one_second_apart_and_then_no_more) {
    ASSERT_TRUE(table.ask(kNode, now));
    for (unsigned n = 0; n < 100; ++n)
        ASSERT_TRUE(table.ask(kNode, now));
    EXPECT_EQ(asked(), 1U);
    EXPECT_EQ(pass(900 * kMillisecond), 0U);
    EXPECT_EQ(pass(2 * kSecond), 2U);
    EXPECT_TRUE(table.is_asked(kNode));
    EXPECT_EQ(pass(10 * kSecond), 0U);
    EXPECT_FALSE(table.is_asked(kNode));
    EXPECT_EQ(table.size(), 0U);
}

// I-26
TEST_F(IpArpTable, is_filled_by_no_reply_and_no_claim_that_it_did_not_ask_for) {
    EXPECT_FALSE(table.on_reply(kNode, kFirst, now));
    table.on_claim(kNode, kFirst, now);
    EXPECT_EQ(table.size(), 0U);
    learn(kFirst);
    EXPECT_FALSE(table.on_reply(kNode, kFirst, now)) << "the question has its reply";
}

// I-26
TEST_F(IpArpTable, follows_a_node_that_changes_its_mac_address_after_a_question) {
    learn(kFirst);
    now += 5 * kSecond;
    table.on_claim(kNode, kOtherMac, now);
    EXPECT_EQ(*table.find(kNode), kFirst) << "a claim alone changes nothing";
    EXPECT_EQ(asked(), 1U);
    EXPECT_TRUE(table.on_reply(kNode, kOtherMac, now));
    EXPECT_EQ(*table.find(kNode), kOtherMac);
    for (unsigned n = 0; n < 100; ++n)
        table.on_claim(kNode, kFirst, now);
    EXPECT_EQ(asked(), 0U) << "a question a second";
    EXPECT_EQ(pass(1500 * kMillisecond), 1U);
    EXPECT_TRUE(table.on_reply(kNode, kOtherMac, now)) << "the node is still there";
    EXPECT_EQ(pass(5 * kSecond), 0U);
}

TEST_F(IpArpTable, an_unasked_reply_of_another_address_is_a_claim) {
    learn(kFirst);
    now += 5 * kSecond;
    EXPECT_FALSE(table.on_reply(kNode, kOtherMac, now));
    EXPECT_EQ(*table.find(kNode), kFirst);
    EXPECT_EQ(asked(), 1U);
}

// I-25
TEST_F(IpArpTable, an_entry_in_use_is_asked_again_and_ends_without_a_reply) {
    learn(kFirst);
    EXPECT_EQ(pass(29 * kSecond), 0U);
    EXPECT_EQ(pass(2 * kSecond), 1U) << "after 30 s";
    EXPECT_TRUE(table.on_reply(kNode, kFirst, now));
    ASSERT_NE(table.find(kNode), nullptr);
    EXPECT_EQ(pass(29 * kSecond), 0U) << "the reply counts from its time";
    EXPECT_LE(pass(29 * kSecond), 30U);
    ASSERT_NE(table.find(kNode), nullptr) << "the old address serves meanwhile";
    EXPECT_LE(pass(3 * kSecond), 3U);
    EXPECT_EQ(table.find(kNode), nullptr) << "after 60 s";
    EXPECT_LE(pass(5 * kSecond), 3U);
    EXPECT_EQ(table.size(), 0U);
}

TEST_F(IpArpTable, an_entry_without_use_is_not_asked_again_and_ends) {
    ASSERT_TRUE(table.ask(kNode, now));
    EXPECT_EQ(asked(), 1U);
    EXPECT_TRUE(table.on_reply(kNode, kFirst, now));
    EXPECT_EQ(pass(61 * kSecond), 0U);
    EXPECT_EQ(table.size(), 0U);
}

// I-25
TEST_F(IpArpTable, has_a_limit_and_finds_all_entries_after_others_ended) {
    for (std::uint32_t n = 0; n < ArpTable::kEntriesMax; ++n) {
        ASSERT_TRUE(table.ask(n + 1, now));
        Ipv4 question = 0;
        ASSERT_TRUE(table.next_question(question));
        EXPECT_EQ(question, n + 1);
        if (n % 3 == 0) continue;
        const Mac mac{
            {2, 0, 0, 0, static_cast<std::uint8_t>(n >> 8U), static_cast<std::uint8_t>(n)}};
        EXPECT_TRUE(table.on_reply(n + 1, mac, now));
    }
    EXPECT_FALSE(table.ask(0xffff, now));
    for (unsigned n = 0; n < 50; ++n, now += 100 * kMillisecond) {
        table.on_timer(now);
        Ipv4 question = 0;
        while (table.next_question(question))
            EXPECT_EQ((question - 1) % 3, 0U);
    }
    for (std::uint32_t n = 0; n < ArpTable::kEntriesMax; ++n) {
        const Mac* const mac = table.find(n + 1);
        ASSERT_EQ(mac == nullptr, n % 3 == 0) << n;
        if (mac != nullptr) {
            EXPECT_EQ(mac->octets[5], n & 0xffU);
        }
    }
    EXPECT_TRUE(table.ask(0xffff, now));
}

}  // namespace
}  // namespace ulc::ip
